"""Parquet, CSV and JSON-lines files → Arrow tables, in the columns and types that `tocsin.cli.files.read` gives."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.engines.local.inferred_types import DIGITS, INSTANT, MOST_DIGITS, instants, typed
from tocsin.engines.local.paths import DataFile, data_files
from tocsin.engines.worker.arrays import constant, of_values

HINTS = {
    "csv": "every line must have the columns of the first one.",
    "json": "every line must be one object, from `{` to `}`, and an attribute has values of one type.",
    "parquet": "write it anew, or check that it was copied completely.",
}
FEWEST_BIG = 2.0**63  # integers from here on are decimals


def table_at(path: str | os.PathLike[str]) -> pa.Table:
    """The events in a file, in a directory of files, or in all files that a glob matches.

    Raises `InputNotReadableError` for what is not there, has several formats or cannot be read.
    """
    kind, files = data_files(os.fspath(path))
    tables = []
    for file in files:
        with _reading(file.path, kind):
            tables.append(READERS[kind](file.path))
    if kind == "csv":
        _require_one_header(files, tables)
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as problem:
        raise errors.InputNotReadableError(
            f"The files of `{os.fspath(path)}` have columns of one name and different types: {first_sentence(problem)}",
            hint="write them with one schema, or read them as inputs of their own.",
        ) from None
    columns: dict[str, Any] = dict(zip(table.column_names, table.columns, strict=True))
    if kind == "csv":
        columns = {name: typed(column) for name, column in columns.items()}
    if kind == "json":
        with _reading(files[0].path if len(files) == 1 else os.fspath(path), kind):
            columns = _json_columns(table, files)
    return pa.table(columns | _partitions(files, [each.num_rows for each in tables]))


@contextmanager
def _reading(path: str | Path, kind: str) -> Iterator[None]:
    """Report what the file system or Arrow refuses."""
    try:
        yield
    except OSError as problem:
        why = f"{problem.strerror}." if problem.strerror else first_sentence(problem)
        raise errors.InputNotReadableError(f"`{path}` cannot be read: {why}", hint=HINTS[kind]) from None
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as problem:
        raise errors.InputNotReadableError(
            f"`{path}` cannot be read: {first_sentence(problem)}", hint=HINTS[kind]
        ) from None


def first_sentence(problem: Exception) -> str:
    """The first line of a message of Arrow, as a sentence."""
    first = errors.message_of(problem).split("\n")[0].rstrip(".")
    return f"{first}."


def _partitions(files: Sequence[DataFile], sizes: Sequence[int]) -> dict[str, pa.ChunkedArray]:
    """The columns that folders such as `day=1` add."""
    found = {}
    for place, (name, _) in enumerate(files[0].partition):
        texts = pa.chunked_array([of_values([file.partition[place][1] for file in files], pa.string())])
        values = typed(texts)
        if pa.types.is_boolean(values.type):  # a type that Spark gives no partition
            values = texts
        pieces = [pa.repeat(value, size) for value, size in zip(values, sizes, strict=True)]
        found[name] = pa.chunked_array(pieces, values.type)
    return found


# --- parquet --------------------------------------------------------------------------------------


def _parquet(path: Path) -> pa.Table:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        table, leaves = file.read(), [file.schema.column(place) for place in range(len(file.schema))]
    # Spark writes instants in a physical type of their own, of which Arrow makes times without a zone.
    is_instant = iter([leaf.physical_type == "INT96" for leaf in leaves])
    schema = pa.schema([pa.field(field.name, _with_instants(field.type, is_instant)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def _with_instants(dtype: pa.DataType, is_instant: Iterator[bool]) -> pa.DataType:
    """A type in which the leaves that are instants have a time zone."""
    if pa.types.is_struct(dtype):
        return pa.struct([(field.name, _with_instants(field.type, is_instant)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(_with_instants(dtype.value_type, is_instant))
    if pa.types.is_map(dtype):
        key = _with_instants(dtype.key_type, is_instant)
        return pa.map_(key, _with_instants(dtype.item_type, is_instant))
    return INSTANT if next(is_instant, False) else dtype


# --- csv ------------------------------------------------------------------------------------------


def _csv(path: Path) -> pa.Table:
    """The columns of a CSV file as texts; an empty one is NULL."""
    from pyarrow import csv as arrow

    with (
        pa.input_stream(path, compression="detect") as stream,
        io.TextIOWrapper(stream, "utf-8-sig", newline="") as text,
    ):
        blank, first = next(
            ((place, line) for place, line in enumerate(text) if line.strip("\r\n")),
            (0, ""),
        )
        names = next(csv.reader(chain([first], text)), [])
    if not names:
        return pa.table({})
    _require_distinct(names, path)
    with pa.input_stream(path, compression="detect") as stream:
        table = arrow.read_csv(
            stream,
            arrow.ReadOptions(column_names=names, skip_rows=blank, skip_rows_after_names=1),
            arrow.ParseOptions(newlines_in_values=True),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    # As Spark reads it, a line break in a value is one character, however the lines of the file end.
    end = first[len(first.rstrip("\r\n")) :]
    return table if end in ("", "\n") else pa.table({name: _with_breaks(table.column(name), end) for name in names})


def _with_breaks(texts: pa.ChunkedArray, end: str) -> pa.ChunkedArray:
    has_any = pc.any(pc.match_substring(texts, end)).as_py()
    return pc.replace_substring(texts, end, "\n") if has_any else texts


def _require_distinct(names: Sequence[str], path: Path) -> None:
    """Refuse columns without a name, and those that Spark does not tell apart."""
    counts = Counter(name.lower() for name in names)
    wrong = next((name for name in names if not name or counts[name.lower()] > 1), None)
    if wrong is not None:
        what = f"two columns called `{wrong}`, in any case of letters" if wrong else "a column without a name"
        raise errors.InputNotReadableError(f"`{path}` has {what}.", hint="give every column a name of its own.")


def _require_one_header(files: Sequence[DataFile], tables: Sequence[pa.Table]) -> None:
    for file, table in zip(files, tables, strict=True):
        if table.column_names != tables[0].column_names:
            raise errors.InputNotReadableError(
                f"`{file.path}` has the columns {', '.join(table.column_names)}, and `{files[0].path}` has "
                f"{', '.join(tables[0].column_names)}.",
                hint="CSV files of one input have one header; read others as inputs of their own.",
            )


# --- json -----------------------------------------------------------------------------------------


def _json(path: Path) -> pa.Table:
    """The columns of a file of JSON lines, with all strings as texts."""
    from pyarrow import json as arrow

    with pa.input_stream(path, compression="detect") as stream:
        content = stream.read_buffer()
    if not content.size:
        return pa.table({})
    texts: dict[str, pa.DataType] = {}
    while True:
        options = arrow.ParseOptions(explicit_schema=pa.schema(texts))
        table = arrow.read_json(pa.BufferReader(content), parse_options=options)
        # Arrow makes times of days, and none of times with fractions of seconds: it is told to leave texts alone.
        found = {field.name: _as_texts(field.type) for field in table.schema}
        if found == {field.name: field.type for field in table.schema}:
            break
        texts = found
    _require_distinct(table.column_names, path)
    return table


def _as_texts(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(dtype):
        return pa.string()
    if pa.types.is_list(dtype):
        return pa.list_(_as_texts(dtype.value_type))
    return pa.struct([(field.name, _as_texts(field.type)) for field in dtype]) if pa.types.is_struct(dtype) else dtype


def _json_columns(table: pa.Table, files: Sequence[DataFile]) -> dict[str, pa.ChunkedArray]:
    """Columns in the order and the types that Spark gives them."""
    found = {}
    for name in sorted(table.column_names):
        column = _settled(table.column(name).combine_chunks(), name)
        if column is not None:
            found[name] = _whole(column, name, files) if pa.types.is_floating(column.type) else column
    return found


def _settled(values: pa.Array, name: str) -> pa.Array | None:
    """Texts as times where all of them are, NULLs as texts, attributes in order; None for objects that have none."""
    dtype = values.type
    if pa.types.is_null(dtype):
        return values.cast(pa.string())
    if pa.types.is_string(dtype):
        return _as_times(values, name)
    if pa.types.is_list(dtype):
        inner = _settled(values.values, name)
        mask = values.is_null() if values.null_count else None
        return None if inner is None else pa.ListArray.from_arrays(values.offsets, inner, mask=mask)
    if pa.types.is_struct(dtype):
        fields = {field.name: values.field(field.name) for field in dtype}
        settled = {inner: _settled(fields[inner], f"{name}.{inner}") for inner in sorted(fields)}
        kept = {inner: value for inner, value in settled.items() if value is not None}
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(list(kept.values()), list(kept), mask=mask) if kept else None
    return values


def _as_times(texts: pa.Array, name: str) -> pa.Array:
    """Texts as instants if all of them are times; one that is empty counts as none, and then has none."""
    is_empty = pc.equal(texts, constant("", texts.type))
    some = texts.filter(pc.invert(is_empty))
    is_text = pc.coalesce(pc.invert(is_empty), constant(True, pa.bool_()))
    found = instants(pa.chunked_array([texts.filter(is_text)])) if len(some) else None
    if found is None:
        return texts
    if pc.any(is_empty).as_py():
        raise pa.ArrowInvalid(f"`{name}` has times, and an empty text among them")
    return found.combine_chunks()


def _whole(column: pa.Array, name: str, files: Sequence[DataFile]) -> pa.Array:
    """Doubles as decimals where the files have nothing but integers, of more than 64 bits, in their place."""
    greatest = pc.max(pc.abs(column)).as_py()
    if greatest is None or not FEWEST_BIG <= greatest < 10.0**MOST_DIGITS:
        return column
    values: list[Any] = []
    for file in files:
        with pa.input_stream(file.path, compression="detect") as stream:
            values += [json.loads(line).get(name) for line in io.TextIOWrapper(stream, "utf-8") if line.strip()]
    if any(isinstance(value, float) for value in values):
        return column
    known = [value for value in values if value is not None]
    has_long = any(-FEWEST_BIG <= value < FEWEST_BIG for value in known)
    digits = max(DIGITS[pa.int64()] if has_long else 1, *(len(str(abs(value))) for value in known))
    return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(digits, 0))


READERS: Mapping[str, Callable[[Path], pa.Table]] = {"parquet": _parquet, "csv": _csv, "json": _json}
