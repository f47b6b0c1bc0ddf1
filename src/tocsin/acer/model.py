"""The interface of machines: arrivals in, results out, a memory between.

A machine runs one of the operators for one key. `run` is called with what has come and how far time has come; a batch
is a stream that comes in order and whose time comes to its end. So there is one meaning for both.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from tocsin.acer.events import Event

Key = tuple[Any, ...]


class Arrival(NamedTuple):
    """An event on its way into a machine: its time, what orders it among those of the same time, and itself."""

    time: int
    tie: tuple[Any, ...]
    event: Event


at_time, in_order = itemgetter(0), itemgetter(0, 1)


def taken(waiting: list[Arrival], now: int) -> list[Arrival]:
    """The arrivals that the watermark has passed, in order; they wait no more."""
    if len(waiting) > 1:
        waiting.sort(key=in_order)
    passed = len(waiting) if waiting and waiting[-1].time < now else bisect_left(waiting, now, key=at_time)
    found = waiting[:passed]
    del waiting[:passed]
    return found


class Result(NamedTuple):
    """A result of a machine: its time, how often it has been given before, and the payload."""

    time: int
    revision: int
    payload: Any


@dataclass
class Given:
    """The outcome of one call of `run`."""

    results: list[Result] = field(default_factory=list)  # in order of time
    late: int = 0  # how many arrivals came too late for everything
    grows: str = ""  # what is to be told of a user's function whose state grows with the number of events


class Machine(Protocol):
    """An operator for one key."""

    def begin(self, numbers: range | None = None) -> Any:
        """The memory of a key that has had no event; of which windows, where not of all."""

    def run(self, key: Key, memory: Any, new: list[Arrival], before: int, now: int) -> Given:
        """The results of new arrivals, and of time that has come from `before` to `now`; changes the memory."""

    def due(self, memory: Any) -> int:
        """How far time has to come before anything can happen without new arrivals."""

    def kept(self, memory: Any) -> int:
        """How many events or windows are remembered."""
