"""The memory of a shard as a step uses it: events are appended, searched, marked and evicted.

A step neither knows how events are kept between micro-batches nor which of them a search really needs: a store decides.
`tocsin.physical.streaming.state.RowStore` keeps all rows in one table and returns all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from tocsin.kernels.model import Mask
from tocsin.physical.sliced.rows import array_of, flags_of, integers, partition_of, with_flags
from tocsin.physical.streaming.clocks import Clocks
from tocsin.plan.due import Due, Retention
from tocsin.plan.layout import Layout


class Affected(NamedTuple):
    """Events that a search must see, and which of them came in this step."""

    rows: pa.Table
    is_new: Mask


class Store(Protocol):
    """The memory of a shard during one step."""

    clocks: Clocks

    def append(self, rows: pa.Table) -> None:
        """Add events: those that have arrived, and those that rules emit."""

    def affected(self, due: Sequence[Due], before: int, now: int) -> Affected | None:
        """Return the events of matches that may be emitted in this step, or more; None when there are none.

        Parameters
        ----------
        due
            When the matches of the rules become due that search them.
        before, now
            The watermarks of the inputs before and after the step.
        """

    def mark(self, spent: Mask) -> None:
        """Mark events that no match may start with any more; the mask is for the rows that `affected` returned last."""

    def expire(self, watermark: int) -> None:
        """Evict the events that no match can need."""

    @property
    def size(self) -> int:
        """How many events there are."""


@dataclass(frozen=True)
class RowRetention:
    """Which rows a shard retains: a `Retention` for rows of this layout."""

    retention: Retention
    layout: Layout

    def __call__(self, rows: pa.Table, watermark: int) -> pa.Table:
        """The rows that are retained, each with the flags for which it is."""
        flags = flags_of(rows, self.layout.packing)
        by_number = self.retention.last_events is not None
        live, left = self.retention.live(
            integers(array_of(rows, self.layout.time)),
            flags,
            watermark,
            partition_of(rows, self.layout) if by_number else None,
        )
        if left is not flags:
            rows = with_flags(rows, self.layout.packing, left)
        return rows if live.all() else rows.filter(pa.array(live))
