"""Registers as Python objects: texts that are computed, decimals, the elements of user-defined aggregates.

The search and the replay are the same texts as for numbers, run by plain Python alone. All registers of a run are one
mapping from names to values; runs with equal keys go on as one. `Evaluator` computes what the texts ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from tocsin.automata import values
from tocsin.automata.evaluate import Now, Reading, compiled
from tocsin.automata.model import DerivedEvent
from tocsin.kernels.runs.elements import KEY, OBJECT
from tocsin.kernels.runs.registers import Lines
from tocsin.kernels.runs.tables import Step, Tables

Read = Callable[[int], Reading]
Values = Mapping[str, Any]
EVALUATOR = "objects"  # the parameter of generated functions


class Objects:
    """How texts speak of registers that are objects; see `Registers` for the meaning of each."""

    arrays: Mapping[str, str] = {"live_registers": OBJECT, "live_key": KEY}
    parameters = (EVALUATOR,)
    initial = ("registers = {}",)

    def loaded(self, names: Iterable[str]) -> list[str]:
        """Statements that read the registers of live run `k`."""
        return ["registers = live_registers[cur, k]" if tuple(names) else "registers = {}"]

    def holds(self, step: Step, lines: Lines) -> str:
        """A text that is true when the guard of a step is TRUE."""
        return f"{EVALUATOR}.holds({step.number}, i, is_later, registers)"

    def after(self, step: Step, names: Iterable[str], lines: Lines) -> dict[str, str]:
        """The registers after a step, and what they are compared by."""
        if not tuple(names):
            return {}
        new = lines.named(f"{EVALUATOR}.after({step.number}, i, is_later, registers)")
        return {"registers": new, "key": lines.named(f"{EVALUATOR}.key({new})")}

    def field(self, step: Step, made: int, place: int, lines: Lines) -> tuple[str, str, None]:
        """A field of a derived event that a step makes; NULL is None."""
        return f"{EVALUATOR}.field({step.number}, {made}, {place}, i, registers)", "False", None

    def replayed(self, step: Step, lines: Lines) -> list[str]:
        """The statement that changes the registers of derived events as a step does."""
        return [f"registers = {EVALUATOR}.replayed({step.number}, i, registers)"] if step.replays else []


class Evaluator:
    """Computes guards, updates and derived events from Python values.

    Parameters
    ----------
    tables
        The automaton.
    read
        Returns an event by its place in the list read.
    """

    def __init__(self, tables: Tables, read: Read) -> None:
        self.tables, self.read = tables, read
        self._place, self._event = -1, Reading(None, 0)

    def holds(self, step: int, place: int, is_later: bool, registers: Values) -> bool:
        """Whether the guard of a step is TRUE of the event at a place."""
        return self._guards[step](self._now(place, is_later, registers)) is True

    def after(self, step: int, place: int, is_later: bool, registers: Values) -> Values:
        """The deciding registers after a step: those that are alive."""
        now = self._now(place, is_later, registers)
        return {name: registers[name] if value is None else value(now) for name, value in self._updates[step]}

    def key(self, registers: Values) -> tuple[Any, ...]:
        """Equal for registers that hold the same values."""
        return tuple(map(values.identity, registers.values()))

    def field(self, step: int, made: int, place: int, event: int, registers: Values) -> Any:
        """A field of a derived event."""
        return self._fields[step][made][place](self._now(event, True, registers))

    def replayed(self, step: int, place: int, registers: Values) -> Values:
        """The registers of derived events after a step; all are computed from those before it."""
        now = self._now(place, True, registers)
        return {**registers, **{name: value(now) for name, value in self._replays[step]}}

    def _now(self, place: int, is_later: bool, registers: Values) -> Now:
        if place != self._place:
            self._place, self._event = place, self.read(place)
        return Now(self._event, is_later, registers)

    def _compiled(self, expression: Any) -> Any:
        return compiled(expression, self.tables.automaton.monoids)

    @cached_property
    def _guards(self) -> list[Any]:
        return [None if step.guard is None else self._compiled(step.guard) for step in self.tables.steps]

    @cached_property
    def _updates(self) -> list[list[tuple[str, Any]]]:
        """By step, each register of its target in one order, whatever the step: runs are compared by their values."""
        found = []
        for step in self.tables.steps:
            new = {name: self._compiled(value) for name, value in step.updates}
            found.append([(name, new.get(name)) for name in self.tables.registers[step.target]])
        return found

    @cached_property
    def _replays(self) -> list[list[tuple[str, Any]]]:
        return [[(name, self._compiled(value)) for name, value in step.replays] for step in self.tables.steps]

    @cached_property
    def _fields(self) -> list[list[list[Any]]]:
        """By step and event that it makes."""
        return [
            [
                [self._compiled(value) for _, value in output.fields] if isinstance(output, DerivedEvent) else []
                for _, output in step.made
            ]
            for step in self.tables.steps
        ]
