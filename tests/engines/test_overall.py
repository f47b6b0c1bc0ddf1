"""Aggregates over all matches: what Spark makes of the matches is what the reference makes of them."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

import tocsin
from tocsin import errors
from tocsin.engines.spark.bags import Bag, Binding, event_in
from tocsin.engines.spark.inputs import resolve
from tocsin.engines.spark.overall import overall
from tocsin.engines.spark.sql import functions as F
from tocsin.plan.manifest import POSITION
from tocsin.reference.stream import ingest
from tocsin.testing import assert_same_rows

EVENT = (
    T.StructType()
    .add("ts", "long")
    .add("i", "integer")
    .add("j", "long")
    .add("f", "double")
    .add("s", "string")
    .add("d", T.DecimalType(10, 2))
    .add("k", "boolean")
)
PLACED = T.StructType([*EVENT.fields, T.StructField(POSITION, T.LongType())])
TYPES = ("A", "B", "C")
KLEENE = "PATTERN SEQ(A a, B+ b, C* c) WITHIN 6 US"
SINGLE = "PATTERN OR(SEQ(A a, B b), C c) WITHIN 4 US"


def matches_of(spark: SparkSession, pattern: str, stream: dict[str, list[dict[str, Any]]]) -> DataFrame:
    """The matches that the reference finds, one column per variable, and where each event stands among all."""
    variables = tocsin.pattern(pattern).query.variables
    schema = T.StructType(
        [T.StructField(name, T.ArrayType(PLACED) if kind.iterated else PLACED) for name, kind in variables.items()]
    )
    found = tocsin.reference.evaluate(tocsin.pattern(pattern), stream)
    positions = {id(event.row): event.position for event in ingest(stream, time="ts", tie=(), type_column="type")}

    def placed(held: Any) -> Any:
        if isinstance(held, list):
            return list(map(placed, held))
        return None if held is None else {**held, POSITION: positions[id(held)]}

    return spark.createDataFrame([tuple(placed(match[name]) for name in variables) for match in found], schema)


def bindings_of(pattern: str) -> dict[str, Binding | Bag]:
    fields = {field.name: (field.name, field.dataType) for field in PLACED.fields}
    return {
        name: Bag(F.col(name), fields) if kind.iterated else event_in(F.col(name), fields)
        for name, kind in tocsin.pattern(pattern).query.variables.items()
    }


def rows_over_all(spark: SparkSession, pattern: str, outputs: str, matches: DataFrame) -> list[dict[str, Any]]:
    query = tocsin.pattern(f"{pattern} {outputs}").query
    assert query.over_all_matches
    inputs = resolve({name: spark.createDataFrame([], EVENT) for name in TYPES}, TYPES)
    found = overall(query, matches, bindings_of(pattern), time=inputs.time_kind)
    return [row.asDict(recursive=True) for row in found.collect()]


def in_any_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """COLLECT over all matches has no order."""
    return [
        {name: sorted(value, key=repr) if isinstance(value, list) else value for name, value in row.items()}
        for row in rows
    ]


def every(variable: str) -> str:
    names = ("COUNT", "SUM", "MIN", "MAX", "AVG", "RANGE", "STDDEV", "FIRST", "LAST", "COLLECT")
    calls = [f"{name}({variable}.{column})" for column in "jf" for name in names]
    calls[calls.index(f"SUM({variable}.j)")] = f"DIGITS(SUM({variable}.j))"  # may be beyond 64 bits
    calls[calls.index(f"RANGE({variable}.j)")] = f"RANGE({variable}.i)"  # beyond 64 bits it stops the job
    calls += [f"{name}({variable}.{column})" for column in "sk" for name in ("COUNT", "MIN", "LAST")]
    # Every further value that is counted DISTINCT makes Spark's plan much slower.
    calls += [f"COUNT(DISTINCT {variable}.f)", f"SUM(DISTINCT {variable}.i)", f"COLLECT(DISTINCT {variable}.s)"]
    calls += [f"COUNT({variable})", f"SUM({variable}.i * 2 + 1)", f"COUNT({variable}.i IS NULL)"]
    calls += [f"{name}({variable}.d)" for name in ("SUM", "AVG", "RANGE", "STDDEV", "MAX")]
    return ", ".join(f"{call} AS {variable}{number}" for number, call in enumerate(calls))


OUTPUTS = {
    KLEENE: [
        f"RETURN COUNT(*) AS n, {every('a')}, {every('b')}",
        f"RETURN a.k, COUNT(*) AS n, {every('c')} GROUP BY a.k",
        "RETURN b[first].s AS first, a.i % 2 AS odd, SUM(b.i) / COUNT(*) AS x, COUNT(c) + 1 AS y "
        "GROUP BY b[first].s, odd HAVING COUNT(*) > 1 AND SUM(b.i) >= 0",
        "RETURN c[last].f, COUNT(*) AS n GROUP BY c[last].f",
        "RETURN COUNT(*) AS n HAVING n > 3",
    ],
    SINGLE: [
        f"RETURN COUNT(*) AS n, {every('a')}, {every('c')}",
        "RETURN a.s, b.f, COUNT(*) AS n, AVG(a.i + 1) AS m, LAST(b.i) AS l GROUP BY a.s, b.f",
        "RETURN COUNT(a) AS x, COUNT(c) AS y, MAX(c.i) AS z GROUP BY a.k",
    ],
}

ROWS = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 8),
        "i": st.none() | st.integers(-3, 3),
        "j": st.none() | st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63)]),
        "f": st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, float("nan"), float("inf")]),
        "s": st.none() | st.sampled_from(["", "a", "Å"]),
        "d": st.none() | st.integers(-200, 200).map(lambda n: decimal.Decimal(n).scaleb(-2)),
        "k": st.none() | st.booleans(),
    }
)
STREAMS = st.fixed_dictionaries({name: st.lists(ROWS, min_size=2, max_size=5) for name in TYPES})


@pytest.mark.parametrize("pattern", [KLEENE, SINGLE])
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)
@given(stream=STREAMS)
def test_aggregates_over_all_matches_are_those_of_the_reference(
    spark: SparkSession, pattern: str, stream: dict[str, list[dict[str, Any]]]
) -> None:
    matches = matches_of(spark, pattern, stream).cache()
    for outputs in OUTPUTS[pattern]:
        expected = tocsin.reference.evaluate(tocsin.pattern(f"{pattern} {outputs}"), stream)
        found = rows_over_all(spark, pattern, outputs, matches)
        assert_same_rows(in_any_order(found), in_any_order(list(expected)))
    matches.unpersist()


def test_without_a_match_there_is_one_row_unless_there_are_groups(spark: SparkSession) -> None:
    nothing: dict[str, list[dict[str, Any]]] = {name: [] for name in TYPES}
    for pattern, several in OUTPUTS.items():
        matches = matches_of(spark, pattern, nothing)
        expected = tocsin.reference.evaluate(tocsin.pattern(f"{pattern} {several[0]}"), nothing)
        found = rows_over_all(spark, pattern, several[0], matches)
        assert_same_rows(found, expected)
        assert len(found) == 1
        assert rows_over_all(spark, pattern, several[1], matches) == []


def test_a_sum_on_the_way_may_be_beyond_64_bits_and_the_result_only_as_text(spark: SparkSession) -> None:
    row = {"i": 1, "f": 0.5, "s": "", "d": None, "k": None}
    big = [{**row, "ts": number, "j": 2**63 - 1} for number in (1, 2)]
    small = [{**row, "ts": number, "j": -(2**62)} for number in (3, 4)]
    pattern = "PATTERN B{1,1} b WITHIN 6 US"
    for events, total in ((big + small, "SUM(b.j)"), (big, "DIGITS(SUM(b.j))")):
        outputs = f"RETURN COUNT(*) AS n, {total} AS total, AVG(b.j) AS mean"
        matches = matches_of(spark, pattern, {"A": [], "B": events, "C": []})
        (found,) = rows_over_all(spark, pattern, outputs, matches)
        wanted = sum(event["j"] for event in events)
        assert found["total"] == (wanted if total == "SUM(b.j)" else str(wanted))
        assert found["n"] == len(events)
        assert found["mean"] == pytest.approx(wanted / len(events))
    matches = matches_of(spark, pattern, {"A": [], "B": big, "C": []})
    with pytest.raises(Exception, match="NUMBER_TOO_LARGE"):
        rows_over_all(spark, pattern, "RETURN COUNT(*) AS n, SUM(b.j) AS total", matches)


def test_first_and_last_go_by_position_and_not_by_match(spark: SparkSession) -> None:
    row = {"j": 1, "f": 0.5, "s": "", "d": None, "k": None}
    stream = {
        "A": [{**row, "ts": 1, "i": 1}, {**row, "ts": 3, "i": 2}],
        "B": [{**row, "ts": 2, "i": 9}, {**row, "ts": 4, "i": None}, {**row, "ts": 4, "i": 5}],
        "C": [],
    }
    outputs = "RETURN COUNT(*) AS n, FIRST(b.i) AS first, LAST(b.i) AS last"
    (found,) = rows_over_all(spark, KLEENE, outputs, matches_of(spark, KLEENE, stream))
    (expected,) = tocsin.reference.evaluate(tocsin.pattern(f"{KLEENE} {outputs}"), stream)
    assert found == expected
    assert found["first"] == 9


def test_texts_of_events_are_ordered_as_the_semantics_has_it(spark: SparkSession) -> None:
    """NULL comes before a struct, and a number before one that it begins: the time is the last attribute by name."""
    schema = "a struct<q bigint>, n bigint, ts bigint"
    rows = [{"a": a, "n": n, "ts": 1} for a in ({"q": 10}, None, {"q": 1}) for n in (10, 1)]
    pattern = tocsin.pattern(
        "PATTERN A e WITHIN 9 US RETURN COUNT(*) AS c, FIRST(e.a.q) AS f, LAST(e.a.q) AS l, LAST(e.n) AS n"
    )
    frames = {
        "A": spark.createDataFrame([((row["a"] or None) and (row["a"]["q"],), row["n"], 1) for row in rows], schema)
    }
    found = [row.asDict() for row in pattern.match(frames).collect()]
    assert found == tocsin.reference.evaluate(pattern, {"A": rows}) == [{"c": 6, "f": None, "l": 1, "n": 10}]


def test_tie_columns_that_cannot_be_compared_are_refused(spark: SparkSession) -> None:
    frames = {
        "A": spark.createDataFrame([], "ts bigint, x bigint, r string"),
        "B": spark.createDataFrame([], "ts bigint, x bigint, r bigint"),
        "C": spark.createDataFrame([], "ts bigint, x bigint, r array<bigint>"),
    }
    text = "PATTERN SEQ({}) WITHIN 9 US RETURN COUNT(*) AS c, FIRST(a.x) AS f"
    with pytest.raises(errors.TypeMismatchError, match="The columns of `tie` cannot be compared between inputs"):
        tocsin.pattern(text.format("A a, B b")).match(frames, tie="r")
    with pytest.raises(errors.InvalidOptionError, match="`tie` names `r`, whose values have no order: array<bigint>"):
        tocsin.pattern(text.format("A a, C c")).match(frames, tie="r")
