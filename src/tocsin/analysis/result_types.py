"""The types of results: of arithmetic, functions and aggregates over values of known types.

Integers compute in 64 bits, floats as doubles; decimals have the digits that Spark gives their results.
"""

from __future__ import annotations

from typing import assert_never

from tocsin.analysis import types
from tocsin.analysis.type_names import given_type
from tocsin.analysis.types import DataType, Kind, common_type
from tocsin.language import expressions as ex
from tocsin.language.functions import AGGREGATES, Gives, Takes


def aggregate_type(node: ex.Aggregate, found: DataType) -> DataType:
    """The type of an aggregate over values of a type.

    ==============================  =================================================
    count                           bigint
    avg, stddev                     double
    sum                             as wide as there is: bigint, double, decimal(38, scale)
    range                           that of a difference of two values
    min, max, first, last           that of the values
    collect                         an array of that
    a user-defined aggregate        what it `gives`, or that of the values, as wide as there is
    ==============================  =================================================
    """
    if node.monoid is not None:
        return found.widened if node.monoid.gives is None else given_type(node.monoid.gives)
    if node.function == "sum":
        # The scale of computed decimals is not known where Spark adds them up.
        return found.widened if found.kind is not Kind.DECIMAL or is_column(node) else types.DECIMAL
    if node.function == "range":
        return arithmetic_type("-", found, found) or found
    return result_type(AGGREGATES[node.function].gives, [found])


def is_column(node: ex.Aggregate) -> bool:
    """Whether an aggregate is over an attribute as it is."""
    return isinstance(node.argument, ex.Attribute)


def accepts(wanted: Takes, given: DataType) -> bool:
    """Whether a parameter takes a value of a type.

    >>> [accepts(wanted, types.DOUBLE) for wanted in (Takes.NUMBER, Takes.STRING, Takes.ANYTHING)]
    [True, False, True]
    """
    if given.is_null:
        return True
    match wanted:
        case Takes.NUMBER:
            return given.is_number
        case Takes.MAGNITUDE:
            return given.is_number or given.kind is Kind.INTERVAL
        case Takes.INTEGER:
            return given.kind is Kind.INTEGER
        case Takes.STRING:
            return given.kind is Kind.STRING
        case Takes.VALUE | Takes.ORDERED:
            return given.is_ordered
        case Takes.ANYTHING:
            return True
        case _:
            assert_never(wanted)


def result_type(gives: Gives, found: list[DataType]) -> DataType:
    """The type of the result of a function with arguments of these types."""
    match gives:
        case Gives.INTEGER:
            return types.INTEGER
        case Gives.DOUBLE:
            return types.DOUBLE
        case Gives.STRING:
            return types.STRING
        case Gives.WHOLE if found[0].kind is Kind.DECIMAL:
            digits, scale = found[0].decimal_digits
            return found[0] if scale == 0 else types.bounded_decimal(digits - scale + 1, 0)
        case Gives.WHOLE:
            return types.INTEGER
        case Gives.ARRAY:
            return types.array_of(found[0])
        case Gives.NUMBER:
            return arithmetic_type("%", *found) or types.NULL
        case Gives.SAME | Gives.FIRST:
            return found[0]
        case _:
            assert_never(gives)


def rounded_type(node: ex.Call, number: DataType) -> DataType:
    """The type of ROUND: a decimal has at most the digits behind the point that it is rounded to."""
    if number.kind is not Kind.DECIMAL:
        return number.computed
    digits, scale = number.decimal_digits
    wanted = node.arguments[1].value if len(node.arguments) > 1 and isinstance(node.arguments[1], ex.Literal) else 0
    kept = min(scale, max(wanted, 0)) if isinstance(wanted, int) else scale
    return types.decimal_of(min(digits - scale + 1 + kept, types.MOST_DIGITS), kept)


def arithmetic_type(op: str, left: DataType, right: DataType) -> DataType | None:
    """The type of `left op right`; None when there is no such arithmetic.

    A day counts as its first instant in UTC. An interval written in the query counts microseconds beside a
    number; a difference of time stamps does not, where it is more likely that a unit was forgotten.

    >>> print(arithmetic_type("+", types.TIMESTAMP, types.INTERVAL))
    timestamp
    >>> print(arithmetic_type("-", types.INTEGER, types.WRITTEN_INTERVAL))
    bigint
    >>> arithmetic_type("+", types.STRING, types.STRING) is None
    True
    """
    if op == "||":
        return types.STRING if {left.kind, right.kind} <= {Kind.STRING, Kind.NULL} else None
    if left.is_null or right.is_null:
        other = right if left.is_null else left
        usable = other.is_null or other.is_number or other.is_time or other.kind is Kind.INTERVAL
        return (types.DOUBLE if op == "/" and other.is_number else other.computed) if usable else None
    if left.is_number and right.is_number:
        return _number_type(op, left, right)
    if left.is_time or right.is_time:
        return _time_type(op, left, right)
    if Kind.INTERVAL in (left.kind, right.kind):
        return _interval_type(op, left, right)
    return None


def _number_type(op: str, left: DataType, right: DataType) -> DataType:
    """The type of arithmetic on numbers: 64 bits, or decimals with the digits that Spark gives their results."""
    kinds = {left.kind, right.kind}
    if op == "/" or Kind.DOUBLE in kinds:
        return types.DOUBLE
    if Kind.DECIMAL not in kinds:
        return types.INTEGER
    (one, one_scale), (other, other_scale) = left.computed.decimal_digits, right.computed.decimal_digits
    scale = max(one_scale, other_scale)
    match op:
        case "*":
            return types.bounded_decimal(one + other + 1, one_scale + other_scale)
        case "%":
            return types.bounded_decimal(min(one - one_scale, other - other_scale) + scale, scale)
        case _:
            return types.bounded_decimal(max(one - one_scale, other - other_scale) + scale + 1, scale)


def _time_type(op: str, left: DataType, right: DataType) -> DataType | None:
    if left.is_time and right.is_time:
        return types.INTERVAL if op == "-" else None
    moved, time = (right, left) if left.is_time else (left, right)
    if not (op == "+" or (op == "-" and left.is_time)) or moved.kind is not Kind.INTERVAL:
        return None
    return types.LOCAL_TIMESTAMP if time.is_local else types.TIMESTAMP


def _interval_type(op: str, left: DataType, right: DataType) -> DataType | None:
    if left.kind is right.kind:
        if op == "/":
            return types.DOUBLE
        return common_type([left, right]) if op in ("+", "-") else None
    interval, number = (left, right) if left.kind is Kind.INTERVAL else (right, left)
    if not number.is_number:
        return None
    if op == "*" or (op == "/" and left is interval):
        return interval
    return number.computed if op in ("+", "-") and interval.is_written else None
