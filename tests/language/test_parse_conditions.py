"""Conditions and values: precedence, literals, references, functions."""

from __future__ import annotations

import datetime as dt

import pytest

from tocsin.errors import QuerySyntaxError
from tocsin.language.expressions import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Case,
    Comparison,
    Date,
    Each,
    Edge,
    Fixed,
    In,
    Interval,
    IsNull,
    Like,
    Literal,
    Name,
    Negative,
    Or,
    Running,
    SameValue,
    Timestamp,
    Variable,
)
from tocsin.language.sase import parse, parse_expression

X, Y, Z = (Attribute("a", (name,)) for name in "xyz")
ONE, TWO = Literal(1), Literal(2)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a.x = 1", Comparison("=", X, ONE)),
        ("a.x != 1", Comparison("!=", X, ONE)),
        ("a.x <> 1", Comparison("!=", X, ONE)),
        ("a.x ≠ 1", Comparison("!=", X, ONE)),
        ("a.x < 1", Comparison("<", X, ONE)),
        ("a.x <= 1", Comparison("<=", X, ONE)),
        ("a.x ≤ 1", Comparison("<=", X, ONE)),
        ("a.x>1", Comparison(">", X, ONE)),
        ("a.x >= 1", Comparison(">=", X, ONE)),
        ("a.x ≥ 1", Comparison(">=", X, ONE)),
        ("(a.x > 1) = TRUE", Comparison("=", Comparison(">", X, ONE), Literal(True))),
        ("a.x IS NULL", IsNull(X)),
        ("a.x is not null", IsNull(X, True)),
        ("a.x IN (1, 2)", In(X, (ONE, TWO))),
        ("a.x NOT IN (1)", In(X, (ONE,), True)),
        ("a.x BETWEEN 1 AND 2", Between(X, ONE, TWO)),
        ("a.x NOT BETWEEN 1 AND 2", Between(X, ONE, TWO, True)),
        ("a.x BETWEEN 1 AND 2 AND a.y = 1", And((Between(X, ONE, TWO), Comparison("=", Y, ONE)))),
        ("a.x LIKE 'a%_'", Like(X, "a%_")),
        ("a.x NOT LIKE 'it''s'", Like(X, "it's", True)),
        ("[k]", SameValue(("k",))),
        ("[k, `a b`]", SameValue(("k", "a b"))),
        ("[k] AND a.x = 1", And((SameValue(("k",)), Comparison("=", X, ONE)))),
    ],
)
def test_a_predicate_has_its_tree(text, tree):
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a.x + a.y * a.z", "a.x + (a.y * a.z)"),
        ("a.x - a.y - a.z", "(a.x - a.y) - a.z"),
        ("a.x / a.y * a.z % 2", "((a.x / a.y) * a.z) % 2"),
        ("a.x || a.y || a.z", "(a.x || a.y) || a.z"),
        ("-a.x * a.y", "(-a.x) * a.y"),
        ("a.x - -1", "a.x - (-1)"),
        ("a.x + 1 > a.y AND a.z = 1", "((a.x + 1) > a.y) AND (a.z = 1)"),
        ("a.x = 1 OR a.y = 1 AND a.z = 1", "(a.x = 1) OR ((a.y = 1) AND (a.z = 1))"),
        ("NOT a.x = 1 AND a.y = 1", "(NOT (a.x = 1)) AND (a.y = 1)"),
        ("NOT NOT a.x = 1", "NOT (NOT (a.x = 1))"),
        ("a.x = 1 AND a.y = 1 AND a.z = 1", "(a.x = 1 AND a.y = 1) AND a.z = 1"),
        ("a.x = 1 OR a.y = 1 OR a.z = 1", "a.x = 1 OR (a.y = 1 OR a.z = 1)"),
        ("a.x = 1 ∧ a.y = 1 ∨ ¬a.z = 1", "a.x = 1 AND a.y = 1 OR NOT a.z = 1"),
        ("CASE a.x WHEN 1 THEN 2 ELSE 1 END", "CASE WHEN a.x = 1 THEN 2 ELSE 1 END"),
        ("COUNT(b[])", "count(b)"),
        ("AVG(b[].period)", "AVG(b.period)"),
        ("b[].x", "b.x"),
    ],
)
def test_two_spellings_give_one_tree(text, same):
    assert parse_expression(text) == parse_expression(same)


