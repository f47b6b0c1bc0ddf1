"""The progress of streams that Tocsin matches: a listener for Spark, and a typed object for each micro-batch.

It reads the observed metrics that `match` puts into every streaming DataFrame (`engines.stream.outputs`). It runs
no job, and needs a session only where it is added.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from tocsin.algebra.units import Unit

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

log = logging.getLogger("tocsin")

METRICS = "tocsin"
KEPT = 100
GROWING = "\0growing"  # beside event types
NO_TIME = -(2**63)  # the watermark while an input has had no event


@dataclass(frozen=True)
class Progress:
    """The progress of one micro-batch.

    Attributes
    ----------
    query
        The name of the query, or its id.
    batch
        The number of the micro-batch.
    seen, bad
        Rows that came, heartbeats included; of these, rows without a time.
    events, late
        Events that took part; events that came too late.
    matches
        Matches that were given, before HAVING.
    remembered, largest, bytes
        Events in the state afterwards, events in its largest shard, and its size.
    watermark
        The watermark, in microseconds whatever integer times count; None while an input has had no event.
    duration_ms
        How long the micro-batch took.
    events_per_second
        Rows that came, by how long it took.
    bound
        The most events that may be in the state by the declared rates; None: not known.
    over
        For each event type with a declared rate, how many events came beyond it.
    growing
        Keys whose state grows with the number of events, of `tocsin.acer.rule_cer`.
    at
        When the micro-batch began, in wall-clock time.
    """

    query: str
    batch: int
    seen: int
    bad: int
    events: int
    late: int
    matches: int
    remembered: int
    largest: int
    bytes: int
    watermark: int | None
    duration_ms: int
    events_per_second: float
    bound: int | None = None
    over: Mapping[str, int] = field(default_factory=dict)
    at: str = ""
    growing: int = 0

    @property
    def is_over_bound(self) -> bool:
        """Whether the state holds more than the declared rates allow."""
        return self.bound is not None and self.remembered > self.bound

    @property
    def lag_seconds(self) -> float | None:
        """How far the watermark was behind the wall clock; for time columns that hold real time."""
        if self.watermark is None or not self.at:
            return None
        began = dt.datetime.fromisoformat(self.at)
        return began.timestamp() - self.watermark / 1e6

    @classmethod
    def of(cls, progress: StreamingQueryProgress) -> Progress | None:
        """From Spark's progress; None for a query that Tocsin does not match."""
        row = progress.observedMetrics.get(METRICS)
        if row is None:
            return None
        metrics = row.asDict(recursive=True)
        duration_ms = int(progress.durationMs.get("triggerExecution", 0))
        watermark, tick = metrics["watermark"], Unit(metrics.get("time_unit", "us")).microseconds
        return cls(
            query=progress.name or str(progress.id),
            batch=progress.batchId,
            **{name: metrics[name] for name in COUNTED},
            watermark=None if watermark is None or watermark == NO_TIME else math.floor(watermark * tick),
            duration_ms=duration_ms,
            events_per_second=metrics["seen"] / max(duration_ms, 1) * 1000,
            bound=metrics.get("bound"),
            over=metrics.get("over") or {},
            at=progress.timestamp,
            growing=metrics.get("growing", 0),
        )


COUNTED = ("seen", "bad", "events", "late", "matches", "remembered", "largest", "bytes")


class TocsinListener(StreamingQueryListener):
    """Follows all streams of a session that Tocsin matches: `spark.streams.addListener(tocsin.TocsinListener())`.

    It warns once for each query when its state holds more events than the declared rates allow, and once for each event
    type that comes faster than declared, and once where the state of a `tocsin.acer.rule_cer` grows. Nothing is stopped
    or dropped.

    Parameters
    ----------
    on_progress
        Called with the `Progress` of every micro-batch, on a thread of Spark's.
    on_warning
        Called with the text of a warning; by default it goes to the log `tocsin`.
    keep
        How many are kept in `recent`.

    Attributes
    ----------
    recent
        The progress of the last micro-batches, of all queries, the latest last.
    """

    def __init__(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        *,
        on_warning: Callable[[str], None] = log.warning,
        keep: int = KEPT,
    ) -> None:
        self.on_progress = on_progress
        self.on_warning = on_warning
        self.recent: deque[Progress] = deque(maxlen=keep)
        self._warned: set[tuple[str, str | None]] = set()

    @property
    def last(self) -> Progress | None:
        """The progress of the last micro-batch."""
        return self.recent[-1] if self.recent else None

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Read the metrics of a micro-batch."""
        found = Progress.of(event.progress)
        if found is None:
            return
        self.recent.append(found)
        self._warn(found)
        if self.on_progress is not None:
            self.on_progress(found)

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has come."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Its progress stays in `recent`."""

    def _warn(self, progress: Progress) -> None:
        for name, events in progress.over.items():
            if events and self._is_first(progress.query, name):
                self.on_warning(
                    f"`{name}` comes faster than its declared rate: {events} event{'s'[: events > 1]} beyond it in "
                    f"micro-batch {progress.batch} of {progress.query}. The state may grow beyond its bound; nothing "
                    "is dropped."
                )
        if progress.is_over_bound and self._is_first(progress.query, None):
            self.on_warning(
                f"The state of {progress.query} holds {progress.remembered} events, and the declared rates allow "
                f"{progress.bound}: an input is faster than declared, or behind the others. Nothing is dropped."
            )
        if progress.growing and self._is_first(progress.query, GROWING):
            self.on_warning(
                f"The state of {progress.growing} key{'s'[: progress.growing > 1]} of {progress.query} grows with the "
                "number of events: no memory holds it for ever."
            )

    def _is_first(self, query: str, about: str | None) -> bool:
        is_first = (query, about) not in self._warned
        self._warned.add((query, about))
        return is_first
