"""What `never_null` names is NULL in no match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.fitting import cases
from tests.optimizer.queries import Streams

import tocsin
from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.sase import translate
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import map_nodes, never_null
from tocsin.testing.cases import assert_same_rows
from tocsin.testing.strategies import EVERYTHING


def refusing(query: alg.Query, variable: str, path: tuple[str, ...]) -> alg.Query:
    """The query that binds no event with NULL there to the variable, and no other event less."""
    known = ex.IsNull(ex.Attribute(variable, path), negated=True)

    def change(node: alg.Node) -> alg.Node:
        if isinstance(node, alg.Event) and node.variable == variable:
            return replace(node, condition=known)
        return node

    return replace(query, pattern=map_nodes(query.pattern, change))


@settings(max_examples=120)
@given(**cases(EVERYTHING, named=("tree", "stream")))
def test_events_with_null_there_change_no_result(tree: ast.Query, stream: Streams) -> None:
    query = translate(tree).query
    strict = query
    for variable, path in never_null(query):
        strict = refusing(strict, variable, path)
    assert_same_rows(reference.evaluate(strict, stream), reference.evaluate(query, stream))


@settings(max_examples=80)
@given(**cases(EVERYTHING, named=("tree", "stream")))
def test_events_with_null_there_may_be_left_out_of_the_input(tree: ast.Query, stream: Streams) -> None:
    query = replace(translate(tree).query, selection=Selection.ANY)
    found = never_null(query)
    binds = [node for node in query.pattern.walk() if isinstance(node, alg.Event | alg.Absent)]
    alone = {node.type: node.variable for node in binds if sum(other.type == node.type for other in binds) == 1}
    paths = {kind: [path for name, path in found if name == variable] for kind, variable in alone.items()}
    kept = {
        kind: [row for row in rows if all(row[path[0]] is not None for path in paths.get(kind, []))]
        for kind, rows in stream.items()
    }
    assert_same_rows(reference.evaluate(query, kept), reference.evaluate(query, stream))


def found_in(text: str) -> list[str]:
    return sorted(f"{name}.{'.'.join(path)}" for name, path in never_null(tocsin.pattern(text).query))


@pytest.mark.filterwarnings("ignore:.*NULL_COMPARISON")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.x < b.x", ["a.x", "b.x"]),
        ("a.x + b.y * 2 = 3", ["a.x", "b.y"]),
        ("abs(a.x) > 1 AND a.k LIKE 'p%'", ["a.k", "a.x"]),
        ("NOT a.x > b.x", ["a.x", "b.x"]),
        ("a.x > 1 OR b.x > 1", []),
        ("a.x > 1 OR a.x < 0 - 1", ["a.x"]),
        ("a.x IS NULL", []),
        ("a.x IS NOT NULL", ["a.x"]),
        ("coalesce(a.x, 0) < b.x", ["b.x"]),
        ("CASE WHEN a.x > 1 THEN 1 ELSE 2 END = b.x", ["b.x"]),
        ("a.x BETWEEN b.x AND b.y", ["a.x", "b.x", "b.y"]),
        ("a.x NOT BETWEEN b.x AND b.y", ["a.x"]),
        ("a.x IN (1, NULL)", ["a.x"]),
    ],
)
def test_only_what_every_true_condition_needs_is_named(where: str, expected: list[str]) -> None:
    assert found_in(f"PATTERN SEQ(A a, B b) WHERE {where}") == expected


def test_a_condition_that_may_be_vacuous_rejects_nothing_of_the_others() -> None:
    assert found_in("PATTERN SEQ(A a, B? b) WHERE a.x < b.x") == ["b.x"]
    assert found_in("PATTERN SEQ(A a, B+ b) WHERE b[i].x > b[i-1].x AND a.x < b[3].x") == []
    assert found_in("PATTERN SEQ(A a, B+ b) WHERE a.x < b.x") == ["a.x", "b.x"]


def test_an_event_with_null_may_block_under_next() -> None:
    assert found_in("PATTERN SEQ(A a, B b) WHERE a.x < b.x SEMANTICS next") == []


def test_a_time_out_lacks_the_later_conditions() -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.y > 1 WITHIN 5 SECONDS WITH TIMEOUTS"
    assert found_in(text) == ["a.y"]
