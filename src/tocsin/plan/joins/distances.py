"""How far apart two variables lie, copies of an iteration included, and which events block an absence.

Distances come from the temporal network. An absence is an anti join, decided when all that it needs is joined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.plan.joins.copies import Bags, instances, needs
from tocsin.plan.joins.model import Anti, Limit, Nearness, Pair, Scan

# Farther apart than this, 73 thousand years, counts as unbounded: sums of such numbers would leave 64 bits.
FARTHEST_US = 2**61
Interval = tuple[int | None, int | None]


class Distances(Protocol):
    """Bounds on the time between two variables of one alternative."""

    def distance(self, x: str, y: str) -> Interval:
        """The least and the largest `y.ts − x.ts` in microseconds; None where there is no bound."""


@dataclass(frozen=True)
class OfCopies:
    """The distances between copies, from those between the variables they are copies of."""

    known: Distances
    bags: Mapping[str, tuple[str, ...]]

    def distance(self, x: str, y: str) -> Interval:
        """The least and the largest `y.ts − x.ts`."""
        places = {copy: (name, place) for name, copies in self.bags.items() for place, copy in enumerate(copies)}
        one, first = places.get(x, (x, 0))
        two, second = places.get(y, (y, 0))
        low, high = self.known.distance(one, two)
        if one != two:
            return low, high
        # Copies of one variable are in order, at least a microsecond apart.
        step = second - first
        return (step, high) if step > 0 else (low, step)


def hull(x: str, y: str, networks: Sequence[Distances]) -> Nearness | None:
    """How far y lies from x in any of several networks; None when that has no bound.

    Its width is less than 1 when y can lie nowhere: an absent event that cannot block.
    """
    bounds = [network.distance(x, y) for network in networks]
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    if not len(lows) == len(highs) == len(bounds):
        return None
    low, high = min(lows), max(highs)
    return None if max(-low, high) > FARTHEST_US else Nearness(x, low, high)


def is_key(conjunct: ex.Expression, name: str) -> TypeGuard[ex.Comparison]:
    """Whether a conjunct equates something of `name` with something of other variables."""
    if not isinstance(conjunct, ex.Comparison) or conjunct.op != "=":
        return False
    sides = [ex.variables_in(conjunct.left), ex.variables_in(conjunct.right)]
    return all(sides) and frozenset({name}) in sides and sides[0].isdisjoint(sides[1])


def reduced(pairs: frozenset[Pair]) -> tuple[Pair, ...]:
    """A transitive order without the pairs that others imply.

    >>> reduced(frozenset({("a", "b"), ("b", "c"), ("a", "c")}))
    (('a', 'b'), ('b', 'c'))
    """
    names = {name for pair in pairs for name in pair}
    return tuple(sorted((x, y) for x, y in pairs if not any((x, z) in pairs and (z, y) in pairs for z in names)))


Edges = Callable[[list[str]], tuple[tuple[str, ...], tuple[str, ...]]]


def anti(absence: alg.Absent, bags: Bags, edges: Edges) -> Anti:
    """An absence of one alternative, its time buckets still open; `edges` finds the first and last copies."""
    name = absence.variable
    seen = {**bags, name: (name,)}
    conditions = [one for conjunct in ex.conjuncts(absence.condition) for one in instances(conjunct, seen)]
    alone = tuple(one for one in conditions if needs(one, seen) == {name})
    shared = [one for one in conditions if one not in alone]
    keys = tuple(one for one in shared if is_key(one, name))

    def limits(bounds: tuple[alg.Bound, ...]) -> tuple[Limit, ...]:
        found = (_limit(bound, bags, edges) for bound in bounds)
        return tuple(limit for limit in found if limit is not None)

    return Anti(
        Scan(name, absence.type, alone),
        limits(absence.lower),
        limits(absence.upper),
        keys,
        tuple(one for one in shared if one not in keys),
    )


def _limit(bound: alg.Bound, bags: Bags, edges: Edges) -> Limit | None:
    """A bound over copies; an anchor that binds no event bounds nothing (R13)."""
    latest = bound.anchor is alg.Whole.END or isinstance(bound.anchor, alg.LastOf)
    stems = bags if isinstance(bound.anchor, alg.Whole) else bound.anchor.variables
    firsts, lasts = edges([copy for name in stems for copy in bags.get(name, ())])
    names = lasts if latest else firsts
    return Limit(names, latest, bound.offset_us, bound.strict) if names else None


def needed(absence: Anti, bags: Bags) -> frozenset[str]:
    """The variables that must be joined before an absence can be decided."""
    anchors = {name for limit in absence.lower + absence.upper for name in limit.variables}
    conditions = absence.scan.conditions + absence.keys + absence.conditions
    return frozenset(anchors).union(*(needs(one, bags) for one in conditions))


def in_buckets(absence: Anti, joined: Collection[str], networks: Sequence[Distances]) -> Anti | None:
    """The absence with the narrowest time buckets that the joined variables give; None when no event can block."""
    hulls = (hull(anchor, absence.scan.variable, networks) for anchor in joined)
    found = min((near for near in hulls if near is not None), key=lambda near: near.width_us, default=None)
    return None if found is not None and found.width_us < 1 else replace(absence, near=found)
