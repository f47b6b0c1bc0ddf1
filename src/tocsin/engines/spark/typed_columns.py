"""A Column together with its kind: the casts that make two of them meet, comparison and arithmetic.

Intervals are held as BIGINT microseconds, so that one beside an integer counts microseconds, as the semantics requires;
computed time stamps are held that way until something needs them as a time stamp. Integers compute in 64 bits whatever
the width of their column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import reduce
from operator import or_
from typing import assert_never

from pyspark.sql import types as T

from tocsin import errors
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.expressions.objects import microseconds


class Kind(Enum):
    """The kind of a value, as far as arithmetic and comparison care."""

    NULL = "NULL"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    DATE = "date"
    INSTANT = "timestamp"
    LOCAL = "timestamp without time zone"
    INTERVAL = "interval"
    OTHER = "other"


TIMES = frozenset({Kind.DATE, Kind.INSTANT, Kind.LOCAL})
NUMBERS = frozenset({Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL})
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})  # written as in SQL
KINDS: Mapping[Kind, tuple[type[T.DataType], ...]] = {
    Kind.BOOLEAN: (T.BooleanType,),
    Kind.INTEGER: (T.ByteType, T.ShortType, T.IntegerType, T.LongType),
    Kind.DOUBLE: (T.FloatType, T.DoubleType),
    Kind.DECIMAL: (T.DecimalType,),
    Kind.STRING: (T.StringType, T.CharType, T.VarcharType),
    Kind.DATE: (T.DateType,),
    Kind.INSTANT: (T.TimestampType,),
    Kind.LOCAL: (T.TimestampNTZType,),
    Kind.INTERVAL: (T.DayTimeIntervalType,),
    Kind.NULL: (T.NullType,),
}
UNKNOWN_SCALE = 18  # of decimals that are computed and not a column
# The types of times in results.
TIME_TYPES = {Kind.INSTANT: T.TimestampType(), Kind.LOCAL: T.TimestampNTZType(), Kind.INTEGER: T.LongType()}


def kind_of(dtype: T.DataType) -> Kind:
    """The kind of a column's type."""
    return next((kind for kind, types in KINDS.items() if isinstance(dtype, types)), Kind.OTHER)


@dataclass(frozen=True)
class Value:
    """A Column and its kind."""

    column: Column
    kind: Kind
    in_micros: bool = False  # whether a time stamp is held as BIGINT microseconds
    scale: int = UNKNOWN_SCALE  # how many digits behind the point a decimal has

    def held_in(self, column: Column) -> Value:
        """Another Column with values of the same kind."""
        return replace(self, column=column)

    @property
    def micros(self) -> Column:
        """A time stamp or day as microseconds."""
        if self.in_micros:
            return self.column
        match self.kind:
            case Kind.INSTANT:
                return F.unix_micros(self.column)
            case Kind.LOCAL:
                return _micros_of_local(self.column)
            case Kind.DATE:
                # NULL when no TIMESTAMP is that far away.
                return F.try_multiply(F.unix_date(self.column).cast("bigint"), F.lit(DAY_US))
            case _:
                return self.column

    @property
    def number(self) -> Column:
        """A value to compute with: integers in 64 bits, intervals in microseconds."""
        return self.column.cast("bigint") if self.kind in (Kind.INTEGER, Kind.NULL) else self.column

    @property
    def output(self) -> Column:
        """The value as a user should see it."""
        match self.kind:
            case Kind.INSTANT if self.in_micros:
                return F.timestamp_micros(self.column)
            case Kind.LOCAL if self.in_micros:
                return local_of_micros(self.column)
            case Kind.INTERVAL:
                return local_of_micros(self.column) - _local_epoch()
            case _:
                return self.column


def micros_of(time: Column, kind: Kind) -> Column:
    """A time column as BIGINT microseconds."""
    return Value(time, kind).micros if kind in TIMES else time.cast("bigint")


def micros_in(time: Column, dtype: T.DataType) -> Column:
    """A time column of this type as BIGINT microseconds."""
    return time if isinstance(dtype, T.LongType) else micros_of(time, kind_of(dtype))


def value_of(column: Column, dtype: T.DataType) -> Value:
    """The value of an input column.

    A FLOAT computes as a DOUBLE: beside an integer Spark would make both FLOAT, and round them to seven digits.
    """
    match dtype:
        case T.DayTimeIntervalType():
            return Value(_micros_of_interval(column), Kind.INTERVAL)
        case T.FloatType():
            return Value(column.cast("double"), Kind.DOUBLE)
        case T.DecimalType():
            return Value(column, Kind.DECIMAL, scale=dtype.scale)
        case _:
            return Value(column, kind_of(dtype))


def literal(value: bool | int | float | str | Decimal | dt.date | None) -> Value:
    """A constant."""
    match value:
        case None:
            return Value(null(), Kind.NULL)
        case bool():
            return Value(F.lit(value), Kind.BOOLEAN)
        case int() if not -(2**63) <= value < 2**63:
            return Value(F.lit(Decimal(value)), Kind.DECIMAL)
        case int():
            return Value(F.lit(value), Kind.INTEGER)
        case float():
            return Value(F.lit(value), Kind.DOUBLE)
        case str():
            return Value(F.lit(value), Kind.STRING)
        case Decimal():
            return Value(F.lit(value), Kind.DECIMAL)
        case dt.datetime():
            return Value(F.timestamp_micros(microseconds(value)), Kind.INSTANT)
        case dt.date():
            return Value(F.lit(value.isoformat()).cast("date"), Kind.DATE)
        case _:
            assert_never(value)


