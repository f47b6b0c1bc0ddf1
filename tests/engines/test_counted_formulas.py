"""Aggregates over all matches of ACEL formulas that are words: counted, and the same as enumerated by the reference."""

from __future__ import annotations

import warnings
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.fitting import drawn_for

import tocsin
from tocsin import errors, reference
from tocsin.engines.local import match as local
from tocsin.engines.spark.engine import prepare
from tocsin.language import expressions as ex
from tocsin.language.acel import ast, print_query
from tocsin.options import Options
from tocsin.plan.strategies import TREND
from tocsin.testing import assert_same_rows, formulas
from tocsin.testing.streams import TYPES, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})
WORDS = ("bind", "filter", "or", "sequence", "sequence", "repeat")
NEIGHBOURS = ("bind", "filter", "or", "adjacent", "adjacent", "repeat_adjacent")
# Fewer repetitions inside each other than the reference can still list.
SHALLOW = 3


def acel(text: str) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(text, language="acel")


@st.composite
def counted(draw: st.DrawFn) -> str:
    """A formula that can be counted, with the aggregates of one of its variables."""
    operators = draw(st.sampled_from([WORDS, WORDS, NEIGHBOURS]))
    query: ast.Query = draw(formulas.queries(operators=operators, max_depth=SHALLOW))
    text = print_query(query)
    name = draw(st.sampled_from(sorted(acel(text).query.variables)))
    asked = draw(
        st.sampled_from(["", f", COUNT(`{name}`) AS events", f", SUM(`{name}`.x) AS total, MAX(`{name}`.x) AS top"])
    )
    text = f"{text}\nRETURN COUNT(*) AS matches{asked}"
    assume(TREND.refuses(acel(text).query) is None)
    return text


@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(**drawn_for(counted(), lambda text: acel(text).query, max_events=7, named=("text", "rows")))
def test_counting_is_enumerating_and_adding_up(text: str, rows: Streams) -> None:
    pattern = acel(text)
    tables = {name: pa.Table.from_pylist(rows[name], schema=SCHEMA) for name in TYPES}
    found = local.match(pattern.query, tables).to_pylist()
    assert_same_rows(found, reference.evaluate(pattern.query, rows))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A ; B@+", "some of its events must be neighbours, and others need not"),
        ("PROJECT[A](A ; B)", "no sequences of single events: Project"),
        ("A AND A", "no sequences of single events: Both"),
        ("AGG y[n <- count(A)](A+)", "no sequences of single events: Derive"),
        ("A ; NEXT(B)", "no sequences of single events: NextOf"),
        ("A+ FILTER A[x > 1] OR A[x < 0]", "a condition is a choice between predicates"),
        ("(A FILTER A[x > 1]) ; A", "one variable has events under different conditions"),
        ("(A+ FILTER A[same(x)])+", "a filter inside an iteration compares the events of each copy"),
        ("(A+ FILTER A[same(x)]) ; A", "a filter compares some of the events that `A` holds in the end"),
        ("((A+ ; B) FILTER A[same(x)]) ; B AS A", "a filter compares some of the events that `A` holds in the end"),
    ],
)
def test_what_is_enumerated(text: str, problem: str) -> None:
    refusal = TREND.refuses(acel(f"{text} RETURN COUNT(*) AS n").query)
    assert refusal is not None and problem in refusal.message


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("(A FILTER A[same(x)])+", 7),
        ("(A FILTER A[same(x)]) ; A", 3),
        ("(A+ FILTER A[same(x)])@+", 7),
        ("((A ; A) FILTER A[same(x)]) OR A+", 7),
        ("(A+ FILTER A[increasing(x)]) AS x", 4),
    ],
)
def test_a_filter_compares_the_events_of_its_own_part(text: str, count: int) -> None:
    rows = {"A": [{"ts": 1, "x": 1}, {"ts": 2, "x": 2}, {"ts": 3, "x": 1}]}
    pattern = acel(f"{text} RETURN COUNT(*) AS n")
    assert pattern.match(rows, engine="local").to_pylist() == reference.evaluate(pattern.query, rows) == [{"n": count}]


