"""The clustered plan: input that lies in order of time is searched where it lies."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings, physical_plan
from tests.fitting import cases

import tocsin
from tocsin import errors, reference
from tocsin.engines.spark.edges import crosses, near_edges, overlapping, runs
from tocsin.engines.spark.engine import prepare
from tocsin.kernels.model import Bag, Matches
from tocsin.language import ast
from tocsin.optimizer.statistics import Statistics
from tocsin.options import Options
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import ATTRIBUTES, Features, Streams

SHARED_SESSION = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
CLAIMED = Features(iteration=True, returns=True, unbounded=False, most_events=3)
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in {**ATTRIBUTES, "type": "string", "id": "bigint"}.items())
SECOND = 1_000_000
SEQ = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"
Row = dict[str, Any]


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without what costs a five-event query most of its time."""
    with light_settings(spark, partitions=2) as session:
        yield session


def partitioned(spark: SparkSession, parts: list[list[Row]]) -> DataFrame:
    """One DataFrame with these partitions."""
    names = [field.split()[0] for field in SCHEMA.split(", ")]
    listed = [[tuple(row[name] for name in names) for row in part] for part in parts]
    placed = spark.sparkContext.parallelize(listed, len(listed)).flatMap(lambda part: part)
    return spark.createDataFrame(placed, SCHEMA, verifySchema=False)


def in_order(rows: Streams, *, with_ids: bool) -> list[Row]:
    """All events by time, those without a time anywhere; equal events have one id, or none."""
    listed = [{**row, "type": kind, "id": None} for kind in rows for row in rows[kind]]
    listed.sort(key=lambda row: (row["ts"] is None, row["ts"] or 0))
    return [{**row, "id": number} for number, row in enumerate(listed)] if with_ids else listed


def check(spark: SparkSession, query: ast.Query, events: list[Row], parts: list[list[Row]], *, id: str | None) -> None:
    """The plan reports what the reference reports, whatever the partitions, with slices as narrow as can be."""
    pattern = compiled(query)
    frame = partitioned(spark, parts)
    prepared = prepare(pattern.query, frame, Options(id=id, strategy="clustered", slice_us=1))
    found = [row.asDict(recursive=True) for row in prepared.matches().collect()]
    by_type = {kind: [row for row in events if row["type"] == kind] for kind in "ABC"}
    wanted = reference.evaluate(pattern, by_type)
    assert_same_rows(found, [{**row, "start": row["start"], "end": row["end"]} for row in wanted])
    identities = sorted(row["match_id"] for row in found)
    if id is None:
        assert identities == sorted(row["match_id"] for row in wanted)
    else:  # the reference knows no ids
        assert len(set(identities)) == len(wanted)


def cut(events: list[Row], places: list[int]) -> list[list[Row]]:
    """The events in pieces; a cut may lie inside an instant, and pieces may be empty."""
    ends = [0, *sorted(place % (len(events) + 1) for place in places), len(events)]
    return [events[begin:end] for begin, end in pairwise(ends)]


CUTS = st.sampled_from([0, 1, 1, 2, 4]).flatmap(lambda size: st.lists(st.integers(0, 40), min_size=size, max_size=size))


@settings(max_examples=10, suppress_health_check=SHARED_SESSION)
@given(**cases(CLAIMED, max_events=10), cuts=CUTS, with_ids=st.booleans())
def test_the_plan_reports_what_the_reference_reports(
    light: SparkSession, query: ast.Query, rows: Streams, cuts: list[int], with_ids: bool
) -> None:
    events = in_order(rows, with_ids=with_ids)
    check(light, query, events, cut(events, cuts), id="id" if with_ids else None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=150, suppress_health_check=SHARED_SESSION)
@given(**cases(CLAIMED, max_events=12), cuts=CUTS, with_ids=st.booleans())
def test_the_plan_reports_what_the_reference_reports_on_many_queries(
    light: SparkSession, query: ast.Query, rows: Streams, cuts: list[int], with_ids: bool
) -> None:
    events = in_order(rows, with_ids=with_ids)
    check(light, query, events, cut(events, cuts), id="id" if with_ids else None)


