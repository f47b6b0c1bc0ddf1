"""Windows over event time: Γ(WA, WS) of paper 000 §2.1, in microseconds, and the slices that T-CER's fast path cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tocsin import errors
from tocsin.acer.clock import Clock, length

NEVER, FOREVER = -(2**65), 2**65  # before the beginning and after the end of every window
LONGEST = 2**62
WINDOWS_PER_BLOCK = 16


@dataclass(frozen=True)
class Windows:
    """The windows [i·WA, i·WA + WS) for all integers i.

    >>> sliding = Windows(advance=2, size=5, unit=1)
    >>> [(sliding.start(number), sliding.end(number)) for number in sliding.holding(6)]
    [(2, 7), (4, 9), (6, 11)]
    >>> sliding.time(1)
    6
    """

    # WA and WS.
    advance: int
    size: int
    unit: int = 1  # δ, the granularity of event time: results of a window have the last time that still lies in it

    def start(self, number: int) -> int:
        """The left boundary of a window, which belongs to it."""
        return number * self.advance

    def end(self, number: int) -> int:
        """The right boundary of a window, which does not."""
        return number * self.advance + self.size

    def time(self, number: int) -> int:
        """The time of what a window gives: its right boundary − δ."""
        return self.end(number) - self.unit

    def first(self, time: int) -> int:
        """The first window that ends after a time: it holds it, unless it lies between two windows."""
        return (time - self.size) // self.advance + 1

    def last(self, time: int) -> int:
        """The last window that begins at a time or before it."""
        return time // self.advance

    def holding(self, time: int) -> range:
        """The windows that hold a time."""
        return range(self.first(time), self.last(time) + 1)

    @property
    def overlap(self) -> bool:
        """Whether an event may lie in several windows."""
        return self.advance < self.size

    @property
    def per_block(self) -> int:
        """How many windows one task takes, so that few events are needed by two tasks."""
        return max(1, -(-WINDOWS_PER_BLOCK * self.size // self.advance))


class Window(NamedTuple):
    """A window as a user's function sees it.

    Attributes
    ----------
    key
        The values of the key columns; empty without a key.
    start_us, end_us
        Its boundaries in microseconds; the end does not belong to it.
    clock
        How times are shown.
    """

    key: tuple[Any, ...]
    start_us: int
    end_us: int
    clock: Clock = Clock.INTEGER

    @property
    def start(self) -> Any:
        """Its left boundary, as the time column has it."""
        return self.clock.shown(self.start_us)

    @property
    def end(self) -> Any:
        """Its right boundary, as the time column has it."""
        return self.clock.shown(self.end_us)


def checked(advance: int, size: int, unit: int) -> Windows:
    """The windows a user asks for; refuses a length that is not a positive multiple of the granularity."""
    if unit < 1:
        raise errors.InvalidOptionError(
            "`granularity` is no time at all.", hint='write `granularity="1 second"`, or leave it out: 1 microsecond.'
        )
    for name, given in (("advance", advance), ("size", size)):
        if given < 1 or given % unit:
            raise errors.InvalidOptionError(
                f"`{name}` is {length(given)}, not a positive multiple of the granularity {length(unit)}.",
                hint="windows begin and end where event time has a tick: change one of the two.",
            )
        if given > LONGEST:
            raise errors.InvalidOptionError(
                f"`{name}` is {length(given)}, longer than any window can be.",
                hint=f"{length(LONGEST)} is the longest.",
            )
    return Windows(advance, size, unit)


def legal_for_spans(windows: Windows, within: int) -> Windows:
    """Windows of which one holds each sequence that spans less than `within`; refuses others (paper 000 §4)."""
    if windows.size < within:
        raise errors.InvalidOptionError(
            f"`size` (WS) is {length(windows.size)}, less than `within` (D) = {length(within)}: WS ≥ D is broken.",
            hint=f"a sequence may be as long as D − δ, and must fit into a window: `size={length(within)!r}` or more.",
        )
    most = windows.size - within + windows.unit
    if windows.advance > most:
        raise errors.InvalidOptionError(
            f"`advance` (WA) is {length(windows.advance)}, more than WS − D + δ = {length(windows.size)} − "
            f"{length(within)} + {length(windows.unit)} = {length(most)}: WA ≤ WS − D + δ is broken.",
            hint="some sequences would lie in no window: advance by less, or widen `size`.",
        )
    return windows


def slices(windows: Windows, within: int) -> Windows:
    """Windows that hold the same sequences as legal ones, with as little overlap as their size allows.

    Any legal windows find the same sequences (Theorem 2), so that the fast path takes others than the user: no
    narrower than 2 D, in order that an event lies in two of them at most, and advancing as far as is legal.

    >>> slices(Windows(advance=1, size=10), 10)
    Windows(advance=11, size=20, unit=1)
    >>> slices(Windows(advance=5, size=100), 10)
    Windows(advance=91, size=100, unit=1)
    """
    size = max(windows.size, 2 * within)
    return Windows(size - within + windows.unit, size, windows.unit)
