"""Errors for values that do not fit together, with advice."""

from __future__ import annotations

from tocsin import errors
from tocsin.analysis.types import DataType, Kind
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AggregateFunction, Function, Takes
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

Typed = tuple[ex.Expression, DataType]


def not_comparable(node: ex.Expression, left: Typed, right: Typed) -> errors.TypeMismatchError:
    """Two values without a common order."""
    return errors.TypeMismatchError(
        f"`{_text(node)}` compares {_said(left)} with {_said(right)}.",
        where=_place(node, left, right),
        hint=_advice(left, right),
    )


def no_common_type(where: Where, what: str, left: Typed, right: Typed) -> errors.TypeMismatchError:
    """Results of CASE or arguments of COALESCE that are of two kinds."""
    return errors.TypeMismatchError(
        f"`{what}` gives {_said(left)} or {_said(right)}, and they have no common type.",
        where=right[0].where or where,
        hint=_advice(left, right),
    )


def no_arithmetic(node: ex.Expression, op: str, *operands: Typed) -> errors.TypeMismatchError:
    """An operator that does not work on these values."""
    listed = " and ".join(_said(operand) for operand in operands)
    return errors.TypeMismatchError(
        f"`{op}` does not work on {listed}.",
        where=_place(node, *operands),
        hint=_arithmetic_advice(op, *operands),
    )


def not_a_condition(node: ex.Expression, found: DataType) -> errors.TypeMismatchError:
    """A value where TRUE or FALSE is needed."""
    text = _text(node)
    return errors.TypeMismatchError(
        f"`{text}` is {found.describe()}, not a condition.",
        where=node.where,
        hint=f"compare it with something, as in `{text} = …`, or ask `{text} IS NOT NULL`.",
    )


def not_text(node: ex.Like, found: DataType) -> errors.TypeMismatchError:
    """LIKE of something else than a string."""
    return errors.TypeMismatchError(
        f"LIKE compares text, and `{_text(node.operand)}` is {found.describe()}.",
        where=node.operand.where or node.where,
        hint="use =, < or BETWEEN.",
    )


def not_a_time(node: rx.CalendarField, found: DataType) -> errors.TypeMismatchError:
    """A field of the calendar of something that is no instant."""
    return errors.TypeMismatchError(
        f"`{node.field}` takes an instant, and `{_text(node.operand)}` is {found.describe()}.",
        where=node.operand.where or node.where,
        hint=f"write `{node.field}(a.timestamp)`.",
    )


def no_mean(node: rx.Mean, found: DataType) -> errors.TypeMismatchError:
    """AVG of listed values that have no mean."""
    return errors.TypeMismatchError(
        f"`avg` takes numbers or instants, and these are {found.describe()}.",
        where=node.where,
        hint="write `avg(a.amount, b.amount)`.",
    )


def wrong_argument(
    function: Function | AggregateFunction, argument: ex.Expression, found: DataType, wanted: Takes
) -> errors.WrongArgumentsError:
    """An argument of the wrong kind."""
    if isinstance(function, AggregateFunction):
        name, hint = function.name.upper(), f"aggregate {wanted.value}."
    else:
        name, hint = function.name, f"write `{function.signature}`."
    if wanted in (Takes.VALUE, Takes.ORDERED) and found.kind is Kind.STRUCT:
        hint = "name one of its fields."
    return errors.WrongArgumentsError(
        f"`{name}` takes {wanted.value}, and `{_text(argument)}` is {found.describe()}.",
        where=argument.where,
        hint=hint,
    )


# --- words ----------------------------------------------------------------------------------------


def _text(node: ex.Expression) -> str:
    return print_expression(node)


def _said(typed: Typed) -> str:
    node, found = typed
    if isinstance(node, ex.Literal | ex.Interval | ex.Timestamp | ex.Date):
        return f"{found.describe()}, {_text(node)}" if found.is_null else f"{found.describe()} ({_text(node)})"
    return f"{found.describe()} (`{_text(node)}`)"


def _place(node: ex.Expression, *operands: Typed) -> Where:
    return node.where or next((operand.where for operand, _ in operands if operand.where is not None), None)


def _advice(*pair: Typed) -> str:
    kinds = {found.kind for _, found in pair}
    if kinds & {Kind.STRUCT, Kind.ARRAY, Kind.OTHER}:
        return "only single values can be compared: name a field, as in `a.place.lat`."
    if Kind.STRING in kinds and any(found.is_number for _, found in pair):
        return _text_or_number(*pair)
    if Kind.STRING in kinds and Kind.TIMESTAMP in kinds:
        return "write an instant as `TIMESTAMP '2026-01-01 00:00:00'`."
    if Kind.STRING in kinds and Kind.DATE in kinds:
        return "write a day as `DATE '2026-01-01'`."
    if Kind.INTERVAL in kinds and any(found.is_number for _, found in pair):
        return "a number beside a length of time needs a unit, as in `5 SECONDS`."
    if Kind.INTERVAL in kinds and kinds & {Kind.TIMESTAMP, Kind.DATE}:
        return "compare two instants, or their difference with a length of time: `b.ts - a.ts <= 5 SECONDS`."
    if Kind.TIMESTAMP in kinds and any(found.is_number for _, found in pair):
        return "a timestamp is no number: compare it with `TIMESTAMP '2026-01-01 00:00:00'` or another one."
    return "values of different kinds have no common order; convert one of them before matching."


def _text_or_number(*pair: Typed) -> str:
    text = next(node for node, found in pair if found.kind is Kind.STRING)
    number = next(node for node, found in pair if found.is_number)
    if isinstance(number, ex.Literal):
        return f"`{_text(text)}` holds text: write '{_text(number)}' in quotes."
    if isinstance(text, ex.Literal) and _is_numeric(str(text.value)):
        return f"`{_text(number)}` holds numbers: write {text.value} without quotes."
    return "text and numbers have no common order; convert one of them before matching."


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _arithmetic_advice(op: str, *operands: Typed) -> str:
    kinds = {found.kind for _, found in operands}
    if op == "||":
        return "`||` joins text; a number has no single way to be written as text."
    if kinds == {Kind.STRING} and op == "+":
        return "join text with `||`."
    if kinds & {Kind.TIMESTAMP, Kind.DATE, Kind.INTERVAL}:
        if any(found.is_number for _, found in operands):
            return "a number beside a time needs a unit, as in `a.ts + 5 SECONDS`."
        return "instants have differences, and move by intervals: `b.ts - a.ts`, `a.ts + 5 MINUTES`."
    return "compute with numbers, or with instants and intervals."
