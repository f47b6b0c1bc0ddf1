"""CSV and JSON-lines files → columns in the types that `tocsin.cli.files.read` gives."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.engines.local.inferred_types import DIGITS, MOST_DIGITS, instants, typed
from tocsin.engines.local.paths import DataFile
from tocsin.engines.local.unreadable import of_one_schema, reading, require_distinct
from tocsin.engines.worker.arrays import constant

FEWEST_BIG = 2.0**63  # integers from here on are decimals


def text_columns(given: str, kind: str, files: Sequence[DataFile]) -> tuple[dict[str, pa.ChunkedArray], list[int]]:
    """The columns of CSV or JSON-lines files below each other, and how many rows each file has."""
    tables = []
    for file in files:
        with reading(file.path, kind):
            tables.append(_csv(file.path) if kind == "csv" else _json(file.path))
    if kind == "csv":
        _require_one_header(files, tables)
    with of_one_schema(given):
        table = pa.concat_tables(tables, promote_options="permissive")
    with reading(files[0].path if len(files) == 1 else given, kind):
        columns = _json_columns(table, files) if kind == "json" else _csv_columns(table)
    return columns, [each.num_rows for each in tables]


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
    require_distinct(names, path)
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


def _csv_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: typed(table.column(name)) for name in table.column_names}


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
    require_distinct(table.column_names, path)
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
