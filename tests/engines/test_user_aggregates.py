"""User-defined aggregates in WHERE, RETURN and HAVING, per match and over all matches, on every engine."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.streaming.queries import FAR, Folder
from tests.streaming.queries import settings as stream_settings

import tocsin
from tocsin import errors, reference
from tocsin.testing import assert_same_rows

OWN = {
    "product": tocsin.Monoid(zero=1, combine=operator.mul),
    "rms": tocsin.Monoid(
        zero=(0.0, 0),
        lift=lambda x: (float(x * x), 1),
        combine=lambda left, right: (left[0] + right[0], left[1] + right[1]),
        finish=lambda total: (total[0] / total[1]) ** 0.5 if total[1] else None,
        gives="double",
    ),
    "letters": tocsin.Monoid(
        zero=frozenset(), lift=lambda x: frozenset([x]), combine=operator.or_, finish=lambda s: "".join(sorted(s))
    ),
}
PER_MATCH = [
    "PATTERN SEQ(A+ a, B b) WITHIN 9 SECONDS RETURN PRODUCT(a.x) AS p, RMS(b.x) + SUM(a.x) AS r, LETTERS(a.k) AS k",
    "PATTERN SEQ(A+ a, B b) WITHIN 9 SECONDS SEMANTICS next HAVING PRODUCT(a.x) > 2",
    "PATTERN SEQ(A+ a, B b) WHERE PRODUCT(a.x) > 1 WITHIN 9 SECONDS AFTER MATCH SKIP PAST LAST",
    "PATTERN AND(A a, B b) WHERE PRODUCT(b.x) >= a.x WITHIN 9 SECONDS RETURN a.x, RMS(b.x) AS r",
    "PATTERN SEQ(A{2,} a, NOT B n, B b) PARTITION BY k WITHIN 9 SECONDS "
    "RETURN PRODUCT(DISTINCT a.x) AS p, LETTERS(a.k) AS k HAVING RMS(a.x) > 1 OR COUNT(a) > 2",
    "PATTERN SEQ(A? a, B b) WITHIN 9 SECONDS RETURN PRODUCT(a.x) AS p, COALESCE(RMS(a.x), -1.0) AS r",
]
OVER_ALL = [
    "PATTERN SEQ(A+ a, B b) WITHIN 9 SECONDS RETURN b.k, COUNT(*) AS n, RMS(a.x) AS r, LETTERS(a.k) AS l GROUP BY b.k",
    "PATTERN SEQ(A+ a, B b) WITHIN 9 SECONDS RETURN COUNT(*) AS n, RMS(b.x) * 2 AS r HAVING RMS(a.x) < 3 OR n = 0",
    "PATTERN SEQ(A a, B b) WITHIN 9 SECONDS RETURN PRODUCT(DISTINCT a.x) AS p, COUNT(*) AS n, SUM(b.x) AS s",
]
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64()})
ROWS = {
    "A": [{"ts": at * 1_000_000, "k": "pqp"[at % 3], "x": (None, 1, 2, 3)[at % 4]} for at in range(6)],
    "B": [{"ts": 4_500_000, "k": "p", "x": None}, {"ts": 7_000_000, "k": "q", "x": 2}],
}
events = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(0, 9).map(lambda second: second * 1_000_000),
            "k": st.sampled_from(["p", "q", None]),
            "x": st.sampled_from([1, 2, 3, None]),
        }
    ),
    max_size=5,
)


def compiled(text: str) -> tocsin.Pattern:
    return tocsin.pattern(text, aggregates=OWN)


def compare(found: list[dict[str, Any]], expected: list[Any]) -> None:
    """The same rows, and the same ids; rows of the reference have no other columns than those of RETURN."""
    assert len(found) == len(expected)
    assert_same_rows([{name: row[name] for name in next(iter(expected))} for row in found], expected)
    if expected and hasattr(expected[0], "match_id"):
        assert sorted(row["match_id"] for row in found) == sorted(row.match_id for row in expected)


@pytest.mark.parametrize("text", [*PER_MATCH, *OVER_ALL])
@settings(max_examples=40)
@given(a=events, b=events)
def test_the_local_engine_equals_the_reference(text: str, a: list[Any], b: list[Any]) -> None:
    pattern, rows = compiled(text), {"A": a, "B": b}
    tables = {kind: pa.Table.from_pylist(some, SCHEMA) for kind, some in rows.items()}
    compare(pattern.match(tables, engine="local").to_pylist(), reference.evaluate(pattern, rows))


@pytest.mark.parametrize("text", [*PER_MATCH, *OVER_ALL])
def test_spark_equals_the_reference(spark: SparkSession, text: str) -> None:
    pattern = compiled(text)
    frames = {kind: spark.createDataFrame(pa.Table.from_pylist(some, SCHEMA)) for kind, some in ROWS.items()}
    expected = reference.evaluate(pattern, ROWS)
    assert expected
    compare([row.asDict(recursive=True) for row in pattern.match(frames).collect()], expected)


@pytest.mark.parametrize(
    "text", [PER_MATCH[0], PER_MATCH[1], OVER_ALL[0].replace(" GROUP BY b.k", " EVERY 3 SECONDS GROUP BY b.k")]
)
def test_a_stream_equals_the_reference(spark: SparkSession, tmp_path: Path, text: str) -> None:
    pattern, inputs = compiled(text), {}
    with stream_settings(spark) as session:
        for kind, rows in ROWS.items():
            inputs[kind] = Folder(session, tmp_path / kind, "ts bigint, k string, x bigint")
            for part in (rows[:3], rows[3:], []):
                inputs[kind].add(part)
        beats = Folder(session, tmp_path / "beats", "ts bigint")
        for times in ([], [], [{"ts": FAR}]):
            beats.add(times)
        found = pattern.match(
            {kind: each.read() for kind, each in inputs.items()}, heartbeats=beats.read(), lateness="1 HOUR"
        )
        beats.run(found)
        compare(beats.written(), reference.evaluate(pattern, ROWS))


def test_late_events_pass_a_having_that_python_decides(spark: SparkSession, tmp_path: Path) -> None:
    pattern = compiled("PATTERN SEQ(A a, B b) WITHIN 9 SECONDS RETURN RMS(a.x) AS r HAVING PRODUCT(b.x) > 1")
    with stream_settings(spark) as session:
        a, b = (Folder(session, tmp_path / kind, "ts bigint, x bigint") for kind in "AB")
        for early, late in (([{"ts": 20_000_000, "x": 1}], [{"ts": 21_000_000, "x": 3}]), ([{"ts": 1, "x": 1}], [])):
            a.add(early)
            b.add(late)
        b.run(pattern.match({"A": a.read(), "B": b.read()}, late=True, lateness="1 SECOND"))
        found = b.written()
    assert [row["r"] for row in found if row["late"] is None] == [1.0]
    assert sum(row["late"] is not None for row in found) == 1


def test_a_value_of_another_type_than_declared_is_refused() -> None:
    half = tocsin.Monoid(zero=0, combine=operator.add, finish=lambda total: total / 2)
    pattern = tocsin.pattern("PATTERN A+ a WITHIN 9 SECONDS RETURN HALF(a.x) AS h", aggregates={"half": half})
    with pytest.raises(errors.TypeMismatchError, match=r"The value of `HALF\(a.x\)` is 0.5, which is not of the type"):
        pattern.match({"A": [{"ts": 1, "x": 1}]}, engine="local")


def test_joins_refuse_user_defined_aggregates(spark: SparkSession) -> None:
    frames = {kind: spark.createDataFrame(pa.Table.from_pylist(some, SCHEMA)) for kind, some in ROWS.items()}
    with pytest.raises(errors.UnsupportedError, match=r"`PRODUCT\(b.x\)` does not run as joins"):
        compiled(PER_MATCH[3]).match(frames, strategy="join")


ROUNDED = [
    "PATTERN SEQ(A a, B b) WHERE ROUND(a.v, a.x) < 9.5 WITHIN 9 SECONDS RETURN ROUND(b.v, a.x) AS r",
    "PATTERN SEQ(A+ a, B b) WHERE ROUND(a.v, b.x) < 4 WITHIN 9 SECONDS SEMANTICS next "
    "RETURN ROUND(b.v, COUNT(a)) AS r HAVING ROUND(b.v, COUNT(a)) > 3.1",
]


@pytest.mark.parametrize("text", ROUNDED)
def test_a_computed_number_of_digits_is_rounded_to(spark: SparkSession, text: str) -> None:
    rows = {
        "A": [{"ts": at * 1_000_000, "x": at - 2, "v": 1.23456 * at} for at in range(5)],
        "B": [{"ts": 5_000_000, "x": 2, "v": 3.14159}],
    }
    pattern, expected = tocsin.pattern(text), reference.evaluate(tocsin.pattern(text), rows)
    assert expected
    compare(pattern.match(rows, engine="local").to_pylist(), expected)
    frames = {kind: spark.createDataFrame(pa.Table.from_pylist(some)) for kind, some in rows.items()}
    for strategy in ("kernel", "automaton") if "next" not in text else ("kernel",):
        compare([row.asDict() for row in pattern.match(frames, strategy=strategy).collect()], expected)
