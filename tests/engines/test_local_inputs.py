"""Files, streams and tables of other libraries as inputs of the local engine; what Spark reads of the same files."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import tocsin
from tocsin import errors
from tocsin.cli import files
from tocsin.engines.local import inferred_types
from tocsin.engines.local.read_files import table_at

PAIRS = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.user = b.user AND b.amount > 10 WITHIN 10 MINUTES")
RULES = tocsin.rules(
    """template A { user : String, amount : Double } template B { user : String, amount : Double }
    rule R where a : A b : B { user = a.user, amount > 10 } when b in a [0 s, 600 s]"""
)
START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "B", "B"],
        "ts": pa.array([START + dt.timedelta(seconds=at) for at in (0, 1, 2, 2, 3)], pa.timestamp("us", "UTC")),
        "user": ["ada", "bela", "ada", "ada", None],
        "amount": [1.5, 2.5, 20.5, 20.5, 40.5],
        "note": ["first", None, "x", "x", None],
    }
)


class Stream:
    """What a table of another library is to Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Lazy:
    """What a LazyFrame of Polars is."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def collect_schema(self) -> pa.Schema:
        return self.table.schema

    def collect(self) -> Stream:
        return Stream(self.table)


def as_parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "events.parquet")
    return folder / "events.parquet"


def as_folder(table: pa.Table, folder: Path) -> Path:
    (folder / "parts").mkdir()
    pq.write_table(table.slice(0, 2), folder / "parts" / "1.parquet")
    pq.write_table(table.slice(2), folder / "parts" / "2.snappy.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    return folder / "parts"


def as_csv(table: pa.Table, folder: Path) -> str:
    pacsv.write_csv(table, folder / "events.csv")
    return str(folder / "events.csv")


def as_json(table: pa.Table, folder: Path) -> str:
    lines = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    text = "\n".join(json.dumps(line, default=dt.datetime.isoformat) for line in lines)
    (folder / "events.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return str(folder / "events.jsonl.gz")


INPUTS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": lambda table, folder: str(as_parquet(table, folder)),
    "path": as_parquet,
    "folder": as_folder,
    "glob": lambda table, folder: f"{as_folder(table, folder)}/*.parquet",
    "alternatives": lambda table, folder: f"{as_folder(table, folder)}/{{1,2.sna*}}.parquet",
    "csv": as_csv,
    "json": as_json,
    "dataset": lambda table, folder: ds.dataset(as_folder(table, folder)),
    "batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "batches": lambda table, _: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
    "stream": lambda table, _: Stream(table),
    "lazy": lambda table, _: Lazy(table),
    "duckdb": lambda table, _: duckdb.from_arrow(table),
    "pandas": lambda table, _: table.to_pandas(),
}


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["match_id"])


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_of_any_kind_has_the_matches_of_the_table(kind: str, tmp_path: Path) -> None:
    expected = PAIRS.match(EVENTS, engine="local")
    found = PAIRS.match(INPUTS[kind](EVENTS, tmp_path), engine="local")
    assert expected.num_rows == 2  # of two equal events: the ids are different
    assert len(set(found["match_id"].to_pylist())) == 2
    # The attributes of JSON are in the order of their names.
    assert in_order(found) == in_order(expected)


@pytest.mark.parametrize("kind", INPUTS)
def test_every_event_type_may_have_an_input_of_another_kind(kind: str, tmp_path: Path) -> None:
    first, second = (EVENTS.filter(pa.compute.equal(EVENTS["type"], name)).drop(["type"]) for name in "AB")
    expected = PAIRS.match({"A": first, "B": second}, engine="local")
    assert in_order(PAIRS.match({"A": first, "B": INPUTS[kind](second, tmp_path)}, engine="local")) == in_order(
        expected
    )


@pytest.mark.parametrize("kind", INPUTS)
def test_rules_take_the_same_inputs(kind: str, tmp_path: Path) -> None:
    expected = in_order(RULES.match(EVENTS, engine="local"))
    assert len(expected) == 2
    assert in_order(RULES.match(INPUTS[kind](EVENTS, tmp_path), engine="local")) == expected


def test_a_stream_for_several_event_types_is_read_once_and_then_is_used_up() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.user = b.user WITHIN 10 MINUTES")
    reader = pa.RecordBatchReader.from_batches(EVENTS.schema, EVENTS.to_batches())
    expected = pattern.match({"A": EVENTS, "B": EVENTS}, engine="local")
    assert in_order(pattern.match({"A": reader, "B": reader}, engine="local")) == in_order(expected)
    with pytest.raises(errors.InputNotReadableError, match="RecordBatchReader that cannot be read: it has been read"):
        pattern.match({"A": reader, "B": EVENTS}, engine="local")


def test_values_of_polars_are_those_of_arrow() -> None:
    plain = pa.table(
        {
            "ts": [1, 2],
            "text": ["x", None],
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "inside": [["x"], None],
            "parts": [{"a": "x"}, {"a": None}],
        }
    )
    view = pa.string_view()
    encoded = plain["kind"].combine_chunks()
    given = plain.set_column(1, "text", plain["text"].cast(view))
    given = given.set_column(2, "kind", pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(view)))
    given = given.set_column(3, "inside", plain["inside"].cast(pa.large_list(view)))
    given = given.set_column(4, "parts", plain["parts"].cast(pa.struct({"a": view})))
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b)")
    expected = in_order(pattern.match({"A": plain}, engine="local"))
    assert in_order(pattern.match({"A": Stream(given)}, engine="local")) == expected


# --- what cannot be read --------------------------------------------------------------------------


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("event.csv", "There is no file or directory `.*/event.csv`", "did you mean `.*/events.csv`"),
        ("nowhere/*.csv", "No file matches `.*/nowhere/\\*.csv`", "check the pattern"),
        (
            "*.{csv,json}",
            "matches files of different formats: `.*bad.csv` is csv, `.*bad.json` is json",
            "one format",
        ),
        ("notes.txt", "The ending of `.*notes.txt` does not tell its format", "it should end in .parquet"),
        ("mixed", "The directory `.*mixed` holds files of different formats \\(csv, json\\)", "all of one kind"),
        ("empty", "The directory `.*empty` holds no data file", "parquet, csv or json"),
        ("beside", "The directory `.*beside` holds `readme.txt` beside its data files", "a glob"),
        ("deep", "holds a directory `inner`, which is not a partition", "name it like `day=1`"),
        ("uneven", "partitions of different columns: day and none", "equally deep"),
        ("bad.parquet", "`.*bad.parquet` cannot be read: .*[Pp]arquet", "write it anew"),
        ("bad.csv", "`.*bad.csv` cannot be read: .*Expected 2 columns, got 3", "every line must have the columns"),
        ("bad.json", "`.*bad.json` cannot be read: ", "every line must be one object"),
        ("list.json", "`.*list.json` cannot be read: .*changed from object to array", "every line must be one object"),
        ("kinds.json", "`.*kinds.json` cannot be read: .*changed from number to string", "values of one type"),
        ("times.json", "`.*times.json` cannot be read: `ts` has times, and an empty text among them", "one object"),
        ("case.json", "`.*case.json` has two columns called `[Tt]s`", "a name of its own"),
        ("twice.csv", "`.*twice.csv` has two columns called `ts`, in any case of letters", "a name of its own"),
        ("unnamed.csv", "`.*unnamed.csv` has a column without a name", "a name of its own"),
        ("heads", "`.*2.csv` has the columns ts, y, and `.*1.csv` has ts, x", "have one header"),
        ("types", "have columns of one name and different types: .*x", "one schema"),
        ("", "The path of an input is empty", "check the path"),
        ("s3://bucket/events.csv", "is a URL, and the local engine reads files of this machine", "a pyarrow Dataset"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_path(path: str, message: str, hint: str, tmp_path: Path) -> None:
    write(tmp_path, events_csv="ts\n1\n", good_json='{"ts": 1}\n', notes_txt="ts\n1\n", bad_parquet="nothing")
    write(tmp_path, mixed__a_csv="ts\n1\n", mixed__a_json='{"ts": 1}', empty__readme_txt="x", beside__readme_txt="x")
    write(tmp_path, beside__a_csv="ts\n1\n", deep__inner__a_csv="ts\n1\n", uneven__a_csv="ts\n1\n")
    write(tmp_path, bad_csv="ts,x\n1,2\n1,2,3\n", bad_json='{"ts": 1}\n{"ts"', list_json='[{"ts": 1}]')
    write(tmp_path, kinds_json='{"ts": 1}\n{"ts": "x"}', times_json='{"ts": "2026-01-01 08:00"}\n{"ts": ""}')
    write(tmp_path, case_json='{"ts": 1}\n{"Ts": 2}', twice_csv="ts,Ts\n1,2\n", unnamed_csv="ts,\n1,2\n")
    write(tmp_path, heads__1_csv="ts,x\n1,2\n", heads__2_csv="ts,y\n1,2\n", types__1_json='{"ts": 1, "x": 1}')
    write(tmp_path, types__2_json='{"ts": 1, "x": "a"}')
    (tmp_path / "uneven" / "day=1").mkdir()
    (tmp_path / "uneven" / "day=1" / "a.csv").write_text("ts\n1\n")
    given = path if not path or "://" in path else str(tmp_path / path)
    pattern = tocsin.pattern("PATTERN A a")
    for inputs in (given, {"A": given}):
        with pytest.raises(errors.InputNotReadableError, match=message) as caught:
            pattern.match(inputs, engine="local")
        assert caught.value.hint is not None
        assert caught.match(f"Hint: .*{hint}")


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> Any:  # root may read everything
        raise PermissionError(13, "Permission denied")

    as_csv(EVENTS, tmp_path)
    monkeypatch.setattr(pa, "input_stream", denied)
    with pytest.raises(errors.InputNotReadableError, match=r"`.*events.csv` cannot be read: Permission denied\."):
        PAIRS.match(tmp_path / "events.csv", engine="local")


@pytest.mark.parametrize("value", [5, b"events.csv", None, EVENTS.schema])
def test_what_is_no_input_is_refused(value: Any) -> None:
    with pytest.raises(errors.InvalidInputError, match="neither a table, a list of rows nor the path of a file"):
        PAIRS.match({"A": value, "B": EVENTS}, engine="local")


def test_a_query_of_another_library_that_fails_is_an_input_that_cannot_be_read() -> None:
    relation = duckdb.sql("SELECT 'x' || range AS text, range AS ts FROM range(3)").project("text::INTEGER AS x, ts")
    with pytest.raises(
        errors.InputNotReadableError, match="The input of `A` is a DuckDBPyRelation that cannot be read"
    ):
        tocsin.pattern("PATTERN A a").match({"A": relation}, engine="local")


def test_a_column_alone_is_no_table() -> None:
    with pytest.raises(errors.InputNotReadableError, match="The input is a ChunkedArray that cannot be read"):
        PAIRS.match(EVENTS["ts"], engine="local")


# --- types ----------------------------------------------------------------------------------------

# By column: cells that have a type together, or none. The years 0 and 10000 are dates to Spark, and to nobody else.
CELLS: dict[str, list[str]] = {
    "int": ["1", "+5", "-0", "007", "", "٣"],
    "long": ["1", "3000000000"],
    "not_int": ["0x1F", "1"],
    "grouped": ["1_000"],
    "big": ["1", "99999999999999999999", ""],
    "big_first": ["9999999999999999999", "3000000000"],
    "whole": ["5", "5.", "1.5e1"],
    "whole_first": ["5.", "5"],
    "too_big": ["1", "123456789012345678901234567890123456789"],
    "double": ["1.5", "2", " 3 ", "4f", "5D", "0x1p3", "1e400", ".5", "6."],
    "int_double": ["1", "1.5", "1e5"],
    "nan": ["NaN", "Infinity", "-Infinity", "Inf", "-Inf"],
    "not_nan": ["nan", "1.5"],
    "not_inf": ["1.5", "inf"],
    "exponents": ["1e5", "2E3"],
    "bool": ["true", "FALSE", "True", ""],
    "not_bool": ["true", "1"],
    "yes": ["yes", "no"],
    "date": ["2026-01-31", "", "2024-02-29"],
    "no_day": ["2026-01-31", "2026-02-30"],
    "short_date": ["2026-1-31"],
    "day_and_time": ["2026-01-31", "2026-01-31 08:00"],
    "time_and_day": ["2026-01-31 08:00", "2026-01-31"],
    "time": ["2026-01-31T08:00", "2026-01-31 08:00:00.5Z", "2026-01-31 08:00:00.123456+01:30", ""],
    "odd_time": [
        "2026-1-31 8:00:00.123456789",
        "2026-01-31T 08:00 UTC",
        "2026-01-31t08:00z",
        "2026-01-31 08:00 utc+01:00",
        "2026-03-29 02:30 Europe/Paris",
        "2026-10-25 02:30:00europe/paris",
        "2026-01-31 08:00+18:00",
        "2026-01-31 08:00-0530",
        "0001-01-01 00:00",
        "9999-12-31 23:59:59.999999Z",
    ],
    "far_zone": ["2026-01-31 08:00", "2026-01-31 08:00+19:00"],
    "old_zone": ["2026-01-31 08:00 EST"],
    "hour": ["2026-01-31 08"],
    "midnight": ["2026-01-31 24:00"],
    "leap": ["2026-01-31 23:59:60"],
    "account": ["12345", "12a"],
    "clock": ["12:30"],
    "nothing": ["", ""],
    "text": [" a ", 'say "hi"', "two\nlines", "", "comma, comma", "ä😀"],
    "late_text": ["1", "2", "1.5", "x"],
}


def same(found: pa.Table, expected: pa.Table) -> None:
    """Columns, types and values; NaN is NaN."""
    assert [(field.name, field.type) for field in found.schema] == [
        (field.name, field.type) for field in expected.schema
    ]
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_columns_of_csv_have_the_types_that_spark_infers(spark: SparkSession, tmp_path: Path, line_end: str) -> None:
    rows = max(map(len, CELLS.values()))
    lines = [",".join(CELLS)]
    for place in range(rows):
        cells = [found[place % len(found)] for found in CELLS.values()]
        lines.append(",".join('"' + cell.replace('"', '""') + '"' if cell else "" for cell in cells))
    path = tmp_path / "cells.csv"
    path.write_bytes((line_end.join(lines) + line_end).replace("two\nlines", f"two{line_end}lines").encode())
    same(table_at(path), files.read(spark, str(path)).toArrow())


def test_a_quoted_nothing_is_null_as_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('\n\n"a",b,c\n"",x,\n\n"y","",1\n')
    same(table_at(path), files.read(spark, str(path)).toArrow())


@pytest.mark.parametrize(
    "lines",
    [
        ['{"b": 1, "a": "x"}', '{"a": null}', "", '{"c": true}'],
        ['{"a": 1}', '{"a": 1.5}', '{"a": 1e20}'],
        ['{"a": 12345678901234567890}'],
        ['{"a": 12345678901234567890}', '{"a": 1}', "{}"],
        ['{"a": 9223372036854775808}', '{"a": 1}'],
        ['{"a": 12345678901234567890}', '{"a": 1.5}'],
        ['{"a": 1e20}', '{"a": -1}'],
        ['{"a": 123456789012345678901234567890123456789}'],
        ['{"a": "2026-01-31"}'],
        ['{"a": "2026-01-31T08:00:00Z"}', '{"a": "2026-01-31 08:00:00.5"}', '{"a": null}'],
        ['{"a": "2026-01-31T08:00:00Z"}', '{"a": "soon"}'],
        ['{"a": ""}', '{"a": "soon"}'],
        ['{"a": "", "b": null, "c": 1}'],
        ['{"a": {}, "b": 1}'],
        ['{"a": [], "b": [{}], "c": 1}'],
        ['{"a": [1, null]}', '{"a": null}', '{"a": [2.5]}'],
        ['{"a": {"z": 1, "b": "2026-01-01 08:00", "c": {}}}', '{"a": null}', '{"a": {"d": [["x"]]}}'],
        ['{"a": [{"y": 1, "x": "2026-01-01 08:00"}, null]}', '{"a": null}', '{"a": []}'],
        ['{"a": {"x": null}}'],
        ['{"a": NaN}', '{"a": 1}'],
        ['{"a": "\\u00e4 \\ud83d\\ude00 \\n"}'],
    ],
    ids=lambda lines: lines[0][:30],
)
def test_columns_of_json_have_the_types_that_spark_infers(
    spark: SparkSession, tmp_path: Path, lines: list[str]
) -> None:
    path = tmp_path / "lines.json"
    path.write_text("\n".join(lines) + "\n")
    same(table_at(path), files.read(spark, str(path)).toArrow())


def test_types_are_those_of_all_files_of_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, csv__1_csv="ts,x\n1,1\n", csv__2_csv="ts,x\n3000000000,1.5\n")
    write(
        tmp_path, json__1_json='{"ts": 1, "x": "2026-01-01 08:00"}', json__2_json='{"ts": 1.5, "x": "b", "y": {"z": 1}}'
    )
    for name in ("csv", "json"):
        found = table_at(tmp_path / name).sort_by("ts")
        same(found, files.read(spark, str(tmp_path / name)).orderBy("ts").toArrow())


def test_folders_are_columns_as_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for day, hour, place in (("2026-01-01", "08", "A%2FB"), ("2026-01-02", "9", "__HIVE_DEFAULT_PARTITION__")):
        folder = tmp_path / "events" / f"day={day}" / f"hour={hour}" / f"place={place}" / "flag=true"
        folder.mkdir(parents=True)
        (folder / "part.csv").write_text(f"ts\n{hour}\n7\n")
    found = table_at(tmp_path / "events").sort_by([("hour", "ascending"), ("ts", "ascending")])
    same(found, files.read(spark, str(tmp_path / "events")).orderBy("hour", "ts").toArrow())


def test_parquet_of_spark_has_its_types(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        """SELECT id, timestamp'0001-01-01 00:00:00.000001' AS early, timestamp'9999-12-31 23:59:59' AS late,
        timestamp_ntz'2026-01-01 00:00:00' AS clock, named_struct('n', 1, 't', timestamp'2026-01-01 08:00:00') AS one,
        array(named_struct('t', timestamp'2026-01-01 08:00:00', 'x', 1.5)) AS several, map('k', date'2026-01-01') AS m,
        CAST(1.50 AS DECIMAL(5, 2)) AS price, CAST(id AS BYTE) AS small, CAST('x' AS BINARY) AS bytes FROM range(3)"""
    )
    frame.write.parquet(str(tmp_path / "events"))
    same(
        table_at(tmp_path / "events").whole().sort_by("id"),
        spark.read.parquet(str(tmp_path / "events")).orderBy("id").toArrow(),
    )


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "folder"])
def test_both_engines_find_the_same_in_a_file(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = str(INPUTS[kind](EVENTS, tmp_path))
    pattern = tocsin.pattern(PAIRS.text)
    found = pattern.match(path, engine="local")
    expected = pattern.match(files.read(spark, path)).toArrow()
    assert [(field.name, field.type) for field in found.schema] == [
        (field.name, field.type) for field in expected.schema
    ]
    assert in_order(found) == in_order(expected)


CELL = st.one_of(
    st.sampled_from([cell for cells in CELLS.values() for cell in cells]),
    st.from_regex(r"\A[+-]?[0-9]{1,20}(\.[0-9]{0,3})?(e[0-9])?\Z"),
    st.from_regex(r"\A20[0-2][0-9]-[01][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,7})?)?Z?)?\Z"),
    st.datetimes(timezones=st.sampled_from([None, dt.UTC])).map(str),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=3),
)


@settings(max_examples=1000)
@given(cells=st.lists(CELL.map(lambda cell: cell or None), min_size=1, max_size=4))
def test_shortcuts_for_columns_give_what_the_rule_for_one_text_gives(cells: list[str | None]) -> None:
    column = pa.chunked_array([pa.array(cells[:2], pa.string()), pa.array(cells[2:], pa.string())])
    found = inferred_types.typed(column)
    if any(cells):
        assert repr(found.to_pylist()) == repr(inferred_types._exactly(column).to_pylist())
        assert found.type == inferred_types._exactly(column).type
    assert found.null_count == column.null_count


def test_a_big_decimal_keeps_its_digits(tmp_path: Path) -> None:
    write(tmp_path, a_csv="ts,x\n1,99999999999999999999\n")
    assert tocsin.pattern("PATTERN A a RETURN a.x").match({"A": tmp_path / "a.csv"}, engine="local")[
        "x"
    ].to_pylist() == [Decimal("99999999999999999999")]


def test_a_path_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_csv(EVENTS, tmp_path)
    monkeypatch.chdir(tmp_path)
    expected = in_order(PAIRS.match(EVENTS, engine="local"))
    assert in_order(PAIRS.match("events.csv", engine="local")) == expected
    assert in_order(PAIRS.match(f"file://{os.getcwd()}/events.csv", engine="local")) == expected
