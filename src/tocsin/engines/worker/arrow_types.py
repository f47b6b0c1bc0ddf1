"""Arrow's types and schemas as types of the analysis, and back; columns in the types and under the names of a schema.

`type_of` keeps Arrow's own type in `DataType.native`, so that `to_arrow` returns every column's type unchanged; the
type of an inferred value follows from its family, digits and zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.analysis import types
from tocsin.analysis.attributes import Schema
from tocsin.analysis.types import DataType, Kind

Columns = TypeVar("Columns", pa.Table, pa.RecordBatch)
ARROW: Mapping[Kind, pa.DataType] = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.INTERVAL: pa.duration("us"),
    Kind.BINARY: pa.binary(),
}


def types_in(schema: pa.Schema) -> dict[str, DataType]:
    """The types of the columns of a schema."""
    return {field.name: type_of(field.type) for field in schema}


def schemas_of(given: Mapping[str, pa.Schema]) -> dict[str, Schema]:
    """The schemas of event types."""
    return {name: Schema(name, types_in(schema)) for name, schema in given.items()}


def type_of(dtype: pa.DataType) -> DataType:
    """A type of Arrow as a type of the analysis."""
    return replace(_type_of(dtype), native=dtype, name=str(dtype))


def _type_of(dtype: pa.DataType) -> DataType:
    is_a = pa.types
    if is_a.is_dictionary(dtype):
        return _type_of(dtype.value_type)
    if is_a.is_struct(dtype):
        return types.struct_of((field.name, type_of(field.type)) for field in dtype.fields)
    if is_a.is_list(dtype) or is_a.is_large_list(dtype):
        return types.array_of(type_of(dtype.value_type))
    if is_a.is_decimal(dtype):
        return types.decimal_of(dtype.precision, dtype.scale)
    if is_a.is_timestamp(dtype):
        return types.TIMESTAMP if dtype.tz else types.LOCAL_TIMESTAMP
    simple = [
        (is_a.is_boolean, types.BOOLEAN),
        (is_a.is_integer, types.INTEGER),
        (is_a.is_floating, types.DOUBLE),
        (is_a.is_string, types.STRING),
        (is_a.is_large_string, types.STRING),
        (is_a.is_date, types.DATE),
        (is_a.is_duration, types.INTERVAL),
        (is_a.is_binary, types.BINARY),
        (is_a.is_large_binary, types.BINARY),
        (is_a.is_null, types.NULL),
    ]
    other = DataType(Kind.OTHER, text=str(dtype), width_bytes=64)
    return next((found for test, found in simple if test(dtype)), other)


def to_arrow(dtype: DataType, zone: str = "UTC") -> pa.DataType:
    """The type of a column: Arrow's own where it gave the type, otherwise the one that holds all values of it.

    >>> to_arrow(types.decimal_of(12, 3)), to_arrow(types.array_of(types.INTEGER))
    (Decimal128Type(decimal128(12, 3)), ListType(list<item: int64>))
    """
    if isinstance(dtype.native, pa.DataType):
        return dtype.native
    match dtype.kind:
        case Kind.STRUCT:
            return pa.struct([pa.field(name, to_arrow(found, zone)) for name, found in dtype.fields])
        case Kind.ARRAY if dtype.element is not None:
            return pa.list_(to_arrow(dtype.element, zone))
        case Kind.DECIMAL:
            return pa.decimal128(*dtype.decimal_digits)
        case Kind.TIMESTAMP:
            return pa.timestamp("us") if dtype.is_local else pa.timestamp("us", zone)
        case kind:
            return ARROW.get(kind, pa.string())


def in_type(values: pa.ChunkedArray, dtype: DataType) -> pa.ChunkedArray:
    """Computed values in their type; the mean of integers is rounded down where the type is an integer."""
    wanted = to_arrow(dtype)
    if pa.types.is_floating(values.type) and pa.types.is_integer(wanted):
        values = pc.floor(values)
    return values if values.type == wanted else values.cast(wanted, safe=False)


def renamed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Structs, or lists of them, under other names of fields; `Array.view` would cut off columns of type NULL."""
    mask = array.is_null() if array.null_count else None
    if pa.types.is_list(wanted):
        # Offsets of a NULL list are equal, so that the mask is all there is to know of it.
        return pa.ListArray.from_arrays(array.offsets, renamed(array.values, wanted.value_type), mask=mask)
    fields = [array.field(number) for number in range(wanted.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=mask)


def completed(found: Columns, schema: pa.Schema, *, safe: bool = True) -> Columns:
    """Rows in the columns and types of a schema, NULL where they have none."""
    columns = [
        found.column(field.name).cast(field.type, safe=safe)
        if field.name in found.schema.names
        else pa.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return type(found).from_arrays(columns, schema=schema)


def normal(table: pa.Table) -> pa.Table:
    """A table whose timestamps count microseconds and whose dictionaries are values."""
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_timestamp(kind) and kind.unit != "us":
            kind = pa.timestamp("us", kind.tz)
        if pa.types.is_duration(kind) and kind.unit != "us":
            kind = pa.duration("us")
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))
