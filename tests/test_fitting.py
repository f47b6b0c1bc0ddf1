"""Random streams fit their queries: a property that compares empty results compares little.

Every family of random tests draws by one of the strategies below: kernels, automata, aggregates, trends, joins, rules
and streams of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests import fitting
from tests.automata.formulas import by_reference
from tests.automata.formulas import cases as automaton_cases
from tests.engines.test_acel import texts
from tests.engines.test_aggregate import PLAIN
from tests.engines.test_counted_formulas import counted, with_bag_predicates
from tests.engines.test_distinct_matches import query_of, with_made_events
from tests.engines.test_joins import ABSENCES, ITERATIONS
from tests.engines.test_limits import ambiguous
from tests.engines.test_ties import counting, with_a_policy
from tests.fitting import decides, drawn_for, has_match, meaning, seeded
from tests.kernels.test_links import cases as groups
from tests.kernels.test_policies import KLEENE
from tests.optimizer.queries import chained_queries, constant_queries, keyed_queries
from tests.rules import test_engines, test_gatherings, test_sharing
from tests.rules.support import understood
from tests.rules.test_properties import drawn_rule
from tests.streaming.test_programs import with_neighbours
from tests.tied import tied, tied_queries

import tocsin
from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.testing import formulas
from tocsin.testing.strategies import EVERYTHING, JOINS, LANGUAGE, TIMEOUTS, queries
from tocsin.testing.streams import spread

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")]
EXAMPLES = settings(max_examples=60, suppress_health_check=list(HealthCheck))


def identity(query: alg.Query) -> alg.Query:
    return query


def of_text(text: str) -> alg.Query:
    return tocsin.pattern(text, language="acel").query


def of_formula(formula: Any) -> alg.Query:
    return of_text(query_of(formula, None))


def share(asked: Any, meaning: Callable[[Any], alg.Query], max_events: int = 7) -> Counter[bool]:
    """How many queries have a match in the stream that is drawn for them, and how many have none."""
    counts: Counter[bool] = Counter()

    @EXAMPLES
    @given(**drawn_for(asked, meaning, max_events=max_events))
    def example(query: Any, rows: Any) -> None:
        counts[has_match(meaning(query), rows)] += 1

    example()
    return counts


@pytest.mark.parametrize(
    ("asked", "meaning", "max_events"),
    [
        pytest.param(queries(EVERYTHING), meaning, 7, id="patterns"),
        pytest.param(queries(LANGUAGE), meaning, 7, id="all of the language"),
        pytest.param(queries(TIMEOUTS), meaning, 7, id="time-outs"),
        pytest.param(queries(KLEENE), meaning, 7, id="policies"),
        pytest.param(queries(PLAIN), meaning, 8, id="aggregates"),
        pytest.param(queries(JOINS), meaning, 7, id="joins"),
        pytest.param(queries(ABSENCES), meaning, 9, id="joins with absences"),
        pytest.param(queries(ITERATIONS), meaning, 9, id="joins with iterations"),
        pytest.param(formulas.queries(), meaning, 7, id="formulas"),
        pytest.param(texts(), of_text, 6, id="formulas with RETURN"),
        pytest.param(counted(), of_text, 7, id="trends"),
        pytest.param(with_bag_predicates(), of_text, 6, id="trends with bag predicates"),
        pytest.param(with_made_events(), of_formula, 4, id="events that are made"),
        pytest.param(ambiguous(), meaning, 6, id="ambiguous formulas"),
        pytest.param(constant_queries(EVERYTHING), identity, 7, id="constants"),
        pytest.param(chained_queries(EVERYTHING), identity, 7, id="chained keys"),
        pytest.param(keyed_queries(LANGUAGE), identity, 7, id="keys"),
    ],
)
def test_most_streams_have_a_match(asked: Any, meaning: Any, max_events: int) -> None:
    counts = share(asked, meaning, max_events)
    assert counts[True] >= counts.total() / 2, counts


@pytest.mark.parametrize("asked", [queries(EVERYTHING), queries(LANGUAGE), queries(JOINS)])
def test_streams_that_are_drawn_for_no_query_have_fewer(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above fail where streams no longer fit."""
    monkeypatch.setattr(fitting, "seeded", lambda query, seed, **_: spread("ABC", 7, seed))
    counts = share(asked, meaning)
    assert counts[True] < counts.total() / 2, counts


