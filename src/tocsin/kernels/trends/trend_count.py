"""Aggregation over all matches of a task: its rows in, exact totals out, by the label of a match's first event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import errors
from tocsin.algebra.alternatives import is_formula
from tocsin.analysis.inference import Environment, type_of
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.analysis.types import Kind
from tocsin.kernels import compile
from tocsin.kernels.conditions import columns_of, environment_of
from tocsin.kernels.expressions.leaves import Test
from tocsin.kernels.expressions.slots import HELD
from tocsin.kernels.instants import apart
from tocsin.kernels.lists import Merged, merged
from tocsin.kernels.model import Held, Integers, Rows, Slot, is_flagged
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.kernels.search.conditions import Columns
from tocsin.kernels.trends.blocks import Stages
from tocsin.kernels.trends.chains import Conditions
from tocsin.kernels.trends.machine import Machine, NotAPathError, machine
from tocsin.kernels.trends.request import Requested, as_paths, requested_in
from tocsin.kernels.trends.semirings import NO_KEY
from tocsin.kernels.trends.task import Task
from tocsin.kernels.trends.totals import Answer, Totals, Weights, values_of, whole
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

FEW_EVENTS = 5_000  # fewer are counted in plain Python
MEASURES = {"count": ("tally",), "avg": ("sum", "tally")}  # others are measures themselves


@dataclass(frozen=True)
class Measure:
    """A number over all (match, event) pairs of a variable."""

    what: str  # "tally" (how many have a value), "sum", "min" or "max"
    variable: str
    column: int | None = None  # the carried column of the values; None for a tally of the events themselves


@dataclass(frozen=True)
class _Field:
    """A measure of a task: what is added up for it, or the keys of which the least is found."""

    symbols: int  # those that it counts, as bits
    value: Callable[[Sequence[int]], Any]  # the measure, from its totals or its key
    weights: Sequence[Weights | None] = ()  # None: every weight is 1
    keys: Integers | None = None

    @property
    def length(self) -> int:
        """How many numbers are found for it."""
        return len(self.weights) or 1


@dataclass(frozen=True)
class Trend:
    """A query whose matches are paths of an automaton, compiled for counting. It can be pickled."""

    kernel: Kernel
    machine: Machine
    measures: tuple[Measure, ...]
    answers: tuple[Answer, ...] = ()
    tests: Mapping[str, tuple[Test, ...]] = field(default_factory=dict)  # variable → conditions between its neighbours
    places: Mapping[tuple[str, ex.Expression], int] = field(default_factory=dict)  # where the values they compare are
    by_position: bool = False  # whether events of one instant follow each other in their order (ACEL, R7)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each measure."""
        return tuple(measure.what for measure in self.measures)

    def totals(self, rows: Rows, labels: Integers | None = None, *, jit: bool | None = None) -> dict[int, Totals]:
        """The totals of all matches whose start the task owns, by the label of its row.

        A label is a small number, from 0 on; None: all matches are added up together. `jit` None: compile many rows.
        """
        symbols = self._symbols(rows)
        chosen = np.arange(len(symbols)) if self.kernel.counts_every_event else np.flatnonzero(symbols)
        events = merged(rows, chosen)
        window_us = self.kernel.query.window_us
        if self.by_position or rows.instants is not None:
            events, window_us = apart(events, window_us, rows.instants)
        chosen = events.rows
        fields = [self._field(measure, rows, chosen) for measure in self.measures]
        task = Task(
            self.stages,
            events,
            symbols[chosen],
            np.zeros(len(chosen), np.int64) if labels is None else labels[chosen],
            self._follows(events),
            window_us,
            [(field.symbols, weights) for field in fields for weights in field.weights],
            [(field.symbols, field.keys) for field in fields if field.keys is not None],
            self._conditions(rows, chosen),
        )
        is_large = len(chosen) >= FEW_EVENTS if jit is None else jit
        found = {}
        for label, (count, totals, keys) in task.sums(jit=is_large and compile.has_numba()).items():
            numbers, least = iter(totals), iter(keys)
            of_fields = (islice(numbers if one.keys is None else least, one.length) for one in fields)
            found[label] = Totals(count, tuple(one.value([*own]) for one, own in zip(fields, of_fields, strict=True)))
        return found

    def _symbols(self, rows: Rows) -> Integers:
        """The symbols that every row can be, as bits."""
        bits = {source.variable: source.bit for source in self.kernel.sources}
        several = {source.variable for source in self.kernel.sources if len(source.types) > 1}
        found = np.zeros(len(rows.ts), np.int64)
        for number, (variable, kind) in enumerate(self.machine.symbols):
            flag = is_flagged(rows.flags, bits[variable])
            if variable in several:
                assert rows.kinds is not None
                flag = flag & (rows.kinds == self.kernel.types.index(kind))
            found |= flag.astype(np.int64) << number
        return found

    @cached_property
    def stages(self) -> Stages:
        """How paths grow."""
        return Stages(self.machine, self.kernel.query.selection, tuple(self.tests))

    def _follows(self, events: Merged) -> NDArray[np.bool_]:
        """Whether each event is the very next one after the one before it, and later; asked where contiguity counts."""
        found = np.zeros(len(events.times), np.bool_)
        if self.kernel.query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS):
            assert events.places is not None
            found[1:] = (np.diff(events.places) == 1) & (np.diff(events.times) > 0)
            found[events.group_from[events.group_from < len(found)]] = False
        return found

    def _conditions(self, rows: Rows, chosen: Integers) -> Conditions:
        return Conditions(self.tests, Columns(self.kernel.numbers, self.places, rows.nullable), rows, chosen)

    def _field(self, measure: Measure, rows: Rows, chosen: Integers) -> _Field:
        own = (number for number, (name, _) in enumerate(self.machine.symbols) if name == measure.variable)
        symbols = sum(1 << number for number in own)
        if measure.column is None:
            return _Field(symbols, itemgetter(0), [None])
        values, nulls = rows.columns[measure.column]
        values, nulls = values[chosen], None if nulls is None else nulls[chosen]
        if measure.what == "tally":
            return _Field(symbols, itemgetter(0), [None if nulls is None else whole(~nulls)])
        if measure.what == "sum":
            known = values_of(values, nulls)
            return _Field(symbols, known.amount, list(known.parts.values()))
        keys, known_by_key = _keys(values, nulls, largest_first=measure.what == "max")
        return _Field(symbols, lambda key: None if key[0] >= NO_KEY else known_by_key[key[0]].item(), keys=keys)


