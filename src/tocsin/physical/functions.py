"""The scalar functions as Columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from tocsin import errors
from tocsin.language import expressions as ex
from tocsin.physical.values import Kind, Value, meet, null

Compare = Callable[[str, Value, Value], Column]
Arithmetic = Callable[[str, Value, Value], Value]


def call(node: ex.Call, arguments: Sequence[Value], *, compare: Compare, arithmetic: Arithmetic) -> Value:
    """A scalar function of compiled arguments; names and arities were checked by the analysis."""
    first = arguments[0]
    match node.function:
        case "abs":
            return Value(F.abs(first.number), first.kind)
        case "ceil" | "floor":
            whole = F.ceil(first.number) if node.function == "ceil" else F.floor(first.number)
            return Value(whole, Kind.DECIMAL if first.kind is Kind.DECIMAL else Kind.INTEGER)
        case "round":
            digits = _constant_integer(node.arguments[1]) if len(arguments) > 1 else 0
            return Value(F.round(first.number, digits), first.kind)
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
        case "concat":
            return Value(F.concat(*(argument.column for argument in arguments)), Kind.STRING)
        case "substring":
            bounds = [argument.column.try_cast("int") for argument in arguments[1:]]
            return Value(F.substr(first.column, *bounds), Kind.STRING)
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
    raise errors.UnknownFunctionError(f"There is no function `{node.function}`.", where=node.where)


def _constant_integer(digits: ex.Expression) -> int:
    """The digits of ROUND, which Spark wants to know when it plans."""
    match digits:
        case ex.Literal(value=int() as value):
            return value
        case ex.Negative(operand=ex.Literal(value=int() as value)):
            return -value
    raise errors.UnsupportedError(
        "The digits of ROUND must be a constant on Spark.",
        where=digits.where,
        hint="write a whole number, as in `ROUND(a.x, 2)`.",
    )
