"""`strategy="aggregate"` on streams: windows of what is remembered, and without a window the last events of a key."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.fitting import cases
from tests.streaming import texts
from tests.streaming.queries import Folder, settings
from tests.streaming.support import Live, arrivals, cut
from tests.streaming.test_on_spark import assert_as_the_batch, busy
from tests.streaming.test_stepping import SCHEMA, busy_streams, compiled, runs_on_streams

import tocsin
from tocsin import errors, reference
from tocsin.language import ast
from tocsin.plan.strategies import AGGREGATE
from tocsin.testing.strategies import EVERYTHING, Streams

# No time bounds these, and their last events are all that matters.
FOR_EVER = {
    "PATTERN A a WHERE a.x > 0": 1,
    "PATTERN SEQ(A a, B b) SEMANTICS contiguous": 2,
    "PATTERN SEQ(A a, B{1,2} b, C c) SEMANTICS contiguous": 4,
    "PATTERN SEQ(A a, OR(B b, C c)) WHERE a.x <= b.x SEMANTICS partition-contiguous PARTITION BY k": 2,
}
FORMULAS = {
    "A : B : C": 3,
    "(A : B) OR (B : A : C) FILTER A[x > 0]": 3,
    "AGG y[s <- sum(B.x)](A : B) PARTITION BY k": 2,
}


def lived(pattern: tocsin.Pattern, rows: Streams, seed: int, eager: bool) -> Live:
    """A stream of these rows in any order and any cut, at its end."""
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 3, 20])
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=eager, strategy="aggregate")
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    assert sorted(live.ids) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    assert live.late == 0
    return live


@examples(max_examples=100)
@given(**cases(EVERYTHING, max_events=9), seed=st.integers(0, 2**32), eager=st.booleans())
def test_any_cut_and_any_order_give_the_reference(query: ast.Query, rows: Streams, seed: int, eager: bool) -> None:
    pattern = compiled(query)
    assume(runs_on_streams(pattern) and AGGREGATE.refuses(pattern.query) is None)
    live = lived(pattern, rows, seed, eager)
    assert live.state.rows is None or live.state.rows.num_rows == 0


@pytest.mark.parametrize("text", [*texts.ANY, *texts.ABSENT, *texts.SELECTED, *texts.REPORTED, *texts.TIMED])
@examples(max_examples=10)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_windows_of_a_stream_hold_all_that_decides(text: str, rows: Streams, seed: int, eager: bool) -> None:
    live = lived(compiled(text), rows, seed, eager)
    assert live.state.rows is None or live.state.rows.num_rows == 0


@pytest.mark.parametrize("text", texts.ACEL)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@examples(max_examples=20)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_formulas_are_folded_in_windows(text: str, rows: Streams, seed: int, eager: bool) -> None:
    lived(tocsin.pattern(text, language="acel"), rows, seed, eager)


@pytest.mark.parametrize(("text", "most"), [*FOR_EVER.items(), *FORMULAS.items()])
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")
@examples(max_examples=30)
@given(rows=busy_streams, seed=st.integers(0, 2**32))
def test_where_no_time_bounds_a_match_its_last_events_are_remembered(
    text: str, most: int, rows: Streams, seed: int
) -> None:
    pattern = tocsin.pattern(text, language="sase" if text in FOR_EVER else "acel")
    live = lived(pattern, rows, seed, eager=True)
    times_of: dict[object, list[int]] = defaultdict(list)
    if live.state.rows is not None:
        layout, kept = live.step.layout, live.state.rows
        times = kept.column(layout.time).to_pylist()
        keys = kept.column(layout.keys[0]).to_pylist() if layout.keys else [None] * len(times)
        for key, ts in zip(keys, times, strict=True):
            times_of[key].append(ts)
    # The last n − 1 of every key, and others of the same instant as the first of these.
    assert all(len([ts for ts in times if ts > min(times)]) < most - 1 for times in times_of.values())


def test_the_state_of_a_fold_does_not_grow_with_the_stream() -> None:
    chance = random.Random(3)
    rows: Streams = {kind: [] for kind in "ABC"}
    for ts in range(200):
        kind = "ABC"[ts % 3] if chance.random() < 0.8 else chance.choice("ABC")
        rows[kind].append({"ts": ts, "k": "pq"[ts // 3 % 2], "x": 1, "v": 0.5})
    pattern = compiled("PATTERN SEQ(A a, B b, C c) SEMANTICS partition-contiguous PARTITION BY k")
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=4, eager=True, strategy="aggregate")
    order = sorted(range(len(live.ts)), key=lambda row: int(live.ts[row]))
    sizes = []
    for at in range(0, 200, 10):
        live.take(order[at : at + 10])
        sizes.append(0 if live.state.rows is None else live.state.rows.num_rows)
    live.end()
    assert sorted(live.ids) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    assert len(live.ids) > 10
    assert max(sizes) <= 2 * 2 + 5  # two events of two keys, and those of the lateness


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.x <> c.x PARTITION BY k WITHIN 9 us",
        pytest.param("PATTERN SEQ(A a, NOT B b, C c) WHERE b.x = a.x WITHIN 7 us", marks=pytest.mark.slow),
        "PATTERN SEQ(A a, B{1,2} b) SEMANTICS partition-contiguous PARTITION BY k",
    ],
)
def test_a_stream_gives_the_matches_of_the_batch(spark: SparkSession, tmp_path: Path, text: str) -> None:
    pattern = tocsin.pattern(text)
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        assert_as_the_batch(folder, pattern, busy(random.Random(text), 40), strategy="aggregate")
        plan = str(pattern.explain(folder.read(), lateness="3 us", strategy="aggregate"))
    assert ("remembers the last 2 events of a partition" in plan) == (pattern.query.window_us is None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B b)", "Without WITHIN no window holds a match"),
        ("PATTERN SEQ(A a, B b) AFTER MATCH SKIP PAST LAST EVENT WITHIN 5 us", "AFTER MATCH SKIP PAST LAST depends on"),
        ("PATTERN SEQ(A a, B b) SEMANTICS contiguous RETURN COUNT(*) AS n EVERY 4 us", "EVERY without WITHIN is never"),
    ],
)
def test_a_refusal_comes_before_anything_starts(spark: SparkSession, tmp_path: Path, text: str, message: str) -> None:
    stream = Folder(spark, tmp_path).read()
    with pytest.raises(errors.UnsupportedError) as raised:
        tocsin.pattern(text).match(stream, lateness="3 us", strategy="aggregate")
    assert raised.value.message.startswith(message)
    assert raised.value.hint
    assert "at <pattern>:1:" in str(raised.value)
