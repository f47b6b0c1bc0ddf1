"""Process one micro-batch of one shard: store the new events, search what they affect, emit what is due.

Input    the shard's store, the new events as Arrow tables, the latest time of every source
Output   an `Outcome`: batches of matches or events, late events, numbers for metrics; the store is updated

A step runs the rules of a program stratum by stratum; a pattern is a program of one rule. A match is emitted exactly
once: with its last event if nothing later can change it (`Due.is_eager`), otherwise when the watermark passes its due
time. The result depends neither on how the stream is cut into micro-batches nor on the order of events within the
allowed lateness. An event that is older than the watermark of the step before is late: it is counted, goes to the late
output and takes no part.

A rule that reads emitted events waits for them: its watermark is that of the inputs less Δ(r), the longest delay of
what it reads (`tocsin.analysis.rules.delays`). When its matches are due, all that lower strata emit before its
watermark has been appended, so that nothing is taken back.

Semantics §6, R41. Bounded state: LRP §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

import numpy as np
import pyarrow as pa

from tocsin.kernels.hashes import holds_any
from tocsin.kernels.matches import concatenate, take
from tocsin.kernels.model import Integers, Mask, Matches, Rows, has_any
from tocsin.kernels.searches import Search
from tocsin.language.ast import Skip
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.sliced.gather import portions
from tocsin.physical.sliced.layout import BITS, EVENT, SPENT, Layout
from tocsin.physical.sliced.places import rule_columns
from tocsin.physical.sliced.rows import NullableArray, array_of, flags_of, integers, partition_of
from tocsin.physical.sliced.worker import Member, SearchGroup
from tocsin.physical.streaming.clocks import NEVER
from tocsin.physical.streaming.emitting import Emission, Insertion
from tocsin.physical.streaming.skipping import Skipping, without_policies
from tocsin.physical.streaming.store import Affected, RowRetention, Store
from tocsin.plan.due import Due, Retention

MOST_SEEN = 0.75  # rows are copied to search fewer of them only where that leaves no more than this share


@dataclass(frozen=True)
class Report:
    """Numbers of one step.

    Attributes
    ----------
    events
        New events that took part.
    late
        Events that came too late.
    matches
        Matches, or other rows, that were emitted.
    remembered
        Events in the state afterwards.
    watermark
        The watermark of the inputs.
    growing
        Keys whose state grows with the number of events.
    seen, bad
        Rows that the inputs brought, and those of them without a time.
    bytes
        The size of the state afterwards.
    """

    events: int
    late: int
    matches: int
    remembered: int
    watermark: int
    growing: int = 0
    seen: int = 0
    bad: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """What a step emits: batches of the result, late events, and its numbers."""

    batches: list[pa.RecordBatch]
    report: Report
    late: pa.Table | None = None


@dataclass(frozen=True)
class LiveRule:
    """A rule as a shard runs it.

    Attributes
    ----------
    member
        Its search, and how what it finds is written.
    due
        When its matches become due.
    skipping
        Its after-match policy; None: there is none, or the search applies it.
    delay_us
        Δ(r): how far its watermark is behind that of the inputs.
    is_shown
        Whether its matches are part of the result.
    emissions
        The events that other rules read, or that are the result.
    counted
        The flags of all events among which those of a match have to be neighbours; none: rows are of its types alone.
    """

    member: Member
    due: Due
    skipping: Skipping | None = None
    delay_us: int = 0
    is_shown: bool = True
    emissions: tuple[Emission, ...] = ()
    counted: tuple[int, ...] = ()

    def watermark(self, now: int) -> int:
        """Up to when all that it reads has arrived."""
        return now if now == NEVER else max(now - self.delay_us, NEVER)

    @property
    def counts_unflagged(self) -> bool:
        """Whether events without a flag take part: they count for positions."""
        return self.member.search.counts_every_event and not self.counted

    @property
    def flags(self) -> tuple[int, ...]:
        """The flags of its candidates, and of what counts beside them."""
        return (*self.counted, *(source.bit for source in self.member.search.sources))

    def retention(self) -> Iterator[tuple[int, int]]:
        """For each of these flags, how long before the watermark of the inputs an event is retained."""
        for source, life in zip(self.member.search.sources, self.due.retention_us, strict=True):
            yield source.bit, life + self.delay_us
        yield from ((bit, self.due.longest_us + self.delay_us) for bit in self.counted)


def live_rule(search: Search, layout: Layout, due: Due, *, has_id: bool = False) -> LiveRule:
    """A pattern as the only rule of a program: its matches have columns of their own."""
    query = search.query
    if query.after_match.skip is Skip.REUSE:
        return LiveRule(Member(search, layout, has_id), due)
    skipping = Skipping(query.after_match, query.output, due)
    return LiveRule(Member(without_policies(search), layout, has_id), due, skipping)


@dataclass(frozen=True)
class Stratum:
    """Rules that do not read each other's events, and the groups in which they are searched for."""

    rules: tuple[LiveRule, ...]
    groups: tuple[SearchGroup, ...]


