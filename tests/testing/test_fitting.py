"""Random streams fit their queries: a property that compares empty results compares little."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.optimizer.queries import constant_queries, keyed_queries

from tocsin.algebra import nodes as alg
from tocsin.testing import formulas, strategies
from tocsin.testing.fitting import drawn_for, has_match
from tocsin.testing.strategies import EVERYTHING, JOINS, LANGUAGE, TIMEOUTS, queries


def identity(query: alg.Query) -> alg.Query:
    return query


@pytest.mark.parametrize(
    ("asked", "meaning"),
    [
        pytest.param(queries(EVERYTHING), strategies.meaning, id="patterns"),
        pytest.param(queries(LANGUAGE), strategies.meaning, id="all of the language"),
        pytest.param(queries(JOINS), strategies.meaning, id="joins"),
        pytest.param(queries(TIMEOUTS), strategies.meaning, id="time-outs"),
        pytest.param(formulas.queries(), formulas.meaning, id="formulas"),
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
