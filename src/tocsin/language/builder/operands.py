"""Conditions and values of the builder: references, constants, operators, functions, aggregates."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any, NoReturn

from tocsin.errors import QuerySyntaxError, named, shown
from tocsin.language import expressions as ex
from tocsin.language.sase.parser import parse_expression
from tocsin.language.sase.printer import print_expression
from tocsin.language.tree_builders import whole_variable
from tocsin.source import caller

MOST_WRITTEN = 10**38 - 1  # texts have numbers of 38 digits


def _compares(op: str) -> Callable[[Value, Any], Value]:
    return lambda self, other: Value(ex.Comparison(op, self.expression, tree(other), where=caller()))


def _computes(op: str, *, is_reversed: bool = False) -> Callable[[Value, Any], Value]:
    def compute(self: Value, other: Any) -> Value:
        operands = (self.expression, tree(other))
        return Value(ex.Arithmetic(op, *(operands[::-1] if is_reversed else operands), where=caller()))

    return compute


class Value:
    """A condition or value; operators make larger ones.

    `==`, `!=`, `<`, `<=`, `>`, `>=`, `+`, `-`, `*`, `/`, `%`; `&` for AND, `|` for OR, `~` for NOT. As in
    Spark, comparisons beside `&` and `|` need parentheses.

    >>> (col("a.x") + 1 > col("b.x")) & ~col("a.k").is_null()
    Value(a.x + 1 > b.x AND NOT a.k IS NULL)
    """

    def __init__(self, expression: ex.Expression, alias: str | None = None) -> None:
        self._expression = expression
        self._alias = alias

    @property
    def expression(self) -> ex.Expression:
        """The tree."""
        return self._expression

    @property
    def name(self) -> str | None:
        """The name given with `alias`, if any."""
        return self._alias

    def alias(self, name: str) -> Value:
        """Name the value as a RETURN column."""
        return Value(self._expression, checked_text(name, "alias"))

    def __repr__(self) -> str:
        """The text of the expression."""
        named = f" AS {self._alias}" if self._alias else ""
        return f"Value({print_expression(self._expression)}{named})"

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
        return Value(ex.In(self._expression, _options(values), where=caller()))

    def not_in(self, *values: Any) -> Value:
        """`x NOT IN (…)`."""
        return Value(ex.In(self._expression, _options(values), True, where=caller()))

    def between(self, low: Any, high: Any) -> Value:
        """`x BETWEEN low AND high`, both ends included."""
        return Value(ex.Between(self._expression, tree(low), tree(high), where=caller()))

    def not_between(self, low: Any, high: Any) -> Value:
        """`x NOT BETWEEN low AND high`."""
        return Value(ex.Between(self._expression, tree(low), tree(high), True, where=caller()))

    def like(self, pattern: str) -> Value:
        """`x LIKE 'abc%'`."""
        return Value(ex.Like(self._expression, _like(pattern), where=caller()))

    def not_like(self, pattern: str) -> Value:
        """`x NOT LIKE 'abc%'`."""
        return Value(ex.Like(self._expression, _like(pattern), True, where=caller()))

    def is_null(self) -> Value:
        """`x IS NULL`."""
        return Value(ex.IsNull(self._expression, where=caller()))

    def is_not_null(self) -> Value:
        """`x IS NOT NULL`."""
        return Value(ex.IsNull(self._expression, True, where=caller()))

    # --- logic ---

    def __and__(self, other: Any) -> Value:
        return Value(ex.all_of(self._expression, tree(other), where=caller()))

    def __rand__(self, other: Any) -> Value:
        return Value(ex.all_of(tree(other), self._expression, where=caller()))

    def __or__(self, other: Any) -> Value:
        return Value(ex.any_of(self._expression, tree(other), where=caller()))

    def __ror__(self, other: Any) -> Value:
        return Value(ex.any_of(tree(other), self._expression, where=caller()))

    def __invert__(self) -> Value:
        return Value(ex.Not(self._expression, where=caller()))

    def __bool__(self) -> NoReturn:
        raise QuerySyntaxError(
            "A condition on events has no truth value in Python: `and`, `or`, `not`, `if`, `in` and chained "
            "comparisons do not work on it.",
            where=caller(),
            hint="write & for and, | for or, ~ for not, with parentheses around each side: "
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
        return Value(ex.Negative(self._expression, where=caller()))

    def concat(self, other: Any) -> Value:
        """`x || y`."""
        return Value(ex.Arithmetic("||", self._expression, tree(other), where=caller()))


class CaseValue(Value):
    """`when(…)`, which further `when` and `otherwise` complete."""

    def when(self, condition: Value | str, value: Any) -> CaseValue:
        """One more branch, tried after those before it."""
        case = self._expression
        assert isinstance(case, ex.Case)
        branch = (text_or_tree(condition), tree(value))
        return CaseValue(ex.Case((*case.branches, branch), where=case.where))

    def otherwise(self, value: Any) -> Value:
        """The value when no condition holds; without it that is NULL."""
        case = self._expression
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


def _aggregate(function: str, argument: Value | str, distinct: bool = False) -> Value:
    return Value(ex.Aggregate(function, whole_variable(text_or_tree(argument)), distinct, where=caller()))


def count(argument: Value | str | None = None) -> Value:
    """`COUNT(b)` or `COUNT(b.x)`; without an argument `COUNT(*)`, the number of matches.

    >>> count("b"), count()
    (Value(COUNT(b)), Value(COUNT(*)))
    """
    if argument is None:
        return Value(ex.Aggregate("count", None, where=caller()))
    return _aggregate("count", argument)


def count_distinct(argument: Value | str) -> Value:
    """`COUNT(DISTINCT b.x)`."""
    return _aggregate("count", argument, distinct=True)


def sum_(argument: Value | str) -> Value:
    """`SUM(b.x)`."""
    return _aggregate("sum", argument)


def min_(argument: Value | str) -> Value:
    """`MIN(b.x)`."""
    return _aggregate("min", argument)


def max_(argument: Value | str) -> Value:
    """`MAX(b.x)`."""
    return _aggregate("max", argument)


def avg(argument: Value | str) -> Value:
    """`AVG(b.x)`."""
    return _aggregate("avg", argument)


def range_(argument: Value | str) -> Value:
    """`RANGE(b.x)`: the largest value less the smallest."""
    return _aggregate("range", argument)


def first(argument: Value | str) -> Value:
    """`FIRST(b.x)`: the value of the first event."""
    return _aggregate("first", argument)


def last(argument: Value | str) -> Value:
    """`LAST(b.x)`: the value of the last event."""
    return _aggregate("last", argument)


def stddev(argument: Value | str) -> Value:
    """`STDDEV(b.x)`, of the population."""
    return _aggregate("stddev", argument)


def collect(argument: Value | str) -> Value:
    """`COLLECT(b.x)`: all values, in order."""
    return _aggregate("collect", argument)


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
        raise QuerySyntaxError("IN needs at least one value.", where=caller(), hint="write .isin(1, 2).")
    return tuple(tree(value) for value in values)


def checked_names(names: tuple[str, ...], function: str) -> tuple[str, ...]:
    """Names of attributes that a function of the builder takes; anything else is refused."""
    if not names or not all(isinstance(name, str) and name for name in names):
        raise QuerySyntaxError(
            f"{function} takes the names of attributes.", where=caller(), hint=f'write {function}("user").'
        )
    return names


def checked_text(value: Any, function: str) -> str:
    """A text that a function of the builder takes; anything else is refused."""
    if not isinstance(value, str) or not value:
        raise QuerySyntaxError(
            f"{function} takes a text, not {shown(value)}.", where=caller(), hint="write it in quotes."
        )
    return value