def alone(rule: LiveRule) -> tuple[Stratum, ...]:
    """The strata of a program of one rule."""
    return (Stratum((rule,), (SearchGroup((rule.member,)),)),)


@dataclass(frozen=True)
class Step:
    """The program of a shard.

    Attributes
    ----------
    strata
        The rules.
    lateness_us
        How late the events of each source may come.
    insertion
        How emitted events become rows; None: no rule reads any.
    wanted
        The template whose events are the result; None: matches are.
    most
        How many matches of a rule may have one start.
    memory
        How many bytes may be held for matches.
    idle_ms
        After how long by the wall clock a silent source no longer holds back the watermark; None: never.
    """

    strata: tuple[Stratum, ...]
    lateness_us: tuple[int, ...]
    insertion: Insertion | None = None
    wanted: str | None = None
    most: int = MOST_MATCHES_PER_START
    memory: int = MOST_MEMORY
    idle_ms: int | None = None

    @property
    def rules(self) -> list[LiveRule]:
        """The rules of all strata."""
        return [rule for stratum in self.strata for rule in stratum.rules]

    @property
    def layout(self) -> Layout:
        """The layout of the first rule; that of others differs in the columns they read."""
        return self.strata[0].rules[0].member.layout

    @cached_property
    def retention(self) -> RowRetention:
        """Which events are retained."""
        rules = self.rules
        last_events = next((rule.due.last_events for rule in rules if rule.due.last_events is not None), None)
        flags: dict[int, int] = {}
        for bit, life in (pair for rule in rules if last_events is None for pair in rule.retention()):
            flags[bit] = max(flags.get(bit, life), life)
        unflagged = [rule.due.longest_us + rule.delay_us for rule in rules if rule.counts_unflagged]
        return RowRetention(Retention(flags, max(unflagged, default=None), last_events), self.layout)

    def run(self, store: Store, latest: Sequence[Sequence[int]], new: Sequence[pa.Table], now_ms: int = 0) -> Outcome:
        """Process a micro-batch.

        Parameters
        ----------
        store
            The memory of the shard, which is updated.
        latest
            The latest time of every source, as each task of the micro-batch has seen it.
        new
            The new events.
        now_ms
            The wall-clock time.
        """
        before = store.clocks.watermark
        store.clocks = store.clocks.advanced(latest, self.lateness_us, now_ms=now_ms, idle_ms=self.idle_ms)
        now = store.clocks.watermark
        arrived, late = split_late(new, self.layout.time, before)
        if arrived is not None and arrived.num_rows:
            store.append(arrived)
        batches = [batch for stratum in self.strata for batch in self._emitted(stratum, store, before, now)]
        store.expire(now)
        report = Report(
            events=0 if arrived is None else arrived.num_rows,
            late=0 if late is None else late.num_rows,
            matches=sum(batch.num_rows for batch in batches),
            remembered=store.size,
            watermark=now,
        )
        return Outcome(batches, report, late)

    def _emitted(self, stratum: Stratum, store: Store, before: int, now: int) -> Iterator[pa.RecordBatch]:
        """What a stratum adds to the result; its events are appended to the store."""
        emitted: dict[str, list[pa.Table]] = {}
        searched = _Search(self, stratum, store, before, now)
        for rule, batch in searched.batches():
            if rule.is_shown and self.wanted is None:
                yield _in_result(rule.member, batch)
            for emission in rule.emissions:
                events = emission.events(batch, rule.member.layout.gathered)
                emitted.setdefault(emission.type, []).append(events)
                if emission.type == self.wanted:
                    yield from events.to_batches()
        if emitted and self.insertion is not None:
            store.append(self.insertion.rows(emitted, searched.schema))


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


