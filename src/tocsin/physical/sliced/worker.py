"""The function that Spark runs on each task: batches of events in, batches of matches out.

It is sent to the workers with the kernel and the layout, and imports neither Spark nor what plans it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tocsin import errors
from tocsin.kernels.hashes import match_halves
from tocsin.kernels.searches import Search
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.sliced.digests import MadeDigests
from tocsin.physical.sliced.gather import Gatherer, portions
from tocsin.physical.sliced.layout import KEY_AT, Layout
from tocsin.physical.sliced.rows import array_of, integers, rows_of


@dataclass(frozen=True)
class Task:
    """What a worker has to know.

    Attributes
    ----------
    kernel
        The search.
    layout
        What the columns of the rows mean.
    width_us
        How wide time slices are; None when rows are not cut by time.
    most
        How many matches may have one start.
    memory
        How many bytes may be held for matches.
    text
        The query, for messages.
    has_id
        Whether a column identifies events, so that no two matches are equal.
    """

    kernel: Search
    layout: Layout
    width_us: int | None = None
    most: int = MOST_MATCHES_PER_START
    text: str = ""
    has_id: bool = False
    memory: int = MOST_MEMORY

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The matches of one task's rows."""
        received = [batch for batch in batches if batch.num_rows]
        if received:
            yield from self.matches(pa.Table.from_batches(received))

    def matches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """The matches of a table of rows.

        Raises
        ------
        MatchFailedError
            When the search fails for a reason that is not the user's.
        """
        try:
            yield from self._matches(table)
        except errors.TocsinError:
            raise
        except Exception as problem:
            raise errors.MatchFailedError(
                f"The search failed: {type(problem).__name__}: {problem}\n  {self._place(table)}",
                hint="this is a fault of Tocsin's own; please report it with the query.",
            ) from problem

    def _matches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        rows = rows_of(table, self.kernel, self.layout, self.width_us)
        gatherer = Gatherer(table, self.layout)
        found = self.kernel.find(rows, most=self.most, memory=self.memory)
        if not self.layout.digests:
            for matches in found:
                for portion in portions(matches):
                    yield gatherer.batch(portion, None)
            return
        first, second = (integers(array_of(table, name)) for name in self.layout.digests)
        made = MadeDigests(table, self.layout)
        some = (portion for matches in found for portion in portions(matches))
        for portion, one, other in match_halves(
            some,
            (first, second),
            rows.slice,
            rows.partition,
            has_id=self.has_id,
            made=made.of,
        ):
            yield gatherer.batch(portion, (one, other))

    def _place(self, table: pa.Table) -> str:
        """What the task searched: enough to find it again, and no row of it."""
        try:
            times = integers(array_of(table, self.layout.time))
            where = f"in {len(times)} rows of the times {times.min()} to {times.max()} µs"
            keys = [array_of(table, name)[0].as_py() for name in self.layout.keys]
            if self.layout.packing.has_key:
                keys = [int(integers(array_of(table, "__tocsin_bits"))[0]) >> (KEY_AT + 1)]
            where += f", partition {', '.join(map(repr, keys))} and others" if keys else ""
        except Exception:
            where = "in rows that cannot be read"
        return f"{where}, of the query:\n{self.text}"
