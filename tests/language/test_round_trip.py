"""print ∘ parse is the identity on trees, whatever stands in them."""

from __future__ import annotations

from hypothesis import given
from tests import trees

from tocsin.language import ast
from tocsin.language.sase import parse, print_query


@given(trees.queries())
def test_a_printed_query_parses_to_the_same_tree(query):
    assert parse(print_query(query)) == query


@given(trees.expressions())
def test_a_printed_condition_parses_to_the_same_tree(condition):
    query = ast.Query(ast.Event("A"), where_clause=condition)
    assert parse(print_query(query)).where_clause == condition


@given(trees.queries())
def test_printing_is_canonical(query):
    text = print_query(query)
    assert print_query(parse(text)) == text