def _in_result(member: Member, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The matches of a rule in the columns of the result; those of others are added where rows are unpacked."""
    if member.places is None:
        return batch
    columns = rule_columns(batch, member.number, member.places)
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def _bits(flags: Iterable[int]) -> int:
    """Flags as the bits of a number."""
    return reduce(or_, (1 << flag for flag in flags), 0)


class _View:
    """Rows of the store that a group searches.

    Attributes
    ----------
    table, is_new
        The rows, and which of them came in this step.
    places
        Their numbers in the store; None: they are all of them.
    """

    def __init__(self, table: pa.Table, is_new: Mask, places: Integers | None = None) -> None:
        self.table, self.is_new, self.places = table, is_new, places

    def where(self, chosen: Mask, *, most: float = 1.0) -> _View:
        """Some of the rows; all of them where these are more than a share."""
        if chosen.all() or chosen.mean() > most:
            return self
        places = np.flatnonzero(chosen)
        return _View(
            self.table.filter(pa.array(chosen)).combine_chunks(),
            self.is_new[chosen],
            places if self.places is None else self.places[places],
        )


class _Search:
    """The search for the matches of one stratum that are emitted in this step."""

    def __init__(self, step: Step, stratum: Stratum, store: Store, before: int, now: int) -> None:
        self.step, self.stratum, self.store = step, stratum, store
        self.before, self.now = before, now
        self.schema, self.size = pa.schema([]), 0

    def batches(self) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        """What the rules write, some at a time."""
        rules = self.stratum.rules
        has_moved, is_eager = self.now > self.before, any(rule.due.is_eager for rule in rules)
        if not has_moved and not is_eager:
            return
        affected = self.store.affected([rule.due for rule in rules], self.before, self.now)
        if affected is None:
            return
        self.schema, self.size = affected.rows.schema, affected.rows.num_rows
        view = _View(*affected) if is_eager else self._possible(affected)
        if not view.table.num_rows:
            return
        by_number = {rule.member.number: rule for rule in rules}
        known: dict[object, NullableArray] = {}
        for group in self.stratum.groups:
            own = [by_number[member.number] for member in group.members]
            yield from self._group(group, own, view, known)

    def _possible(self, affected: Affected) -> _View:
        """Without what other strata read, and what lies beyond the watermark: it takes part in nothing that is due."""
        rules, step = self.stratum.rules, self.step
        ts = integers(array_of(affected.rows, step.layout.time))
        possible: Mask = ts < max(rule.watermark(self.now) for rule in rules)
        if not any(rule.counts_unflagged for rule in rules):
            wanted = _bits(flag for rule in rules for flag in rule.flags)
            possible &= has_any(flags_of(affected.rows, step.layout.packing), wanted)
        return _View(*affected).where(possible, most=MOST_SEEN)

    def _group(
        self, group: SearchGroup, rules: Sequence[LiveRule], view: _View, known: dict[object, NullableArray]
    ) -> Iterator[tuple[LiveRule, pa.RecordBatch]]:
        step = self.step
        if group.loops is None:  # one rule, which may see fewer rows
            (rule,) = rules
            seen = self._seen(rule, view)
            if seen is None:
                return
            view, known = seen, {}
        rows = group.rows(view.table, known)
        if group.members[0].summarizes:
            (rule,) = rules
            span = rule.due.range_due(rule.watermark(self.before), rule.watermark(self.now))
            if span is not None:
                owned = replace(rows[0], owned=span)
                for batch in rule.member.run(view.table, owned, most=step.most, memory=step.memory):
                    yield rule, batch
            return
        for place, found in group.find(rows, most=step.most, memory=step.memory):
            rule = rules[place]
            some = (portion for matches in found for portion in portions(matches))
            given = self._eager if rule.due.is_eager else self._due
            for batch in given(rule, some, rows[place], view):
                yield rule, batch

    def _seen(self, rule: LiveRule, view: _View) -> _View | None:
        """The rows that a rule sees by itself; None: nothing of it can be emitted."""
        if rule.counted:  # where positions count, the events of its own types alone
            flags = flags_of(view.table, self.step.layout.packing)
            return view.where(has_any(flags, _bits(rule.counted)))
        if not rule.due.is_eager:
            return view
        waits, has_new = rule.due.window_us is not None, bool(view.is_new.any())
        if not (has_new or (waits and self.now > self.before)):
            return None
        return view if waits else view.where(_touched(rule.member, view))

    def _eager(self, rule: LiveRule, found: Iterable[Matches], rows: Rows, view: _View) -> Iterator[pa.RecordBatch]:
        """Matches with a new event, and time-outs that are due by now."""
        member = rule.member

        def given(some: Matches) -> Mask:
            holds = holds_any(some, view.is_new)
            if some.missing is None:
                return holds
            return np.where(some.missing > 0, rule.due.is_due(some, rows, self.before, self.now), holds)

        judged: Iterable[tuple[Matches, Mask]] = ((some, given(some)) for some in found)
        identify = member.identity(view.table, rows)
        if identify.may_find_equals:
            # Equal matches of earlier steps have the first numbers.
            judged = list(judged)
            for some, is_given in judged:
                identify(take(some, ~is_given))
        emitted = (some if is_given.all() else take(some, is_given) for some, is_given in judged)
        return member.written(emitted, view.table, rows, identify)

    def _due(self, rule: LiveRule, found: Iterable[Matches], rows: Rows, view: _View) -> Iterator[pa.RecordBatch]:
        """Matches that are due by now and were not before; equal ones are due at the same time."""
        before, now = rule.watermark(self.before), rule.watermark(self.now)
        policy = rule.due if rule.skipping is None else rule.skipping
        parts = []
        for some in found:
            is_due = policy.is_due(some, rows, before, now)
            if is_due.any():
                parts.append(some if is_due.all() else take(some, is_due))
        if rule.skipping is not None and parts:
            spent = integers(array_of(view.table, BITS)) & 3 == SPENT
            chosen, spent = rule.skipping.chosen(concatenate(parts), rows, spent, before, now)
            self._mark(spent, view)
            parts = [chosen]
        return rule.member.written(parts, view.table, rows) if parts else iter(())

    def _mark(self, spent: Mask, view: _View) -> None:
        if view.places is None:
            self.store.mark(spent)
            return
        of_all = np.zeros(self.size, np.bool_)
        of_all[view.places] = spent
        self.store.mark(of_all)


def _touched(member: Member, view: _View) -> Mask:
    """The rows of partitions to which something has come: no others have a match with a new event."""
    is_new = view.is_new
    partition = None
    if 2 * np.count_nonzero(is_new) < len(is_new) and not member.search.crosses_partitions:
        partition = partition_of(view.table, member.layout)
    return np.ones(len(is_new), np.bool_) if partition is None else np.isin(partition, partition[is_new])