def _keys(values: NDArray[Any], nulls: Any, *, largest_first: bool) -> tuple[Integers, NDArray[Any]]:
    """For every value a key, the least for the one that counts, and the values by key."""
    known, ranks = np.unique(values, return_inverse=True)
    keys = ranks.reshape(-1).astype(np.int64)
    if largest_first:
        known, keys = known[::-1], len(known) - 1 - keys
    return (keys if nulls is None else np.where(nulls, NO_KEY, keys)), known


# --- from a query ---------------------------------------------------------------------------------


def trend(bound: BoundQuery) -> Trend | None:
    """A query compiled for counting, or None when the types of its attributes do not allow it."""
    by_position = is_formula(bound.query)
    if by_position:
        try:  # in the terms of SASE+, where all types of a variable must have an attribute
            bound = rebound(bound, as_paths(bound.query))
        except (NotAPathError, errors.TocsinError):
            return None
    query = bound.query
    core = query.core
    made = kernel(bound)
    if by_position:
        made = replace(made, needs_order=True)
    if made.conditions.residual:
        return None  # neighbours are compared by what numbers cannot decide
    environment = environment_of(bound, core)
    slots: dict[Requested, Slot] = {}
    for each in requested_in(query):
        argument = each.node.argument
        if argument is not None and not isinstance(argument, ex.Variable):
            held = _held(argument, environment)
            if held is None:
                return None
            (variable,) = ex.variables_in(argument)
            slots[each] = Slot(variable, argument, held)
    compared = [slot for test in made.conditions.tests for slot in test.slots]
    carried, places = columns_of([*compared, *slots.values()], core, made.conditions.families)
    measures: dict[Measure, int] = {}
    answers = []
    for each in requested_in(query):
        slot = slots.get(each)
        column = None if slot is None else places[slot.variable, slot.expression]
        wanted = [
            Measure(what, next(iter(ex.variables_in(each.node))), column)
            for what in MEASURES.get(each.node.function, (each.node.function,))
            if each.node.argument is not None
        ]
        numbers = tuple(measures.setdefault(measure, len(measures)) for measure in wanted)
        is_whole = slot is None or slot.held is Held.INTEGER
        answers.append(Answer(each.node.function, numbers, is_whole, each.as_digits))
    tests: dict[str, tuple[Test, ...]] = {}
    for test in made.conditions.tests:
        (variable,) = ex.variables_in(test.conjunct)
        tests[variable] = (*tests.get(variable, ()), test)
    counted = replace(made, carried=carried)
    return Trend(counted, machine(core), tuple(measures), tuple(answers), tests, places, by_position)


def _held(argument: ex.Expression, environment: Environment) -> Held | None:
    """How a number is held; a time is held as one too, and would come back as one."""
    kind = type_of(argument, environment).kind
    return HELD[kind] if kind in (Kind.INTEGER, Kind.DOUBLE) else None
