"""Watermarks: for every source its latest time, and the watermark that follows from them.

A source is one DataFrame. Its events may be up to its lateness older than the latest one, and no older. So everything
before `min over the sources of (latest − lateness)` has arrived: that is the watermark. It is exclusive, since an event
at this very time may still come, and it never goes back.

A silent source holds back the watermark. With an idle time-out, a source that has been silent for so long by the wall
clock is left out of the minimum until it sends again; its events before the watermark are then late. When all sources
are idle, the watermark follows the most advanced one.

Spark's own watermark is not used: it comes one micro-batch later, and a filter that Spark moves below it holds it back.
Every shard batch carries ours, so that all shards agree on it within the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

NEVER = -(2**63)  # the latest time of a source that has sent nothing


@dataclass(frozen=True)
class Clocks:
    """The latest times and the watermark: all events before it have arrived."""

    latest: tuple[int, ...]  # by source, in microseconds
    watermark: int = NEVER
    heard_ms: tuple[int, ...] = ()  # when each source has sent last, by the wall clock; empty before the first step

    @staticmethod
    def begin(sources: int) -> Clocks:
        """Clocks of sources that have sent nothing.

        >>> clocks = Clocks.begin(2).advanced([(50, NEVER)], [10, 0])
        >>> clocks.watermark == NEVER, clocks.advanced([(NEVER, 30)], [10, 0]).watermark
        (True, 30)
        """
        return Clocks((NEVER,) * sources)

    def advanced(
        self,
        latest: Iterable[Sequence[int]],
        lateness_us: Sequence[int],
        *,
        now_ms: int = 0,
        idle_ms: int | None = None,
    ) -> Clocks:
        """The clocks after a micro-batch, from the latest times that each of its tasks has seen.

        >>> clocks = Clocks.begin(2).advanced([(50, NEVER)], [0, 0], now_ms=0, idle_ms=9)
        >>> [clocks.advanced([], [0, 0], now_ms=now, idle_ms=9).watermark for now in (8, 9)] == [NEVER, 50]
        True
        >>> clocks.advanced([(60, NEVER)], [0, 0], now_ms=9, idle_ms=9).watermark
        60
        """
        before = self.heard_ms or (now_ms,) * len(self.latest)
        tasks = list(latest)
        found = tuple(max(times) for times in zip(self.latest, *tasks, strict=True))
        speaks = [any(times[source] != NEVER for times in tasks) for source in range(len(found))]
        heard = tuple(now_ms if is_heard else at for is_heard, at in zip(speaks, before, strict=True))
        known = [NEVER if time == NEVER else time - late for time, late in zip(found, lateness_us, strict=True)]
        active = [time for time, at in zip(known, heard, strict=True) if idle_ms is None or now_ms - at < idle_ms]
        return Clocks(found, max(self.watermark, min(active, default=max(known))), heard)

    def heard_since(self, start_ms: int) -> Clocks:
        """The clocks of a query that starts now: no source could send while it did not run."""
        return replace(self, heard_ms=tuple(max(at, start_ms) for at in self.heard_ms))


def to_bytes(latest: Sequence[int]) -> bytes:
    """Write the latest times that a task has seen."""
    return np.array(latest, "<i8").tobytes()


def from_bytes(written: bytes) -> tuple[int, ...]:
    """Read what `to_bytes` wrote.

    >>> from_bytes(to_bytes([5, NEVER])) == (5, NEVER)
    True
    """
    return tuple(np.frombuffer(written, "<i8").tolist())
