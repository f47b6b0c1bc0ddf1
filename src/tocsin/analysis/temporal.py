"""The temporal network of a query (SEMANTICS §7): how far apart the events of a match can lie, exactly.

A query of the algebra and the name of its time attribute go in. Out comes one closed network per alternative,
over exactly the variables it binds, so that no path runs through a variable that may be unbound, and none
through an absent one. Bounds come from the order of SEQ (`y.ts − x.ts ≥ 1 µs`), from WITHIN (`|x.ts − y.ts| ≤
W − 1 µs` for all pairs), and from conjuncts of WHERE that compare two time stamps; a conjunct on a variable
the alternative does not bind is vacuous.

A pattern with too many alternatives, or with operators of ACEL, gets one coarser network over all variables. It is
sound, not tight: a bound of a pair holds whenever both are bound, and paths run only through variables that every match
binds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import Alternative, NoAlternativesError, alternatives, is_formula
from tocsin.algebra.tree_text import table
from tocsin.algebra.units import format_bound
from tocsin.analysis.attributes import Schema
from tocsin.analysis.bounds import (
    AbsentDistances,
    Clock,
    Difference,
    absent_distances,
    always_before,
    differences,
    to_side,
)
from tocsin.analysis.closure import (
    Edge,
    Reason,
    Upper,
    contradiction,
    contradictory_branch,
    largest,
    negative_cycle,
    never_bound,
    without_implied,
)
from tocsin.language import expressions as ex
from tocsin.source import Where

Distance = tuple[int | None, int | None]
MOST_PAIRS = 500  # that a text shows


@dataclass(frozen=True)
class Closure:
    """The distances of one alternative."""

    alternative: Alternative  # what it binds, and the absences that guard it
    closed: Upper  # the closed bounds of its variables
    absent: tuple[AbsentDistances, ...] = ()  # per absence, the distances of a blocking event
    local: frozenset[alg.Around] = frozenset()  # the absences inside an iteration

    @property
    def variables(self) -> tuple[str, ...]:
        """The positive variables in order of appearance."""
        return self.closed.variables

    def has(self, name: str) -> bool:
        """Whether the alternative binds the variable, or is guarded by its absence."""
        return name in self.closed.names or any(name == each.absence.variable for each in self.absent)

    def upper(self, x: str, y: str) -> int | None:
        """The largest `y.ts − x.ts` in microseconds; None when there is no largest.

        Either may be an absent variable: then of an event that blocks a match. For one and the same iterated
        variable it is the distance between two of its events.
        """
        if x in self.closed.names and y in self.closed.names:
            return self.closed.get(x, y)
        if y in self.closed.names:
            return largest(each.reach.get(y) for each in self.absent if each.absence.variable == x)
        return largest(each.back.get(x) for each in self.absent if each.absence.variable == y)

    @property
    def span_us(self) -> int | None:
        """The largest distance between two events of positive variables; None when there is none."""
        return largest(map(self.closed.furthest, self.variables)) if self.variables else 0

    def distance(self, x: str, y: str) -> Distance:
        """The least and the largest `y.ts − x.ts` in microseconds; None where there is no bound."""
        back = self.upper(y, x)
        return (None if back is None else -back, self.upper(x, y))

    def deadline(self, absence: alg.Around, origin: str | AbsentDistances) -> int | None:
        """The largest time until an absence is decided, from an event of a variable or from a blocker of another."""
        return to_side(absence.upper, self.closed, origin, is_local=absence in self.local)


@dataclass(frozen=True)
class Network:
    """The distances between the variables of a query."""

    alternatives: tuple[Closure, ...]  # one closure for each way to satisfy the pattern that some events can satisfy
    warnings: tuple[errors.TocsinWarning, ...] = ()  # one for each way that none can
    is_exact: bool = True  # False when one coarser closure stands for all alternatives
    # `places`, `has_where`: where each variable is named in the pattern, and whether conditions could bound their
    # distances: for messages.
    places: Mapping[str, Where] = field(default_factory=dict, repr=False, compare=False)
    has_where: bool = True
    _by_alternative: dict[Alternative, Closure | None] = field(default_factory=dict, repr=False, compare=False)

    def closure(self, alternative: Alternative) -> Closure | None:
        """The closure of one alternative; None when no events can satisfy it.

        In a coarser network every alternative has the same one.

        Raises `InternalError` for an alternative of another query: dropping it as contradictory would lose its matches.
        """
        if not self.is_exact:
            return self.alternatives[0]
        if alternative not in self._by_alternative:
            raise errors.InternalError(
                f"The temporal network has no alternative that binds {', '.join(alternative.variables)}.",
                hint="report this query: its network was built from another form of it.",
            )
        return self._by_alternative[alternative]

    def distance(self, x: str, y: str) -> Distance:
        """The least and the largest `y.ts − x.ts` in µs in any match that binds both; None is no bound.

        Either may be an absent variable. Nothing is known, `(None, None)`, of variables no match has
        together.

        >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
        >>> network(alg.Query(alg.Within(alg.Sequence((a, b)), 10))).distance("a", "b")
        (1, 9)
        """
        known = [each.distance(x, y) for each in self._closures_of.get(x, ()) if each.has(y)]
        latest = largest(high for _, high in known)
        earliest = largest(None if low is None else -low for low, _ in known)
        return (None if earliest is None else -earliest, latest)

    def unbounded_pair(self) -> tuple[str, str] | None:
        """Two variables whose events may lie arbitrarily far apart, neighbours first; None if there are none.

        A variable with itself is an iteration that may go on for ever.
        """
        found = [
            next(place for place in _nearest_first(closure.variables) if None in closure.distance(*place[2]))
            for closure in self.alternatives
            if closure.span_us is None
        ]
        return min(found)[2] if found else None

    def require_bounded(self) -> None:
        """Refuse a pattern that no finite state can run on a stream (SEMANTICS §7, R37)."""
        pair = self.unbounded_pair()
        if pair is None:
            return
        x, y = pair
        what = f"`{x}` may repeat for ever" if x == y else f"`{x}` and `{y}` may lie arbitrarily far apart"
        raise errors.UnboundedPatternError(
            f"{what}, so that a stream would have to remember every event.",
            where=self.places.get(x),
            also=("and" if x != y else "", self.places.get(y) if x != y else None),
            hint=f"add WITHIN, or bound them in WHERE, as in `{y}.ts - {x}.ts <= 10 MINUTES`."
            if x != y and self.has_where
            else "add WITHIN.",
        )

    def __str__(self) -> str:
        """A table: one line per pair of variables, of very many pairs those that are nearest to each other."""
        places = {name: place for place, name in enumerate(self._closures_of)}
        pairs: set[tuple[str, ...]] = set()
        for _, _, pair in heapq.merge(*(_nearest_first(closure.variables) for closure in self.alternatives)):
            if pair[0] != pair[1]:
                pairs.add(tuple(sorted(pair, key=places.__getitem__)))
            if len(pairs) > MOST_PAIRS:
                break
        shown = sorted(pairs, key=lambda pair: (places[pair[0]], places[pair[1]]))[:MOST_PAIRS]
        rows = [(x, y, *map(format_bound, self.distance(x, y))) for x, y in shown]
        text = table(("from", "to", "least", "greatest"), rows)
        return text if len(pairs) == len(shown) else f"{text}\nMore pairs are not shown."

    @cached_property
    def _closures_of(self) -> dict[str, list[Closure]]:
        """The closures of each variable, positive ones first."""
        found: dict[str, list[Closure]] = {}
        for closure in self.alternatives:
            for name in closure.variables:
                found.setdefault(name, []).append(closure)
        for closure in self.alternatives:
            for name in dict.fromkeys(each.absence.variable for each in closure.absent):
                found.setdefault(name, []).append(closure)
        return found


def _nearest_first(names: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Pairs of names by how far apart they stand; at the end, each with itself."""
    for gap in range(1, len(names) + 1):
        for place, name in enumerate(names if gap == len(names) else names[:-gap]):
            yield gap, place, (name, name if gap == len(names) else names[place + gap])


