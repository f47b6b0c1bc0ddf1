"""The order in which native joins take the variables of an alternative: small intermediate results first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from tocsin.analysis.temporal import Closure
from tocsin.optimizer.estimate import Estimate, equated
from tocsin.optimizer.spine import where_of

MOST_EXHAUSTIVE = 6
Order = tuple[str, ...]


def join_order(estimate: Estimate, closure: Closure) -> Order:
    """The variables in the order that builds least, without a cross product where one can be avoided.

    All orders are weighed up to six variables; beyond, the next is always the one that makes the smallest result.
    """
    names = closure.variables
    if len(names) <= 1:
        return names
    search = _Search(estimate, closure)
    if len(names) <= MOST_EXHAUSTIVE:
        return min(permutations(names), key=search.weight)
    return search.greedy()


class _Search:
    def __init__(self, estimate: Estimate, closure: Closure) -> None:
        self.estimate = estimate
        self.closure = closure
        self.names = closure.variables
        self.sizes: dict[frozenset[str], float] = {}
        self.neighbours = {name: frozenset(self._neighbours(name)) for name in self.names}

    def weight(self, order: Order) -> tuple[int, float, tuple[int, ...]]:
        """Cross products, then rows built on the way; the order of the text breaks ties."""
        crosses = sum(1 for place in range(1, len(order)) if not self.is_connected(order[place], order[:place]))
        built = sum(self.size(order[: place + 1]) for place in range(1, len(order) - 1))
        # A join sends its left side to two time buckets, so that the smaller side goes first.
        built += self.size(order[:1])
        return crosses, built, tuple(map(self.names.index, order))

    def greedy(self) -> Order:
        """From the rarest variable on, always the connected one that makes least."""
        order = [min(self.names, key=lambda name: self.size((name,)))]
        while len(order) < len(self.names):
            rest = [name for name in self.names if name not in order]
            order.append(min(rest, key=lambda name: (not self.is_connected(name, order), self.size((*order, name)))))
        return tuple(order)

    def size(self, names: tuple[str, ...]) -> float:
        key = frozenset(names)
        if key not in self.sizes:
            ordered = [name for name in self.names if name in key]
            self.sizes[key] = self.estimate.tuples(self.closure, ordered)
        return self.sizes[key]

    def is_connected(self, name: str, joined: tuple[str, ...] | list[str]) -> bool:
        return not self.neighbours[name].isdisjoint(joined)

    def _neighbours(self, name: str) -> Iterator[str]:
        keyed = bool(self.estimate.query.partition.attributes)
        equal = [ends for conjunct in where_of(self.estimate.query) if (ends := equated(conjunct)) is not None]
        for other in self.names:
            near = None not in self.closure.distance(name, other)
            if other != name and (keyed or near or any({name, other} == {one for one, _ in ends} for ends in equal)):
                yield other
