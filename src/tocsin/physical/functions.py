"""The scalar functions as Columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from tocsin import errors
from tocsin.expressions.of_rules import constant_integer
from tocsin.language import expressions as ex
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import Kind, Value, meet, null, whole

MOST_DIGITS = 38  # of a DECIMAL
Compare = Callable[[str, Value, Value], Column]
Arithmetic = Callable[[str, Value, Value], Value]


def call(node: ex.Call, arguments: Sequence[Value], *, compare: Compare, arithmetic: Arithmetic) -> Value:
    """A scalar function of compiled arguments; names and arities were checked by the analysis."""
    first = arguments[0]
    match node.function:
        case "abs":
            return _absolute(first)
        case "ceil" | "floor":
            return _next_whole(F.ceil if node.function == "ceil" else F.floor, first)
        case "round":
            digits = constant_integer(node.arguments[1]) if len(arguments) > 1 else 0
            if digits is None:
                raise errors.InternalError("Python computes ROUND to a computed number of digits.", where=node.where)
            return Value(_rounded(first, digits), first.kind)
        case "sqrt":
            return Value(F.sqrt(first.number.cast("double")), Kind.DOUBLE)
        case "power":
            return Value(F.pow(first.number.cast("double"), arguments[1].number.cast("double")), Kind.DOUBLE)
        case "mod":
            return arithmetic("%", first, arguments[1])
        case "sign":
            return Value(F.signum(first.number.cast("double")), Kind.DOUBLE)
        case "lower" | "upper" | "trim":
            change = {"lower": F.lower, "upper": F.upper, "trim": F.trim}[node.function]
            return Value(change(first.column), Kind.STRING)
        case "length":
            return Value(F.length(first.column).cast("bigint"), Kind.INTEGER)
        case "digits":
            return Value(first.number.cast("string"), Kind.STRING)
        case "concat":
            return Value(F.concat(*(argument.column for argument in arguments)), Kind.STRING)
        case "substring":
            bounds = [argument.column.try_cast("int") for argument in arguments[1:]]
            return Value(F.substring(first.column, *bounds), Kind.STRING)
        case "coalesce":
            columns, kind, in_micros = meet(*arguments)
            return Value(F.coalesce(*columns), kind, in_micros)
        case "nullif":
            equal = compare("=", first, arguments[1])
            return Value(F.when(equal, null()).otherwise(first.column), first.kind, first.in_micros)
        case "greatest" | "least":
            columns, kind, in_micros = meet(*arguments)
            choose = F.greatest if node.function == "greatest" else F.least
            return Value(columns[0] if len(columns) == 1 else choose(*columns), kind, in_micros)
        case _:
            raise errors.UnknownFunctionError(f"There is no function `{node.function}`.", where=node.where)


def _absolute(value: Value) -> Value:
    number = value.number
    if value.kind in (Kind.DOUBLE, Kind.DECIMAL):
        return Value(F.abs(number), value.kind)
    # The least BIGINT has no opposite.
    return Value(F.when(number < 0, F.try_subtract(F.bigint(0), number)).otherwise(number), value.kind)


def _next_whole(function: Callable[[Column], Column], value: Value) -> Value:
    if value.kind is not Kind.DOUBLE:
        return Value(function(value.number), Kind.DECIMAL if value.kind is Kind.DECIMAL else Kind.INTEGER)
    # Spark's functions of a DOUBLE are BIGINT, clipped, and 0 for NaN.
    number = value.number
    fits = whole(number).isNotNull()
    return Value(F.when(fits, function(number)), Kind.INTEGER)


def _rounded(value: Value, digits: int) -> Column:
    """Half away from zero; NULL when the result has too many digits."""
    number = value.number
    if value.kind is Kind.DOUBLE:
        return F.round(number, digits)
    if digits >= 0:
        return F.round(number, digits) if value.kind is Kind.DECIMAL else number
    if digits < -MOST_DIGITS:
        return number - number
    if value.kind is not Kind.DECIMAL:
        return F.round(number.cast("decimal(20, 0)"), digits).try_cast("bigint")
    half = F.lit(Decimal(5 * 10 ** (-digits - 1)))
    return F.when(F.try_add(F.abs(number), half).isNotNull(), F.round(number, digits))