def network(query: alg.Query, time: str | Mapping[str, str] = "ts", *, integer_time: bool = False) -> Network:
    """Close the distances of a query.

    `time` is the time attribute, or that of each event type. Where it is an integer in microseconds, integers in WHERE
    are lengths of time too.

    Raises `ContradictoryDistancesError` when no events can satisfy any alternative.

    >>> a, b, c = (alg.Event(name.upper(), name) for name in "abc")
    >>> print(network(alg.Query(alg.Within(alg.Sequence((a, b, c)), 10_000_000))))
    from  to  least  greatest
    a     b   1 µs   9.999998 s
    a     c   2 µs   9.999999 s
    b     c   1 µs   9.999998 s
    """
    has_hidden = any(isinstance(node, alg.Project) for node in query.pattern.walk())
    query = replace(query, pattern=alg.exposed(query.pattern))
    found = _Builder(query, _clock(query, time, integer_time), with_conditions=not has_hidden).network()
    places = {node.variable: node.where for node in query.pattern.walk() if isinstance(node, alg.Event)}
    return replace(found, places=places, has_where=not is_formula(query))


def _clock(query: alg.Query, time: str | Mapping[str, str], is_integer: bool) -> Clock:
    if isinstance(time, str):
        return Clock(time, is_integer)
    kinds = {name: kind.types for name, kind in query.variables.items()}
    for absence in alg.around_in(query.pattern):
        kinds[absence.variable] = (*kinds.get(absence.variable, ()), absence.type)
    names = {variable: {time.get(each or "") for each in types} for variable, types in kinds.items()}
    return Clock(
        "",
        is_integer,
        {variable: found.pop() if len(found) == 1 else None for variable, found in names.items()},
    )


