"""The workers of the clustered plan: what lies near the edges of a task's rows, and who meets there.

Like `worker` this is sent to the tasks. The argument why nothing is missed is in `clustered`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin import errors
from tocsin.engines.worker.gather import Gatherer, portions
from tocsin.engines.worker.rows import array_of, integers
from tocsin.engines.worker.tasks import Member, Task
from tocsin.kernels.hashes import halves, holds_any, match_hashes, ordinals, twins
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Integers, Mask, Matches, Rows
from tocsin.plan.manifest import BITS, END, FIRST_HALF, SECOND_HALF, START, Layout, variable

ORIGIN = "__tocsin_origin"
# What the origin says of a row that is a match: NULL when no other match can be equal to it.
MAY_HAVE_AN_EQUAL = -1
# More cuts would send more rows, and no task holds more files than this.
MOST_CUTS = 256
LEAST_US, MOST_US = -(2**63), 2**63 - 1
Run = tuple[int, int, int]  # first time, last time, task


# --- runs -----------------------------------------------------------------------------------------


def runs(times: Integers, window_us: int, most_cuts: int = MOST_CUTS) -> tuple[Integers, Integers]:
    """The first and last times of the stretches that rows form: cut where nothing happens for longer than a window.

    Of more than `most_cuts` gaps the longest are taken.

    Examples
    --------
    >>> [found.tolist() for found in runs(np.array([31, 0, 8, 30]), 10)]
    [[0, 30], [8, 31]]
    """
    # Most inputs come in order of time, or as a few files that are: this sort merges what is sorted.
    ordered = times if bool((times[1:] >= times[:-1]).all()) else np.sort(times, kind="stable")
    # Without a sign, so that no difference is too large.
    gaps = ordered[1:].view(np.uint64) - ordered[:-1].view(np.uint64)
    cuts = np.flatnonzero(gaps > np.uint64(window_us))
    if len(cuts) > most_cuts:
        cuts = np.sort(cuts[np.argpartition(gaps[cuts], -most_cuts)[-most_cuts:]])
    return ordered[np.append(0, cuts + 1)], ordered[np.append(cuts, len(ordered) - 1)]


def near_edges(times: Integers, lows: Integers, highs: Integers, reach_us: int) -> Mask:
    """Which times are less than a reach away from the first or the last of their run.

    Examples
    --------
    >>> near_edges(np.array([0, 5, 9]), np.array([0]), np.array([9]), 3).tolist()
    [True, False, True]
    """
    after = np.array([min(low + reach_us, MOST_US) for low in lows.tolist()], np.int64)
    before = np.array([max(high - reach_us, LEAST_US) for high in highs.tolist()], np.int64)
    run = np.searchsorted(lows, times, side="right") - 1 if len(lows) > 1 else np.zeros(1, np.int64)
    return np.asarray((times < after[run]) | (times > before[run]))


def overlapping(found: Sequence[Run], slack_us: int) -> tuple[Run, Run] | None:
    """Two runs of different tasks that have more than `slack_us` of time in common, or None.

    Runs r and s are apart when `r.last − s.first ≤ slack` or `s.last − r.first ≤ slack`.

    Examples
    --------
    >>> overlapping([(0, 10, 0), (8, 20, 1)], 2) is None
    True
    >>> overlapping([(0, 10, 0), (8, 20, 1)], 1)
    ((0, 10, 0), (8, 20, 1))
    """
    ordered = sorted(found)
    lows = [run[0] for run in ordered]
    # Of the runs so far the one that lasts longest, and the one of another task that does: one of them is a stranger.
    longest: list[tuple[Run, Run | None]] = []
    for place, run in enumerate(ordered):
        first, last, task = run
        begun = min(place, bisect_left(lows, last - slack_us))
        if begun:
            for other in longest[begun - 1]:
                if other is not None and other[2] != task and other[1] - slack_us > first:
                    return other, run
        longest.append(_longest(longest[-1], run) if longest else (run, None))
    return None


def _longest(so_far: tuple[Run, Run | None], run: Run) -> tuple[Run, Run | None]:
    best, second = so_far
    if run[2] == best[2]:
        return (run if run[1] > best[1] else best), second
    if run[1] > best[1]:
        return run, best
    return best, run if second is None or run[1] > second[1] else second


def crosses(matches: Matches, origins: Integers) -> Mask:
    """Which matches have rows of more than one origin."""
    least = np.full(len(matches), MOST_US)
    most = np.full(len(matches), LEAST_US)
    for held in matches.events.values():
        if isinstance(held, Bag):
            some = np.flatnonzero(np.diff(held.offsets))
            if not len(some):
                continue
            starts, found = held.offsets[some], origins[held.rows]
            lows, highs = np.minimum.reduceat(found, starts), np.maximum.reduceat(found, starts)
        else:
            some = np.flatnonzero(held >= 0)
            lows = highs = origins[held[some]]
        least[some] = np.minimum(least[some], lows)
        most[some] = np.maximum(most[some], highs)
    return least < most


# --- batches --------------------------------------------------------------------------------------


def match_columns(layout: Layout) -> tuple[str, ...]:
    """The columns of a match, as `Gatherer` makes them."""
    hashes = (FIRST_HALF, SECOND_HALF) if layout.digests else ()
    return (START, END, *hashes, *(variable(number) for number in range(len(layout.gathered))))


def _nothing(layout: Layout, gatherer: Gatherer) -> pa.RecordBatch:
    """No matches, for the types of their columns."""
    none = np.empty(0, np.int64)
    events = {one.name: Bag(np.zeros(1, np.int64), none) if one.is_iterated else none for one in layout.gathered}
    return gatherer.batch(Matches(none, none, events), (none, none) if layout.digests else None)


def _batch(schema: pa.Schema, size: int, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """A batch of these columns, NULL in all others."""
    arrays = [columns[field.name] if field.name in columns else pa.nulls(size, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class Inside(Member):
    """The first pass: the matches that lie in one task, its rows near edges, and the times it has."""

    window_us: int = 0
    reach_us: int = 0  # how near to an edge a row must be to be sent on

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Write matches, rows near edges and runs in the columns of all three."""
        task = _task_number()
        fields = [
            *_nothing(self.layout, Gatherer(table, self.layout)).schema,
            *(field.with_nullable(True) for field in table.schema),
        ]
        schema = pa.schema([*fields, pa.field(ORIGIN, pa.int32())])
        times = integers(array_of(table, self.layout.time))
        lows, highs = runs(times, self.window_us)
        is_edge = near_edges(times, lows, highs, self.reach_us)
        found = self.search.find(rows, most=most, memory=memory)
        yield from self._inside((portion for some in found for portion in portions(some)), table, rows, schema, is_edge)
        edges = table if is_edge.all() else table.filter(pa.array(is_edge))
        origin = pa.array([task], pa.int32())
        for batch in edges.combine_chunks().to_batches():
            own = pa.array(np.full(batch.num_rows, task, np.int32))
            yield _batch(
                schema, batch.num_rows, {**dict(zip(batch.schema.names, batch.columns, strict=True)), ORIGIN: own}
            )
        own = origin.take(pa.array(np.zeros(len(lows), np.int64)))
        yield _batch(schema, len(lows), {START: pa.array(lows), END: pa.array(highs), ORIGIN: own})

    def _inside(
        self, found: Iterable[Matches], table: pa.Table, rows: Rows, schema: pa.Schema, is_edge: Mask
    ) -> Iterator[pa.RecordBatch]:
        gatherer = Gatherer(table, self.layout)
        digests = self.digests(table) if self.layout.digests else None
        marked = None
        if digests is not None and not self.has_id:
            own = twins([column for column in (*digests, rows.partition) if column is not None])
            marked = is_edge if own is None else is_edge | own
        for portion in found:
            batch = gatherer.batch(portion, None if digests is None else match_hashes(portion, digests))
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            if marked is not None:
                flags = np.full(len(portion), MAY_HAVE_AN_EQUAL, np.int32)
                columns[ORIGIN] = pa.array(flags, mask=~holds_any(portion, marked))
            yield _batch(schema, len(portion), columns)


