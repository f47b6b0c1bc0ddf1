"""Rows of operators as columns: those that workers read and return, and the schema of results.

A result has the key, the time, perhaps the revision, and the payload: the columns that the user asks for, or those that
a function's annotation names.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from tocsin import errors
from tocsin.acer import listings
from tocsin.acer.clock import Clock, length
from tocsin.acer.events import events_of, order_of
from tocsin.acer.functions import shown, values_of_row
from tocsin.acer.model import Arrival, Key, Result
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.engines.worker.event_order import as_sorted
from tocsin.plan.manifest import column

TIME, BLOCK = "__tocsin_time", "__tocsin_block"
FIRST_KEY, SECOND_KEY = "__tocsin_key1", "__tocsin_key2"
FIRST_TIE, SECOND_TIE = "__tocsin_tie1", "__tocsin_tie2"
OWN = (TIME, FIRST_KEY, SECOND_KEY, FIRST_TIE, SECOND_TIE)  # the columns beside those of the events
LATEST = 2**63 - 1
Identity = tuple[int, int]


@dataclass(frozen=True)
class Incoming:
    """How rows are read."""

    names: tuple[str, ...]
    key: tuple[str, ...]  # those of them that are its key
    ties: tuple[str, ...] = ()  # those that order events of one time, before all others
    unit: int = 1  # δ: times are multiples of it
    clock: Clock = Clock.INTEGER

    def arrivals(self, table: pa.Table | pa.RecordBatch) -> list[Arrival]:
        """The events of rows, one for one."""
        times, first, second = (table.column(name).to_pylist() for name in (TIME, FIRST_TIE, SECOND_TIE))
        columns = [table.column(column(place)) for place in range(len(self.names))]
        digests = zip(first, second, strict=True)
        ties: Any = digests
        if self.ties:
            named = zip(*(order_of(columns[self.names.index(name)]) for name in self.ties), strict=True)
            ties = (as_sorted(values) + digest for values, digest in zip(named, digests, strict=True))
        found = list(map(Arrival, times, ties, events_of(self.names, columns)))
        between = np.flatnonzero(np.asarray(table.column(TIME)) % self.unit)
        if len(between):
            one = found[int(between[0])]
            raise errors.InvalidInputError(
                f"The event of the key {shown(self.key_of(one))} at {self.clock.shown(one.time)} lies between two "
                f"ticks of the granularity {length(self.unit)}.",
                hint="round the time column, or choose a finer `granularity=`.",
            )
        return found

    def key_of(self, arrival: Arrival) -> Key:
        """The key of an event."""
        return tuple(arrival.event[name] for name in self.key)


@dataclass
class Outgoing:
    """Results on their way back, as columns: the key, the time, perhaps the revision, and the payload."""

    schema: pa.Schema  # all these columns, under the names that users see
    keys: int = 0  # how many of them are the key
    has_revision: bool = False  # whether results have a number: how often they have been given before
    clock: Clock = Clock.INTEGER
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, key: Key, results: Sequence[Result]) -> None:
        """More rows."""
        names = tuple(self.schema.names[self.keys + 1 + self.has_revision :])
        for result in results:
            values: tuple[Any, ...]
            if isinstance(result.payload, listings.Sequence):
                values = result.payload.values
            else:
                try:
                    values = values_of_row(result.payload, names)
                except TypeError as problem:
                    raise self._wrong((*key, result.time), str(problem)) from None
            revision = (result.revision,) if self.has_revision else ()
            self.rows.append((*key, result.time, *revision, *values))

    def batch(self) -> pa.RecordBatch:
        """The rows as columns; afterwards there are none."""
        rows, self.rows = self.rows, []
        late = next((row for row in rows if row[self.keys] > LATEST), None)
        if late is not None:
            raise errors.InvalidInputError(
                f"The key {shown(late[: self.keys])} has events so late that the time of a result is after the last "
                f"one there is: it would be {late[self.keys]} microseconds.",
                hint="leave out events whose time stands for none, such as the largest integer.",
            )
        columns = []
        for place, one in enumerate(self.schema):
            try:
                columns.append(_array([row[place] for row in rows], one))
            except Exception:  # Arrow's own, and whatever the classes of values raise
                self._blame(rows, place, one)
                raise
        # By place: what users call them may differ in nothing but case.
        return pa.RecordBatch.from_arrays(columns, names=[column(place) for place in range(len(columns))])

    def _blame(self, rows: list[tuple[Any, ...]], place: int, one: pa.Field) -> None:
        """Find the value that is not of its column's type."""
        for row in rows:
            try:
                _array([row[place]], one)
            except Exception as problem:
                why = errors.message_of(problem)
                said = f"`{one.name}` is {errors.shown(row[place])}, and the column holds {one.type}: {why}"
                raise self._wrong(row, said) from None

    def _wrong(self, row: tuple[Any, ...], why: str) -> errors.UserFunctionError:
        return errors.UserFunctionError(
            f"An output for the key {shown(row[: self.keys])} at the event time {self.clock.shown(row[self.keys])} "
            f"does not fit the schema: {why}.",
            hint="let the function give the columns of `schema=`, in their order or by name.",
        )


