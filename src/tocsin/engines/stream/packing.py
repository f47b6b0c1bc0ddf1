"""Pack the rows of a micro-batch by shard and unpack what shards emit: the first and the third stage of a stream.

Input    the rows of a task, with bits, clock and source
Output   one row for each shard: a *shard batch* with its rows, and the latest times of the task's sources

Every task sends a shard batch to every shard, with rows or without. So all shards have the same watermark, and one to
which nothing has come emits what is due all the same. No Python runs per row.

A shard is one group of Spark's state, in a partition of its own. Spark sends a group to a partition by the hash of its
key. Numbers 0, 1, … would meet in some partitions and leave others empty, so that a shard is called by a number whose
hash leads to the partition that it should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tocsin.engines.stream.guard import UNRATED, Guard
from tocsin.engines.stream.store import NEVER, rows_to_bytes, to_bytes
from tocsin.engines.worker.arrow_types import completed
from tocsin.engines.worker.process import settle
from tocsin.engines.worker.rows import array_of, integers
from tocsin.kernels.model import Integers
from tocsin.plan.manifest import BITS, CLOCK, SOURCE, SOURCE_MASK, TYPE_AT

SHARD = "__tocsin_shard"
LATEST, BAD, SEEN, ARRIVED, ROWS = "latest", "bad", "seen", "arrived", "rows"
COLUMNS = (SHARD, LATEST, BAD, SEEN, ARRIVED, ROWS)


@dataclass(frozen=True)
class Packing:
    """The function that packs the rows of a task."""

    time: str  # the column with the time of rows that take part
    labels: tuple[int, ...]  # of the shards
    sources: int  # their number
    guard: Guard | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The shard batches of one task: one row for each shard. Rows without a time are counted once."""
        settle()
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        table = pa.Table.from_batches(received)
        takes_part = integers(array_of(table, BITS)) != 0
        clock = array_of(table, CLOCK)
        bad = int(np.count_nonzero(~takes_part & np.asarray(clock.is_null())))
        rows = table.filter(pa.array(takes_part)) if not takes_part.all() else table
        times = self._times(rows, takes_part, clock)
        source = np.asarray(array_of(table, SOURCE))
        sent_by = source & SOURCE_MASK
        latest = [int(times[sent_by == number].max(initial=NEVER)) for number in range(self.sources)]
        arrived = b""
        if self.guard is not None:
            arrived = self.guard.counted(times, np.where(times == NEVER, UNRATED, source >> TYPE_AT))
        shard = np.asarray(array_of(rows, SHARD))
        rows = rows.drop_columns([SHARD, CLOCK, SOURCE])
        # Whether a column may be NULL differs from plan to plan; the state must not.
        rows = pa.Table.from_arrays(rows.columns, names=rows.column_names)
        found = [rows_to_bytes(part) for part in self._split(rows, shard)]
        count = len(self.labels)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(self.labels, pa.int32()),
                pa.array([to_bytes(latest)] * count, pa.binary()),
                pa.array([bad] + [0] * (count - 1), pa.int64()),
                pa.array([table.num_rows] + [0] * (count - 1), pa.int64()),
                pa.array([arrived] + [b""] * (count - 1), pa.binary()),
                pa.array(found, pa.binary()),
            ],
            names=list(COLUMNS),
        )

    def _times(self, rows: pa.Table, takes_part: Integers, clock: pa.Array) -> Integers:
        """The times of all rows, of those that take part and of those that do not; `NEVER` where there is none."""
        times = np.asarray(clock.fill_null(NEVER)) if clock.null_count else np.asarray(clock)
        times = np.where(takes_part, NEVER, times)
        times[takes_part] = integers(array_of(rows, self.time))
        return times

    def _split(self, rows: pa.Table, shard: Integers) -> Iterator[pa.Table]:
        if len(self.labels) == 1:
            yield rows
            return
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], np.arange(len(self.labels)), side="right")
        sorted_rows = rows.combine_chunks().take(pa.array(order))
        begin = 0
        for end in ends.tolist():
            yield sorted_rows.slice(begin, end - begin)
            begin = end


@dataclass(frozen=True)
class Unpacking:
    """The function that unpacks batches: a row has all columns, and is NULL in those that its batch does not bring."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of batches."""
        for batch in batches:
            for written in batch.column(0):
                with pa.ipc.open_stream(written.as_buffer()) as stream:
                    for found in stream:
                        yield completed(found, self.schema)  # events have the zone of the session, and are cast


SEED = 42  # of Spark's hash partitioning


def labels(shards: int) -> tuple[int, ...]:
    """The labels of the shards: with as many partitions, the i-th lies in partition i.

    >>> [partition_of(label, 3) for label in labels(3)]
    [0, 1, 2]
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < shards:
        found.setdefault(partition_of(label, shards), label)
        label += 1
    return tuple(found[number] for number in range(shards))


def partition_of(label: int, partitions: int) -> int:
    """The partition that Spark sends an INT to."""
    return _murmur3(label) % partitions


def _murmur3(value: int) -> int:
    """The 32-bit Murmur3 hash of an INT as Spark has it, with its sign."""
    mixed = _rotated(value * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    found = (_rotated(SEED ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    found ^= 4
    found = (found ^ found >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    found = (found ^ found >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & 0xFFFFFFFF
