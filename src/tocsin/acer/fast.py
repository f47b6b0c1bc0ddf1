"""Machines without windows that overlap in memory: an event is kept once, however many windows it lies in.

machine     for                                       what is remembered of a key
-------     ---                                       ---------------------------
Sliding     the Aggregate, where windows overlap      events of windows that still exist
Slices      T-CER                                     the states of f_C in slices of time that are not over
Instants    S&P                                       events that the watermark has not passed
Fold        R-CER                                     those, and the state of f_M
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from tocsin.acer.clock import Clock
from tocsin.acer.functions import Function
from tocsin.acer.growth import Growth
from tocsin.acer.listings import Listing, Sequence, Sequences, mapped, processed
from tocsin.acer.model import Arrival, Given, Key, Result, at_time, in_order, taken
from tocsin.acer.windows import FOREVER, NEVER, Window, Windows


def in_time(waiting: list[Arrival], new: list[Arrival], before: int) -> int:
    """Let the arrivals wait that are not older than the watermark; how many are."""
    found = [arrival for arrival in new if arrival.time >= before]
    waiting += found
    return len(new) - len(found)


def occupied(
    windows: Windows, times: list[int], numbers: range | None, begin: int | None = None, until: int | None = None
) -> Iterator[int]:
    """The windows that hold one of the times, which are sorted; of these numbers, from `begin` and before `until`."""
    if not times:
        return
    number, last = windows.first(times[0]), windows.last(times[-1]) + 1
    number, last = number if begin is None else max(number, begin), last if until is None else min(last, until)
    if numbers is not None:
        number, last = max(number, numbers.start), min(last, numbers.stop)
    while number < last:
        next_event = bisect_left(times, windows.start(number))
        if next_event == len(times):
            return
        if times[next_event] < windows.end(number):
            yield number
            number += 1
        else:
            number = max(number + 1, windows.first(times[next_event]))


class Kept(NamedTuple):
    """An event that windows hold: its time, its place in the order in which f_U sees events, and itself."""

    time: int
    ordinal: int
    arrival: Arrival


@dataclass
class Memory:
    """The events that windows of a key still need."""

    kept: list[Kept] = field(default_factory=list)  # the events of windows that still exist, in order of time
    waiting: list[Arrival] = field(default_factory=list)  # events that the watermark has not passed
    count: int = 0  # how many events there have been
    # How often windows that still exist have given results, where lateness lets them do so again.
    revisions: dict[int, int] = field(default_factory=dict)
    # Whether a late arrival has come, so that f_U has seen events in another order than that of time.
    is_disordered: bool = False
    at: int = NEVER  # how far the watermark has come
    numbers: range | None = None  # the windows that are looked at; None: all


@dataclass(frozen=True)
class Sliding:
    """The Aggregate over events that are kept once: a window's state is made when it gives results."""

    windows: Windows
    listing: Listing
    lateness: int = 0
    clock: Clock = Clock.INTEGER
    takes_late: bool = False

    def begin(self, numbers: range | None = None) -> Memory:
        """A key without events."""
        return Memory(numbers=numbers)

    def run(self, key: Key, memory: Memory, new: list[Arrival], before: int, now: int) -> Given:
        """The results of windows."""
        given = Given()
        again: set[int] = set()
        self._take(memory, before)  # what the watermark passed while this key slept came before what comes late now
        for arrival in sorted(new, key=in_order):
            if arrival.time >= before:
                memory.waiting.append(arrival)
            elif not self._late(memory, arrival, before, again):
                given.late += 1
        if memory.is_disordered:
            memory.kept.sort(key=at_time)
        self._take(memory, now)
        times = [one.time for one in memory.kept]
        for number in sorted(again):
            given.results += self._given(key, memory, times, number)
        ended = self.windows.first(before), self.windows.first(now)
        for number in occupied(self.windows, times, memory.numbers, *ended):
            given.results += self._given(key, memory, times, number)
        memory.at = now
        self._forget(memory, now)
        return given

    def due(self, memory: Memory) -> int:
        """When the next window ends, or the first event is in none any more."""
        times = [one.time for one in memory.kept[:1]] + [one.time for one in memory.waiting[:1]]
        if not times:
            return FOREVER
        first = min(times)
        number = max(self.windows.first(memory.at), self.windows.first(first))
        return min(self.windows.end(number), self._gone(first))

    def kept(self, memory: Memory) -> int:
        """Events."""
        return len(memory.kept) + len(memory.waiting)

    def _late(self, memory: Memory, arrival: Arrival, before: int, again: set[int]) -> bool:
        """Keep a late arrival for windows that exist, and note those that have given results; whether there are any."""
        if not self.takes_late:
            return False
        exist = self.windows.first(before - self.lateness)
        holding = self.windows.holding(arrival.time)
        numbers = range(max(holding.start, exist), holding.stop)
        if not numbers:
            return False
        again.update(range(numbers.start, min(numbers.stop, self.windows.first(before))))
        memory.kept.append(self._counted(memory, arrival))
        memory.is_disordered = True
        return True

    def _take(self, memory: Memory, now: int) -> None:
        memory.kept += [self._counted(memory, arrival) for arrival in taken(memory.waiting, now)]

    def _counted(self, memory: Memory, arrival: Arrival) -> Kept:
        memory.count += 1
        return Kept(arrival.time, memory.count, arrival)

    def _given(self, key: Key, memory: Memory, times: list[int], number: int) -> list[Result]:
        window = Window(key, self.windows.start(number), self.windows.end(number), self.clock)
        held = memory.kept[bisect_left(times, window.start_us) : bisect_left(times, window.end_us)]
        if memory.is_disordered:
            held.sort(key=itemgetter(1))
        state = None
        for one in held:
            state = self.listing.update(window, state, one.arrival)
        revision = memory.revisions.get(number, 0)
        if self.lateness:
            memory.revisions[number] = revision + 1
        return [
            Result(self.windows.time(number), revision, payload) for payload in self.listing.output(window, state)[1]
        ]

    def _gone(self, time: int) -> int:
        """When no window needs an event of this time any more."""
        return self.windows.end(self.windows.last(time)) + self.lateness

    def _forget(self, memory: Memory, now: int) -> None:
        gone = bisect_left(memory.kept, 1, key=lambda one: int(self._gone(one.time) > now))
        del memory.kept[:gone]
        if not memory.kept:
            memory.is_disordered = False
        for number in [one for one in memory.revisions if self.windows.end(one) + self.lateness <= now]:
            del memory.revisions[number]


