"""How a pattern becomes joins: decided on the algebra alone, so that it can be shown and tested without Spark.

Every choice of OR branches, optional elements and numbers of copies is a conjunction of variables (`copies.unrolled`).
Choices that bind the same variables to the same types form one `Branch`: two groupings with the same bindings are one
match (R34), which lives when any of its derivations, with its order and its absences, lets it. A branch scans its first
variable and joins the others one by one; each join applies every condition, and every absence, as soon as its variables
are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import Alternative
from tocsin.language import expressions as ex
from tocsin.plan.joins.copies import Bags, Unrolled, instances, needs, unrolled
from tocsin.plan.joins.distances import Distances, OfCopies, anti, hull, in_buckets, is_key, needed, reduced
from tocsin.plan.joins.model import Anti, Branch, Join, Nearness, Pair, Plan, Prefilter, Scan, Sliding, Span, Way

# The paper slides by a minute below windows of 15 to 360 minutes; a tenth keeps the copies of an event to eleven.
SLIDES_PER_WINDOW = 10

Order = Sequence[str] | Callable[[tuple[str, ...]], Sequence[str]]


def plan(
    query: alg.Query,
    network: Callable[[Alternative], Distances | None],
    *,
    order: Order | None = None,
    prefilter: str | None = None,
    sliding: bool = False,
) -> Plan:
    """Plan a query that `refusals.unsupported` does not refuse.

    `network` is None for an alternative whose distances contradict each other. `order` has the variables in the order
    they are joined, or computes it from those of a branch: an iterated variable stands for its copies `b[1]`, `b[2]`,
    …; what is left out comes last, in the order it would have without this. With `prefilter`, a rare variable, other
    scans keep only events near one of its. `sliding` joins within sliding windows instead of time buckets, and needs
    WITHIN.
    """
    groups: dict[frozenset[tuple[str, str | None]], list[tuple[Unrolled, Distances]]] = {}
    for each in unrolled(query):
        known = network(each.original) if each.alternative.types else None
        if known is not None:
            found = (each, OfCopies(known, each.bags))
            groups.setdefault(frozenset(each.alternative.types), []).append(found)
    windows = None
    if sliding and query.window_us is not None:
        slide_us = max(1, query.window_us // SLIDES_PER_WINDOW)
        windows = Sliding(query.window_us + slide_us, slide_us)
    conjuncts = [(each, {one.variable for one in ex.references_in(each)}) for each in query.conjuncts]
    planners = (_Planner(query, conjuncts, group, windows is not None) for group in groups.values())
    return Plan(tuple(planner.branch(order, prefilter) for planner in planners), windows)


def common_clock(names: Iterable[str]) -> str:
    """The name of the time attribute, if all event types have the same.

    Otherwise an attribute of one of these names may be something else in another type, and no condition can count as a
    distance: the empty name is no attribute's.

    >>> common_clock(["ts", "ts"]), common_clock(["ts", "at"])
    ('ts', '')
    """
    known = set(names)
    return known.pop() if len(known) == 1 else ""


class _Planner:
    """Plans one signature."""

    def __init__(
        self,
        query: alg.Query,
        conjuncts: list[tuple[ex.Expression, set[str]]],
        group: list[tuple[Unrolled, Distances]],
        sliding: bool,
    ) -> None:
        first = group[0][0]
        self.bags: Bags = first.bags
        self.types = {name: kind or "" for name, kind in first.alternative.types}
        self.networks = [distances for _, distances in group]
        self.orders = [each.alternative.before for each, _ in group]
        self.common = frozenset.intersection(*self.orders)
        self.firsts, self.lasts = self._edges(list(self.types))
        self.absences = [self._antis(each) for each, _ in group]
        self.window_us = query.window_us
        self.partitioned = bool(query.partition.attributes)
        self.sliding = sliding
        self.conjuncts = [
            (one, needs(one, self.bags))
            for conjunct, variables in conjuncts
            if variables <= self.bags.keys()  # else it concerns an event that is not there
            for one in instances(conjunct, self.bags)
        ]

    def branch(self, order: Order | None, prefilter: str | None) -> Branch:
        names = list(self.types)
        wanted = self._wanted(order)
        joined = [wanted.pop(0) if wanted else names[0]]
        names.remove(joined[0])
        # Conjuncts without variables are constants here: `COUNT(b) = 0` where b is not bound.
        constants = tuple(conjunct for conjunct, needs in self.conjuncts if not needs)
        waiting = [each for each in self.absences[0] if all(each in others for others in self.absences[1:])]
        first = self._scan(joined[0], constants)
        at_first = self._decided(waiting, joined)
        joins: list[Join] = []
        span = None
        while names:
            name = (
                wanted.pop(0)
                if wanted
                else next((name for name in names if self._is_connected(name, joined)), names[0])
            )
            join = self._join(name, joined, span)
            span = self._span([*joined, name])
            names.remove(name)
            joined.append(name)
            joins.append(replace(join, absences=self._decided(waiting, joined)))
        made = Branch(first, tuple(joins), at_first, self._ways(joined), self.firsts, self.lasts, self.bags)
        return made if prefilter is None else self._prefiltered(made, prefilter)

    def _wanted(self, order: Order | None) -> list[str]:
        if order is None:
            return []
        given = order(tuple(self.types)) if callable(order) else order
        copies = [copy for name in given for copy in ((name,) if name in self.types else self.bags.get(name, ()))]
        return list(dict.fromkeys(copies))

    def _scan(self, name: str, constants: tuple[ex.Expression, ...] = ()) -> Scan:
        own = tuple(conjunct for conjunct, needs in self.conjuncts if needs == {name})
        return Scan(name, self.types[name], constants + own)

    def _completed(self, name: str, joined: list[str]) -> list[ex.Expression]:
        have = {name, *joined}
        return [conjunct for conjunct, needs in self.conjuncts if name in needs and needs <= have and len(needs) > 1]

    def _is_connected(self, name: str, joined: list[str]) -> bool:
        return (
            self.partitioned
            or self.sliding
            or self._nearness(name, joined) is not None
            or any(is_key(conjunct, name) for conjunct in self._completed(name, joined))
        )

    def _join(self, name: str, joined: list[str], known: Span | None) -> Join:
        completed = self._completed(name, joined)
        keys = tuple(conjunct for conjunct in completed if is_key(conjunct, name))
        near = None if self.sliding else self._nearness(name, joined)
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

    def _nearness(self, name: str, joined: Iterable[str]) -> Nearness | None:
        found = (hull(anchor, name, self.networks) for anchor in joined)
        # More copies than the window has room for leave no width: their order and the window then drop every row.
        bounded = (near for near in found if near is not None and near.width_us > 0)
        return min(bounded, key=lambda near: near.width_us, default=None)

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

    # --- absences and derivations -----------------------------------------------------------------

    def _antis(self, each: Unrolled) -> tuple[Anti, ...]:
        found = (anti(absence, self.bags, self._edges) for absence in each.alternative.absences)
        return tuple(dict.fromkeys(found))

    def _decided(self, waiting: list[Anti], joined: list[str]) -> tuple[Anti, ...]:
        """Takes out the absences that these variables decide."""
        ready = [each for each in waiting if needed(each, self.bags) <= set(joined)]
        waiting[:] = [each for each in waiting if each not in ready]
        found = (in_buckets(each, joined, self.networks) for each in ready)
        return tuple(each for each in found if each is not None)

    def _ways(self, joined: list[str]) -> tuple[Way, ...]:
        shared = frozenset[Anti].intersection(*map(frozenset, self.absences))
        rests = [
            (order - self.common, frozenset(absences) - shared)
            for order, absences in zip(self.orders, self.absences, strict=True)
        ]
        # A derivation that demands all that another one does adds nothing.
        kept = [
            (order, absences)
            for number, (order, absences) in enumerate(rests)
            if not any(
                (one <= order and other <= absences) and ((one, other) != (order, absences) or place < number)
                for place, (one, other) in enumerate(rests)
                if place != number
            )
        ]
        ways = tuple(self._way(order, absences, joined) for order, absences in kept)
        return () if Way() in ways else ways

    def _way(self, order: frozenset[Pair], absences: frozenset[Anti], joined: list[str]) -> Way:
        ordered = [each for each in dict.fromkeys(sum(self.absences, ())) if each in absences]
        found = []
        for each in ordered:
            pairs = zip(self.networks, self.absences, strict=True)
            bucketed = in_buckets(each, joined, [network for network, known in pairs if each in known])
            if bucketed is not None:
                found.append(bucketed)
        before = tuple(pair for pair in reduced(order | self.common) if pair in order)
        return Way(before, tuple(found))

    # --- prefilter --------------------------------------------------------------------------------

    def _prefiltered(self, branch: Branch, rare: str) -> Branch:
        copies = self.bags.get(rare, ())
        if len(copies) != 1:
            return branch
        (rare,) = copies

        def absent(each: Anti) -> Anti:
            keys = tuple(key for key in each.keys if needs(key, self.bags) == {rare})
            return replace(each, scan=self._near(each.scan, rare, keys))

        def positive(scan: Scan) -> Scan:
            pairs = (conjunct for conjunct, needs in self.conjuncts if needs == {rare, scan.variable})
            return self._near(scan, rare, tuple(pair for pair in pairs if is_key(pair, rare)))

        return replace(
            branch,
            scan=positive(branch.scan),
            absences=tuple(map(absent, branch.absences)),
            joins=tuple(
                replace(join, scan=positive(join.scan), absences=tuple(map(absent, join.absences)))
                for join in branch.joins
            ),
        )

    def _near(self, scan: Scan, rare: str, keys: tuple[ex.Comparison, ...]) -> Scan:
        near = None if scan.variable == rare else hull(rare, scan.variable, self.networks)
        return scan if near is None else replace(scan, prefilter=Prefilter(near, keys))


def _implies_order(near: Nearness | None, name: str, pair: Pair) -> bool:
    if near is None:
        return False
    return (pair == (near.anchor, name) and near.low_us > 0) or (pair == (name, near.anchor) and near.high_us < 0)


def _implies_span(near: Nearness | None, name: str, span: Span | None) -> bool:
    if near is None or span is None or not {near.anchor, name}.issuperset(span.firsts + span.lasts):
        return False
    return -span.window_us < near.low_us and near.high_us < span.window_us
