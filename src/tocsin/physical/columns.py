"""Expressions → Columns: the back end of the one expression tree that Spark runs.

A variable is an event or a bag of events (`tocsin.physical.bags`), which some or all matches of a frame may lack; what
an unbound variable means is decided here once: NULL in an output column, the empty bag in an aggregate (R18).
Conditions of WHERE on unbound variables never get here (R1: they are vacuous).

No scalar expression may fail a job, whatever the session's ANSI setting: division by zero and a result beyond 64 bits
are NULL (R39, D14). Aggregates beyond 64 bits do (D24).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import types as T

from tocsin import errors
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.physical import functions, instants, tables
from tocsin.physical.bags import Bag, Binding, decimal_sum
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.values import NUMBERS, TIMES, Kind, Value, literal, meet, null, value_of, whole

__all__ = ["Bag", "Binding", "Compiler", "arithmetic", "compare", "like_pattern", "negative"]


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
            case ex.Literal():
                return literal(node.value)
            case ex.Timestamp():
                micros = F.lit(instants.micros_of_literal(node.value))
                return Value(instants.instant_of_micros(micros), Kind.INSTANT)
            case ex.Date():
                return Value(F.lit(node.value.isoformat()).cast("date"), Kind.DATE)
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
                arguments = [self.value(argument) for argument in node.arguments]
                return functions.call(node, arguments, compare=compare, arithmetic=arithmetic)
            case ex.Case():
                return self._case(node)
            case rx.ListOf():
                return Value(F.array(*meet(*map(self._seen, node.items))[0]), Kind.OTHER)
            case rx.Mean():
                return mean([self.value(operand) for operand in node.operands])
            case rx.CalendarField():
                micros = self.value(node.operand).micros
                return Value(instants.calendar(node.field, micros, node.zone), Kind.INTEGER)
            case _:
                return Value(self._predicate(node), Kind.BOOLEAN)

    def _seen(self, node: ex.Expression) -> Value:
        """A value as a user should see it."""
        found = self.value(node)
        return Value(found.output, found.kind)

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
                found = self._membership(node)
                return ~found if node.negated else found
            case ex.Between():
                subject = self.value(node.operand)
                inside = compare(">=", subject, self.value(node.low)) & compare("<=", subject, self.value(node.high))
                return ~inside if node.negated else inside
            case ex.Like():
                matched = self.value(node.operand).column.like(like_pattern(node.pattern))
                return ~matched if node.negated else matched
            case rx.InTable():
                return tables.listed(node, [self.value(argument) for argument in node.arguments], compare=compare)
            case _:
                raise errors.unknown_node(node, "The SQL of expressions")

    def typed(self, node: ex.Attribute) -> tuple[Column, T.DataType]:
        """The column of a reference as it is and its type; NULL where the index is outside the bag."""
        binding = self.bindings[node.variable]
        if isinstance(binding, Bag):
            return binding.chosen(node.index).attribute(node.path)
        column, dtype = binding.attribute(node.path)
        is_outside = isinstance(node.index, ex.Fixed) and node.index.number != 1
        return (null(dtype) if is_outside else column), dtype

    def _membership(self, node: ex.In) -> Column:
        subject = self.value(node.operand)
        options = [self.value(option) for option in node.options]
        if all(option.kind is subject.kind and option.kind in (Kind.INTEGER, Kind.STRING) for option in options):
            # One expression however long the list; the general form below nests once per option.
            return subject.column.isin([option.column for option in options])
        return reduce(or_, (compare("=", subject, option) for option in options))

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
        if isinstance(binding, Binding):
            folded = _fold(node.function, binding.only_if_bound(self.value(argument)))
            dtype = self.typed(argument)[1] if isinstance(argument, ex.Attribute) else None
            return decimal_sum(folded, dtype) if node.function == "sum" else folded
        dtype = binding.type_of(argument.path) if isinstance(argument, ex.Attribute) else None
        values = binding.values(lambda event: Compiler({name: event}).value(argument))
        return values.fold(node.function, distinct=node.distinct, dtype=dtype)


def _fold(function: str, value: Value) -> Value:
    """An aggregate of one value, or of none where it is NULL."""
    known = value.column.isNotNull()
    match function:
        case "count":
            return Value(F.when(known, 1).otherwise(0).cast("bigint"), Kind.INTEGER)
        case "sum":
            return Value(F.coalesce(value.number, F.lit(0)), value.kind)
        case "avg":
            return Value(value.number.cast("double"), Kind.DOUBLE)
        case "stddev":
            number = value.number.cast("double")
            return Value(number - number, Kind.DOUBLE)
        case "range":
            return arithmetic("-", value, value)
        case "collect":
            return Value(F.array_compact(F.array(value.output)), Kind.OTHER)
        case "min" | "max" | "first" | "last":
            return value
        case _:
            raise errors.InternalError(f"There is no aggregate `{function}`.")


def compare(op: str, left: Value, right: Value) -> Column:
    """A comparison; UNKNOWN with NULL, NaN equal to itself and above every number, as Spark has it."""
    one, other = meet(left, right)[0]
    match op:
        case "=":
            return one == other
        case "!=":
            return one != other
        case "<":
            return one < other
        case "<=":
            return one <= other
        case ">":
            return one > other
        case ">=":
            return one >= other
        case _:
            raise errors.InternalError(f"There is no comparison `{op}`.")


def negative(value: Value) -> Value:
    """`-x`."""
    if value.kind in (Kind.DOUBLE, Kind.DECIMAL):
        return Value(F.negative(value.column), value.kind)
    return Value(F.try_subtract(F.bigint(0), value.number), value.kind)


def arithmetic(op: str, left: Value, right: Value) -> Value:
    """`+ - * / %` and `||`."""
    if op == "||":
        return Value(F.concat(left.column, right.column), Kind.STRING)
    if left.kind in TIMES or right.kind in TIMES:
        return _time_arithmetic(op, left, right)
    kind = _result_kind(op, left.kind, right.kind)
    one, other = left.number, right.number
    match op:
        case "+":
            return Value(F.try_add(_alone(left, one), _alone(right, other)), kind)
        case "-":
            return Value(F.try_subtract(one, other), kind)
        case "%":
            return Value(F.try_mod(one, other), kind)
        case "*":
            result = F.try_multiply(_alone(left, one), _alone(right, other))
        case _:
            result = F.try_divide(one.cast("double"), other.cast("double"))
    if kind is not Kind.INTERVAL or (op == "*" and {left.kind, right.kind} <= {Kind.INTERVAL, Kind.INTEGER}):
        return Value(result, kind)
    # A part of an interval is rounded to whole microseconds.
    return Value(whole(F.rint(result)), kind)


def _alone(value: Value, number: Column) -> Column:
    """An operand that Spark computes as it stands.

    Spark turns `(x * c) * d` into `x * (c * d)`, and `c * d` may be beyond 64 bits where no step of the first is.
    """
    is_computed = value.kind in (Kind.INTEGER, Kind.INTERVAL) and value.column.text.startswith("try_")
    return number.bitwiseOR(F.bigint(0)) if is_computed else number


def _time_arithmetic(op: str, left: Value, right: Value) -> Value:
    """Time stamps: their distance is an interval; with an interval they make another."""
    if left.kind in TIMES and right.kind in TIMES:
        return Value(F.try_subtract(left.micros, right.micros), Kind.INTERVAL)
    kind = Kind.LOCAL if Kind.LOCAL in (left.kind, right.kind) else Kind.INSTANT
    combine = F.try_add if op == "+" else F.try_subtract
    return Value(combine(left.micros, right.micros), kind, in_micros=True)


def _result_kind(op: str, left: Kind, right: Kind) -> Kind:
    if Kind.INTERVAL in (left, right):
        other = right if left is Kind.INTERVAL else left
        if op == "/":
            return Kind.DOUBLE if right is Kind.INTERVAL else Kind.INTERVAL
        if op == "*" or other not in NUMBERS:
            return Kind.INTERVAL
        return other
    if op == "/":
        return Kind.DOUBLE
    return next((kind for kind in (Kind.DOUBLE, Kind.DECIMAL) if kind in (left, right)), Kind.INTEGER)


def mean(values: Sequence[Value]) -> Value:
    """The mean of numbers, or of instants to the nearest microsecond."""
    first, *rest = values
    if not any(value.kind in TIMES for value in values):
        return arithmetic("/", reduce(lambda one, other: arithmetic("+", one, other), values), literal(len(values)))
    apart = (F.try_subtract(value.micros, first.micros) for value in rest)
    shift = F.rint(F.try_divide(reduce(F.try_add, apart, F.bigint(0)).cast("double"), F.lit(float(len(values)))))
    kind = Kind.LOCAL if all(value.kind is Kind.LOCAL for value in values) else Kind.INSTANT
    return Value(F.try_add(first.micros, whole(shift)), kind, in_micros=True)


def like_pattern(pattern: str) -> str:
    r"""A LIKE pattern as Spark takes it, which refuses a backslash before an ordinary character.

    >>> print(like_pattern(r"50\% o\ff"))
    50\% off
    """
    parts, escaped = [], False
    for character in pattern:
        if escaped:
            parts.append(f"\\{character}" if character in "\\%_" else character)
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(character)
    return "".join(parts)
