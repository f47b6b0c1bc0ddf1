"""Conditions and values of the builder: references, constants, operators, functions, aggregates."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from tocsin.errors import QuerySyntaxError, named, shown
from tocsin.language import expressions as ex
from tocsin.language.sase.parser import parse_expression
from tocsin.language.sase.printer import print_expression
from tocsin.language.tree_builders import whole_variable
from tocsin.source import caller

MOST_WRITTEN = 10**38 - 1  # texts have numbers of 38 digits


def refusal(message: str, hint: str) -> QuerySyntaxError:
    """The error for a call that the builder refuses, at the line of the user's program."""
    return QuerySyntaxError(message, where=caller(), hint=hint)


def _compares(op: str) -> Callable[[Value, Any], Value]:
    return lambda self, other: Value(ex.Comparison(op, self.expression, tree(other), where=caller()))


def _computes(op: str, *, is_reversed: bool = False) -> Callable[[Value, Any], Value]:
    def compute(self: Value, other: Any) -> Value:
        operands = (self.expression, tree(other))
        return Value(ex.Arithmetic(op, *(operands[::-1] if is_reversed else operands), where=caller()))

    return compute


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """A condition or value; operators make larger ones.

    `==`, `!=`, `<`, `<=`, `>`, `>=`, `+`, `-`, `*`, `/`, `%`; `&` for AND, `|` for OR, `~` for NOT. As in
    Spark, comparisons beside `&` and `|` need parentheses.

    >>> (col("a.x") + 1 > col("b.x")) & ~col("a.k").is_null()
    Value(a.x + 1 > b.x AND NOT a.k IS NULL)
    """

    expression: ex.Expression
    name: str | None = None  # given with `alias`

    def alias(self, name: str) -> Value:
        """Name the value as a RETURN column."""
        return Value(self.expression, checked_text(name, "alias"))

    def __repr__(self) -> str:
        """The text of the expression."""
        named = f" AS {self.name}" if self.name else ""
        return f"Value({print_expression(self.expression)}{named})"

    # --- comparisons ---

    __eq__ = _compares("=")  # type: ignore[assignment]
    __ne__ = _compares("!=")  # type: ignore[assignment]
    __lt__ = _compares("<")
    __le__ = _compares("<=")
    __gt__ = _compares(">")
    __ge__ = _compares(">=")
    # Equality makes a condition here, so that a value cannot be a key.
    __hash__ = None  # type: ignore[assignment]

    def isin(self, *values: Any) -> Value:
        """`x IN (…)`; takes the values one by one, or as one list."""
        return Value(ex.In(self.expression, _options(values), where=caller()))

    def not_in(self, *values: Any) -> Value:
        """`x NOT IN (…)`."""
        return Value(ex.In(self.expression, _options(values), True, where=caller()))

    def between(self, low: Any, high: Any) -> Value:
        """`x BETWEEN low AND high`, both ends included."""
        return Value(ex.Between(self.expression, tree(low), tree(high), where=caller()))

    def not_between(self, low: Any, high: Any) -> Value:
        """`x NOT BETWEEN low AND high`."""
        return Value(ex.Between(self.expression, tree(low), tree(high), True, where=caller()))

    def like(self, pattern: str) -> Value:
        """`x LIKE 'abc%'`."""
        return Value(ex.Like(self.expression, _like(pattern), where=caller()))

    def not_like(self, pattern: str) -> Value:
        """`x NOT LIKE 'abc%'`."""
        return Value(ex.Like(self.expression, _like(pattern), True, where=caller()))

    def is_null(self) -> Value:
        """`x IS NULL`."""
        return Value(ex.IsNull(self.expression, where=caller()))

    def is_not_null(self) -> Value:
        """`x IS NOT NULL`."""
        return Value(ex.IsNull(self.expression, True, where=caller()))

    # --- logic ---

    def __and__(self, other: Any) -> Value:
        return Value(ex.all_of(self.expression, tree(other), where=caller()))

    def __rand__(self, other: Any) -> Value:
        return Value(ex.all_of(tree(other), self.expression, where=caller()))

    def __or__(self, other: Any) -> Value:
        return Value(ex.any_of(self.expression, tree(other), where=caller()))

    def __ror__(self, other: Any) -> Value:
        return Value(ex.any_of(tree(other), self.expression, where=caller()))

    def __invert__(self) -> Value:
        return Value(ex.Not(self.expression, where=caller()))

    def __bool__(self) -> NoReturn:
        raise refusal(
            "A condition on events has no truth value in Python: `and`, `or`, `not`, `if`, `in` and chained "
            "comparisons do not work on it.",
            "write & for and, | for or, ~ for not, with parentheses around each side: "
            '(col("a.x") > 1) & (col("b.x") > 1); for `in` write .isin(…).',
        )

    def __contains__(self, _item: object) -> NoReturn:
        bool(self)
        raise AssertionError("unreachable: a value has no truth")

    # --- arithmetic ---

    __add__, __radd__ = _computes("+"), _computes("+", is_reversed=True)
    __sub__, __rsub__ = _computes("-"), _computes("-", is_reversed=True)
    __mul__, __rmul__ = _computes("*"), _computes("*", is_reversed=True)
    __truediv__, __rtruediv__ = _computes("/"), _computes("/", is_reversed=True)
    __mod__, __rmod__ = _computes("%"), _computes("%", is_reversed=True)

    def __neg__(self) -> Value:
        return Value(ex.Negative(self.expression, where=caller()))

    def concat(self, other: Any) -> Value:
        """`x || y`."""
        return Value(ex.Arithmetic("||", self.expression, tree(other), where=caller()))


