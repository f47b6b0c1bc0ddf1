"""The columns that a result has beside the key and the time: named, distinct, of types that workers can give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis.names import RESERVED_PREFIX

EXAMPLE = 'write `schema="low double, high double"`'


def payload(
    events: T.StructType, key: Sequence[str], time: str, schema: Any, own: Sequence[str] = (), *, ignores_case: bool
) -> T.StructType:
    """The columns as asked, or those of the events.

    Parameters
    ----------
    events
        The columns of the events.
    key, time, own
        The columns that the result has before these.
    schema
        What the user asks for; None: the columns of the events.
    ignores_case
        Whether Spark takes names for one that differ in case.

    Raises
    ------
    InvalidOptionError
        When it is no schema, or two columns would have one name.
    """
    taken = (*key, time, *own)
    _require_distinct(taken, ignores_case)
    if schema is None:
        return T.StructType(
            [T.StructField(one.name, _held(one.dataType)) for one in events.fields if one.name not in taken]
        )
    asked = _parsed(schema)
    seen = {_folded(name, ignores_case) for name in taken}
    for name in asked.names:
        if name.startswith(RESERVED_PREFIX):
            raise errors.InvalidOptionError(
                f"`schema` has the column `{name}`, and names that start with `{RESERVED_PREFIX}` are Tocsin's own.",
                hint="choose another name.",
            )
        if _folded(name, ignores_case) in seen:
            raise errors.InvalidOptionError(
                f"`schema` has the column `{name}`, which the result has already.",
                hint=f"the result begins with {', '.join(f'`{one}`' for one in taken)}; choose another name.",
            )
        seen.add(_folded(name, ignores_case))
    return T.StructType([T.StructField(one.name, _held(one.dataType), one.nullable) for one in asked.fields])


def _folded(name: str, ignores_case: bool) -> str:
    return name.casefold() if ignores_case else name


def _require_distinct(taken: Sequence[str], ignores_case: bool) -> None:
    """Refuse keys and times that are called as another column of the result is."""
    for place, name in enumerate(taken):
        if _folded(name, ignores_case) in (_folded(one, ignores_case) for one in taken[:place]):
            raise errors.InvalidOptionError(
                f"Two columns of the result would be called `{name}`: it begins with "
                f"{', '.join(f'`{one}`' for one in taken)}.",
                hint="rename the column of the events, `df.withColumnRenamed(...)`, or leave it out of `key=`.",
            )


def _parsed(schema: Any) -> T.StructType:
    if isinstance(schema, str):
        try:
            schema = T.StructType.fromDDL(schema) if schema.strip() else T.StructType()
        except Exception as problem:
            raise errors.InvalidOptionError(
                f"`schema={schema!r}` is not a list of columns and types: {str(problem).splitlines()[0]}",
                hint=f"{EXAMPLE}.",
            ) from None
    if not isinstance(schema, T.StructType):
        raise errors.InvalidOptionError(
            f"`schema` is {type(schema).__name__}, not a list of columns and types.",
            hint=f"{EXAMPLE}, or pass a StructType.",
        )
    return schema


def _held(dtype: T.DataType) -> T.DataType:
    """The type as workers give it: texts of any length, and NULL wherever there may be one inside a value."""
    if isinstance(dtype, T.CharType | T.VarcharType):
        return T.StringType()
    if isinstance(dtype, T.ArrayType):
        return T.ArrayType(_held(dtype.elementType))
    if isinstance(dtype, T.MapType):
        return T.MapType(_held(dtype.keyType), _held(dtype.valueType))
    if isinstance(dtype, T.StructType):
        return T.StructType([T.StructField(one.name, _held(one.dataType)) for one in dtype.fields])
    return dtype
