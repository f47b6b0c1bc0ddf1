"""Compact rows of a stream: one for each event that matches end at, given once, with the matches of the reference."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.engines.test_compact import acel, bare, listed
from tests.fitting import formula_cases
from tests.streaming.queries import FAR, Folder, observed
from tests.streaming.queries import settings as spark_settings
from tests.streaming.support import Live, arrivals, cut
from tests.streaming.test_on_spark import busy, by_type
from tests.streaming.test_stepping import SCHEMA, busy_streams

import tocsin
from tocsin import errors, reference
from tocsin.engines.worker.compacted import COLUMNS, refused_compact
from tocsin.language.acel import ast, print_query
from tocsin.testing import assert_same_rows
from tocsin.testing.streams import TYPES, Streams

TEXTS = [
    "(A ; B+ ; C) WITHIN 7 us",
    "(A : B) PARTITION BY k WITHIN 6 us",
    "AGG m[s <- sum(B.x)](A ; B+) FILTER m[s > 1] WITHIN 6 us",
]


def assert_compact(pattern: tocsin.Pattern, rows: Streams, seed: int) -> None:
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 3, 20])
    tables = {kind: pa.Table.from_pylist(rows[kind], SCHEMA) for kind in TYPES}
    live = Live(pattern, tables, lateness_us=lateness, eager=chance.random() < 0.5, strategy="compact")
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    found = live.compact()
    whole = pattern.match(tables, engine="local", form="compact").to_pylist()
    told = [(row["end"], row["start"], row["matches"], sorted(row["starts"])) for row in found]
    assert sorted(told) == sorted((row["end"], row["start"], row["matches"], sorted(row["starts"])) for row in whole)
    assert_same_rows(map(bare, listed(pattern, found)), map(bare, reference.evaluate(pattern.query, rows)))
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@settings(max_examples=40)
@given(rows=busy_streams, seed=st.integers(0, 2**32))
def test_any_cut_and_any_order_give_one_row_for_each_end(text: str, rows: Streams, seed: int) -> None:
    assert_compact(acel(text), rows, seed)


@settings(max_examples=80)
@given(**formula_cases(max_events=7), seed=st.integers(0, 2**32))
def test_random_formulas(query: ast.Query, rows: Streams, seed: int) -> None:
    pattern = acel(print_query(query))
    assume(pattern.query.window_us is not None and refused_compact(pattern.query) is None)
    assert_compact(pattern, rows, seed)


def run(folder: Folder, pattern: tocsin.Pattern, **options: Any) -> list[dict[str, Any]]:
    """What each micro-batch told."""
    return observed(folder.run(pattern.match(folder.read(), form="compact", lateness="3 us", **options)))


@pytest.mark.parametrize(
    ("text", "store"),
    [(TEXTS[0], "rocksdb"), pytest.param(TEXTS[1], "default", marks=pytest.mark.slow), (TEXTS[2], "rocksdb")],
)
def test_spark_gives_them_over_a_restart(spark: SparkSession, tmp_path: Path, text: str, store: str) -> None:
    pattern = acel(text)
    chance = random.Random(text)
    rows = busy(chance, 30)
    order = arrivals([row["ts"] for row in rows], 3, chance)
    with spark_settings(spark, store=store, partitions=2):
        folder = Folder(spark, tmp_path)
        for part, end in ((order[:12], []), (order[12:], [{"type": "clock", "ts": FAR}])):
            folder.add([rows[place] for place in part[:7]])
            folder.add([rows[place] for place in part[7:]] + end)
            run(folder, pattern)
        found = folder.written()
    assert found
    assert_same_rows(map(bare, listed(pattern, found)), map(bare, reference.evaluate(pattern.query, by_type(rows))))


def test_a_row_comes_when_time_has_passed_its_end_within_the_bound(spark: SparkSession, tmp_path: Path) -> None:
    """However many matches it holds; late events are a row of their own, and matches cannot go on from its state."""
    pattern = acel("(A ; B+ ; C) WITHIN 100 us")
    rates: dict[str, Any] = {"rates": {"A": "1 per 100 us", "B": "1/us", "C": "1 per 100 us"}}
    with spark_settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 0}, *({"type": "B", "ts": at} for at in range(1, 71)), {"type": "C", "ts": 75}])
        folder.add([{"type": "clock", "ts": 78}])
        folder.add([{"type": "clock", "ts": 79}, {"type": "B", "ts": 40}])
        told = run(folder, pattern, late=True, **rates)
        found = folder.written()
        with pytest.raises(StreamingQueryException, match="STATE_MISMATCH"):
            folder.add([{"type": "clock", "ts": 80}])
            folder.run(pattern.match(folder.read(), lateness="3 us", late=True, emit="watermark"))
    assert [one["matches"] for one in told][:3] == [0, 0, 1]
    assert [one["late"] for one in told][:3] == [0, 0, 1]
    assert max(one["remembered"] for one in told) == 72 <= told[0]["bound"]
    (row,) = [row for row in found if row["late"] is None]
    assert int(row["matches"]) == 2**70 - 1
    late = next(row for row in found if row["late"])
    assert '"ts":40' in late["late"]
    assert {name: value for name, value in late.items() if name != "late"} == dict.fromkeys(COLUMNS)


def test_what_would_be_kept_for_ever_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    stream = Folder(spark, tmp_path).read()
    with pytest.raises(errors.UnboundedPatternError):
        acel("A ; B").match(stream, form="compact", lateness="3 us")
    with pytest.raises(errors.UnsupportedError, match="made by an automaton"):
        acel("(A ; B) WITHIN 5 us").match(stream, form="compact", lateness="3 us", strategy="trend")
    with pytest.raises(errors.InvalidOptionError, match="How late may events"):
        acel("(A ; B) WITHIN 5 us").match(stream, form="compact")
