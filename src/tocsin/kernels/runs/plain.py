"""The search with registers of any Python value: numbers, texts, decimals, the elements of a user's monoid.

For automata whose registers are all numbers `code` writes the same search as one compiled function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tocsin.automata import values
from tocsin.automata.evaluate import Evaluate, Now, Reading, compiled
from tocsin.automata.model import START, DerivedEvent
from tocsin.kernels.layout import Merged
from tocsin.kernels.model import Integers
from tocsin.kernels.runs import limits
from tocsin.kernels.runs.arena import Arena
from tocsin.kernels.runs.found import Paths, Values
from tocsin.kernels.runs.tables import ALWAYS, LATER, Step, Tables

Read = Callable[[int], Reading]
Registers = Mapping[str, Any]


class _Compiled:
    """A step as functions."""

    def __init__(self, step: Step, tables: Tables) -> None:
        monoids = tables.automaton.monoids
        self.step = step
        self.guard: Evaluate | None = None if step.guard is None else compiled(step.guard, monoids)
        updates = {name: compiled(value, monoids) for name, value in step.updates}
        # In the order of the state's registers, whatever the step: runs are compared by their values.
        self.after = [(name, updates.get(name)) for name in tables.registers[step.target]]
        self.is_final = step.target in tables.automaton.finals
        self.looks = self.guard is not None or bool(updates)

    def is_possible(self, word: int, is_later: bool) -> bool:
        """Whether the event alone allows it."""
        timing = self.step.timing
        return word & self.step.needs == self.step.needs and (timing == ALWAYS or is_later == (timing == LATER))

    def registers(self, now: Now) -> dict[str, Any]:
        """The deciding registers afterwards."""
        return {name: now.registers[name] if value is None else value(now) for name, value in self.after}


@dataclass(frozen=True)
class Accepted:
    """The runs that end at an event: their history, and the first event that they may have begun with."""

    arena: Arena
    node: int
    first: int
    end: int


@dataclass
class PlainSearch:
    """The runs over the events of one task; `read` gives an event by its place in the list."""

    tables: Tables
    read: Read
    window_us: int | None
    owns_by_end: bool = False

    def __post_init__(self) -> None:
        self.leaving = [[_Compiled(step, self.tables) for step in group] for group in self.tables.leaving]

    def accepted(self, events: Merged, letters: Integers) -> Iterator[Accepted]:
        """Where runs end, group by group, in order; events are given by their places in the list."""
        for group in range(len(events.group_from)):
            yield from self._group(events, letters, group)

    def _group(self, events: Merged, letters: Integers, group: int) -> Iterator[Accepted]:
        begin, end = int(events.group_from[group]), int(events.group_to[group])
        low, high = int(events.own_low[group]), int(events.own_high[group])
        times, words = events.times[begin:end].tolist(), letters[begin:end].tolist()
        arena = Arena()
        live: list[_Run] = []
        first = 0
        for place, (ts, word) in enumerate(zip(times, words, strict=True)):
            if self.window_us is not None:
                while ts - times[first] >= self.window_us:
                    first += 1
            is_later = place == 0 or ts > times[place - 1]
            runs = [one for one in live if arena.latest[one.node] >= begin + first]
            is_owned = low <= ts <= high
            if is_owned or self.owns_by_end:
                runs.append(_Run(START, {}))
            live, accepted = self._read(begin + place, word, is_later, runs, arena)
            if len(live) > limits.MOST_PLAIN_RUNS:
                raise limits.too_many_runs(limits.MOST_PLAIN_RUNS)
            if accepted is not None and (is_owned or not self.owns_by_end):
                yield Accepted(arena, accepted, begin + first, begin + place)

    def _read(
        self, event: int, word: int, is_later: bool, runs: list[_Run], arena: Arena
    ) -> tuple[list[_Run], int | None]:
        """All runs after one more event, and the history of those that have ended."""
        reached: dict[tuple[Any, ...], _Run] = {}
        accepted: int | None = None
        reading: Reading | None = None
        for run in runs:
            now: Now | None = None
            for one in self.leaving[run.state]:
                if not one.is_possible(word, is_later):
                    continue
                registers = run.registers
                if one.looks:
                    reading = reading or self.read(event)
                    now = now or Now(reading, is_later, run.registers)
                    if one.guard is not None and one.guard(now) is not True:
                        continue
                    registers = one.registers(now)
                if run.node < 0:
                    run.node = arena.leaf(event)
                node = arena.kept(one.step.number, event, run.node) if one.step.is_kept else run.node
                if one.is_final:
                    accepted = node if accepted is None else arena.union(accepted, node)
                    continue
                kept = {name: registers[name] for name, _ in one.after}
                key = (one.step.target, *map(values.identity, kept.values()))
                known = reached.get(key)
                reached[key] = _Run(one.step.target, kept, node if known is None else arena.union(known.node, node))
        return list(reached.values()), accepted


@dataclass
class _Run:
    """All runs in one state with the same registers, whenever they began."""

    state: int
    registers: Registers
    node: int = -1  # of a run that begins: none before it takes a step


class Replay:
    """Derived events of matches, told again from their steps."""

    def __init__(self, tables: Tables, read: Read) -> None:
        monoids = tables.automaton.monoids
        self.read = read
        self.updates = [[(name, compiled(value, monoids)) for name, value in step.replays] for step in tables.steps]
        self.fields = [
            [
                (template, [compiled(value, monoids) for _, value in output.fields])
                for template, output in step.made
                if isinstance(output, DerivedEvent)
            ]
            for step in tables.steps
        ]

    def values(self, paths: Paths, counts: Mapping[int, int]) -> Values:
        """The values of all derived events."""
        found: dict[tuple[int, int], list[Any]] = defaultdict(list)
        offsets, steps, events = (one.tolist() for one in (paths.offsets, paths.steps, paths.events))
        for begin, end in pairwise(offsets):
            path = list(zip(steps[begin:end], events[begin:end], strict=True))
            templates = (template for step, _ in path for template, _ in self.fields[step])
            for template, made in zip(templates, self.of_one(path), strict=True):
                for place, value in enumerate(made):
                    found[template, place].append(value)
        return found

    def of_one(self, path: Iterable[tuple[int, int]]) -> Iterator[list[Any]]:
        """The values of each derived event of one match, from its steps and the events they read."""
        registers: dict[str, Any] = {}
        for step, event in path:
            now = Now(self.read(event), True, registers)
            yield from ([value(now) for value in fields] for _, fields in self.fields[step])
            # All are computed from what was before.
            registers = {**registers, **{name: value(now) for name, value in self.updates[step]}}
