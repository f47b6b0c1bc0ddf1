"""The histories of all runs in one graph, shared by starts, and the matches that are its ways.

code     theory
----     ------
LEAF     a run begins at an event
kept     one more step: its number, the event it read, and the history before it
UNION    either of two histories: runs that can do the same from here on

Runs that began at different events go on as one when they are in one state with equal registers, so that an event
costs as much as there are such pairs, and not as many times as there are starts in the window. Every node knows the
latest start below it: a history whose latest start has left the window is passed over in one step, and the larger side
of a union is looked at first. Ways are as many as runs, and each is followed in time proportional to its length
(003 §7 calls that output-linear delay). Where several ways may bind the same events, those that agree are followed
together from the last step on, so that each comes once, however many ways lead to it. A union one side of which has
left the window costs a step more, once per event that it is looked at from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

LEAF, UNION = -1, -2
Path = list[int]  # nodes of kept steps, the last step first


@dataclass
class Arena:
    """Nodes as columns; a node is its number.

    Attributes
    ----------
    steps
        The number of a kept step, LEAF or UNION.
    events
        The event that a kept step read, or that a run began with; of a union its other side.
    before
        The history before a kept step; of a union its one side, with the later start.
    latest
        The latest event that a run below began with.
    """

    steps: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    latest: list[int] = field(default_factory=list)

    def _new(self, step: int, event: int, before: int, latest: int) -> int:
        self.steps.append(step)
        self.events.append(event)
        self.before.append(before)
        self.latest.append(latest)
        return len(self.steps) - 1

    def leaf(self, event: int) -> int:
        """A run that begins."""
        return self._new(LEAF, event, -1, event)

    def kept(self, step: int, event: int, before: int) -> int:
        """A history with one more step."""
        return self._new(step, event, before, self.latest[before])

    def union(self, one: int, other: int) -> int:
        """Either of two histories; a history and itself is itself."""
        if one == other:
            return one
        if self.latest[one] < self.latest[other]:
            one, other = other, one
        return self._new(UNION, other, one, self.latest[one])

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.steps)

    def of(self, nodes: Iterable[int]) -> tuple[Arena, list[int]]:
        """An arena of these histories alone, and their numbers in it."""
        found, asked = Arena(), list(nodes)
        reached, waiting = set(asked), list(asked)
        for node in waiting:  # grows while it is walked
            below = {self.before[node], *([self.events[node]] if self.steps[node] == UNION else ())} - reached - {-1}
            reached |= below
            waiting += below
        numbers = {-1: -1}
        for node in sorted(reached):  # what a node leads to is older than it is
            event = self.events[node]
            is_union = self.steps[node] == UNION
            numbers[node] = found._new(
                self.steps[node], numbers[event] if is_union else event, numbers[self.before[node]], self.latest[node]
            )
        return found, [numbers[node] for node in asked]

    def ways(self, node: int, first: int) -> Iterator[tuple[int, Path]]:
        """Every run of a history that began at the event `first` or later: where it began, and its kept steps."""
        path: Path = []
        waiting = [(node, 0)]
        while waiting:
            node, depth = waiting.pop()
            if self.latest[node] < first:
                continue
            step = self.steps[node]
            if step == UNION:
                waiting += [(self.events[node], depth), (self.before[node], depth)]
                continue
            del path[depth:]
            if step == LEAF:
                yield self.events[node], path
                continue
            path.append(node)
            waiting.append((self.before[node], depth + 1))

    def words(self, node: int, first: int, labels: Sequence[int]) -> Iterator[tuple[int, Path]]:
        """As `ways`, but one of all whose steps have equal labels and read the same events; none without steps."""
        path: Path = []
        waiting = [([node], -1, 0)]
        while waiting:
            nodes, last, depth = waiting.pop()
            path[max(depth - 1, 0) :] = [last] if depth else []
            groups: dict[tuple[int, int], list[int]] = {}
            for one in self._without_unions(nodes, first):
                step = self.steps[one]
                groups.setdefault((LEAF if step == LEAF else labels[step], self.events[one]), []).append(one)
            for (label, event), some in groups.items():
                if label != LEAF:
                    waiting.append(([self.before[one] for one in some], some[0], depth + 1))
                elif depth:
                    yield event, path

    def _without_unions(self, nodes: Iterable[int], first: int) -> Iterator[int]:
        """What histories end with, each once: steps and leaves of runs that began at the event `first` or later."""
        reached, waiting = set(), list(nodes)
        while waiting:
            node = waiting.pop()
            if node in reached or self.latest[node] < first:
                continue
            reached.add(node)
            if self.steps[node] == UNION:
                waiting += [self.events[node], self.before[node]]
            else:
                yield node
