"""Joins report what the reference reports: absences, iterations, any order, prefilters, sliding windows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.fitting import cases, drawn_for, meaning

import tocsin
from tocsin import errors, reference
from tocsin.analysis.temporal import network
from tocsin.engines.spark.inputs import resolve
from tocsin.engines.spark.joins.counts import counted
from tocsin.engines.spark.joins.frames import matches
from tocsin.language import ast
from tocsin.plan.joins.build import plan
from tocsin.plan.joins.refusals import can_count, unsupported
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import ATTRIBUTES, TYPES, Features, Streams, queries, streams

ABSENCES = Features(absence=True, returns=True, most_events=3)
ITERATIONS = Features(iteration=True, absence=True, returns=True, aggregates=True, most_events=2)
SHARED_SESSION = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
]


@dataclass(frozen=True)
class Choice:
    """What a planner may choose: none of it changes a result."""

    turned: int = 0
    rare: int | None = None
    sliding: bool = False

    def options(self, names: tuple[str, ...]) -> dict[str, Any]:
        turned = self.turned % len(names)
        return {
            "order": (lambda found: found[turned:] + found[:turned]) if turned else None,
            "prefilter": None if self.rare is None else names[self.rare % len(names)],
            "sliding": self.sliding,
        }


CHOICES = st.one_of(
    st.just(Choice()),
    st.builds(
        Choice,
        turned=st.integers(0, 3),
        rare=st.one_of(st.none(), st.integers(0, 2)),
        sliding=st.booleans(),
    ),
)


def events(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """A DataFrame that needs no Python worker, which takes longer than the query."""
    arrow = {"bigint": pa.int64(), "string": pa.string(), "double": pa.float64()}
    schema = pa.schema([(name, arrow[kind]) for name, kind in ATTRIBUTES.items()])
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def joined_rows(spark: SparkSession, pattern: tocsin.Pattern, rows: Streams, choice: Choice) -> list[dict[str, Any]]:
    frames = {kind: events(spark, rows[kind]) for kind in TYPES}
    query = pattern.query
    try:
        distances = network(query, "ts", integer_time=True)
    except errors.ContradictoryDistancesError:
        return []
    options = choice.options(tuple(query.variables))
    made = plan(query, distances.closure, **options)
    found = matches(query, made, resolve(frames, TYPES))
    return [row.asDict(recursive=True) for row in found.collect()]


def check(spark: SparkSession, query: ast.Query, rows: Streams, choice: Choice) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        pattern = tocsin.pattern(query)
    assume(unsupported(pattern.query, sliding=choice.sliding) is None)
    found = joined_rows(spark, pattern, rows, choice)
    expected = reference.evaluate(pattern, rows)
    assert_same_rows(found, [{**row, "start": row["start"], "end": row["end"]} for row in expected])
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark) as session:
        yield session


@settings(max_examples=20, suppress_health_check=SHARED_SESSION)
@given(**cases(ABSENCES), choice=CHOICES)
def test_absences_as_anti_joins_equal_the_reference(
    light: SparkSession, query: ast.Query, rows: Streams, choice: Choice
) -> None:
    check(light, query, rows, choice)


@settings(max_examples=20, suppress_health_check=SHARED_SESSION)
@given(**cases(ITERATIONS), choice=CHOICES)
def test_iterations_as_self_joins_equal_the_reference(
    light: SparkSession, query: ast.Query, rows: Streams, choice: Choice
) -> None:
    check(light, query, rows, choice)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=400, suppress_health_check=SHARED_SESSION)
@given(
    **drawn_for(st.one_of(queries(ABSENCES), queries(ITERATIONS)), meaning, max_events=14),
    choice=CHOICES,
)
def test_joins_equal_the_reference_on_many_queries(
    light: SparkSession, query: ast.Query, rows: Streams, choice: Choice
) -> None:
    check(light, query, rows, choice)


# --- counts ---------------------------------------------------------------------------------------


def check_count(spark: SparkSession, text: str, rows: Streams) -> None:
    pattern = tocsin.pattern(text)
    assert can_count(pattern.query)
    found = counted(pattern.query, resolve({"A": events(spark, rows["A"])}, ["A"]))
    assert [row.asDict() for row in found.collect()] == reference.evaluate(pattern, rows)


@settings(max_examples=25, suppress_health_check=SHARED_SESSION)
@given(
    copies=st.sampled_from(["{2}", "{3}", "{1,3}", "{0,4}", "{5}"]),
    clauses=st.sampled_from(["", "PARTITION BY k", "WHERE [k]", "WHERE b.x > 0", "WHERE b[i].x != b.v AND [k]"]),
    window=st.sampled_from(["", "WITHIN 1 US", "WITHIN 2 US", "WITHIN 1 SECOND", "WITHIN 5 SECONDS"]),
    rows=streams(types=["A"], max_events=12),
)
def test_counting_an_iteration_by_window_aggregates_equals_counting_its_matches(
    light: SparkSession, copies: str, clauses: str, window: str, rows: Streams
) -> None:
    check_count(light, f"PATTERN A{copies} b {clauses} {window} RETURN COUNT(*) AS n", rows)


def test_equal_instants_in_many_slices_are_counted_once(light: SparkSession) -> None:
    row = {"k": "p", "x": 1, "v": 1.0}
    rows = [{"ts": second * 1_000_000, **row} for second in range(-40, 40) for _ in range(1 + second % 3)]
    check_count(light, "PATTERN A{3} b WITHIN 2001 MILLISECONDS RETURN COUNT(*) AS n, COUNT(*) AS m", {"A": rows})


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A+ b RETURN COUNT(*)",
        "PATTERN A{6} b RETURN COUNT(*)",
        "PATTERN A{2} b",
        "PATTERN A{2} b RETURN COUNT(*), SUM(b.x)",
        "PATTERN A{2} b WHERE b[i].x > b[i-1].x RETURN COUNT(*)",
        "PATTERN A{2} b WHERE SUM(b.x) > 1 RETURN COUNT(*)",
        "PATTERN A{2} b RETURN COUNT(*) HAVING COUNT(*) > 1",
        "PATTERN SEQ(A{2} b, NOT A n) WITHIN 1 SECOND RETURN COUNT(*)",
        "PATTERN SEQ(A{2} b, B c) RETURN COUNT(*)",
        "PATTERN A{2} b SEMANTICS next RETURN COUNT(*)",
        "PATTERN A{2} b RETURN b[1].x, COUNT(*) GROUP BY b[1].x",
    ],
)
def test_a_count_that_is_more_than_the_closed_form_is_not_claimed(text: str) -> None:
    assert not can_count(tocsin.pattern(text).query)


def test_a_query_that_window_aggregates_cannot_count_is_refused(light: SparkSession) -> None:
    events = light.createDataFrame([], "ts bigint, type string")
    with pytest.raises(errors.UnsupportedError):
        tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 1 SECOND").match(events, strategy="count")


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WITHIN 10 US",
        "PATTERN AND(A a, B b) WHERE b.ts - a.ts BETWEEN INTERVAL 1 US AND INTERVAL 9 US WITHIN 20 US",
    ],
)
def test_a_distance_is_exact_to_the_microsecond(spark: SparkSession, text: str) -> None:
    a, b = ([(0, 1)], [(9, 1), (10, 2)])
    frames = {name: spark.createDataFrame(rows, "ts bigint, x bigint") for name, rows in (("A", a), ("B", b))}
    found = tocsin.pattern(text).match(frames, strategy="join").collect()
    assert [row.b.x for row in found] == [1]
