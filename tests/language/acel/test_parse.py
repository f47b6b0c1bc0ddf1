"""What the signs and words of ACEL are read as."""

from __future__ import annotations

import pytest

from tocsin.language import ast as clauses
from tocsin.language import expressions as ex
from tocsin.language.acel import ast, parse, print_formula

A, B, C = ast.Event("A"), ast.Event("B"), ast.Event("C")


def above(variable: str, least: int) -> ex.Expression:
    return ex.Every(variable, ex.Comparison(">", ex.Attribute(variable, ("x",)), ex.Literal(least)))


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("A", A),
        ("A AS x", ast.Bind(A, "x")),
        ("A ; B ; C", ast.Sequence((A, B, C))),
        ("A ; (B ; C)", ast.Sequence((A, B, C))),
        ("A : B", ast.Adjacent((A, B))),
        ("A ; B : C", ast.Adjacent((ast.Sequence((A, B)), C))),
        ("A ; (B : C)", ast.Sequence((A, ast.Adjacent((B, C))))),
        ("A OR B AND C", ast.Any((A, ast.Both((B, C))))),
        ("A ∨ B ∧ C", ast.Any((A, ast.Both((B, C))))),
        ("A AND B ; C", ast.Both((A, ast.Sequence((B, C))))),
        ("(A OR B) ; C", ast.Sequence((ast.Any((A, B)), C))),
        ("A+", ast.Repeat(A)),
        ("A@+", ast.RepeatAdjacent(A)),
        ("A @ +", ast.RepeatAdjacent(A)),
        ("A⊕", ast.RepeatAdjacent(A)),
        ("A AS T+", ast.Repeat(ast.Bind(A, "T"))),
        ("(A OR B)+ AS m", ast.Bind(ast.Repeat(ast.Any((A, B))), "m")),
        ("A ; B+ AS m", ast.Sequence((A, ast.Bind(ast.Repeat(B), "m")))),
        ("NEXT(A)", ast.NextOf("A")),
        ("PROJECT[x](A AS x)", ast.Project(ast.Bind(A, "x"), (ast.Kept("x"),))),
        ("PROJECT[x, y(a, b)](A)", ast.Project(A, (ast.Kept("x"), ast.Kept("y", ("a", "b"))))),
        ("AGG y[n <- count(A)](A+)", ast.Derive(ast.Repeat(A), "y", (ast.Fold("n", "count", "A"),))),
        ("AGG y[t ← SUM(A.p.q)](A)", ast.Derive(A, "y", (ast.Fold("t", "sum", "A", ("p", "q")),))),
        ("AGG y[n <- count(DISTINCT A.x)](A)", ast.Derive(A, "y", (ast.Fold("n", "count", "A", ("x",), True),))),
        ("AGG y[n <- count(distinct)](A)", ast.Derive(A, "y", (ast.Fold("n", "count", "distinct"),))),
        ("A ; B FILTER A[x > 1]", ast.Filter(ast.Sequence((A, B)), above("A", 1))),
        ("A OR B FILTER A[x > 1]", ast.Filter(ast.Any((A, B)), above("A", 1))),
        ("(A FILTER A[x > 1]) ; B", ast.Sequence((ast.Filter(A, above("A", 1)), B))),
        ("A FILTER A[x > 1] FILTER A[x > 2]", ast.Filter(ast.Filter(A, above("A", 1)), above("A", 2))),
        ("A FILTER A[x > 1] AND A[x > 2]", ast.Filter(A, ex.And((above("A", 1), above("A", 2))))),
        ("A FILTER (A[x > 1] ∨ A[x > 2])", ast.Filter(A, ex.Or((above("A", 1), above("A", 2))))),
        ("PATTERN A", A),
        ("a -- comment\n; /* another */ B", ast.Sequence((ast.Event("a"), B))),
        ("`my type` AS `filter`", ast.Bind(ast.Event("my type"), "filter")),
        ("Output ; Semantics", ast.Sequence((ast.Event("Output"), ast.Event("Semantics")))),
    ],
)
def test_a_formula_is_read_as(text: str, formula: ast.Formula) -> None:
    assert parse(text).formula == formula
    assert parse(print_formula(formula)).formula == formula


@pytest.mark.parametrize(
    ("atom", "condition"),
    [
        ("A[x > 1]", above("A", 1)),
        ("A[name = 'it''s']", ex.Every("A", ex.Comparison("=", ex.Attribute("A", ("name",)), ex.Literal("it's")))),
        ('A[name = "a""b\'c"]', ex.Every("A", ex.Comparison("=", ex.Attribute("A", ("name",)), ex.Literal("a\"b'c")))),
        ("A[place.lat IS NULL]", ex.Every("A", ex.IsNull(ex.Attribute("A", ("place", "lat"))))),
        ("A[output IN (1)]", ex.Every("A", ex.In(ex.Attribute("A", ("output",)), (ex.Literal(1),)))),
        ("A[same(name)]", ex.BagPredicate(ex.BagOrder.SAME, "A", ("name",))),
        ("A[Increasing(p.q)]", ex.BagPredicate(ex.BagOrder.INCREASING, "A", ("p", "q"))),
        ("A[decreasing(t) AND x > 1]", ex.And((ex.BagPredicate(ex.BagOrder.DECREASING, "A", ("t",)), above("A", 1)))),
        ("A[x > 1 AND same(k)]", ex.And((ex.BagPredicate(ex.BagOrder.SAME, "A", ("k",)), above("A", 1)))),
    ],
)
def test_an_atom_is_read_as(atom: str, condition: ex.Expression) -> None:
    found = parse(f"A FILTER {atom}").formula
    assert found == ast.Filter(A, condition)
    assert parse(print_formula(found)).formula == found


def test_clauses_come_in_any_order() -> None:
    query = parse("A RETURN A.k, COUNT(*) AS n GROUP BY A.k WITHIN 5 MINUTES HAVING n > 1 PARTITION BY k")
    assert query.within == clauses.Window(300_000_000)
    assert query.partition_by == (clauses.Key("k"),)
    assert [column.alias for column in query.returns] == [None, "n"]
    assert query.group_by == (ex.Attribute("A", ("k",)),)
    assert query.having == ex.Comparison(">", ex.Name("n"), ex.Literal(1))


def test_places_are_those_of_the_parts() -> None:
    text = "A AS x ; B+ FILTER x[a > 1]"
    query = parse(text, "p.acel")
    found = {text[node.where.start : node.where.end] for node in query.formula.walk()}  # type: ignore[union-attr]
    assert found == {text, "A AS x ; B+", "A AS x", "A", "B+", "B"}
