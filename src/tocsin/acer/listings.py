"""The functions of a window: f_U and f_O of the Aggregate, and those that make it S&P, T-CER and R-CER.

code             paper 000
----             ---------
UserAggregate    the Aggregate's own f_U and f_O (§2.1)
Collected        Listing 3, S&P
Sequences        Listing 4, T-CER
Shared           Listing 5, R-CER: what A does between M1 and M2
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tocsin.acer.functions import Function, rows_in, values_of_row
from tocsin.acer.growth import Growth
from tocsin.acer.model import Arrival, Key
from tocsin.acer.windows import Window, Windows
from tocsin.errors import shown


class Listing(Protocol):
    """f_U and f_O over the state of one window; the state of a new window is None."""

    def update(self, window: Window, state: Any, arrival: Arrival) -> Any:
        """f_U: the state with one more event."""

    def output(self, window: Window, state: Any) -> tuple[Any, list[Any]]:
        """f_O: the state afterwards, and payloads."""


@dataclass(frozen=True)
class UserAggregate:
    """The user's own f_U and f_O."""

    updating: Function
    giving: Function
    unit: int

    def update(self, window: Window, state: Any, arrival: Arrival) -> Any:
        """By the user's `update`."""
        more = (window,) if self.updating.takes_window else ()
        try:
            return self.updating.call(state, arrival.event.fresh(), *more)
        except Exception as problem:
            raise self.updating.failed(window.key, arrival.time, problem) from problem

    def output(self, window: Window, state: Any) -> tuple[Any, list[Any]]:
        """By the user's `output`."""
        more = (window,) if self.giving.takes_window else ()
        try:
            return state, rows_in(self.giving.call(state, *more))
        except Exception as problem:
            raise self.giving.failed(window.key, window.end_us - self.unit, problem) from problem


@dataclass(frozen=True)
class Collected:
    """Events of one time, given to f_P together."""

    processing: Function

    def update(self, window: Window, state: Any, arrival: Arrival) -> Any:
        """All are kept."""
        return [*(state or ()), arrival.event]

    def output(self, window: Window, state: Any) -> tuple[Any, list[Any]]:
        """The rows that f_P makes of them."""
        return state, processed(self.processing, window.key, window.start_us, state)


def processed(function: Function, key: Key, time: int, events: list[Any]) -> list[Any]:
    """The rows that f_P makes of events of one time."""
    try:
        return rows_in(function.call(events))
    except Exception as problem:
        raise function.failed(key, time, problem) from problem


class Sequence(NamedTuple):
    """A sequence that f_C has found: its first and last time, and all values of its row."""

    start: int
    end: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Sequences:
    """The sequences that f_C finds, each reported by the last window that holds all of it."""

    finding: Function  # f_C
    within: int  # D: a sequence spans less
    windows: Windows  # Γ
    names: tuple[str, ...]  # the columns of an output: its first and last time, then others

    def update(self, window: Window, state: Any, arrival: Arrival) -> Any:
        """Feed f_C; keep what it finds, unless the next window will find it too."""
        memory: Any = None
        kept: list[Sequence] = []
        if state is not None:
            memory, kept = state
        try:
            memory, found = self.finding.pair(self.finding.call(memory, arrival.event.fresh()))
            for row in rows_in(found):
                one = self._sequence(window, row)
                if one.end - one.start < self.within and not self._falls_in_next(window, one):
                    kept.append(one)
        except Exception as problem:
            raise self.finding.failed(window.key, arrival.time, problem) from problem
        return memory, kept

    def output(self, window: Window, state: Any) -> tuple[Any, list[Any]]:
        """All that was kept."""
        return state, state[1]

    def _falls_in_next(self, window: Window, one: Sequence) -> bool:
        begins = window.start_us + self.windows.advance
        return one.start >= begins and one.end < begins + self.windows.size

    def _sequence(self, window: Window, row: Any) -> Sequence:
        values = values_of_row(row, self.names)
        start, end = (self.finding.clock.micros(value) for value in values[:2])
        if not window.start_us <= start <= end < window.end_us:
            raise ValueError(f"no events of these times were given to it: {shown(row)}")
        return Sequence(start, end, (start, end, *values[2:]))


@dataclass
class Share:
    """The state of a window of R-CER: γ.φ of Listing 5."""

    is_first: bool = True
    events: tuple[Arrival, ...] = ()
    memory: Any = None
    growth: Growth = field(default_factory=Growth)
    memory_time: int | None = None
    is_pending: bool = True


class Looped(NamedTuple):
    """The loop of A: the payloads of f_M, its state, and how that has grown."""

    payloads: list[Any]
    memory: Any
    growth: Growth


@dataclass(frozen=True)
class Shared:
    """f_M over the events of a key in order, its state handed from window to window by A's loop."""

    mapping: Function  # f_M
    distance: int  # D_W: how far watermarks lie apart at most
    unit: int  # δ
    # How large a state that grows with the number of events may become; None: as large as it will.
    most_bytes: int | None = None

    def update(self, window: Window, state: Any, arrival: Arrival) -> Any:
        """Store what this window is responsible for, or the state that comes by the loop."""
        share: Share = state or Share()
        if isinstance(arrival.event, Looped):
            share.memory, share.growth, share.memory_time = arrival.event.memory, arrival.event.growth, arrival.time
        elif arrival.time == window.start_us + self.distance:
            share.events = (*share.events, arrival)  # they come in the order of f_T
        else:
            share.is_first = False
        return share

    def output(self, window: Window, state: Any) -> tuple[Any, list[Any]]:
        """Once, and only when the state of all windows before is there."""
        share: Share = state
        is_next = share.memory_time == window.start_us + self.distance - self.unit
        if not share.is_pending or not (share.is_first or is_next):
            return share, []
        payloads: list[Any] = []
        for arrival in share.events:
            share.memory, given = mapped(self.mapping, window.key, share.memory, arrival, share.growth, self.most_bytes)
            payloads += given
        share.is_pending = False
        return share, [Looped(payloads, share.memory, share.growth)]


def mapped(
    function: Function, key: Key, memory: Any, arrival: Arrival, growth: Growth, most_bytes: int | None
) -> tuple[Any, list[Any]]:
    """The state after f_M has seen an event, and its payloads; refuses a state that grows beyond `most_bytes`."""
    try:
        memory, given = function.pair(function.call(memory, arrival.event))
        rows = rows_in(given)
    except Exception as problem:
        raise function.failed(key, arrival.time, problem) from problem
    if growth.counted(memory):
        growth.check(function, key, arrival.time, most_bytes)
    return memory, rows
