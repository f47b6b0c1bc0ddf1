"""The type of every expression, and what does not fit together in it.

What comes in is an expression of the algebra and an `Environment` that knows the attributes; what comes out
is the type, and a list of problems: after one, the faulty part counts as NULL, which fits everything, so that
one mistake is reported once. The rules are those of the values all back ends share
(`docs/explanation/decisions.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from tocsin import errors
from tocsin.analysis import mismatches, types
from tocsin.analysis.types import DataType, Kind, can_compare, common_type
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AGGREGATES, FUNCTIONS, Gives, Takes, call_problem
from tocsin.source import Where

LITERALS: dict[type, DataType] = {
    type(None): types.NULL,
    bool: types.BOOLEAN,
    int: types.INTEGER,
    float: types.DOUBLE,
    str: types.STRING,
}


@dataclass(frozen=True)
class Environment:
    """What the names in an expression stand for.

    Attributes
    ----------
    attribute
        The type of a reference; it raises a `TocsinError` when there is no such attribute.
    variable
        The type of a whole variable.
    columns
        The types of RETURN columns that may be named.
    """

    attribute: Callable[[ex.Attribute], DataType]
    variable: Callable[[str], DataType] = lambda name: types.struct_of(())
    columns: Mapping[str, DataType] = field(default_factory=dict)


def type_of(expression: ex.Expression, environment: Environment) -> DataType:
    """The type of an expression.

    Examples
    --------
    >>> environment = Environment(attribute=lambda reference: types.TIMESTAMP)
    >>> a, b = ex.Attribute("a", ("ts",)), ex.Attribute("b", ("ts",))
    >>> print(type_of(ex.Arithmetic("-", b, a), environment))
    interval

    Raises
    ------
    QueryBindingError
        The one thing that is wrong, or all of them.
    """
    inference = Inference(environment)
    found = inference.type_of(expression)
    errors.raise_all(inference.problems)
    return found


@dataclass
class Inference:
    """Infers types in one environment and collects what is wrong."""

    environment: Environment
    problems: list[errors.TocsinError] = field(default_factory=list)

    def condition(self, expression: ex.Expression) -> None:
        """Check that an expression is a condition, conjunct by conjunct."""
        for conjunct in ex.conjuncts(expression):
            self._boolean(conjunct)

    def type_of(self, node: ex.Expression) -> DataType:
        """The type of an expression; NULL where something is wrong with it."""
        match node:
            case ex.Literal():
                return LITERALS[type(node.value)]
            case ex.Timestamp():
                return types.TIMESTAMP
            case ex.Date():
                return types.DATE
            case ex.Interval():
                return types.WRITTEN_INTERVAL
            case ex.Attribute():
                try:
                    return self.environment.attribute(node)
                except errors.QueryErrors as several:
                    self.problems.extend(several.errors)
                except errors.TocsinError as problem:
                    self.problems.append(problem)
                return types.NULL
            case ex.Variable():
                return self.environment.variable(node.name)
            case ex.Name():
                return self._column(node)
            case ex.Arithmetic():
                return self._arithmetic(node, self.type_of(node.left), self.type_of(node.right))
            case ex.Negative():
                return self._negative(node, self.type_of(node.operand))
            case ex.Case():
                return self._case(node)
            case ex.Call():
                return self._call(node)
            case ex.Aggregate():
                return self._aggregate(node)
            case rx.Apply():
                for argument in node.arguments:
                    self.type_of(argument)
                return types.given_type(node.function.gives)
            case rx.ListOf():
                items = list(node.items)
                return types.array_of(self._common(node.where, items, [self.type_of(each) for each in items], "list"))
            case rx.Mean():
                return self._mean(node)
            case rx.CalendarField():
                found = self.type_of(node.operand)
                if not found.is_null and not found.is_time and not (node.of_clock and found.kind is Kind.INTEGER):
                    self.problems.append(mismatches.not_a_time(node, found))
                return types.INTEGER
            case _:
                self._predicate(node)
                return types.BOOLEAN

    # --- conditions ---

    def _predicate(self, node: ex.Expression) -> None:
        match node:
            case ex.Comparison():
                self._compare(node, node.left, node.right)
            case ex.And() | ex.Or():
                for operand in node.operands:
                    self._boolean(operand)
            case ex.Not():
                self._boolean(node.operand)
            case ex.IsNull():
                self.type_of(node.operand)
            case ex.In():
                self._alike(node, node.operand, node.options)
            case ex.Between():
                self._alike(node, node.operand, (node.low, node.high))
            case ex.Like():
                found = self.type_of(node.operand)
                if not found.is_null and found.kind is not Kind.STRING:
                    self.problems.append(mismatches.not_text(node, found))
            case ex.Every():
                self._boolean(node.condition)
            case rx.InTable():
                for argument in node.arguments:
                    self.type_of(argument)
            case ex.BagPredicate():
                compared = ex.Attribute(node.variable, node.path, where=node.where)
                found = self.type_of(compared)
                if not found.is_null and not found.is_ordered:
                    self.problems.append(mismatches.not_comparable(node, (compared, found), (compared, found)))
            case ex.SameValue() | rx.SameEvent() | rx.Invoke():
                pass  # checked where names are resolved
            case _:
                raise errors.unknown_node(node, "The inference of types")

    def _boolean(self, node: ex.Expression) -> None:
        found = self.type_of(node)
        if not found.is_null and found.kind is not Kind.BOOLEAN:
            self.problems.append(mismatches.not_a_condition(node, found))

    def _compare(self, node: ex.Expression, left: ex.Expression, right: ex.Expression) -> None:
        one, other = self.type_of(left), self.type_of(right)
        if not can_compare(one, other):
            self.problems.append(mismatches.not_comparable(node, (left, one), (right, other)))

    def _alike(self, node: ex.Expression, subject: ex.Expression, options: tuple[ex.Expression, ...]) -> None:
        one = self.type_of(subject)
        for option in options:
            other = self.type_of(option)
            if not can_compare(one, other):
                self.problems.append(mismatches.not_comparable(node, (subject, one), (option, other)))

    # --- values ---

    def _column(self, node: ex.Name) -> DataType:
        if node.name not in self.environment.columns:
            hint = errors.did_you_mean(node.name, self.environment.columns, "columns")
            self.problems.append(
                errors.AmbiguousReferenceError(f"`{node.name}` is not a RETURN column.", where=node.where, hint=hint)
            )
        return self.environment.columns.get(node.name, types.NULL)

    def _negative(self, node: ex.Negative, found: DataType) -> DataType:
        if found.is_null or found.is_number or found.kind is Kind.INTERVAL:
            return found
        self.problems.append(mismatches.no_arithmetic(node, "-", (node.operand, found)))
        return types.NULL

    def _arithmetic(self, node: ex.Arithmetic, left: DataType, right: DataType) -> DataType:
        found = arithmetic_type(node.op, left, right)
        if found is not None:
            return found
        self.problems.append(mismatches.no_arithmetic(node, node.op, (node.left, left), (node.right, right)))
        return types.NULL

    def _mean(self, node: rx.Mean) -> DataType:
        operands = list(node.operands)
        found = [self.type_of(each) for each in operands]
        common = self._common(node.where, operands, found, "avg")
        if common.is_null or common.is_number or common.is_time:
            return types.DOUBLE if common.is_number else common
        self.problems.append(mismatches.no_mean(node, common))
        return types.NULL

    def _case(self, node: ex.Case) -> DataType:
        for test, _ in node.branches:
            self._boolean(test)
        results = [result for _, result in node.branches]
        if node.otherwise is not None:
            results.append(node.otherwise)
        return self._common(node.where, results, [self.type_of(result) for result in results], "CASE")

    def _common(self, where: Where, nodes: list[ex.Expression], found: list[DataType], what: str) -> DataType:
        common = common_type(found)
        if common is not None:
            return common
        first = next(index for index, each in enumerate(found) if not each.is_null)
        other = next(index for index in range(len(found)) if common_type([found[first], found[index]]) is None)
        pair = ((nodes[first], found[first]), (nodes[other], found[other]))
        self.problems.append(mismatches.no_common_type(where, what, *pair))
        return types.NULL

    # --- functions ---

    def _call(self, node: ex.Call) -> DataType:
        found = [self.type_of(argument) for argument in node.arguments]
        problem = call_problem(node)
        if problem is not None:
            self.problems.append(problem)
            return types.NULL
        function = FUNCTIONS[node.function]
        before = len(self.problems)
        for position, (argument, given) in enumerate(zip(node.arguments, found, strict=True)):
            wanted = function.parameter(position)
            if not accepts(wanted, given):
                self.problems.append(mismatches.wrong_argument(function, argument, given, wanted))
        if len(self.problems) > before:
            return types.NULL
        if node.function == "nullif":
            self._compare(node, *node.arguments)
        if function.gives is Gives.SAME and len(found) > 1:
            return self._common(node.where, list(node.arguments), found, node.function)
        return result_type(function.gives, found)

    def _aggregate(self, node: ex.Aggregate) -> DataType:
        if node.monoid is not None and node.argument is not None:
            found = self.type_of(node.argument)
            return found if node.monoid.gives is None else types.given_type(node.monoid.gives)
        function = AGGREGATES.get(node.function)
        if function is None:
            self.problems.append(
                errors.UnknownFunctionError(
                    f"There is no aggregate `{node.function}`.",
                    where=node.where,
                    hint=errors.did_you_mean(node.function, AGGREGATES, "aggregates"),
                )
            )
            return types.NULL
        if node.argument is None:
            return types.INTEGER  # the grammar has only COUNT(*)
        found = self.type_of(node.argument)
        if not accepts(function.takes, found):
            self.problems.append(mismatches.wrong_argument(function, node.argument, found, function.takes))
            return types.NULL
        return result_type(function.gives, [found])


def accepts(wanted: Takes, given: DataType) -> bool:
    """Whether a parameter takes a value of a type.

    Examples
    --------
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
    """What a function gives for arguments of these types."""
    match gives:
        case Gives.INTEGER:
            return types.INTEGER
        case Gives.DOUBLE:
            return types.DOUBLE
        case Gives.STRING:
            return types.STRING
        case Gives.WHOLE:
            return types.DECIMAL if found[0].kind is Kind.DECIMAL else types.INTEGER
        case Gives.ARRAY:
            return types.array_of(found[0])
        case Gives.NUMBER:
            return common_type(found) or types.NULL
        case Gives.SAME | Gives.FIRST:
            return found[0]
        case _:
            assert_never(gives)


def arithmetic_type(op: str, left: DataType, right: DataType) -> DataType | None:
    """The type of `left op right`; None when there is no such arithmetic.

    A day counts as its first instant in UTC. An interval written in the query counts microseconds beside a
    number; a difference of time stamps does not, where it is more likely that a unit was forgotten.

    Examples
    --------
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
        return (types.DOUBLE if op == "/" and other.is_number else other) if usable else None
    if left.is_number and right.is_number:
        return types.DOUBLE if op == "/" else common_type([left, right])
    if left.is_time or right.is_time:
        return _time_type(op, left, right)
    if Kind.INTERVAL in (left.kind, right.kind):
        return _interval_type(op, left, right)
    return None


def _time_type(op: str, left: DataType, right: DataType) -> DataType | None:
    if left.is_time and right.is_time:
        return types.INTERVAL if op == "-" else None
    moved = right if left.is_time else left
    allowed = op == "+" or (op == "-" and left.is_time)
    return types.TIMESTAMP if allowed and moved.kind is Kind.INTERVAL else None


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
    return number if op in ("+", "-") and interval.is_written else None
