"""A shard as Spark sees it: a group with a state, to which its shard batches come as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd
import pyarrow as pa

from tocsin import errors
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.engines.stream import packing
from tocsin.engines.stream.guard import Guard
from tocsin.engines.stream.outputs import FOUND, METRICS, Output, numbers_of
from tocsin.engines.stream.step import Outcome
from tocsin.engines.stream.store import (
    Clocks,
    RowRetention,
    RowStore,
    State,
    from_bytes,
    rows_from_bytes,
    rows_to_bytes,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState


class Steps(Protocol):
    """The program of a shard: rules, or functions of users."""

    @property
    def retention(self) -> RowRetention | None:
        """Which rows are retained; None: the step keeps no rows."""

    def run(self, store: RowStore, clocks: Clocks, new: Sequence[pa.Table]) -> Outcome:
        """Process a micro-batch, after which the store has these clocks."""


@dataclass(frozen=True)
class Shard:
    """The function that Spark calls for every shard of a micro-batch."""

    step: Steps
    plan: str  # the name of the plan that wrote the state
    lateness_us: tuple[int, ...]  # by source, how late its events may come
    idle_ms: int | None = None  # how long a silent source holds back the watermark, by the wall clock; None: always
    start_ms: int = 0  # when the query was made, by the wall clock: no input has been silent for longer
    guard: Guard | None = None
    is_strict: bool = False  # whether a late event stops the stream
    unit: Unit = MICROSECONDS  # of integer times
    outputs: tuple[Output, ...] = ()

    def __call__(
        self, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """One row for each batch of the result and of outputs, and one with the numbers of the step."""
        before = State.from_bytes(state.get[0], self.plan) if state.exists else State.begin(len(self.lateness_us))
        latest, rows, arrived, seen, bad = [], [], [], 0, 0
        for frame in frames:
            latest += [from_bytes(times) for times in frame[packing.LATEST]]
            rows += [table for batch in frame[packing.ROWS] if (table := rows_from_bytes(batch)) is not None]
            arrived += list(frame[packing.ARRIVED])
            seen += int(frame[packing.SEEN].sum())
            bad += int(frame[packing.BAD].sum())
        now_ms = 0 if self.idle_ms is None else state.getCurrentProcessingTimeMs()
        clocks = before.clocks.heard_since(self.start_ms)
        clocks = clocks.advanced(latest, self.lateness_us, now_ms=now_ms, idle_ms=self.idle_ms)
        store = RowStore(before, self.step.retention)
        outcome = self.step.run(store, clocks, rows)
        self._require_in_time(outcome, before)
        after = store.commit()
        over: list[int] = []
        if self.guard is not None:
            known = before.arrived if before.rated == self.guard.name else {}
            counted, over = self.guard.added(known, arrived)
            open_ = self.guard.open(counted, outcome.report.watermark)
            after = replace(after, arrived=open_, rated=self.guard.name)
        written = after.to_bytes(self.plan)
        state.update((written,))
        if self.idle_ms is not None:
            state.setTimeoutDuration(self.idle_ms)
        report = replace(outcome.report, seen=seen, bad=bad, bytes=len(written))
        others = [found for output in self.outputs if (found := output.rows(outcome)) is not None]
        batches = [*outcome.batches, *(batch for table in others for batch in table.to_batches())]
        # No NULLs: pandas, which joins what shards emit, has no type for a column of them.
        names = numbers_of(self.guard)
        written_batches = (rows_to_bytes(pa.Table.from_batches([batch])) for batch in batches if batch.num_rows)
        table = [[batch, *([0] * len(names))] for batch in written_batches]
        table.append([b"", *(getattr(report, name) for name in METRICS), *over])
        yield pd.DataFrame(table, columns=[FOUND, *names])

    def _require_in_time(self, outcome: Outcome, before: State) -> None:
        late = outcome.report.late
        if self.is_strict and late:
            raise errors.LateEventsError(
                f"{late} event{'s'[: late > 1]} came too late: all had been told of the time before "
                f"{before.clocks.watermark} {self.unit.symbol}.",
                hint='the micro-batch is not committed. Go on without `late="fail"`, and late events are counted; with '
                "a larger `lateness=` others will not be late.",
            )