@st.composite
def with_bag_predicates(draw: st.DrawFn) -> str:
    """A formula whose filters compare events of a bag, wherever they stand."""

    def filtered(part: ast.Formula) -> ast.Formula:
        name = draw(st.sampled_from(sorted(formulas.held_by(part))))
        return ast.Filter(part, ex.BagPredicate(draw(st.sampled_from(ex.BagOrder)), name, ("x",)))

    def grown(depth: int) -> ast.Formula:
        kinds = [*["copies", "filter"] * 2, *["some"] * 3, "event", "repeat", "bind", "sequence", "or"]
        match draw(st.sampled_from(kinds)) if depth else "event":
            case "event":
                return ast.Event(draw(st.sampled_from("AAAB")))
            case "repeat":
                return ast.Repeat(grown(depth - 1))
            case "bind":
                return ast.Bind(grown(depth - 1), draw(st.sampled_from("XA")))
            case "filter":
                return filtered(grown(depth - 1))
            case "copies":  # each compares its own events
                return ast.Repeat(filtered(ast.Repeat(grown(depth - 2 if depth > 1 else 0))))
            case "some":  # it compares not all that its variable holds
                some = filtered(ast.Repeat(ast.Event("A")))
                return ast.joined(ast.Sequence, *draw(st.permutations((some, grown(0)))))
            case "sequence":
                return ast.joined(ast.Sequence, grown(depth - 1), grown(depth - 1))
        return ast.joined(ast.Any, grown(depth - 1), grown(depth - 1))

    return f"{print_query(ast.Query(grown(draw(st.sampled_from((1, 1, 4))))))} RETURN COUNT(*) AS n"


@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(**drawn_for(with_bag_predicates(), lambda text: acel(text).query, max_events=6, named=("text", "rows")))
def test_bag_predicates_count_where_they_stand(text: str, rows: Streams) -> None:
    pattern = acel(text)
    tables = {name: pa.Table.from_pylist(rows.get(name, []), schema=SCHEMA) for name in TYPES}
    found = local.match(pattern.query, tables).to_pylist()
    assert_same_rows(found, reference.evaluate(pattern.query, rows))


def test_a_variable_that_holds_what_others_tell_apart_is_enumerated() -> None:
    refusal = TREND.refuses(acel("(A AS e ; B AS f) AS all RETURN COUNT(*) AS n, COUNT(all) AS events").query)
    assert refusal is not None and "`all` holds events that other variables tell apart" in refusal.message


def test_a_count_that_nobody_could_list() -> None:
    rows = {"A": [{"ts": 0}], "B": [{"ts": 1 + at // 3} for at in range(600)], "C": [{"ts": 900}]}
    pattern = acel("A ; B+ ; C WITHIN 1 HOUR RETURN DIGITS(COUNT(*)) AS n, DIGITS(COUNT(B)) AS events")
    (found,) = pattern.match(rows, engine="local").to_pylist()
    # Three events tie at every instant, and have an order all the same.
    assert int(found["n"]) == 2**600 - 1
    assert int(found["events"]) == 600 * 2**599


def test_events_that_are_moved_apart_stay_outside_the_window() -> None:
    """The second A stands after the first, and so nearer to B than time says: B is 4 away from both all the same."""
    rows = {"A": [{"ts": 0, "x": 1}, {"ts": 0, "x": 2}], "B": [{"ts": 3}, {"ts": 4}]}
    pattern = acel("A ; B WITHIN 4 MICROSECONDS RETURN COUNT(*) AS n")
    assert TREND.refuses(pattern.query) is None
    assert pattern.match(rows, engine="local").to_pylist() == reference.evaluate(pattern.query, rows) == [{"n": 2}]


TEXTS = (
    "A ; B+ WITHIN 4 MICROSECONDS RETURN COUNT(*) AS n, SUM(B.x) AS s",
    "(A AS e OR B AS e)+ FILTER e[x > 0] PARTITION BY k RETURN e[first].k AS k, COUNT(*) AS n GROUP BY e[first].k",
    "A : B@+ WITHIN 9 MICROSECONDS RETURN COUNT(*) AS n, COUNT(B) AS events",
    "B+ FILTER B[increasing(x)] WITHIN 5 MICROSECONDS RETURN COUNT(*) AS n",
)


@pytest.mark.parametrize("text", TEXTS)
def test_spark_counts_the_same(spark: SparkSession, text: str) -> None:
    rows = {
        name: [{"ts": at // 2, "x": at * number % 5, "k": at % 2} for at in range(12)]
        for number, name in enumerate("AB", start=3)
    }
    pattern = acel(text)
    with light_settings(spark, partitions=2) as session:
        frames = {
            name: session.createDataFrame([tuple(row.values()) for row in events], "ts bigint, x bigint, k bigint")
            for name, events in rows.items()
        }
        made = prepare(pattern.query, frames, Options(slice_us=1))
        assert made.plan.strategy.name == "trend"
        found = [row.asDict() for row in made.matches().collect()]
    assert_same_rows(found, reference.evaluate(pattern.query, rows))


def test_many_random_formulas_are_words() -> None:
    counts: Counter[bool] = Counter()

    @settings(max_examples=100, database=None)
    @given(query=formulas.queries(operators=WORDS, max_depth=SHALLOW))
    def tried(query: ast.Query) -> None:
        counts[TREND.refuses(acel(f"{print_query(query)} RETURN COUNT(*) AS n").query) is None] += 1

    tried()
    assert counts[True] > 25 and counts[False] > 0
