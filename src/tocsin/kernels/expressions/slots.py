"""Conditions between events, taken apart into the values they need of each event: slots, folds and a tree over both."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from tocsin import errors
from tocsin.analysis.inference import Environment, type_of
from tocsin.analysis.types import Kind
from tocsin.expressions import interpret, objects
from tocsin.expressions.numeric import GREATEST, LEAST
from tocsin.kernels.expressions.code import ranks_that_meet
from tocsin.kernels.expressions.leaves import RANKED, Fold, InTask, NotNumbers, SlotRef, Test
from tocsin.kernels.model import Held, Slot
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AGGREGATES, Gives, Takes
from tocsin.optimizer.query_parts import OF_RULES, only_in_python

HELD: dict[Kind, Held] = {
    Kind.INTEGER: Held.INTEGER,
    Kind.TIMESTAMP: Held.INTEGER,
    Kind.DATE: Held.INTEGER,
    Kind.INTERVAL: Held.INTEGER,
    Kind.DOUBLE: Held.FLOAT,
    Kind.BOOLEAN: Held.BOOLEAN,
    **dict.fromkeys(RANKED, Held.RANK),
}
TIMES = (dt.date, dt.timedelta)
ON_OBJECTS = (ex.Every, ex.BagPredicate, ex.SameValue, ex.Name)
INDIFFERENT = frozenset({"min", "max", "range", "first", "last"})  # equal values make no difference to them
Event = tuple[str, str, int]  # a variable, how its event is chosen, and which


@dataclass
class Families:
    """Which slots are ranked together: those that some condition compares, directly or by way of others.

    A slot gets a family of its own when it is first seen. Families grow as conditions are prepared, so that numbers are
    final only after the last one.
    """

    parents: list[int] = field(default_factory=list)
    numbers: dict[Slot, int] = field(default_factory=dict)

    def of(self, slot: Slot) -> int:
        """The family of a ranked slot so far."""
        number = self.numbers.setdefault(slot, len(self.parents))
        if number == len(self.parents):
            self.parents.append(number)
        while self.parents[number] != number:
            number = self.parents[number]
        return number

    def unite(self, left: Slot, right: Slot) -> None:
        """Rank two slots together."""
        low, high = sorted((self.of(left), self.of(right)))
        self.parents[high] = low


def prepare(conjunct: ex.Expression, environment: Environment, families: Families) -> Test | None:
    """Take a conjunct apart for kernels; None when numbers cannot decide it, or an attribute has no type.

    Every largest part that speaks of a single event becomes a slot. `families` grow by the ranks that are compared, if
    the result is a test.
    """
    parts = _Parts(environment, families)
    try:
        tree = parts.identity(conjunct) or parts.of(conjunct)
        pairs = ranks_that_meet(tree)
    except errors.InternalError:
        raise
    except (NotNumbers, errors.TocsinError):
        return None
    for left, right in pairs:
        families.unite(left, right)
    return Test(conjunct, tree)


class _Parts:
    """The parts of one conjunct."""

    def __init__(self, environment: Environment, families: Families) -> None:
        self.environment, self.families = environment, families
        self.indices: dict[Event, ex.Index] = {}  # of the first reference to each event

    def of(self, node: ex.Expression) -> ex.Expression:
        """The tree of a part, with slots and folds for leaves."""
        if _is_on_objects(node):
            raise NotNumbers
        if isinstance(node, ex.Aggregate):
            return self._fold(node)
        if not ex.has_aggregate(node) and not any(map(_is_on_objects, node.walk())):
            events = {_event(reference) for reference in ex.references_in(node)}
            if not events:
                return node
            if len(events) == 1 and not self._is_cheap(node):
                return self._reference(node, events.pop())
        if isinstance(node, OF_RULES):
            raise NotNumbers  # of several events
        return node.map_children(self.of)

    def identity(self, conjunct: ex.Expression) -> ex.Expression | None:
        """`distinct`: that no event of one variable is one of the other; None for any other conjunct."""
        if not isinstance(conjunct, ex.Not) or not isinstance(conjunct.operand, rx.SameEvent):
            return None
        names = (conjunct.operand.left.name, conjunct.operand.right.name)
        slots = (Slot(name, InTask("row", ex.Variable(name)), Held.INTEGER) for name in names)
        return ex.Comparison("!=", *(SlotRef(slot, ex.Each.PLAIN, Kind.INTEGER) for slot in slots))

    def _is_cheap(self, node: ex.Expression) -> bool:
        """Whether to compute a part in the loops: sums and products of one number and constants.

        A value that travels costs more than such a sum, and the bare number is often needed by other conditions too.
        """
        return (
            (isinstance(node, ex.Arithmetic) and node.op in "+-*")
            and sum(isinstance(each, ex.Attribute) for each in node.walk()) == 1
            and all(isinstance(each, ex.Arithmetic | ex.Attribute | ex.Literal) for each in node.walk())
            and all(self._kind(each) in (Kind.INTEGER, Kind.DOUBLE) for each in node.walk())
            and not _has_wide_literal(node)
        )

    def _reference(self, node: ex.Expression, event: Event) -> SlotRef:
        index = self.indices.setdefault(event, next(ex.references_in(node)).index)
        kind = self._kind(node)
        return SlotRef(self._slot(event[0], node, kind), index, kind)

    def _fold(self, node: ex.Aggregate) -> Fold:
        if node.argument is None or (node.distinct and node.function not in INDIFFERENT):
            raise NotNumbers
        if ex.has_aggregate(node.argument):
            raise NotNumbers
        (variable,) = ex.variables_in(node.argument)
        if isinstance(node.argument, ex.Variable):
            return Fold("count", None, variable, Kind.INTEGER)
        argument, kind, known = node.argument, self._kind(node.argument), AGGREGATES[node.function]
        if node.function == "count":
            if HELD.get(kind) not in (Held.INTEGER, Held.FLOAT, Held.BOOLEAN):
                # Only whether it is NULL counts.
                argument = ex.Case(((ex.IsNull(argument, negated=True), ex.Literal(True)),))
                kind = Kind.BOOLEAN
        elif known.gives is Gives.ARRAY or (known.takes is Takes.NUMBER and kind not in (Kind.INTEGER, Kind.DOUBLE)):
            raise NotNumbers
        slot = self._slot(variable, argument, kind)
        given = {Gives.INTEGER: Kind.INTEGER, Gives.DOUBLE: Kind.DOUBLE}.get(known.gives, kind)
        return Fold(node.function, slot, variable, given)

    def _kind(self, node: ex.Expression) -> Kind:
        return type_of(node, self.environment).kind

    def _slot(self, variable: str, node: ex.Expression, kind: Kind) -> Slot:
        held = HELD.get(kind)
        if held is None or (held in (Held.INTEGER, Held.FLOAT) and _has_wide_literal(node)):
            raise NotNumbers
        plain = node.transform(
            lambda each: replace(each, index=ex.Each.PLAIN) if isinstance(each, ex.Attribute) else each
        )
        slot = Slot(variable, plain, held)
        if held is Held.RANK:
            self.families.of(slot)
        return slot


def _is_on_objects(node: ex.Expression) -> bool:
    """Whether Python computes a part, or the frame of a table, which travels as a flag only."""
    is_frame = isinstance(node, rx.InTable) and node.table.rows is None
    return is_frame or isinstance(node, ON_OBJECTS) or only_in_python(node)


def _event(reference: ex.Attribute) -> Event:
    """Which event a reference means; a variable has one running index within a conjunct, whatever its letter (R3)."""
    match reference.index:
        case ex.Fixed(number=number):
            return reference.variable, "fixed", number
        case ex.Edge.FIRST:
            return reference.variable, "fixed", 1
        case ex.Edge.LAST:
            return reference.variable, "last", 0
        case ex.Each() | ex.Running():
            return reference.variable, "running", ex.offset_of(reference.index) or 0
        case _:
            assert_never(reference.index)


def _has_wide_literal(node: ex.Expression) -> bool:
    """Whether an integer beyond 64 bits is written in it: with one, what is typed an integer may not be one."""
    return any(
        isinstance(each, ex.Literal) and isinstance(each.value, int) and not LEAST <= each.value <= GREATEST
        for each in node.walk()
    )


# --- values ----------------------------------------------------------------------------------------


def slot_values(expression: ex.Expression, events: Sequence[interpret.Event], held: Held) -> list[Any]:
    """The values of a slot, event by event, as a kernel holds them; None is NULL, and what will be ranked stays."""
    evaluate = interpret.value(expression)
    (variable,) = ex.variables_in(expression)
    values = [evaluate({variable: (event,)}) for event in events]
    if held is Held.INTEGER:
        return [objects.microseconds(each) if isinstance(each, TIMES) else each and int(each) for each in values]
    return [None if each is None else float(each) for each in values] if held is Held.FLOAT else values
