"""A shard as Spark sees it: a group with a state, to which its parcels come as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd
import pyarrow as pa

from tocsin import errors
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.physical.streaming import packing
from tocsin.physical.streaming.clocks import from_bytes
from tocsin.physical.streaming.guard import Guard
from tocsin.physical.streaming.state import State, rows_from_bytes
from tocsin.physical.streaming.stepping import Report

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

FOUND = "found"
SEEN, BAD, EVENTS, LATE, MATCHES, REMEMBERED, GROWING, BYTES, WATERMARK = (
    "seen",
    "bad",
    "events",
    "late",
    "matches",
    "remembered",
    "growing",
    "bytes",
    "watermark",
)
NUMBERS = (SEEN, BAD, EVENTS, LATE, MATCHES, REMEMBERED, GROWING, BYTES, WATERMARK)


class Steps(Protocol):
    """What a shard does with its parcels: for a pattern, or for a program."""

    @property
    def idle_ms(self) -> int | None:
        """After how long a silent source holds time back no more."""

    def begin(self) -> State:
        """A shard that has seen nothing."""

    def run(
        self, state: State, latest: Sequence[Sequence[int]], new: Sequence[pa.Table], now_ms: int = 0
    ) -> tuple[State, list[pa.RecordBatch], pa.Table | None, Report]:
        """One step: the new state, batches of the result, the late events if they are to be shown, what happened."""


def numbers_of(guard: Guard | None) -> tuple[str, ...]:
    """The numbers that a step reports: with declared rates, one more for each type that has one."""
    return (*NUMBERS, *(f"over_{number}" for number in range(len(guard.types) if guard is not None else 0)))


@dataclass(frozen=True)
class Shard:
    """The function that Spark calls for every shard of a micro-batch.

    Attributes
    ----------
    step
        What a step does.
    plan
        The name of the plan that wrote the state.
    guard
        What was declared of the rates of event types.
    start_ms
        When the query was made, by the clock on the wall: no input has been silent for longer.
    is_strict
        Whether an event that comes too late stops the stream.
    unit
        The unit of integer times.
    """

    step: Steps
    plan: str
    guard: Guard | None = None
    start_ms: int = 0
    is_strict: bool = False
    unit: Unit = MICROSECONDS

    def __call__(
        self, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        """One row for each batch of matches, and one that reports."""
        before = State.from_bytes(state.get[0], self.plan) if state.exists else self.step.begin()
        latest, rows, arrived, seen, bad = [], [], [], 0, 0
        for frame in frames:
            latest += [from_bytes(told) for told in frame[packing.LATEST]]
            rows += [table for parcel in frame[packing.PARCEL] if (table := rows_from_bytes(parcel)) is not None]
            arrived += list(frame[packing.ARRIVED])
            seen += int(frame[packing.SEEN].sum())
            bad += int(frame[packing.BAD].sum())
        idle_ms = self.step.idle_ms
        now_ms = 0 if idle_ms is None else state.getCurrentProcessingTimeMs()
        before = replace(before, clocks=before.clocks.heard_since(self.start_ms))
        after, batches, late, report = self.step.run(before, latest, rows, now_ms)
        if self.is_strict and report.late:
            raise errors.LateEventsError(
                f"{report.late} event{'s'[: report.late > 1]} came too late: all had been told of the time before "
                f"{before.clocks.watermark} {self.unit.symbol}.",
                hint='the micro-batch is not committed. Go on without `late="fail"`, and late events are counted; with '
                "a larger `lateness=` others will not be late.",
            )
        over: list[int] = []
        if self.guard is not None:
            known = before.arrived if before.rated == self.guard.name else {}
            counted, over = self.guard.told(known, arrived)
            after = replace(after, arrived=self.guard.open(counted, report.watermark), rated=self.guard.name)
        written = after.to_bytes(self.plan)
        state.update((written,))
        if idle_ms is not None:
            state.setTimeoutDuration(idle_ms)
        numbers = [seen, bad, report.events, report.late, report.matches, report.remembered, report.growing]
        # No NULLs: pandas, which joins what shards give, does not know of which type a column of them is.
        found = [*batches, *(late.to_batches() if late is not None else ())]
        names = numbers_of(self.guard)
        table = [[_to_bytes(batch), *([0] * len(names))] for batch in found]
        table.append([b"", *numbers, len(written), report.watermark, *over])
        yield pd.DataFrame(table, columns=[FOUND, *names])


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())
