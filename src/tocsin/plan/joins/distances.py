"""What the temporal network tells a join: how far apart two variables lie, copies of an iteration included."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from tocsin.language import expressions as ex
from tocsin.plan.joins.model import Nearness, Pair

# Farther apart than this, 73 thousand years, counts as unbounded: sums of such numbers would leave 64 bits.
FARTHEST_US = 2**61
Interval = tuple[int | None, int | None]


class Distances(Protocol):
    """What is known of the time between two variables of one alternative."""

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
    low = _extreme(min, (low for low, _ in bounds))
    high = _extreme(max, (high for _, high in bounds))
    if low is None or high is None or max(-low, high) > FARTHEST_US:
        return None
    return Nearness(x, low, high)


def _extreme(choose: Callable[[list[int]], int], bounds: Iterable[int | None]) -> int | None:
    known = list(bounds)
    present = [bound for bound in known if bound is not None]
    return choose(present) if len(present) == len(known) else None


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
