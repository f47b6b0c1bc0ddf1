"""A query compiled for counting: the answers it asks for, the measures they are made of, and the columns they need."""

from __future__ import annotations

from dataclasses import replace

from tocsin import errors
from tocsin.algebra.alternatives import is_formula
from tocsin.analysis.inference import Environment, type_of
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.analysis.types import Kind
from tocsin.kernels.conditions import columns_of, environment_of
from tocsin.kernels.expressions.slots import HELD, Test
from tocsin.kernels.kernel import kernel
from tocsin.kernels.model import Held, Slot
from tocsin.kernels.trends.answers import Answer
from tocsin.kernels.trends.asked import Asked, asked_in
from tocsin.kernels.trends.machine import machine
from tocsin.kernels.trends.trend import Measure, Trend
from tocsin.kernels.trends.words import NoWordsError, as_words
from tocsin.language import expressions as ex


def trend(bound: BoundQuery) -> Trend | None:
    """A query compiled for counting, or None when the types of its attributes do not allow it."""
    by_position = is_formula(bound.query)
    if by_position:
        said = _said(bound)
        if said is None:
            return None
        bound = said
    query = bound.query
    core = query.core
    made = kernel(bound)
    if by_position:
        made = replace(made, needs_order=True)
    if made.conditions.residual:
        return None  # neighbours are compared by what numbers cannot decide
    environment = environment_of(bound, core)
    slots: dict[Asked, Slot] = {}
    for asked in asked_in(query):
        argument = asked.node.argument
        if argument is not None and not isinstance(argument, ex.Variable):
            held = _held(argument, environment)
            if held is None:
                return None
            (variable,) = ex.variables_in(argument)
            slots[asked] = Slot(variable, argument, held)
    compared = [slot for test in made.conditions.tests for slot in test.slots]
    carried, places = columns_of([*compared, *slots.values()], core)
    measures: dict[Measure, int] = {}
    answers = []
    for asked in asked_in(query):
        slot = slots.get(asked)
        column = None if slot is None else places[slot.variable, slot.expression]
        wanted = [
            Measure(what, next(iter(ex.variables_in(asked.node))), column)
            for what in _measures(asked.node)
            if asked.node.argument is not None
        ]
        numbers = tuple(measures.setdefault(measure, len(measures)) for measure in wanted)
        is_whole = slot is None or slot.held is Held.INTEGER
        answers.append(Answer(asked.node.function, numbers, is_whole, asked.as_digits))
    tests: dict[str, tuple[Test, ...]] = {}
    for test in made.conditions.tests:
        (variable,) = ex.variables_in(test.conjunct)
        tests[variable] = (*tests.get(variable, ()), test)
    counted = replace(made, carried=carried)
    return Trend(counted, machine(core), tuple(measures), tuple(answers), tests, places, by_position)


def _said(bound: BoundQuery) -> BoundQuery | None:
    """A formula in the terms of SASE+, where an attribute must be there in all types of a variable."""
    try:
        query = as_words(bound.query)
        return rebound(bound, query)
    except (NoWordsError, errors.TocsinError):
        return None


def _held(argument: ex.Expression, environment: Environment) -> Held | None:
    """How a number is held; a time is held as one too, and would come back as one."""
    kind = type_of(argument, environment).kind
    return HELD[kind] if kind in (Kind.INTEGER, Kind.DOUBLE) else None


def _measures(node: ex.Aggregate) -> tuple[str, ...]:
    return {"count": ("tally",), "sum": ("sum",), "avg": ("sum", "tally")}.get(node.function, (node.function,))
