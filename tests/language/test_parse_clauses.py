"""Clauses: their text, their trees, their order."""

from __future__ import annotations

import itertools

import pytest

from tocsin.errors import QuerySyntaxError
from tocsin.language import ast
from tocsin.language.ast import AfterMatch, Column, Key, Output, Selection, Skip, Window
from tocsin.language.expressions import Aggregate, Arithmetic, Attribute, Comparison, Literal, Name, Variable
from tocsin.language.sase import parse

MINUTE = 60_000_000


def clause(text):
    return parse(f"PATTERN A a {text}")


def test_clauses_left_out_have_their_defaults():
    assert parse("PATTERN A a") == ast.Query(ast.Event("A", "a"))


def test_partition_by_names_attributes():
    assert clause("PARTITION BY user").partition_by == (Key("user"),)
    assert clause("partition by user, `device id`").partition_by == (Key("user"), Key("device id"))


@pytest.mark.parametrize(
    ("text", "size_us"),
    [
        ("15 MINUTES", 15 * MINUTE),
        ("1 minute", MINUTE),
        ("1 min", MINUTE),
        ("10s", 10_000_000),
        ("10 S", 10_000_000),
        ("10 sec", 10_000_000),
        ("2 seconds", 2_000_000),
        ("1 HOUR", 60 * MINUTE),
        ("3h", 180 * MINUTE),
        ("1.5 HOURS", 90 * MINUTE),
        ("0.1 s", 100_000),
        ("0.000001 seconds", 1),
        ("7 days", 7 * 1440 * MINUTE),
        ("1d", 1440 * MINUTE),
        ("2 WEEKS", 14 * 1440 * MINUTE),
        ("1 w", 7 * 1440 * MINUTE),
        ("5 ms", 5000),
        ("5 milliseconds", 5000),
        ("1 millisecond", 1000),
        ("7us", 7),
        ("7 MICROSECONDS", 7),
        ("INTERVAL 15 MINUTES", 15 * MINUTE),
        ("INTERVAL '15' MINUTE", 15 * MINUTE),
        ("interval'1.5'hours", 90 * MINUTE),
        ("0 MINUTES", 0),
        ("-5 MINUTES", -5 * MINUTE),
        ("(15 MINUTES)", 15 * MINUTE),
    ],
)
def test_a_window_is_whole_microseconds(text, size_us):
    assert clause(f"WITHIN {text}").within == Window(size_us)


def test_a_window_may_have_a_slide():
    assert clause("WITHIN (15 MINUTES, 1 MINUTE)").within == Window(15 * MINUTE, MINUTE)


def test_a_decimal_duration_is_computed_exactly():
    # In binary floats 0.3 × 10⁶ is 300000.0 but 1.1 × 10⁶ is 1100000.0000000002.
    assert clause("WITHIN 1.1 SECONDS").within == Window(1_100_000)
    assert clause("WITHIN 9007199254740993 US").within == Window(9_007_199_254_740_993)


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("any", Selection.ANY),
        ("NEXT", Selection.NEXT),
        ("contiguous", Selection.CONTIGUOUS),
        ("partition-contiguous", Selection.PARTITION_CONTIGUOUS),
        ("skip-till-any-match", Selection.ANY),
        ("Skip-Till-Next-Match", Selection.NEXT),
        ("strict-contiguity", Selection.CONTIGUOUS),
        ("partition-contiguity", Selection.PARTITION_CONTIGUOUS),
    ],
)
def test_semantics_names_a_selection_policy(text, selection):
    assert clause(f"SEMANTICS {text}").selection is selection


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("REUSE", AfterMatch(Skip.REUSE)),
        ("SKIP PAST LAST", AfterMatch(Skip.PAST_LAST)),
        ("SKIP PAST LAST EVENT", AfterMatch(Skip.PAST_LAST)),
        ("skip past last row", AfterMatch(Skip.PAST_LAST)),
        ("SKIP TO NEXT", AfterMatch(Skip.TO_NEXT)),
        ("SKIP TO NEXT EVENT", AfterMatch(Skip.TO_NEXT)),
        ("SKIP TO NEXT ROW", AfterMatch(Skip.TO_NEXT)),
        ("SKIP TO FIRST b", AfterMatch(Skip.TO_FIRST, "b")),
        ("SKIP TO LAST `where`", AfterMatch(Skip.TO_LAST, "where")),
        ("SKIP TO LAST event", AfterMatch(Skip.TO_LAST, "event")),
    ],
)
def test_after_match_names_where_to_go_on(text, policy):
    assert clause(f"AFTER MATCH {text}").after_match == policy


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("all", Output.ALL),
        ("FIRST", Output.FIRST_PER_START),
        ("first per start", Output.FIRST_PER_START),
        ("first PER END", Output.FIRST_PER_END),
        ("last", Output.LAST_PER_START),
        ("last PER START", Output.LAST_PER_START),
        ("last per end", Output.LAST_PER_END),
        ("longest", Output.LONGEST),
        ("count", Output.COUNT),
    ],
)
def test_output_names_the_matches_reported(text, output):
    assert clause(f"OUTPUT {text}").output is output


def test_return_lists_columns_with_or_without_names():
    assert clause("RETURN a, a.x, a.x + 1 AS y, COUNT(b) AS `n of b`").returns == (
        Column(Variable("a")),
        Column(Attribute("a", ("x",))),
        Column(Arithmetic("+", Attribute("a", ("x",)), Literal(1)), "y"),
        Column(Aggregate("count", Variable("b")), "n of b"),
    )


def test_a_bare_name_is_a_variable_alone_in_return_and_a_column_elsewhere():
    query = clause("RETURN b, b + 1, SUM(b) GROUP BY b HAVING b > COUNT(b)")
    assert [column.expression for column in query.returns] == [
        Variable("b"),
        Arithmetic("+", Name("b"), Literal(1)),
        Aggregate("sum", Variable("b")),
    ]
    assert query.group_by == (Name("b"),)
    assert query.having == Comparison(">", Name("b"), Aggregate("count", Variable("b")))


def test_group_by_having_and_timeouts():
    query = clause("RETURN a.k, COUNT(*) AS n GROUP BY a.k, a.x + 1 HAVING n > 3 WITH TIMEOUTS")
    assert query.group_by == (
        Attribute("a", ("k",)),
        Arithmetic("+", Attribute("a", ("x",)), Literal(1)),
    )
    assert query.having == Comparison(">", Name("n"), Literal(3))
    assert query.timeouts is True


CLAUSES = [
    "PARTITION BY k",
    "WHERE a.x > 1",
    "WITHIN 5 MINUTES",
    "SEMANTICS next",
    "OUTPUT first",
    "RETURN a.x AS y",
]


def test_clauses_come_in_any_order():
    trees = [clause(" ".join(order)) for order in itertools.permutations(CLAUSES, 4)]
    by_clauses = {}
    for order, tree in zip(itertools.permutations(CLAUSES, 4), trees, strict=True):
        assert by_clauses.setdefault(frozenset(order), tree) == tree


@pytest.mark.parametrize(
    "text",
    [*CLAUSES, "AFTER MATCH REUSE", "GROUP BY a.k", "HAVING n > 3", "WITH TIMEOUTS"],
)
def test_a_clause_written_twice_is_refused_and_both_places_shown(text):
    with pytest.raises(QuerySyntaxError) as caught:
        parse(f"PATTERN A a\n{text}\nOUTPUT all\n{text}" if "OUTPUT" not in text else f"PATTERN A a\n{text}\n\n{text}")
    error = caught.value
    assert "written twice" in error.message
    assert (error.where.line, error.also[1].line) == (4, 2)
