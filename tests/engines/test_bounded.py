"""Distances that bound a pattern without WITHIN make a window, and the same matches with it as without."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import SparkSession
from tests.engines.support import light_settings, plain
from tests.streaming import texts
from tests.streaming.test_stepping import SCHEMA, busy_streams

import tocsin
from tocsin import errors, reference
from tocsin.engines.spark.engine import prepare
from tocsin.optimizer.rules import Facts, infer_window
from tocsin.options import Options
from tocsin.testing.strategies import Streams

SECONDS = [text.replace(" us", " SECONDS") for text in texts.UNWINDOWED]
STRATEGIES = ("auto", "kernel", "automaton", "aggregate")


def windowed(text: str) -> int | None:
    query = tocsin.pattern(text).query
    return infer_window(query, Facts(time="ts", integer_time=True)).window_us


@pytest.mark.parametrize(
    ("text", "window_us"),
    [
        (SECONDS[0], 5_000_000),
        (SECONDS[1], 7_000_000),
        (texts.UNWINDOWED[0], 1_000_000),  # slices of a few microseconds would be as many as events
        ("PATTERN A a", None),
        ("PATTERN OR(A a, B b)", None),
        ("PATTERN SEQ(A a, B b)", None),
        ("PATTERN SEQ(A a, B+ b) WHERE b.ts - a.ts < INTERVAL 5 SECONDS", 5_000_000),
        ("PATTERN OR(SEQ(A a, B b), C c) WHERE c.x > 1", None),
        ("PATTERN SEQ(A a, B b, C c) WHERE b.ts - a.ts < INTERVAL 5 SECONDS", None),
        (f"{SECONDS[0]} SEMANTICS next", None),
        (f"{SECONDS[0]} WITHIN 2 SECONDS", 2_000_000),
    ],
)
def test_the_window_is_as_long_as_the_distances_allow(text: str, window_us: int | None) -> None:
    assert windowed(text) == window_us


@pytest.mark.parametrize("text", texts.UNWINDOWED)
@given(rows=busy_streams)
def test_an_aggregate_finds_in_it_what_the_reference_finds(text: str, rows: Streams) -> None:
    pattern = tocsin.pattern(text)
    tables = {kind: pa.Table.from_pylist(rows[kind], SCHEMA) for kind in "ABC"}
    found = pattern.match(tables, engine="local", strategy="aggregate").column("match_id").to_pylist()
    assert sorted(found) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))


@pytest.mark.parametrize("text", SECONDS)
def test_spark_finds_the_same_in_slices_of_it(spark: SparkSession, text: str) -> None:
    pattern = tocsin.pattern(text)
    rows: dict[str, list[dict[str, Any]]] = {
        kind: [{"ts": at * 1_000_000, "k": "pq"[at // 7 % 2], "x": at % 3, "v": 0.5} for at in range(place, 60, step)]
        for kind, place, step in (("A", 0, 3), ("B", 1, 2), ("C", 2, 4))
    }
    expected = sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    assert len(expected) > 10
    with light_settings(spark, partitions=3) as session:
        frames = {kind: session.createDataFrame(pa.Table.from_pylist(rows[kind], SCHEMA)) for kind in "ABC"}
        for strategy in STRATEGIES:
            found = [plain(row)["match_id"] for row in pattern.match(frames, strategy=strategy).collect()]
            assert sorted(found) == expected, strategy
        made = prepare(pattern.query, frames, Options(strategy="kernel", slice_us=7_000_000))
        assert sorted(plain(row)["match_id"] for row in made.matches().collect()) == expected
        assert "time slices" in made.plan.describe()
        told = str(pattern.explain(frames, strategy="aggregate"))
    assert "infer_window: distances between all events of a match make a window" in told
    assert "aggregate, T-CER" in told
    assert "infer_window" in str(pattern.explain(strategy="aggregate"))


def test_what_no_distance_bounds_is_no_aggregate(spark: SparkSession) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE b.x > a.x")
    tables = {kind: SCHEMA.empty_table() for kind in "AB"}
    with pytest.raises(errors.UnsupportedError, match="Without WITHIN no window holds a match"):
        pattern.match(tables, engine="local", strategy="aggregate")
