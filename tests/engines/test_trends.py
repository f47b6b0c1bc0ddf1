"""Aggregates over all matches that are counted and not built: on Spark and locally, against the reference."""

from __future__ import annotations

import datetime as dt
import random
import warnings
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin import errors, reference
from tocsin.engines.spark.engine import prepare
from tocsin.kernels import compile
from tocsin.kernels.trends import task, trend_count
from tocsin.options import Options
from tocsin.plan.strategies import TREND, weighed
from tocsin.testing import assert_same_rows

SCHEMA = "type string, ts bigint, k string, x bigint, v double"
ASKED = "COUNT(*) AS n, COUNT(b) AS events, COUNT(b.x) AS k, SUM(b.x) AS s, AVG(b.v) AS mean, MIN(b.ts) AS first"
QUERIES = {
    "a window": f"PATTERN SEQ(A a, B+ b, C c) WITHIN 4 SECONDS RETURN {ASKED}",
    "no window": f"PATTERN SEQ(A a, B+ b) RETURN {ASKED}, DIGITS(COUNT(*)) AS digits, DIGITS(SUM(b.x)) AS all_of_it",
    "a partition as group": "PATTERN B+ b PARTITION BY k WITHIN 3 SECONDS "
    f"RETURN b[first].k AS of, {ASKED} GROUP BY b[first].k",
    "the first event as group": "PATTERN SEQ(A a, B b) WITHIN 5 SECONDS "
    "RETURN a.x + 1 AS of, COUNT(*) AS n, MAX(b.v) AS m GROUP BY a.x + 1 HAVING COUNT(*) > 1",
    "a partition named by another variable": "PATTERN SEQ(A a, B+ b, C c) PARTITION BY k "
    "RETURN c.k AS k, SUM(b.v) AS s GROUP BY c.k",
    "next": f"PATTERN SEQ(A a, B+ b) WITHIN 5 SECONDS SEMANTICS next RETURN {ASKED}",
    "contiguous": "PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 5 SECONDS SEMANTICS partition-contiguous "
    f"RETURN {ASKED}",
    "a condition": f"PATTERN OR(A a, SEQ(B+ b, C? c)) WHERE b.x > 2 AND a.v IS NOT NULL RETURN {ASKED}",
    "rising neighbours": f"PATTERN SEQ(A a, B+ b, C? c) WHERE b[i].x >= b[i-1].x WITHIN 6 SECONDS RETURN {ASKED}",
    "neighbours, no window": f"PATTERN B{{2,}} b WHERE NEXT(b).v != b.v AND b.x < 9 RETURN {ASKED}",
    "contiguous neighbours": "PATTERN SEQ(A a, B+ b) WHERE b[i].x >= b[i-1].x PARTITION BY k WITHIN 9 SECONDS "
    f"SEMANTICS partition-contiguous RETURN {ASKED}",
    "nothing matches": f"PATTERN SEQ(A a, B+ b) WHERE a.x = 77 RETURN {ASKED}",
    "OUTPUT count": "PATTERN SEQ(A a, B+ b) WITHIN 5 SECONDS OUTPUT count",
}


def events(number: int, seed: int) -> list[dict[str, Any]]:
    choose = random.Random(seed)
    return [
        {
            "type": choose.choice("AABBC"),
            "ts": choose.randrange(24) * 500_000,
            "k": choose.choice(["p", "q", None]),
            "x": choose.choice([None, 1, 5, -(2**40)]),
            "v": choose.choice([None, 0.1, 2.5, -1e-9]),
        }
        for _ in range(number)
    ]


def by_type(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}


