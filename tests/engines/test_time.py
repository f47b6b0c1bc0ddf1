"""Time columns of every kind, away from UTC and around a change of clocks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.engines.support import bound, found

import tocsin

# Clocks in New York went from 02:00 to 03:00 on 8 March 2026, which is 07:00 UTC.
TIMES = ["2026-03-07 07:00:00", "2026-03-08 06:30:00", "2026-03-08 07:30:00", "2026-03-08 07:59:59.999999"]


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def instants(spark: SparkSession, times: list[str]) -> DataFrame:
    return spark.createDataFrame([(f"{time}Z",) for time in times], "text string").select(
        F.col("text").cast("timestamp").alias("ts"), "text"
    )


def locals_(spark: SparkSession, times: list[str]) -> DataFrame:
    return spark.createDataFrame([(time,) for time in times], "text string").select(
        F.col("text").cast("timestamp_ntz").alias("ts"), "text"
    )


@pytest.mark.parametrize("make", [instants, locals_], ids=["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_a_window_is_a_number_of_microseconds_also_when_clocks_change(
    new_york: SparkSession, make: type[DataFrame]
) -> None:
    frame = make(new_york, TIMES)
    suffix = "Z" if make is instants else ""

    def pairs(window: str) -> set[tuple[str, str]]:
        rows = bound(f"PATTERN SEQ(A a, A b) WITHIN {window}", {"A": frame}, "text")
        return {(row["a"].removesuffix(suffix), row["b"].removesuffix(suffix)) for row in rows}

    one, two, three, four = TIMES
    assert pairs("1 HOUR") == {(three, four)}
    assert pairs("3600000001 US") == {(two, three), (three, four)}
    assert pairs("90 MINUTES") == {(two, three), (two, four), (three, four)}
    assert (one, three) not in pairs("24 HOURS")
    assert (one, three) in pairs("25 HOURS")


@pytest.mark.parametrize("make", [instants, locals_], ids=["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_start_and_end_have_the_type_and_value_of_the_time_column(
    new_york: SparkSession, make: type[DataFrame]
) -> None:
    frame = make(new_york, TIMES[1:3])
    out = tocsin.pattern("PATTERN SEQ(A a, A b) WITHIN 2 HOURS").match({"A": frame})
    assert out.schema["start"].dataType == out.schema["end"].dataType == frame.schema["ts"].dataType
    assert out.filter("start = a.ts AND end = b.ts").count() == 1


@pytest.mark.parametrize("dtype", ["tinyint", "smallint", "int", "bigint"])
def test_integer_times_stay_integers(spark: SparkSession, dtype: str) -> None:
    frame = spark.createDataFrame([(1,), (3,)], f"ts {dtype}")
    out = tocsin.pattern("PATTERN SEQ(A a, A b) WITHIN 3 US").match({"A": frame})
    assert [(row.start, row.end) for row in out.collect()] == [(1, 3)]
    assert out.schema["start"].dataType.simpleString() == "bigint"
    assert out.schema["a"].dataType["ts"].dataType.simpleString() == dtype


def test_integer_times_may_lie_at_both_ends_of_64_bits(spark: SparkSession) -> None:
    low, high = -(2**63), 2**63 - 1
    frame = spark.createDataFrame([(low,), (low + 1,), (-1,), (0,), (1,), (high - 1,), (high,)], "ts bigint")
    assert bound("PATTERN SEQ(A a, A b) WITHIN 2 US", {"A": frame}) == [
        {"a": -1, "b": 0},
        {"a": low, "b": low + 1},
        {"a": 0, "b": 1},
        {"a": high - 1, "b": high},
    ]
    assert len(bound("PATTERN AND(A a, A b) WITHIN 2 US", {"A": frame})) == 7 + 2 * 4


def test_times_before_the_epoch_find_their_partners(spark: SparkSession) -> None:
    times = list(range(-7, 8))
    frame = spark.createDataFrame([(time,) for time in times], "ts bigint")
    for window in (2, 3, 5, 8):
        expected = {(a, b) for a in times for b in times if a < b and b - a < window}
        rows = bound(f"PATTERN SEQ(A a, A b) WITHIN {window} US", {"A": frame})
        assert {(row["a"], row["b"]) for row in rows} == expected
        assert len(rows) == len(expected)


def test_events_without_a_time_take_part_in_nothing(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None, 1), (1, 2), (None, 3), (2, 4)], "ts bigint, x int")
    assert bound("PATTERN A a", {"A": frame}, "x") == [{"a": 2}, {"a": 4}]
    assert bound("PATTERN AND(A a, A b) WHERE a.x != b.x", {"A": frame}, "x") == [{"a": 2, "b": 4}, {"a": 4, "b": 2}]


def test_the_time_column_may_have_another_name_in_each_input(spark: SparkSession) -> None:
    a = spark.createDataFrame([(1, 100)], "at bigint, ts bigint")
    b = spark.createDataFrame([(2, 0)], "ts bigint, at bigint")
    text = "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < 0 WITHIN 5 US"
    assert len(found(text, {"A": a, "B": b}, time={"A": "at", "B": "ts"})) == 1


def test_a_literal_instant_does_not_move_with_the_session(new_york: SparkSession) -> None:
    frame = instants(new_york, TIMES)
    text = "PATTERN A a WHERE a.ts = TIMESTAMP '2026-03-08 07:30:00'"
    assert bound(text, {"A": frame}, "text") == [{"a": "2026-03-08 07:30:00Z"}]


def test_local_times_that_the_session_s_zone_does_not_have_are_kept(new_york: SparkSession) -> None:
    frame = locals_(new_york, ["2026-03-08 01:59:59", "2026-03-08 02:30:00", "2026-03-08 03:00:00"])
    rows = found("PATTERN SEQ(A a, A b) WITHIN 31 MINUTES", {"A": frame})
    assert [(row["start"], row["end"]) for row in rows] == [
        (dt.datetime(2026, 3, 8, 1, 59, 59), dt.datetime(2026, 3, 8, 2, 30)),
        (dt.datetime(2026, 3, 8, 2, 30), dt.datetime(2026, 3, 8, 3, 0)),
    ]


@pytest.mark.parametrize("dtype", ["timestamp", "timestamp_ntz", "bigint"])
def test_windows_of_any_length_find_their_matches_at_both_ends_of_time(spark: SparkSession, dtype: str) -> None:
    low, high = -(2**63), 2**63 - 1
    micros = [low, low + 1, 0, high - 1, high]
    of_micros = {
        "bigint": "us",
        "timestamp": "timestamp_micros(us)",
        "timestamp_ntz": "timestampadd(MICROSECOND, us, TIMESTAMP_NTZ'1970-01-01 00:00:00')",
    }[dtype]
    frame = spark.createDataFrame([(us,) for us in micros], "us bigint").selectExpr(f"{of_micros} AS ts", "us")
    for window in (2, 2**61, 3 * 10**18):
        out = tocsin.pattern(f"PATTERN SEQ(A a, A b) WITHIN {window} US RETURN a.us AS x, b.us AS y").match(
            {"A": frame}
        )
        expected = {(x, y) for x in micros for y in micros if x < y and y - x < window}
        assert {(row.x, row.y) for row in out.select("x", "y").collect()} == expected


def test_distances_beyond_64_bits_are_compared_and_not_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(0,), (2**62,), (2**63 - 1,)], "ts bigint")
    far = f"b.ts - a.ts <= {2**62} US AND c.ts - b.ts <= {2**62} US"
    assert bound(f"PATTERN SEQ(A a, A b, A c) WHERE {far}", {"A": frame}) == [{"a": 0, "b": 2**62, "c": 2**63 - 1}]
