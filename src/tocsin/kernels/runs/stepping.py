"""One event more: an automaton as a function from a state and an event to the next state and what has ended.

code        theory (000 §4)
----        ---------------
Stepper     f_C
Progress    m, what f_C knows of the events before: every run that is under way
Accepted    Φ_O, the sequences that end with this event; not listed yet, since there may be many
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tocsin.automata import values
from tocsin.automata.evaluate import Evaluate, Now, Reading, compiled
from tocsin.automata.model import START
from tocsin.kernels.runs import limits
from tocsin.kernels.runs.arena import Arena
from tocsin.kernels.runs.tables import ALWAYS, LATER, Step, Tables

Read = Callable[[int], Reading]
Registers = Mapping[str, Any]
FEW_NODES = 1 << 10


class Seen(NamedTuple):
    """An event as a step sees it: its place in the list read, its time, and which letters are TRUE of it."""

    place: int
    ts: int
    word: int


@dataclass(frozen=True)
class Accepted:
    """The runs that end at an event: their history, and the first event that they may have begun with."""

    arena: Arena
    node: int
    first: int
    end: int


@dataclass
class Run:
    """All runs in one state with the same registers, whenever they began."""

    state: int
    registers: Registers
    node: int = -1  # of a run that begins: none before it takes a step


@dataclass
class Progress:
    """What is known after some events.

    Attributes
    ----------
    live
        The runs that are under way.
    arena
        Their histories.
    recent
        The events that a run may have begun with: those within the window, or without one the first of all.
    kept
        How many nodes the arena had when it was last cleared of histories that lead nowhere.
    """

    live: list[Run] = field(default_factory=list)
    arena: Arena = field(default_factory=Arena)
    recent: deque[Seen] = field(default_factory=deque)
    last_ts: int | None = None
    kept: int = 0

    def cleared(self) -> None:
        """Forget histories of runs that are over, whenever there are twice as many nodes as after the last time."""
        if len(self.arena) <= 2 * self.kept + FEW_NODES:
            return
        self.arena, nodes = self.arena.of([run.node for run in self.live])
        for run, node in zip(self.live, nodes, strict=True):
            run.node = node
        self.kept = len(self.arena)


class _Compiled:
    """A transition as functions."""

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


class Stepper:
    """The step of an automaton.

    Parameters
    ----------
    tables
        The automaton.
    read
        What gives an event by its place in the list.
    window_us
        How long a run may take, exclusive; None: for ever.
    """

    def __init__(self, tables: Tables, read: Read, window_us: int | None) -> None:
        self.read, self.window_us = read, window_us
        self.leaving = [[_Compiled(step, tables) for step in group] for group in tables.leaving]

    def __call__(
        self, before: Progress | None, event: Seen, *, begins: bool = True
    ) -> tuple[Progress, Accepted | None]:
        """What is known after one more event, and the runs that end with it.

        Parameters
        ----------
        before
            What was known before; it is used up. None: nothing.
        event
            The event; none that was read before is later, or of the same time and behind it in order.
        begins
            Whether a run may begin here.

        Raises
        ------
        TooManyMatchesError
            When more runs differ than can be followed.
        """
        known = Progress() if before is None else before
        first = self._first(known, event)
        is_later = known.last_ts is None or event.ts > known.last_ts
        known.last_ts = event.ts
        runs = [one for one in known.live if known.arena.latest[one.node] >= first]
        if begins:
            runs.append(Run(START, {}))
        known.live, node = self._read(event, is_later, runs, known.arena)
        if len(known.live) > limits.MOST_PLAIN_RUNS:
            raise limits.too_many_runs(limits.MOST_PLAIN_RUNS)
        accepted = None if node is None else Accepted(known.arena, node, first, event.place)
        known.cleared()
        return known, accepted

    def _first(self, known: Progress, event: Seen) -> int:
        """The first event that a run which goes on here may have begun with."""
        if self.window_us is None:
            known.recent = known.recent or deque([event])
        else:
            known.recent.append(event)
            while event.ts - known.recent[0].ts >= self.window_us:
                known.recent.popleft()
        return known.recent[0].place

    def _read(self, event: Seen, is_later: bool, runs: list[Run], arena: Arena) -> tuple[list[Run], int | None]:
        """All runs after one more event, and the history of those that have ended."""
        reached: dict[tuple[Any, ...], Run] = {}
        accepted: int | None = None
        reading: Reading | None = None
        for run in runs:
            now: Now | None = None
            for one in self.leaving[run.state]:
                if not one.is_possible(event.word, is_later):
                    continue
                registers = run.registers
                if one.looks:
                    reading = reading or self.read(event.place)
                    now = now or Now(reading, is_later, run.registers)
                    if one.guard is not None and one.guard(now) is not True:
                        continue
                    registers = one.registers(now)
                if run.node < 0:
                    run.node = arena.leaf(event.place)
                node = arena.kept(one.step.number, event.place, run.node) if one.step.is_kept else run.node
                if one.is_final:
                    accepted = node if accepted is None else arena.union(accepted, node)
                    continue
                kept = {name: registers[name] for name, _ in one.after}
                key = (one.step.target, *map(values.identity, kept.values()))
                known = reached.get(key)
                reached[key] = Run(one.step.target, kept, node if known is None else arena.union(known.node, node))
        return list(reached.values()), accepted