def _array(values: list[Any], one: pa.Field) -> pa.Array:
    """Values as a column; refuses fractions of integers, which Arrow would cut off without a word."""
    if not one.nullable and None in values:
        raise ValueError("the schema says NOT NULL")
    if pa.types.is_integer(one.type):
        for value in values:
            if isinstance(value, float | np.floating) and not float(value).is_integer():
                raise ValueError(f"{errors.shown(value)} is not a whole number")
    return pa.array(values, one.type)


# --- the payload of results -----------------------------------------------------------------------

EXAMPLE = 'write `schema="low double, high double"`'


def payload(
    events: T.StructType, key: Sequence[str], time: str, schema: Any, own: Sequence[str] = (), *, ignores_case: bool
) -> T.StructType:
    """The columns that a user asks for, or by default those of the events; `key`, `time` and `own` come before them.

    Refuses what is no schema, and two columns of one name; `ignores_case` is whether Spark takes names that differ in
    case for one.
    """
    taken = (*key, time, *own)
    begins = f"begins with {', '.join(f'`{name}`' for name in taken)}"
    seen: set[str] = set()

    def is_new(name: str) -> bool:
        folded = name.casefold() if ignores_case else name
        if folded in seen:
            return False
        seen.add(folded)
        return True

    for name in taken:
        if not is_new(name):
            raise errors.InvalidOptionError(
                f"Two columns of the result would be called `{name}`: it {begins}.",
                hint="rename the column of the events, `df.withColumnRenamed(...)`, or leave it out of `key=`.",
            )
    if schema is None:
        return T.StructType(
            [T.StructField(one.name, _held(one.dataType)) for one in events.fields if one.name not in taken]
        )
    asked = _parsed(schema)
    for name in asked.names:
        if name.startswith(RESERVED_PREFIX):
            raise errors.InvalidOptionError(
                f"`schema` has the column `{name}`, and names that start with `{RESERVED_PREFIX}` are Tocsin's own.",
                hint="choose another name.",
            )
        if not is_new(name):
            raise errors.InvalidOptionError(
                f"`schema` has the column `{name}`, which the result has already.",
                hint=f"the result {begins}; choose another name.",
            )
    return T.StructType([T.StructField(one.name, _held(one.dataType), one.nullable) for one in asked.fields])


def _parsed(schema: Any) -> T.StructType:
    if isinstance(schema, str):
        try:
            schema = T.StructType.fromDDL(schema) if schema.strip() else T.StructType()
        except Exception as problem:
            raise errors.InvalidOptionError(
                f"`schema={errors.shown(schema)}` is not a list of columns and types: {str(problem).splitlines()[0]}",
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
    """The row type of a list of rows, or of a generator of them."""
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
