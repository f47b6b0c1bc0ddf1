"""The canonical text of queries and expressions."""

from __future__ import annotations

import datetime as dt

import pytest

from tocsin.language import ast, durations
from tocsin.language import expressions as ex
from tocsin.language.sase import parse, parse_expression, print_expression, print_query

QUERY = """
pattern seq(Login a, not(Logout n), `PM2.5`{2,} b[], OR(A, B?)*) within 5400s
having n>3 and m<2 or x group by a.k, n return a, count(b) as n, sum( b[].x ) with timeouts
output last after match skip to first b semantics skip-till-next-match
where (a.x<>1) and ((b[i].y+1)*2 > -b[i-1].y or n.z is not null) and [k] partition by k, `group`;
"""


def test_a_query_is_printed_one_clause_per_line_in_a_fixed_order():
    assert print_query(parse(QUERY)) == (
        "PATTERN SEQ(Login a, NOT Logout n, `PM2.5`{2,} b, OR(A, B?)*)\n"
        "PARTITION BY k, `group`\n"
        "WHERE a.x != 1\n"
        "  AND ((b[i].y + 1) * 2 > -b[i-1].y OR n.z IS NOT NULL)\n"
        "  AND [k]\n"
        "WITHIN 90 MINUTES\n"
        "SEMANTICS next\n"
        "AFTER MATCH SKIP TO FIRST b\n"
        "OUTPUT last PER START\n"
        "RETURN a, COUNT(b) AS n, SUM(b.x)\n"
        "GROUP BY a.k, n\n"
        "HAVING n > 3 AND m < 2 OR x\n"
        "WITH TIMEOUTS"
    )


def test_defaults_are_left_out():
    text = "PATTERN A a SEMANTICS any AFTER MATCH REUSE OUTPUT all"
    assert print_query(parse(text)) == "PATTERN A a"


def test_a_long_pattern_is_laid_out_over_lines():
    parts = tuple(ast.Event(f"SomeLongEventType{number}", f"variable{number}") for number in range(4))
    inner = ast.Composite(ast.Operator.OR, parts, ast.Quantifier(1, None))
    query = ast.Query(ast.Composite(ast.Operator.SEQ, (ast.Event("A", "a"), inner)))
    assert print_query(query) == (
        "PATTERN SEQ(\n"
        "    A a,\n"
        "    OR(\n"
        "        SomeLongEventType0 variable0,\n"
        "        SomeLongEventType1 variable1,\n"
        "        SomeLongEventType2 variable2,\n"
        "        SomeLongEventType3 variable3\n"
        "    )+\n"
        ")"
    )
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "a.x + b.y * c.z",
        "(a.x + b.y) * c.z",
        "a.x - (b.y - c.z)",
        "a.x - b.y - c.z",
        "-(5) + -5",
        "-(-a.x)",
        "a.x - -5",
        "(a.x = 1 OR b.x = 2) AND NOT (c.x = 3 AND d.x = 4)",
        "NOT a.x = 1",
        "(NOT a.x) = b.x",
        "(a.x > 1) = TRUE",
        "(a.x IS NULL) IS NOT NULL",
        "a.x NOT IN (1, 2.5, 'it''s', NULL, FALSE)",
        "a.x + 1 BETWEEN 1 AND 2 * 3",
        "a.x NOT LIKE '%\\_%'",
        "CASE WHEN a.x = 1 THEN 2 WHEN a.y OR a.z THEN 3 ELSE 4 END + 1",
        "ROUND(a.x / b.x, 2)",
        "COUNT(*) + COUNT(DISTINCT b.x) + COUNT(b)",
        "b[first].x < b[last].x OR b[3].x = NEXT(b).y OR b[i+2].x = b[j].x",
        "TIMESTAMP '2026-01-31 08:30:00' + 90 MINUTES > DATE '2026-01-31'",
        "TIMESTAMP '2026-01-31 08:30:00.000100'",
        "`a b`.`c.d`.end || `end`.x",
        "[user, `device id`]",
        "1e+16 + 1e-05 + 0.1",
    ],
)
def test_canonical_text_is_printed_as_it_was_written(text):
    assert print_expression(parse_expression(text)) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (ex.Variable("b"), "b"),
        (ex.Comparison("=", ex.Variable("b"), ex.Literal(1)), "b[] = 1"),
        (ex.Every("X", ex.Comparison(">", ex.Attribute("X", ("a",)), ex.Literal(5))), "X[a > 5]"),
        (ex.BagPredicate(ex.BagOrder.INCREASING, "X", ("a",)), "X[increasing(a)]"),
        (ex.Literal(float("inf")), "1e999"),
        (ex.Timestamp(dt.datetime(2026, 1, 31, 8, 30)), "TIMESTAMP '2026-01-31 08:30:00'"),
        (
            ex.Timestamp(dt.datetime(2026, 1, 31, 10, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
            "TIMESTAMP '2026-01-31 08:30:00'",
        ),
    ],
)
def test_trees_of_other_origin_are_printed_readably(expression, text):
    assert print_expression(expression) == text


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 SECONDS"),
        (1, "1 MICROSECOND"),
        (1_500, "1500 MICROSECONDS"),
        (2_000, "2 MILLISECONDS"),
        (60_000_000, "1 MINUTE"),
        (90_000_000, "90 SECONDS"),
        (86_400_000_000, "1 DAY"),
        (14 * 86_400_000_000, "2 WEEKS"),
        (-3_600_000_000, "-1 HOUR"),
    ],
)
def test_a_duration_is_printed_in_the_largest_unit_that_divides_it(microseconds, text):
    assert durations.describe(microseconds) == text
