"""Arrow tables → Parquet, CSV and JSON-lines files, and texts to look at, as Spark writes and shows them."""

from __future__ import annotations

import base64
import datetime as dt
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.engines.worker.arrays import constant, of_values

ROWS = 1 << 16  # that are texts at a time
CONTROL = r"[\x00-\x1f]"
NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # of Arrow and Python, and of Java
QUOTED = r"^$|^\s|\s$|[\",\r\n]"  # what a value of CSV has no quotes without


def save(table: pa.Table, folder: Path, kind: str) -> None:
    """Write a file of its own into a directory."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"part-{uuid.uuid4()}.{kind}"
    if kind == "parquet":
        from pyarrow.parquet import write_table

        write_table(table, path)
        return
    lines = csv_lines if kind == "csv" else json_lines
    with path.open("w", encoding="utf-8", newline="") as file:
        if kind == "csv":
            names = pa.table({str(place): of_values([name]) for place, name in enumerate(table.column_names)})
            file.write(_as_lines(csv_lines(names)))
        for batch in table.to_batches(max_chunksize=ROWS):
            file.write(_as_lines(lines(batch)))


def _as_lines(lines: pa.Array) -> str:
    return "".join(f"{line}\n" for line in lines.to_pylist())


# --- JSON -----------------------------------------------------------------------------------------


def json_lines(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """Each row as an object, without attributes that are NULL."""
    return json_texts(pa.StructArray.from_arrays(rows.columns, names=rows.schema.names))


def json_texts(values: pa.Array) -> pa.Array:
    """Each value as JSON; NULL where it is NULL.

    >>> json_texts(pa.array([{"a": 1.0, "b": None, "c": ["x"]}, None])).to_pylist()
    ['{"a":1.0,"c":["x"]}', None]
    """
    dtype = values.type
    if pa.types.is_struct(dtype):
        members = [_member(field.name, pc.struct_field(values, [place])) for place, field in enumerate(dtype)]
        joined = _joined(_empty(values), *members)
        inside = pc.replace_substring(joined, ",", "", max_replacements=1)  # before the first member
        return _in_brackets(values, "{", inside, "}")
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        inner = pc.coalesce(json_texts(pc.list_flatten(values)), constant("null", pa.string()))
        sizes = pc.coalesce(pc.list_value_length(values).cast(pa.int64()), constant(0, pa.int64()))
        begins = pc.cumulative_sum(pa.concat_arrays([of_values([0]), sizes])).cast(pa.int32())
        return _in_brackets(
            values, "[", pc.binary_join(pa.ListArray.from_arrays(begins, inner), constant(",", pa.string())), "]"
        )
    if pa.types.is_boolean(dtype) or pa.types.is_integer(dtype) or pa.types.is_decimal(dtype):
        return values.cast(pa.string())
    if pa.types.is_floating(dtype):
        texts = _of_floats(values)
        return pc.if_else(pc.is_finite(values), texts, _quoted(texts))
    if pa.types.is_map(dtype):
        return _by_value(
            values, lambda found: json.dumps(dict(found), default=str, ensure_ascii=False, separators=(",", ":"))
        )
    if pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return _by_value(values, lambda found: f'"{base64.b64encode(found).decode()}"')
    return _quoted(plain_texts(values))


def _member(name: str, values: pa.Array) -> pa.Array:
    """A comma, the name and the value; nothing where the value is NULL."""
    start = f",{json.dumps(name, ensure_ascii=False)}:"
    return pc.coalesce(_joined(start, json_texts(values)), constant("", pa.string()))


def _in_brackets(values: pa.Array, opening: str, inside: pa.Array, closing: str) -> pa.Array:
    nothing = constant(None, pa.string())
    return pc.if_else(values.is_valid(), _joined(opening, inside, closing), nothing)


def _joined(*parts: str | pa.Array, between: str = "") -> pa.Array:
    """Texts behind each other; NULL where one of them is NULL."""
    texts = [constant(part, pa.string()) if isinstance(part, str) else part for part in (*parts, between)]
    return pc.binary_join_element_wise(*texts)


def _empty(values: pa.Array) -> pa.Array:
    return of_values([""] * len(values), pa.string())


def _quoted(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, CONTROL)).as_py():
        return _by_value(texts, lambda found: json.dumps(found, ensure_ascii=False))
    for character in ("\\", '"'):
        texts = pc.replace_substring(texts, character, f"\\{character}")
    return _joined('"', texts, '"')


# --- CSV ------------------------------------------------------------------------------------------


def csv_lines(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """Each row as a line; NULL is nothing, an empty text is in quotes, and nested values are JSON."""
    cells = [
        _cells(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column) for column in rows.columns
    ]
    return _joined(*cells, between=",")


def _cells(values: pa.Array) -> pa.Array:
    texts = json_texts(values) if pa.types.is_nested(values.type) else plain_texts(values)
    doubled = _joined('"', pc.replace_substring(texts, '"', '""'), '"')
    cells = pc.if_else(pc.match_substring_regex(texts, QUOTED), doubled, texts)
    return pc.coalesce(cells, constant("", pa.string()))


def plain_texts(values: pa.Array) -> pa.Array:
    """Values that are not nested as texts; times in ISO 8601, to the microsecond and in UTC."""
    dtype = values.type
    if pa.types.is_dictionary(dtype):
        return plain_texts(values.cast(dtype.value_type))
    if pa.types.is_floating(dtype):
        return _of_floats(values)
    if pa.types.is_timestamp(dtype):
        instants = values.cast(pa.timestamp("us", "UTC" if dtype.tz else None))
        return pc.replace_substring(instants.cast(pa.string()), " ", "T")
    if pa.types.is_duration(dtype) or pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype):
        return _by_value(values, text_of)
    return values.cast(pa.string())


def _of_floats(values: pa.Array) -> pa.Array:
    """Doubles as Java writes them."""
    nothing, least, most = (constant(bound, pa.float64()) for bound in (0.0, 1e-3, 1e7))
    size = pc.abs(values.cast(pa.float64()))
    is_plain = pc.or_(pc.equal(size, nothing), pc.and_(pc.greater_equal(size, least), pc.less(size, most)))
    texts = values.cast(pa.string())
    with_point = pc.replace_substring_regex(texts, "^(-?[0-9]+)$", r"\1.0")
    if pc.all(is_plain, min_count=0).as_py():
        return with_point
    return pc.if_else(
        is_plain, with_point, _by_value(pc.if_else(is_plain, constant(None, pa.string()), texts), _of_java)
    )


def _by_value(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    return of_values([None if value is None else text(value) for value in values.to_pylist()], pa.string())


# --- to look at -----------------------------------------------------------------------------------


def as_texts(table: pa.Table) -> list[list[str | None]]:
    """The cells of a short table, by row."""
    columns = []
    for column in table.columns:
        values = column.combine_chunks()
        if pa.types.is_nested(values.type):
            texts = json_texts(values)
        elif pa.types.is_timestamp(values.type):
            times = pc.replace_substring(plain_texts(values), "T", " ")
            texts = pc.replace_substring_regex(times, r"\.?0*Z?$", "")
        else:
            texts = _by_value(values, shown)
        columns.append(texts.to_pylist())
    return [list(row) for row in zip(*columns, strict=True)]


def shown(value: Any) -> str:
    """A value that is no time as Spark casts it to a string.

    >>> shown(1e7), shown(0.25), shown(True), shown(dt.date(2026, 1, 2))
    ('1.0E7', '0.25', 'true', '2026-01-02')
    """
    match value:
        case bool():
            return str(value).lower()
        case float():
            return _of_java(repr(value))
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.decode(errors="replace")
        case _:
            return text_of(value)


def text_of(value: Any) -> str:
    """A value that Arrow has no text of as Spark writes it.

    >>> text_of(dt.timedelta(days=1, milliseconds=-500)), text_of(dt.timedelta(seconds=-1)), text_of(b"xy")
    ("INTERVAL '0 23:59:59.5' DAY TO SECOND", "INTERVAL '-0 00:00:01' DAY TO SECOND", '[78 79]')
    """
    match value:
        case dt.timedelta():
            whole = abs(value)
            minutes, seconds = divmod(whole.seconds, 60)
            clock = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
            fraction = f".{whole.microseconds:06}".rstrip("0").rstrip(".")
            return f"INTERVAL '{'-' * (value < dt.timedelta())}{whole.days} {clock}{fraction}' DAY TO SECOND"
        case bytes():
            return f"[{value.hex(' ').upper()}]"
        case _:
            return str(value)


def _of_java(text: str) -> str:
    """A double as Java writes it.

    >>> [_of_java(text) for text in ("10000000", "1e-7", "-12345678.5", "0.25", "1", "-0.0", "nan", "-inf")]
    ['1.0E7', '1.0E-7', '-1.23456785E7', '0.25', '1.0', '-0.0', 'NaN', '-Infinity']
    """
    if text in NO_NUMBERS:
        return NO_NUMBERS[text]
    number = Decimal(text)
    if not number or Decimal("0.001") <= abs(number) < 10**7:
        plain = f"{number:f}"
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = number.normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(others) or '0'}E{len(digits) - 1 + exponent}"