def near(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with doubles as they agree: the reference adds them in another order."""
    return [{name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()} for row in rows]


@pytest.mark.spark
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_spark_counts_what_the_reference_counts(spark: SparkSession, text: str) -> None:
    pattern = tocsin.pattern(text)
    assert TREND.refuses(pattern.query) is None
    for seed in range(3):
        rows = events(13, seed)
        frame = spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)
        found = pattern.match(frame, strategy="trend")
        wanted = near(reference.evaluate(pattern, by_type(rows)))
        assert_same_rows(near([row.asDict() for row in found.collect()]), wanted)
        if pattern.query.window_us is not None:
            narrow = prepare(pattern.query, frame, Options(strategy="trend", slice_us=1)).matches()
            assert_same_rows(near([row.asDict() for row in narrow.collect()]), wanted)


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_the_local_engine_counts_what_the_reference_counts(text: str) -> None:
    pattern = tocsin.pattern(text)
    for seed in range(12):
        rows = events(13, seed)
        found = pattern.match(by_type(rows), engine="local")
        assert_same_rows(near(found.to_pylist()), near(reference.evaluate(pattern, by_type(rows))))


def test_the_least_time_is_a_time() -> None:
    """Times are no numbers to be counted with: such a query is enumerated."""
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = {"A": [{"ts": at + dt.timedelta(hours=hour), "day": at.date()} for hour in range(3)]}
    text = "PATTERN A+ a RETURN COUNT(*) AS n, MIN(a.ts) AS first, MAX(a.day) AS day"
    (found,) = tocsin.pattern(text).match(rows, engine="local").to_pylist()
    assert found == {"n": 7, "first": at, "day": at.date()}


COMPARED = [
    "b[i].x >= b[i-1].x",
    "NEXT(b).v < b.v",
    "b.v <= NEXT(b).v",
    "b[i].k > b[i-1].k",
    "b[i].v = b[i-1].v",
    "b.v < NEXT(b).x",
    "b[i].x + 1 > b[i-1].x AND NEXT(b).v != b.v",
]


@pytest.mark.parametrize("pattern", ["B{2,} b", "SEQ(A a, B+ b, C? c)", "SEQ(A+ a, B* b)", "SEQ(A? a, B{2,3} b, B c)"])
@pytest.mark.parametrize("trees", [True, False], ids=["trees", "pairs"])
def test_compared_neighbours_are_counted_as_the_reference_counts_them(
    pattern: str, trees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text that is compiled, over arrays: by doubles, 64-bit integers and residues."""
    monkeypatch.setattr(compile, "fast", lambda text, library="": compile.plain(library + text))
    monkeypatch.setattr(trend_count, "FEW_EVENTS", 0)
    monkeypatch.setattr(task, "MANY_NEIGHBOURS", -1 if trees else 2**60)
    outputs = (
        "COUNT(*) AS n, MIN(b.x) AS low",
        "COUNT(*) AS n, COUNT(b) AS e",
        "COUNT(*) AS n, SUM(b.x) AS s, AVG(b.v) AS m",
    )
    for seed in range(24):
        choose = random.Random(seed)
        monkeypatch.setattr(task, "LANES", choose.choice([1, 2, 32]))
        monkeypatch.setattr(task, "MOST_NUMBERS", choose.choice([1, 2**26]))
        monkeypatch.setattr(task, "DOUBLE_BITS", choose.choice([0, 53]))
        monkeypatch.setattr(task, "INTEGER_BITS", choose.choice([0, 62]))
        where = choose.choice(COMPARED)
        where += " AND a[i].x >= a[i-1].x" if "A+" in pattern and choose.random() < 0.5 else ""
        text = f"PATTERN {pattern} WHERE {where} {choose.choice(['', 'PARTITION BY k'])} "
        text += f"{choose.choice(['', 'WITHIN 2 SECONDS', 'WITHIN 5 SECONDS'])} RETURN "
        text += f"a.x AS of, {outputs[1]} GROUP BY a.x" if "A a" in pattern and seed % 3 == 0 else outputs[seed % 3]
        made = tocsin.pattern(text)
        rows = events(choose.choice([8, 13]), seed)
        for kind, row in zip("ABC", rows, strict=False):
            row["type"] = kind
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = made.match(by_type(rows), engine="local", time_unit="us").to_pylist()
        assert_same_rows(near(found), near(reference.evaluate(made, by_type(rows))))


@pytest.mark.compiled
@pytest.mark.parametrize("where", ["b[i].x > b[i-1].x", "b[i].x > b[i-1].x + 1"])
def test_compared_neighbours_are_compiled(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(1)
    rows = [
        {"type": choose.choice("ABBC"), "ts": choose.randrange(4000) * 1000, "x": choose.randrange(90)}
        for _ in range(700)
    ]
    pattern = tocsin.pattern(
        f"PATTERN SEQ(A a, B+ b, C c) WHERE {where} WITHIN 400 MILLISECONDS RETURN COUNT(*) AS n, SUM(b.x) AS s"
    )
    wanted = pattern.match(by_type(rows), engine="local").to_pylist()
    monkeypatch.setattr(trend_count, "FEW_EVENTS", 0)
    monkeypatch.setattr(task, "MANY_NEIGHBOURS", 20)
    assert pattern.match(by_type(rows), engine="local").to_pylist() == wanted


def test_neighbours_are_counted_under_every_policy_and_for_extremes() -> None:
    text = "PATTERN SEQ(A a, B+ b) WHERE b[i].x > b[i-1].x {} WITHIN 9 SECONDS {} RETURN COUNT(*) AS n{}"
    chosen = [
        "trend" in dict(weighed(tocsin.pattern(text.format(*rest)).query))
        for rest in (
            ("", "", ""),
            ("", "", ", MIN(b.x) AS m"),
            ("PARTITION BY k", "SEMANTICS partition-contiguous", ""),
        )
    ]
    assert chosen == [True, True, True]


def many(spark: SparkSession, number: int) -> DataFrame:
    return spark.range(number).selectExpr("'B' AS type", "id * 1000000 AS ts", "id AS x")


@pytest.mark.spark
def test_more_matches_than_can_be_listed_are_counted(spark: SparkSession) -> None:
    pattern = tocsin.pattern("PATTERN B+ b RETURN DIGITS(COUNT(*)) AS n, DIGITS(SUM(b.x)) AS s, MAX(b.x) AS m")
    (row,) = pattern.match(many(spark, 500)).collect()
    assert int(row.n) == 2**500 - 1
    assert int(row.s) == sum(range(500)) * 2**499
    assert row.m == 499
    assert "trend" in str(pattern.explain(many(spark, 500)))


@pytest.mark.spark
def test_a_count_beyond_64_bits_fails_and_says_how_to_have_it(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"(?s)NUMBER_TOO_LARGE.*DIGITS\(COUNT\(\*\)\)"):
        tocsin.pattern("PATTERN B+ b RETURN COUNT(*) AS n").match(many(spark, 100)).collect()


def test_a_sum_of_enumerated_matches_beyond_64_bits_fails_too() -> None:
    rows = {"A": [{"ts": place, "x": 2**62} for place in range(4)]}
    text = "PATTERN AND(A a, A b) RETURN COUNT(*) AS n, SUM(a.x) AS s"
    with pytest.raises(errors.NumberTooLargeError):
        tocsin.pattern(text).match(rows, engine="local")


REFUSED = {
    "a row per match": "PATTERN SEQ(A a, B+ b) RETURN COUNT(b) AS n",
    "no sequences": "PATTERN AND(A a, B b) RETURN COUNT(*) AS n",
    "a policy": "PATTERN A+ a AFTER MATCH SKIP TO NEXT RETURN COUNT(*) AS n",
    "compares events": "PATTERN SEQ(A a, B b) WHERE a.x < b.x RETURN COUNT(*) AS n",
    "no neighbours": "PATTERN A+ a WHERE a[i].x > a[i-2].x RETURN COUNT(*) AS n",
    "under `next`": "PATTERN A+ a WHERE a[i].x > a[i-1].x SEMANTICS next RETURN COUNT(*) AS n",
    "of whole matches": "PATTERN A+ a RETURN COUNT(*) AS n, STDDEV(a.x) AS s",
    "GROUP BY": "PATTERN SEQ(A a, B b) RETURN b.x AS x, COUNT(*) AS n GROUP BY b.x",
}


@pytest.mark.parametrize(("reason", "text"), REFUSED.items(), ids=REFUSED.keys())
def test_what_must_be_built_is_said(reason: str, text: str) -> None:
    refusal = TREND.refuses(tocsin.pattern(text).query)
    assert refusal is not None
    assert reason in refusal.message
