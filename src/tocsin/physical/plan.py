"""How a pattern becomes joins: decided on the algebra alone, so that it can be shown and tested without Spark.

Every choice of OR branches and optional elements is a conjunction of variables (`algebra.alternatives`). Choices that
bind the same variables to the same types form one `Branch`, whose order condition is the OR of theirs: two groupings
with the same bindings are one match (R34). A branch scans its first variable and joins the others one by one; each join
applies every condition as soon as its variables are there.

code            meaning
----            -------
Scan            the events of one variable, filtered by the conditions that speak of it alone
Nearness        low ≤ y.ts − x.ts ≤ high for a variable x joined before y: an equality of time buckets
Join            one more variable, with all conditions that it completes
Branch          one signature (variable → type); the plan's matches are the union of its branches
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import Alternative, alternatives
from tocsin.language import expressions as ex

# Farther apart than this, 73 thousand years, counts as unbounded: sums of such numbers would leave 64 bits.
FARTHEST_US = 2**61
Pair = tuple[str, str]
Interval = tuple[int | None, int | None]


class Distances(Protocol):
    """What is known of the time between two variables of one alternative."""

    def distance(self, x: str, y: str) -> Interval:
        """The least and the largest `y.ts − x.ts` in microseconds; None where there is no bound."""


@dataclass(frozen=True)
class Scan:
    """The events a variable may hold."""

    variable: str
    type: str
    conditions: tuple[ex.Expression, ...] = ()


@dataclass(frozen=True)
class Nearness:
    """`low_us ≤ variable.ts − anchor.ts ≤ high_us`."""

    anchor: str
    low_us: int
    high_us: int


@dataclass(frozen=True)
class Span:
    """`max(lasts) − min(firsts) < window_us`: the window, over the variables joined so far."""

    firsts: tuple[str, ...]
    lasts: tuple[str, ...]
    window_us: int


@dataclass(frozen=True)
class Join:
    """One more variable.

    Attributes
    ----------
    scan
        Its events.
    keys
        Conditions `left = right` with one side on each side of the join.
    near
        The time buckets of the join, when the distance to a joined variable is bounded.
    before
        Pairs (x, y) with x.ts < y.ts that `near` does not imply.
    span
        The window, where `near` does not imply it.
    conditions
        The other conditions that this variable completes.
    """

    scan: Scan
    keys: tuple[ex.Comparison, ...] = ()
    near: Nearness | None = None
    before: tuple[Pair, ...] = ()
    span: Span | None = None
    conditions: tuple[ex.Expression, ...] = ()


@dataclass(frozen=True)
class Branch:
    """The joins of one signature.

    Attributes
    ----------
    scan, joins
        The variables in the order they are joined.
    orders
        When the branch has several alternatives: what each demands beyond the common order; one must hold.
    firsts, lasts
        Variables one of which is the first, the last event of the match.
    """

    scan: Scan
    joins: tuple[Join, ...]
    orders: tuple[tuple[Pair, ...], ...] = ()
    firsts: tuple[str, ...] = ()
    lasts: tuple[str, ...] = ()

    @property
    def scans(self) -> tuple[Scan, ...]:
        """All variables in the order they are joined."""
        return (self.scan, *(join.scan for join in self.joins))


@dataclass(frozen=True)
class Plan:
    """The branches whose union is the result."""

    branches: tuple[Branch, ...]


def plan(query: alg.Query, network: Callable[[Alternative], Distances | None]) -> Plan:
    """Plan a query that `claims.unsupported` has nothing against.

    Parameters
    ----------
    query
        The query.
    network
        The temporal network of an alternative; None when its distances contradict each other.
    """
    groups: dict[frozenset[tuple[str, str | None]], list[tuple[Alternative, Distances]]] = {}
    for alternative in alternatives(query.pattern):
        distances = network(alternative) if alternative.types else None
        if distances is not None:
            groups.setdefault(frozenset(alternative.types), []).append((alternative, distances))
    condition = next((node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)), None)
    conjuncts = ex.conjuncts(condition)
    return Plan(tuple(_Planner(query, conjuncts, group).branch() for group in groups.values()))


def common_clock(names: Iterable[str]) -> str:
    """The name of the time attribute, if all event types call it the same.

    Otherwise an attribute of one of these names may be something else in another type, and no condition can count as
    a distance: the empty name is no attribute's.

    Examples
    --------
    >>> common_clock(["ts", "ts"]), common_clock(["ts", "at"])
    ('ts', '')
    """
    known = set(names)
    return known.pop() if len(known) == 1 else ""


def unjoined(conjunct: ex.Expression, bound: Collection[str]) -> frozenset[str] | None:
    """The variables a conjunct waits for, or None when it holds vacuously without being evaluated (R1, R15).

    An aggregate has a value on the empty bag (R18), so that only references outside aggregates make a conjunct vacuous.

    Examples
    --------
    >>> x, n = ex.Attribute("b", ("x",)), ex.Aggregate("count", ex.Variable("b"))
    >>> unjoined(ex.Comparison(">", x, ex.Literal(1)), {"a"}) is None
    True
    >>> unjoined(ex.Comparison("=", n, ex.Literal(0)), {"a"})
    frozenset()
    """
    for reference in ex.references_in(conjunct):
        outside = isinstance(reference.index, ex.Fixed) and reference.index.number != 1
        if reference.variable not in bound or outside:
            return None
    return ex.variables_in(conjunct) & frozenset(bound)


class _Planner:
    """Plans one signature."""

    def __init__(
        self,
        query: alg.Query,
        conjuncts: tuple[ex.Expression, ...],
        group: list[tuple[Alternative, Distances]],
    ) -> None:
        first = group[0][0]
        self.types = {name: kind or "" for name, kind in first.types}
        self.networks = [distances for _, distances in group]
        self.orders = [alternative.before for alternative, _ in group]
        self.common = frozenset.intersection(*self.orders)
        self.window_us = query.window_us
        self.partitioned = bool(query.partition.attributes)
        waiting = ((conjunct, unjoined(conjunct, self.types)) for conjunct in conjuncts)
        self.conjuncts = [(conjunct, names) for conjunct, names in waiting if names is not None]

    def branch(self) -> Branch:
        names = list(self.types)
        joined = [names.pop(0)]
        # Conjuncts without variables are constants here: `COUNT(b) = 0` where b is not bound.
        constants = tuple(conjunct for conjunct, needs in self.conjuncts if not needs)
        first = self._scan(joined[0], constants)
        joins: list[Join] = []
        span = None
        while names:
            name = next((name for name in names if self._is_connected(name, joined)), names[0])
            join = self._join(name, joined, span)
            joins.append(join)
            span = self._span([*joined, name])
            names.remove(name)
            joined.append(name)
        return Branch(first, tuple(joins), self._disjunction(), *self._edges(joined))

    def _scan(self, name: str, constants: tuple[ex.Expression, ...] = ()) -> Scan:
        own = tuple(conjunct for conjunct, needs in self.conjuncts if needs == {name})
        return Scan(name, self.types[name], constants + own)

    def _completed(self, name: str, joined: list[str]) -> list[ex.Expression]:
        have = {name, *joined}
        return [conjunct for conjunct, needs in self.conjuncts if name in needs and needs <= have and len(needs) > 1]

    def _is_connected(self, name: str, joined: list[str]) -> bool:
        return (
            self.partitioned
            or self._nearness(name, joined) is not None
            or any(is_key(conjunct, name) for conjunct in self._completed(name, joined))
        )

    def _join(self, name: str, joined: list[str], known: Span | None) -> Join:
        completed = self._completed(name, joined)
        keys = tuple(conjunct for conjunct in completed if is_key(conjunct, name))
        near = self._nearness(name, joined)
        span = self._span([*joined, name])
        if span == known or _implies_span(near, name, span):
            span = None
        before = tuple(
            pair
            for pair in reduced(self._among([*joined, name]))
            if name in pair and not _implies_order(near, name, pair)
        )
        others = tuple(conjunct for conjunct in completed if conjunct not in keys)
        return Join(self._scan(name), keys, near, before, span, others)

    def _nearness(self, name: str, joined: list[str]) -> Nearness | None:
        found: Nearness | None = None
        for anchor in joined:
            bounds = [network.distance(anchor, name) for network in self.networks]
            low = _hull(min, (low for low, _ in bounds))
            high = _hull(max, (high for _, high in bounds))
            if low is None or high is None or max(-low, high) > FARTHEST_US:
                continue
            if found is None or high - low < found.high_us - found.low_us:
                found = Nearness(anchor, low, high)
        return found

    def _among(self, names: Iterable[str]) -> frozenset[Pair]:
        kept = frozenset(names)
        return frozenset(pair for pair in self.common if kept.issuperset(pair))

    def _edges(self, names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        among = self._among(names)
        later = {y for _, y in among}
        earlier = {x for x, _ in among}
        return (
            tuple(name for name in names if name not in later),
            tuple(name for name in names if name not in earlier),
        )

    def _span(self, names: list[str]) -> Span | None:
        return None if self.window_us is None else Span(*self._edges(names), self.window_us)

    def _disjunction(self) -> tuple[tuple[Pair, ...], ...]:
        rests = [tuple(pair for pair in reduced(order) if pair not in self.common) for order in self.orders]
        return () if () in rests else tuple(dict.fromkeys(rests))


def is_key(conjunct: ex.Expression, name: str) -> TypeGuard[ex.Comparison]:
    """Whether a conjunct equates something of `name` with something of other variables."""
    if not isinstance(conjunct, ex.Comparison) or conjunct.op != "=":
        return False
    sides = [ex.variables_in(conjunct.left), ex.variables_in(conjunct.right)]
    return all(sides) and frozenset({name}) in sides and sides[0].isdisjoint(sides[1])


def reduced(pairs: frozenset[Pair]) -> tuple[Pair, ...]:
    """A transitive order without the pairs that others imply.

    Examples
    --------
    >>> reduced(frozenset({("a", "b"), ("b", "c"), ("a", "c")}))
    (('a', 'b'), ('b', 'c'))
    """
    names = {name for pair in pairs for name in pair}
    return tuple(sorted((x, y) for x, y in pairs if not any((x, z) in pairs and (z, y) in pairs for z in names)))


def _hull(choose: Callable[[list[int]], int], bounds: Iterable[int | None]) -> int | None:
    known = list(bounds)
    present = [bound for bound in known if bound is not None]
    return choose(present) if len(present) == len(known) else None


def _implies_order(near: Nearness | None, name: str, pair: Pair) -> bool:
    if near is None:
        return False
    return (pair == (near.anchor, name) and near.low_us > 0) or (pair == (name, near.anchor) and near.high_us < 0)


def _implies_span(near: Nearness | None, name: str, span: Span | None) -> bool:
    if near is None or span is None or not {near.anchor, name}.issuperset(span.firsts + span.lasts):
        return False
    return -span.window_us < near.low_us and near.high_us < span.window_us
