"""Whether the state of a function grows with the number of events, which nothing can run for ever (paper 000 §5)."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

from pyspark import cloudpickle

from tocsin import errors
from tocsin.acer.functions import Function, shown
from tocsin.acer.model import Key

FIRST = 256  # events before the first look
DOUBLINGS = 3  # how often in a row the state has grown with the events before it is said to
FACTOR = 1.5
ADVICE = "keep what later events need and no more; a pattern of bounded span is for `time_cer`."


def pickled(value: Any) -> bytes:
    """A value as bytes, also one whose class is of a notebook or a script, which workers know by value."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return bytes(cloudpickle.dumps(value))  # type: ignore[no-untyped-call]


@dataclass
class Growth:
    """The size of a state, measured whenever the number of events has doubled.

    >>> growing, steady = Growth(), Growth()
    >>> state = []
    >>> for number in range(3000):
    ...     state.append(number)
    ...     _ = growing.counted(state), steady.counted(number)
    >>> growing.grows, steady.grows
    (True, False)
    """

    events: int = 0
    measured: int = 0
    sizes: list[int] = field(default_factory=list)

    def counted(self, state: Any) -> bool:
        """Count an event; whether the state was measured."""
        self.events += 1
        if self.events < FIRST or self.events & (self.events - 1):
            return False
        try:
            size = len(pickled(state))
        except Exception:  # what cannot be measured is a problem only where it has to be stored
            return False
        self.sizes, self.measured = [*self.sizes[-DOUBLINGS:], size], self.events
        return True

    @property
    def grows(self) -> bool:
        """Whether it has grown with each of the last doublings."""
        pairs = list(zip(self.sizes, self.sizes[1:], strict=False))
        return len(pairs) == DOUBLINGS and all(after >= FACTOR * before for before, after in pairs)

    def told(self, function: Function, key: Key) -> str:
        """The warning about it; empty as long as it does not grow."""
        if not self.grows:
            return ""
        return (
            f"The state of {function.name} grows with the number of events: {self.sizes[-2]:,} bytes after "
            f"{self.measured // 2:,} events, {self.sizes[-1]:,} after {self.measured:,}, for the key {shown(key)}"
        )

    def check(self, function: Function, key: Key, time: int, most_bytes: int | None) -> None:
        """Stop the query when a state grows, and has become larger than it may."""
        if most_bytes is not None and self.grows and self.sizes[-1] > most_bytes:
            raise errors.StateGrowsError(
                f"{self.told(function, key)} at the event time {function.clock.shown(time)}.",
                hint=f"{ADVICE} `max_state=` is the size it may have ({most_bytes:,} bytes); None lets it grow.",
            )
