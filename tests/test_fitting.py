"""Random streams fit their queries: a property that compares empty results compares little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.fitting import drawn_for, has_match, meaning, seeded
from tests.optimizer.queries import constant_queries, keyed_queries
from tests.rules import test_engines, test_gatherings, test_sharing
from tests.rules.support import understood
from tests.rules.test_properties import drawn_rule
from tests.streaming.test_programs import with_neighbours

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.testing import formulas
from tocsin.testing.strategies import EVERYTHING, JOINS, LANGUAGE, TIMEOUTS, queries

pytestmark = pytest.mark.long


def identity(query: alg.Query) -> alg.Query:
    return query


@pytest.mark.parametrize(
    ("asked", "meaning"),
    [
        pytest.param(queries(EVERYTHING), meaning, id="patterns"),
        pytest.param(queries(LANGUAGE), meaning, id="all of the language"),
        pytest.param(queries(JOINS), meaning, id="joins"),
        pytest.param(queries(TIMEOUTS), meaning, id="time-outs"),
        pytest.param(formulas.queries(), meaning, id="formulas"),
        pytest.param(constant_queries(EVERYTHING), identity, id="constants"),
        pytest.param(keyed_queries(LANGUAGE), identity, id="keys"),
    ],
)
def test_most_streams_have_a_match(asked: Any, meaning: Any) -> None:
    counted: Counter[bool] = Counter()

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(**drawn_for(asked, meaning, max_events=7))
    def example(query: Any, rows: Any) -> None:
        counted[has_match(meaning(query), rows)] += 1

    example()
    assert counted[True] >= counted.total() / 2, counted


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
        pytest.param(test_engines.drawn_repetition, "x", id="tied repetitions"),
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
