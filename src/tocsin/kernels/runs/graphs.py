"""Matches that end at one event as one graph, however many they are: the part of the arena that they are ways through.

A graph is a list of nodes, children first: as in `arena`, a node is a leaf, a kept step or a union. What has left the
window is not part of it, so that every way from its root to a leaf is a match: k matches are enumerated in time
proportional to their lengths plus twice k (an amortised constant for each), and none needs another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.kernels.model import Integers
from tocsin.kernels.runs.arena import LEAF, UNION, Arena
from tocsin.kernels.runs.stepping import Accepted


@dataclass(frozen=True)
class Graphs:
    """Several graphs as columns; events are places in the list that was read.

    Attributes
    ----------
    starts, ends
        The earliest start and the end of the matches of each.
    counts
        How many matches each has; -1 where 62 bits are not enough.
    roots
        The root of each, counted from its first node.
    offsets
        The nodes of graph i are those from `offsets[i]` to `offsets[i + 1]`.
    steps, events, before
        As in `Arena`; nodes are counted from the graph's first.
    """

    starts: Integers
    ends: Integers
    counts: Sequence[int]
    roots: Integers
    offsets: Integers
    steps: Integers
    events: Integers
    before: Integers

    def __len__(self) -> int:
        return len(self.starts)


def graphs_of(ends: Iterable[Accepted]) -> Iterator[Graphs]:
    """The graphs of arenas, one by one."""
    for one in ends:
        steps, events, before = _part(one.arena, one.node, one.first)
        starts = [event for step, event in zip(steps, events, strict=True) if step == LEAF]
        nodes = (np.array(column, np.int64) for column in (steps, events, before))
        yield Graphs(
            np.array([min(starts)]),
            np.array([one.end]),
            [number_of(steps, events, before)[-1]],
            np.array([len(steps) - 1]),
            np.array([0, len(steps)]),
            *nodes,
        )


def _part(arena: Arena, root: int, first: int) -> tuple[list[int], list[int], list[int]]:
    """The nodes below a root that are inside the window, children first; the root comes last."""
    reached, waiting = {root}, [root]
    for node in waiting:  # grows while it is walked
        below = [] if arena.steps[node] == LEAF else [arena.before[node]]
        below += (
            [arena.events[node]] if arena.steps[node] == UNION and arena.latest[arena.events[node]] >= first else []
        )
        waiting += [one for one in below if one not in reached]
        reached |= set(below)
    numbers: dict[int, int] = {}
    steps: list[int] = []
    events: list[int] = []
    before: list[int] = []
    for node in sorted(reached):
        step, event = arena.steps[node], arena.events[node]
        if step == UNION and event not in numbers:
            numbers[node] = numbers[arena.before[node]]
            continue
        numbers[node] = len(steps)
        steps.append(step)
        events.append(numbers[event] if step == UNION else event)
        before.append(-1 if step == LEAF else numbers[arena.before[node]])
    return steps, events, before


def number_of(steps: Sequence[int], events: Sequence[int], before: Sequence[int]) -> list[int]:
    """How many ways lead from each node to a leaf, exactly."""
    found: list[int] = []
    for step, event, node in zip(steps, events, before, strict=True):
        if step == LEAF:
            found.append(1)
        else:
            found.append(found[node] + found[event] if step == UNION else found[node])
    return found


def exact(graphs: Graphs, number: int) -> int:
    """How many matches one of several graphs has, in however many digits."""
    begin, end = int(graphs.offsets[number]), int(graphs.offsets[number + 1])
    nodes = (column[begin:end].tolist() for column in (graphs.steps, graphs.events, graphs.before))
    return number_of(*nodes)[int(graphs.roots[number])]


def ways(
    steps: Sequence[int], events: Sequence[int], before: Sequence[int], root: int
) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Every match of a graph, lazily: the event it starts with, and its kept steps with their events, in order."""
    path: list[tuple[int, int]] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        step = steps[node]
        if step == UNION:
            waiting += [(events[node], depth), (before[node], depth)]
            continue
        del path[depth:]
        if step == LEAF:
            yield events[node], path[::-1]
            continue
        path.append((step, events[node]))
        waiting.append((before[node], depth + 1))
