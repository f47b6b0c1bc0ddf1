"""Bounds on the time between two events: by conditions, by the order of a pattern, and of absent events.

A conjunct of WHERE, `b.ts - a.ts <= 5 SECONDS`, gives bounds `end.ts − start.ts ≤ most` in whole microseconds. Any
other conjunct gives none: a distance may be missed, never invented. Whether a conjunct applies, because both its
variables are bound (R1), is decided by the temporal network.

The bounds of an absence are conditions on the event that must not be there, never on the events that are: they are
computed from the closed network of the positive variables, one absence at a time, and nothing is ever routed through
an absent variable.

code                  meaning, for an absent event n that would block a match with events v
----                  ---------------------------------------------------------------------
reach[v]              the largest v.ts − n.ts
back[v]               the largest n.ts − v.ts
is_tight              an anchor FirstOf(V) is before *every* event of V: the smallest bound over V holds;
                      it is *some* event of V: the other way only the largest does. LastOf(V) mirrors it;
                      START and END are FirstOf and LastOf all variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        case alg.All():
            return frozenset[tuple[str, str]]().union(*map(always_before, node.parts))
        case alg.Sequence() | alg.Adjacent() | alg.Any():
            names = [alg.variables_of(part) for part in node.parts]
            within = [always_before(part) for part in node.parts]
            places = _places(names)
            pairs = {pair for order in within for pair in order}
            if not isinstance(node, alg.Any):
                pairs |= {
                    (x, y) for i, left in enumerate(names) for right in names[i + 1 :] for x in left for y in right
                }
                # A variable of several parts (ACEL) is before another only if all its events are.
                pairs = {(x, y) for x, y in pairs if places[x][-1] <= places[y][0]}
            return frozenset(pair for pair in pairs if _is_everywhere(pair, places, within))
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


@dataclass(frozen=True)
class AbsentDistances:
    """The distances of an absent event that blocks a match of one alternative."""

    absence: alg.Around
    reach: dict[str, int]  # v → the largest `v.ts − n.ts`; missing when unbounded
    back: dict[str, int]  # v → the largest `n.ts − v.ts`
    is_possible: bool = True  # whether any event can lie inside all bounds


def absent_distances(
    absence: alg.Around, closed: Upper, conditions: Iterable[Difference], *, is_local: bool
) -> AbsentDistances:
    """Distances between an absent event and every positive variable.

    `closed` has the closed distances of the positive variables of the alternative. A blocker satisfies the time
    differences among the conditions on the absent event (R10). `is_local` as for `to_side`.
    """
    name = absence.variable
    reach: dict[str, int] = {}
    back: dict[str, int] = {}
    written = [each for each in conditions if name in (each.start, each.end)]
    for other in closed.variables:
        there = [each for each in written if {each.start, each.end} - {name} <= closed.sure | {other}]
        after = [plus(_between(closed, each.end, other), each.most_us) for each in there if each.start == name]
        before = [plus(_between(closed, other, each.start), each.most_us) for each in there if each.end == name]
        from_lower = to_side(absence.lower, closed, other, is_local=is_local, is_lower=True, is_inside=True)
        to_upper = to_side(absence.upper, closed, other, is_local=is_local, is_inside=True)
        for found, bounds in ((reach, [from_lower, *after]), (back, [to_upper, *before])):
            if (tightest := smallest(bounds)) is not None:
                found[other] = tightest
    is_possible = all(reach[each] + back[each] >= 0 for each in closed.sure & reach.keys() & back.keys())
    return AbsentDistances(absence, reach, back, is_possible)


def to_side(
    bounds: Iterable[alg.Bound],
    closed: Upper,
    origin: str | AbsentDistances,
    *,
    is_local: bool = False,
    is_lower: bool = False,
    is_inside: bool = False,
) -> int | None:
    """The largest time from an event to the upper end of an absence's window, or from the lower end to the event.

    `origin` is the variable of the event, or a blocker; `is_inside` takes the instant next to the end inside the
    window in place of the end; `is_local` is for an absence inside an iteration, whose anchors are events of one copy
    and not of the whole bag.

    A bound whose anchor has no event says nothing; those whose anchor surely has one all hold. Where it is not known
    which anchors have an event, one of them has: the largest bound holds.
    """

    def distance(name: str) -> int | None:
        if isinstance(origin, AbsentDistances):
            return origin.reach.get(name)
        return closed.get(name, origin) if is_lower else closed.get(origin, name)

    certain: list[int | None] = []
    possible: list[int | None] = []
    for bound in bounds:
        named = closed.variables if isinstance(bound.anchor, alg.Whole) else bound.anchor.variables
        names = [name for name in named if name in closed.names]
        surely = [name for name in names if name in closed.sure or name == origin]
        if not names:
            continue
        is_tight = (bound.anchor is alg.Whole.START or isinstance(bound.anchor, alg.FirstOf)) != is_lower
        # Outside iterations a tight anchor lies beyond every event of the bag, the event itself included.
        is_beyond = is_tight and (isinstance(bound.anchor, alg.Whole) or not is_local)
        holds_for = surely if is_tight and surely else names
        gaps = [0 if is_beyond and name == origin else distance(name) for name in holds_for]
        gap = smallest(gaps) if holds_for is surely else largest(gaps)
        offset_us = -bound.offset_us if is_lower else bound.offset_us
        (certain if surely else possible).append(plus(gap, offset_us - is_inside * bound.step_us))
    return smallest(certain) if certain else largest(possible)


def _between(closed: Upper, start: str, end: str) -> int | None:
    return 0 if start == end else closed.get(start, end)
