"""Bounds on the time between two events: by conditions, by the order of a pattern, and of absent events.

A conjunct of WHERE, `b.ts - a.ts <= 5 SECONDS`, gives bounds `end.ts − start.ts ≤ most` in whole microseconds. One that
says anything else gives none: a distance may be missed, never invented. Whether a conjunct applies, because both its
variables are bound (R1), is decided by the temporal network.

The bounds of an absence are conditions on the event that must not be there, never on the events that are: they are
computed from the closed network of the positive variables, one absence at a time, and nothing is ever routed through
an absent variable.

code                  meaning, for an absent event n that would block a match with events v
----                  ---------------------------------------------------------------------
reach[v]              the largest v.ts − n.ts
back[v]               the largest n.ts − v.ts
deadline              min over the upper bounds of `anchor + offset`: past it, no blocker can come
tight, loose          an anchor FirstOf(V) is before *every* event of V: the smallest bound over V holds
                      (tight); it is *some* event of V: the other way only the largest does (loose).
                      LastOf(V) mirrors it; START and END are FirstOf and LastOf all variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.closure import Upper, largest, plus, smallest
from tocsin.language import expressions as ex
from tocsin.source import Where

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Difference:
    """`end.ts − start.ts ≤ most_us`, for all events of both variables."""

    start: str
    end: str
    most_us: int
    where: Where = None


@dataclass(frozen=True)
class Clock:
    """The time attribute; an integer one counts microseconds.

    `of_variable` names those that differ, where event types have time attributes of different names; None is
    for a variable whose types differ among each other.
    """

    attribute: str
    is_integer: bool = False
    of_variable: Mapping[str, str | None] = field(default_factory=dict)

    def reads(self, reference: ex.Attribute) -> bool:
        """Whether a reference is the time of its event."""
        return reference.path == (self.of_variable.get(reference.variable, self.attribute),)


def differences(conjunct: ex.Expression, clock: Clock) -> tuple[Difference, ...]:
    """The bounds a conjunct puts on the time between two variables.

    Only references that speak of every event count: `b.ts` and `b[i].ts`, not `b[last].ts` or `b[i-1].ts`.

    >>> a, b = ex.Attribute("a", ("ts",)), ex.Attribute("b", ("ts",))
    >>> within_five = ex.Comparison("<=", b, ex.Arithmetic("+", a, ex.Interval(5_000_000)))
    >>> differences(within_five, Clock("ts"))
    (Difference(start='a', end='b', most_us=5000000, where=None),)
    """
    found = tuple(_differences(conjunct, clock, negated=False))
    # A third variable that cancels out still decides whether the conjunct holds vacuously (R1).
    mentioned = ex.variables_in(conjunct)
    return tuple(each for each in found if mentioned == {each.start, each.end})


def _differences(conjunct: ex.Expression, clock: Clock, *, negated: bool) -> Iterator[Difference]:
    match conjunct:
        case ex.Not():
            # NOT of a comparison is the opposite comparison, also in three-valued logic.
            yield from _differences(conjunct.operand, clock, negated=not negated)
        case ex.Comparison():
            op = OPPOSITE[conjunct.op] if negated else conjunct.op
            yield from _compared(op, conjunct.left, conjunct.right, clock, conjunct.where)
        case ex.Between() if conjunct.negated == negated:
            yield from _compared(">=", conjunct.operand, conjunct.low, clock, conjunct.where)
            yield from _compared("<=", conjunct.operand, conjunct.high, clock, conjunct.where)
        case _:
            return


def _compared(op: str, left: ex.Expression, right: ex.Expression, clock: Clock, where: Where) -> Iterator[Difference]:
    if _absolute(right) is not None:
        left, right, op = right, left, MIRRORED[op]
    inner = _absolute(left)
    if inner is not None:
        # |x| ≤ c says −c ≤ x ≤ c; |x| ≥ c says x ≤ −c or x ≥ c, which bounds nothing.
        if op in ("<", "<=", "="):
            upper = "<=" if op == "=" else op
            yield from _compared(upper, inner, right, clock, where)
            yield from _compared(MIRRORED[upper], inner, ex.Negative(right), clock, where)
        return
    one, two = _linear(left, clock), _linear(right, clock)
    if one is None or two is None or (one.is_number != two.is_number and not clock.is_integer):
        return
    total = one.plus(two.times(-1))
    if op in ("<", "<=", "="):
        yield from _at_most(total, where, strict=op == "<")
    if op in (">", ">=", "="):
        yield from _at_most(total.times(-1), where, strict=op == ">")


def _absolute(expression: ex.Expression) -> ex.Expression | None:
    if isinstance(expression, ex.Call) and expression.function == "abs" and len(expression.arguments) == 1:
        return expression.arguments[0]
    return None


def _at_most(total: _Linear, where: Where, *, strict: bool) -> Iterator[Difference]:
    """`k·(end − start) + constant ≤ 0`, or `< 0`, as a bound in whole microseconds."""
    if len(total.terms) != 2 or total.shares_index():
        return
    (one, times), (two, other) = total.terms.items()
    if times + other != 0:
        return
    start, end, factor = (one, two, other) if other > 0 else (two, one, times)
    # Times are integers: k·d ≤ −c holds exactly when d ≤ ⌊−c / k⌋.
    yield Difference(start, end, (-total.constant - strict) // factor, where)


@dataclass(frozen=True)
class _Linear:
    """`Σ factor · variable.ts + constant`; a number is neither an instant nor a length of time."""

    terms: dict[str, int]
    constant: int
    is_number: bool = False
    letters: tuple[tuple[str, str], ...] = ()  # (variable, letter) of each `b[i]`

    def plus(self, other: _Linear) -> _Linear:
        terms = dict(self.terms)
        for name, factor in other.terms.items():
            terms[name] = terms.get(name, 0) + factor
        return _Linear(
            {name: factor for name, factor in terms.items() if factor},
            self.constant + other.constant,
            self.is_number and other.is_number,
            self.letters + other.letters,
        )

    def times(self, factor: int) -> _Linear:
        terms = {name: known * factor for name, known in self.terms.items() if factor}
        return _Linear(terms, self.constant * factor, self.is_number, self.letters)

    def shares_index(self) -> bool:
        """Whether two variables run with one letter: `a[i]` and `b[i]` meet only pairwise (R3)."""
        variables = {letter: variable for variable, letter in self.letters}
        return any(variables[letter] != variable for variable, letter in self.letters)


def _linear(expression: ex.Expression, clock: Clock) -> _Linear | None:
    match expression:
        case ex.Attribute() if clock.reads(expression):
            if expression.index is ex.Each.PLAIN:
                return _Linear({expression.variable: 1}, 0)
            if isinstance(expression.index, ex.Running) and expression.index.offset == 0:
                return _Linear({expression.variable: 1}, 0, False, ((expression.variable, expression.index.letter),))
            return None
        case ex.Interval():
            return _Linear({}, expression.microseconds)
        case ex.Literal(int() as value) if not isinstance(value, bool):
            return _Linear({}, value, is_number=True)
        case ex.Negative():
            inner = _linear(expression.operand, clock)
            return None if inner is None else inner.times(-1)
        case ex.Arithmetic("+" | "-" | "*"):
            one, two = _linear(expression.left, clock), _linear(expression.right, clock)
            if one is None or two is None:
                return None
            if expression.op == "*":
                return _product(one, two)
            if one.is_number != two.is_number and not clock.is_integer:
                return None
            return one.plus(two if expression.op == "+" else two.times(-1))
        case _:
            return None


def _product(one: _Linear, two: _Linear) -> _Linear | None:
    if one.is_number and not one.terms:
        return two.times(one.constant)
    if two.is_number and not two.terms:
        return one.times(two.constant)
    return None


# --- the order of a pattern -----------------------------------------------------------------------


def always_before(node: alg.Node) -> frozenset[tuple[str, str]]:
    """Pairs (x, y) such that, whenever a match binds both, all events of x are before all of y.

    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> always_before(alg.Sequence((a, b)))
    frozenset({('a', 'b')})
    >>> always_before(alg.Any((alg.Sequence((a, b)), alg.Sequence((b, a)))))
    frozenset()
    """
    match node:
        case alg.Sequence() | alg.Adjacent():
            names = [alg.variables_of(part) for part in node.parts]
            within = [always_before(part) for part in node.parts]
            places = _places(names)
            across = {(x, y) for i, left in enumerate(names) for right in names[i + 1 :] for x in left for y in right}
            # A variable of several parts (ACEL) is before another only if all its events are.
            return frozenset(
                (x, y)
                for x, y in across.union(*within)
                if places[x][-1] <= places[y][0] and _is_everywhere((x, y), places, within)
            )
        case alg.All():
            return frozenset[tuple[str, str]]().union(*map(always_before, node.parts))
        case alg.Any():
            within = [always_before(part) for part in node.parts]
            places = _places([alg.variables_of(part) for part in node.parts])
            return frozenset(pair for order in within for pair in order if _is_everywhere(pair, places, within))
        case alg.Repeat() if node.most != 1:
            return frozenset()  # order inside a copy says nothing across copies
        case alg.Bind() | alg.Derive():
            return frozenset(pair for pair in always_before(node.part) if node.variable not in pair)
        case alg.Repeat() | alg.Around() | alg.Filter() | alg.Within() | alg.Emit() | alg.Project():
            return always_before(node.part)
        case alg.Event() | alg.NextOf() | alg.Both() | alg.RepeatAdjacent():
            return frozenset()
        case _:
            raise errors.unknown_node(node, "The order of variables")


def _places(names: Sequence[Iterable[str]]) -> dict[str, list[int]]:
    """The numbers of the parts that hold each variable."""
    places: dict[str, list[int]] = {}
    for number, held in enumerate(names):
        for name in held:
            places.setdefault(name, []).append(number)
    return places


def _is_everywhere(
    pair: tuple[str, str], places: Mapping[str, list[int]], within: Sequence[frozenset[tuple[str, str]]]
) -> bool:
    """Whether every part that holds both variables orders them so."""
    x, y = (places[name] for name in pair)
    if len(x) == len(y) == 1:
        return x != y or pair in within[x[0]]
    return all(pair in within[number] for number in set(x).intersection(y))


# --- absent events --------------------------------------------------------------------------------

Reach = Callable[[str], int | None]  # the largest distance to a variable; None when it is unbounded
Measure = Callable[[alg.Bound], int | None]


@dataclass(frozen=True)
class Bag:
    """The events an absence is seen from: those of one alternative."""

    variables: tuple[str, ...]  # every variable that may be bound
    sure: frozenset[str]  # those that are bound whenever the alternative matches
    upper: Upper  # their closed distances

    def to_anchor(self, bound: alg.Bound, origin: str, *, local: bool) -> int | None:
        """The largest `anchor − origin.ts`, for any event of a positive variable."""
        tight = _is_first(bound.anchor)
        return self._extreme(bound, lambda name: self._upper(origin, name, tight, local), tight, origin)

    def from_anchor(self, bound: alg.Bound, origin: str, *, local: bool) -> int | None:
        """The largest `origin.ts − anchor`."""
        tight = not _is_first(bound.anchor)
        return self._extreme(bound, lambda name: self._upper(name, origin, tight, local), tight, origin)

    def to_anchor_by(self, bound: alg.Bound, reach: Reach) -> int | None:
        """The largest `anchor − n.ts` for an absent n whose distances to the variables are known."""
        return self._extreme(bound, reach, _is_first(bound.anchor), None)

    def over(self, bounds: Iterable[alg.Bound], measure: Measure, origin: str | None = None) -> int | None:
        """The bound of one side of an absence's window, from the measure of each of its bounds; `origin` is bound.

        A bound whose anchor has no event says nothing; those whose anchor surely has one all hold. Where it
        is not known which anchors have an event, one of them has: the largest bound holds.
        """
        possible = [bound for bound in bounds if self._candidates(bound)]
        surely = [bound for bound in possible if self._surely(bound, origin)]
        return smallest(map(measure, surely)) if surely else largest(map(measure, possible))

    def _candidates(self, bound: alg.Bound) -> tuple[str, ...]:
        if isinstance(bound.anchor, alg.Whole):
            return self.variables
        return tuple(name for name in bound.anchor.variables if name in self.upper.names)

    def _surely(self, bound: alg.Bound, origin: str | None) -> list[str]:
        return [name for name in self._candidates(bound) if name in self.sure or name == origin]

    def _upper(self, start: str, end: str, tight: bool, local: bool) -> int | None:
        if start == end and tight and not local:
            return 0  # the anchor lies beyond every event of the bag, this one included
        return self.upper.get(start, end)

    def _extreme(self, bound: alg.Bound, reach: Reach, tight: bool, origin: str | None) -> int | None:
        surely = self._surely(bound, origin)
        if tight and surely:
            return smallest(map(reach, surely))
        return largest(map(reach, self._candidates(bound)))


def _is_first(anchor: alg.Anchor) -> bool:
    return anchor is alg.Whole.START or isinstance(anchor, alg.FirstOf)


@dataclass(frozen=True)
class AbsentDistances:
    """The distances of an absent event that blocks a match of one alternative."""

    absence: alg.Around
    reach: dict[str, int]  # v → the largest `v.ts − n.ts`; missing when unbounded
    back: dict[str, int]  # v → the largest `n.ts − v.ts`
    is_possible: bool = True  # whether any event can lie inside all bounds


def absent_distances(
    absence: alg.Around, bag: Bag, conditions: Iterable[Difference], *, local: bool
) -> AbsentDistances:
    """Distances between an absent event and every positive variable.

    `bag` has the positive variables of the alternative, closed. A blocker satisfies the time differences among the
    conditions on the absent event (R10). `local`: the absence stands inside an iteration, so that its anchors are
    events of one copy, not of the whole bag.
    """
    name = absence.variable
    reach: dict[str, int] = {}
    back: dict[str, int] = {}
    written = [each for each in conditions if name in (each.start, each.end)]
    for other in bag.variables:
        there = [each for each in written if _partner(each, name) in bag.sure | {other}]
        after = [plus(_between(bag, each.end, other), each.most_us) for each in there if each.start == name]
        before = [plus(_between(bag, other, each.start), each.most_us) for each in there if each.end == name]
        out = smallest([_from_lower(absence, bag, other, local), *after])
        into = smallest([_to_upper(absence, bag, other, local), *before])
        if out is not None:
            reach[other] = out
        if into is not None:
            back[other] = into
    is_possible = all(reach[each] + back[each] >= 0 for each in bag.sure & reach.keys() & back.keys())
    return AbsentDistances(absence, reach, back, is_possible)


def _from_lower(absence: alg.Around, bag: Bag, other: str, local: bool) -> int | None:
    """The largest `other.ts − n.ts` by the lower bounds: n lies after them."""

    def measure(bound: alg.Bound) -> int | None:
        gap = bag.from_anchor(bound, other, local=is_local(bound, local))
        return plus(gap, -bound.offset_us - bound.step_us)

    return bag.over(absence.lower, measure, other)


def _to_upper(absence: alg.Around, bag: Bag, other: str, local: bool) -> int | None:
    """The largest `n.ts − other.ts` by the upper bounds: n lies before them."""

    def measure(bound: alg.Bound) -> int | None:
        gap = bag.to_anchor(bound, other, local=is_local(bound, local))
        return plus(gap, bound.offset_us - bound.step_us)

    return bag.over(absence.upper, measure, other)


def _partner(difference: Difference, name: str) -> str:
    return difference.end if difference.start == name else difference.start


def is_local(bound: alg.Bound, local: bool) -> bool:
    """Whether a bound of an absence inside an iteration speaks of one copy; START and END never do."""
    return local and not isinstance(bound.anchor, alg.Whole)


def _between(bag: Bag, start: str, end: str) -> int | None:
    return 0 if start == end else bag.upper.get(start, end)
