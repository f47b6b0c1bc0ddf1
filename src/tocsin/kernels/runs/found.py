"""From the steps of runs to matches: what each variable holds, and the events that were made for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.limits import check_memory
from tocsin.kernels.matches import as_indices, picked
from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches
from tocsin.kernels.runs.arena import Arena
from tocsin.kernels.runs.tables import WHOLE, Tables
from tocsin.optimizer.choose import MOST_MEMORY

# The values of derived events by (template, field), in the order of matches, of their steps and of what each makes; the
# numbers of events by template are given.
Values = Mapping[tuple[int, int], Sequence[Any]]
Derive = Callable[["Paths", Mapping[int, int]], Values]


@dataclass(frozen=True)
class Paths:
    """Matches as the steps of their runs: columns, since there may be many. Events are places in the list read.

    Attributes
    ----------
    starts, ends
        The first and the last event of each.
    offsets
        The kept steps of match i are those from `offsets[i]` to `offsets[i + 1]`, in the order of time.
    steps, events
        Their numbers, and the events they read.
    """

    starts: Integers
    ends: Integers
    offsets: Integers
    steps: Integers
    events: Integers

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, begin: int, end: int) -> Paths:
        """Some of them."""
        first, last = int(self.offsets[begin]), int(self.offsets[end])
        offsets = self.offsets[begin : end + 1] - first
        return Paths(
            self.starts[begin:end], self.ends[begin:end], offsets, self.steps[first:last], self.events[first:last]
        )

    def take(self, which: Mask) -> Paths:
        """Those of a mask."""
        indices = as_indices(which)
        offsets, where = picked(self.offsets, indices)
        return Paths(self.starts[indices], self.ends[indices], offsets, self.steps[where], self.events[where])


@dataclass
class Collected:
    """Paths in the making."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])
    steps: list[int] = field(default_factory=list)
    events: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, arena: Arena, start: int, end: int, path: Sequence[int]) -> None:
        """A match, by the nodes of its kept steps, the last first."""
        self.starts.append(start)
        self.ends.append(end)
        self.steps += [arena.steps[node] for node in reversed(path)]
        self.events += [arena.events[node] for node in reversed(path)]
        self.offsets.append(len(self.steps))

    def paths(self) -> Paths:
        """What was collected."""
        columns = (self.starts, self.ends, self.offsets, self.steps, self.events)
        return Paths(*(np.array(column, np.int64) for column in columns))


def whole_ends(parts: Iterator[Paths], memory: int = MOST_MEMORY) -> Iterator[Paths]:
    """The same matches, but all that end at one event together, as far as these fit into so many bytes."""
    tail: Paths | None = None
    for part in parts:
        joined = part if tail is None else _joined(tail, part)
        cut = int(np.searchsorted(joined.ends, joined.ends[-1]))
        if cut:
            yield joined.part(0, cut)
        tail = joined.part(cut, len(joined))
        check_memory(tail.steps.nbytes + tail.events.nbytes, memory)
    if tail is not None:
        yield tail


def _joined(one: Paths, other: Paths) -> Paths:
    columns = ("starts", "ends", "steps", "events")
    both = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in columns}
    return Paths(offsets=np.concatenate((one.offsets, one.offsets[-1] + other.offsets[1:])), **both)


def matches_of(
    paths: Paths,
    tables: Tables,
    variables: Mapping[str, alg.Kind],
    rows: Integers,
    ts: Integers,
    derive: Derive,
    *,
    with_edges: bool = False,
) -> Matches:
    """Matches of rows. `rows` has the row of each event read, `ts` the time of each row."""
    held = rows[paths.events]
    made, made_from = _made(paths, tables, rows, ts, derive) if tables.templates else (None, held)
    events: dict[str, Integers | Bag] = {}
    gives: dict[str, dict[int, list[int]]] = {}
    for place, step in enumerate(tables.steps):
        for name, _, number in step.gives:
            gives.setdefault(name, {}).setdefault(place, []).append(number)
    for name, kind in variables.items():
        taken, numbers, offsets = _given(gives.get(name, {}), len(tables.steps), paths)
        found = held[taken]
        if made is not None and (numbers != WHOLE).any():
            found = np.where(numbers == WHOLE, found, made.base + made_from[taken] + numbers)
        events[name] = Bag(offsets, found) if kind.iterated else _only(offsets, found)
    first, last = rows[paths.starts], rows[paths.ends]
    return Matches(ts[first], ts[last], events, made=made, edges=(first, last) if with_edges else None)


def _given(gives: Mapping[int, Sequence[int]], size: int, paths: Paths) -> tuple[Integers, Integers, Integers]:
    """What a variable is given: by which kept steps, as which of the events they make, and where each match begins."""
    taken, numbers, before = _expanded(gives, size, paths.steps)
    return taken, numbers, np.append(before, len(taken))[paths.offsets]


def _expanded(lists: Mapping[int, Sequence[int]], size: int, steps: Integers) -> tuple[Integers, Integers, Integers]:
    """Each step's list, one behind the other: which step each entry is of, the entries, and how many are before each.

    `lists` are by number, in order, of those of `size` steps that have any.

    Examples
    --------
    >>> [found.tolist() for found in _expanded({0: [7], 2: [8, 9]}, 3, np.array([2, 1, 0]))]
    [[0, 0, 2], [8, 9, 7], [0, 2, 2]]
    """
    counts = np.zeros(size, np.int64)
    for number, one in lists.items():
        counts[number] = len(one)
    flat = np.array([entry for one in lists.values() for entry in one], np.int64)
    begins = np.cumsum(counts) - counts
    sizes = counts[steps]
    before = np.cumsum(sizes) - sizes
    if counts.max(initial=0) <= 1:
        taken = np.flatnonzero(sizes)
        return taken, flat[begins[steps[taken]]], before
    taken = np.repeat(np.arange(len(sizes)), sizes)
    return taken, flat[begins[steps[taken]] + np.arange(len(taken)) - before[taken]], before


def _only(offsets: Integers, found: Integers) -> Integers:
    """The one event of a variable that holds at most one, or -1."""
    if len(found) == len(offsets) - 1:
        return found
    held = np.full(len(offsets) - 1, -1, np.int64)
    held[np.diff(offsets) > 0] = found
    return held


def _made(paths: Paths, tables: Tables, rows: Integers, ts: Integers, derive: Derive) -> tuple[Made, Integers]:
    """The events that matches make, step by step, and where those of each step begin."""
    makes = {place: [number for number, _ in step.made] for place, step in enumerate(tables.steps)}
    taken, template, first = _expanded(makes, len(tables.steps), paths.steps)
    if len(tables.templates) == 1:
        places = np.arange(len(template))
    else:
        places = np.zeros(len(template), np.int64)
        for number in range(len(tables.templates)):
            own = np.flatnonzero(template == number)
            places[own] = np.arange(len(own))
    values: Values = {}
    if tables.has_derived:
        values = derive(paths, dict(enumerate(np.bincount(template, minlength=len(tables.templates)).tolist())))
    columns = [
        tuple(values[number, field] for field in range(len(one.attributes))) if one.is_derived else ()
        for number, one in enumerate(tables.templates)
    ]
    return Made(len(ts), rows[paths.events[taken]], template, places, tuple(columns)), first
