"""The columns of a result, read off what a user's function is annotated to return."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

from pyspark.sql import types as T

from tocsin import errors

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
    pair `(state, rows)`.

    Raises
    ------
    InvalidOptionError
        When a column is annotated with something that no column holds.

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
