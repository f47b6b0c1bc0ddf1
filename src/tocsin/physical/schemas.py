"""Spark's schemas in the terms of the analysis, which knows types by their names and no Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType, Kind
from tocsin.physical.compat import ignores_case, schema_of

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

    Columns whose names differ only in case are told apart by their place. Fields of a struct are asked for by name, and
    Spark finds two of them when it ignores case; whether it does is asked only when it matters.

    Examples
    --------
    >>> require_distinct_names(T.StructType().add("x", "integer").add("X", "integer"), "the input of `A`")
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