def whole(column: Column) -> Column:
    """The BIGINT of a DOUBLE; NULL where there is none, which a cast would refuse under ANSI and clip without it."""
    # NaN is above every number.
    fits = (column >= F.lit(-(2.0**63))) & (column < F.lit(2.0**63))
    return F.when(fits, column.cast("bigint"))


def null(dtype: T.DataType | None = None) -> Column:
    """NULL, of a type."""
    return F.lit(None) if dtype is None else F.lit(None).cast(dtype)


def meet(*values: Value) -> tuple[list[Column], Kind, bool]:
    """The columns of values that must be of one kind (CASE, COALESCE, comparison), that kind, and whether in micros.

    Spark itself widens numbers; what it would get wrong is time: a day meets a time stamp at midnight UTC, not at
    midnight of the session's zone.
    """
    kinds = {value.kind for value in values} - {Kind.NULL}
    if kinds and kinds <= TIMES:
        if len(kinds) == 1 and not any(value.in_micros for value in values):
            return [value.column for value in values], kinds.pop(), False
        kind = Kind.INSTANT if kinds != {Kind.LOCAL} else Kind.LOCAL
        columns = [value.column if value.kind is Kind.NULL else value.micros for value in values]
        return columns, kind, True
    kind = next((kind for kind in (Kind.DOUBLE, Kind.DECIMAL, Kind.INTEGER) if kind in kinds), None) or next(
        (value.kind for value in values if value.kind is not Kind.NULL), Kind.NULL
    )
    return [value.column for value in values], kind, False


# --- comparison and arithmetic --------------------------------------------------------------------


def compare(op: str, left: Value, right: Value) -> Column:
    """A comparison; UNKNOWN with NULL, NaN equal to itself and above every number, as Spark has it."""
    one, other = meet(left, right)[0]
    if op not in COMPARISONS:
        raise errors.InternalError(f"There is no comparison `{op}`.")
    return Column(f"({one.text} {op} {other.text})")


def is_one_of(subject: Value, options: Sequence[Value]) -> Column:
    """Whether a value equals one of several."""
    if all(option.kind is subject.kind and option.kind in (Kind.INTEGER, Kind.STRING) for option in options):
        # One expression however long the list, which Spark looks up.
        return subject.column.isin([option.column for option in options])
    return reduce(or_, (compare("=", subject, option) for option in options))


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


# --- time -----------------------------------------------------------------------------------------

# Time is one BIGINT of microseconds, never by way of the session's time zone. Spark reads and computes many things in
# that zone: a cast between TIMESTAMP and TIMESTAMP_NTZ, the text of a time stamp, even `timestamp + INTERVAL 1 DAY` (a
# calendar day, 23 or 25 hours long when clocks change). A window of a pattern is a number of microseconds.


DAY_US = 86_400_000_000


def _micros_of_local(column: Column) -> Column:
    """Microseconds of a TIMESTAMP_NTZ, read as if in UTC.

    `unix_micros` would first cast to TIMESTAMP, in the session's zone, where local times may be missing or come twice.
    The fields of a TIMESTAMP_NTZ are taken as they are.
    """
    days = F.unix_date(column.cast("date")).cast("bigint")
    minutes = (F.hour(column) * 60 + F.minute(column)).cast("bigint")
    within = minutes * 60_000_000 + _second_micros(column)
    # Counted back from the end of a day before the epoch: the start of the very first one is beyond 64 bits.
    back = (days + 1) * DAY_US + (within - DAY_US)
    return F.when(days < 0, back).otherwise(days * DAY_US + within)


def _micros_of_interval(column: Column) -> Column:
    """Microseconds of a day-time interval, which may have fewer fields than INTERVAL DAY TO SECOND."""
    column = column.cast("interval day to second")
    days = F.extract("DAY", column).cast("bigint")
    minutes = days * 1440 + F.extract("HOUR", column) * 60 + F.extract("MINUTE", column)
    return minutes * 60_000_000 + _second_micros(column)


def _second_micros(column: Column) -> Column:
    return (F.extract("SECOND", column) * 1_000_000).cast("bigint")


def local_of_micros(micros: Column) -> Column:
    """A TIMESTAMP_NTZ from its microseconds."""
    return F.timestamp_add("MICROSECOND", micros, _local_epoch())


def _local_epoch() -> Column:
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")


# Spark's names of the fields of the calendar that rules read.
EXTRACTED = {
    "year": "YEAR",
    "month": "MONTH",
    "day": "DAY",
    "weekday": "DAYOFWEEK_ISO",
    "yearday": "DOY",
    "week": "WEEK",
    "hour": "HOUR",
    "minute": "MINUTE",
    "second": "SECOND",
}


def calendar(field: str, micros: Column, zone: str | None) -> Column:
    """A field of the calendar, by the wall clock in a zone."""
    # That clock as if it stood in UTC. The fields of a TIMESTAMP are those of the session's zone, so it is made local.
    shown = micros if zone is None else F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(micros), zone))
    return F.extract(EXTRACTED[field], local_of_micros(shown)).cast("bigint")
