"""Machines without Spark: events in any order within the lateness and in any pieces, memories stored in between."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from tests.acer.definitions import Row

from tocsin.acer.clock import Clock
from tocsin.acer.events import event_class
from tocsin.acer.functions import Function, function
from tocsin.acer.listings import Sequences, UserAggregate
from tocsin.acer.model import Arrival, Machine, Result
from tocsin.acer.windows import FOREVER, NEVER, Windows

Event = event_class(("ts", "k", "x"))
ROWS = st.lists(st.builds(Row, st.integers(-6, 24), st.sampled_from(["p", "q", None]), st.integers(0, 3)), max_size=14)
KEYS = st.sampled_from([None, "k"])
SEEDS = st.integers(0, 2**32)


def named(call: Any, *arguments: str, window: bool = False) -> Function:
    return function(call, "function", Clock.INTEGER, arguments, window=window)


def arrival(row: Row) -> Arrival:
    return Arrival(row.ts, (row.x,), Event(row))


class Life:
    """The events of a stream as they come: late by no more than the watermark is behind, in pieces."""

    def __init__(self, rows: Sequence[Row], seed: int, unit: int = 1) -> None:
        chance = random.Random(seed)
        self.delay = chance.choice([0, 1, 3, 10]) * unit
        order = sorted(rows, key=lambda row: row.ts + chance.randint(0, self.delay))
        self.batches: list[list[Row]] = []
        while order:
            size = chance.randint(0, 5)
            self.batches.append(order[:size])
            order = order[size:]
        self.late: list[Row] = []

    def through(self, machine: Machine, key: str | None) -> tuple[Counter[Any], list[Result], int]:
        """What a machine gives: by key as the definitions say it, all results in order, and what is kept at the end."""
        memories: dict[Any, bytes] = {}
        found: Counter[Any] = Counter()
        results: list[Result] = []
        before = latest = NEVER
        for batch in [*self.batches, None]:
            new: dict[Any, list[Arrival]] = {}
            for row in batch or ():
                latest = max(latest, row.ts)
                new.setdefault(row if key == "*" else row.k if key == "k" else None, []).append(arrival(row))
            now = FOREVER if batch is None else max(before, latest - self.delay) if latest > NEVER else NEVER
            for name in sorted({*new, *memories}, key=repr):
                memory = pickle.loads(memories[name]) if name in memories else machine.begin()
                if name not in new and machine.due(memory) > now:
                    continue
                shown = () if key is None else (name.k if key == "*" else name,)
                given = machine.run(shown, memory, new.get(name, []), before, now)
                assert given.late == 0
                own = name if key == "k" else None
                results += given.results
                found.update((own, one.time, *told(one.payload)) for one in given.results)
                memories[name] = pickle.dumps(memory)
            before = now
        return found, results, sum(machine.kept(pickle.loads(one)) for one in memories.values())


def told(payload: Any) -> tuple[Any, ...]:
    """A payload as the definitions tell it."""
    if hasattr(payload, "values") and hasattr(payload, "start"):
        return payload.start, payload.end, tuple(payload.values[2:])
    return (payload if isinstance(payload, tuple) and not hasattr(payload, "payloads") else repr(payload),)


def collecting(unit: int = 1) -> UserAggregate:
    """f_U that keeps all, f_O that tells all: what a window holds, and in which order it came."""

    def add(state: Any, event: Any) -> Any:
        return (*(state or ()), (event.ts, event.x))

    return UserAggregate(named(add, "state", "event", window=True), named(lambda s: [s], "state", window=True), unit)


def rising(length: int, windows: Windows, within: int) -> Sequences:
    """f_C that finds rising sequences of a length; its state is what it was given."""

    def find(state: Any, event: Any) -> Any:
        begun = state or []
        ended = [one for one in begun if one[-1].x < event.x]
        found = [(*one, event) for one in ended if len(one) == length - 1]
        if length == 1:
            found = [(event,)]
        more = [(*one, event) for one in ended if len(one) < length - 1] + ([(event,)] if length > 1 else [])
        rows = [(one[0].ts, one[-1].ts, *(each.x for each in one)) for one in found]
        return begun + more, rows

    names = ("start", "end", *(f"x{place}" for place in range(length)))
    return Sequences(named(find, "state", "event"), within, windows, names)


def values(rows: Iterable[Row]) -> tuple[tuple[int, int], ...]:
    return tuple((row.ts, row.x) for row in rows)