class CaseValue(Value):
    """`when(…)`, which further `when` and `otherwise` complete."""

    def when(self, condition: Value | str, value: Any) -> CaseValue:
        """One more branch, tried after those before it."""
        case = self.expression
        assert isinstance(case, ex.Case)
        branch = (text_or_tree(condition), tree(value))
        return CaseValue(ex.Case((*case.branches, branch), where=case.where))

    def otherwise(self, value: Any) -> Value:
        """The value when no condition holds; without it that is NULL."""
        case = self.expression
        assert isinstance(case, ex.Case)
        return Value(ex.Case(case.branches, tree(value), where=case.where))


# --- references and constants ---------------------------------------------------------------------


def col(reference: str) -> Value:
    """A reference as text writes it: `a.x`, `b[i].x`, `b[i-1].x`, `b[last].x`, `NEXT(b).x`, or a bare name.

    >>> col("b[i].amount") > col("b[i-1].amount")
    Value(b[i].amount > b[i-1].amount)
    """
    expression = text_or_tree(reference)
    if not isinstance(expression, ex.Attribute | ex.Name | ex.Variable):
        raise QuerySyntaxError(
            f"`{named(reference)}` is not a reference.",
            where=expression.where,
            hint="col takes one reference, such as a.x or b[i-1].x; expr takes any expression.",
        )
    return Value(expression)


def expr(text: str) -> Value:
    """Any condition or value, as text writes it.

    >>> expr("a.x > 5 OR a.y IS NULL") & (col("b.x") == 1)
    Value((a.x > 5 OR a.y IS NULL) AND b.x = 1)
    """
    return Value(text_or_tree(text))


def lit(value: Any) -> Value:
    """A constant: None, bool, int, float, str, datetime (UTC unless it has a zone), date or timedelta.

    >>> import datetime as dt
    >>> col("b.ts") - col("a.ts") < lit(dt.timedelta(minutes=5))
    Value(b.ts - a.ts < 5 MINUTES)
    """
    return Value(tree(value))


def same(*attributes: str) -> Value:
    """`[user, device]`: all variables agree on these attributes, and the query is partitioned by them."""
    return Value(ex.SameValue(checked_names(attributes, "same"), where=caller()))


def when(condition: Value | str, value: Any) -> CaseValue:
    """`CASE WHEN … THEN … END`.

    >>> when(col("a.x") > 5, "high").when("a.x > 1", "middle").otherwise("low")
    Value(CASE WHEN a.x > 5 THEN 'high' WHEN a.x > 1 THEN 'middle' ELSE 'low' END)
    """
    return CaseValue(ex.Case(((text_or_tree(condition), tree(value)),), where=caller()))


