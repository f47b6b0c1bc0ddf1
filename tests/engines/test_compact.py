"""Compact rows hold the matches that the reference finds: as many as they say, and the same ones when enumerated."""

from __future__ import annotations

import datetime as dt
import itertools
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.fitting import formula_cases

import tocsin
from tocsin import errors, reference
from tocsin.engines.spark.engine import prepare
from tocsin.engines.worker.compacted import refused_compact
from tocsin.language.acel import ast, print_query
from tocsin.options import Options
from tocsin.testing import assert_same_rows
from tocsin.testing.streams import TYPES, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})
ROWS = {
    "Login": [{"ts": 1, "n": 1}, {"ts": 2, "n": 5}],
    "Try": [{"ts": at, "n": at} for at in range(3, 7)],
    "Lock": [{"ts": 9, "n": 0}, {"ts": 10, "n": 0}],
}
FORMULA = "AGG m[s <- sum(t.n)]((Login AS l ; (Try AS t)+ ; Lock AS k)) WITHIN 1 HOUR"


def acel(text: str) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(text, language="acel")


def listed(pattern: tocsin.Pattern, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What compact rows enumerate; each says how many that is."""
    found = []
    for row in rows:
        own = list(pattern.enumerate(row))
        assert len(own) == int(row["matches"]) > 0
        assert {one["end"] for one in own} == {row["end"]}
        assert min(one["start"] for one in own) == row["start"]
        found += own
    return found


def test_they_hold_what_the_reference_finds() -> None:
    pattern = acel(FORMULA)
    rows = pattern.match(ROWS, engine="local", form="compact").to_pylist()
    assert [row["end"] for row in rows] == [9, 10]
    assert_same_rows(listed(pattern, rows), reference.evaluate(pattern, ROWS))


def test_they_count_what_nobody_could_list() -> None:
    many = {**ROWS, "Try": [{"ts": at, "n": at} for at in range(3, 603)], "Lock": [{"ts": 900, "n": 0}]}
    pattern = acel(FORMULA)
    (row,) = pattern.match(many, engine="local", form="compact").to_pylist()
    assert int(row["matches"]) == 2 * (2**600 - 1)
    assert len(row["graph"]) < 50_000
    # Nobody needs all of them to see some.
    some = list(itertools.islice(pattern.enumerate(row), 100))
    assert all(one["m"]["s"] == sum(event["n"] for event in one["t"]) for one in some)
    assert len({repr(one) for one in some}) == 100


def test_return_is_computed_where_they_are_enumerated() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(Login l, Try+ t) WITHIN 1 HOUR RETURN l.n, COUNT(t) AS tries, t.n AS each")
    rows = pattern.match(ROWS, engine="local", form="compact").to_pylist()
    found = reference.evaluate(pattern, ROWS)
    assert_same_rows(listed(pattern, rows), [{**row, "start": row["start"], "end": row["end"]} for row in found])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A ; B RETURN COUNT(*) AS n", "Aggregation over all matches has no compact form"),
        ("A+ ; B RETURN COUNT(A) AS n HAVING n > 1", "HAVING has no compact form"),
        ("PROJECT[x](A AS x ; B+ ; A AS x)", "Two ways through this pattern may bind the same events"),
        ("PROJECT[x](A AS x OR B)", "may bind no event at all"),
    ],
)
def test_what_has_no_compact_form(text: str, problem: str) -> None:
    with pytest.raises(errors.UnsupportedError, match=problem):
        acel(text).match({"A": [{"ts": 1}], "B": [{"ts": 2}]}, engine="local", form="compact")


def test_a_form_that_is_none() -> None:
    with pytest.raises(errors.InvalidOptionError, match="`form='compcat'` is none of"):
        acel(FORMULA).match(ROWS, engine="local", form="compcat")


def test_a_row_of_another_pattern_is_refused() -> None:
    row = acel(FORMULA).match(ROWS, engine="local", form="compact").to_pylist()[0]
    with pytest.raises(errors.InvalidInputError, match="of another pattern"):
        list(acel("Login ; Lock").enumerate(row))
    with pytest.raises(errors.InvalidInputError, match="holds no graph"):
        list(acel(FORMULA).enumerate({**row, "graph": b"nothing"}))
    with pytest.raises(errors.InvalidInputError, match="no column `graph`"):
        list(acel(FORMULA).enumerate({name: value for name, value in row.items() if name != "graph"}))


def test_an_empty_input_has_no_rows() -> None:
    schema = pa.schema({"ts": pa.int64(), "n": pa.int64()})
    nothing = {name: schema.empty_table() for name in ROWS}
    found = acel(FORMULA).match(nothing, engine="local", form="compact")
    assert found.num_rows == 0 and found.column_names == ["start", "end", "matches", "starts", "events", "graph"]


def bare(value: Any) -> Any:
    """A row without what is NULL: whether an event has an attribute as NULL or not at all makes no difference here."""
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if inner is not None}
    return [bare(one) for one in value] if isinstance(value, list | tuple) else value


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(**formula_cases(max_events=7), unit=st.sampled_from(["us", "ns"]))
def test_random_formulas(query: ast.Query, rows: Streams, unit: str) -> None:
    pattern = acel(print_query(query))
    assume(refused_compact(pattern.query) is None)
    tables = {name: pa.Table.from_pylist(rows[name], schema=SCHEMA) for name in TYPES}
    found = pattern.match(tables, engine="local", form="compact", time_unit=unit).to_pylist()
    expected = reference.evaluate(pattern.query, rows, time_unit=unit)
    assert_same_rows(map(bare, listed(pattern, found)), map(bare, expected))


# --- units of time (R42) --------------------------------------------------------------------------

BREAKS = """
    PATTERN SEQ(Login l, Try+ t)
    WHERE t.ts - l.ts < 4 SECONDS AND t.due - l.due > 1 SECOND AND t[i].ts - t[i-1].ts <= 1 SECOND
    WITHIN 1 MINUTE
    RETURN l.ts, COUNT(t) AS tries, t[last].ts - l.ts >= 3 SECONDS AS is_long, l.due + 1 SECOND AS due
"""
TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def timed(unit: str) -> dict[str, list[dict[str, Any]]]:
    """Integer times of a unit beside a timestamp."""
    began = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    return {
        name: [{"ts": at * TICKS[unit], "due": began + dt.timedelta(seconds=2 * at)} for at in places]
        for name, places in {"Login": (0, 5), "Try": range(1, 9)}.items()
    }


def found_by_the_reference(pattern: tocsin.Pattern, unit: str) -> list[dict[str, Any]]:
    found = reference.evaluate(pattern, timed(unit), time_unit=unit)
    return [{**row, "start": row["start"], "end": row["end"]} for row in found]


@pytest.mark.parametrize("unit", TICKS)
def test_durations_are_of_the_unit_that_the_row_was_made_with(unit: str) -> None:
    pattern = tocsin.pattern(BREAKS)
    found = pattern.match(timed(unit), engine="local", form="compact", time_unit=unit).to_pylist()
    expected = found_by_the_reference(pattern, unit)
    assert {row["is_long"] for row in expected} == {True, False}
    assert_same_rows(listed(pattern, found), expected)


def test_a_row_of_another_unit_and_pattern_is_refused() -> None:
    (row, *_) = tocsin.pattern(BREAKS).match(timed("s"), engine="local", form="compact", time_unit="s").to_pylist()
    with pytest.raises(errors.InvalidInputError, match="of another pattern"):
        list(tocsin.pattern("PATTERN SEQ(Login l, Try+ t) WITHIN 10 MS").enumerate(row))


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_spark_gives_rows_of_the_unit(spark: SparkSession, unit: str) -> None:
    pattern, rows = tocsin.pattern(BREAKS), timed(unit)
    with light_settings(spark) as session:
        frames = {
            name: session.createDataFrame([tuple(row.values()) for row in events], "ts bigint, due timestamp")
            for name, events in rows.items()
        }
        found = pattern.match(frames, form="compact", time_unit=unit).toArrow().to_pylist()
    assert_same_rows(listed(pattern, found), found_by_the_reference(pattern, unit))


TEXTS = (
    FORMULA.replace("1 HOUR", "11 MICROSECONDS"),
    "Login ; Try+ WITHIN 5 MICROSECONDS",
    "(Login AS l : Try@+) AS all PARTITION BY k WITHIN 9 MICROSECONDS",
    "AGG m[hi <- max(Try.n)](Try+) FILTER m[hi > 4] WITHIN 3 MICROSECONDS",
)


@pytest.mark.parametrize("text", TEXTS)
def test_spark_gives_the_same_rows(spark: SparkSession, text: str) -> None:
    rows = {
        name: [{"ts": at, "n": at % 7, "k": at % 2} for at in places]
        for name, places in {"Login": range(0, 30, 5), "Try": range(1, 30), "Lock": range(4, 30, 9)}.items()
    }
    pattern = acel(text)
    with light_settings(spark, partitions=3) as session:
        frames = {
            name: session.createDataFrame([tuple(row.values()) for row in events], "ts bigint, n bigint, k bigint")
            for name, events in rows.items()
        }
        # Slices as narrow as the window allows: matches of one end that began in different ones are still one row.
        made = prepare(pattern.query, frames, Options(slice_us=1)).compact()
        assert made.columns == ["start", "end", "matches", "starts", "events", "graph"]
        found = [row.asDict(recursive=True) for row in made.collect()]
        public = pattern.match(frames, form="compact").count()
    assert public == len(found)
    ends = [(row["end"], max(row["starts"]) if "PARTITION" in text else None) for row in found]
    assert len(set(ends)) == len(ends)
    assert_same_rows(map(bare, listed(pattern, found)), map(bare, reference.evaluate(pattern.query, rows)))
