"""The types of results: of arithmetic, functions and aggregates over values of known types.

Integers compute in 64 bits, floats as doubles; decimals have the digits that Spark gives their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from tocsin.analysis import types
from tocsin.analysis.types import DataType, Kind, decimal_of, given_type
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
        is_column = isinstance(node.argument, ex.Attribute)
        return found.widened if found.kind is not Kind.DECIMAL or is_column else types.DECIMAL
    if node.function == "range":
        return arithmetic_type("-", found, found) or found
    return result_type(AGGREGATES[node.function].gives, [found])


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
            return found[0] if scale == 0 else bounded_decimal(digits - scale + 1, 0)
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
    return decimal_of(min(digits - scale + 1 + kept, types.MOST_DIGITS), kept)


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
            return bounded_decimal(one + other + 1, one_scale + other_scale)
        case "%":
            return bounded_decimal(min(one - one_scale, other - other_scale) + scale, scale)
        case _:
            return bounded_decimal(max(one - one_scale, other - other_scale) + scale + 1, scale)


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


# --- two types together ---------------------------------------------------------------------------


def can_compare(one: DataType, other: DataType) -> bool:
    """Whether values of two types can be compared (R39).

    A number compares with a number, a time stamp with a day; an interval written in the query counts
    microseconds beside a number. Structs, arrays and maps compare with nothing.

    >>> can_compare(types.INTEGER, types.DOUBLE), can_compare(types.STRING, types.INTEGER)
    (True, False)
    """
    if one.is_null or other.is_null:
        return True
    return one.is_ordered and common_type([one, other]) is not None


def common_type(found: Iterable[DataType]) -> DataType | None:
    """The type that values of several types share (CASE, COALESCE), or None.

    >>> print(common_type([types.INTEGER, types.NULL, types.DOUBLE]), common_type([types.STRING, types.INTEGER]))
    double None
    """
    known, alike = _known(found)
    if alike is not None:
        return alike
    kinds = {each.kind for each in known}
    if kinds <= types.NUMBERS:
        return _common_number(known)
    if kinds <= types.TIMES:
        if Kind.TIMESTAMP not in kinds:
            return types.DATE
        return types.LOCAL_TIMESTAMP if all(each.is_local for each in known) else types.TIMESTAMP
    if kinds <= types.NUMBERS | {Kind.INTERVAL}:
        if kinds == {Kind.INTERVAL}:
            return types.WRITTEN_INTERVAL if all(each.is_written for each in known) else types.INTERVAL
        written = all(each.is_written for each in known if each.kind is Kind.INTERVAL)
        return common_type([each for each in known if each.is_number]) if written else None
    return known[0] if all(each == known[0] for each in known) else None


def _known(found: Iterable[DataType]) -> tuple[list[DataType], DataType | None]:
    """The types that are not NULL's, and the only one where all are exactly alike."""
    known = [each for each in found if not each.is_null]
    return known, next(iter(known), types.NULL) if all(each.is_exactly(known[0]) for each in known) else None


def _common_number(known: Sequence[DataType]) -> DataType:
    """The widest of several numbers; decimals keep all digits on both sides of the point while 38 hold them."""
    kinds = {each.kind for each in known}
    if Kind.DOUBLE in kinds:
        return types.DOUBLE
    if Kind.DECIMAL not in kinds:
        return max(known, key=lambda each: each.width_bytes)
    digits = [each.decimal_digits for each in known]
    scale = max(behind for _, behind in digits)
    return bounded_decimal(max(size - behind for size, behind in digits) + scale, scale)


def bounded_decimal(digits: int, scale: int) -> DataType:
    """A decimal with so many digits; beyond 38 it loses digits behind the point, down to six, as Spark has it.

    >>> bounded_decimal(20, 4).digits, bounded_decimal(45, 10).digits
    ((20, 4), (38, 6))
    """
    if digits <= types.MOST_DIGITS:
        return decimal_of(digits, scale)
    return decimal_of(types.MOST_DIGITS, max(types.MOST_DIGITS - (digits - scale), min(scale, types.LEAST_SCALE)))


def column_type(found: Iterable[DataType]) -> DataType | None:
    """The exact type of a column that holds an attribute of several kinds of events, or None.

    Types that are exactly equal stay; other integers become `bigint`, other numbers `double`.

    >>> from tocsin.analysis.types import from_spark_name
    >>> column_type([from_spark_name("int"), from_spark_name("smallint")]).width_bytes
    8
    """
    known, alike = _known(found)
    if alike is not None:
        return alike
    kinds = {each.kind for each in known}
    if kinds <= types.NUMBERS:
        return types.INTEGER if kinds == {Kind.INTEGER} else types.DOUBLE
    if kinds == {Kind.STRING}:
        return types.STRING
    is_same = len(kinds) == 1 and all(each == known[0] and each.is_local == known[0].is_local for each in known)
    inferred = [each for each in known if each.native is None]
    return known[0] if is_same and inferred else None
