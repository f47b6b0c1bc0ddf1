"""A for patterns that no automaton recognises: f_U collects the events of a window, f_O searches them (000 §2.1).

The search is the kernel's, and it is asked for all windows of a task at once; they do not see each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.aggregates.assigned import assigned, renumbered
from tocsin.kernels.aggregates.windows import Windows, windows_of
from tocsin.kernels.kernel import Kernel, kernel
from tocsin.kernels.model import Matches, Rows
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY


@dataclass(frozen=True, kw_only=True)
class WindowSearch(Kernel):
    """A query as an aggregate. It can be pickled."""

    windows: Windows

    def find(
        self,
        rows: Rows,
        *,
        most: int = MOST_MATCHES_PER_START,
        memory: int = MOST_MEMORY,
        jit: bool | None = None,
    ) -> Iterator[Matches]:
        """The matches of a task's rows, as `Kernel.find` gives them: a window reports those that it owns."""
        if rows.slice is not None:  # the shuffle has sent them to their windows
            assert rows.width_us == self.windows.advance_us
            return super().find(rows, most=most, memory=memory, jit=jit)
        taken, was = assigned(rows, self.windows)
        found = super().find(taken, most=most, memory=memory, jit=jit)
        return (renumbered(matches, was) for matches in found)


def searched(bound: BoundQuery) -> WindowSearch:
    """Compile a query of bounded span to an aggregate."""
    made = kernel(bound)
    windows = windows_of(made)
    assert windows is not None
    return WindowSearch(**vars(made), windows=windows)
