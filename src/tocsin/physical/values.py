"""A Column together with its kind, and the casts that make two of them meet.

Intervals are held as BIGINT microseconds, so that one beside an integer counts microseconds, as the semantics requires;
computed time stamps are held that way until something needs them as a time stamp. Integers compute in 64 bits whatever
the width of their column.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from pyspark.sql import types as T

from tocsin.physical import instants
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F


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
# The types of times in results.
TIME_TYPES = {Kind.INSTANT: T.TimestampType(), Kind.LOCAL: T.TimestampNTZType(), Kind.INTEGER: T.LongType()}


def kind_of(dtype: T.DataType) -> Kind:
    """The kind of a column's type."""
    kinds: list[tuple[tuple[type[T.DataType], ...], Kind]] = [
        ((T.BooleanType,), Kind.BOOLEAN),
        ((T.ByteType, T.ShortType, T.IntegerType, T.LongType), Kind.INTEGER),
        ((T.FloatType, T.DoubleType), Kind.DOUBLE),
        ((T.DecimalType,), Kind.DECIMAL),
        ((T.StringType, T.CharType, T.VarcharType), Kind.STRING),
        ((T.DateType,), Kind.DATE),
        ((T.TimestampType,), Kind.INSTANT),
        ((T.TimestampNTZType,), Kind.LOCAL),
        ((T.DayTimeIntervalType,), Kind.INTERVAL),
        ((T.NullType,), Kind.NULL),
    ]
    return next((kind for types, kind in kinds if isinstance(dtype, types)), Kind.OTHER)


@dataclass(frozen=True)
class Value:
    """A Column and its kind; with `in_micros`, a time stamp is held as BIGINT microseconds."""

    column: Column
    kind: Kind
    in_micros: bool = False

    @property
    def micros(self) -> Column:
        """A time stamp or day as microseconds."""
        if self.in_micros:
            return self.column
        match self.kind:
            case Kind.INSTANT:
                return instants.micros_of_instant(self.column)
            case Kind.LOCAL:
                return instants.micros_of_local(self.column)
            case Kind.DATE:
                return instants.micros_of_date(self.column)
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
                return instants.instant_of_micros(self.column)
            case Kind.LOCAL if self.in_micros:
                return instants.local_of_micros(self.column)
            case Kind.INTERVAL:
                return instants.interval_of_micros(self.column)
            case _:
                return self.column


def value_of(column: Column, dtype: T.DataType) -> Value:
    """The value of an input column.

    A FLOAT computes as a DOUBLE: beside an integer Spark would make both FLOAT, and round them to seven digits.
    """
    kind = kind_of(dtype)
    if kind is Kind.INTERVAL:
        return Value(instants.micros_of_interval(column), kind)
    return Value(column.cast("double") if isinstance(dtype, T.FloatType) else column, kind)


def literal(value: bool | int | float | str | None) -> Value:
    """A constant."""
    match value:
        case None:
            return Value(null(), Kind.NULL)
        case bool():
            return Value(F.lit(value), Kind.BOOLEAN)
        case int() if not -(2**63) <= value < 2**63:
            return Value(F.lit(decimal.Decimal(value)), Kind.DECIMAL)
        case int():
            return Value(F.lit(value), Kind.INTEGER)
        case float():
            return Value(F.lit(value), Kind.DOUBLE)
        case str():
            return Value(F.lit(value), Kind.STRING)
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