@dataclass(frozen=True)
class Crossing(Member):
    """The search of the second pass: the matches with rows of several tasks, with hashes in place of ids."""

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Write the matches that cross tasks."""
        gatherer = Gatherer(table, self.layout)
        digests = self.digests(table) if self.layout.digests else None
        origins = integers(array_of(table, ORIGIN))
        for matches in self.search.find(rows, most=most, memory=memory):
            for portion in portions(take(matches, crosses(matches, origins))):
                yield gatherer.batch(portion, None if digests is None else match_hashes(portion, digests))


@dataclass(frozen=True)
class Across:
    """The second pass: matches go through, those over several tasks are found, and the times of tasks are compared."""

    task: Task  # the task of one `Crossing`
    slack_us: int  # how much of time two tasks may have in common

    @property
    def member(self) -> Member:
        """The search."""
        return self.task.groups[0].members[0]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All matches whose start is in the task's slices."""
        names = match_columns(self.member.layout)
        events: list[pa.RecordBatch] = []
        found: list[Run] = []
        waiting: list[pa.RecordBatch] = []
        types = None
        for batch in batches:
            types = [batch.schema.field(name).type for name in names]
            is_event = _mask(batch.column(BITS).is_valid())
            origin = batch.column(ORIGIN).fill_null(MAY_HAVE_AN_EQUAL - 1).to_numpy(zero_copy_only=False)
            is_run = ~is_event & (origin >= 0)
            if is_event.any():
                events.append(_some(batch, is_event))
            if is_run.any():
                some = _some(batch, is_run)
                found += zip(*(some.column(name).to_pylist() for name in (START, END, ORIGIN)), strict=True)
            if (origin == MAY_HAVE_AN_EQUAL).any():
                waiting.append(_some(batch, origin == MAY_HAVE_AN_EQUAL).select(list(names)))
            alone = origin < MAY_HAVE_AN_EQUAL
            if alone.any():
                yield self._identified(_some(batch, alone).select(list(names)), types)
        self._check(found)
        for batch in self.task.run(pa.Table.from_batches(events)) if events else ():
            if self.member.layout.digests and not self.member.has_id:
                waiting.append(batch)
            else:
                yield self._identified(batch, types)
        if waiting:
            yield from self._numbered(waiting, types)

    def _check(self, found: list[Run]) -> None:
        both = overlapping(found, self.slack_us)
        if both is None:
            return
        times = " and ".join(f"from {first} to {last} µs in partition {task}" for first, last, task in both)
        raise errors.NotTimeClusteredError(
            f"The partitions of the input overlap in time: there are events {times}.",
            hint='leave out `strategy="clustered"`, or sort the data by time when writing it.',
        )

    def _identified(
        self, batch: pa.RecordBatch, types: Sequence[pa.DataType] | None, numbers: Integers | None = None
    ) -> pa.RecordBatch:
        """A batch of matches with the halves of `match_id` where the hashes were."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self.member.layout.digests:
            pair = (integers(columns[FIRST_HALF]), integers(columns[SECOND_HALF]))
            numbers = np.zeros(batch.num_rows, np.int64) if numbers is None else numbers
            first, second = halves(*pair, numbers)
            columns |= {FIRST_HALF: pa.array(first), SECOND_HALF: pa.array(second)}
        # One type for what was found here and what came through Spark, which names the parts of lists differently.
        arrays = [
            column if column.type.equals(dtype, check_metadata=True) else column.cast(dtype)
            for column, dtype in zip(columns.values(), types or (), strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _numbered(
        self, batches: Sequence[pa.RecordBatch], types: Sequence[pa.DataType] | None
    ) -> Iterator[pa.RecordBatch]:
        first, second = (
            np.concatenate([integers(batch.column(name)) for batch in batches]) for name in (FIRST_HALF, SECOND_HALF)
        )
        ends = np.cumsum([batch.num_rows for batch in batches])
        for batch, numbers in zip(batches, np.split(ordinals(first, second), ends[:-1]), strict=True):
            yield self._identified(batch, types, numbers)


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _some(batch: pa.RecordBatch, which: NDArray[np.bool_]) -> pa.RecordBatch:
    return batch if which.all() else batch.filter(pa.array(which))


def _task_number() -> int:
    """The number of the partition this task reads; the same when the task runs again."""
    from pyspark import TaskContext  # a worker of Spark has it; planning needs none of it

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
