"""The sliced kernel: what is shipped, who meets whom, what comes out."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engines.support import light_settings, physical_plan
from tests.fitting import cases

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.engines.spark.inputs import resolve
from tocsin.engines.spark.search import matches
from tocsin.engines.spark.slices import LEAST_US, MOST_US, Group, copies, slice_of
from tocsin.engines.spark.spark_types import types_in
from tocsin.engines.spark.sql import functions as sql
from tocsin.engines.spark.sql.column import select
from tocsin.kernels.nested_loops import kernel
from tocsin.language import ast
from tocsin.options import Options
from tocsin.plan.manifest import OWN_COPY, Packing
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import ATTRIBUTES, EVERYTHING, TYPES, Streams

SHARED_SESSION = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def search(
    pattern: str | ast.Query | tocsin.Pattern, inputs: Any, *, slice_us: int | None = 1, **options: Any
) -> DataFrame:
    """The matches that the operator reports; `slice_us=1` makes slices as narrow as the window allows."""
    query = (pattern if isinstance(pattern, tocsin.Pattern) else compiled(pattern)).query
    found = resolve(inputs, alg.event_types(query.pattern), others=True, **options)
    schemas = {name: types_in(stream.schema) for name, stream in found.streams.items()}
    bound = bind(query, schemas, time=options.get("time", "ts"))
    return matches(kernel(bound), found, Options(slice_us=slice_us))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def with_interval(rows: list[Any]) -> list[dict[str, Any]]:
    return [{**row, "start": row["start"], "end": row["end"]} for row in rows]


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without what costs a five-event query most of its time."""
    with light_settings(spark, partitions=2) as session:
        yield session


def check(spark: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: str) -> None:
    """The operator, with slices as narrow as can be, reports what the reference reports."""
    pattern = compiled(query)
    if pattern.query.over_all_matches:
        return
    schema = ", ".join(f"{name} {kind}" for name, kind in ATTRIBUTES.items())
    frames = {
        kind: spark.createDataFrame([tuple(row[name] for name in ATTRIBUTES) for row in rows[kind]], schema)
        for kind in TYPES
    }
    inputs: Any = frames
    expected = rows
    if layout == "one frame":
        typed = [frame.withColumn("type", F.lit(kind)) for kind, frame in frames.items()]
        inputs = typed[0].union(typed[1]).union(typed[2])
        expected = {kind: [{**row, "type": kind} for row in rows[kind]] for kind in rows}
    spark.conf.set("spark.sql.shuffle.partitions", parts)
    try:
        found = rows_of(search(pattern, inputs))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    wanted = reference.evaluate(pattern, expected)
    assert_same_rows(found, with_interval(wanted))
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in wanted)


LAYOUTS = st.sampled_from(["frame per type", "one frame"])
PARTITIONS = st.sampled_from(["1", "2", "7"])


@settings(max_examples=25, suppress_health_check=SHARED_SESSION)
@given(**cases(EVERYTHING, max_events=7), layout=LAYOUTS, parts=PARTITIONS)
def test_the_operator_reports_what_the_reference_reports(
    light: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: str
) -> None:
    check(light, query, rows, layout, parts)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=300, suppress_health_check=SHARED_SESSION)
@given(**cases(EVERYTHING, max_events=8), layout=LAYOUTS, parts=PARTITIONS)
def test_the_operator_reports_what_the_reference_reports_on_many_queries(
    light: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: str
) -> None:
    check(light, query, rows, layout, parts)


# --- who meets whom -------------------------------------------------------------------------------

SECOND = 1_000_000
SEQ = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"


def pairs(frame: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name]["ts"] for name in names) for row in frame.collect())


