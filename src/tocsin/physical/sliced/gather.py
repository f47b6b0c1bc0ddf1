"""What a kernel found → Arrow batches of matches: the rows of the events are taken from the task's table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tocsin.kernels.model import Bag, Integers, Matches
from tocsin.physical.sliced.layout import END, FIRST_HALF, KEY, SECOND_HALF, START, Gathered, Layout, member, variable
from tocsin.physical.sliced.rows import array_of, key_of

MOST_AT_ONCE = 1 << 16


def portions(matches: Matches, size: int = MOST_AT_ONCE) -> Iterator[Matches]:
    """Matches in portions of at most `size`."""
    if len(matches) <= size:
        if len(matches):
            yield matches
        return
    for begin in range(0, len(matches), size):
        end = min(begin + size, len(matches))
        events = {name: _part(held, begin, end) for name, held in matches.events.items()}
        yield Matches(matches.start[begin:end], matches.end[begin:end], events)


def _part(held: Integers | Bag, begin: int, end: int) -> Integers | Bag:
    if not isinstance(held, Bag):
        return held[begin:end]
    offsets = held.offsets[begin : end + 1]
    return Bag(offsets - offsets[0], held.rows[offsets[0] : offsets[-1]])


class Gatherer:
    """Makes batches of matches from the columns of one task."""

    def __init__(self, table: pa.Table, layout: Layout) -> None:
        self.gathered = layout.gathered
        names = {name for one in layout.gathered for name in one.columns}
        self.columns = {
            name: key_of(table, layout.packing.key_bits) if name == KEY else array_of(table, name) for name in names
        }

    def batch(self, matches: Matches, halves: tuple[Integers, Integers] | None) -> pa.RecordBatch:
        """The matches with their interval in microseconds, the halves of their ids, and a column per variable."""
        found = {START: pa.array(matches.start), END: pa.array(matches.end)}
        if halves is not None:
            found[FIRST_HALF], found[SECOND_HALF] = pa.array(halves[0]), pa.array(halves[1])
        for number, one in enumerate(self.gathered):
            held = matches.events[one.name]
            found[variable(number)] = self._bag(one, held) if isinstance(held, Bag) else self._event(one, held)
        return pa.RecordBatch.from_arrays([*found.values()], names=[*found])

    def _event(self, one: Gathered, rows: Integers) -> pa.Array:
        unbound = rows < 0
        if not unbound.any():
            struct = self._struct(one, pa.array(rows), None)
        else:
            struct = self._struct(one, pa.array(rows, mask=unbound), pa.array(unbound))
        if not one.is_iterated:
            return struct
        # A variable that is iterated in one OR branch only is a bag in all of them.
        bound = np.flatnonzero(~unbound)
        offsets = np.append(0, np.cumsum(~unbound))
        return _lists(offsets, struct.take(pa.array(bound)))

    def _bag(self, one: Gathered, bag: Bag) -> pa.Array:
        structs = self._struct(one, pa.array(bag.rows), None)
        return _lists(bag.offsets, structs)

    def _struct(self, one: Gathered, rows: pa.Array, unbound: pa.Array | None) -> pa.StructArray:
        columns = [self.columns[name].take(rows) for name in one.columns]
        names = [member(number) for number in range(len(columns))]
        return pa.StructArray.from_arrays(columns, names=names, mask=unbound)


def _lists(offsets: Integers, values: pa.Array) -> pa.ListArray:
    """Lists, NULL where they would be empty: a variable that holds nothing is unbound."""
    is_empty = np.diff(offsets) == 0
    mask = pa.array(is_empty) if is_empty.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, mask=mask)
