"""Γ(WA, WS): windows of one size at regular distances (000 §2.1, §4); known without arrays.

code          theory
----          ------
advance_us    WA
size_us       WS
longest_us    D: whatever decides a match lies within D, its events and what else could change it
before_us     how far before its start that reaches; window n is [n·WA − before, n·WA − before + WS)

A match is reported by the last window that holds all of that. WA ≤ WS − D + δ and WS ≥ D make sure that there is one
(000, Theorem 2), and then it is the window with n·WA ≤ start < (n + 1)·WA: in time slices of the width WA, the slice
that owns the start. δ is a microsecond.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.kernels.reach import Reach

LEAST_ADVANCE_US = 2  # as narrow as time slices get


@dataclass(frozen=True)
class Windows:
    """Windows of one size at regular distances; see the module."""

    advance_us: int
    size_us: int
    before_us: int = 0

    def holds(self, longest_us: int) -> bool:
        """Whether everything within `longest_us` lies in a window, wherever it begins.

        Examples
        --------
        >>> [Windows(advance, 20).holds(10) for advance in (1, 11, 12)]
        [True, True, False]
        """
        return self.advance_us <= self.size_us - longest_us + 1 and self.size_us >= longest_us


def longest_us(reach: Reach) -> int:
    """D of a query of bounded span: everything that decides a match lies within it."""
    return before_us(reach) + reach.ahead_us


def before_us(reach: Reach) -> int:
    """How far before the start of a match that reaches: `reach` leaves out the end of what it says."""
    return max(reach.back_us - 1, 0)


def windows_of(reach: Reach) -> Windows | None:
    """Windows of 2·D every D, so that an event is in two of them; None for a query without a bounded span."""
    if not reach.can_slice:
        return None
    longest = longest_us(reach)
    advance = max(longest, LEAST_ADVANCE_US)
    return Windows(advance, advance + longest, before_us(reach))
