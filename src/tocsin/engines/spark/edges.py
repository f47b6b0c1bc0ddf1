"""The workers of the clustered plan: what lies near the edges of a task's rows, and who meets there.

Tasks are pickled and sent to workers. `in_place` has the argument why no match is missed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.engines.worker.arrays import of_ids, of_numbers
from tocsin.engines.worker.arrow_types import completed
from tocsin.engines.worker.gather import Gatherer, portions
from tocsin.engines.worker.rows import array_of, integers
from tocsin.engines.worker.tasks import Member, Task
from tocsin.kernels.hashes import holds_any, ids, match_hashes, ordinals, twins
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Integers, Mask, Matches, Rows
from tocsin.plan.manifest import BITS, END, MATCH_ID, START, Layout, variable

ORIGIN = "__tocsin_origin"
HASHES = ("__tocsin_hash1", "__tocsin_hash2")  # of a match, until it is known which others are equal
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
    """The columns of a match, as `Gatherer` makes them, with hashes in place of its id."""
    hashes = HASHES if layout.identifies else ()
    return (START, END, *hashes, *(variable(number) for number in range(len(layout.gathered))))


@dataclass(frozen=True)
class Inside(Member):
    """The first pass: the matches that lie in one task, its rows near edges, and the times it has."""

    window_us: int = 0
    reach_us: int = 0  # how near to an edge a row must be to be sent on

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Write matches, rows near edges and runs in the columns of all three, NULL where there is nothing."""
        names, types = match_columns(self.layout), Gatherer(table, self.layout).types()
        fields = [*zip(names, [pa.int64()] * (len(names) - len(types)) + types, strict=True)]
        schema = pa.schema([*fields, *((one.name, one.type) for one in table.schema), (ORIGIN, pa.int32())])
        times = integers(array_of(table, self.layout.time))
        lows, highs = runs(times, self.window_us)
        is_edge = near_edges(times, lows, highs, self.reach_us)
        marked = self._may_have_equals(table, rows, is_edge)
        for portion, batch in _hashed(self, self.search.find(rows, most=most, memory=memory), table):
            if marked is None:
                yield completed(batch, schema)
            else:
                flags = np.full(len(portion), MAY_HAVE_AN_EQUAL, np.int32)
                origin = pa.array(flags, mask=~holds_any(portion, marked))
                yield completed(batch.append_column(ORIGIN, origin), schema)
        edges = table.filter(pa.array(is_edge))
        times_of_runs = pa.table({START: lows, END: highs})
        for sent in (edges, times_of_runs):
            task = pa.array(np.full(len(sent), _task_number(), np.int32))
            yield from completed(sent.append_column(ORIGIN, task), schema).to_batches()

    def _may_have_equals(self, table: pa.Table, rows: Rows, is_edge: Mask) -> Mask | None:
        """Which rows may be in equal matches; None: no match needs a number."""
        if not self.layout.identifies or self.has_id:
            return None
        own = twins([key for key in (rows.ts, rows.partition) if key is not None], self.digests(table))
        return is_edge if own is None else is_edge | own


@dataclass(frozen=True)
class Crossing(Member):
    """The search of the second pass: the matches with rows of several tasks, with hashes in place of ids."""

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Write the matches that cross tasks."""
        origins = integers(array_of(table, ORIGIN))
        found = self.search.find(rows, most=most, memory=memory)
        crossing = (take(matches, crosses(matches, origins)) for matches in found)
        return (batch for _, batch in _hashed(self, crossing, table))


def _hashed(member: Member, found: Iterable[Matches], table: pa.Table) -> Iterator[tuple[Matches, pa.RecordBatch]]:
    """Matches in portions, and their columns, with hashes in place of ids."""
    gatherer = Gatherer(table, member.layout)
    digests = member.digests(table) if member.layout.identifies else None
    for portion in (portion for matches in found for portion in portions(matches)):
        hashes = {} if digests is None else dict(zip(HASHES, match_hashes(portion, digests), strict=True))
        yield portion, gatherer.batch(portion, {name: of_numbers(numbers) for name, numbers in hashes.items()})


@dataclass(frozen=True)
class Across:
    """The second pass: matches go through, those over several tasks are found, and the times of tasks are compared."""

    task: Task  # the task of one `Crossing`
    slack_us: int  # how much of time two tasks may have in common

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All matches whose start is in the task's slices."""
        member = self.task.groups[0].members[0]
        names = match_columns(member.layout)
        events: list[pa.RecordBatch] = []
        waiting: list[pa.Table] = []  # the matches that may have an equal
        found: list[Run] = []
        schema = pa.schema([])
        for batch in batches:
            matches = pa.Table.from_batches([batch.select(list(names))])
            schema = matches.schema
            is_event = np.asarray(batch.column(BITS).is_valid())
            origin = batch.column(ORIGIN).fill_null(MAY_HAVE_AN_EQUAL - 1).to_numpy(zero_copy_only=False)
            events.append(batch.filter(pa.array(is_event)))
            run = batch.filter(pa.array(~is_event & (origin >= 0)))
            found += zip(*(run.column(name).to_pylist() for name in (START, END, ORIGIN)), strict=True)
            waiting.append(matches.filter(pa.array(origin == MAY_HAVE_AN_EQUAL)))
            yield from _identified(matches.filter(pa.array(origin < MAY_HAVE_AN_EQUAL)), member.layout)
        self._check(found)
        if any(batch.num_rows for batch in events):
            for batch in self.task.run(pa.Table.from_batches(events)):
                # One type for what was found here and what came through Spark, which names the parts of lists
                # differently.
                matches = pa.Table.from_batches([batch]).cast(schema)
                if member.layout.identifies and not member.has_id:
                    waiting.append(matches)
                else:
                    yield from _identified(matches, member.layout)
        if waiting:
            yield from _identified(pa.concat_tables(waiting), member.layout, is_numbered=True)

    def _check(self, found: list[Run]) -> None:
        both = overlapping(found, self.slack_us)
        if both is None:
            return
        times = " and ".join(f"from {first} to {last} µs in partition {task}" for first, last, task in both)
        raise errors.NotTimeClusteredError(
            f"The partitions of the input overlap in time: there are events {times}.",
            hint='leave out `strategy="clustered"`, or sort the data by time when writing it.',
        )


def _identified(matches: pa.Table, layout: Layout, *, is_numbered: bool = False) -> Iterable[pa.RecordBatch]:
    """Matches with `match_id` where the hashes were; equal ones are numbered on request."""
    if layout.identifies:
        first, second = (integers(array_of(matches, name)) for name in HASHES)
        numbers = ordinals(first, second) if is_numbered else np.zeros(len(first), np.int64)
        made = of_ids(ids(first, second, numbers))
        place = matches.schema.get_field_index(HASHES[0])
        matches = matches.drop_columns(list(HASHES)).add_column(place, MATCH_ID, made)
    yield from matches.to_batches()


def _task_number() -> int:
    """The number of the partition this task reads; the same when the task runs again."""
    from pyspark import TaskContext  # a worker of Spark has it; planning needs none of it

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())
