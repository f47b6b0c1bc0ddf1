"""Every node knows where it was written."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from tests import trees

from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.sase import parse, parse_expression, print_query
from tocsin.source import Place

TEXT = """PATTERN SEQ(Login a, NOT(Logout n), Transfer{2,} b[])
PARTITION BY user, `device id`
WHERE   b[i].amount > b[i-1].amount * (1 + a.factor)  -- growing
    AND n.device = a.device
WITHIN  (15 MINUTES, 1 MINUTE)
AFTER MATCH SKIP TO FIRST b
RETURN  a.user, COUNT( b ) AS n
HAVING  n > 3;"""


def text_of(node):
    return node.where.source.text[node.where.start : node.where.end]


def nodes_of(value):
    """Every node of a tree that carries a place."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes_of(item)
    elif is_dataclass(value) and not isinstance(value, Place):
        if hasattr(value, "where"):
            yield value
        for slot in fields(value):
            if slot.name not in {"where", "source"}:
                yield from nodes_of(getattr(value, slot.name))


def test_a_place_covers_the_text_of_its_node():
    query = parse(TEXT, name="fraud.sase")
    login, logout, transfer = query.pattern.parts
    assert text_of(query) == TEXT
    assert text_of(query.pattern) == "SEQ(Login a, NOT(Logout n), Transfer{2,} b[])"
    assert text_of(login) == "Login a"
    assert text_of(logout) == "NOT(Logout n)"
    assert text_of(logout.operand) == "Logout n"
    assert text_of(transfer) == "Transfer{2,} b[]"
    assert text_of(transfer.quantifier) == "{2,}"
    assert [text_of(key) for key in query.partition_by] == ["user", "`device id`"]
    growing, device = query.where_clause.operands
    assert text_of(growing) == "b[i].amount > b[i-1].amount * (1 + a.factor)"
    assert text_of(growing.right.left) == "b[i-1].amount"
    assert text_of(growing.right.right) == "(1 + a.factor)"
    assert text_of(device.left) == "n.device"
    assert text_of(query.within) == "WITHIN  (15 MINUTES, 1 MINUTE)"
    assert text_of(query.after_match) == "AFTER MATCH SKIP TO FIRST b"
    assert [text_of(column) for column in query.returns] == ["a.user", "COUNT( b ) AS n"]
    assert text_of(query.returns[1].expression) == "COUNT( b )"
    assert text_of(query.returns[1].expression.argument) == "b"
    assert text_of(query.having.left) == "n"


def test_a_query_knows_the_places_of_its_clauses():
    query = parse("PATTERN A a\nOUTPUT first\nSEMANTICS next WITH TIMEOUTS WHERE a.x > 1")
    places = {field: place.source.text[place.start : place.end] for field, place in query.places.items()}
    assert places == {
        "output": "OUTPUT first",
        "selection": "SEMANTICS next",
        "timeouts": "WITH TIMEOUTS",
        "where_clause": "WHERE a.x > 1",
    }
    assert query.place("within") == query.where


def test_a_place_names_the_file_and_the_line():
    query = parse(TEXT, name="fraud.sase")
    assert query.source.name == "fraud.sase"
    assert query.source.text == TEXT
    assert query.where_clause.operands[1].where.describe() == "fraud.sase:4:9"


@given(trees.queries())
def test_every_node_has_a_place_inside_that_of_the_query(query):
    text = print_query(query)
    parsed = parse(text)
    for node in nodes_of(parsed):
        if node == ast.AfterMatch() and node.where is None:
            continue  # nobody wrote it
        assert isinstance(node.where, Place), node
        assert 0 <= node.where.start < node.where.end <= len(text)
        assert node.where.source is parsed.source


@given(trees.expressions())
def test_the_text_at_a_place_parses_to_the_node(expression):
    text = print_query(ast.Query(ast.Event("A"), where_clause=expression))
    for node in parse(text).where_clause.walk():
        written = parse_expression(text_of(node))
        if isinstance(node, ex.Variable) and isinstance(written, ex.Name):
            written = ex.Variable(written.name)  # bare inside an aggregate
        assert written == node


@pytest.mark.parametrize("text", ["PATTERN A a", "  PATTERN A a  -- end", "\n\nPATTERN A a\n;\n"])
def test_the_place_of_a_query_leaves_out_what_surrounds_it(text):
    assert text_of(parse(text)).rstrip(";\n") == "PATTERN A a"