def test_most_lists_of_events_have_a_match_of_an_automaton() -> None:
    counts: Counter[bool] = Counter()

    @EXAMPLES
    @given(**automaton_cases())
    def example(node: alg.Node, events: Any, window_us: int | None) -> None:
        counts[bool(by_reference(node, events, window_us))] += 1

    example()
    assert counts[True] >= counts.total() / 2, counts


def test_most_streams_have_a_match_of_repeated_groups() -> None:
    counts: Counter[bool] = Counter()

    @EXAMPLES
    @given(groups())
    def example(case: Any) -> None:
        text, rows = case
        counts[has_match(tocsin.pattern(text).query, rows)] += 1

    example()
    assert counts[True] >= counts.total() / 2, counts


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(tied_queries(LANGUAGE), id="all of the language"),
        pytest.param(tied_queries(TIMEOUTS), id="time-outs"),
        pytest.param(tied(with_a_policy()), id="policies"),
        pytest.param(tied(counting()), id="counts"),
    ],
)
def test_the_order_of_ties_decides_on_many_matches(asked: Any) -> None:
    counts: Counter[str] = Counter()

    @EXAMPLES
    @given(asked)
    def example(case: Any) -> None:
        tree, rows, tie = case
        matched = has_match(meaning(tree), rows, tie=tie)
        counts.update(["every", *["matched"] * matched, *["decided"] * decides(tie, meaning(tree), rows)])

    example()
    assert counts["matched"] >= counts["every"] / 2, counts
    assert counts["decided"] >= counts["every"] / 3, counts


def shares_of_rules(draw: Callable[[int], str], tie: str | None = None) -> Counter[str]:
    """How many programs have a match in their stream, of some rule and of each; a seed draws both, as in properties."""
    counted: Counter[str] = Counter()
    for seed in range(40):
        program = understood(draw(seed))
        if program is not None:
            found = reference.evaluate(program, seeded(program, seed, max_events=8, tie=tie), tie=tie)
            counted.update(["every", *["some"] * any(found.values()), *(name for name, rows in found.items() if rows)])
    return counted


def neighbours(seed: int) -> str:
    return with_neighbours(test_sharing.drawn_program(seed), Random(seed))


@pytest.mark.parametrize(
    ("draw", "tie"),
    [
        pytest.param(lambda seed: drawn_rule(seed).text, None, id="rules"),
        pytest.param(test_engines.drawn_repetition, None, id="repetitions"),
        pytest.param(test_engines.drawn_tied_repetition, "x", id="tied repetitions"),
        pytest.param(test_gatherings.drawn_gathering, None, id="gatherings"),
        pytest.param(test_gatherings.drawn_set, None, id="unordered"),
        pytest.param(neighbours, None, id="neighbours"),
    ],
)
def test_most_streams_have_a_match_of_a_rule(draw: Callable[[int], str], tie: str | None) -> None:
    counted = shares_of_rules(draw, tie)
    assert counted["some"] >= counted["every"] / 2, counted


@pytest.mark.parametrize(
    ("draw", "above"),
    [
        pytest.param(test_engines.drawn_program, ["R2", "R3"], id="strata"),
        pytest.param(test_sharing.drawn_program, ["S", "T", "U"], id="beginnings"),
    ],
)
def test_rules_that_read_emitted_events_have_matches_too(draw: Callable[[int], str], above: list[str]) -> None:
    counted = shares_of_rules(draw)
    assert counted["some"] >= counted["every"] / 2, counted
    assert all(counted[name] >= counted["every"] / 8 for name in above), counted
