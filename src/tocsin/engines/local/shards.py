"""The rows of a large search in shards, which the cores of this machine search side by side.

Input    a table of rows, the searches that read it, and what its columns mean to them
Output   shards that share no match: of time slices where the searches can be cut by time, otherwise of keys

A slice of rows that are sorted by time is a part of the same memory. Small tables are one shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tocsin.engines.worker.arrays import of_numbers
from tocsin.engines.worker.rows import array_of, integers, partition_of
from tocsin.engines.worker.threads import cores
from tocsin.kernels.hashes import MIXING, Gatherable
from tocsin.kernels.model import Integers
from tocsin.kernels.reach import Search, width_us
from tocsin.plan.manifest import BITS, OWN_COPY, Layout

LEAST_ROWS = 1 << 17  # of a shard; with fewer, a thread costs more than it brings
REACHES = 4  # a slice is at least so wide, so that few events are searched twice
PER_CORE = 4  # shards, so that no core waits long for the last one
WIDEST = 2**52  # so that times may be multiplied, as those of ties are
LEAST, MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Shard:
    """Some rows of a table."""

    table: pa.Table
    begin: int = 0  # where they begin in the table
    places: Integers | None = None  # where they are, when they are not next to each other

    def of(self, numbers: Integers) -> Integers:
        """The numbers of its rows, of those of all rows."""
        return numbers[self.begin : self.begin + self.table.num_rows] if self.places is None else numbers[self.places]


@dataclass(frozen=True)
class OfShard:
    """Numbers of the rows of a shard, from those of the table."""

    numbers: Gatherable
    shard: Shard

    def __getitem__(self, rows: Integers) -> Integers:
        """The numbers of some rows of the shard."""
        places = self.shard.places
        return self.numbers[rows + self.shard.begin if places is None else places[rows]]


def shards_of(table: pa.Table, searches: Sequence[Search], layouts: Sequence[Layout]) -> tuple[int | None, list[Shard]]:
    """The width of time slices, None where rows are not cut by time, and the shards."""
    most = min(table.num_rows // LEAST_ROWS, PER_CORE * cores())
    whole = [Shard(table)]
    if most < 2:
        return None, whole
    widths = [width_us(search, REACHES * (search.back_us + search.ahead_us)) for search in searches]
    if all(width is not None for width in widths):
        ts = integers(array_of(table, layouts[0].time))
        low, high = int(ts.min()), int(ts.max())
        width = max((high - low) // most + 1, *(width for width in widths if width is not None))
        if low // width == high // width or width > WIDEST:
            return None, whole
        return width, list(_slices(table, ts, width, searches))
    if len(searches) > 1 or searches[0].crosses_partitions:
        return None, whole
    partition = partition_of(table, layouts[0])
    return None, whole if partition is None else list(_by_key(table, partition, most))


def _slices(table: pa.Table, ts: Integers, width: int, searches: Sequence[Search]) -> Iterator[Shard]:
    """The rows that each slice must see; see `engines.spark.slices`."""
    back, ahead = max(search.back_us for search in searches), max(search.ahead_us for search in searches)
    is_sorted = bool((ts[1:] >= ts[:-1]).all())
    bits, own = integers(array_of(table, BITS)), ts // width
    for number in range(int(own.min()), int(own.max()) + 1):
        low, high = number * width, (number + 1) * width
        first = min(low, low - back + 1)
        last = max(high, high + ahead) - 1
        first, last = max(first, LEAST), min(last, MOST)
        if is_sorted:
            begin, end = int(np.searchsorted(ts, first, "left")), int(np.searchsorted(ts, last, "right"))
            shard = Shard(table.slice(begin, end - begin), begin)
        else:
            places = np.flatnonzero((ts >= first) & (ts <= last))
            shard = Shard(table.take(of_numbers(places)), places=places)
        if shard.table.num_rows:
            copies = (shard.of(bits) & ~3) | (OWN_COPY + number - shard.of(own))
            part = shard.table.set_column(table.schema.get_field_index(BITS), BITS, of_numbers(copies))
            yield replace(shard, table=part)


def _by_key(table: pa.Table, partition: Integers, most: int) -> Iterator[Shard]:
    """The rows of some partitions each."""
    mixed = partition * MIXING >> 40
    numbers = mixed % most
    for number in range(most):
        places = np.flatnonzero(numbers == number)
        if len(places):
            yield Shard(table.take(of_numbers(places)), places=places)
