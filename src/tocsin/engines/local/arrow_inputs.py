"""Inputs of the local engine as Arrow tables: values that no table can hold are refused with column and row."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.engines.local.normal_columns import LEAST, MOST, MOST_NESTED, normalized
from tocsin.engines.local.read_files import table_at
from tocsin.engines.local.unreadable import first_sentence
from tocsin.engines.wording import missing, reserved
from tocsin.engines.worker.arrays import numbers_of, of_values
from tocsin.engines.worker.event_tables import SLICE, OfOneType
from tocsin.engines.worker.lazy_tables import LazyTable
from tocsin.engines.worker.threads import in_threads

ONE_TYPE = "give all rows a value of one type in it, or None."
READ: WeakSet[pa.RecordBatchReader] = WeakSet()  # streams, of which nothing is left
# Mixtures that have a common type: integers beside others become what the others are.
NUMBERS = ({"int", "float"}, {"int", "Decimal"})


def table_of(given: Any, owner: str = "the input") -> pa.Table | LazyTable:
    """An input as a table whose times count microseconds and whose integers have 64 bits.

    Raises `InvalidInputError` when it is no table, no list of rows and no path, or has a value that no column can
    hold; `InputNotReadableError` for files that are not there or cannot be read; `DuplicateInputColumnError` or
    `ReservedNameError` when two columns have one name, or one a name that is Tocsin's own.
    """
    if isinstance(given, OfOneType):
        return given
    table = _as_table(given, owner)
    _require_names(table.column_names, owner)
    return table if isinstance(table, LazyTable) else normalized(table, owner)


def tables_of(inputs: Mapping[str, Any]) -> dict[str, pa.Table | LazyTable]:
    """The table of every event type; an object that is given for several, which may be a stream, is read once."""
    read: dict[int, Any] = {}
    tables = {}
    for name, given in inputs.items():
        known = read.get(id(given))
        # A table of its own for every type: the rows of one table are events of one type.
        tables[name] = table_of(given, f"the input of `{name}`") if known is None else copy(known)
        read[id(given)] = tables[name]
    return tables


def _as_table(given: Any, owner: str) -> pa.Table | LazyTable:
    if isinstance(given, pa.Table | LazyTable):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, str | os.PathLike):
        return table_at(given)
    if isinstance(given, Sequence) and not isinstance(given, bytes | bytearray | memoryview):
        return _from_rows(given, owner)
    if hasattr(given, "to_records"):
        return _from_pandas(given, owner)
    try:
        table = _foreign(given, owner)
    except errors.TocsinError:
        raise
    except Exception as problem:  # of other libraries, which run queries here
        raise errors.InputNotReadableError(
            f"{owner[0].upper()}{owner[1:]} is a {type(given).__name__} that cannot be read: {first_sentence(problem)}",
            hint="it must be a table of named columns; a stream can be read once, and files must be there.",
        ) from problem
    if table is not None:
        return table
    raise errors.InvalidInputError(
        f"An input is a {type(given).__name__}, neither a table, a list of rows nor the path of a file.",
        hint="pass `{'Login': logins}`, or one input with a type column: an Arrow table, a DataFrame of pandas or "
        "Polars, a list of dicts, or the path of a Parquet, CSV or JSON-lines file.",
    )


def _foreign(given: Any, owner: str) -> pa.Table | LazyTable | None:
    """A table of another library; None where it is none that Arrow knows."""
    if hasattr(given, "collect_schema") and hasattr(given, "collect"):  # a LazyFrame of Polars
        given = given.collect()
    if hasattr(given, "scanner") and hasattr(given, "to_table"):  # a Dataset
        from tocsin.engines.local.parquet import lazy_dataset

        found = lazy_dataset(given, owner)
        return given.to_table() if found is None else found
    if not hasattr(given, "__arrow_c_stream__"):
        return None
    if isinstance(given, pa.RecordBatchReader):
        # Read for a second time, a stream would be empty.
        if given in READ:
            raise pa.ArrowInvalid("it has been read before")
        READ.add(given)
    return pa.table(given)


def _require_names(names: Iterable[Any], owner: str) -> None:
    names = list(names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise errors.DuplicateInputColumnError(
            f"Two columns are called `{twice[0]}` in {owner}.", hint="keep one of them, or rename one."
        )
    ours = next((name for name in names if str(name).startswith(RESERVED_PREFIX)), None)
    if ours is not None:
        raise reserved(ours, owner)


def _from_pandas(given: Any, owner: str) -> pa.Table:
    _require_names(given.columns, owner)
    for name, dtype in given.dtypes.items():
        if dtype.kind == "O":
            _require_shallow(f"The column `{name}` of {owner}", given[name])
    try:
        return pa.Table.from_pandas(given, preserve_index=False)
    except Exception:  # Arrow's own, and whatever the classes of values raise
        # Column by column, to name the one.
        return pa.table({str(name): _column(str(name), given[name].tolist(), owner) for name in given.columns})


def _from_rows(rows: Sequence[Any], owner: str) -> pa.Table:
    """A table of rows; Arrow would take the columns of the first row only, and rows of different types have others."""
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise errors.InvalidInputError(
                f"Row {number} of {owner} is a {type(row).__name__}, not a mapping from column to value.",
                hint="write rows as `{'ts': 0, 'user': 'ada'}`.",
            )
    columns = dict.fromkeys(name for row in rows for name in row)
    for name in columns:
        if not isinstance(name, str) or not _is_text(name):
            raise errors.InvalidInputError(
                f"A column of {owner} is called {errors.shown(name)}, which is not a text.",
                hint="call columns by texts.",
            )
    return pa.table({name: _column(name, [row.get(name) for row in rows], owner) for name in columns})


def _column(name: str, values: Sequence[Any], owner: str) -> pa.Array:
    """The values of a column, all of one type."""
    place = f"The column `{name}` of {owner}"
    kinds = {type(value) for value in values}
    if any(kind.__name__ == "NaTType" for kind in kinds):  # of pandas
        values = [None if type(value).__name__ == "NaTType" else value for value in values]
    if len(kinds - {type(None)}) > 1 or any(issubclass(kind, dt.datetime) for kind in kinds):
        _require_one_kind(place, values)
    if any(issubclass(kind, Mapping | Iterable) and not issubclass(kind, str | bytes) for kind in kinds):
        _require_shallow(place, values)
    try:
        return of_values(values)
    except Exception as problem:  # Arrow's own, and whatever the classes of values raise
        raise _not_held(place, values, problem) from None


def _require_one_kind(place: str, values: Sequence[Any]) -> None:
    """Refuse mixtures, also those that Arrow takes: it makes dates of date-times, and times of integers."""
    first: dict[str, int] = {}
    for number, value in enumerate(values):
        if value is not None:
            first.setdefault(_kind(value), number)
        if getattr(value, "nanosecond", 0):  # of pandas; Arrow would cut it off
            raise errors.InvalidInputError(
                f"{place} holds {value} in row {number}, a time that is no whole number of microseconds.",
                hint="round it first: `value.floor('us')`.",
            )
    if len(first) < 2 or set(first) in NUMBERS:
        return
    (one, at), (other, then), *_ = first.items()
    raise errors.InvalidInputError(
        f"{place} holds values of different types: {one} in row {at}, {other} in row {then}.", hint=ONE_TYPE
    )


def _require_shallow(place: str, values: Iterable[Any]) -> None:
    """Refuse values nested deeper than `MOST_NESTED`, a list that holds itself among them."""
    for number, value in enumerate(values):
        level = _containers([value])
        for _ in range(MOST_NESTED):
            level = _containers(
                inner for each in level for inner in (each.values() if isinstance(each, Mapping) else each)
            )
        if level:
            raise errors.InvalidInputError(
                f"{place} holds a value in row {number} that is nested more than {MOST_NESTED} levels deep.",
                hint="write it as a JSON text, or keep only the part that you need.",
            )


def _containers(values: Iterable[Any]) -> list[Any]:
    """Those that hold others, each once: a list that holds itself twice would double with every level."""
    kinds = (Mapping, list, tuple, set, frozenset)
    return [*{id(value): value for value in values if isinstance(value, kinds)}.values()]


def _kind(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return "datetime" if value.tzinfo is None else "datetime with a time zone"
    if isinstance(value, bool) or type(value).__name__ == "bool_":
        return "bool"
    for kind, name in ((Decimal, "Decimal"), (Integral, "int"), (Real, "float"), (str, "str"), (Mapping, "dict")):
        if isinstance(value, kind):
            return name
    if isinstance(value, list | tuple | set | frozenset):
        return "list"
    return type(value).__name__


def _not_held(place: str, values: Sequence[Any], problem: Exception) -> errors.InvalidInputError:
    """The first value that a column cannot hold, where it can be told."""
    for number, value in enumerate(values):
        if isinstance(value, Integral) and not LEAST <= int(value) <= MOST:
            return errors.InvalidInputError(
                f"{place} holds {errors.shown(value)} in row {number}, an integer of more than 64 bits.",
                hint="give `decimal.Decimal` or float values.",
            )
        if isinstance(value, str) and not _is_text(value):
            return errors.InvalidInputError(
                f"{place} holds the text {errors.shown(value)} in row {number}, which is not valid Unicode.",
                hint="replace single surrogates: `text.encode('utf-8', 'replace').decode()`.",
            )
    words = errors.message_of(problem).split("\n")[0].rstrip(".")
    return errors.InvalidInputError(f"{place} has no type that Arrow knows: {words}.", hint=ONE_TYPE)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


# --- event types ----------------------------------------------------------------------------------


def require_type_column(name: str, table: pa.Table | LazyTable) -> None:
    """Refuse a table for several types without a column of their names."""
    if name not in table.column_names:
        raise missing(name, table.column_names, "the input", "type=", "type column")
    dtype = table.schema.field(name).type
    if not (pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_null(dtype)):
        raise errors.InvalidInputError(
            f"The type column `{name}` holds {dtype}, not strings.",
            hint="it must hold the names of event types that the pattern uses; cast it to a string.",
        )


def require_type_names(inputs: Mapping[Any, Any]) -> None:
    """Refuse inputs by event type whose keys are no names."""
    wrong = [name for name in inputs if not isinstance(name, str)]
    if wrong:
        raise errors.InvalidInputError(
            f"`inputs` has the key {errors.shown(wrong[0])}, which is not the name of an event type.",
            hint="pass `{'Login': logins, 'Transfer': transfers}`.",
        )


def of_each_type(table: pa.Table | LazyTable, types: Sequence[str], type_column: str) -> dict[Any, OfOneType]:
    """The rows of one table by event type, also of types that have none."""
    require_type_column(type_column, table)
    column = table.column(type_column).cast(pa.string())

    def encoded(begin: int) -> pa.DictionaryArray:
        return column.slice(begin, SLICE).combine_chunks().dictionary_encode("encode")

    parts = list(in_threads(encoded, range(0, max(len(column), 1), SLICE)))
    numbers: dict[str | None, int] = {}
    for part in parts:
        for kind in part.dictionary.to_pylist():
            numbers.setdefault(kind, len(numbers))
    found = [np.array([numbers[kind] for kind in part.dictionary.to_pylist()], np.int32) for part in parts]
    codes = np.concatenate([own[numbers_of(part.indices)] for own, part in zip(found, parts, strict=True)])
    return {kind: OfOneType(table, codes, numbers.get(kind, -1)) for kind in dict.fromkeys((*types, *numbers))}
