"""Process one micro-batch of one shard: store the new events, search what they affect, emit what is due.

Input    the shard's store, the new events as Arrow tables, the clocks with the watermark
Output   an `Outcome`: batches of matches or events, late events, numbers for metrics; the store is updated

A step runs the rules of a program stratum by stratum; a pattern is a program of one rule. A match is emitted exactly
once: with its last event if nothing later can change it (`Due.is_eager`), otherwise when the watermark passes its due
time. The result depends neither on how the stream is cut into micro-batches nor on the order of events within the
allowed lateness. An event that is older than the watermark of the step before is late: it is counted, goes to the late
output and takes no part.

A rule that reads emitted events waits for them: its watermark is that of the inputs less Δ(r), the longest delay of
what it reads (`tocsin.analysis.rules.arrivals`). When its matches are due, all that lower strata emit before its
watermark has been appended, so that nothing is taken back.

Semantics §6, R41. Bounded state: LRP §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from tocsin.engines.stream.affected import StratumSearch
from tocsin.engines.stream.shard_rules import Insertion, Stratum, retention_of
from tocsin.engines.stream.store import Clocks, RowRetention, Store
from tocsin.engines.worker.rows import array_of, integers
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.plan.manifest import EVENT, Layout


@dataclass(frozen=True)
class Report:
    """The metrics of one step; the table in `tocsin.engines.stream.outputs` describes them."""

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
    """What a step returns: batches of the result, the numbers of the step, and late events.

    `late` has the columns of the input; its column `tocsin.plan.manifest.EVENT` holds each event as JSON if the stream
    asks for late events.
    """

    batches: list[pa.RecordBatch]
    report: Report
    late: pa.Table | None = None


@dataclass(frozen=True)
class Step:
    """The program of a shard."""

    strata: tuple[Stratum, ...]
    insertion: Insertion | None = None  # how emitted events become rows; None: no rule reads any
    wanted: str | None = None  # the template whose events are the result; None: matches are
    most: int = MOST_MATCHES_PER_START  # matches of a rule with one start
    memory: int = MOST_MEMORY  # bytes for matches

    @property
    def layout(self) -> Layout:
        """The layout of the first rule; that of others differs in the columns they read."""
        return self.strata[0].rules[0].member.layout

    @cached_property
    def retention(self) -> RowRetention:
        """Which events are retained."""
        return RowRetention(retention_of(rule for stratum in self.strata for rule in stratum.rules), self.layout)

    def run(self, store: Store, clocks: Clocks, new: Sequence[pa.Table]) -> Outcome:
        """Process a micro-batch: update the store, and return what is emitted when time has come to `clocks`."""
        before, now = store.clocks.watermark, clocks.watermark
        store.clocks = clocks
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
        """Yield what a stratum adds to the result; its events are appended to the store."""
        emitted: dict[str, list[pa.Table]] = {}
        limits = {"most": self.most, "memory": self.memory}
        searched = StratumSearch(stratum, self.layout, limits, store, before, now)
        for rule, batch in searched.batches():
            if rule.is_shown and self.wanted is None:
                yield rule.member.in_result(batch)  # columns of others are added where rows are unpacked
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