class _Builder:
    """Closes the distances; without conditions where a name may stand for events that they do not speak of."""

    def __init__(self, query: alg.Query, clock: Clock, *, with_conditions: bool = True) -> None:
        self.query = query
        self.clock = clock
        outermost = list(alg.outermost(query.pattern))
        filters = [node.condition for node in outermost if isinstance(node, alg.Filter)] if with_conditions else []
        self.conditions = self._differences(filters)
        windows = [node for node in outermost if isinstance(node, alg.Within)]
        window = min(windows, key=lambda each: each.window_us, default=None)
        self.within = None if window is None else Edge("", "", window.window_us - 1, Reason.WINDOW, window.where)
        # SASE+ compares time stamps; where positions (R7) or tie columns (R41) are compared, events in order may be of
        # one instant.
        may_tie = any(
            isinstance(node, alg.Adjacent | alg.RepeatAdjacent)
            or getattr(node, "order", alg.Order.TIME) is not alg.Order.TIME
            for node in query.pattern.walk()
        )
        self.step_us = 0 if may_tie else 1
        self.local = frozenset(
            absence
            for node in query.pattern.walk()
            if isinstance(node, alg.Repeat) and node.most != 1
            for absence in alg.around_in(node)
        )

    @property
    def most_us(self) -> int | None:
        """The largest distance between any two events."""
        return None if self.within is None else self.within.most_us

    def network(self) -> Network:
        try:
            found = [each for each in alternatives(self.query.pattern) if each.types]
        except NoAlternativesError:
            return self._coarse()
        closures: dict[Alternative, Closure] = {}
        impossible: dict[Alternative, tuple[Edge, ...]] = {}
        for alternative in found:
            names = tuple(dict.fromkeys(alternative.variables))
            sure = frozenset(names)
            edges = self._edges(sure, alternative.before, sure)
            cycle = negative_cycle(names, edges, self.within)
            if cycle:
                impossible[alternative] = cycle
            else:
                closures[alternative] = self._closure(alternative, names, edges, sure)
        if impossible and not closures:
            raise contradiction(next(iter(impossible.values())), self.query.pattern.where)
        warnings = [contradictory_branch(alternative, cycle) for alternative, cycle in impossible.items()]
        shown = {(warning.message, warning.where): warning for warning in warnings}
        known: dict[Alternative, Closure | None] = {**dict.fromkeys(impossible), **closures}
        return Network(tuple(closures.values()), tuple(shown.values()), _by_alternative=known)

    def _coarse(self) -> Network:
        kinds = self.query.variables
        sure = frozenset(name for name, kind in kinds.items() if not kind.optional)
        order = always_before(self.query.pattern)
        edges = self._edges(kinds.keys(), order, sure)
        if alg.events_held(self.query.pattern)[1] == 1:  # whatever its names are
            self.within = Edge("", "", 0, Reason.ORDER)
        cycle = negative_cycle(
            [name for name in kinds if name in sure],
            [edge for edge in edges if edge.start in sure and edge.end in sure],
            self.within,
        )
        if cycle:
            raise contradiction(cycle, self.query.pattern.where)
        upper = Upper(tuple(kinds), edges, sure=sure, most_us=self.most_us)
        names = tuple(name for name in kinds if upper.get(name, name) == 0)
        bound = frozenset(names)
        alternative = Alternative(
            tuple((name, kinds[name].types[0]) for name in names),
            frozenset((x, y) for x, y in order if x in bound and y in bound),
            frozenset(name for name in names if kinds[name].iterated),
            tuple(dict.fromkeys(alg.around_in(self.query.pattern))),
        )
        possible = [edge for edge in edges if edge.start in bound and edge.end in bound]
        warnings = tuple(never_bound(name) for name in kinds if name not in bound)
        return Network((self._closure(alternative, names, possible, sure),), warnings, is_exact=False)

    def _closure(
        self, alternative: Alternative, names: tuple[str, ...], edges: list[Edge], sure: frozenset[str]
    ) -> Closure:
        closed = Upper(names, edges, iterated=alternative.iterated, sure=sure, most_us=self.most_us)
        absent = tuple(
            absent_distances(absence, closed, self._differences([absence.condition]), is_local=absence in self.local)
            for absence in dict.fromkeys(alternative.around)
        )
        return Closure(alternative, closed, absent, self.local)

    def _differences(self, conditions: Iterable[ex.Expression | None]) -> list[Difference]:
        conjuncts = (conjunct for condition in conditions for conjunct in ex.conjuncts(condition))
        return [each for conjunct in conjuncts for each in differences(conjunct, self.clock)]

    def _edges(self, names: Set[str], before: Set[tuple[str, str]], sure: Set[str]) -> list[Edge]:
        edges = [
            Edge(each.start, each.end, each.most_us, Reason.CONDITION, each.where)
            for each in self.conditions
            if each.start in names and each.end in names
        ]
        return edges + [Edge(y, x, -self.step_us, Reason.ORDER) for x, y in without_implied(before, sure)]


@dataclass(frozen=True)
class Facts:
    """The schemas and the clock of a query."""

    schemas: Mapping[str, Schema] | None = None  # the schemas of its event types; None before there are inputs
    # The name of the time attribute, or that of each event type; None where distances are not to be closed.
    time: str | Mapping[str, str] | None = None
    integer_time: bool = False  # whether times are integers

    def distances(self, query: alg.Query) -> Network:
        """The distances between the events of a query, closed."""
        assert self.time is not None
        return network(query, self.time, integer_time=self.integer_time)
