"""Spark's schemas in the terms of the analysis, which knows types by their names and no Spark."""

from __future__ import annotations

from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType, Kind

Attributes = dict[str, "str | DataType"]


def attributes_of(schema: T.StructType) -> Attributes:
    """The attributes of an event type.

    Examples
    --------
    >>> schema = T.StructType().add("ts", "timestamp").add("place", T.StructType().add("a:b", "integer"))
    >>> print(attributes_of(schema)["place"])
    struct<a:b:bigint>
    """
    return {field.name: type_of(field.dataType) for field in schema.fields}


def type_of(dtype: T.DataType) -> DataType:
    """A type; field by field, since a name may hold any character."""
    if isinstance(dtype, T.StructType):
        return types.struct_of((field.name, type_of(field.dataType)) for field in dtype.fields)
    if isinstance(dtype, T.ArrayType):
        return types.array_of(type_of(dtype.elementType))
    try:
        return types.from_spark_name(dtype.simpleString())
    except errors.InvalidOptionError:
        return DataType(Kind.OTHER, text=dtype.simpleString(), width_bytes=64)
