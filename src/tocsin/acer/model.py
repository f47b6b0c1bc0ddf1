"""What all machines have in common: arrivals in, results out, a memory between.

A machine runs one of the operators for one key. `run` is called with what has come and how far time has come; a batch
is a stream that comes in order and whose time comes to its end. So there is one meaning for both.
"""

from __future__ import annotations

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


in_order = itemgetter(0, 1)


class Result(NamedTuple):
    """What a machine gives: its time, how often it has been given before, and the payload."""

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
        """What follows from new arrivals, and from time that has come from `before` to `now`; changes the memory."""

    def due(self, memory: Any) -> int:
        """How far time has to come before anything can happen without new arrivals."""

    def kept(self, memory: Any) -> int:
        """How many events or windows are remembered."""