@settings(max_examples=10, suppress_health_check=SHARED_SESSION)
@given(**cases(CLAIMED, max_events=10), homes=st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_any_partitions_give_the_result_or_the_error(
    light: SparkSession, query: ast.Query, rows: Streams, homes: list[int]
) -> None:
    events = in_order(rows, with_ids=False)
    parts = [[row for place, row in enumerate(events) if homes[place % 10] == part] for part in range(3)]
    try:
        check(light, query, events, parts, id=None)
    except PySparkException as problem:
        assert "[NOT_TIME_CLUSTERED]" in str(problem)


# --- by hand --------------------------------------------------------------------------------------


def event(kind: str, second: float, number: int = 0, key: str = "p") -> Row:
    return {"ts": int(second * SECOND), "k": key, "x": number, "v": None, "type": kind, "id": None}


def pairs(frame: DataFrame) -> list[tuple[float, float]]:
    return sorted((row["a"]["ts"] / SECOND, row["b"]["ts"] / SECOND) for row in frame.collect())


def test_files_of_different_days_in_one_partition_do_not_overlap_those_between_them(light: SparkSession) -> None:
    first = [event("A", 0), event("B", 9), event("A", 2000), event("B", 2009)]
    second = [event("B", 2011), event("A", 1000), event("B", 1001), event("A", 3000)]
    found = tocsin.pattern(SEQ).match(partitioned(light, [first, second]), strategy="clustered")
    assert pairs(found) == [(0, 9), (1000, 1001), (2000, 2009)]
    crossing = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 12 SECONDS")
    found = crossing.match(partitioned(light, [first, second]), strategy="clustered")
    assert pairs(found) == [(0, 9), (1000, 1001), (2000, 2009), (2000, 2011)]


def test_partitions_may_overlap_by_a_window_and_no_more(light: SparkSession) -> None:
    def run(overlap: float) -> list[tuple[float, float]]:
        first = [event("A", second) for second in range(0, 101, 5)]
        second = [event("B", 100 - overlap + second) for second in range(0, 101, 5)]
        return pairs(tocsin.pattern(SEQ).match(partitioned(light, [first, second]), strategy="clustered"))

    expected = {(a, b) for a in range(0, 101, 5) for b in range(90, 191, 5) if 0 < b - a < 10}
    assert run(10) == sorted(expected)
    with pytest.raises(PySparkException, match="NOT_TIME_CLUSTERED") as caught:
        run(10.000001)
    assert "Hint: leave out" in str(caught.value)


def test_keys_keep_partitions_apart_across_edges(light: SparkSession) -> None:
    first = [event("A", 1, key="p"), event("A", 2, key="q")]
    second = [event("B", 3, key="q"), event("B", 4, key="p")]
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 SECONDS")
    assert pairs(pattern.match(partitioned(light, [first, second]), strategy="clustered")) == [(1, 4), (2, 3)]


def test_equal_matches_of_different_partitions_have_different_ids(light: SparkSession) -> None:
    parts = [[event("A", 1), event("B", 2)], [event("B", 2)], [event("B", 2), event("B", 2)]]
    found = tocsin.pattern(SEQ).match(partitioned(light, parts), strategy="clustered").collect()
    events = [row for part in parts for row in part]
    wanted = reference.evaluate(
        tocsin.pattern(SEQ), {kind: [row for row in events if row["type"] == kind] for kind in "AB"}
    )
    assert len({row["match_id"] for row in found}) == 4
    assert {row["match_id"] for row in found} == {row["match_id"] for row in wanted}


def test_time_stamps_and_files_are_read_where_they_lie(spark: SparkSession, tmp_path: Path) -> None:
    text = "PATTERN SEQ(A a, B+ b) WITHIN 10 SECONDS RETURN a.at AS first, b"
    for number in range(4):
        events = spark.range(number * 50, number * 50 + 50).selectExpr(
            "timestamp_seconds(id) AS at", "IF(id % 5 = 0, 'A', IF(id % 7 = 0, 'B', 'C')) AS type", "'é' AS note"
        )
        events.coalesce(1).write.parquet(str(tmp_path / f"{number}"))
    frame = spark.read.parquet(*(str(tmp_path / f"{number}") for number in (2, 0, 3, 1)))
    found, wanted = (
        sorted(map(str, tocsin.pattern(text).match(frame, time="at", strategy=strategy).collect()))
        for strategy in ("clustered", "kernel")
    )
    assert found == wanted != []


def test_only_matches_and_rows_near_edges_are_shuffled(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    frame = partitioned(spark, [[event("A", 1)], [event("B", 2)]])
    plan = physical_plan(tocsin.pattern(SEQ).match(frame, id="id", strategy="clustered"), capsys)
    steps = [line.split()[-2] for line in plan.split("\n\n")[0].splitlines()[1:]]
    shuffled = steps.index("Exchange")
    assert steps.count("Exchange") == 1
    assert "MapInArrow" in steps[:shuffled]
    assert "MapInArrow" in steps[shuffled:]


# --- claims ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("PATTERN SEQ(A a, B b)", "without WITHIN"),
        ("PATTERN SEQ(A a, NOT C c, B b) WITHIN 1 SECOND", "absence"),
        (f"{SEQ} SEMANTICS next", "SEMANTICS next"),
        (f"{SEQ} AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH SKIP"),
        (f"{SEQ} OUTPUT first per start", "OUTPUT first per start"),
        (f"{SEQ} RETURN COUNT(*)", "over all matches"),
    ],
)
def test_what_it_does_not_run_is_refused(spark: SparkSession, text: str, words: str) -> None:
    frame = partitioned(spark, [[]])
    with pytest.raises(errors.UnsupportedError, match=words.replace("(", r"\(")):
        compiled(text).match(frame, strategy="clustered")


