"""A flat view of matches: every bound event as one slot, in the order of position; and the order of R5 over matches.

R5 compares the first position, the last position, the list of positions, the list of bindings. Lists are compared only
among matches that numbers leave tied.

code        meaning
----        -------
slot        one (match, variable, row); slots are sorted by (match, position, variable name)
first, last the positions of a match's first and last events
group       the rows that may meet: those of one partition and one slice
rank        of an element, how many are strictly before it; tied elements have the same
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin import errors
from tocsin.kernels.lists import codes_of
from tocsin.kernels.model import (
    NO_FLOOR,
    Bag,
    Integers,
    Matches,
    Rows,
    differs,
    picked,
    starts_of_runs,
    sums_before,
)


@dataclass(frozen=True)
class Flat:
    """The slots of n matches, those of match i at `offsets[i]:offsets[i + 1]`; every match has one at least (R13)."""

    names: tuple[str, ...]  # the variables, sorted; `variables` counts in it
    offsets: Integers  # int64[n + 1]
    # int64[slots].
    variables: Integers
    rows: Integers
    positions: Integers
    floors: Integers
    # int64[n].
    groups: Integers
    start: Integers
    end: Integers

    def __len__(self) -> int:
        """How many matches there are."""
        return len(self.offsets) - 1

    def take(self, indices: Integers) -> Flat:
        """The view of some of the matches."""
        offsets, where = picked(self.offsets, indices)
        slots = (column[where] for column in (self.variables, self.rows, self.positions, self.floors))
        return Flat(self.names, offsets, *slots, *(column[indices] for column in (self.groups, self.start, self.end)))

    @cached_property
    def first(self) -> Integers:
        """The position of each match's first event."""
        return self.positions[self.offsets[:-1]]

    @cached_property
    def last(self) -> Integers:
        """The position of each match's last event."""
        return self.positions[self.offsets[1:] - 1]

    @cached_property
    def sizes(self) -> Integers:
        """How many events each match has; one that two variables hold counts once."""
        return np.diff(self.events[0])

    @cached_property
    def events(self) -> tuple[Integers, Integers]:
        """The positions of each match's events, each once: offsets and positions."""
        is_new = differs(self.positions)
        is_new[self.offsets[:-1]] = True
        return sums_before(is_new)[self.offsets], self.positions[is_new]

    @cached_property
    def bindings(self) -> Integers:
        """(position, variable) of each slot as one number, in the order of the pairs."""
        return self.positions * len(self.names) + self.variables


def flatten(matches: Matches, rows: Rows, *, needs_order: bool = True) -> Flat:
    """The flat view of matches; without an order, rows stand for positions, which tells bindings apart.

    Every match must bind an event (R13).
    """
    if needs_order and rows.order is None:
        raise errors.InternalError("A policy speaks of positions, and the rows have none.")
    names = tuple(sorted(matches.events))
    parts = [_slots(matches, name) for name in names]
    match = np.concatenate([part[0] for part in parts])
    held = np.concatenate([part[1] for part in parts])
    floors = np.concatenate([part[2] for part in parts])
    variables = np.repeat(np.arange(len(names), dtype=np.int64), [len(part[0]) for part in parts])
    positions = held if rows.order is None else rows.order[held]
    by = np.lexsort((variables, positions, match))
    offsets = np.searchsorted(match[by], np.arange(len(matches) + 1)).astype(np.int64, copy=False)
    held = held[by]
    groups = groups_of(rows, held[offsets[:-1]])
    return Flat(names, offsets, variables[by], held, positions[by], floors[by], groups, matches.start, matches.end)


def groups_of(rows: Rows, which: Integers | None = None) -> Integers:
    """A number for each of some rows, the same for those of one partition and one slice."""
    size, some = (len(rows.ts), slice(None)) if which is None else (len(which), which)
    codes, _ = codes_of(*(None if part is None else part[some] for part in (rows.partition, rows.slice)))
    return np.zeros(size, dtype=np.int64) if codes is None else codes


def _slots(matches: Matches, name: str) -> tuple[Integers, Integers, Integers]:
    """Of one variable: the match, the row and the floor of every bound event."""
    held, floors = matches.events[name], matches.floors.get(name)
    if isinstance(held, Bag):
        sizes = np.diff(held.offsets)
        match = np.repeat(np.arange(len(matches), dtype=np.int64), sizes)
        inside = slice(held.offsets[0], held.offsets[-1])
        below = floors.rows[floors.offsets[0] : floors.offsets[-1]] if isinstance(floors, Bag) else None
        return match, held.rows[inside], _or_none(below, len(match))
    bound = np.flatnonzero(held >= 0)
    below = floors[bound] if floors is not None and not isinstance(floors, Bag) else None
    return bound, held[bound], _or_none(below, len(bound))


def _or_none(floors: Integers | None, size: int) -> Integers:
    return floors if floors is not None else np.full(size, NO_FLOOR, dtype=np.int64)


def ranks(*keys: Integers) -> Integers:
    """The rank of each element by several keys, the first key first."""
    by = np.lexsort(keys[::-1])
    found = np.empty(len(by), dtype=np.int64)
    found[by] = starts_of_runs(differs(*(key[by] for key in keys)))
    return found


def refined(known: Integers, offsets: Integers, values: Integers) -> Integers:
    """Ranks with their ties broken by lists of numbers ≥ 0, as Python compares lists.

    `known` are ranks, or any numbers with a gap after each that holds its ties. The list of element i is
    `values[offsets[i]:offsets[i + 1]]`.

    Examples
    --------
    >>> refined(np.array([0, 0, 0, 3]), np.array([0, 2, 3, 5, 6]), np.array([4, 6, 4, 4, 5, 1])).tolist()
    [2, 0, 1, 3]
    """
    found = known.copy()
    _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    tied: Integers = np.flatnonzero(counts[inverse.reshape(-1)] > 1)
    step = 0
    while len(tied):
        where = offsets[tied] + step
        inside = where < offsets[tied + 1]
        keys = np.full(len(tied), -1, dtype=np.int64)  # a list that is over is before every longer one
        keys[inside] = values[where[inside]]
        by = np.lexsort((keys, found[tied]))
        tied, keys = tied[by], keys[by]
        old = found[tied]
        is_new = differs(old, keys)
        runs = starts_of_runs(is_new)
        found[tied] = old + runs - starts_of_runs(differs(old))
        sizes = np.diff(np.append(np.flatnonzero(is_new), len(tied)))
        tied = tied[(np.repeat(sizes, sizes) > 1) & (keys >= 0)]
        step += 1
    return found


def in_order(view: Flat) -> Integers:
    """The indices of matches by group, then in the order of R5; no two may have the same bindings."""
    return np.argsort(_with_lists(ranks(view.groups, view.first, view.last), view), kind="stable")


def best(view: Flat, group: tuple[Integers, ...], *keys: Integers) -> Integers:
    """In each group, the index of the match with the least keys; ties are broken by the lists of R5.

    The keys must include what R5 compares before the lists and the group does not already fix.
    """
    by = np.lexsort((*keys[::-1], *group[::-1]))
    new_group = differs(*(one[by] for one in group))
    groups = starts_of_runs(new_group)
    runs = starts_of_runs(new_group | differs(*(key[by] for key in keys)))
    least = runs == groups
    survivors, known = by[least], groups[least]
    return np.sort(survivors[_with_lists(known, view.take(survivors)) == known])


def _with_lists(known: Integers, view: Flat) -> Integers:
    return refined(refined(known, *view.events), view.offsets, view.bindings)