def test_and_and_or_are_flat():
    conditions = tuple(Comparison("=", X, Literal(number)) for number in range(5))
    assert parse_expression("a.x=0 AND (a.x=1 AND a.x=2) AND (a.x=3 AND (a.x=4))") == And(conditions)
    assert parse_expression("a.x=0 OR (a.x=1 OR a.x=2) OR (a.x=3 OR (a.x=4))") == Or(conditions)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("12", Literal(12)),
        ("1.5", Literal(1.5)),
        ("1e3", Literal(1000.0)),
        ("2.5E-1", Literal(0.25)),
        ("-12", Literal(-12)),
        ("- 1.5", Literal(-1.5)),
        ("-(12)", Negative(Literal(12))),
        ("- -12", Negative(Literal(-12))),
        ("-a.x", Negative(X)),
        ("'it''s'", Literal("it's")),
        ("''", Literal("")),
        ("'two\nlines'", Literal("two\nlines")),
        ("'-- no comment'", Literal("-- no comment")),
        ("TRUE", Literal(True)),
        ("false", Literal(False)),
        ("NULL", Literal(None)),
        ("DATE '2026-01-31'", Date(dt.date(2026, 1, 31))),
        ("5 SECONDS", Interval(5_000_000)),
        ("5s", Interval(5_000_000)),
        ("-5 MINUTES", Interval(-300_000_000)),
        ("-(5 MINUTES)", Negative(Interval(300_000_000))),
        ("INTERVAL '-5' MINUTE", Interval(-300_000_000)),
        ("INTERVAL 15 MINUTES", Interval(900_000_000)),
    ],
)
def test_a_literal_has_its_value_and_type(text, tree):
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-31 08:30:00", dt.datetime(2026, 1, 31, 8, 30, tzinfo=dt.UTC)),
        ("2026-01-31T08:30:00.000001", dt.datetime(2026, 1, 31, 8, 30, 0, 1, tzinfo=dt.UTC)),
        ("2026-01-31", dt.datetime(2026, 1, 31, tzinfo=dt.UTC)),
        ("2026-01-31 08:30:00Z", dt.datetime(2026, 1, 31, 8, 30, tzinfo=dt.UTC)),
        ("2026-01-31 10:30:00+02:00", dt.datetime(2026, 1, 31, 8, 30, tzinfo=dt.UTC)),
    ],
)
def test_a_timestamp_is_an_instant_in_utc(text, value):
    tree = parse_expression(f"TIMESTAMP '{text}'")
    assert tree == Timestamp(value)
    assert tree.value.tzinfo is dt.UTC


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a.x", X),
        ("a.place.lat", Attribute("a", ("place", "lat"))),
        ("b[].x", Attribute("b", ("x",))),
        ("b[i].x", Attribute("b", ("x",), Running("i"))),
        ("b[i-1].x", Attribute("b", ("x",), Running("i", -1))),
        ("b[ j + 2 ].x", Attribute("b", ("x",), Running("j", 2))),
        ("b[first].x", Attribute("b", ("x",), Edge.FIRST)),
        ("b[LAST].x.y", Attribute("b", ("x", "y"), Edge.LAST)),
        ("b[3].x", Attribute("b", ("x",), Fixed(3))),
        ("b[0].x", Attribute("b", ("x",), Fixed(0))),
        ("b[-1].x", Attribute("b", ("x",), Fixed(-1))),
        ("NEXT(b).x", Attribute("b", ("x",), Each.NEXT)),
        ("next ( b[] ) . x", Attribute("b", ("x",), Each.NEXT)),
        ("total", Name("total")),
        ("b[]", Variable("b")),
    ],
)
def test_a_reference_has_its_tree(text, tree):
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("COUNT(*)", Aggregate("count", None)),
        ("Count(b)", Aggregate("count", Variable("b"))),
        ("COUNT(b.x)", Aggregate("count", Attribute("b", ("x",)))),
        ("COUNT(DISTINCT b.x)", Aggregate("count", Attribute("b", ("x",)), True)),
        ("SUM(b.x * 2)", Aggregate("sum", Arithmetic("*", Attribute("b", ("x",)), TWO))),
        ("FIRST(b.x)", Aggregate("first", Attribute("b", ("x",)))),
        ("COLLECT(b)", Aggregate("collect", Variable("b"))),
        ("ABS(a.x)", Call("abs", (X,))),
        ("Round(a.x / a.y, 2)", Call("round", (Arithmetic("/", X, Y), TWO))),
        ("now()", Call("now", ())),
        ("CASE WHEN a.x = 1 THEN 'one' END", Case(((Comparison("=", X, ONE), Literal("one")),))),
    ],
)
def test_a_function_has_its_tree(text, tree):
    assert parse_expression(text) == tree


@pytest.mark.parametrize("name", ["count", "sum", "min", "max", "avg", "range", "first", "last", "stddev", "collect"])
def test_aggregates_are_told_from_functions(name):
    assert parse_expression(f"{name}(b.x)") == Aggregate(name, Attribute("b", ("x",)))


@pytest.mark.parametrize("text", ["(" * 150 + "1" + ")" * 150, " + ".join(["1"] * 150), "NOT " * 150 + "TRUE"])
def test_nesting_beyond_reason_is_refused_not_a_crash(text):
    with pytest.raises(QuerySyntaxError, match="nested"):
        parse(f"PATTERN A a WHERE {text}")


def test_long_lists_are_no_nesting():
    conditions = " AND ".join(f"a.x != {number}" for number in range(500))
    options = ", ".join(map(str, range(2000)))
    query = parse(f"PATTERN A a WHERE {conditions} AND a.y IN ({options})")
    assert len(query.where_clause.operands) == 501


def test_a_number_of_absurd_length_is_refused_not_a_crash():
    with pytest.raises(QuerySyntaxError, match="too long"):
        parse(f"PATTERN A a WHERE a.x > {'9' * 5000}")
