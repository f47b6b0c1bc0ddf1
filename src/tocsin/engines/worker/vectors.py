"""Expressions over single events, evaluated for all events or all matches at once: Arrow columns in, one column out.

Input    an expression, and the column of each attribute that it reads
Output   a column with a value per event or match, NULL where the expression is; None where a part is not covered

Covered are attributes of plain types, constants, comparisons, `+ - * /`, IN, BETWEEN, LIKE with `%` at the ends,
IS NULL, AND, OR and NOT. The rest, and integers beyond 64 bits, is left to `tocsin.expressions.interpret`, which
defines what every expression means: three-valued logic, NaN above all numbers, times compared as instants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.engines.worker.arrays import constant, of_values
from tocsin.expressions.numeric import GREATEST, LEAST
from tocsin.expressions.objects import microseconds, zoned
from tocsin.language import expressions as ex

Lookup = Callable[[ex.Attribute], "pa.ChunkedArray | None"]  # the column of an attribute; None where events lack it


class Kind(Enum):
    """What the values of a column are."""

    NULL = "null"
    TRUTH = "truth"
    INTEGER = "integer"
    DOUBLE = "double"
    TEXT = "text"
    TIME = "time"  # instants and days, as microseconds


NUMBERS = (Kind.INTEGER, Kind.DOUBLE)


class NotCoveredError(Exception):
    """A part of an expression is left to Python."""


class _Vector(NamedTuple):
    """A column, or a scalar for a constant."""

    kind: Kind
    values: Any

    @property
    def may_be_nan(self) -> bool:
        return self.kind is Kind.DOUBLE and not isinstance(self.values, pa.Scalar)


def column_of(expression: ex.Expression, lookup: Lookup, size: int) -> pa.ChunkedArray | None:
    """The value of an expression for each of `size` events, or matches; None when Python must compute it.

    Times are integers in microseconds.
    """
    try:
        values = _vector(expression, lookup).values
    except (NotCoveredError, pa.ArrowException):  # Arrow refuses integers that overflow
        return None
    if isinstance(values, pa.Scalar):
        return pa.chunked_array([pa.repeat(values, size)])
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def _vector(node: ex.Expression, lookup: Lookup) -> _Vector:
    def of(operand: ex.Expression) -> _Vector:
        return _vector(operand, lookup)

    match node:
        case ex.Literal():
            return _constant(node.value)
        case ex.Timestamp() | ex.Date():
            return _Vector(Kind.TIME, constant(microseconds(zoned(node.value)), pa.int64()))
        case ex.Attribute() if ex.offset_of(node.index) == 0 and len(node.path) == 1:
            return _attribute(lookup(node))
        case ex.Arithmetic() if node.op in ARITHMETIC:
            return _arithmetic(node.op, of(node.left), of(node.right))
        case ex.Negative():
            operand = of(node.operand)
            _require(operand.kind in (*NUMBERS, Kind.NULL))
            return _Vector(operand.kind, pc.negate_checked(operand.values))
        case ex.Comparison():
            return _compared(node.op, of(node.left), of(node.right))
        case ex.And():
            return _truth(reduce(pc.and_kleene, [_truths(of(each)) for each in node.operands]))
        case ex.Or():
            return _truth(reduce(pc.or_kleene, [_truths(of(each)) for each in node.operands]))
        case ex.Not():
            return _truth(pc.invert(_truths(of(node.operand))))
        case ex.IsNull():
            values = of(node.operand).values
            return _truth(pc.is_valid(values) if node.negated else pc.is_null(values))
        case ex.In():
            return _opposite_if(node.negated, _one_of(of(node.operand), [of(option) for option in node.options]))
        case ex.Between():
            operand = of(node.operand)
            low, high = _compared(">=", operand, of(node.low)), _compared("<=", operand, of(node.high))
            return _opposite_if(node.negated, _truth(pc.and_kleene(low.values, high.values)))
        case ex.Like():
            return _opposite_if(node.negated, _like(of(node.operand), node.pattern))
        case _:
            raise NotCoveredError


def _require(is_covered: bool) -> None:
    if not is_covered:
        raise NotCoveredError


def _constant(value: Any) -> _Vector:
    match value:
        case None:
            return _Vector(Kind.NULL, constant(None, pa.bool_()))
        case bool():
            return _truth(constant(value, pa.bool_()))
        case int():
            _require(LEAST <= value <= GREATEST)
            return _Vector(Kind.INTEGER, constant(value, pa.int64()))
        case float():
            _require(value == value)  # noqa: PLR0124 - only NaN differs from itself
            return _Vector(Kind.DOUBLE, constant(value, pa.float64()))
        case _:
            return _Vector(Kind.TEXT, constant(value, pa.string()))


def _attribute(column: pa.ChunkedArray | None) -> _Vector:
    if column is None or pa.types.is_null(column.type):
        return _constant(None)
    is_a, dtype = pa.types, column.type
    if is_a.is_boolean(dtype):
        return _truth(column)
    if is_a.is_integer(dtype):
        return _Vector(Kind.INTEGER, column.cast(pa.int64()))
    if is_a.is_floating(dtype):
        return _Vector(Kind.DOUBLE, column.cast(pa.float64()))
    if is_a.is_string(dtype) or is_a.is_large_string(dtype):
        return _Vector(Kind.TEXT, column)
    if is_a.is_date(dtype):
        return _Vector(Kind.TIME, column.cast(pa.timestamp("us")).cast(pa.int64()))
    _require(is_a.is_timestamp(dtype) and dtype.unit == "us")
    return _Vector(Kind.TIME, column.cast(pa.int64()))


# --- truth ----------------------------------------------------------------------------------------


def _truth(values: Any) -> _Vector:
    return _Vector(Kind.TRUTH, values)


def _truths(vector: _Vector) -> Any:
    _require(vector.kind in (Kind.TRUTH, Kind.NULL))
    return vector.values


def _opposite_if(negated: bool, vector: _Vector) -> _Vector:
    return _truth(pc.invert(vector.values)) if negated else vector


# --- comparisons ----------------------------------------------------------------------------------


def _compared(op: str, left: _Vector, right: _Vector) -> _Vector:
    if Kind.NULL in (left.kind, right.kind):
        return _constant(None)
    left, right = _alike(left, right)
    if left.kind is Kind.TRUTH:
        left, right = (each._replace(values=pc.cast(each.values, pa.int8())) for each in (left, right))
    return _truth(COMPARE[op](left, right))


def _alike(left: _Vector, right: _Vector) -> tuple[_Vector, _Vector]:
    """Two columns in a common domain."""
    if left.kind is not right.kind:
        _require(left.kind in NUMBERS and right.kind in NUMBERS)
        return _doubles(left), _doubles(right)
    return left, right


def _doubles(vector: _Vector) -> _Vector:
    return _Vector(Kind.DOUBLE, pc.cast(vector.values, pa.float64(), safe=False))


def _less(left: _Vector, right: _Vector) -> Any:
    found = pc.less(left.values, right.values)
    if not right.may_be_nan:
        return found
    is_above = pc.is_nan(right.values)
    if left.may_be_nan:
        is_above = pc.and_(is_above, pc.invert(pc.is_nan(left.values)))
    return pc.or_(found, is_above)


def _equal(left: _Vector, right: _Vector) -> Any:
    found = pc.equal(left.values, right.values)
    if not (left.may_be_nan and right.may_be_nan):
        return found
    return pc.or_(found, pc.and_(pc.is_nan(left.values), pc.is_nan(right.values)))


COMPARE: dict[str, Callable[[_Vector, _Vector], Any]] = {
    "=": _equal,
    "!=": lambda left, right: pc.invert(_equal(left, right)),
    "<": _less,
    "<=": lambda left, right: pc.invert(_less(right, left)),
    ">": lambda left, right: _less(right, left),
    ">=": lambda left, right: pc.invert(_less(left, right)),
}


def _one_of(operand: _Vector, options: Sequence[_Vector]) -> _Vector:
    is_listed = len(options) > FEW_OPTIONS and all(
        isinstance(option.values, pa.Scalar) and option.kind is operand.kind for option in options
    )
    if is_listed and operand.kind in (Kind.INTEGER, Kind.TEXT):
        listed = pc.is_in(operand.values, of_values([option.values.as_py() for option in options], operand.values.type))
        return _truth(pc.if_else(pc.is_valid(operand.values), listed, constant(None, pa.bool_())))
    return _truth(reduce(pc.or_kleene, [_compared("=", operand, option).values for option in options]))


def _like(operand: _Vector, pattern: str) -> _Vector:
    """Texts like a pattern whose only wildcards are `%` at its ends."""
    parts = PLAIN_PATTERN.fullmatch(pattern)
    _require(parts is not None and operand.kind is Kind.TEXT)
    assert parts is not None
    function = LIKE[bool(parts["before"]), bool(parts["behind"])]
    return _truth(function(operand.values, parts["text"]))


FEW_OPTIONS = 4
PLAIN_PATTERN = re.compile(r"(?P<before>%?)(?P<text>[^%_\\]*)(?P<behind>%?)", re.DOTALL)
LIKE: dict[tuple[bool, bool], Callable[[Any, str], Any]] = {
    (False, False): lambda values, text: pc.equal(values, constant(text, pa.string())),
    (False, True): pc.starts_with,
    (True, False): pc.ends_with,
    (True, True): pc.match_substring,
}


# --- arithmetic -----------------------------------------------------------------------------------


def _arithmetic(op: str, left: _Vector, right: _Vector) -> _Vector:
    if Kind.NULL in (left.kind, right.kind):
        return _constant(None)
    _require(left.kind in NUMBERS and right.kind in NUMBERS)
    if op == "/":
        left, right = _doubles(left), _doubles(right)
        is_zero = pc.equal(right.values, constant(0.0, pa.float64()))
        right = right._replace(values=pc.if_else(is_zero, constant(None, pa.float64()), right.values))
    else:
        left, right = _alike(left, right)
    return _Vector(left.kind, ARITHMETIC[op](left.values, right.values))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide,
}
