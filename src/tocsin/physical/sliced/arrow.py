"""Arrow's types: in the terms of the analysis, and those of the values that a search makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType, Kind
from tocsin.physical.looks import DEFAULT_SCALE, MOST_DIGITS, digits_of

SIMPLE: Mapping[Kind, pa.DataType] = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.DECIMAL: pa.decimal128(MOST_DIGITS, DEFAULT_SCALE),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.DATE: pa.date32(),
    Kind.INTERVAL: pa.duration("us"),
    Kind.BINARY: pa.binary(),
}


def attributes_of(schema: pa.Schema) -> dict[str, DataType]:
    """The attributes of an event type, in the terms of the analysis.

    Examples
    --------
    >>> attributes_of(pa.schema({"ts": pa.timestamp("us"), "x": pa.int32()}))["x"].kind.value
    'an integer'
    """
    return {field.name: type_of(field.type) for field in schema}


def type_of(dtype: pa.DataType) -> DataType:
    """A type."""
    is_a = pa.types
    if is_a.is_dictionary(dtype):
        return type_of(dtype.value_type)
    if is_a.is_struct(dtype):
        return types.struct_of((field.name, type_of(field.type)) for field in dtype.fields)
    if is_a.is_list(dtype) or is_a.is_large_list(dtype):
        return types.array_of(type_of(dtype.value_type))
    simple = [
        (is_a.is_boolean, types.BOOLEAN),
        (is_a.is_integer, types.INTEGER),
        (is_a.is_floating, types.DOUBLE),
        (is_a.is_decimal, types.DECIMAL),
        (is_a.is_string, types.STRING),
        (is_a.is_large_string, types.STRING),
        (is_a.is_timestamp, types.TIMESTAMP),
        (is_a.is_date, types.DATE),
        (is_a.is_duration, types.INTERVAL),
        (is_a.is_binary, types.BINARY),
        (is_a.is_large_binary, types.BINARY),
        (is_a.is_null, types.NULL),
    ]
    for test, found in simple:
        if test(dtype):
            return found
    return DataType(types.Kind.OTHER, text=str(dtype), width_bytes=64)


def normal(table: pa.Table) -> pa.Table:
    """A table whose time stamps count microseconds and whose dictionaries are values."""
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_timestamp(kind) and kind.unit != "us":
            kind = pa.timestamp("us", kind.tz)
        if pa.types.is_duration(kind) and kind.unit != "us":
            kind = pa.duration("us")
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))


def common_type(found: Iterable[pa.DataType]) -> pa.DataType:
    """A type for the same attribute of several kinds of events."""
    kinds = list(dict.fromkeys(kind for kind in found if not pa.types.is_null(kind)))
    if len(kinds) < 2:
        return kinds[0] if kinds else pa.null()
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in kinds):
        return pa.float64()
    raise errors.TypeMismatchError(
        f"Two event types of one variable have an attribute of the same name that is {kinds[0]} in one and "
        f"{kinds[1]} in the other.",
        hint="convert one of them, or use two variables.",
    )


@dataclass(frozen=True)
class ArrowTypes:
    """Arrow's types, for `tocsin.physical.looks`."""

    schemas: Mapping[str, pa.Schema | Mapping[str, pa.DataType]]

    def columns(self, event_type: str) -> Mapping[str, pa.DataType]:
        """The attributes of an event type."""
        schema = self.schemas[event_type]
        return {field.name: field.type for field in schema} if isinstance(schema, pa.Schema) else schema

    def inside(self, dtype: pa.DataType, name: str) -> pa.DataType | None:
        """The type of a struct's field."""
        place = dtype.get_field_index(name) if pa.types.is_struct(dtype) else -1
        return dtype.field(place).type if place >= 0 else None

    def common(self, variable: str, attribute: str, found: Sequence[pa.DataType]) -> pa.DataType:
        """A type for one attribute of several kinds of events."""
        return common_type(found)

    def widened(self, dtype: pa.DataType) -> pa.DataType:
        """A type that holds sums of a number."""
        if pa.types.is_integer(dtype):
            return pa.int64()
        if pa.types.is_decimal(dtype):
            return pa.decimal128(MOST_DIGITS, dtype.scale)
        return pa.float64() if pa.types.is_floating(dtype) else dtype

    def listed(self, dtype: pa.DataType) -> pa.DataType:
        """Lists of a type."""
        return pa.list_(dtype)

    def fixed(self, dtype: DataType, name: str | None = None) -> pa.DataType:
        """A type of the analysis, which has forgotten the digits of decimals."""
        if (digits := digits_of(name)) is not None:
            return pa.decimal128(*digits)
        if dtype.kind is Kind.STRUCT:
            return pa.struct([pa.field(inner, self.fixed(found)) for inner, found in dtype.fields])
        if dtype.kind is Kind.ARRAY and dtype.element is not None:
            return pa.list_(self.fixed(dtype.element))
        return SIMPLE.get(dtype.kind, pa.string())
