"""The type of every expression, and the values in it that do not fit together.

`Inference` takes expressions of the algebra and an `Environment` with the types of attributes. It returns types and
collects problems: after one, the faulty part counts as NULL, which fits everything, so that one mistake is reported
once. The rules are those of the values all back ends share (`docs/explanation/decisions.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.names import unknown_aggregate
from tocsin.analysis.result_types import (
    accepts,
    aggregate_type,
    arithmetic_type,
    can_compare,
    common_type,
    result_type,
    rounded_type,
)
from tocsin.analysis.types import DataType, Kind, given_type
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.functions import AGGREGATES, FUNCTIONS, AggregateFunction, Function, Gives, Takes, call_problem
from tocsin.language.sase.printer import print_expression
from tocsin.source import Where

Typed = tuple[ex.Expression, DataType]

LITERALS: dict[type, DataType] = {
    type(None): types.NULL,
    bool: types.BOOLEAN,
    float: types.DOUBLE,
    str: types.STRING,
}


@dataclass(frozen=True)
class Environment:
    """The meaning of the names in an expression."""

    # The type of a reference; it raises a `TocsinError` when there is no such attribute.
    attribute: Callable[[ex.Attribute], DataType]
    variable: Callable[[str], DataType] = lambda name: types.struct_of(())  # the type of a whole variable
    columns: Mapping[str, DataType] = field(default_factory=dict)  # the types of RETURN columns that may be named


def type_of(expression: ex.Expression, environment: Environment) -> DataType:
    """The type of an expression."""
    inference = Inference(environment)
    found = inference.type_of(expression)
    errors.raise_all(inference.problems)
    return found


@dataclass
class Inference:
    """Infers types in one environment and collects what is wrong."""

    environment: Environment
    problems: errors.Problems = field(default_factory=errors.Problems)

    def condition(self, expression: ex.Expression) -> None:
        """Check that an expression is a condition, conjunct by conjunct."""
        for conjunct in ex.conjuncts(expression):
            self._boolean(conjunct)

    def type_of(self, node: ex.Expression) -> DataType:
        """The type of an expression; NULL where something is wrong with it."""
        match node:
            case ex.Literal(value=int() as number) if not isinstance(number, bool):
                return types.SHORT_INTEGER if -(2**31) <= number < 2**31 else types.INTEGER
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
                    return self.environment.attribute(node).evaluated
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
                return given_type(node.function.gives)
            case rx.ListOf():
                items = list(node.items)
                return types.array_of(self._common(node.where, items, [self.type_of(each) for each in items], "list"))
            case rx.Mean():
                return self._mean(node)
            case rx.CalendarField():
                found = self.type_of(node.operand)
                if not found.is_null and not found.is_time and not (node.of_clock and found.kind is Kind.INTEGER):
                    given = print_expression(node.operand)
                    message = f"`{node.field}` takes an instant, and `{given}` is {found.describe()}."
                    self._refuse(message, node.operand.where or node.where, f"write `{node.field}(a.timestamp)`.")
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
                self._compare(node, node.operand, *node.options)
            case ex.Between():
                self._compare(node, node.operand, node.low, node.high)
            case ex.Like():
                found = self.type_of(node.operand)
                if not found.is_null and found.kind is not Kind.STRING:
                    message = f"LIKE compares text, and `{print_expression(node.operand)}` is {found.describe()}."
                    self._refuse(message, node.operand.where or node.where, "use =, < or BETWEEN.")
            case ex.Every():
                self._boolean(node.condition)
            case rx.InTable():
                for argument in node.arguments:
                    self.type_of(argument)
            case ex.BagPredicate():
                compared = ex.Attribute(node.variable, node.path, where=node.where)
                found = self.type_of(compared)
                if not found.is_null and not found.is_ordered:
                    self._not_comparable(node, (compared, found), (compared, found))
            case ex.SameValue() | rx.SameEvent() | rx.Invoke():
                pass  # checked where names are resolved
            case _:
                raise errors.unknown_node(node, "The inference of types")

    def _boolean(self, node: ex.Expression) -> None:
        found = self.type_of(node)
        if not found.is_null and found.kind is not Kind.BOOLEAN:
            text = print_expression(node)
            hint = f"compare it with something, as in `{text} = …`, or ask `{text} IS NOT NULL`."
            self._refuse(f"`{text}` is {found.describe()}, not a condition.", node.where, hint)

    def _compare(self, node: ex.Expression, subject: ex.Expression, *options: ex.Expression) -> None:
        one = self.type_of(subject)
        for option in options:
            other = self.type_of(option)
            if not can_compare(one, other):
                self._not_comparable(node, (subject, one), (option, other))

    def _not_comparable(self, node: ex.Expression, left: Typed, right: Typed) -> None:
        message = f"`{print_expression(node)}` compares {_described(left)} with {_described(right)}."
        self._refuse(message, _place(node, left, right), _advice(left, right))

    def _refuse(self, message: str, where: Where, hint: str) -> DataType:
        """Note a mismatch; the faulty part counts as NULL."""
        self.problems.add(errors.TypeMismatchError, message, where=where, hint=hint)
        return types.NULL

    # --- values ---

    def _column(self, node: ex.Name) -> DataType:
        if node.name not in self.environment.columns:
            hint = errors.did_you_mean(node.name, self.environment.columns, "columns")
            self.problems.add(
                errors.AmbiguousReferenceError, f"`{node.name}` is not a RETURN column.", where=node.where, hint=hint
            )
        return self.environment.columns.get(node.name, types.NULL)

    def _negative(self, node: ex.Negative, found: DataType) -> DataType:
        if found.is_null or found.is_number or found.kind is Kind.INTERVAL:
            return found.computed
        return self._no_arithmetic(node, "-", (node.operand, found))

    def _arithmetic(self, node: ex.Arithmetic, left: DataType, right: DataType) -> DataType:
        found = arithmetic_type(node.op, left, right)
        return found or self._no_arithmetic(node, node.op, (node.left, left), (node.right, right))

    def _no_arithmetic(self, node: ex.Expression, op: str, *operands: Typed) -> DataType:
        message = f"`{op}` does not work on {' and '.join(map(_described, operands))}."
        return self._refuse(message, _place(node, *operands), _arithmetic_advice(op, *operands))

    def _mean(self, node: rx.Mean) -> DataType:
        operands = list(node.operands)
        found = [self.type_of(each) for each in operands]
        common = self._common(node.where, operands, found, "avg")
        if common.is_null or common.is_number or common.is_time:
            return types.DOUBLE if common.is_number else types.TIMESTAMP if common.kind is Kind.DATE else common
        message = f"`avg` takes numbers or instants, and these are {common.describe()}."
        return self._refuse(message, node.where, "write `avg(a.amount, b.amount)`.")

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
        one, two = (nodes[first], found[first]), (nodes[other], found[other])
        message = f"`{what}` gives {_described(one)} or {_described(two)}, and they have no common type."
        return self._refuse(message, nodes[other].where or where, _advice(one, two))

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
                self.problems.append(_wrong_argument(function, argument, given, wanted))
        if len(self.problems) > before:
            return types.NULL
        if node.function == "nullif":
            self._compare(node, *node.arguments)
        if function.gives is Gives.SAME and len(found) > 1:
            return self._common(node.where, list(node.arguments), found, node.function)
        if node.function == "round":
            return rounded_type(node, found[0])
        return found[0].computed if node.function == "abs" else result_type(function.gives, found)

    def _aggregate(self, node: ex.Aggregate) -> DataType:
        if node.monoid is not None and node.argument is not None:
            return aggregate_type(node, self.type_of(node.argument))
        function = AGGREGATES.get(node.function)
        if function is None:
            self.problems.append(unknown_aggregate(node.function, node.where))
            return types.NULL
        if node.argument is None:
            return types.INTEGER  # the grammar has only COUNT(*)
        found = self.type_of(node.argument)
        if not accepts(function.takes, found):
            self.problems.append(_wrong_argument(function, node.argument, found, function.takes))
            return types.NULL
        return aggregate_type(node, found)


# --- words of messages ---------------------------------------------------------------------------


def _wrong_argument(
    function: Function | AggregateFunction, argument: ex.Expression, found: DataType, wanted: Takes
) -> errors.WrongArgumentsError:
    if isinstance(function, AggregateFunction):
        name, hint = function.name.upper(), f"aggregate {wanted.value}."
    else:
        name, hint = function.name, f"write `{function.signature}`."
    if wanted in (Takes.VALUE, Takes.ORDERED) and found.kind is Kind.STRUCT:
        hint = "name one of its fields."
    return errors.WrongArgumentsError(
        f"`{name}` takes {wanted.value}, and `{print_expression(argument)}` is {found.describe()}.",
        where=argument.where,
        hint=hint,
    )


def _described(typed: Typed) -> str:
    node, found = typed
    if isinstance(node, ex.Literal | ex.Interval | ex.Timestamp | ex.Date):
        return (
            f"{found.describe()}, {print_expression(node)}"
            if found.is_null
            else f"{found.describe()} ({print_expression(node)})"
        )
    return f"{found.describe()} (`{print_expression(node)}`)"


def _place(node: ex.Expression, *operands: Typed) -> Where:
    return node.where or next((operand.where for operand, _ in operands if operand.where is not None), None)


def _advice(*pair: Typed) -> str:
    kinds = {found.kind for _, found in pair}
    if kinds & {Kind.STRUCT, Kind.ARRAY, Kind.OTHER}:
        return "only single values can be compared: name a field, as in `a.place.lat`."
    if Kind.STRING in kinds and kinds & types.NUMBERS:
        return _text_or_number(*pair)
    if Kind.STRING in kinds and Kind.TIMESTAMP in kinds:
        return "write an instant as `TIMESTAMP '2026-01-01 00:00:00'`."
    if Kind.STRING in kinds and Kind.DATE in kinds:
        return "write a day as `DATE '2026-01-01'`."
    if Kind.INTERVAL in kinds and kinds & types.NUMBERS:
        return "a number beside a length of time needs a unit, as in `5 SECONDS`."
    if Kind.INTERVAL in kinds and kinds & {Kind.TIMESTAMP, Kind.DATE}:
        return "compare two instants, or their difference with a length of time: `b.ts - a.ts <= 5 SECONDS`."
    if Kind.TIMESTAMP in kinds and kinds & types.NUMBERS:
        return "a timestamp is no number: compare it with `TIMESTAMP '2026-01-01 00:00:00'` or another one."
    return "values of different kinds have no common order; convert one of them before matching."


def _text_or_number(*pair: Typed) -> str:
    text = next(node for node, found in pair if found.kind is Kind.STRING)
    number = next(node for node, found in pair if found.is_number)
    if isinstance(number, ex.Literal):
        return f"`{print_expression(text)}` holds text: write '{print_expression(number)}' in quotes."
    if isinstance(text, ex.Literal) and _is_numeric(str(text.value)):
        return f"`{print_expression(number)}` holds numbers: write {text.value} without quotes."
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
        if kinds & types.NUMBERS:
            return "a number beside a time needs a unit, as in `a.ts + 5 SECONDS`."
        return "instants have differences, and move by intervals: `b.ts - a.ts`, `a.ts + 5 MINUTES`."
    return "compute with numbers, or with instants and intervals."