@dataclass
class Waiting:
    """Events that the watermark has not passed."""

    waiting: list[Arrival] = field(default_factory=list)


@dataclass
class Cut(Waiting):
    """The slices of a key that are not over, and the sequences found in them."""

    states: dict[int, Any] = field(default_factory=dict)  # the state of f_C in each slice that is not over, by number
    # Sequences with the end of the window that is to give them.
    found: list[tuple[int, Sequence]] = field(default_factory=list)
    numbers: range | None = None  # the slices that are looked at; None: all


@dataclass(frozen=True)
class Slices:
    """T-CER: sequences are found in slices of time, and given when the windows end that the user has asked for.

    A sequence waits until then: what reads the results may rely on their times, as it may on those of the literal
    construction.
    """

    windows: Windows
    listing: Sequences  # f_C, and which of its sequences belong to a slice
    asked: Windows  # the windows the user has asked for
    clock: Clock = Clock.INTEGER

    def begin(self, numbers: range | None = None) -> Cut:
        """A key without events."""
        return Cut(numbers=numbers)

    def run(self, key: Key, memory: Cut, new: list[Arrival], before: int, now: int) -> Given:
        """The sequences whose windows have ended."""
        given = Given(late=in_time(memory.waiting, new, before))
        arrivals = taken(memory.waiting, now)
        times = [arrival.time for arrival in arrivals]
        for number in occupied(self.windows, times, memory.numbers):
            window = Window(key, self.windows.start(number), self.windows.end(number), self.clock)
            state: Any = memory.states.get(number)
            for arrival in arrivals[bisect_left(times, window.start_us) : bisect_left(times, window.end_us)]:
                state = self.listing.update(window, state, arrival)
            memory.states[number] = (state[0], [])
            memory.found += [(self._end(one.start), one) for one in state[1]]
        for number in [one for one in memory.states if self.windows.end(one) <= now]:
            del memory.states[number]
        memory.found.sort(key=at_time)
        ended = bisect_right(memory.found, now, key=at_time)
        given.results = [Result(end - self.asked.unit, 0, one) for end, one in memory.found[:ended]]
        del memory.found[:ended]
        return given

    def due(self, memory: Cut) -> int:
        """When the window of a sequence ends, or a slice."""
        ends = [end for end, _ in memory.found[:1]] + [self.windows.end(number) for number in memory.states]
        # With an event that waits no sequence ends earlier than one that spans as much as it may.
        ends += [self._end(one.time - self.listing.within + self.asked.unit) for one in memory.waiting[:1]]
        return min(ends, default=FOREVER)

    def kept(self, memory: Cut) -> int:
        """Events that wait, slices, and sequences."""
        return len(memory.waiting) + len(memory.states) + len(memory.found)

    def _end(self, start: int) -> int:
        """The end of the last window that holds a sequence which begins here."""
        return self.asked.end(self.asked.last(start))


class _Waits:
    """A machine that has nothing to do before the watermark has passed the first event that waits."""

    def due(self, memory: Waiting) -> int:
        """When the watermark has passed the first."""
        return memory.waiting[0].time + 1 if memory.waiting else FOREVER

    def kept(self, memory: Any) -> int:
        """Events that wait."""
        return len(memory.waiting)


@dataclass(frozen=True)
class Instants(_Waits):
    """S&P: events of one time, given to f_P together."""

    processing: Function

    def begin(self, numbers: range | None = None) -> Waiting:
        """A key without events."""
        return Waiting()

    def run(self, key: Key, memory: Waiting, new: list[Arrival], before: int, now: int) -> Given:
        """The rows that f_P makes of them."""
        given = Given(late=in_time(memory.waiting, new, before))
        for time, group in groupby(taken(memory.waiting, now), key=at_time):
            rows = processed(self.processing, key, time, [arrival.event for arrival in group])
            given.results += [Result(time, 0, row) for row in rows]
        return given


@dataclass
class Folded(Waiting):
    """And the state of f_M, with what is known of its size."""

    state: Any = None
    growth: Growth = field(default_factory=Growth)


@dataclass(frozen=True)
class Fold(_Waits):
    """R-CER: f_M over the events of a key, in order."""

    mapping: Function  # f_M
    # How large a state that grows with the number of events may become; None: as large as it will.
    most_bytes: int | None = None

    def begin(self, numbers: range | None = None) -> Folded:
        """A key without events."""
        return Folded()

    def run(self, key: Key, memory: Folded, new: list[Arrival], before: int, now: int) -> Given:
        """The rows that f_M gives."""
        given = Given(late=in_time(memory.waiting, new, before))
        for arrival in taken(memory.waiting, now):
            memory.state, rows = mapped(self.mapping, key, memory.state, arrival, memory.growth, self.most_bytes)
            given.results += [Result(arrival.time, 0, row) for row in rows]
        given.grows = memory.growth.told(self.mapping, key)
        return given

    def kept(self, memory: Any) -> int:
        """Events that wait, and the state."""
        return len(memory.waiting) + (memory.state is not None)
