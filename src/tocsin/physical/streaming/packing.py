"""The first stage of a stream: the rows of a micro-batch become one parcel for each shard. No Python runs per row.

Every task sends a parcel to every shard, with rows or without: it tells how far the task's sources have come. So all
shards know the same time, and a shard for which nothing has come decides what is due all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tocsin.kernels.model import Integers
from tocsin.physical.sliced.layout import BITS, CLOCK, SOURCE, Layout
from tocsin.physical.sliced.rows import array_of, integers
from tocsin.physical.streaming.clocks import NEVER, to_bytes
from tocsin.physical.streaming.state import rows_to_bytes

SHARD = "__tocsin_shard"
LATEST, BAD, SEEN, PARCEL = "latest", "bad", "seen", "rows"
COLUMNS = (SHARD, LATEST, BAD, SEEN, PARCEL)


@dataclass(frozen=True)
class Packing:
    """What a worker has to know.

    Attributes
    ----------
    layout
        What the columns of the rows mean.
    labels
        What the shards are called.
    sources
        How many sources there are.
    """

    layout: Layout
    labels: tuple[int, ...]
    sources: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The parcels of one task."""
        received = [batch for batch in batches if batch.num_rows]
        if received:
            yield self.parcels(pa.Table.from_batches(received))

    def parcels(self, table: pa.Table) -> pa.RecordBatch:
        """One row for each shard. What was not told by a time is counted once."""
        takes_part = integers(array_of(table, BITS)) != 0
        clock = array_of(table, CLOCK)
        bad = int(np.count_nonzero(~takes_part & np.asarray(clock.is_null())))
        rows = table.filter(pa.array(takes_part)) if not takes_part.all() else table
        latest = self._latest(table, rows, takes_part, clock)
        shard = np.asarray(array_of(rows, SHARD))
        rows = rows.drop_columns([SHARD, CLOCK, SOURCE])
        # Whether a column may be NULL differs from plan to plan; the state must not.
        rows = pa.Table.from_arrays(rows.columns, names=rows.column_names)
        found = [rows_to_bytes(part) for part in self._split(rows, shard)]
        count = len(self.labels)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.labels, pa.int32()),
                pa.array([to_bytes(latest)] * count, pa.binary()),
                pa.array([bad] + [0] * (count - 1), pa.int64()),
                pa.array([table.num_rows] + [0] * (count - 1), pa.int64()),
                pa.array(found, pa.binary()),
            ],
            names=list(COLUMNS),
        )

    def _latest(self, table: pa.Table, rows: pa.Table, takes_part: Integers, clock: pa.Array) -> list[int]:
        """The latest time of each source, of rows that take part and of those that do not."""
        times = np.asarray(clock.fill_null(NEVER)) if clock.null_count else np.asarray(clock)
        times = np.where(takes_part, NEVER, times)
        times[takes_part] = integers(array_of(rows, self.layout.time))
        if self.sources == 1:
            return [int(times.max())]
        source = np.asarray(array_of(table, SOURCE))
        return [int(times[source == number].max(initial=NEVER)) for number in range(self.sources)]

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
