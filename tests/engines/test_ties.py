"""Tie columns order the events of one instant in every strategy as in the reference (R41)."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.fitting import decides, meaning
from tests.tied import SCHEMA, Tied, tied

import tocsin
from tocsin import errors, reference
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.algebra.tree_text import to_text
from tocsin.engines.local import match as local
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.options import Options
from tocsin.plan.strategies import TREND, refusals
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import JOINS, LANGUAGE, TIMEOUTS, Features, queries


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def with_interval(rows: list[Any], pattern: tocsin.Pattern) -> list[dict[str, Any]]:
    if pattern.query.over_all_matches:
        return rows
    return [{**row, "start": row["start"], "end": row["end"]} for row in rows]


def check(case: Tied, strategy: str) -> int:
    """Compare a strategy with the reference; how many matches there are, −1 where it does not run the query."""
    query, rows, tie = case
    pattern = compiled(query)
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    try:
        found = local.match(pattern.query, tables, Options(tie=tie, strategy=strategy)).to_pylist()
    except errors.ContradictoryDistancesError:
        found = []
        if pattern.query.over_all_matches:
            return -1
    except errors.UnsupportedError:
        return -1
    expected = reference.evaluate(pattern, rows, tie=tie)
    assert_same_rows(found, with_interval(expected, pattern))
    if not pattern.query.over_all_matches:
        assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)
    return len(expected)


FEW = Features(iteration=True, unbounded=False, most_events=3)
# One by one: drawn from all of these at once, few are sequences without iterations, and few run as automata.
RUN: dict[str, tuple[st.SearchStrategy[ast.Query], str]] = {
    "sequences": (queries(JOINS), "auto"),
    "all of the language": (queries(LANGUAGE), "auto"),
    "time-outs": (queries(TIMEOUTS), "auto"),
    "automata": (queries(FEW), "automaton"),
    "aggregates": (queries(FEW), "aggregate"),
}


@pytest.mark.parametrize(("asked", "strategy"), RUN.values(), ids=RUN.keys())
@settings(max_examples=120, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_every_local_strategy_orders_ties_as_the_reference(
    asked: st.SearchStrategy[ast.Query], strategy: str, data: st.DataObject
) -> None:
    assume(check(data.draw(tied(asked)), strategy) >= 0)


POLICIES: list[dict[str, Any]] = [
    *({"selection": each} for each in ast.Selection if each is not ast.Selection.ANY),
    *({"after_match": ast.AfterMatch(each)} for each in (ast.Skip.PAST_LAST, ast.Skip.TO_NEXT)),
    *({"output": each} for each in ast.Output if each not in (ast.Output.ALL, ast.Output.COUNT)),
]


@st.composite
def with_a_policy(draw: st.DrawFn) -> ast.Query:
    """A query with one policy, each of the three kinds as often."""
    kind = draw(st.sampled_from(("selection", "after_match", "output")))
    return replace(draw(queries(FEW)), **draw(st.sampled_from([each for each in POLICIES if kind in each])))


@settings(max_examples=300)
@given(case=tied(with_a_policy()))
def test_policies_order_ties_as_the_reference(case: Tied) -> None:
    check(case, "auto")


@st.composite
def counting(draw: st.DrawFn) -> ast.Query:
    """A query that only counts its matches, mostly one that is counted without building them."""
    query = draw(queries(FEW))
    selection = draw(st.sampled_from(ast.Selection))
    count = (ast.Column(ex.Aggregate("count", None), "n"),)
    return replace(query, where_clause=None, selection=selection, returns=count)


@settings(max_examples=150)
@given(case=tied(counting()))
def test_counts_order_ties_as_the_reference(case: Tied) -> None:
    assume(TREND.refuses(ordered_by_ties(compiled(case[0]).query)) is None)
    check(case, "auto")


# --- the corners of tie columns -------------------------------------------------------------------

PAIR = "PATTERN SEQ(A a, B b) WITHIN 20 SECONDS"
FLIGHTS = {"F": [{"ts": 7, "n": n, "s": "edcba"[n]} for n in (2, 0, 4, 1, 3)]}


def found(text: str, rows: Any, tie: Any, **options: Any) -> list[dict[str, Any]]:
    return compiled(text).match(rows, engine="local", tie=tie, **options).to_pylist()


@pytest.mark.parametrize("strategy", ["auto", "automaton", "aggregate"])
def test_five_flights_at_one_instant_form_an_iteration_of_five(strategy: str) -> None:
    (match,) = found("PATTERN F{5} f WITHIN 1 SECOND", FLIGHTS, "n", strategy=strategy)
    assert [flight["n"] for flight in match["f"]] == [0, 1, 2, 3, 4]
    (match,) = found("PATTERN F{5} f WITHIN 1 SECOND", FLIGHTS, "s", strategy=strategy)
    assert [flight["n"] for flight in match["f"]] == [4, 3, 2, 1, 0]
    assert found("PATTERN F{5} f WITHIN 1 SECOND", FLIGHTS, None, strategy=strategy) == []
    ((counted),) = found("PATTERN F+ f WITHIN 1 SECOND RETURN COUNT(*) AS n", FLIGHTS, "n", strategy=strategy)
    assert counted == {"n": 31}


def test_compact_rows_know_the_order_of_ties() -> None:
    pattern = compiled("PATTERN SEQ(F f, F+ g) WITHIN 1 SECOND")
    rows = pattern.match(FLIGHTS, engine="local", tie="n", form="compact").to_pylist()
    assert sum(int(row["matches"]) for row in rows) == 26
    assert sum(1 for row in rows for _ in pattern.enumerate(row)) == 26


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2.5),
        (-1.5, 0),
        (float("-inf"), float("nan")),
        (None, float("-inf")),
        (False, True),
        (b"a", b"b"),
        ("Z", "a"),
    ],
)
def test_tie_columns_may_have_any_type_with_an_order(first: Any, second: Any) -> None:
    rows = {"A": [{"ts": 1, "n": first}], "B": [{"ts": 1, "n": second}]}
    assert len(found(PAIR, rows, "n")) == len(reference.evaluate(compiled(PAIR), rows, tie="n")) == 1
    other = {"A": [{"ts": 1, "n": second}], "B": [{"ts": 1, "n": first}]}
    assert found(PAIR, other, "n") == reference.evaluate(compiled(PAIR), other, tie="n") == []


def test_minus_zero_and_zero_tie() -> None:
    rows = {"A": [{"ts": 1, "n": -0.0}], "B": [{"ts": 1, "n": 0.0}]}
    assert found(PAIR, rows, "n") == reference.evaluate(compiled(PAIR), rows, tie="n") == []


def test_tie_columns_of_two_types_are_refused_where_they_meet() -> None:
    rows = {"A": [{"ts": 1, "n": "s"}], "B": [{"ts": 2, "n": 1}]}
    assert len(found(PAIR, rows, "n")) == 1
    rows["B"][0]["ts"] = 1
    with pytest.raises(errors.TypeMismatchError, match="The tie columns of events at one time cannot be compared"):
        found(PAIR, rows, "n")


def test_a_condition_on_equal_times_is_a_contradiction_only_without_tie_columns() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.ts = b.ts WITHIN 1 MICROSECOND"
    rows = {"A": [{"ts": 1, "n": 1}], "B": [{"ts": 1, "n": 2}]}
    assert len(found(text, rows, "n")) == 1
    with pytest.raises(errors.ContradictoryDistancesError):
        found(text, rows, None)


def test_a_window_longer_than_time_and_times_far_apart_keep_the_order_of_ties() -> None:
    days = [{"ts": day * 86_400_000_000, "n": n} for day in (-(10**6), 0, 10**6) for n in range(3)]
    for text in ("PATTERN F{2} f WITHIN 30000000 DAYS", "PATTERN F{2} f WITHIN 1 MICROSECOND", "PATTERN F{2} f"):
        pattern = compiled(text)
        assert len(found(text, {"F": days}, "n")) == len(reference.evaluate(pattern, {"F": days}, tie="n"))


def test_ties_that_do_not_fit_into_64_bits_are_refused_by_name() -> None:
    far = [{"ts": ts, "n": n} for ts in (-(2**62), 2**62 - 7, 2**62 - 6) for n in range(3)]
    with pytest.raises(errors.UnsupportedError, match=r"3 events of one instant, among events of .* are too many"):
        found("PATTERN F{2} f WITHIN 10 MICROSECONDS", {"F": far}, "n")


def test_joins_refuse_the_order_and_auto_takes_another_strategy() -> None:
    ordered = ordered_by_ties(compiled(PAIR).query)
    refused = refusals(ordered)
    assert "The order of events of one instant by `tie=` does not run as joins." in str(refused["join"])
    assert refused["kernel"] is None
    edge = ordered_by_ties(compiled("PATTERN SEQ(A a, NOT B b) WITHIN 5 SECONDS").query)
    assert refusals(edge)["join"] is not None
    assert refusals(ordered_by_ties(compiled("PATTERN AND(A a, B b) WITHIN 5 SECONDS").query))["join"] is None


def test_explain_names_the_order() -> None:
    logical = to_text(ordered_by_ties(compiled("PATTERN SEQ(A a, B{2} b) WITHIN 5 SECONDS").query))
    assert "Sequence by time and tie columns" in logical
    assert "Repeat 2 by time and tie columns" in logical


# --- on Spark ---------------------------------------------------------------------------------------

ON_SPARK = [
    ("PATTERN SEQ(A a, NOT C c, B{2} b) PARTITION BY k WITHIN 2 SECONDS", "kernel"),
    ("PATTERN SEQ(A a, B+ b) WITHIN 2 SECONDS AFTER MATCH SKIP PAST LAST", "auto"),
    ("PATTERN SEQ(A a, B+ b) WITHIN 2 SECONDS", "automaton"),
    ("PATTERN SEQ(A a, B b) WITHIN 2 SECONDS", "aggregate"),
    ("PATTERN SEQ(A a, B+ b, C c) WITHIN 2 SECONDS RETURN COUNT(*) AS n, SUM(b.x) AS s", "trend"),
    ("PATTERN SEQ(A a, B b, C c) WITHIN 2 SECONDS", "clustered"),
]


def test_spark_orders_ties_as_the_reference(spark: SparkSession) -> None:
    chance = random.Random(7)
    rows = [
        {
            "type": chance.choice("AABBBC"),
            "ts": chance.randrange(6) * 1_000_000,
            "k": chance.choice("pq"),
            "x": chance.randrange(3),
            "n": chance.choice([0, 1, 2, 3, None]),
            "m": chance.choice(["a", "b"]),
        }
        for _ in range(36)
    ]
    schema = "type string, ts bigint, k string, x bigint, n bigint, m string"
    by_time = sorted(rows, key=lambda row: row["ts"])
    with light_settings(spark) as session:
        frame = session.createDataFrame([tuple(row.values()) for row in by_time], schema).coalesce(1)
        for text, strategy in ON_SPARK:
            pattern = compiled(text)
            expected = reference.evaluate(pattern, rows, tie=("n", "m"))
            matches = pattern.match(frame, tie=("n", "m"), strategy=strategy).collect()
            if pattern.query.over_all_matches:
                assert [row.asDict() for row in matches] == expected
            else:
                assert sorted(row["match_id"] for row in matches) == sorted(row["match_id"] for row in expected)
            assert expected, text


@settings(max_examples=4, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(case=st.one_of(tied(queries(JOINS), max_events=5), tied(queries(FEW), max_events=5)))
def test_spark_orders_ties_of_random_queries_as_the_reference(spark: SparkSession, case: Tied) -> None:
    query, rows, tie = case
    assume(decides(tie, meaning(query), rows))
    pattern = compiled(replace(query, returns=()))
    with light_settings(spark) as session:
        frames = {kind: session.createDataFrame(pa.Table.from_pylist(events, SCHEMA)) for kind, events in rows.items()}
        found = pattern.match(frames, tie=tie).select("match_id").collect()
    expected = reference.evaluate(pattern, rows, tie=tie)
    assert sorted(row.match_id for row in found) == sorted(row["match_id"] for row in expected)


def test_tie_columns_of_two_types_are_refused_on_spark(spark: SparkSession) -> None:
    frames = {
        "A": spark.createDataFrame([], "ts bigint, r string"),
        "B": spark.createDataFrame([], "ts bigint, r bigint"),
    }
    with pytest.raises(errors.TypeMismatchError, match="The columns of `tie` cannot be compared between inputs"):
        compiled(PAIR).match(frames, tie="r")


# --- what is known before anything runs -----------------------------------------------------------

AT_ONCE = "PATTERN SEQ(A a, B b) WHERE a.ts = b.ts WITHIN 1 SECOND"


def schemas(**kinds: str) -> dict[str, dict[str, str]]:
    """The attribute `n` of each event type."""
    return {name: {"ts": "bigint", "m": "bigint", "n": kind} for name, kind in kinds.items()}


def test_check_orders_events_of_one_instant_by_ties() -> None:
    pattern = compiled(AT_ONCE)
    with pytest.raises(errors.ContradictoryDistancesError):
        pattern.check(schemas(A="int", B="int"))
    for tie in ("n", ["n"], iter(["n"])):
        assert "a     b   0 s    0 s" in str(pattern.check(schemas(A="int", B="int"), tie=tie).network)


@pytest.mark.parametrize(
    ("kinds", "tie", "problem"),
    [
        ({"A": "int", "B": "int"}, "seq", "There is no column `seq` in the input of `A`"),
        ({"A": "array<bigint>", "B": "int"}, "n", "`tie` names `n`, whose values have no order: array<bigint>"),
        ({"A": "int", "B": "string"}, "n", "cannot be compared between inputs: `n` is an integer in `A` and a string"),
        ({"A": "int", "B": "int"}, 5, "`tie=5` is not the name of a column"),
    ],
)
def test_check_refuses_the_tie_columns_that_match_refuses(kinds: dict[str, str], tie: Any, problem: str) -> None:
    program = tocsin.rules(
        """template A { m : Integer }  template B { m : Integer }
        rule R where a : A  b : B when b in a [0 seconds, 1 second]"""
    )
    with pytest.raises(errors.TocsinError, match=re.escape(problem)):
        compiled(PAIR).check(schemas(**kinds), tie=tie)
    with pytest.raises(errors.TocsinError, match=re.escape(problem)):
        program.check(schemas(**kinds), tie=tie)


def test_rules_are_checked_with_their_ties() -> None:
    program = tocsin.rules("template F { n : Integer }  rule R where f : F[2] when f in f [0 seconds, 1 second]")
    assert program.check({"F": {"ts": "bigint", "n": "bigint"}}, tie="n").rules


def test_analyze_orders_events_of_one_instant_by_ties(spark: SparkSession) -> None:
    frames = {name: spark.createDataFrame([(1, number)], "ts bigint, n bigint") for number, name in enumerate("AB")}
    with pytest.raises(errors.ContradictoryDistancesError):
        compiled(AT_ONCE).analyze(frames)
    assert compiled(AT_ONCE).analyze(frames, tie="n").types["A"].count == 1
    with pytest.raises(errors.TocsinError, match="There is no column `seq`"):
        compiled(AT_ONCE).analyze(frames, tie="seq")
