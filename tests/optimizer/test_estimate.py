"""Estimates are near what the reference counts on streams that are as even as they assume."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import tocsin
from tocsin import reference
from tocsin.analysis.temporal import network
from tocsin.optimizer.cost import join_order
from tocsin.optimizer.estimate import Estimate, bags_of
from tocsin.optimizer.statistics import Statistics

SECOND = 1_000_000


def estimated(text: str, statistics: Statistics) -> Estimate:
    query = tocsin.pattern(text).query
    return Estimate(query, network(query), statistics)


def even_stream(counts: dict[str, int], seconds: int, keys: int) -> dict[str, list[dict[str, Any]]]:
    choose = random.Random(3)
    return {
        kind: [
            {"ts": choose.randrange(seconds * SECOND), "k": choose.randrange(keys), "x": choose.random()}
            for _ in range(number)
        ]
        for kind, number in counts.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WITHIN 50 SECONDS",
        "PATTERN AND(A a, B b) WITHIN 50 SECONDS",
        "PATTERN SEQ(A a, B b, C c) WITHIN 50 SECONDS",
        "PATTERN AND(A a, B b, C c) WITHIN 30 SECONDS",
        "PATTERN SEQ(A a, AND(B b, C c)) WITHIN 50 SECONDS",
        "PATTERN OR(SEQ(A a, B b), C c) WITHIN 50 SECONDS",
        "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 200 SECONDS",
        "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts <= 20 SECONDS WITHIN 50 SECONDS",
        "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 50 SECONDS",
    ],
)
def test_the_expected_number_of_matches_is_near_the_real_one(text: str) -> None:
    counts = {"A": 80, "B": 80, "C": 40}
    rows = even_stream(counts, 1000, 4)
    known = Statistics.of(counts, duration=1000 * SECOND, keys=4, pairs={"a.x < b.x": 0.5})
    real = len(reference.evaluate(tocsin.pattern(text), rows))
    assert estimated(text, known).matches == pytest.approx(real, rel=0.35)


def test_an_iteration_over_k_events_has_two_to_the_k_less_one_bags() -> None:
    assert bags_of(10, 1, None) == 1023
    assert bags_of(10, 2, None) == 1013
    assert bags_of(10, 1, 2) == pytest.approx(55)
    assert bags_of(0, 1, None) == 0
    assert bags_of(10, 1, None, neighbours=0.0) == 10
    assert math.isinf(bags_of(5000, 1, None))
    assert bags_of(1000, 3, 3) == pytest.approx(1000 * 999 * 998 / 6)


def test_neighbour_conditions_make_fewer_bags() -> None:
    plain = bags_of(20, 1, None)
    assert bags_of(20, 1, None, neighbours=0.3) < plain / 100


def test_matches_per_start_look_at_the_heaviest_key() -> None:
    text = "PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 100 SECONDS"
    known = {"duration": 1000 * SECOND, "keys": 100}
    even = estimated(text, Statistics.of({"A": 1000, "B": 1000}, **known)).most_per_start
    heavy = estimated(text, Statistics.of({"A": 1000, "B": 1000}, heaviest=0.2, **known)).most_per_start
    assert even == pytest.approx(1, rel=0.05)
    assert heavy == pytest.approx(2**20, rel=0.05)


def test_under_next_an_iteration_does_not_explode() -> None:
    text = "PATTERN SEQ(A a, B+ b) WITHIN 100 SECONDS SEMANTICS next"
    known = Statistics.of({"A": 1000, "B": 1000}, duration=1000 * SECOND)
    assert estimated(text, known).most_per_start == pytest.approx(100)


def test_an_equality_that_follows_from_others_counts_once() -> None:
    known = Statistics.of({"A": 100, "B": 100, "C": 100}, duration=1000 * SECOND, distinct={"k": 20})
    two = "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 9 SECONDS"
    three = "PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.k = c.k WITHIN 9 SECONDS"
    assert estimated(two, known).matches == estimated(three, known).matches


# --- join order -----------------------------------------------------------------------------------


def order_of(text: str, statistics: Statistics) -> tuple[str, ...]:
    estimate = estimated(text, statistics)
    return join_order(estimate, estimate.network.alternatives[0])


def test_the_rarest_variable_goes_first() -> None:
    known = Statistics.of({"A": 10_000, "B": 10_000, "C": 10}, duration=1000 * SECOND)
    assert order_of("PATTERN SEQ(A a, B b, C c) WITHIN 10 SECONDS", known)[0] == "c"


def test_equal_sizes_keep_the_order_of_the_text() -> None:
    known = Statistics.of({"A": 1000, "B": 1000, "C": 1000}, duration=1000 * SECOND)
    assert order_of("PATTERN SEQ(A a, B b, C c) WITHIN 10 SECONDS", known) == ("a", "b", "c")


def test_a_cross_product_is_avoided_even_between_small_sides() -> None:
    known = Statistics.of({"A": 10, "B": 100_000, "C": 10}, duration=1000 * SECOND, distinct={"k": 5})
    order = order_of("PATTERN SEQ(A a, B b, C c) WHERE a.k = b.k AND b.j = c.j", known)
    assert order[1] == "b"


def test_a_selective_pair_is_joined_before_others() -> None:
    known = Statistics.of(
        {"A": 1000, "B": 1000, "C": 1000}, duration=1000 * SECOND, pairs={"b.x < c.x": 0.001, "a.x < b.x": 0.9}
    )
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 100 SECONDS"
    assert set(order_of(text, known)[:2]) == {"b", "c"}


def test_many_variables_are_ordered_too() -> None:
    names = [f"v{number}" for number in range(9)]
    counts = {name.upper(): 1000.0 for name in names} | {"V7": 3.0}
    text = f"PATTERN SEQ({', '.join(f'{name.upper()} {name}' for name in names)}) WITHIN 10 SECONDS"
    order = order_of(text, Statistics.of(counts, duration=1000 * SECOND))
    assert order[0] == "v7"
    assert sorted(order) == names
