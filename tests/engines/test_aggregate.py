"""`strategy="aggregate"` reports what the reference reports for everything it claims; the rest it refuses, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.candidates import TooManyCandidatesError, few_candidates
from tests.engines.support import light_settings
from tests.engines.test_acel import acel, assert_equal, tables_of, texts
from tests.engines.test_equals_reference import (
    LAYOUTS,
    PARTITIONS,
    Feed,
    compiled,
    rows_of,
)
from tests.fitting import drawn_for, queries_with_streams

import tocsin
from tocsin import errors, reference
from tocsin.engines.local import match as local
from tocsin.engines.spark.engine import prepare
from tocsin.kernels.runs.register_automaton import RunKernel
from tocsin.language import ast
from tocsin.options import Options
from tocsin.plan.strategies import AGGREGATE, AUTOMATON
from tocsin.plan.strategies.automaton import most_events
from tocsin.testing.strategies import LANGUAGE, TIMEOUTS, Streams
from tocsin.testing.streams import streams

PLAIN = replace(LANGUAGE, policies=False, absence=False, unbounded=False)  # what is most likely to have an automaton
QUERIES = st.one_of(queries_with_streams(features, max_events=8) for features in (PLAIN, LANGUAGE, TIMEOUTS))
Asked = tuple[tocsin.Pattern, Streams]


def operator_of(pattern: tocsin.Pattern) -> str:
    """Which operator runs a pattern."""
    if pattern.query.window_us is None:
        return "R-CER"
    return "A" if AUTOMATON.refuses(pattern.query) is not None else "T-CER"


def check(pattern: tocsin.Pattern, rows: Streams, found: list[dict[str, Any]], counted: Counter[str]) -> None:
    try:
        with few_candidates():
            expected = reference.evaluate(pattern.query, rows)  # without a warning of ties
    except TooManyCandidatesError:
        counted["left out"] += 1
        return
    assert_equal(pattern, found, expected)
    counted[operator_of(pattern)] += 1
    counted[f"{operator_of(pattern)} with matches"] += bool(expected)


# --- in this process ------------------------------------------------------------------------------


def found_here(pattern: tocsin.Pattern, rows: Streams) -> list[dict[str, Any]]:
    assume(AGGREGATE.refuses(pattern.query) is None)
    try:
        # Few of iterations in iterations have so many matches, and no reference would list those in any time.
        options: dict[str, Any] = {"strategy": "aggregate", "max_matches_per_start": 5_000}
        return local.match(pattern.query, tables_of(rows), Options(**options)).to_pylist()
    except errors.TooManyMatchesError:
        assume(False)
    except errors.ContradictoryDistancesError:
        assume(False)
    except errors.TypeMismatchError:
        assume(False)  # a variable of two kinds of events that have an attribute in common, but not its type
    except errors.UnsupportedError as refused:
        assert "cannot compute on numbers" in refused.message
        assume(False)
    raise AssertionError


def run_queries(examples: int) -> Counter[str]:
    counted: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(case=QUERIES)
    def patterns(case: tuple[ast.Query, list[Streams]]) -> None:
        query, (rows,) = case
        pattern = compiled(query)
        check(pattern, rows, found_here(pattern, rows), counted)

    patterns()
    return counted


def run_formulas(examples: int, max_depth: int) -> Counter[str]:
    counted: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(**drawn_for(texts(max_depth=max_depth), lambda text: acel(text).query, max_events=6, named=("text", "rows")))
    def formulas(text: str, rows: Streams) -> None:
        pattern = acel(text)
        check(pattern, rows, found_here(pattern, rows), counted)

    formulas()
    return counted


@pytest.mark.long
def test_random_patterns_have_the_matches_of_the_reference() -> None:
    counted = run_queries(330)
    assert counted["T-CER with matches"] >= 10
    assert counted["A with matches"] >= 40
    assert counted["R-CER"] >= 3


@pytest.mark.long
def test_random_formulas_have_the_matches_of_the_reference() -> None:
    counted = run_formulas(200, max_depth=3)
    assert counted["T-CER with matches"] >= 10
    assert counted["R-CER with matches"] >= 10


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_random_patterns_and_formulas_too() -> None:
    counted = run_queries(4_000) + run_formulas(3_000, max_depth=4)
    assert min(counted["T-CER"], counted["A"], counted["R-CER"]) >= 100
    assert counted["left out"] <= 50


CONTIGUOUS = [
    "PATTERN SEQ(A a, B b) SEMANTICS contiguous",
    "PATTERN SEQ(A a, B{1,2} b, OR(A c, C c)) SEMANTICS partition-contiguous PARTITION BY k",
    "PATTERN SEQ(A a, B? b, C{2} c) WHERE b.x >= a.x SEMANTICS contiguous",
    "PATTERN A a WHERE a.x > 0 RETURN COUNT(*) AS n",
]


@pytest.mark.parametrize("text", CONTIGUOUS)
@settings(max_examples=60)
@given(rows=streams(max_events=9))
def test_what_has_no_window_is_folded_where_matches_have_so_many_events(text: str, rows: Streams) -> None:
    pattern = compiled(text)
    assert operator_of(pattern) == "R-CER"
    check(pattern, rows, found_here(pattern, rows), Counter())


# --- on Spark -------------------------------------------------------------------------------------


def run_on_spark(spark: SparkSession, folder: Path, examples: int) -> Counter[str]:
    counted: Counter[str] = Counter()
    queries = QUERIES.map(lambda case: (compiled(case[0]), case[1][0]))
    formulas = st.tuples(texts().map(acel), streams(max_events=6))
    # Few random ones have no window, and then a fixed number of events: these always have.
    without_window = st.tuples(st.sampled_from(CONTIGUOUS).map(compiled), streams(max_events=9))
    asked = st.one_of(queries, queries, formulas, without_window)

    # A failure is shown as it was found: every step of shrinking would be several Spark jobs.
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
    @given(asked=asked, layout=LAYOUTS, partitions=st.sampled_from(PARTITIONS))
    def patterns(asked: Asked, layout: str, partitions: str) -> None:
        pattern, rows = asked
        assume(AGGREGATE.refuses(pattern.query) is None)
        feed = Feed(spark, folder / "stream", layout)
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        try:
            frame = prepare(pattern.query, feed.frames(), Options(strategy="aggregate")).matches()
        except (errors.TypeMismatchError, errors.ContradictoryDistancesError):
            return
        except errors.UnsupportedError as refused:
            assert "cannot compute on numbers" in refused.message
            return
        seen = feed.write(rows)
        check(pattern, seen, rows_of(frame), counted)

    with light_settings(spark):
        patterns()
    return counted


@pytest.mark.timeout(600)
def test_spark_has_the_matches_of_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    counted = run_on_spark(spark, tmp_path, 18)
    assert counted["T-CER"] >= 2
    assert counted["A"] >= 4


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_spark_has_the_matches_of_the_reference_in_hundreds_of_cases(spark: SparkSession, tmp_path: Path) -> None:
    counted = run_on_spark(spark, tmp_path, 600)
    assert min(counted["T-CER"], counted["A"], counted["R-CER"]) >= 20


ROWS = [(second * 1_000_000, "ab"[second % 2], second % 7) for second in range(120)]
TEXTS = {
    "T-CER": "PATTERN SEQ(A a, B+ b) PARTITION BY k WHERE b.x > a.x WITHIN 8 SECONDS",
    "A": "PATTERN SEQ(A a, NOT C c, B b) PARTITION BY k WHERE c.x = b.x WITHIN 8 SECONDS",
    "R-CER": "PATTERN SEQ(A a, B b, C c) SEMANTICS contiguous",
}


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, partitions=3) as session:
        yield session


@pytest.mark.parametrize(("operator", "text"), TEXTS.items())
def test_many_windows_in_several_partitions(light: SparkSession, operator: str, text: str) -> None:
    pattern = compiled(text)
    rows = {
        kind: [dict(zip(("ts", "k", "x"), row, strict=True)) for row in ROWS[number::3]]
        for number, kind in enumerate("ABC")
    }
    frames = {kind: light.createDataFrame(pa.Table.from_pylist(own)) for kind, own in rows.items()}
    assert operator_of(pattern) == operator
    found = rows_of(pattern.match(frames, strategy="aggregate"))
    expected = reference.evaluate(pattern, rows)
    assert_equal(pattern, found, expected)
    assert len(expected) >= 15


def test_explain_tells_the_windows_and_what_is_folded(light: SparkSession) -> None:
    frames = {kind: light.createDataFrame([(1, 1)], "ts long, x long") for kind in "AB"}
    pattern = compiled("PATTERN SEQ(A a, B b) WHERE b.x > 5 WITHIN 10 SECONDS")
    plan = str(pattern.explain(frames, strategy="aggregate"))
    assert "aggregate, T-CER" in plan
    assert "windows of WS = 20 s every WA = 10 s, since a match lies within D = 10 s" in plan
    assert "scan B  where x > 5" in plan


# --- what is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "PATTERN SEQ(A a, NOT C c, B b) PARTITION BY k WITHIN 10 SECONDS",
            [
                "aggregate, A: one shuffle to overlapping windows, each of which is searched by itself",
                "  shuffle by key k and windows of WS = 20 s every WA = 10 s, since a match lies within D = 10 s",
                "  f_U collects the events of a window, f_O searches them",
                "  report what the next window does not hold too",
            ],
        ),
        (
            "PATTERN SEQ(A a, B b) SEMANTICS contiguous",
            [
                "aggregate, R-CER: one shuffle, then events are folded one by one",
                "  every other event is read too: contiguity counts it",
                "  one task: no key and no window splits the events",
                "  a match has at most 2 events: of all others nothing is remembered",
            ],
        ),
        (
            "PATTERN SEQ(A a, B b) AFTER MATCH SKIP PAST LAST EVENT WITHIN 1 MINUTE",
            ["aggregate  chosen  not possible: AFTER MATCH SKIP PAST LAST depends on all matches before, and a window"],
        ),
    ],
)
def test_explain_names_the_operator(text: str, lines: list[str]) -> None:
    plan = str(compiled(text).explain(strategy="aggregate"))
    assert [line for line in lines if line not in plan] == []


GROWS = "Without WITHIN no window holds a match, and what a fold over all events would have to remember grows with them"
REFUSED = {
    "PATTERN SEQ(A a, B b) WITHIN 1 MINUTE AFTER MATCH SKIP TO NEXT EVENT": (
        "AFTER MATCH SKIP TO NEXT depends on all matches before, and a window knows none of those that others report",
        "`OUTPUT first` chooses among the matches of one start, which one window has; or leave out",
        "at mine:1:39",
    ),
    "PATTERN SEQ(A a, B b)": (
        GROWS,
        "write WITHIN, or leave out",
        "at mine:1:9",
    ),
    "PATTERN SEQ(A a, B+ b) SEMANTICS contiguous": (
        GROWS,
        "write WITHIN, or leave out",
        "at mine:1:9",
    ),
    "PATTERN AND(A a, B b)": (
        "Without WITHIN no window holds a match, and no automaton says what a fold over all events would have to "
        "remember",
        "write WITHIN, or leave out",
        "at mine:1:9",
    ),
    "PATTERN SEQ(NOT C c, A a) WITHIN 36000000 DAYS": (
        "A window as long as all of time is held by no other",
        "leave out",
        "at mine:1:27",
    ),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_a_refusal_says_why_where_and_what_else(text: str, said: tuple[str, str, str]) -> None:
    message, instead, place = said
    pattern = tocsin.pattern(text, name="mine")
    with pytest.raises(errors.UnsupportedError) as raised:
        pattern.match({kind: [{"ts": 1}] for kind in "ABC"}, engine="local", strategy="aggregate")
    assert raised.value.message == f"{message}: this does not run with the strategy `aggregate`."
    assert raised.value.hint == f'{instead} `strategy="aggregate"`.'
    assert place in str(raised.value)
    assert tocsin.pattern(text).match({kind: [{"ts": 1}] for kind in "ABC"}, engine="local").num_rows <= 1


def test_what_no_engine_runs_is_refused_for_its_own_reason() -> None:
    pattern = tocsin.pattern("AGG y[n <- count(A)](A) RETURN FIRST(y.n) AS n, COUNT(*) AS m", language="acel")
    refusal = AGGREGATE.refuses(pattern.query)
    assert refusal is not None
    assert refusal.message.startswith("FIRST over all matches, of events that PROJECT or AGG has made")


def test_auto_never_chooses_it() -> None:
    for text in TEXTS.values():
        strategy = str(compiled(text).explain()).partition("== Strategy ==\n")[2]
        assert "aggregate" not in strategy


def test_how_many_events_a_match_of_a_query_can_have() -> None:
    assert [most_events(compiled(text).query) for text in CONTIGUOUS] == [2, 4, 4, 1]
    assert most_events(compiled("PATTERN AND(A a, B b)").query) is None


def test_a_formula_is_folded_by_the_same_step(light: SparkSession) -> None:
    rows = {kind: [{"ts": ts, "x": 1} for ts in times] for kind, times in {"A": [1, 5], "B": [2, 8]}.items()}
    pattern = acel("A : B WITHIN 1 SECOND")
    frames = {kind: light.createDataFrame(pa.Table.from_pylist(own)) for kind, own in rows.items()}
    made = prepare(pattern.query, frames, Options(strategy="aggregate"))
    assert isinstance(made.plan.search, RunKernel)
    expected = reference.evaluate(pattern, rows)
    assert [(row["start"], row["end"]) for row in expected] == [(1, 2), (5, 8)]
    assert_equal(pattern, rows_of(made.matches()), expected)
