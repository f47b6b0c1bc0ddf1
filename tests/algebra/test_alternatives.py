"""The alternatives of a pattern are exactly the sets of variables its matches bind."""

from __future__ import annotations

from hypothesis import given
from tests.fitting import cases

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import TooManyAlternativesError, alternatives
from tocsin.analysis.sase import translate
from tocsin.language import ast
from tocsin.testing.strategies import Features

A, B, C, D = (alg.Event(kind, kind.lower()) for kind in "ABCD")


def bound(node: alg.Node) -> set[frozenset[str]]:
    return {frozenset(found.variables) for found in alternatives(node)}


def test_an_iteration_of_optional_parts_may_be_empty() -> None:
    inside = alg.Sequence((alg.Repeat(A, 0, 1), alg.Repeat(B, 0, 1)))
    found = bound(alg.Sequence((C, alg.Repeat(inside, 1, None), D)))
    assert frozenset("cd") in found
    assert frozenset("abcd") in found


def test_copies_may_choose_different_branches() -> None:
    assert bound(alg.Repeat(alg.Any((A, B)), 1, None)) == {frozenset("a"), frozenset("b"), frozenset("ab")}


def test_order_inside_a_copy_says_nothing_across_copies() -> None:
    (once,) = alternatives(alg.Sequence((A, B)))
    (often,) = alternatives(alg.Repeat(alg.Sequence((A, B)), 1, None))
    assert once.before == {("a", "b")}
    assert often.before == frozenset()
    assert often.iterated == {"a", "b"}


@given(**cases(Features(iteration=True, absence=True, most_events=4), named=("query", "stream")))
def test_every_match_is_of_some_alternative_and_keeps_its_order(query: ast.Query, stream: dict) -> None:
    node = translate(query).query.pattern
    try:
        known = alternatives(node)
    except TooManyAlternativesError:
        return
    for row in reference.evaluate(translate(query).query, stream):
        events = {
            name: value if isinstance(value, list) else [value]
            for name, value in row.items()
            if name not in ("start", "end") and value is not None
        }
        fitting = [found for found in known if set(found.variables) == set(events)]
        assert any(
            all(one["ts"] < other["ts"] for x, y in found.before for one in events[x] for other in events[y])
            for found in fitting
        )