def test_several_inputs_are_refused(spark: SparkSession) -> None:
    inputs = {kind: partitioned(spark, [[]]) for kind in "AB"}
    with pytest.raises(errors.UnsupportedError, match="several DataFrames"):
        tocsin.pattern(SEQ).match(inputs, strategy="clustered")


def test_no_events_are_no_matches(spark: SparkSession) -> None:
    assert tocsin.pattern(SEQ).match(partitioned(spark, [[], []]), strategy="clustered").collect() == []


def test_auto_takes_it_for_input_that_is_known_to_lie_in_order(spark: SparkSession) -> None:
    frame = partitioned(spark, [[]])
    query = compiled("PATTERN SEQ(A a, B b, C c) WITHIN 100 MILLISECONDS").query
    known = Statistics.of(
        {"A": 1_000_000, "B": 1_000_000, "C": 1_000_000}, duration=100_000 * SECOND, clustered=10_000 * SECOND
    )
    assert prepare(query, frame, Options(statistics=known)).plan.strategy.name == "clustered"
    assert prepare(query, frame).plan.strategy.name == "kernel"


# --- the parts ------------------------------------------------------------------------------------


def test_of_many_gaps_the_longest_divide() -> None:
    lows, highs = runs(np.array([0, 20, 60, 61, 100]), 10, most_cuts=2)
    assert (lows.tolist(), highs.tolist()) == ([0, 60, 100], [20, 61, 100])


def test_times_at_the_ends_of_64_bits_are_near_edges() -> None:
    times = np.array([-(2**63), 0, 2**63 - 1])
    lows, highs = runs(times, 2**62)
    assert (lows.tolist(), highs.tolist()) == (times.tolist(), times.tolist())
    assert near_edges(times, lows, highs, 2**62).all()
    assert near_edges(times, times[:1], times[-1:], 5).tolist() == [True, False, True]


RUNS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 3)), max_size=6)


@given(found=RUNS, slack=st.integers(0, 4))
def test_overlaps_are_those_of_all_pairs(found: list[tuple[int, int, int]], slack: int) -> None:
    given_ = [(first, first + length, task) for first, length, task in found]
    expected = any(
        r[2] != s[2] and r[1] - s[0] > slack and s[1] - r[0] > slack
        for place, r in enumerate(given_)
        for s in given_[place + 1 :]
    )
    both = overlapping(given_, slack)
    assert (both is not None) == expected
    if both is not None:
        assert both[0][2] != both[1][2]


def test_a_match_crosses_when_its_rows_have_two_origins() -> None:
    origins = np.array([0, 0, 1, 1])
    bag = Bag(np.array([0, 2, 2, 4, 5]), np.array([0, 1, 1, 2, 3]))
    nothing = np.zeros(4, np.int64)
    found = Matches(nothing, nothing, {"a": np.array([0, 2, -1, 0]), "b": bag})
    assert crosses(found, origins).tolist() == [False, False, True, True]
