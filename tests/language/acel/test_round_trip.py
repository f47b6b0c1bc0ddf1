"""print ∘ parse is the identity on trees, whatever stands in them."""

from __future__ import annotations

from hypothesis import given
from tests import trees

from tocsin.language.acel import ast, parse, print_formula, print_query
from tocsin.testing import formulas


@given(trees.any_queries())
def test_a_printed_query_parses_to_the_same_tree(query: ast.Query) -> None:
    assert parse(print_query(query)) == query


@given(formulas.formulas(max_depth=4))
def test_a_printed_formula_parses_to_the_same_tree(formula: ast.Formula) -> None:
    assert parse(print_formula(formula)).formula == formula


@given(trees.any_queries())
def test_printing_is_canonical(query: ast.Query) -> None:
    text = print_query(query)
    assert print_query(parse(text)) == text
