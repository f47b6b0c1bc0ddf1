"""Expressions → Columns: the back end of the one expression tree that Spark runs.

A variable is an event or a bag of events (`bags`), which some or all matches of a frame may lack; what
an unbound variable means is decided here once: NULL in an output column, the empty bag in an aggregate (R18).
Conditions of WHERE on unbound variables never get here (R1: they are vacuous).

No scalar expression may fail a job, whatever the session's ANSI setting: division by zero and a result beyond 64 bits
are NULL (R39, D14). Aggregates beyond 64 bits do (D24).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import and_, or_

from pyspark.sql import types as T

from tocsin import errors
from tocsin.engines.spark import tables
from tocsin.engines.spark.bags import Bag, Binding
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.typed_columns import (
    Kind,
    Value,
    arithmetic,
    calendar,
    compare,
    is_one_of,
    literal,
    mean,
    meet,
    negative,
    null,
    value_of,
    whole,
)
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.optimizer.query_parts import constant_integer

__all__ = ["Bag", "Binding", "Compiler", "like_pattern"]

MOST_DIGITS = 38  # of a DECIMAL


class Compiler:
    """Compiles expressions over the events of the variables of a match.

    `known` are expressions whose values are columns already: group keys and aggregates over all matches.
    """

    def __init__(
        self, bindings: Mapping[str, Binding | Bag], known: Mapping[ex.Expression, Value] | None = None
    ) -> None:
        self.bindings = bindings
        self.known = known or {}

    def condition(self, expression: ex.Expression) -> Column:
        """A condition; a filter keeps the rows where it is TRUE."""
        return self.value(expression).column

    def output(self, expression: ex.Expression) -> Column:
        """A RETURN column; an attribute of a bag without index is the array of its values."""
        if self.known and expression in self.known:
            return self.known[expression].output
        if isinstance(expression, ex.Variable):
            return self.bindings[expression.name].event
        if isinstance(expression, ex.Attribute):
            bag = self.bindings[expression.variable]
            if isinstance(bag, Bag) and expression.index is ex.Each.PLAIN:
                return bag.attributes(expression.path)
            return self.typed(expression)[0]
        return self.value(expression).output

    def value(self, node: ex.Expression) -> Value:
        """The value of an expression."""
        if self.known and node in self.known:
            return self.known[node]
        match node:
            case ex.Literal() | ex.Timestamp() | ex.Date():
                return literal(node.value)
            case ex.Interval():
                return Value(F.bigint(node.microseconds), Kind.INTERVAL)
            case ex.Attribute():
                return value_of(*self.typed(node))
            case ex.Aggregate():
                return self._aggregate(node)
            case ex.Arithmetic():
                return arithmetic(node.op, self.value(node.left), self.value(node.right))
            case ex.Negative():
                return negative(self.value(node.operand))
            case ex.Call():
                return _call(node, [self.value(argument) for argument in node.arguments])
            case ex.Case():
                return self._case(node)
            case rx.ListOf():
                shown = (replace(item, column=item.output, in_micros=False) for item in map(self.value, node.items))
                return Value(F.array(*meet(*shown)[0]), Kind.OTHER)
            case rx.Mean():
                return mean([self.value(operand) for operand in node.operands])
            case rx.CalendarField():
                return Value(calendar(node.field, self.value(node.operand).micros, node.zone), Kind.INTEGER)
            case _:
                return Value(self._predicate(node), Kind.BOOLEAN)

    def _predicate(self, node: ex.Expression) -> Column:
        match node:
            case ex.Comparison():
                return compare(node.op, self.value(node.left), self.value(node.right))
            case ex.And():
                return reduce(and_, map(self.condition, node.operands))
            case ex.Or():
                return reduce(or_, map(self.condition, node.operands))
            case ex.Not():
                return ~self.condition(node.operand)
            case ex.IsNull():
                column = self.value(node.operand).column
                return column.isNotNull() if node.negated else column.isNull()
            case ex.In():
                found = is_one_of(self.value(node.operand), [self.value(option) for option in node.options])
                return ~found if node.negated else found
            case ex.Between():
                subject = self.value(node.operand)
                inside = compare(">=", subject, self.value(node.low)) & compare("<=", subject, self.value(node.high))
                return ~inside if node.negated else inside
            case ex.Like():
                matched = self.value(node.operand).column.like(like_pattern(node.pattern))
                return ~matched if node.negated else matched
            case rx.InTable():
                return tables.listed(node, [self.value(argument) for argument in node.arguments])
            case _:
                raise errors.unknown_node(node, "The SQL of expressions")

    def typed(self, node: ex.Attribute) -> tuple[Column, T.DataType]:
        """The column of a reference as it is and its type; NULL where the index is outside the bag."""
        return self.bindings[node.variable].chosen(node.index).attribute(node.path)

    def _case(self, node: ex.Case) -> Value:
        results = [self.value(result) for _, result in node.branches]
        otherwise = Value(null(), Kind.NULL) if node.otherwise is None else self.value(node.otherwise)
        columns, kind, in_micros = meet(*results, otherwise)
        tests = [self.condition(test) for test, _ in node.branches]
        chosen = F.cases(zip(tests, columns[:-1], strict=True))
        return Value(chosen.otherwise(columns[-1]), kind, in_micros)

    def _aggregate(self, node: ex.Aggregate) -> Value:
        """Aggregates within one match (R18)."""
        if node.argument is None:
            raise errors.InternalError("COUNT(*) has no value within one match.", where=node.where)
        (name,) = ex.variables_in(node.argument)
        binding = self.bindings[name]
        if isinstance(node.argument, ex.Variable):
            return Value(binding.size, Kind.INTEGER)
        argument = node.argument
        values = binding.values(lambda event: Compiler({name: event}).value(argument))
        return values.fold(node.function, distinct=node.distinct)


def like_pattern(pattern: str) -> str:
    r"""A LIKE pattern as Spark takes it, which refuses a backslash before an ordinary character.

    >>> print(like_pattern(r"50\% o\ff"))
    50\% off
    """
    return re.sub(r"\\([\\%_])|\\(.?)", lambda found: found[0] if found[1] else found[2], pattern, flags=re.DOTALL)


# --- scalar functions -----------------------------------------------------------------------------


def _call(node: ex.Call, arguments: Sequence[Value]) -> Value:
    """A scalar function of compiled arguments; names and arities were checked by the analysis."""
    first = arguments[0]
    match node.function:
        case "abs":
            return _absolute(first)
        case "ceil":
            return _next_whole(F.ceil, first)
        case "floor":
            return _next_whole(F.floor, first)
        case "round":
            digits = constant_integer(node.arguments[1]) if len(arguments) > 1 else 0
            if digits is None:
                raise errors.InternalError("Python computes ROUND to a computed number of digits.", where=node.where)
            return Value(_rounded(first, digits), first.kind)
        case "sqrt" | "power" | "sign" as name:
            compute = {"sqrt": F.sqrt, "power": F.pow, "sign": F.signum}[name]
            return Value(compute(*(argument.number.cast("double") for argument in arguments)), Kind.DOUBLE)
        case "mod":
            return arithmetic("%", first, arguments[1])
        case "lower" | "upper" | "trim" | "concat" as name:
            compute = {"lower": F.lower, "upper": F.upper, "trim": F.trim, "concat": F.concat}[name]
            return Value(compute(*(argument.column for argument in arguments)), Kind.STRING)
        case "length":
            return Value(F.length(first.column).cast("bigint"), Kind.INTEGER)
        case "digits":
            return Value(first.number.cast("string"), Kind.STRING)
        case "substring":
            bounds = [argument.column.try_cast("int") for argument in arguments[1:]]
            return Value(F.substring(first.column, *bounds), Kind.STRING)
        case "coalesce" | "greatest" | "least" as name:
            compute = {"coalesce": F.coalesce, "greatest": F.greatest, "least": F.least}[name]
            columns, kind, in_micros = meet(*arguments)
            return Value(compute(*columns), kind, in_micros)
        case "nullif":
            equal = compare("=", first, arguments[1])
            return Value(F.when(equal, null()).otherwise(first.column), first.kind, first.in_micros)
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