# --- functions ------------------------------------------------------------------------------------


def call(function: str, *arguments: Any) -> Value:
    """A scalar function by name.

    >>> call("round", col("a.x") / col("b.x"), 2)
    Value(ROUND(a.x / b.x, 2))
    """
    return Value(
        ex.Call(checked_text(function, "call").lower(), tuple(tree(argument) for argument in arguments), where=caller())
    )


def _of_bag(function: str, argument: Value | str, distinct: bool = False) -> Value:
    return Value(ex.Aggregate(function, whole_variable(text_or_tree(argument)), distinct, where=caller()))


def _aggregate(function: str, meaning: str = "") -> Callable[[Value | str], Value]:
    """The function of the builder for an aggregate of one variable or attribute."""

    def aggregate(argument: Value | str) -> Value:
        return _of_bag(function, argument)

    aggregate.__doc__ = f"`{function.upper()}(b.x)`{meaning}."
    return aggregate


def count(argument: Value | str | None = None) -> Value:
    """`COUNT(b)` or `COUNT(b.x)`; without an argument `COUNT(*)`, the number of matches.

    >>> count("b"), count()
    (Value(COUNT(b)), Value(COUNT(*)))
    """
    return Value(ex.Aggregate("count", None, where=caller())) if argument is None else _of_bag("count", argument)


def count_distinct(argument: Value | str) -> Value:
    """`COUNT(DISTINCT b.x)`."""
    return _of_bag("count", argument, distinct=True)


sum_, min_, max_, avg = _aggregate("sum"), _aggregate("min"), _aggregate("max"), _aggregate("avg")
range_ = _aggregate("range", ": the largest value less the smallest")
first = _aggregate("first", ": the value of the first event")
last = _aggregate("last", ": the value of the last event")
stddev = _aggregate("stddev", ", of the population")
collect = _aggregate("collect", ": all values, in order")


# --- from Python values to trees ------------------------------------------------------------------


def tree(value: Any) -> ex.Expression:
    """The tree of a value; a constant becomes a literal."""
    site = caller()
    match value:
        case Value():
            return value.expression
        case float() if math.isnan(value):
            problem, hint = "NaN is not a constant.", "ask for a missing value with .is_null()."
        case int() if abs(value) > MOST_WRITTEN:
            problem, hint = "The number is too long.", "whole numbers have at most 38 digits."
        case None | bool() | int() | float() | str():
            return ex.Literal(value, where=site)
        case dt.datetime():
            aware = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
            return ex.Timestamp(aware, where=site)
        case dt.date():
            return ex.Date(value, where=site)
        case dt.timedelta():
            return ex.Interval(value // dt.timedelta(microseconds=1), where=site)
        case _:
            problem = f"{shown(value)} is not a value a pattern can hold."
            hint = "constants are None, bool, int, float, str, datetime, date and timedelta."
    raise QuerySyntaxError(problem, where=site, hint=hint)


def _like(pattern: Any) -> str:
    """What LIKE compares with; it may be empty."""
    return pattern if isinstance(pattern, str) and not pattern else checked_text(pattern, "like")


def text_or_tree(value: Value | str) -> ex.Expression:
    """The tree of a condition or reference, given as text or as a value."""
    if isinstance(value, str):
        site = caller()
        return parse_expression(value, site.describe() if site else "<expression>")
    return tree(value)


def _options(values: tuple[Any, ...]) -> tuple[ex.Expression, ...]:
    if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
        values = tuple(values[0])
    if not values:
        raise refusal("IN needs at least one value.", "write .isin(1, 2).")
    return tuple(tree(value) for value in values)


def checked_names(names: tuple[str, ...], function: str) -> tuple[str, ...]:
    """Names of attributes that a function of the builder takes; anything else is refused."""
    if not names or not all(isinstance(name, str) and name for name in names):
        raise refusal(f"{function} takes the names of attributes.", f'write {function}("user").')
    return names


def checked_text(value: Any, function: str) -> str:
    """A text that a function of the builder takes; anything else is refused."""
    if not isinstance(value, str) or not value:
        raise refusal(f"{function} takes a text, not {shown(value)}.", "write it in quotes.")
    return value
