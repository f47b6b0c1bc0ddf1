"""How many events, partial matches and matches to expect, from counts, rates, the window and selectivities.

Events are taken to come evenly and independently of each other. Then n events of given types lie within a span s as

    T · Π rate_i · s^(n−1) / (n−1)! · (the number of orders the pattern allows)

tuples in a time T: one order for SEQ, n! for AND. A key divides each pair by the chance to meet, a condition between
variables by its selectivity. An iteration of a type with k events in the window has 2^k − 1 subsets under any-match.

The numbers rank plans and warn of explosions; they are never used to decide what is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tocsin.algebra import nodes as alg
from tocsin.analysis.bounds import Clock, differences
from tocsin.analysis.temporal import Closure, Network
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.query_parts import is_plain_choice
from tocsin.optimizer.statistics import Statistics

# Guesses for conditions between variables that nobody measured.
EQUAL, UNEQUAL, RANGE, OTHER = 0.1, 0.9, 0.3, 0.5
INFINITE = math.inf
Pair = tuple[str, str]


@dataclass(frozen=True)
class Estimate:
    """Expected sizes of a query on data with these statistics."""

    query: alg.Query
    network: Network
    statistics: Statistics
    time: str = "ts"
    columns: int = 1  # of an event, carried for conditions and results
    shared_input: bool = False  # all types come from one DataFrame, with types that the pattern does not name

    # --- events -----------------------------------------------------------------------------------

    def candidates(self, variable: str, types: Iterable[str | None] | None = None) -> float:
        """The events a variable may be bound to: of its types, or of these, that satisfy its own conditions."""
        named = types if types is not None else self._types.get(variable, ())
        share = self.statistics.selectivity.get(variable, 1.0)
        return share * sum(self.statistics.count(name or "") for name in named)

    @cached_property
    def _types(self) -> dict[str, tuple[str | None, ...]]:
        found = {name: kind.types for name, kind in self.query.variables.items()}
        return found | {name: (kind,) for name, kind in alg.negated_variables(self.query.pattern).items()}

    @property
    def rows(self) -> float:
        """The events that are candidates of any variable, negated ones included: what leaves the scan."""
        by_type: dict[str | None, float] = {}
        for variable, types in self._types.items():
            for name in types:
                by_type[name] = by_type.get(name, 0.0) + self.statistics.selectivity.get(variable, 1.0)
        return sum(self.statistics.count(name or "") * min(1.0, share) for name, share in by_type.items())

    def span_us(self, closure: Closure, names: Sequence[str] | None = None) -> float:
        """The longest time from the first to the last event of these variables; all of the input without a bound."""
        uppers = (
            [closure.span_us]
            if names is None
            else [closure.upper(x, y) for x in names for y in names if x != y or x in closure.alternative.iterated]
        )
        longest = float(self.statistics.duration_us)
        known = [upper for upper in uppers if upper is not None]
        return longest if len(known) < len(uppers) else min(longest, max(known, default=0) + 1.0)

    def meeting(self, *, heaviest: bool = False) -> float:
        """The chance that two events are of one partition; or the share of the heaviest."""
        if not self.query.partition.attributes or self.statistics.keys is None:
            return 1.0
        return self.statistics.keys.share_of_heaviest if heaviest else self.statistics.keys.meeting

    # --- matches ----------------------------------------------------------------------------------

    @property
    def matches(self) -> float:
        """The expected number of matches."""
        return sum(self._starts(closure) * self.per_start(closure) for closure in self.network.alternatives)

    @property
    def most_per_start(self) -> float:
        """The expected number of matches from one first event, in the heaviest key and the richest alternative."""
        return max((self.per_start(closure, heaviest=True) for closure in self.network.alternatives), default=0.0)

    def _starts(self, closure: Closure) -> float:
        singles = self.singles(closure)
        first = singles[0] if singles else closure.variables[0]
        return self.candidates(first, self.types_in(closure, first))

    def per_start(self, closure: Closure, *, heaviest: bool = False) -> float:
        """The expected number of matches per event of the first variable."""
        singles = self.singles(closure)
        if singles:
            starts = self._starts(closure)
            found = self.tuples(closure, singles, heaviest=heaviest) / starts if starts else 0.0
            bags = [self.bags(closure, name, heaviest=heaviest) for name in self.iterated(closure)]
        else:
            first, *others = self.iterated(closure)
            # The first event is there; what may follow is one event less.
            found = 1.0
            bags = [1.0 + self.bags(closure, first, heaviest=heaviest)]
            bags += [self.bags(closure, name, heaviest=heaviest) for name in others]
        for number in bags:
            found = _product(found, number)
        return found

    def singles(self, closure: Closure) -> tuple[str, ...]:
        """The variables of one event each."""
        return tuple(name for name in closure.variables if name not in closure.alternative.iterated)

    def iterated(self, closure: Closure) -> tuple[str, ...]:
        """The variables that hold several."""
        return tuple(name for name in closure.variables if name in closure.alternative.iterated)

    def tuples(self, closure: Closure, names: Sequence[str], *, heaviest: bool = False) -> float:
        """The expected number of ways to choose one event for each of these variables, conditions included."""
        size = 1.0
        for name in names:
            size = _product(size, self.candidates(name, self.types_in(closure, name)))
        further = len(names) - 1
        if further > 0:
            share = min(1.0, self.span_us(closure, names) / self.statistics.duration_us)
            orders = _orders(tuple(names), closure.alternative.before)
            size *= share**further * orders / math.factorial(further) * self.meeting(heaviest=heaviest) ** further
        return size * self.selectivity(names)

    def types_in(self, closure: Closure, variable: str) -> tuple[str | None, ...]:
        """The event types of a variable in one alternative."""
        return tuple(kind for name, kind in closure.alternative.types if name == variable)

    def per_window(self, closure: Closure, variable: str, *, heaviest: bool = False) -> float:
        """The expected number of candidates of a variable within the span of a match, in its partition."""
        there = self.candidates(variable, self.types_in(closure, variable))
        share = min(1.0, self.span_us(closure) / self.statistics.duration_us)
        return there * share * self.meeting(heaviest=heaviest)

    def bags(self, closure: Closure, variable: str, *, heaviest: bool = False) -> float:
        """The expected number of bags of an iterated variable in one window."""
        others = [name for name in closure.variables if name != variable]
        fitting = self.per_window(closure, variable, heaviest=heaviest)
        for conjunct in self._between:
            mentioned = ex.variables_in(conjunct)
            if variable in mentioned and mentioned & set(others) and is_plain_choice(conjunct):
                fitting *= self._guess(conjunct)
        if self.query.selection is not Selection.ANY:
            return fitting  # one bag for each number of events, each the next or the adjacent ones
        least, most = self._times.get(variable, (1, None))
        return bags_of(fitting, least, most, self._neighbours(variable))

    def _neighbours(self, variable: str) -> float:
        """The selectivity of the conditions between neighbours in a bag."""
        share = 1.0
        for conjunct in self.query.conjuncts:
            inside = {reference.index for reference in ex.references_in(conjunct) if reference.variable == variable}
            if ex.variables_in(conjunct) == {variable} and len(inside) > 1 and not ex.has_aggregate(conjunct):
                share *= self._guess(conjunct)
        return share

    @cached_property
    def _times(self) -> dict[str, tuple[int, int | None]]:
        """How often each iterated variable repeats, by the innermost iteration around it."""
        found: dict[str, tuple[int, int | None]] = {}
        for node in self.query.pattern.walk():  # parents first: inner ones come later
            if isinstance(node, alg.Repeat) and node.most != 1:
                found |= {name: (node.least, node.most) for name in alg.variables_of(node)}
        return found

    # --- conditions -------------------------------------------------------------------------------

    @cached_property
    def _between(self) -> tuple[ex.Expression, ...]:
        """The conjuncts between variables that are no distances: those count through the span."""
        clock = Clock(self.time, is_integer=True)
        return tuple(
            conjunct
            for conjunct in self.query.conjuncts
            if len(ex.variables_in(conjunct)) > 1 and not differences(conjunct, clock)
        )

    def selectivity(self, names: Iterable[str]) -> float:
        """The share of tuples of these variables that satisfy the conditions between them."""
        known = frozenset(names)
        share = 1.0
        joined: list[set[object]] = []
        for conjunct in self._between:
            if not ex.variables_in(conjunct) <= known:
                continue
            ends = equated(conjunct)
            if ends is not None:
                touching = [group for group in joined if not group.isdisjoint(ends)]
                if any(group.issuperset(ends) for group in touching):
                    continue  # it follows from those counted
                joined = [group for group in joined if group not in touching] + [ends.union(*touching)]
            share *= self._guess(conjunct)
        return share

    def _guess(self, conjunct: ex.Expression) -> float:
        measured = self.statistics.pairs.get(print_expression(conjunct))
        if measured is not None:
            return measured
        ends = equated(conjunct)
        if ends is not None:
            known = [self.statistics.distinct.get(".".join(path)) for _, path in ends]
            values = [number for number in known if number]
            return 1 / max(values) if values else EQUAL
        match conjunct:
            case ex.Comparison(op="="):
                return EQUAL
            case ex.Comparison(op="!="):
                return UNEQUAL
            case ex.Comparison() | ex.Between():
                return RANGE
            case _:
                return OTHER


def equated(conjunct: ex.Expression) -> set[tuple[str, tuple[str, ...]]] | None:
    """The two attributes of different variables that a conjunct equates."""
    match conjunct:
        case ex.Comparison(op="=", left=ex.Attribute() as left, right=ex.Attribute() as right) if (
            left.variable != right.variable
        ):
            return {(left.variable, left.path), (right.variable, right.path)}
        case _:
            return None


def bags_of(events: float, least: int, most: int | None, neighbours: float = 1.0) -> float:
    """How many bags of `least` to `most` events can be chosen from so many, each neighbour fitting by a chance.

    >>> bags_of(3, 1, None), bags_of(4, 2, 2), bags_of(5000, 1, None)
    (7.0, 6.0, inf)
    """
    if events <= 0:
        return 0.0
    if most is None:
        try:
            total = ((1 + neighbours) ** events - 1) / neighbours if neighbours else float(events)
        except OverflowError:
            return INFINITE
        return max(0.0, total - sum(_choices(events, number, neighbours) for number in range(1, least)))
    return sum(_choices(events, number, neighbours) for number in range(max(least, 1), most + 1))


def _choices(events: float, number: int, neighbours: float) -> float:
    """The ways to choose a number of events, each after the first fitting the one before."""
    if events < number:
        chosen = (events / number) ** number  # sometimes there are enough
    else:
        try:
            chosen = math.exp(math.lgamma(events + 1) - math.lgamma(number + 1) - math.lgamma(events - number + 1))
        except OverflowError:
            return INFINITE
    return round(chosen, 9) * neighbours ** (number - 1)


@lru_cache(maxsize=1024)
def _orders(names: tuple[str, ...], before: frozenset[Pair]) -> float:
    """In how many orders these events may come: the linear extensions of the pattern's order."""
    if len(names) > 12:
        return 1.0
    ways = {frozenset[str](): 1.0}
    for _ in names:
        longer: dict[frozenset[str], float] = {}
        for done, number in ways.items():
            for name in names:
                if name not in done and not any((other, name) in before for other in names if other not in done):
                    key = done | {name}
                    longer[key] = longer.get(key, 0.0) + number
        ways = longer
    return ways.get(frozenset(names), 1.0)


def _product(one: float, other: float) -> float:
    """A product in which nothing times infinitely many is nothing."""
    return 0.0 if 0.0 in (one, other) else one * other
