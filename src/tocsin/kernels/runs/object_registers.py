"""Registers as Python objects: texts that are computed, decimals, the elements of user-defined aggregates.

The search and the replay are the same texts as for numbers, run by plain Python alone. All registers of a run are one
mapping from names to values; runs with equal keys go on as one. `Evaluator` computes what the texts ask for: the
expressions of an automaton become ordinary ones over three variables, the event read, what is known of it besides, and
the registers.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from tocsin.automata import expressions as rx
from tocsin.expressions import interpret, objects
from tocsin.expressions.monoids import TAKE_NULLS
from tocsin.kernels.expressions.folds import KEY, OBJECT
from tocsin.kernels.runs.automaton_tables import Step, Tables
from tocsin.kernels.runs.registers import Lines
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rule_ex
from tocsin.language.user_defined import Function, Monoids

Values = Mapping[str, Any]
Evaluate = Callable[[interpret.Bags], Any]
EVALUATOR = "objects"  # the parameter of generated functions
READ, REGISTERS = "#read", "#registers"  # no variable of a query is called so


class Reading(NamedTuple):
    """An event as an automaton reads it."""

    type: str
    ts: int  # microseconds
    row: Values


Read = Callable[[int], Reading]


class Objects:
    """The texts for registers that are objects; see `Registers` for the meaning of each."""

    arrays: Mapping[str, str] = {"live_registers": OBJECT, "live_key": KEY}
    parameters = (EVALUATOR,)
    initial = ("registers = {}",)

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def loaded(self, names: Iterable[str]) -> list[str]:
        """Statements that read the registers of live run `k`."""
        if not tuple(names):
            return ["registers = {}"]
        return ["registers, key = live_registers[cur, k], live_key[cur, k]"]

    def holds(self, step: Step, lines: Lines) -> str:
        """A text that is true when the guard of a step is TRUE."""
        return f"{EVALUATOR}.holds({step.number}, i, is_later, registers)"

    def after(self, step: Step, names: Iterable[str], lines: Lines) -> dict[str, str]:
        """The registers after a step, and what they are compared by."""
        if not tuple(names):
            return {}
        if not step.updates and names == self.tables.registers[step.source]:
            return {"registers": "registers", "key": "key"}
        new = lines.named(f"{EVALUATOR}.after({step.number}, i, is_later, registers)")
        return {"registers": new, "key": lines.named(f"{EVALUATOR}.key({new})")}

    def field(self, step: Step, made: int, place: int, lines: Lines) -> tuple[str, str, None]:
        """A field of a derived event that a step makes; NULL is None."""
        return f"{EVALUATOR}.field({step.number}, {made}, {place}, i, registers)", "False", None

    def replayed(self, step: Step, lines: Lines) -> list[str]:
        """The statement that changes the registers of derived events as a step does."""
        return [f"registers = {EVALUATOR}.replayed({step.number}, i, registers)"] if step.replays else []


class Evaluator:
    """Computes guards, updates and derived events from Python values; `read` returns an event by its place."""

    def __init__(self, tables: Tables, read: Read) -> None:
        self.tables, self.read = tables, read
        self._place = -1
        self._bags: dict[str, tuple[Values]] = {}

    def holds(self, step: int, place: int, is_later: bool, registers: Values) -> bool:
        """Whether the guard of a step is TRUE of the event at a place."""
        return self._guards[step](self._now(place, is_later, registers)) is True

    def after(self, step: int, place: int, is_later: bool, registers: Values) -> Values:
        """The deciding registers after a step: those that are alive."""
        now = self._now(place, is_later, registers)
        return {name: registers[name] if value is None else value(now) for name, value in self._updates[step]}

    def key(self, registers: Values) -> tuple[Any, ...]:
        """Equal for registers that hold the same values."""
        return tuple(map(identity, registers.values()))

    def field(self, step: int, made: int, place: int, event: int, registers: Values) -> Any:
        """A field of a derived event."""
        return self._fields[step][made][place](self._now(event, True, registers))

    def replayed(self, step: int, place: int, registers: Values) -> Values:
        """The registers of derived events after a step; all are computed from those before it."""
        now = self._now(place, True, registers)
        return {**registers, **{name: value(now) for name, value in self._replays[step]}}

    def _now(self, place: int, is_later: bool, registers: Values) -> interpret.Bags:
        if place != self._place:
            self._place, self._bags = place, bags_of(self.read(place), is_later, registers)
        self._bags[REGISTERS] = (registers,)
        return self._bags

    def _compiled(self, expression: ex.Expression) -> Evaluate:
        return compiled(expression, self.tables.automaton.monoids)

    @cached_property
    def _guards(self) -> list[Evaluate]:
        return [self._compiled(rx.TRUE if step.guard is None else step.guard) for step in self.tables.steps]

    @cached_property
    def _updates(self) -> list[list[tuple[str, Evaluate | None]]]:
        """By step, each register of its target in one order, whatever the step: runs are compared by their values."""
        found = []
        for step in self.tables.steps:
            new = {name: self._compiled(value) for name, value in step.updates}
            found.append([(name, new.get(name)) for name in self.tables.registers[step.target]])
        return found

    @cached_property
    def _replays(self) -> list[list[tuple[str, Evaluate]]]:
        return [[(name, self._compiled(value)) for name, value in step.replays] for step in self.tables.steps]

    @cached_property
    def _fields(self) -> list[list[list[Evaluate]]]:
        """By step and event that it makes."""
        return [
            [
                [self._compiled(value) for _, value in (output.fields or ()) if output.is_derived]
                for _, output in step.made
            ]
            for step in self.tables.steps
        ]


# --- expressions ----------------------------------------------------------------------------------


def bags_of(event: Reading, is_later: bool, registers: Values) -> dict[str, tuple[Values]]:
    """All a transition may look at: the event, whether it is later than the one before it, and the registers."""
    known = {"type": event.type, "ts": event.ts, "is_later": is_later}
    return {rx.EVENT: (event.row,), READ: (known,), REGISTERS: (registers,)}


def compiled(expression: ex.Expression, monoids: Monoids) -> Evaluate:
    """An expression of an automaton as a function of what `bags_of` returns."""
    return interpret.value(expression.transform(lambda node: _ordinary(node, monoids)))


def _ordinary(node: ex.Expression, monoids: Monoids) -> ex.Expression:
    """A node in terms of ordinary ones. An element that one NULL has spoiled is None, and stays it."""
    match node:
        case rx.Register():
            return ex.Attribute(REGISTERS, (node.name,))
        case rx.TypeIs():
            return ex.Comparison("=", ex.Attribute(READ, ("type",)), ex.Literal(node.type))
        case rx.EventTime():
            return ex.Attribute(READ, ("ts",))
        case rx.IsLater():
            return ex.Attribute(READ, ("is_later",))
        case rx.Identical():
            return _with_nulls(lambda values: identity(values[0]) == identity(values[1]), node.left, node.right)
        case rx.Precedes():
            return _with_nulls(lambda values: _text(values[0]) < _text(values[1]), node.left, node.right)
        case rx.Zero():
            return ex.Literal(monoids[node.monoid].zero)
        case rx.Lift():
            lift = monoids[node.monoid].lift
            if node.monoid in TAKE_NULLS:
                return _with_nulls(lambda values: lift(values[0]), node.operand)
            return _applied(lift, node.operand)
        case rx.Combine():
            return _applied(monoids[node.monoid].combine, node.left, node.right)
        case rx.Finish():
            return _applied(monoids[node.monoid].finish, node.operand)
        case _:
            return node


def _applied(call: Callable[..., Any], *operands: ex.Expression) -> ex.Expression:
    """A function that is NULL when an argument is."""
    return rule_ex.Apply("", Function(call, "", pure=True), operands)


def _with_nulls(call: Callable[[list[Any]], Any], *operands: ex.Expression) -> ex.Expression:
    """A function of a list of values, NULLs included."""
    return _applied(call, rule_ex.ListOf(operands))


# --- values ---------------------------------------------------------------------------------------


def identity(value: Any) -> Any:
    """Equal for values that are the same in type too, and hashable: how matches are compared (R24)."""
    match value:
        case list() | tuple():
            return ("list", *map(identity, value))
        case Mapping():
            return ("struct", *sorted((name, identity(inner)) for name, inner in value.items()))
        case float():
            return ("float", repr(value + 0.0))  # −0.0 is 0.0
        case _:
            try:
                hash(value)
            except TypeError:  # of a user-defined aggregate: the same only as itself
                return ("object", id(value))
            return (type(value).__name__, value)


def _text(value: Any) -> tuple[str, str]:
    """A value as canonical text (R16), and its type: what orders values that are not identical.

    Examples
    --------
    >>> sorted([2.5, None, -0.0, 0.5], key=_text)
    [-0.0, 0.5, 2.5, None]
    """
    written = json.dumps(_zeros_alike(value), separators=(",", ":"), ensure_ascii=False, default=_as_json)
    return written, type(value).__name__


def _zeros_alike(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_zeros_alike(one) for one in value]
    return value + 0.0 if isinstance(value, float) else value


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime() | dt.timedelta():
            return objects.microseconds(value)
        case bytes():
            return value.hex()
        case Mapping():
            return dict(sorted(value.items()))
        case _:
            return str(value)
