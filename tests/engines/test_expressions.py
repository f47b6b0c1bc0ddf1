"""Every kind of expression, on Spark and in the reference, in both ANSI modes and away from UTC."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import found, plain

import tocsin

SCHEMA = """
    ts bigint, i int, j bigint, z int, f double, g float, nan double, big bigint, n int, s string, t string, b boolean,
    at timestamp, later timestamp, day date, place struct<lat: double, name: string>, wait interval day to second
"""
AT = dt.datetime(2026, 3, 8, 6, 30, tzinfo=dt.UTC)  # half an hour before clocks change in New York
ROW: dict[str, Any] = {
    "ts": 5,
    "i": 7,
    "j": -7,
    "z": 0,
    "f": 2.5,
    "g": 0.5,
    "nan": math.nan,
    "big": 2**62,
    "n": None,
    "s": "Ångström 100%",
    "t": " pad ",
    "b": True,
    "at": AT,
    "later": AT + dt.timedelta(hours=24),
    "day": dt.date(2026, 3, 8),
    "place": {"lat": 1.5, "name": "x"},
    "wait": dt.timedelta(days=1, seconds=1.25),
}

SCALARS = [
    # arithmetic
    "a.i + 1",
    "a.i - a.j",
    "a.i * a.f",
    "a.i / 2",
    "a.i / a.z",
    "a.f / 0.0",
    "a.i % 3",
    "a.j % 3",
    "a.f % 2",
    "a.i % a.z",
    "-a.i",
    "-a.f",
    "a.n + 1",
    "2147483647 + a.i",
    "a.i * 2147483647",
    "a.s || '!'",
    "a.s || NULL",
    "a.place.lat + 1",
    "a.g + 16777217",
    "a.g * 0.1",
    "a.g = 0.1",
    "a.g < 16777217",
    # comparison and logic
    "a.i = 7",
    "a.i != 7.0",
    "a.f < a.i",
    "a.n = 1",
    "NOT a.n = 1",
    "a.n = 1 OR a.b",
    "a.n = 1 AND a.b",
    "a.n = 1 AND NOT a.b",
    "a.nan = a.nan",
    "a.nan > 1000000",
    "a.f < a.nan",
    "0.0 = -0.0",
    "a.s > 'Z'",
    "a.n IS NULL",
    "a.i IS NOT NULL",
    "a.i IN (1, 7)",
    "a.i IN (1, NULL)",
    "a.i IN (7, NULL)",
    "a.i NOT IN (1, NULL)",
    "a.i IN (1, 7.0)",
    "a.s IN ('x', 'y')",
    "a.i BETWEEN 7 AND 8",
    "a.i NOT BETWEEN 8 AND NULL",
    "a.s LIKE 'Å%\\%'",
    "a.s LIKE '_ngstr_m%'",
    "a.s LIKE '\\Å%'",
    "a.s NOT LIKE '%x%'",
    "CASE WHEN a.i > 100 THEN 1 WHEN a.n > 1 THEN 2 ELSE 3.5 END",
    "CASE WHEN a.n > 1 THEN 1 END",
    # functions
    "ABS(a.j)",
    "CEIL(a.f)",
    "FLOOR(-a.f)",
    "ROUND(a.f)",
    "ROUND(-a.f)",
    "ROUND(1.005, 2)",
    "ROUND(a.i, -1)",
    "SQRT(a.f)",
    "SQRT(-1.0)",
    "POWER(a.i, 2)",
    "MOD(a.j, 4)",
    "MOD(a.j, 0)",
    "SIGN(a.j)",
    "LOWER(a.s)",
    "UPPER(a.t)",
    "LENGTH(a.s)",
    "TRIM(a.t)",
    "CONCAT(a.s, a.t)",
    "CONCAT(a.s, NULL)",
    "SUBSTRING(a.s, 2, 3)",
    "SUBSTRING(a.s, -4, 3)",
    "SUBSTRING(a.s, -40, 39)",
    "SUBSTRING(a.s, 0, 2)",
    "COALESCE(a.n, a.f)",
    "NULLIF(a.i, 7)",
    "NULLIF(a.i, 8)",
    "GREATEST(a.i, a.n, a.f)",
    "LEAST(a.i, a.n, a.f)",
    "GREATEST(a.f, a.nan)",
    # time
    "a.at + 24 HOURS = a.later",
    "a.at + 1 DAY = a.later",
    "a.later - a.at = 1 DAY",
    "a.later - a.at < 24 HOURS",
    "a.later - 1 DAY >= a.at",
    "a.at = TIMESTAMP '2026-03-08 06:30:00'",
    "a.at = TIMESTAMP '2026-03-08 01:30:00-05:00'",
    "a.at BETWEEN TIMESTAMP '2026-03-08 00:00:00' AND TIMESTAMP '2026-03-08 06:30:00'",
    "a.day = DATE '2026-03-08'",
    "a.day < a.at",
    "DATE '2026-03-08' <= a.at",
    "a.wait > 1 DAY",
    "a.wait * 2 = 2 DAYS + 2.5 SECONDS",
    "a.ts < 6 US",
    "a.ts + 1 SECOND",
    "CASE WHEN a.i > 1 THEN a.at + 1 DAY ELSE a.at END = a.later",
    "COALESCE(a.at, a.later) < a.later",
    "GREATEST(a.at, a.later) = a.later",
    # aggregates over one event
    "COUNT(a)",
    "COUNT(a.n)",
    "COUNT(DISTINCT a.i)",
    "SUM(a.i)",
    "SUM(a.n)",
    "SUM(a.i * 2)",
    "MIN(a.s)",
    "MAX(a.n)",
    "AVG(a.i)",
    "RANGE(a.f)",
    "STDDEV(a.i)",
    "FIRST(a.n)",
    "LAST(a.i)",
    "COLLECT(a.i)",
    "COLLECT(a.n)",
    # indices on a variable of one event
    "a[first].i",
    "a[last].i",
    "a[1].i",
    "a[2].i",
]


@pytest.fixture(params=["ANSI in New York", "no ANSI in Apia"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    settings = {
        "ANSI in New York": {
            "spark.sql.ansi.enabled": "true",
            "spark.sql.session.timeZone": "America/New_York",
        },
        "no ANSI in Apia": {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Pacific/Apia"},
    }[request.param]
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, old)


@pytest.fixture
def one(session: SparkSession) -> DataFrame:
    return session.createDataFrame([ROW], SCHEMA)


def returning(expressions: list[str]) -> str:
    return "PATTERN A a RETURN " + ", ".join(f"{text} AS c{number}" for number, text in enumerate(expressions))


@pytest.mark.filterwarnings("ignore:.*NULL_COMPARISON")
def test_every_expression_has_the_value_the_reference_gives_it(one: DataFrame) -> None:
    text = returning(SCALARS)
    (row,) = found(text, {"A": one})
    (expected,) = tocsin.reference.evaluate(tocsin.pattern(text), {"A": [ROW]})
    values = {text: row[f"c{number}"] for number, text in enumerate(SCALARS)}
    wanted = {text: expected[f"c{number}"] for number, text in enumerate(SCALARS)}
    different = {text: (values[text], wanted[text]) for text in SCALARS if not alike(values[text], wanted[text])}
    assert different == {}


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def test_times_in_the_result_are_instants_days_and_intervals(one: DataFrame) -> None:
    columns = ["a.at + 1 DAY", "a.later - a.at", "a.wait", "a.day + 1 HOUR", "90 SECONDS", "a.wait / 2"]
    (row,) = (
        tocsin.pattern(returning(columns))
        .match({"A": one})
        .selectExpr("unix_micros(c0) AS c0", "c1", "c2", "unix_micros(c3) AS c3", "c4", "c5")
        .collect()
    )
    micros = dt.timedelta(microseconds=1)
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert row.c0 == (ROW["later"] - epoch) // micros
    assert row.c1 == dt.timedelta(days=1)
    assert row.c2 == ROW["wait"]
    assert row.c3 == (dt.datetime(2026, 3, 8, 1, tzinfo=dt.UTC) - epoch) // micros
    assert row.c4 == dt.timedelta(seconds=90)
    assert row.c5 == dt.timedelta(hours=12, seconds=0.625)


def test_nothing_overflows_into_an_error_or_a_wrong_number(one: DataFrame) -> None:
    texts = ["a.big + a.big", "a.big * 4", "-a.big - a.big - a.big", "a.big - 1", "a.big % 0"]
    # Every operation has a result or NULL by itself: Spark must not compute 2^62 * 2 first.
    texts += ["(a.big - a.big - 1) * 4611686018427387904 * 2", "(a.big - a.big) * 4611686018427387904 * 2"]
    texts += [
        "-a.big + 9223372036854775807 + 4611686018427387904 - a.big",
        "-a.big + 9223372036854775807 + a.big - a.big",
    ]
    (row,) = found(returning(texts), {"A": one})
    numbers = [None, None, None, 2**62 - 1, None, -(2**63), 0, 2**62 - 1, 2**62 - 1]
    assert [row[f"c{number}"] for number in range(len(texts))] == numbers


EDGES = {
    "ABS(a.least)": None,
    "ABS(a.least + 1)": 2**63 - 1,
    "ABS(a.n)": None,
    "CEIL(a.huge)": None,
    "FLOOR(-a.huge)": None,
    "CEIL(a.nan)": None,
    "FLOOR(a.inf)": None,
    "CEIL(0.0 - a.inf)": None,
    "FLOOR(a.edge)": -(2**63),
    "CEIL(-a.edge)": None,
    "CEIL(a.half)": 1,
    "FLOOR(a.most)": 2**63 - 1,
    "ROUND(a.most, -1)": None,
    "ROUND(a.most, -2)": 9_223_372_036_854_775_800,
    "ROUND(a.least, -1)": None,
    "ROUND(a.most, -19)": None,
    "ROUND(a.most, -20)": 0,
    "ROUND(a.most, -50)": 0,
    "ROUND(a.most, 400)": 2**63 - 1,
    "ROUND(a.wide, -1)": None,
    "ROUND(a.wide, 0)": decimal.Decimal(10**38 - 1),
    "ROUND(a.wide, -50)": 0,
    "a.day2 < TIMESTAMP '2026-01-01 00:00:00'": None,
    "a.last - a.first2": None,
    "a.last + 1 DAY IS NULL": True,
    "a.wait * 1000000000000.5 IS NULL": True,
    "a.wait * 106751991 = 9223372022400000000 US": True,
    "a.wait / 0.000000000000001 IS NULL": True,
}


def test_no_function_fails_a_job_or_differs_between_modes_at_the_ends_of_its_range(session: SparkSession) -> None:
    frame = session.sql(
        """
        SELECT 1L AS ts, -9223372036854775807L - 1 AS least, 9223372036854775807L AS most, CAST(NULL AS BIGINT) AS n,
               1e300D AS huge, DOUBLE('NaN') AS nan, DOUBLE('Infinity') AS inf, -9223372036854775808D AS edge,
               0.5D AS half, CAST(REPEAT('9', 38) AS DECIMAL(38, 0)) AS wide, DATE_FROM_UNIX_DATE(2000000000) AS day2,
               TIMESTAMP_MICROS(9223372036854775807L) AS last, TIMESTAMP_MICROS(-9223372036854775807L) AS first2,
               INTERVAL '1' DAY AS wait
        """
    )
    (row,) = found(returning(list(EDGES)), {"A": frame})
    values = {text: row[f"c{number}"] for number, text in enumerate(EDGES)}
    assert values == EDGES


def test_a_division_by_zero_in_a_condition_drops_the_match_and_not_the_job(one: DataFrame) -> None:
    assert found("PATTERN A a WHERE a.i / a.z > 1", {"A": one}) == []
    assert len(found("PATTERN A a WHERE a.i / a.z > 1 OR a.b", {"A": one})) == 1


def test_aggregates_of_an_unbound_variable_have_the_value_of_the_empty_bag(one: DataFrame) -> None:
    columns = [
        f"{name}(b.i) AS {name}"
        for name in ("count", "sum", "min", "max", "avg", "range", "stddev", "first", "last", "collect")
    ]
    columns += ["a.i AS ai", "b.i AS bi", "COUNT(b) AS n", "COUNT(b.i IS NULL) AS m"]
    text = f"PATTERN OR(A a, B b) RETURN {', '.join(columns)}"
    rows = found(text, {"A": one, "B": one.limit(0)})
    expected = tocsin.reference.evaluate(tocsin.pattern(text), {"A": [ROW], "B": []})
    assert [{name: value for name, value in row.items() if name in expected[0]} for row in rows] == expected


def test_an_attribute_is_returned_in_its_own_type(one: DataFrame) -> None:
    names = ["i", "j", "f", "g", "s", "b", "at", "day", "place", "wait"]
    out = tocsin.pattern(returning([f"a.{name}" for name in names])).match({"A": one})
    assert [out.schema[f"c{number}"].dataType for number in range(len(names))] == [
        one.schema[name].dataType for name in names
    ]


def test_a_whole_event_is_returned_with_its_columns_in_order(one: DataFrame) -> None:
    row = tocsin.pattern("PATTERN A a RETURN a, a.place").match({"A": one}).first()
    assert row is not None
    assert row.a.__fields__ == list(ROW)
    assert plain(row.place) == ROW["place"]


def test_having_filters_matches_and_unknown_is_not_true(one: DataFrame) -> None:
    assert len(found("PATTERN A a RETURN a.i AS x HAVING x > 6", {"A": one})) == 1
    assert found("PATTERN A a RETURN a.n AS x HAVING x > 6", {"A": one}) == []