@pytest.mark.parametrize("slice_us", [1, 11 * SECOND, None])
def test_matches_that_straddle_slices_are_found_once_also_before_the_epoch(
    light: SparkSession, slice_us: int | None
) -> None:
    times = [-(2**63), -(2**63) + 3, -25 * SECOND, -10 * SECOND - 1, -10 * SECOND, -1, 0, 1, 9_999_999, 2**63 - 1]
    a = light.createDataFrame([(ts,) for ts in times], "ts bigint")
    b = light.createDataFrame([(ts + 2 * SECOND,) for ts in times[:-1]] + [(ts,) for ts in times], "ts bigint")
    later = [row["ts"] for row in b.collect()]
    expected = sorted((x, y) for x in times for y in later if 0 < y - x < 10 * SECOND)
    assert pairs(search(SEQ, {"A": a, "B": b}, slice_us=slice_us), "a", "b") == expected


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("int", [1, -1, 2**31 - 1, -(2**31), 0, None]),
        ("smallint", [1, -1, 2**15 - 1, -(2**15), 0, None]),
        ("tinyint", [1, -1, 127, -128, 0, None]),
        ("bigint", [1, 2**63 - 1, None]),
        ("string", ["p", "", "é", None]),
        ("double", [0.0, -0.0, float("nan"), None]),
        ("date", [dt.date(2026, 1, 1), None]),
        ("decimal(10,2)", [Decimal("1.50"), Decimal("-1.50"), None]),
    ],
)
def test_partitions_are_by_value_and_null_is_one_only_for_partition_by(
    light: SparkSession, column: str, values: list[Any]
) -> None:
    rows = [(number, value) for number, value in enumerate(values)]
    later = [(number + 100, value) for number, value in enumerate(values)]
    inputs = {
        "A": light.createDataFrame(rows, f"ts bigint, k {column}"),
        "B": light.createDataFrame(later, f"ts bigint, k {column}"),
    }

    def same(x: Any, y: Any) -> bool:
        return x == y or (isinstance(x, float) and isinstance(y, float) and x != x and y != y)  # noqa: PLR0124

    expected = sorted((x[0], y[0]) for x in rows for y in later if same(x[1], y[1]))
    text = "PATTERN SEQ(A a, B b) {} WITHIN 10 SECONDS"
    found = search(text.format("PARTITION BY k"), inputs)
    assert pairs(found, "a", "b") == expected
    # A key may travel in the bits of a row: it comes back as it was.
    keys = {repr(row["a"]["k"]) for row in found.collect()} | {repr(row["b"]["k"]) for row in found.collect()}
    assert keys == {repr(values[number]) for pair in expected for number in (pair[0], pair[1] - 100)}
    assert found.schema["a"].dataType["k"].dataType == inputs["A"].schema["k"].dataType  # type: ignore[index]
    known = sorted((x, y) for x, y in expected if values[x] is not None)
    assert pairs(search(text.format("WHERE [k]"), inputs), "a", "b") == known


def test_keys_of_different_integer_types_meet(light: SparkSession) -> None:
    inputs = {
        "A": light.createDataFrame([(1, 7), (2, 8)], "ts bigint, k int"),
        "B": light.createDataFrame([(3, 7), (4, 9)], "ts bigint, k bigint"),
    }
    text = "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 1 SECOND"
    assert pairs(search(text, inputs), "a", "b") == [(1, 3)]
    narrow = {"A": inputs["A"], "B": inputs["B"].withColumn("k", F.col("k").cast("tinyint"))}
    (row,) = search(text, narrow).collect()
    assert (row["a"]["k"], row["b"]["k"]) == (7, 7)


# --- what comes out -------------------------------------------------------------------------------


def test_types_may_have_different_columns(light: SparkSession) -> None:
    inputs = {
        "A": light.createDataFrame([(1, 5, "n")], "ts bigint, x int, note string"),
        "B": light.createDataFrame([(2, 2.5)], "ts bigint, x double"),
    }
    (row,) = rows_of(search("PATTERN SEQ(A a, B b) WHERE a.x > b.x WITHIN 1 SECOND", inputs))
    assert row["a"] == {"ts": 1, "x": 5, "note": "n"}
    assert row["b"] == {"ts": 2, "x": 2.5}
    (row,) = rows_of(search("PATTERN OR(A a, B b) WITHIN 1 SECOND RETURN a.note, b.x, COUNT(b) AS n", inputs))[:1]
    assert set(row) == {"match_id", "start", "end", "note", "x", "n"}


@pytest.mark.parametrize(("name", "zone"), [("timestamp", dt.UTC), ("timestamp_ntz", None)])
def test_start_and_end_are_of_the_inputs_kind(light: SparkSession, name: str, zone: Any) -> None:
    def at(second: int) -> dt.datetime:
        return dt.datetime(1969, 12, 31, 23, 59, second, 5, tzinfo=zone)

    inputs = {kind: light.createDataFrame([(at(n),)], f"ts {name}") for kind, n in (("A", 50), ("B", 58))}
    found = search("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts > 5 SECONDS WITHIN 10 SECONDS", inputs)
    assert [field.dataType.simpleString() for field in found.schema.fields[1:3]] == [name, name]
    (row,) = found.selectExpr("CAST(start AS string) AS s", "CAST(end AS string) AS e").collect()
    assert (row["s"], row["e"]) == ("1969-12-31 23:59:50.000005", "1969-12-31 23:59:58.000005")


def test_no_events_are_no_matches(light: SparkSession) -> None:
    inputs = {kind: light.createDataFrame([], "ts bigint, x int") for kind in "AB"}
    found = search("PATTERN SEQ(A a, B+ b) WITHIN 1 SECOND", inputs)
    assert found.collect() == []
    assert found.schema["b"].dataType.simpleString() == "array<struct<ts:bigint,x:int>>"


@pytest.mark.parametrize("text", [SEQ, "PATTERN SEQ(A a, OR(B b, C c)) WITHIN 10 SECONDS", "PATTERN OR(A a, B a)"])
def test_an_id_column_gives_the_ids_that_joins_give(light: SparkSession, text: str) -> None:
    inputs = {
        kind: light.createDataFrame([(n, n % 2, f"{kind}{n}") for n in range(5)], "ts bigint, x int, key string")
        for kind in "ABC"
    }
    found = rows_of(search(text, inputs, id="key"))
    joined = rows_of(tocsin.pattern(text).match(inputs, id="key", strategy="join"))
    assert sorted(found, key=str) == sorted(joined, key=str)


