"""Values of generated conditions: single events, folds over bags, constants, arithmetic and functions.

A value is source text for a number, and for whether it is NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from tocsin.analysis.types import Kind
from tocsin.expressions.numeric import GREATEST, LEAST
from tocsin.expressions.objects import microseconds
from tocsin.kernels.model import Slot
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import constant_integer


@dataclass(frozen=True)
class InTask(ex.Expression):
    """A number of an event that a search has without shipping it.

    `row`: two variables hold the same event when it is equal. `pos`: the place among all, where positions are known.
    """

    what: str
    event: ex.Variable


@dataclass(frozen=True)
class SlotRef(ex.Expression):
    """The value of a slot for one event of its variable, chosen by the index; `kind` is the type of the value."""

    slot: Slot
    index: ex.Index
    kind: Kind

    @property
    def variable(self) -> str:
        """The variable of the event."""
        return self.slot.variable


@dataclass(frozen=True)
class Fold(ex.Expression):
    """An aggregate of a slot over all events of its variable; without a slot the number of the events.

    `kind` is the type of the result.
    """

    function: str
    slot: Slot | None
    variable: str
    kind: Kind


@dataclass(frozen=True)
class Value(ex.Expression):
    """A value as source text: its number, and whether it is NULL; `ranks` are the slots that a rank may come from."""

    text: str
    null: str
    kind: Kind
    ranks: tuple[Slot, ...] = ()

    @property
    def double(self) -> str:
        """The number as a double."""
        return self.text if self.kind is Kind.DOUBLE else f"float({self.text})"


@dataclass(frozen=True)
class Test:
    """A conjunct that numbers can decide."""

    __test__ = False  # pytest takes the name for a test case

    conjunct: ex.Expression  # as the query has it
    tree: ex.Expression  # the same with `SlotRef` and `Fold` in place of all that speaks of events

    @cached_property
    def references(self) -> tuple[SlotRef, ...]:
        """The events outside aggregates, each once. Where one of them does not exist the conjunct holds (R1)."""
        return tuple(dict.fromkeys(node for node in self.tree.walk() if isinstance(node, SlotRef)))

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """The aggregates, each once."""
        return tuple(dict.fromkeys(node for node in self.tree.walk() if isinstance(node, Fold)))

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What it needs of events, each once."""
        leaves: tuple[SlotRef | Fold, ...] = (*self.references, *self.folds)
        return tuple(dict.fromkeys(leaf.slot for leaf in leaves if leaf.slot is not None))


RANKED = frozenset({Kind.STRING, Kind.DECIMAL, Kind.BINARY})
COUNTED = frozenset({Kind.INTEGER, Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL})  # held as 64-bit integers
NUMBERS = COUNTED | {Kind.DOUBLE}
MOST_STEP_DIGITS = 18  # of a power of ten in 64 bits


class NotNumbers(Exception):
    """Numbers cannot decide a condition."""


# --- texts ----------------------------------------------------------------------------------------


def all_of(*texts: str) -> str:
    """Whether all hold."""
    known = [text for text in texts if text != "True"]
    if "False" in known:
        return "False"
    return f"({' and '.join(known)})" if len(known) > 1 else (known[0] if known else "True")


def any_of(*texts: str) -> str:
    """Whether any holds."""
    known = [text for text in texts if text != "False"]
    if "True" in known:
        return "True"
    return f"({' or '.join(known)})" if len(known) > 1 else (known[0] if known else "False")


def not_(text: str) -> str:
    """Whether it does not hold."""
    return {"True": "False", "False": "True"}.get(text, f"(not {text})")


NOTHING = Value("0", "True", Kind.NULL)


# --- constants and arithmetic ---------------------------------------------------------------------


def constant(node: ex.Expression) -> Value:
    """A constant."""
    match node:
        case ex.Literal(value=None):
            return NOTHING
        case ex.Literal(value=bool() as value):
            return Value(str(value), "False", Kind.BOOLEAN)
        case ex.Literal(value=float() as value):
            return Value(_double(value), "False", Kind.DOUBLE)
        case ex.Literal(value=int() as number):
            kind = Kind.INTEGER
        case ex.Interval():
            kind, number = Kind.INTERVAL, node.microseconds
        case ex.Timestamp():
            kind, number = Kind.TIMESTAMP, microseconds(node.value)
        case ex.Date():
            kind, number = Kind.DATE, microseconds(node.value)
        case _:
            raise NotNumbers
    if not LEAST <= number <= GREATEST:
        raise NotNumbers
    return Value(f"({number})" if number < 0 else str(number), "False", kind)


def _double(value: float) -> str:
    """A double as Python text, which has no words for NaN and the infinities."""
    if math.isnan(value):
        return "(1e999 - 1e999)"
    if math.isinf(value):
        return "1e999" if value > 0 else "(-1e999)"
    return f"({value!r})" if value < 0 else repr(value)


