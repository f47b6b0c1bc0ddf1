"""T-CER and R-CER: events are folded one by one with the step of an automaton as f_C (000 §4, §5).

Nothing here knows the automaton: in each window the fold begins with an empty state, every event may begin a run, and
of the sequences that come out those are reported that the next window does not hold too. Without windows there is one
fold over all events of a key, whose state is bounded by how many events a match can have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.aggregates.assigned import assigned, reported
from tocsin.kernels.aggregates.windows import Windows, windows_of
from tocsin.kernels.layout import Merged
from tocsin.kernels.model import Rows
from tocsin.kernels.runs.found import Paths
from tocsin.kernels.runs.kernel import RunKernel, run_kernel


@dataclass(frozen=True, kw_only=True)
class FoldedRuns(RunKernel):
    """A query as T-CER, or where it has no windows as R-CER. It can be pickled."""

    windows: Windows | None = None

    def _events(self, rows: Rows) -> Merged:
        """The events of every window in order, each of which may begin a run."""
        if self.windows is None:
            return super()._events(rows)
        if rows.slice is None:
            taken, was = assigned(rows, self.windows)
            events = super()._events(taken)
            events = replace(events, rows=was[events.rows])
        else:  # the shuffle has sent them to their windows
            assert rows.width_us == self.windows.advance_us
            events = super()._events(rows)
        groups = len(events.group_from)
        first, last = (int(events.times.min()), int(events.times.max())) if groups else (0, 0)
        return replace(events, own_low=np.full(groups, first), own_high=np.full(groups, last))

    def _paths(self, rows: Rows, events: Merged, most: int, memory: int, jit: bool | None) -> Iterator[Paths]:
        found = super()._paths(rows, events, most, memory, jit)
        return found if self.windows is None else self._reported(found, events, self.windows)

    def _reported(self, found: Iterator[Paths], events: Merged, windows: Windows) -> Iterator[Paths]:
        for paths in found:
            kept = paths.take(reported(events.times[paths.starts], events.times[paths.ends], windows))
            if len(kept):
                yield kept


def folded(bound: BoundQuery) -> FoldedRuns:
    """Compile a query to T-CER, or without a window to R-CER."""
    made = run_kernel(bound)
    return FoldedRuns(**vars(made), windows=windows_of(made))
