"""Absences as anti joins: which limits an alternative leaves, what its conditions say, when all it needs is joined."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.plan.joins.copies import Bags, instances, needs
from tocsin.plan.joins.distances import Distances, hull, is_key
from tocsin.plan.joins.model import Anti, Limit, Nearness, Scan

Edges = Callable[[list[str]], tuple[tuple[str, ...], tuple[str, ...]]]


def anti(absence: alg.Absent, bags: Bags, edges: Edges) -> Anti:
    """An absence of one alternative, its time buckets still open.

    Parameters
    ----------
    absence
        The absence.
    bags
        The bound variables.
    edges
        Which of several copies can be the first of them, and which the last.
    """
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
    found: Nearness | None = None
    for anchor in joined:
        near = hull(anchor, absence.scan.variable, networks)
        if near is not None and (found is None or near.width_us < found.width_us):
            found = near
    return None if found is not None and found.width_us < 1 else replace(absence, near=found)