def _nothing_of(*values: Value) -> Value:
    kind = next((value.kind for value in values if value.kind is not Kind.NULL), Kind.NULL)
    return Value("0.0" if kind is Kind.DOUBLE else "0", "True", kind)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """`+ - * / %`: NULL with NULL, by zero, and beyond 64 bits (D14)."""
    kinds = {left.kind, right.kind}
    if op == "||" or not kinds <= NUMBERS | {Kind.NULL}:
        raise NotNumbers
    if Kind.NULL in kinds:
        return _nothing_of(left, right)
    null = any_of(left.null, right.null)
    if op == "/":
        text, null = f"divide({left.double}, {right.double})", any_of(null, f"({right.double} == 0.0)")
        return (
            _interval(text, null)
            if kinds & {Kind.INTERVAL} and right.kind is not Kind.INTERVAL
            else Value(text, null, Kind.DOUBLE)
        )
    if Kind.DOUBLE in kinds:
        if op == "%":
            text = f"remainder_doubles({left.double}, {right.double})"
            return Value(text, any_of(null, f"({right.double} == 0.0)"), Kind.DOUBLE)
        text = f"({left.double} {op} {right.double})"
        return _interval(text, null) if op == "*" and Kind.INTERVAL in kinds else Value(text, null, Kind.DOUBLE)
    kind = _counted_kind(op, left.kind, right.kind)
    if op == "%":
        text = f"remainder_integers({left.text}, {right.text})"
        return Value(text, any_of(null, f"({right.text} == 0)"), kind)
    overflows = {"+": "add_overflows", "-": "subtract_overflows", "*": "multiply_overflows"}[op]
    return Value(f"({left.text} {op} {right.text})", any_of(null, f"{overflows}({left.text}, {right.text})"), kind)


def _interval(double: str, null: str) -> Value:
    """A part of an interval is rounded to whole microseconds."""
    return Value(f"nearest_integer({double})", any_of(null, f"(not fits_integer({double}))"), Kind.INTERVAL)


def _counted_kind(op: str, left: Kind, right: Kind) -> Kind:
    times = {Kind.TIMESTAMP, Kind.DATE}
    if left in times and right in times:
        return Kind.INTERVAL
    if left in times or right in times:
        return Kind.TIMESTAMP
    if Kind.INTERVAL in (left, right):
        return Kind.INTERVAL if op == "*" or left is right else Kind.INTEGER
    return Kind.INTEGER


def negative(value: Value) -> Value:
    """The opposite number."""
    if value.kind is Kind.NULL:
        return value
    if value.kind is Kind.DOUBLE:
        return replace(value, text=f"(-{value.text})")
    if value.kind not in (Kind.INTEGER, Kind.INTERVAL):
        raise NotNumbers
    return replace(value, text=f"(-{value.text})", null=any_of(value.null, f"({value.text} == {LEAST})"))


def strict(node: ex.Call, arguments: list[Value]) -> Value:
    """A function that is NULL when an argument is."""
    first = arguments[0]
    if any(argument.kind not in NUMBERS | {Kind.NULL} for argument in arguments):
        raise NotNumbers
    if any(argument.kind is Kind.NULL for argument in arguments):
        return _nothing_of(*arguments)
    null = any_of(*(argument.null for argument in arguments))
    is_double = first.kind is Kind.DOUBLE
    match node.function:
        case "abs":
            least = "False" if is_double else f"({first.text} == {LEAST})"
            return Value(f"abs({first.text})", any_of(null, least), first.kind)
        case "ceil" | "floor":
            if not is_double:
                return first
            fits = f"(not fits_integer({first.text}))"
            return Value(f"{node.function}_integer({first.text})", any_of(null, fits), Kind.INTEGER)
        case "round":
            return _round(first, node.arguments[1] if len(arguments) > 1 else ex.Literal(0))
        case "sqrt":
            return Value(f"square_root({first.double})", null, Kind.DOUBLE)
        case "power":
            return Value(f"power({first.double}, {arguments[1].double})", null, Kind.DOUBLE)
        case "mod":
            return arithmetic("%", first, arguments[1])
        case "sign":
            return Value(f"sign({first.double})", null, Kind.DOUBLE)
        case _:
            raise NotNumbers


def _round(value: Value, digits: ex.Expression) -> Value:
    """ROUND of an integer to a constant place; a double is rounded by its shortest decimal text, not as a number."""
    places = constant_integer(digits)
    if places is None or value.kind is not Kind.INTEGER or places < -MOST_STEP_DIGITS:
        raise NotNumbers
    if places >= 0:
        return value
    step = 10**-places
    overflows = f"round_overflows({value.text}, {step})"
    return replace(value, text=f"round_integer({value.text}, {step})", null=any_of(value.null, overflows))
