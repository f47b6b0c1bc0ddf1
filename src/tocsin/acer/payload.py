"""The columns that a result has beside the key and the time: as asked for, or read off a function's annotation."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis.names import RESERVED_PREFIX

EXAMPLE = 'write `schema="low double, high double"`'


def payload(
    events: T.StructType, key: Sequence[str], time: str, schema: Any, own: Sequence[str] = (), *, ignores_case: bool
) -> T.StructType:
    """The columns that a user asks for, or by default those of the events; `key`, `time` and `own` come before them.

    Refuses what is no schema, and two columns of one name; `ignores_case` is whether Spark takes names that differ in
    case for one.
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


COLUMNS: dict[Any, T.DataType] = {
    bool: T.BooleanType(),
    int: T.LongType(),
    float: T.DoubleType(),
    str: T.StringType(),
    bytes: T.BinaryType(),
    bytearray: T.BinaryType(),
    Decimal: T.DecimalType(38, 18),
    dt.datetime: T.TimestampType(),
    dt.date: T.DateType(),
}


def annotated_schema(call: Callable[..., Any], option: str, *, in_pair: bool = False) -> T.StructType | None:
    """The columns of the rows that a function gives; None when its annotation does not name any.

    A row is named by a NamedTuple, a dataclass or a TypedDict, alone or in a list; with `in_pair` it is the second of a
    pair `(state, rows)`. Refuses a column whose type no column holds.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Total = NamedTuple("Total", [("user", str), ("total", float | None)])
    >>> def add(state: float, event: object) -> tuple[float, list[Total]]: ...
    >>> annotated_schema(add, "function", in_pair=True).simpleString()
    'struct<user:string,total:double>'
    """
    returned = _returned(call)
    if in_pair:
        pair = get_args(returned)
        returned = pair[1] if get_origin(returned) is tuple and len(pair) == 2 else None
    row = _inside(_without_none(returned))
    if not _is_row(row):
        return None
    try:
        return _struct(row)
    except TypeError as problem:
        raise errors.InvalidOptionError(
            f"`{option}` is annotated to give {problem}, which no column holds.",
            hint='name the columns of the result: `schema="low double, high double"`.',
        ) from None


def _returned(call: Callable[..., Any]) -> Any:
    while isinstance(call, functools.partial):
        call = call.func
    if not inspect.isroutine(call):
        call = type(call).__call__
    try:
        return get_type_hints(call).get("return")
    except Exception:  # names that mean nothing here: the annotation is of no use, and no reason to fail
        return None


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    left = [one for one in get_args(kind) if one is not type(None)]
    return left[0] if len(left) == 1 else kind


def _inside(kind: Any) -> Any:
    """What a list of rows, or a generator of them, is of."""
    origin, inner = get_origin(kind), get_args(kind)
    is_list = isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, tuple | Mapping)
    return inner[0] if is_list and inner else kind


def _is_row(kind: Any) -> bool:
    is_named_tuple = isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
    return is_named_tuple or is_typeddict(kind) or (isinstance(kind, type) and dataclasses.is_dataclass(kind))


def _struct(row: Any) -> T.StructType:
    return T.StructType([T.StructField(name, _column(kind)) for name, kind in get_type_hints(row).items()])


def _column(kind: Any) -> T.DataType:
    """The column type of an annotation."""
    kind = _without_none(kind)
    if kind in COLUMNS:
        return COLUMNS[kind]
    if _is_row(kind):
        return _struct(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list and inner:
        return T.ArrayType(_column(inner[0]))
    if origin is dict and inner:
        return T.MapType(_column(inner[0]), _column(inner[1]))
    raise TypeError(f"`{getattr(kind, '__name__', None) or kind}`")
