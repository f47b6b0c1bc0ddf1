"""From the steps of runs to matches: what each variable holds, and the events that were made for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.model import Bag, Integers, Made, Matches
from tocsin.kernels.runs.arena import Arena
from tocsin.kernels.runs.tables import WHOLE, Tables

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


def whole_ends(parts: Iterator[Paths]) -> Iterator[Paths]:
    """The same matches, but all that end at one event together."""
    tail: Paths | None = None
    for part in parts:
        joined = part if tail is None else _joined(tail, part)
        cut = int(np.searchsorted(joined.ends, joined.ends[-1]))
        if cut:
            yield joined.part(0, cut)
        tail = joined.part(cut, len(joined))
    if tail is not None:
        yield tail


def _joined(one: Paths, other: Paths) -> Paths:
    columns = ("starts", "ends", "steps", "events")
    both = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in columns}
    return Paths(offsets=np.concatenate((one.offsets, one.offsets[-1] + other.offsets[1:])), **both)


def matches_of(
    paths: Paths, tables: Tables, variables: dict[str, alg.Kind], rows: Integers, ts: Integers, derive: Derive
) -> Matches:
    """Matches of rows. `rows` has the row of each event read, `ts` the time of each row."""
    numbers = {name: number for number, name in enumerate(variables)}
    gives = [[one for one in step.gives if one[0] in numbers] for step in tables.steps]
    sizes = np.array([len(given) for given in gives], np.int64)
    flat = [one for given in gives for one in given]
    variable_of = np.array([numbers[name] for name, _, _ in flat], np.int64)
    made_of = np.array([number for _, _, number in flat], np.int64)
    # One entry for everything that a step gives to a variable.
    counts = sizes[paths.steps]
    taken = np.repeat(np.arange(len(paths.steps)), counts)
    within = np.arange(len(taken)) - np.repeat(np.cumsum(counts) - counts, counts)
    entry = (np.cumsum(sizes) - sizes)[paths.steps[taken]] + within
    match_of = np.repeat(np.arange(len(paths)), np.diff(paths.offsets))[taken]
    held = rows[paths.events[taken]]
    made = None
    if tables.templates:
        made, first = _made(paths, tables, rows, ts, derive)
        held = np.where(made_of[entry] == WHOLE, held, made.base + first[taken] + made_of[entry])
    events: dict[str, Integers | Bag] = {}
    for name, kind in variables.items():
        own = np.flatnonzero(variable_of[entry] == numbers[name])
        if kind.iterated:
            found = np.bincount(match_of[own], minlength=len(paths))
            events[name] = Bag(np.concatenate(([0], np.cumsum(found))).astype(np.int64), held[own])
        else:
            one = np.full(len(paths), -1, np.int64)
            one[match_of[own]] = held[own]
            events[name] = one
    start, end = ts[rows[paths.starts]], ts[rows[paths.ends]]
    return Matches(start, end, events, made=made)


def _made(paths: Paths, tables: Tables, rows: Integers, ts: Integers, derive: Derive) -> tuple[Made, Integers]:
    """The events that matches make, step by step, and where those of each step begin."""
    templates = [[template for template, _ in step.made] for step in tables.steps]
    counts = np.array([len(made) for made in templates], np.int64)
    flat = np.array([template for made in templates for template in made], np.int64)
    sizes = counts[paths.steps]
    first = np.cumsum(sizes) - sizes
    taken = np.repeat(np.arange(len(paths.steps)), sizes)
    entry = (np.cumsum(counts) - counts)[paths.steps[taken]] + np.arange(len(taken)) - first[taken]
    template = flat[entry]
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