def test_attributes_whose_names_differ_in_case_are_told_apart(light: SparkSession) -> None:
    inputs = {"A": light.createDataFrame([(1, 2, 3)], "ts bigint, x int, y int").toDF("ts", "x", "X")}
    (row,) = search("PATTERN A a WHERE a.x < a.X RETURN a.X - a.x AS d, a", inputs).collect()
    assert row["d"] == 1
    assert tuple(row["a"]) == (1, 2, 3)


def test_tied_events_are_ordered_by_their_values(light: SparkSession) -> None:
    values = [0.5, 10.0, 9.0, 1e7, 1e8, 2e-4, 3e-5, 1e16, 2.5e20, -0.25, None, float("inf")]
    rows = [{"ts": 1, "v": value} for value in values]
    frame = light.createDataFrame([(1, value) for value in values], "ts bigint, v double")
    text = "PATTERN AND(A a, A b) WHERE a.v != b.v WITHIN 1 SECOND SEMANTICS contiguous"
    expected = reference.evaluate(compiled(text), {"A": rows})
    assert_same_rows(rows_of(search(text, {"A": frame})), expected)


def test_a_fault_in_a_task_names_the_query_and_the_times(light: SparkSession) -> None:
    class Broken:
        query = compiled("PATTERN A a").query

        def find(self, rows: Any, **options: Any) -> Any:
            raise ZeroDivisionError("no")

    from tocsin.engines.worker.tasks import Member, task_of
    from tocsin.plan.manifest import BITS, TIME, Layout, Packing

    task = task_of(Member(Broken(), Layout(Packing(1))))  # type: ignore[arg-type]
    with pytest.raises(errors.MatchFailedError, match=r"(?s)1 rows of the times 7 to 7 µs.*A a") as raised:
        list(task.run(pa.table({BITS: [5], TIME: [7]})))
    assert raised.value.__cause__ is not None


# --- what Spark does ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = str(tmp_path_factory.mktemp("events") / "all")
    spark.range(10).selectExpr(
        "id AS ts", "IF(id % 2 = 0, 'A', 'B') AS type", "CAST(id AS int) AS k", "id AS x", "'wide' AS note", "id AS key"
    ).write.parquet(path)
    return spark.read.parquet(path)


def test_one_frame_is_read_once_with_the_columns_and_rows_it_needs(stored: DataFrame, capsys: Any) -> None:
    text = "PATTERN SEQ(A a, B b, A c) WHERE a.x > 5 AND b.x > 3 AND c.x > 4 WITHIN 1 SECOND RETURN b.x"
    shown = physical_plan(search(text, stored, id="key"), capsys)
    assert shown.count("Scan parquet") == 2  # in the tree and in the details: one scan
    assert "note" not in shown
    assert "PushedFilters: [" in shown and "EqualTo(type,A)" in shown and "GreaterThan(x,3)" in shown
    assert "Window" not in shown and "SortMergeJoin" not in shown


def test_slices_and_keys_are_not_shipped_as_columns(stored: DataFrame, capsys: Any) -> None:
    text = "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 1 SECOND RETURN b.x"
    shown = physical_plan(search(text, stored, id="key"), capsys)
    (arguments,) = [line for line in shown.splitlines() if "hashpartitioning" in line]
    assert "shiftright" in arguments and "div" in arguments
    inputs = shown[shown.index("MapInArrow\n") :]
    (shipped,) = [line for line in inputs.splitlines() if line.startswith("Input [")][:1]
    assert shipped.startswith("Input [4]")  # x, key (the id), the time and the bits


@pytest.mark.parametrize("width", [2, 160, 14_400_000_000, 2**62])
def test_slices_and_copies_are_exact_up_to_the_ends_of_64_bits(spark: SparkSession, width: int) -> None:
    edges = [LEAST_US, LEAST_US // width * width + width, -width, 0, width, MOST_US // width * width, MOST_US]
    times = sorted({time for edge in edges for time in range(edge - 2, edge + 3) if LEAST_US <= time <= MOST_US})
    sees = Group((), width, width, width, frozenset(), Packing(1))
    time = sql.col("t")
    sent = copies(sql.bigint(OWN_COPY), sees, time, width)
    frame = spark.createDataFrame([(one,) for one in times], "t bigint").coalesce(1)
    found = select(frame, time, slice_of(time, width).alias("number"), sent.alias("copies")).collect()
    assert [row.t for row in found] == times
    for row in found:
        begin = row.t // width * width
        assert row.number == row.t // width
        back = [OWN_COPY - 1] if begin > LEAST_US else []
        ahead = [OWN_COPY + 1] if row.t > begin and begin + width <= MOST_US else []
        assert sorted(row.copies) == sorted([OWN_COPY, *back, *ahead])
