"""A step of a shard that runs a program: stratum by stratum, and what one gives are events of the next.

All rules see one table of events, each with bits that say for which variables it is a candidate. A rule that reads
emitted events waits for them: its watermark is that of the inputs, less the longest delay of what it reads
(`tocsin.analysis.rules.delays`). So when it decides, all that lower strata make of the events before its watermark has
been inserted: it never sees half of what one event causes, and nothing it has given is taken back.

code        theory
----        ------
before, now the watermarks of the inputs before and after the step
delay_us    Δ(r), the longest delay of a type that the rule reads; its own watermark is `now − Δ(r)`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

import numpy as np
import pyarrow as pa

from tocsin.kernels.hashes import match_halves
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.matches import take
from tocsin.kernels.model import WORD_BITS, Matches, Rows, has_any
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.sliced.gather import Gatherer, portions
from tocsin.physical.sliced.layout import Layout, Packing
from tocsin.physical.sliced.places import rule_columns
from tocsin.physical.sliced.rows import NullableArray, array_of, flags_of, integers, rows_of, with_flags
from tocsin.physical.sliced.worker import SearchGroup
from tocsin.physical.streaming.clocks import NEVER, Clocks
from tocsin.physical.streaming.programs.emitting import Emission, Insertion
from tocsin.physical.streaming.state import State
from tocsin.physical.streaming.stepping import Report, finished, split_late
from tocsin.plan.due import Due


@dataclass(frozen=True)
class LiveRule:
    """A rule as a shard runs it.

    Attributes
    ----------
    number
        What its matches are called in the result.
    kernel
        Its search; flags are those of the whole program.
    layout
        What the columns of rows mean to it.
    due
        When its matches become due.
    delay_us
        How far its watermark is behind that of the inputs.
    has_id
        Whether a column identifies its events.
    places
        Where the result has its variables; None: its matches are not asked for.
    emissions
        The events that somebody reads, or asks for.
    counted
        The flags of all events among which those of a match have to be neighbours; none: others do not count.
    """

    number: int
    kernel: Kernel
    layout: Layout
    due: Due
    delay_us: int
    has_id: bool
    places: tuple[int, ...] | None
    emissions: tuple[Emission, ...]
    counted: tuple[int, ...] = ()

    def watermark(self, now: int) -> int:
        """Up to when all that it reads is known."""
        return now if now == NEVER else max(now - self.delay_us, NEVER)

    @property
    def bits(self) -> int:
        """The flags of its candidates, and of what counts beside them, as the bits of a number."""
        return _bits((*self.counted, *(source.bit for source in self.kernel.sources)))

    def lives(self) -> Iterator[tuple[int, int]]:
        """For each of these flags, how long an event matters that has it."""
        for source, life in zip(self.kernel.sources, self.due.retention_us, strict=True):
            yield source.bit, life
        yield from ((bit, self.due.longest_us) for bit in self.counted)


@dataclass(frozen=True)
class ProgramStep:
    """What a worker has to know.

    Attributes
    ----------
    strata
        The rules of each stratum.
    together
        For each stratum, those of its rules that are searched for together, by their numbers; others are alone.
    insertion
        How emitted events become rows; None: nobody reads any.
    wanted
        The template whose events are the result; None: matches are.
    lateness_us, most, memory, idle_ms
        As for `tocsin.physical.streaming.stepping.Step`.
    """

    strata: tuple[tuple[LiveRule, ...], ...]
    together: tuple[tuple[SearchGroup, ...], ...]
    insertion: Insertion | None
    wanted: str | None
    lateness_us: tuple[int, ...]
    most: int = MOST_MATCHES_PER_START
    memory: int = MOST_MEMORY
    idle_ms: int | None = None

    @cached_property
    def time(self) -> str:
        """The column of the time."""
        return self.strata[0][0].layout.time

    @property
    def packing(self) -> Packing:
        """Where flags are in rows."""
        return self.strata[0][0].layout.packing

    def begin(self) -> State:
        """A shard that has seen nothing."""
        return State(Clocks.begin(len(self.lateness_us)))

    def run(
        self, state: State, latest: Sequence[Sequence[int]], new: Sequence[pa.Table], now_ms: int = 0
    ) -> tuple[State, list[pa.RecordBatch], pa.Table | None, Report]:
        """One step: the new state, batches of the result, the late events if they are to be shown, what happened."""
        before = state.clocks.watermark
        clocks = state.clocks.told(latest, self.lateness_us, now_ms=now_ms, idle_ms=self.idle_ms)
        arrived, late = split_late(new, self.time, before)
        known = [table for table in (state.rows, arrived) if table is not None and table.num_rows]
        batches: list[pa.RecordBatch] = []
        kept = pa.concat_tables(known).combine_chunks() if known else None
        if kept is not None and clocks.watermark > before:
            kept, batches = self._decided(kept, before, clocks.watermark)
            kept = self._remembered(kept, clocks.watermark)
        return finished(replace(state, clocks=clocks, rows=kept), batches, arrived, late)

    def _decided(self, table: pa.Table, before: int, now: int) -> tuple[pa.Table, list[pa.RecordBatch]]:
        """The table with all that was emitted, and the result of the step."""
        found: list[pa.RecordBatch] = []
        for rules, together in zip(self.strata, self.together, strict=True):
            emitted: dict[str, list[pa.Table]] = {}
            for rule, batch in _Stratum(self, rules, together, table, before, now).matches():
                if rule.places is not None and self.wanted is None:
                    found.append(_shown(rule, batch))
                for emission in rule.emissions:
                    events = emission.events(batch, rule.layout.gathered)
                    emitted.setdefault(emission.type, []).append(events)
                    if emission.type == self.wanted:
                        found += events.to_batches()
            if emitted and self.insertion is not None:
                rows = self.insertion.rows(emitted, table.schema)
                table = pa.concat_tables([table, rows]).combine_chunks()
        return table, found

    def _remembered(self, table: pa.Table, now: int) -> pa.Table:
        """The events that still matter to a rule: each with the flags of the variables for which it does."""
        flags, ts = flags_of(table, self.packing), integers(array_of(table, self.time))
        longest: dict[int, int] = {}
        for rule in (rule for rules in self.strata for rule in rules):
            for bit, life in rule.lives():
                since = max(rule.watermark(now) - life, NEVER)
                longest[bit] = min(longest.get(bit, since), since)
        past = np.zeros_like(flags)
        for bit, since in longest.items():
            word, place = divmod(bit, WORD_BITS) if flags.ndim > 1 else (..., bit)
            past.T[word] |= (ts < since).astype(np.int64) << place
        left = flags & ~past
        matters = has_any(left, _bits(longest))
        return with_flags(table, self.packing, left).filter(pa.array(matters))


class _Stratum:
    """The search for the matches of one stratum that are decided by now and were not before."""

    def __init__(
        self,
        step: ProgramStep,
        rules: Sequence[LiveRule],
        together: Sequence[SearchGroup],
        table: pa.Table,
        before: int,
        now: int,
    ) -> None:
        self.step, self.rules, self.together = step, rules, together
        self.before, self.now = before, now
        # What lies beyond the watermark takes part in nothing that is decided; nor does what other strata read.
        ts, flags = integers(array_of(table, step.time)), flags_of(table, step.packing)
        wanted = reduce(or_, (rule.bits for rule in rules))
        own = has_any(flags, wanted) & (ts < max(rule.watermark(now) for rule in rules))
        self.table = table if own.all() else table.filter(pa.array(own)).combine_chunks()

    def matches(self) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        """The matches of each rule, some at a time."""
        if not self.table.num_rows:
            return
        by_number = {rule.number: rule for rule in self.rules}
        known: dict[object, NullableArray] = {}
        for group in self.together:
            rows = group.rows(self.table, known)
            for place, matches in group.find(rows, most=self.step.most, memory=self.step.memory):
                yield from self._given(by_number[group.members[place].number], matches, rows[place], self.table)
        shared = {member.number for group in self.together for member in group.members}
        for rule in (rule for rule in self.rules if rule.number not in shared):
            table = self._counted(rule)
            own = rows_of(table, rule.kernel, rule.layout, None)
            alone = rule.kernel.find(own, most=self.step.most, memory=self.step.memory)
            yield from self._given(rule, alone, own, table)

    def _counted(self, rule: LiveRule) -> pa.Table:
        """The events that a rule sees: where positions count, those of its own types alone."""
        if not rule.counted:
            return self.table
        own = has_any(flags_of(self.table, self.step.packing), _bits(rule.counted))
        return self.table if own.all() else self.table.filter(pa.array(own)).combine_chunks()

    def _given(
        self, rule: LiveRule, found: Iterator[Matches], rows: Rows, table: pa.Table
    ) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        before, now = rule.watermark(self.before), rule.watermark(self.now)
        due = []
        for portion in (portion for some in found for portion in portions(some)):
            decided = rule.due.due_at(portion, rows)
            is_due = (decided >= before) & (decided < now)
            if is_due.any():
                due.append(portion if is_due.all() else take(portion, is_due))
        if not due:
            return
        # An emitted event has no digest of a rule that does not read it.
        first, second = (integers(array_of(table, name).fill_null(0)) for name in rule.layout.digests)
        gatherer = Gatherer(table, rule.layout)
        # Equal matches are decided at the same time, so that they are counted within a step.
        for portion, one, other in match_halves(due, (first, second), rows.partition, has_id=rule.has_id):
            yield rule, gatherer.batch(portion, (one, other))


def _bits(flags: Iterable[int]) -> int:
    """Flags as the bits of a number."""
    return reduce(or_, (1 << flag for flag in flags))


def _shown(rule: LiveRule, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The matches of a rule in the columns of the result; those of others are added where rows are unpacked."""
    assert rule.places is not None
    columns = rule_columns(batch, rule.number, rule.places)
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])
