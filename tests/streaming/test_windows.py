"""Aggregates over all matches of a stream, told for windows: those of the reference, each window once."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.fitting import cases
from tests.streaming import queries as on_spark
from tests.streaming.queries import Folder, observed
from tests.streaming.support import Live, arrivals, cut
from tests.streaming.texts import COUNTED, COUNTED_FORMULAS, FOUND

import tocsin
from tocsin import errors, reference
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.plan.strategies import TREND, refused_on_streams
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import EVERYTHING, SECOND, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})
events = st.fixed_dictionaries(
    {
        "ts": st.integers(-3, 14),
        "k": st.sampled_from(["p", "q", None]),
        "x": st.sampled_from([0, 1, 2, None]),
        "v": st.just(0.5),
    }
)
busy_streams = st.fixed_dictionaries({kind: st.lists(events, max_size=6) for kind in "ABC"})


def live(pattern: tocsin.Pattern, rows: Streams, seed: int, *, counts: bool) -> Live:
    """A shard to which everything has come, in some order and cut, and for which time has gone on."""
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 3, 20])
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    shard = Live(pattern, tables, lateness_us=lateness, eager=True, strategy="trend" if counts else "auto")
    for batch in cut(arrivals(shard.ts, lateness, chance), chance):
        shard.take(batch)
    shard.end()
    return shard


@pytest.mark.parametrize("text", [*COUNTED, *FOUND])
@settings(max_examples=60)
@given(rows=busy_streams, seed=st.integers(0, 2**32))
def test_every_window_is_told_once_and_as_in_a_batch(text: str, rows: Streams, seed: int) -> None:
    pattern = tocsin.pattern(text)
    assert (TREND.refuses(pattern.query) is None) == (text in COUNTED)
    shard = live(pattern, rows, seed, counts=text in COUNTED)
    assert_same_rows(shard.rows(), reference.evaluate(pattern, rows))
    assert shard.late == 0
    assert shard.state.rows is None or shard.state.rows.num_rows == 0


@pytest.mark.parametrize("text", COUNTED_FORMULAS)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@settings(max_examples=40)
@given(rows=busy_streams, seed=st.integers(0, 2**32))
def test_formulas_are_counted_under_the_names_that_they_have(text: str, rows: Streams, seed: int) -> None:
    pattern = tocsin.pattern(text, language="acel")
    shard = live(pattern, rows, seed, counts=True)
    assert_same_rows(shard.rows(), reference.evaluate(pattern, rows))
    assert shard.state.rows is None or shard.state.rows.num_rows == 0


@settings(max_examples=200)
@given(
    **cases(EVERYTHING, max_events=9),
    every=st.sampled_from([1, SECOND, 3 * SECOND]),
    seed=st.integers(0, 2**32),
    counts=st.booleans(),
)
def test_any_query_counts_its_matches(query: ast.Query, every: int, rows: Streams, seed: int, counts: bool) -> None:
    counted = replace(
        query,
        within=query.within or ast.Window(2 * SECOND),
        returns=(ast.Column(ex.Aggregate("count", None), "n"),),
        group_by=(),
        having=None,
        every=ast.Window(every),
        timeouts=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        pattern = tocsin.pattern(counted)
    assume(refused_on_streams(pattern.query, "auto") is None)
    shard = live(pattern, rows, seed, counts=counts)
    assert_same_rows(shard.rows(), reference.evaluate(pattern, rows))


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 5 us "
        "RETURN a.x, COUNT(*) AS n, AVG(b.v) AS v GROUP BY a.x EVERY 4 us",
        "PATTERN SEQ(A a, B b) WHERE a.x <= b.x PARTITION BY k WITHIN 12 us "
        "RETURN FIRST(b.x) AS f, LAST(a.ts) AS l, COUNT(*) AS n EVERY 3 us",
    ],
    ids=["counted", "found"],
)
def test_shards_are_added_up_on_spark(spark: SparkSession, tmp_path: Path, text: str) -> None:
    """Keys are spread over two shards, and groups are of both; an event that is too late is shown, and not counted."""
    pattern, chance = tocsin.pattern(text), random.Random(7)
    rows = [
        {"type": chance.choice("AABBC"), "ts": ts, "k": chance.choice("pqrs"), "x": chance.choice([1, 2]), "v": 0.5}
        for ts in range(40)
    ]
    with on_spark.settings(spark, partitions=2):
        folder = Folder(spark, tmp_path / "live")
        for begin in range(0, 40, 17):
            folder.add(rows[begin : begin + 17])
        folder.add([{"type": "A", "ts": 3, "k": "p", "x": 1, "v": 0.5}, {"type": "Z", "ts": on_spark.FAR}])
        query = folder.run(pattern.match(folder.read(), lateness="0 seconds", late=True))
        written = folder.written()
    told = [{name: value for name, value in row.items() if name != "late"} for row in written if row["late"] is None]
    by_type = {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}
    assert len(told) > 3
    assert_same_rows(told, reference.evaluate(pattern, by_type))
    assert [row["window_start"] for row in written if row["late"] is not None] == [None]
    assert observed(query)[-1]["remembered"] == 0


def test_a_stream_without_windows_is_refused(spark: SparkSession) -> None:
    events = spark.readStream.format("rate").load().selectExpr("'A' AS type", "timestamp AS ts")
    with pytest.raises(errors.UnsupportedError, match="EVERY 10 MINUTES"):
        tocsin.pattern("PATTERN A a WITHIN 1 MINUTE RETURN COUNT(*)").match(events, lateness="1 second")
