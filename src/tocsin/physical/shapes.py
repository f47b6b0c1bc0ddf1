"""The columns of a variable in the result: those of its event type, or of all kinds of events that it may hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as T

from tocsin.analysis import types as analysis
from tocsin.analysis.types import DataType
from tocsin.errors import TypeMismatchError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.physical.looks import DEFAULT_SCALE, MOST_DIGITS, digits_of
from tocsin.physical.values import NUMBERS, Kind, kind_of

Shape = dict[str, T.DataType]
SIMPLE: Mapping[analysis.Kind, T.DataType] = {
    analysis.Kind.NULL: T.NullType(),
    analysis.Kind.BOOLEAN: T.BooleanType(),
    analysis.Kind.INTEGER: T.LongType(),
    analysis.Kind.DOUBLE: T.DoubleType(),
    analysis.Kind.DECIMAL: T.DecimalType(MOST_DIGITS, DEFAULT_SCALE),
    analysis.Kind.STRING: T.StringType(),
    analysis.Kind.TIMESTAMP: T.TimestampType(),
    analysis.Kind.DATE: T.DateType(),
    analysis.Kind.INTERVAL: T.DayTimeIntervalType(),
    analysis.Kind.BINARY: T.BinaryType(),
}
ARROW: Mapping[type[T.DataType], pa.DataType] = {
    T.NullType: pa.null(),
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.StringType: pa.string(),
    T.CharType: pa.string(),
    T.VarcharType: pa.string(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.DayTimeIntervalType: pa.duration("us"),
}


def shape_of(variable: str, schemas: Iterable[T.StructType]) -> Shape:
    """The attributes of a variable and their types, in the order of its inputs.

    Examples
    --------
    >>> one = T.StructType().add("x", "integer").add("s", "string")
    >>> shape_of("a", [one, T.StructType().add("x", "long")])
    {'x': LongType(), 's': StringType()}
    """
    shape: Shape = {}
    for schema in schemas:
        for field in schema.fields:
            known = shape.get(field.name, field.dataType)
            shape[field.name] = _common(variable, field.name, known, field.dataType)
    return shape


def _common(variable: str, attribute: str, one: T.DataType, other: T.DataType) -> T.DataType:
    wider = _wider(one, other)
    if wider is None:
        raise TypeMismatchError(
            f"`{variable}` has two event types, whose attribute `{attribute}` is "
            f"{one.simpleString()} in one and {other.simpleString()} in the other.",
            hint="convert one of them, or use two variables.",
        )
    return wider


def _wider(one: T.DataType, other: T.DataType) -> T.DataType | None:
    """A type that holds the values of both, if they can be compared at all."""
    if one == other or isinstance(other, T.NullType):
        return one
    if isinstance(one, T.NullType):
        return other
    kinds = {kind_of(one), kind_of(other)}
    if kinds == {Kind.INTEGER}:
        return T.LongType()
    if kinds == {Kind.STRING}:
        return T.StringType()
    return T.DoubleType() if kinds <= NUMBERS else None


@dataclass(frozen=True)
class SparkTypes:
    """Spark's types, for `tocsin.physical.looks`."""

    schemas: Mapping[str, T.StructType]

    def columns(self, event_type: str) -> Mapping[str, T.DataType]:
        """The attributes of an event type."""
        return {field.name: field.dataType for field in self.schemas[event_type].fields}

    def inside(self, dtype: T.DataType, name: str) -> T.DataType | None:
        """The type of a struct's field."""
        return dtype[name].dataType if isinstance(dtype, T.StructType) and name in dtype.names else None

    def common(self, variable: str, attribute: str, found: Sequence[T.DataType]) -> T.DataType:
        """A type for one attribute of several kinds of events."""
        common: T.DataType = T.NullType()
        for one in found:
            common = _common(variable, attribute, common, one)
        return common

    def widened(self, dtype: T.DataType) -> T.DataType:
        """A type that holds sums of a number.

        Examples
        --------
        >>> SparkTypes({}).widened(T.DecimalType(10, 2)), SparkTypes({}).widened(T.StringType())
        (DecimalType(38,2), StringType())
        """
        if isinstance(dtype, T.DecimalType):
            return T.DecimalType(MOST_DIGITS, dtype.scale)
        wide = {Kind.INTEGER: T.LongType(), Kind.DOUBLE: T.DoubleType()}
        return wide.get(kind_of(dtype), dtype)

    def listed(self, dtype: T.DataType) -> T.DataType:
        """Lists of a type."""
        return T.ArrayType(dtype)

    def fixed(self, dtype: DataType, name: str | None = None) -> T.DataType:
        """A type of the analysis, which has forgotten the digits of decimals."""
        if (digits := digits_of(name)) is not None:
            return T.DecimalType(*digits)
        if dtype.kind is analysis.Kind.STRUCT:
            return T.StructType([T.StructField(inner, self.fixed(found)) for inner, found in dtype.fields])
        if dtype.kind is analysis.Kind.ARRAY and dtype.element is not None:
            return T.ArrayType(self.fixed(dtype.element))
        if dtype.kind not in SIMPLE:
            raise _not_made(dtype.text)
        return SIMPLE[dtype.kind]


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The columns that a worker's own rows have on their way to Spark."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(dtype: T.DataType) -> pa.DataType:
    """The type that values of a worker's own have on their way to Spark.

    Examples
    --------
    >>> arrow_type(T.ArrayType(T.DecimalType(10, 2)))
    ListType(list<element: decimal128(10, 2)>)
    """
    if isinstance(dtype, T.DecimalType):
        return pa.decimal128(dtype.precision, dtype.scale)
    if isinstance(dtype, T.ArrayType):
        return pa.list_(pa.field("element", arrow_type(dtype.elementType)))
    if isinstance(dtype, T.MapType):
        return pa.map_(arrow_type(dtype.keyType), arrow_type(dtype.valueType))
    if isinstance(dtype, T.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.dataType)) for field in dtype.fields])
    if type(dtype) not in ARROW:
        raise _not_made(dtype.simpleString())
    return ARROW[type(dtype)]


def _not_made(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"Values of the type {name} cannot be made on Spark yet.",
        gap=Gaps.MADE_VALUES,
    )
