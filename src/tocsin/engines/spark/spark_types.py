"""Spark's types and schemas as types of the analysis, and back.

`type_of` keeps Spark's own type object in `DataType.native`, so that `to_spark` returns every column's type unchanged;
the type of an inferred value follows from its family, digits and zone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.attributes import Schema, attributes_of, column_types
from tocsin.analysis.types import DataType, Kind, from_spark_name
from tocsin.engines.spark.compat import ignores_case, schema_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.gaps import Gaps

Shape = dict[str, T.DataType]
SPARK: Mapping[Kind, T.DataType] = {
    Kind.NULL: T.NullType(),
    Kind.BOOLEAN: T.BooleanType(),
    Kind.DOUBLE: T.DoubleType(),
    Kind.STRING: T.StringType(),
    Kind.TIMESTAMP: T.TimestampType(),
    Kind.DATE: T.DateType(),
    Kind.INTERVAL: T.DayTimeIntervalType(),
    Kind.BINARY: T.BinaryType(),
}
INTEGERS: Mapping[int, T.DataType] = {1: T.ByteType(), 2: T.ShortType(), 4: T.IntegerType(), 8: T.LongType()}
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


# --- schemas --------------------------------------------------------------------------------------


def types_in(schema: T.StructType) -> dict[str, DataType]:
    """The types of the columns of a schema."""
    return {field.name: type_of(field.dataType) for field in schema.fields}


def schemas_of(given: Mapping[str, T.StructType]) -> dict[str, Schema]:
    """The schemas of event types."""
    return {name: Schema(name, types_in(schema)) for name, schema in given.items()}


def shape_of(variable: str, schemas: Iterable[T.StructType]) -> Shape:
    """The attributes of a variable and their types, in the order of its inputs.

    >>> one = T.StructType().add("x", "integer").add("s", "string")
    >>> shape_of("a", [one, T.StructType().add("x", "long")])
    {'x': LongType(), 's': StringType()}
    """
    known = [Schema(variable, types_in(schema)) for schema in schemas]
    return {name: to_spark(found) for name, found in column_types(variable, known, attributes_of(known)).items()}


def checked(given: DataFrame | T.StructType, owner: str) -> T.StructType:
    """The schema of a DataFrame, or the schema itself, whose names are distinct."""
    if isinstance(given, T.StructType):
        require_distinct_names(given, owner)
        return given
    schema = schema_of(given)
    require_distinct_names(schema, owner, ignores_case=lambda: ignores_case(given))
    return schema


def require_distinct_names(
    schema: T.StructType, owner: str, *, ignores_case: Callable[[], bool] = lambda: False
) -> None:
    """Refuse two columns of one name, and two fields of one name in a struct.

    Columns whose names differ only in case are told apart by their place. Fields of a struct are read by name, and
    Spark finds two of them when it ignores case; whether it does is asked only when it matters.
    """
    problems = []
    for path, struct in _structs(schema):
        names = [*struct.names]
        folded = [name.casefold() for name in names]
        if path and len(set(folded)) < len(folded) and ignores_case():
            names = folded
        counts = Counter(names)
        twice = [name for name, key in zip(struct.names, names, strict=True) if counts[key] > 1]
        if twice:
            what = "columns" if not path else f"fields of `{'.'.join(path)}`"
            called = " and ".join(f"`{name}`" for name in dict.fromkeys(twice))
            problems.append(
                errors.DuplicateInputColumnError(
                    f"{len(twice)} {what} are called {called} in {owner}.",
                    hint="keep one of them, or rename all columns with `df.toDF(...)`.",
                )
            )
    errors.raise_all(problems)


def _structs(schema: T.StructType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], T.StructType]]:
    yield path, schema
    for field in schema.fields:
        if isinstance(field.dataType, T.StructType):
            yield from _structs(field.dataType, (*path, field.name))


# --- types ----------------------------------------------------------------------------------------


def type_of(dtype: T.DataType) -> DataType:
    """A type of Spark as a type of the analysis; field by field, since a name may hold any character."""
    if isinstance(dtype, T.StructType):
        found = types.struct_of((field.name, type_of(field.dataType)) for field in dtype.fields)
    elif isinstance(dtype, T.ArrayType):
        found = types.array_of(type_of(dtype.elementType))
    else:
        try:
            found = from_spark_name(dtype.simpleString())
        except errors.InvalidOptionError:
            found = DataType(Kind.OTHER, text=dtype.simpleString(), width_bytes=64)
    return replace(found, native=dtype, name=dtype.simpleString())


def to_spark(dtype: DataType) -> T.DataType:
    """The type of a column: Spark's own where it gave the type, otherwise the one that holds all values of it.

    Raises `UnsupportedError` when no value of the type can be made.

    >>> to_spark(types.decimal_of(12, 3)), to_spark(types.array_of(types.INTEGER))
    (DecimalType(12,3), ArrayType(LongType(), True))
    """
    if isinstance(dtype.native, T.DataType):
        return dtype.native
    match dtype.kind:
        case Kind.STRUCT:
            return T.StructType([T.StructField(name, to_spark(found)) for name, found in dtype.fields])
        case Kind.ARRAY if dtype.element is not None:
            return T.ArrayType(to_spark(dtype.element))
        case Kind.INTEGER:
            return INTEGERS[dtype.width_bytes]
        case Kind.DECIMAL:
            return T.DecimalType(*dtype.decimal_digits)
        case Kind.TIMESTAMP if dtype.is_local:
            return T.TimestampNTZType()
        case kind if kind in SPARK:
            return SPARK[kind]
        case _:
            raise not_made(dtype.text)


def in_type(value: Column, dtype: DataType) -> Column:
    """A computed value in its type; the mean of integers is rounded down where the type is an integer."""
    wanted = to_spark(dtype)
    if isinstance(wanted, T.LongType):
        value = F.floor(value)
    return value if isinstance(wanted, T.NullType) else value.cast(wanted)


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """The Arrow schema of rows that a worker returns to Spark."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema.fields])


def arrow_type(dtype: T.DataType) -> pa.DataType:
    """The Arrow type of values that a worker returns to Spark.

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
        raise not_made(dtype.simpleString())
    return ARROW[type(dtype)]


def not_made(name: str) -> errors.UnsupportedError:
    """The refusal of a type whose values Python cannot make."""
    return errors.UnsupportedError(f"Values of the type {name} cannot be made on Spark yet.", gap=Gaps.MADE_VALUES)
