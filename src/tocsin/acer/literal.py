"""The Aggregate as paper 000 has it: every window has its own state, and an event updates all windows it lies in.

It is the oracle of the fast machines, and for what overlaps little it is as good as they are. Late arrivals and loops
are as §2.2 and §2.3 want them:

- f_U sees the events of a window in order of time, as far as the watermark has come. An arrival that is older than the
  watermark is added when it comes to all windows that still exist; one that has given its results gives them again.
- A window exists until the watermark has passed its end by the allowed lateness L.
- What A gives goes by the loop, at once, to all later windows that hold its time; windows give in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tocsin.acer.clock import Clock
from tocsin.acer.listings import Listing, Looped, Shared
from tocsin.acer.model import Arrival, Given, Key, Result, in_order, taken
from tocsin.acer.windows import FOREVER, NEVER, Window, Windows


@dataclass
class Instance:
    """A window instance γ: its state, and how often it has given results."""

    state: Any = None
    given: int = 0


@dataclass
class Memory:
    """The windows of a key that still exist, and events that wait."""

    # The windows that hold events and still exist, by number.
    instances: dict[int, Instance] = field(default_factory=dict)
    waiting: list[Arrival] = field(default_factory=list)  # events that the watermark has not passed
    at: int = NEVER  # how far the watermark has come in here
    latest: int = NEVER  # the latest time of an event
    numbers: range | None = None  # the windows that are looked at; None: all


@dataclass(frozen=True)
class Literal:
    """A(Γ(WA, WS, S, f_K, L), f_U, f_O) for one key."""

    windows: Windows  # Γ
    listing: Listing  # f_U and f_O
    lateness: int = 0  # l
    clock: Clock = Clock.INTEGER
    takes_late: bool = False  # whether an arrival older than the watermark may take part at all
    distance: int | None = None  # D_W, where A has a loop: the watermark then moves on by no more at a time (A3)

    def begin(self, numbers: range | None = None) -> Memory:
        """A key without events."""
        return Memory(numbers=numbers)

    def run(self, key: Key, memory: Memory, new: list[Arrival], before: int, now: int) -> Given:
        """The results of windows."""
        given = Given()
        again: set[int] = set()
        for arrival in sorted(new, key=in_order):  # also those that come late together
            memory.latest = max(memory.latest, arrival.time)
            if arrival.time >= before:
                memory.waiting.append(arrival)
            elif not self._late(key, memory, arrival, before, again):
                given.late += 1
        memory.waiting.sort(key=in_order)
        for number in sorted(again):
            given.results += self._given(key, memory, number)
        for watermark in self._watermarks(memory, now):
            given.results += self._passed(key, memory, watermark)
            for number in [one for one in memory.instances if self.windows.end(one) + self.lateness <= watermark]:
                del memory.instances[number]
        return given

    def due(self, memory: Memory) -> int:
        """When the first window ends, or goes."""
        instances = memory.instances.items()
        ends = [self.windows.end(number) + (self.lateness if one.given else 0) for number, one in instances]
        ends += [memory.waiting[0].time + 1] if memory.waiting else []
        if self.distance is not None and not memory.waiting:
            return FOREVER  # the loop goes round for nothing
        return min(ends, default=FOREVER)

    def kept(self, memory: Memory) -> int:
        """Windows, and events that wait."""
        return len(memory.instances) + len(memory.waiting)

    def _late(self, key: Key, memory: Memory, arrival: Arrival, before: int, again: set[int]) -> bool:
        """Add a late arrival to the windows that exist; whether there are any."""
        if not self.takes_late:
            return False
        numbers = [
            number
            for number in self._holding(memory, arrival.time)
            if self.windows.end(number) + self.lateness > before
        ]
        for number in numbers:
            self._add(key, memory, number, arrival)
            if self.windows.end(number) <= before:
                again.add(number)
        return bool(numbers)

    def _watermarks(self, memory: Memory, now: int) -> Iterator[int]:
        if self.distance is None:
            memory.at = now
            yield now
            return
        # After the last event nothing is to be told; the loop would go on for ever.
        until = min(now, memory.latest + self.windows.unit)
        # The loop begins at the first event, once none can come before it.
        if memory.at == NEVER and memory.waiting and memory.waiting[0].time < until:
            memory.at = memory.waiting[0].time
        while NEVER < memory.at < until:
            memory.at = min(memory.at + self.distance, until)
            yield memory.at

    def _passed(self, key: Key, memory: Memory, watermark: int) -> Iterator[Result]:
        """The results of windows when the watermark comes here."""
        for arrival in taken(memory.waiting, watermark):
            for number in self._holding(memory, arrival.time):
                self._add(key, memory, number, arrival)
        open_ones = [number for number, one in memory.instances.items() if not one.given]
        heapq.heapify(open_ones)
        while open_ones and self.windows.end(open_ones[0]) <= watermark:
            number = heapq.heappop(open_ones)
            for result in self._given(key, memory, number):
                yield result
                if isinstance(result.payload, Looped):
                    self._loop(key, memory, result, number, open_ones)

    def _loop(self, key: Key, memory: Memory, result: Result, number: int, open_ones: list[int]) -> None:
        arrival = Arrival(result.time, (), result.payload)
        for later in self._holding(memory, result.time):
            if later > number:
                if later not in memory.instances:
                    heapq.heappush(open_ones, later)
                self._add(key, memory, later, arrival)

    def _holding(self, memory: Memory, time: int) -> range:
        found = self.windows.holding(time)
        if memory.numbers is None:
            return found
        return range(max(found.start, memory.numbers.start), min(found.stop, memory.numbers.stop))

    def _window(self, key: Key, number: int) -> Window:
        return Window(key, self.windows.start(number), self.windows.end(number), self.clock)

    def _add(self, key: Key, memory: Memory, number: int, arrival: Arrival) -> None:
        instance = memory.instances.setdefault(number, Instance())
        instance.state = self.listing.update(self._window(key, number), instance.state, arrival)

    def _given(self, key: Key, memory: Memory, number: int) -> list[Result]:
        instance = memory.instances[number]
        instance.state, payloads = self.listing.output(self._window(key, number), instance.state)
        revision, instance.given = instance.given, instance.given + 1
        return [Result(self.windows.time(number), revision, payload) for payload in payloads]


@dataclass(frozen=True)
class Unwrapped(Literal):
    """R-CER: A with its loop, and M2 behind it, which lets only the payloads of f_M pass."""

    listing: Shared

    def run(self, key: Key, memory: Memory, new: list[Arrival], before: int, now: int) -> Given:
        """The payloads of f_M."""
        given = super().run(key, memory, new, before, now)
        for result in given.results[-1:]:
            given.grows = result.payload.growth.told(self.listing.mapping, key)
        given.results = [
            Result(result.time, result.revision, payload)
            for result in given.results
            for payload in result.payload.payloads
        ]
        return given
