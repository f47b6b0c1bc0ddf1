"""Theorems 11 and 12 of 003 as properties: an automaton finds what the formula means, and reducing it changes nothing.

One thing is no part of a match and therefore not compared: which of two events with equal values and equal positions
two variables hold. `AS` after that would depend on it, so that the formulas give derived attributes different names.
"""

from __future__ import annotations

import warnings

import pytest
from hypothesis import assume, given, settings
from tests.automata.formulas import (
    POSITION,
    Grower,
    by_automaton,
    by_reference,
    cases,
    formulas,
    stream,
)
from tests.automata.run import Reading, run
from tests.fitting import queries_with_streams
from tests.kernels.expression_strategies import BAGS, CONJUNCTS, OBJECT_CONJUNCTS, Bags, as_events

from tocsin import automata, errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.sase import translate
from tocsin.automata.construct import CONSTRUCTIONS
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.reference import policies
from tocsin.reference.conditions import holds
from tocsin.reference.matches import Evaluation
from tocsin.reference.stream import Event, ingest, partitions
from tocsin.testing.strategies import Features, Streams


def check(node: alg.Node, events: list[Event], window_us: int | None) -> None:
    assert by_automaton(node, events, window_us) == by_reference(node, events, window_us)


@settings(max_examples=400)
@given(**cases())
def test_an_automaton_finds_what_its_formula_means(node: alg.Node, events: list[Event], window_us: int | None) -> None:
    check(node, events, window_us)


@pytest.mark.slow
@settings(max_examples=3000)
@given(**cases(depth=4))
def test_deep_formulas_too(node: alg.Node, events: list[Event], window_us: int | None) -> None:
    check(node, events, window_us)


@settings(max_examples=150)
@given(**cases(plain=True))
def test_without_predicates_and_aggregates_no_register_is_needed(
    node: alg.Node, events: list[Event], window_us: int | None
) -> None:
    assert automata.automaton(node).registers == ()
    check(node, events, window_us)


def test_formulas_use_every_operator_and_many_find_something() -> None:
    used: set[type] = set()
    matched = 0
    events = stream(*((kind, second, {"x": second, "v": 0.5, "k": "p"}) for second, kind in enumerate("AABABC")))
    for seed in range(200):
        node, _ = Grower(seed).formula(2)
        used |= {type(part) for part in node.walk()}
        matched += bool(by_automaton(node, events))
    assert used == set(CONSTRUCTIONS)
    assert matched > 100


@settings(max_examples=100)
@given(**cases(most=5))
def test_reducing_changes_nothing(node: alg.Node, events: list[Event], window_us: int | None) -> None:
    reduced, plain = (by_automaton(node, events, window_us, reduce=reduce) for reduce in (True, False))
    assert reduced == plain


@settings(max_examples=100)
@given(formulas())
def test_the_same_formula_always_has_the_same_automaton(node: alg.Node) -> None:
    once, again = automata.automaton(node), automata.automaton(node)
    assert once == again
    entered = {one.target for one in once.transitions}
    assert 0 not in entered and not any(one.source in once.finals for one in once.transitions)


# --- SASE+ ----------------------------------------------------------------------------------------

SASE = Features(iteration=True, aggregates=True, texts=True, most_events=3)


def query_of(tree: ast.Query) -> alg.Query:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return translate(tree).query


@settings(max_examples=200)
@given(queries_with_streams(SASE, max_events=7))
def test_sase_patterns_compare_times_and_may_be_optional(drawn: tuple[ast.Query, list[Streams]]) -> None:
    tree, (streams,) = drawn
    query = query_of(tree)
    assume(automata.refusal(query.pattern) is None)
    pattern = query.pattern.part if isinstance(query.pattern, alg.Within) else query.pattern
    for events in partitions(ingest(streams, time="ts", tie=[], type_column="type"), query.partition):
        check(pattern, events, query.window_us)


@settings(max_examples=100)
@given(queries_with_streams(SASE, max_events=7))
def test_contiguous_sase_patterns_skip_nothing(drawn: tuple[ast.Query, list[Streams]]) -> None:
    tree, (streams,) = drawn
    query = query_of(tree)
    assume(automata.refusal(query.pattern) is None)
    chosen = alg.Query(query.pattern, selection=ast.Selection.PARTITION_CONTIGUOUS)
    for events in partitions(ingest(streams, time="ts", tie=[], type_column="type"), query.partition):
        evaluation = Evaluation(events, query.window_us)
        expected = policies.apply(chosen, evaluation.settle(evaluation.matches(query.pattern)), events)
        found = by_automaton(query.pattern, events, query.window_us, contiguous=True)
        assert {(start, end) for start, end, _ in found} == {
            (match.first.local, match.last.local) for match in expected if match.first and match.last
        }
        assert len(found) == len({match.key for match in expected})


# --- conditions -----------------------------------------------------------------------------------


@settings(max_examples=300)
@given(CONJUNCTS | OBJECT_CONJUNCTS, BAGS)
def test_a_conjunct_is_decided_from_registers_as_from_bags(conjunct: ex.Expression, bags: Bags) -> None:
    """`a`, then all of `b`, then `c`: one run, so that the conjunct alone decides."""
    events = {name: alg.Event(name.upper(), name) for name in "abc" if bags[name]}
    number = len(bags["b"])
    parts = tuple(alg.Repeat(one, number, number, POSITION) if name == "b" else one for name, one in events.items())
    node = alg.Filter(alg.Sequence(parts, POSITION), conjunct)
    assume(automata.refusal(node) is None)
    read = [Reading(name.upper(), 0, row) for name in "abc" for row in bags[name]]
    matches = run(automata.automaton(node), read)
    expected = all(holds(one, as_events(bags)) for one in ex.conjuncts(conjunct))
    assert bool(matches) == expected
