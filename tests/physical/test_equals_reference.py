"""Spark reports what the reference reports: on every case it claims, and on random queries and streams."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.physical.support import light_settings

import tocsin
from tocsin import errors, reference
from tocsin.language import ast
from tocsin.physical.joins.claims import unsupported
from tocsin.testing import Case, assert_same_rows, load_cases
from tocsin.testing.strategies import ATTRIBUTES, JOINS, TYPES, Streams, queries, streams

NAMES = {bool: "boolean", int: "bigint", float: "double", str: "string"}


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


CASES = [
    case
    for case in load_cases(Path(__file__).parents[1] / "cases")
    if case.error is None and unsupported(compiled(case.pattern).query) is None
]


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def with_interval(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference's rows with the columns that Spark adds to RETURN."""
    return [{**row, "start": row["start"], "end": row["end"]} for row in rows]


def case_frames(spark: SparkSession, case: Case, pattern: tocsin.Pattern) -> dict[str, DataFrame]:
    """The case's events, each type with the attributes the format of the cases promises."""
    rows = case.inputs()
    anywhere = column_types([row for events in rows.values() for row in events])
    frames = {}
    for kind in {*rows, *event_types(pattern)}:
        types = column_types(rows[kind]) if rows.get(kind) else {"id": "string", "ts": "bigint"} | anywhere
        schema = ", ".join(f"`{name}` {type_name}" for name, type_name in types.items())
        values = [
            tuple(float(row[name]) if types[name] == "double" and row[name] is not None else row[name] for name in row)
            for row in rows.get(kind, [])
        ]
        frames[kind] = spark.createDataFrame(values, schema)
    return frames


def column_types(rows: list[dict[str, Any]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            found = NAMES[type(value)] if value is not None else None
            known = types.get(name)
            types[name] = found if known in (None, "", found) or (known, found) == ("bigint", "double") else known
            types[name] = types[name] or known or ""
    return {name: type_name or "bigint" for name, type_name in types.items()}


def event_types(pattern: tocsin.Pattern) -> set[str]:
    return {event.type for event in ast.events_in(pattern.tree.pattern)}


def test_spark_claims_a_good_part_of_the_cases() -> None:
    assert len(CASES) >= 60


def check(spark: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: int) -> None:
    pattern = compiled(query)
    schema = ", ".join(f"{name} {kind}" for name, kind in ATTRIBUTES.items())
    frames = {
        kind: spark.createDataFrame([tuple(row[name] for name in ATTRIBUTES) for row in rows[kind]], schema)
        for kind in TYPES
    }
    expected_rows = rows
    inputs: Any = {kind: frame.repartition(parts) for kind, frame in frames.items()}
    if layout == "one frame":
        typed = [frame.withColumn("type", F.lit(kind)) for kind, frame in frames.items()]
        inputs = typed[0].union(typed[1]).union(typed[2]).repartition(parts)
        expected_rows = {kind: [{**row, "type": kind} for row in rows[kind]] for kind in rows}
    expected = reference.evaluate(pattern, expected_rows)
    try:
        found = rows_of(pattern.match(inputs))
    except errors.ContradictoryDistancesError:
        found = []  # refused, because no stream has a match
    assert_same_rows(found, with_interval(expected))
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)
    assert len({row["match_id"] for row in found}) == len(found)


LAYOUTS = st.sampled_from(["frame per type", "one frame"])
PARTITIONS = st.sampled_from([1, 2, 7])
SHARED_SESSION = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=60, suppress_health_check=SHARED_SESSION)
@given(query=queries(JOINS), rows=streams(), layout=LAYOUTS, parts=PARTITIONS)
def test_spark_equals_the_reference(
    spark: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: int
) -> None:
    check(spark, query, rows, layout, parts)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=500, suppress_health_check=SHARED_SESSION)
@given(query=queries(JOINS), rows=streams(max_events=14), layout=LAYOUTS, parts=PARTITIONS)
def test_spark_equals_the_reference_on_many_queries(
    spark: SparkSession, query: ast.Query, rows: Streams, layout: str, parts: int
) -> None:
    check(spark, query, rows, layout, parts)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    """The cases run light; the random queries above run with all that Spark has."""
    with light_settings(spark) as session:
        yield session


@pytest.mark.parametrize("case", CASES, ids=str)
def test_spark_gives_the_matches_of_the_case(light: SparkSession, case: Case) -> None:
    pattern = compiled(case.pattern)
    found = rows_of(pattern.match(case_frames(light, case, pattern), tie=case.tie))
    assert case.differences(found) == []
