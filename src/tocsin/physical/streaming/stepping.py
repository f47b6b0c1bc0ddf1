"""The second stage of a stream: a shard takes its parcels and gives the matches that are decided by them.

It searches the events it remembers together with the new ones by the kernel of the batch engine. With the watermark as
the measure, it gives the matches decided since the last step; eagerly, those that hold a new event. Time-outs always
wait for the watermark. Either way none is given twice, whatever the cut into micro-batches, and the order in which
events arrive does not matter.

An event older than the watermark of the step before is late: what it would change has been given already. It is
counted, sent to the late output, and takes no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from tocsin.kernels.hashes import Numbering, halves, holds_any, match_hashes
from tocsin.kernels.matches import concatenate, take
from tocsin.kernels.model import Integers, Mask, Matches, Rows
from tocsin.kernels.searches import Search
from tocsin.language.ast import Skip
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.sliced.counting import Counting
from tocsin.physical.sliced.digests import MadeDigests
from tocsin.physical.sliced.gather import Gatherer, portions
from tocsin.physical.sliced.graphs import Compacting
from tocsin.physical.sliced.layout import BITS, EVENT, SPENT, Layout
from tocsin.physical.sliced.rows import array_of, flags_of, integers, partition_of, rows_of
from tocsin.physical.sliced.worker import Member
from tocsin.physical.streaming.clocks import Clocks
from tocsin.physical.streaming.skipping import Skipping, without_policies
from tocsin.physical.streaming.state import State
from tocsin.plan.due import Due


@dataclass(frozen=True)
class Report:
    """What a step did.

    Attributes
    ----------
    events
        How many new events took part.
    late
        How many came too late.
    matches
        How many matches it gave.
    remembered
        How many events the shard remembers afterwards.
    watermark
        How far time has come.
    growing
        How many keys have a state that grows with the number of events.
    """

    events: int
    late: int
    matches: int
    remembered: int
    watermark: int
    growing: int = 0


@dataclass(frozen=True)
class Step:
    """What a worker has to know.

    Attributes
    ----------
    kernel
        The search.
    layout
        What the columns of the rows mean.
    due
        When matches become due.
    lateness_us
        How late the events of each source may come.
    has_id
        Whether a column identifies events.
    most
        How many matches may have one start.
    memory
        How many bytes may be held for matches.
    idle_ms
        After how long by the clock on the wall a silent source holds time back no more; None: never.
    counting, compacting
        What counts the matches of a window without finding them, and what makes graphs of those that end at one event;
        None: they are found.
    """

    kernel: Search
    layout: Layout
    due: Due
    lateness_us: tuple[int, ...]
    has_id: bool = False
    most: int = MOST_MATCHES_PER_START
    memory: int = MOST_MEMORY
    idle_ms: int | None = None
    counting: Counting | None = None
    compacting: Compacting | None = None

    @cached_property
    def skipping(self) -> Skipping | None:
        """What an after-match policy keeps; None: everything."""
        query = self.kernel.query
        if query.after_match.skip is Skip.REUSE:
            return None
        return Skipping(query.after_match, query.output, self.due)

    @cached_property
    def search(self) -> Search:
        """What finds the matches from which policies choose."""
        return self.kernel if self.skipping is None else without_policies(self.kernel)

    def begin(self) -> State:
        """A shard that has seen nothing."""
        return State(Clocks.begin(len(self.lateness_us)))

    def run(
        self, state: State, latest: Sequence[Sequence[int]], new: Sequence[pa.Table], now_ms: int = 0
    ) -> tuple[State, list[pa.RecordBatch], pa.Table | None, Report]:
        """One step: the new state, batches of matches, the late events if they are to be shown, and what happened."""
        before = state.clocks.watermark
        clocks = state.clocks.told(latest, self.lateness_us, now_ms=now_ms, idle_ms=self.idle_ms)
        arrived, late = split_late(new, self.layout.time, before)
        known = [table for table in (state.rows, arrived) if table is not None and table.num_rows]
        old = 0 if state.rows is None else state.rows.num_rows
        batches: list[pa.RecordBatch] = []
        kept = None
        if known:
            table = pa.concat_tables(known).combine_chunks()
            if self.counting is not None:
                batches = self._counted(self.counting, table, before, clocks.watermark)
            elif self.compacting is not None:
                # Eagerly or not, an end has one row: when everything before the watermark is known.
                has_moved = before != clocks.watermark
                batches = self._owned(self.compacting, table, before, clocks.watermark) if has_moved else []
            else:
                search = _Search(self, table, old)
                batches = list(search.batches(before, clocks.watermark))
                table = search.table
            kept = self._remembered(table, clocks.watermark)
        return finished(replace(state, clocks=clocks, rows=kept), batches, arrived, late)

    def _counted(self, counting: Counting, table: pa.Table, before: int, now: int) -> list[pa.RecordBatch]:
        """The groups of the windows that are over by now and were not before."""
        first, end = self.due.closed(before), self.due.closed(now)
        return [] if first == end else self._owned(counting, table, first, end)

    def _owned(self, member: Member, table: pa.Table, first: int, end: int) -> list[pa.RecordBatch]:
        rows = replace(rows_of(table, member.search, member.layout, None), owned=(first, end - 1))
        return list(member.run(table, rows, most=self.most, memory=self.memory))

    def _times(self, table: pa.Table) -> Integers:
        return integers(array_of(table, self.layout.time))

    def _remembered(self, table: pa.Table, watermark: int) -> pa.Table:
        flags = flags_of(table, self.layout.packing)
        partition = None if self.due.last_events is None else partition_of(table, self.layout)
        matters = self.due.is_live(self._times(table), flags, watermark, partition)
        return table if matters.all() else table.filter(pa.array(matters))


def split_late(new: Sequence[pa.Table], time: str, before: int) -> tuple[pa.Table | None, pa.Table | None]:
    """The new events that take part, and those that came too late."""
    if not new:
        return None, None
    arrived, late = pa.concat_tables(new), None
    is_late = integers(array_of(arrived, time)) < before
    if is_late.any():
        late, arrived = arrived.filter(pa.array(is_late)), arrived.filter(pa.array(~is_late))
    if EVENT in arrived.column_names:  # only a late one is shown
        arrived = arrived.drop_columns([EVENT])
    return arrived, late


def finished(
    after: State, batches: list[pa.RecordBatch], arrived: pa.Table | None, late: pa.Table | None
) -> tuple[State, list[pa.RecordBatch], pa.Table | None, Report]:
    """What a step gives: the new state, the result, the late events if they are to be shown, and what happened."""
    report = Report(
        events=0 if arrived is None else arrived.num_rows,
        late=0 if late is None else late.num_rows,
        matches=sum(batch.num_rows for batch in batches),
        remembered=0 if after.rows is None else after.rows.num_rows,
        watermark=after.clocks.watermark,
    )
    shown = late.select([EVENT]) if late is not None and EVENT in late.column_names else None
    return after, batches, shown, report


class _Search:
    """The matches of one step.

    Attributes
    ----------
    table
        The events, old ones first; afterwards with the marks of a policy.
    """

    def __init__(self, step: Step, table: pa.Table, old: int) -> None:
        self.step, self.table, self.old = step, table, old

    def batches(self, before: int, now: int) -> Iterator[pa.RecordBatch]:
        """The matches to be given."""
        is_new = np.arange(self.table.num_rows) >= self.old
        has_new, has_moved = bool(is_new.any()), before != now
        due = self.step.due
        waits = due.window_us is not None
        if not (has_new or (has_moved and waits) if due.is_eager else has_moved):
            return
        table = self.table
        if due.is_eager and not waits:
            is_touched = self._touched(is_new)
            table, is_new = table.filter(pa.array(is_touched)), is_new[is_touched]
        rows = rows_of(table, self.step.kernel, self.step.layout, None)
        gatherer = Gatherer(table, self.step.layout)
        if not self.step.layout.digests:  # only added up: nobody asks for ids
            for matches in self._due(rows, before, now):
                yield from (gatherer.batch(portion, None) for portion in portions(matches))
            return
        identify = _Identity(self.step, table, rows)
        given = self._eager(rows, is_new, identify, before, now) if due.is_eager else self._due(rows, before, now)
        for matches in given:
            for portion in portions(matches):
                yield gatherer.batch(portion, identify(portion))

    def _touched(self, is_new: Mask) -> Mask:
        """The rows of partitions to which something has come: no others have a match with a new event."""
        kernel, layout = self.step.kernel, self.step.layout
        partition = None
        if self.old > len(is_new) - self.old and not kernel.crosses_partitions:
            partition = partition_of(self.table, layout)
        return np.ones(len(is_new), np.bool_) if partition is None else np.isin(partition, partition[is_new])

    def _found(self, rows: Rows) -> Iterator[Matches]:
        """All matches, some at a time."""
        found = self.step.search.find(rows, most=self.step.most, memory=self.step.memory)
        return (portion for some in found for portion in portions(some))

    def _eager(self, rows: Rows, is_new: Mask, identify: _Identity, before: int, now: int) -> Iterator[Matches]:
        """Matches with a new event, and time-outs that are decided by now."""

        def given(some: Matches) -> Mask:
            found = holds_any(some, is_new)
            if some.missing is None:
                return found
            return np.where(some.missing > 0, self.step.due.is_due(some, rows, before, now), found)

        judged: Iterable[tuple[Matches, Mask]] = ((some, given(some)) for some in self._found(rows))
        if identify.may_find_equals:
            # Equal matches of earlier steps have the first numbers.
            judged = list(judged)
            for some, is_given in judged:
                identify(take(some, ~is_given))
        for some, is_given in judged:
            yield some if is_given.all() else take(some, is_given)

    def _due(self, rows: Rows, before: int, now: int) -> Iterator[Matches]:
        """Matches that are decided by now and were not before."""
        skipping = self.step.skipping
        policy = self.step.due if skipping is None else skipping
        parts = []
        for some in self._found(rows):
            due = policy.is_due(some, rows, before, now)
            if due.any():
                parts.append(some if due.all() else take(some, due))
        if skipping is None or not parts:
            yield from parts
            return
        bits = integers(array_of(self.table, BITS))
        chosen, spent = skipping.chosen(concatenate(parts), rows, bits & 3 == SPENT, before, now)
        place = self.table.column_names.index(BITS)
        self.table = self.table.set_column(place, BITS, pa.array(np.where(spent, bits & ~3 | SPENT, bits)))
        yield chosen


class _Identity:
    """Gives the two halves of the ids of matches; equal ones are counted."""

    def __init__(self, step: Step, table: pa.Table, rows: Rows) -> None:
        first, second = step.layout.digests
        self.digests = integers(array_of(table, first)), integers(array_of(table, second))
        self.made = MadeDigests(table, step.layout)
        self.numbering = None if step.has_id else Numbering(self.digests, rows.partition)

    @property
    def may_find_equals(self) -> bool:
        """Whether the number of a match can be another than 0."""
        return self.numbering is not None and self.numbering.may_find_equals

    def __call__(self, matches: Matches) -> tuple[Integers, Integers]:
        """The halves of the ids."""
        of_made = None if matches.made is None else self.made.of(matches.made)
        first, second = match_hashes(matches, self.digests, of_made)
        numbers = np.zeros(len(matches), np.int64)
        if self.numbering is not None:
            numbers = self.numbering.ordinals(matches, first, second)
        return halves(first, second, numbers)
