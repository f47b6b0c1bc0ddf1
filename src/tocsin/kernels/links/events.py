"""The events of a task as links need them: what each may be bound to, and which one may follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.layout import Merged, merged
from tocsin.kernels.model import Integers, Mask, Rows, Source, is_flagged
from tocsin.kernels.reach import Reach
from tocsin.kernels.trends.machine import Machine
from tocsin.language.ast import Selection


@dataclass(frozen=True)
class Linked:
    """The candidates of all variables in one list, by group and position."""

    merged: Merged
    fits: list[Mask]  # for every letter, whether each event may be bound as it
    blocks: list[Mask]  # for every letter, whether each event may be bound to its variable, as whatever type
    limits: Integers  # the last place that a match may reach that starts with each event
    owned: Mask  # whether a match that starts (or ends) there is this task's
    after: Integers  # the first place of the group at a later instant; the end of the group when there is none
    ends: Integers  # where the group of each event ends

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.merged.rows)

    def neighbours(self) -> Integers:
        """For each event the place of the very next one, where that is a candidate at a later instant; −1 for none."""
        places = self.merged.places
        assert places is not None
        here = np.arange(len(self), dtype=np.int64)
        found = np.full(len(self), -1, dtype=np.int64)
        inside = here + 1 < self.ends
        then = here[inside] + 1
        is_next = (places[then] == places[inside] + 1) & (self.after[inside] == then)
        found[inside] = np.where(is_next, then, -1)
        return found

    def next_of(self, is_candidate: Mask) -> Integers:
        """For each event the place of the first candidate at a later instant of its group; −1 for none."""
        candidates = np.append(np.flatnonzero(is_candidate), len(self))
        found = candidates[np.searchsorted(candidates, self.after)]
        return np.where(found < self.ends, found, -1).astype(np.int64, copy=False)


def linked(rows: Rows, reach: Reach, machine: Machine, sources: Sequence[Source]) -> Linked:
    """Sort the candidates of a task."""
    of_variable = {source.variable: source for source in sources}
    variables = dict.fromkeys(variable for variable, _ in machine.symbols)
    is_held = {name: is_flagged(rows.flags, of_variable[name].bit) for name in variables}
    every = np.zeros(len(rows.ts), dtype=np.bool_)
    for held in is_held.values():
        every |= held
    events = merged(rows, np.flatnonzero(every).astype(np.int64, copy=False))
    blocks = {name: held[events.rows] for name, held in is_held.items()}
    fits = [
        blocks[name] & _is_of_type(rows, events, reach.query, of_variable[name], kind) for name, kind in machine.symbols
    ]
    sizes = events.group_to - events.group_from
    ends = np.repeat(events.group_to, sizes)
    low, high = (np.repeat(each, sizes) for each in (events.own_low, events.own_high))
    times = events.times
    owned = (low <= times) & (times <= high)
    return Linked(
        events,
        fits,
        [blocks[name] for name, _ in machine.symbols],
        _last_within(events, reach.span_us),
        owned,
        _after_instants(events, ends),
        ends,
    )


def following(events: Linked, machine: Machine, selection: Selection) -> tuple[list[Integers], list[int]]:
    """For each element the events that may follow, and which of these lists each letter reads."""
    if selection is not Selection.NEXT:
        return [events.neighbours()], [0] * len(machine.symbols)
    numbers = {element: number for number, element in enumerate(dict.fromkeys(machine.elements))}
    found = []
    for element in numbers:
        is_candidate = np.zeros(len(events), np.bool_)
        for held, (variable, _) in zip(events.blocks, machine.symbols, strict=True):
            if variable in element:
                is_candidate |= held
        found.append(events.next_of(is_candidate))
    return found, [numbers[element] for element in machine.elements]


def _is_of_type(rows: Rows, events: Merged, query: alg.Query, source: Source, kind: str) -> Mask:
    if len(source.types) == 1:
        return np.ones(len(events.rows), np.bool_)
    assert rows.kinds is not None  # asked for when a variable has several types
    number = sorted(alg.event_types(query.core)).index(kind)
    found: Mask = rows.kinds[events.rows] == number
    return found


def _after_instants(events: Merged, ends: Integers) -> Integers:
    """Where the next instant of the group begins, or the group ends."""
    times, size = events.times, len(events.times)
    is_new = np.ones(size + 1, np.bool_)
    is_new[1:size] = times[1:] != times[:-1]
    is_new[events.group_from] = True
    starts = np.flatnonzero(is_new)
    found = starts[np.searchsorted(starts, np.arange(size), side="right")]
    return np.minimum(found, ends).astype(np.int64, copy=False)


def _last_within(events: Merged, window_us: int | None) -> Integers:
    """The last place of the group within a window from each event on."""
    sizes = events.group_to - events.group_from
    if window_us is None or not len(events.times):
        return np.repeat(events.group_to, sizes) - 1
    past = events.times - np.repeat(events.times[events.group_from], sizes)  # no group is searched beyond its end
    width = int(past.max()) + window_us
    if width * len(sizes) < np.iinfo(np.int64).max:
        keys = past + np.repeat(np.arange(len(sizes), dtype=np.int64) * width, sizes)
        return np.searchsorted(keys, keys + (window_us - 1), side="right") - 1
    found = np.empty(len(past), np.int64)
    for low, high in zip(events.group_from.tolist(), events.group_to.tolist(), strict=True):
        last = np.minimum(past[low:high], np.iinfo(np.int64).max - window_us) + (window_us - 1)
        found[low:high] = low + np.searchsorted(past[low:high], last, side="right") - 1
    return found
