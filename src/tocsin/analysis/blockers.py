"""Distances of an absent event to the events around it, and the time at which its absence is decided.

The bounds of an absence are conditions on the event that must not be there, never on the events that are:
they are computed from the closed network of the positive variables, one absence at a time, and nothing is
ever routed through an absent variable.

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

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.analysis.bounds import Difference
from tocsin.analysis.closure import Upper

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


def smallest(bounds: Iterable[int | None]) -> int | None:
    """The tightest of several bounds that all hold; None is no bound.

    >>> smallest([None, 3, 5]), smallest([None]) is None
    (3, True)
    """
    return min((bound for bound in bounds if bound is not None), default=None)


def largest(bounds: Iterable[int | None]) -> int | None:
    """The bound of which it is only known that one of several holds; None is no bound.

    >>> largest([3, 5]), largest([None, 3]) is None, largest([]) is None
    (5, True, True)
    """
    known = list(bounds)
    present = [bound for bound in known if bound is not None]
    return max(present) if present and len(present) == len(known) else None


def plus(bound: int | None, offset: int) -> int | None:
    """A bound moved by an offset."""
    return None if bound is None else bound + offset


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
