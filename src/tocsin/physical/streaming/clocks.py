"""How far time has come: for every source the latest time it has told of, and the watermark that follows.

A source is one DataFrame. It may still send events that are up to its lateness older than the latest one, and none that
are older. So everything before `min over the sources of (latest − lateness)` is known: that is the watermark, and it is
exclusive, since an event at this very time may still come. It never goes back.

Spark's own watermark is not used: it comes one micro-batch later, and it is held back by a filter that Spark moves
below it. Ours is carried by every parcel, so that all shards agree on it within the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

NEVER = -(2**63)  # a source that has told nothing yet


@dataclass(frozen=True)
class Clocks:
    """What time it is.

    Attributes
    ----------
    latest
        For every source, the latest time it has told of, in microseconds.
    watermark
        All events before it are known.
    """

    latest: tuple[int, ...]
    watermark: int = NEVER

    @staticmethod
    def begin(sources: int) -> Clocks:
        """Nothing is known yet.

        Examples
        --------
        >>> clocks = Clocks.begin(2).told([(50, NEVER)], [10, 0])
        >>> clocks.watermark == NEVER, clocks.told([(NEVER, 30)], [10, 0]).watermark
        (True, 30)
        """
        return Clocks((NEVER,) * sources)

    def told(self, latest: Iterable[Sequence[int]], lateness_us: Sequence[int]) -> Clocks:
        """After what parcels tell."""
        found = tuple(max(times) for times in zip(self.latest, *latest, strict=True))
        known = [time - late for time, late in zip(found, lateness_us, strict=True) if time != NEVER]
        watermark = min(known) if len(known) == len(found) else NEVER
        return replace(self, latest=found, watermark=max(self.watermark, watermark))


def to_bytes(latest: Sequence[int]) -> bytes:
    """The times of a parcel."""
    return np.array(latest, "<i8").tobytes()


def from_bytes(told: bytes) -> tuple[int, ...]:
    """What `to_bytes` wrote.

    Examples
    --------
    >>> from_bytes(to_bytes([5, NEVER])) == (5, NEVER)
    True
    """
    return tuple(np.frombuffer(told, "<i8").tolist())
