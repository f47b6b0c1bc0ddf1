"""The planner's choices: defaults without statistics, costs with them, and what it says about them."""

from __future__ import annotations

from typing import Any

import pytest

import tocsin
from tocsin.analysis.temporal import network
from tocsin.explain.planner import choice_text, planner_sections, rules_text, statistics_text
from tocsin.optimizer.choose import Choice, choose, longest_span_us
from tocsin.optimizer.cost import slice_width_us
from tocsin.optimizer.rules import optimize
from tocsin.optimizer.statistics import Statistics

SECOND = 1_000_000
ALL = [("join", None), ("kernel", None), ("clustered", None)]
TWO = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"
THREE = "PATTERN SEQ(A a, B b, C c) WITHIN 10 SECONDS"


def chosen(text: str, statistics: Statistics | None = None, claims: Any = ALL, **options: Any) -> Choice:
    query = tocsin.pattern(text).query
    return choose(query, network(query), claims, statistics, **options)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("PATTERN A a", "join"),
        ("PATTERN OR(A a, B b) WHERE a.x > 5 AND b.y > 6", "join"),
        ("PATTERN A a WHERE a.x > 5 WITHIN 10 SECONDS", "join"),
        ("PATTERN A a SEMANTICS next AFTER MATCH SKIP PAST LAST", "kernel"),
        ("PATTERN A a OUTPUT longest", "kernel"),
        ("PATTERN A+ a WITHIN 10 SECONDS", "kernel"),
        (TWO, "kernel"),
        ("PATTERN AND(A a, B b) WITHIN 10 SECONDS", "kernel"),
        ("PATTERN OR(SEQ(A a, B b), C c) WITHIN 10 SECONDS", "kernel"),
        (THREE, "kernel"),
        ("PATTERN SEQ(A a, B+ b) WITHIN 10 SECONDS", "kernel"),
        ("PATTERN SEQ(A a, NOT B b, C c) WITHIN 10 SECONDS", "kernel"),
        (f"{TWO} SEMANTICS next", "kernel"),
        (f"{TWO} AFTER MATCH SKIP PAST LAST", "kernel"),
        (f"{TWO} OUTPUT longest", "kernel"),
        (f"{TWO} WITH TIMEOUTS", "kernel"),
    ],
)
def test_without_statistics_the_kernel_is_chosen_unless_a_filter_is_enough(text: str, strategy: str) -> None:
    choice = chosen(text)
    assert choice.strategy == strategy
    assert ("nothing is joined" in choice.reason) == (strategy == "join")
    assert choice.matches is None


@pytest.mark.parametrize("statistics", [None, Statistics.of({f"T{n}": 9.0 for n in range(40)}, duration=SECOND)])
def test_many_branches_are_left_to_the_kernel(statistics: Statistics | None) -> None:
    def of(number: int) -> str:
        return f"PATTERN OR({', '.join(f'T{n} v{n}' for n in range(number))}) WITHIN 10 SECONDS"

    assert chosen(of(40), statistics).strategy == "kernel"
    assert "40 branches would take Spark long to plan" in str(chosen(of(40), statistics).options)
    assert chosen(of(40), claims=[("join", None), ("kernel", "no numbers")]).strategy == "join"
    assert chosen(of(40), statistics, strategy="join").strategy == "join"
    assert chosen(of(4)).strategy == "join"


def test_what_the_default_refuses_goes_to_another_with_the_reason() -> None:
    choice = chosen(THREE, claims=[("join", None), ("kernel", "no numbers")])
    assert (choice.strategy, choice.reason) == ("join", "kernel would be the default, but: no numbers")


def test_when_all_refuse_nothing_is_chosen() -> None:
    assert chosen(TWO, claims=[("join", "no"), ("kernel", "no")]).strategy is None


def test_a_strategy_that_was_asked_for_is_taken() -> None:
    choice = chosen(THREE, strategy="join")
    assert (choice.strategy, choice.reason) == ("join", "asked for")


def million(**more: Any) -> Statistics:
    return Statistics.of(dict.fromkeys("ABC", 2_000_000), duration=10_000 * SECOND, **more)


def test_with_statistics_the_cheapest_is_chosen() -> None:
    choice = chosen(THREE, million(), shared_input=True)
    costs = {option.strategy: option.cost.seconds for option in choice.options if option.cost is not None}
    assert set(costs) == {"join", "kernel"}
    assert choice.strategy == min(costs, key=lambda name: costs[name]) == "kernel"


def test_every_further_join_costs_more_than_a_further_variable_of_the_kernel() -> None:
    def cost(text: str, strategy: str) -> float:
        options = chosen(text, million(), shared_input=True).options
        return next(option.cost.seconds for option in options if option.strategy == strategy and option.cost)

    assert cost(THREE, "join") / cost(TWO, "join") > cost(THREE, "kernel") / cost(TWO, "kernel")


def test_a_rare_variable_makes_joins_cheap() -> None:
    choice = chosen(THREE, million(selectivity={"c": 1e-6}))
    assert choice.strategy == "join"
    assert choice.join_orders[frozenset("abc")][0] == "c"
    assert choice.prefilter == "c"


def test_no_variable_prefilters_where_it_is_everywhere() -> None:
    assert chosen(THREE, million()).prefilter is None
    # Rare beside the others, but its windows still cover most of the time.
    assert chosen(THREE, million(selectivity={"c": 0.005})).prefilter is None
    # It may be missing from a match.
    assert chosen("PATTERN SEQ(A a, B b, C? c) WITHIN 10 SECONDS", million(selectivity={"c": 1e-6})).prefilter is None


def test_an_input_in_order_of_time_is_searched_where_it_lies() -> None:
    sparse = "PATTERN SEQ(A a, B b, C c) WITHIN 1 MILLISECOND"
    assert chosen(sparse, million(clustered=1250 * SECOND)).strategy == "clustered"
    # There every match is sent on once more: many of them cost more than a shuffle of the events.
    assert chosen(THREE, million(clustered=1250 * SECOND)).strategy == "kernel"


@pytest.mark.parametrize(
    ("text", "statistics", "words"),
    [
        (THREE, None, "not known whether"),
        (THREE, million(), "not known whether"),
        ("PATTERN SEQ(A a, B b)", million(clustered=1250 * SECOND), "over any time"),
        ("PATTERN SEQ(A a, B b) WITHIN 300 SECONDS", million(clustered=1250 * SECOND), "much of a part"),
    ],
)
def test_the_clustered_strategy_says_why_not(text: str, statistics: Statistics | None, words: str) -> None:
    option = next(option for option in chosen(text, statistics).options if option.strategy == "clustered")
    assert option.refusal is not None
    assert words in option.refusal


# --- explosion ------------------------------------------------------------------------------------


def test_an_explosion_is_foretold_with_its_variable_and_what_to_do() -> None:
    choice = chosen("PATTERN SEQ(A a, B+ b, C c) WITHIN 1 SECOND", million())
    assert choice.matches_per_start is not None
    assert choice.matches_per_start > 1e50
    assert choice.warning is not None
    assert all(words in choice.warning for words in ["`b` repeats", "SEMANTICS next", "{1,5}", "smaller window"])


def test_a_small_iteration_is_not_warned_of() -> None:
    assert chosen("PATTERN SEQ(A a, B+ b, C c) WITHIN 10 MILLISECONDS", million()).warning is None


def test_a_product_of_single_events_may_explode_too() -> None:
    choice = chosen("PATTERN AND(A a, B b, C c) WITHIN 1000 SECONDS", million())
    assert choice.warning is not None


def test_the_limit_can_be_set() -> None:
    text = "PATTERN SEQ(A a, B+ b) WITHIN 20 MILLISECONDS"
    assert chosen(text, million(), most_matches_per_start=2).warning is not None
    assert chosen(text, million()).warning is None


def test_what_is_counted_explodes_never() -> None:
    claims = [("trend", None), ("kernel", None)]
    choice = chosen("PATTERN SEQ(A a, B+ b) WITHIN 20 MILLISECONDS", million(), claims, most_matches_per_start=2)
    assert (choice.strategy, choice.warning) == ("trend", None)


# --- slices ---------------------------------------------------------------------------------------


def test_without_statistics_a_slice_is_sixteen_spans() -> None:
    assert chosen(TWO).slice_us == 16 * 10 * SECOND
    assert chosen("PATTERN SEQ(A a, B b)").slice_us is None


def test_with_statistics_there_are_four_slices_a_core_and_a_halo_of_a_tenth_at_most() -> None:
    for cores in (1, 2, 8, 16):
        width = chosen(TWO, million(), cores=cores).slice_us
        assert width is not None
        assert 10_000 * SECOND / width >= 4 * cores
        assert width / 10 >= 10 * SECOND


def test_a_short_input_is_cut_for_the_cores_unless_keys_keep_them_busy() -> None:
    short = {"duration": 60 * SECOND}
    assert chosen(TWO, Statistics.of({"A": 100, "B": 100}, **short)).slice_us == 20 * SECOND
    keyed = "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 SECONDS"
    assert chosen(keyed, Statistics.of({"A": 100, "B": 100}, keys=50, **short)).slice_us == 160 * SECOND
    skewed = Statistics.of({"A": 100, "B": 100}, keys=50, heaviest=0.9, **short)
    assert chosen(keyed, skewed).slice_us == 20 * SECOND


def test_a_single_instant_has_slices_too() -> None:
    assert slice_width_us(0) == 16


def test_an_absence_at_the_edge_lengthens_the_view() -> None:
    def span(text: str) -> int | None:
        query = tocsin.pattern(text).query
        return longest_span_us(query, network(query))

    assert span(TWO) == 10 * SECOND
    assert span("PATTERN SEQ(A a, B b, NOT C c) WITHIN 10 SECONDS") == 20 * SECOND
    assert span("PATTERN SEQ(A a, NOT C c, B b) WITHIN 10 SECONDS") == 10 * SECOND
    assert span("PATTERN SEQ(A a, B b)") is None


# --- text -----------------------------------------------------------------------------------------


def test_the_text_shows_choice_alternatives_and_numbers() -> None:
    text = choice_text(chosen(THREE, million(selectivity={"c": 1e-6}), [*ALL, ("sliding", None), ("local", "small")]))
    lines = text.splitlines()
    assert lines[0] == "join: the cheapest by the statistics"
    assert any(line.startswith("join       chosen  ") and "CPU-s (" in line for line in lines)
    assert any(line.startswith("clustered") and "not possible: it is not known" in line for line in lines)
    assert any(line.startswith("sliding") and line.endswith("not known") for line in lines)
    assert any(line.startswith("local") and line.endswith("not possible: small") for line in lines)
    assert "join order: c, a, b" in lines or "join order: c, b, a" in lines
    assert "prefilter: only events near one of `c`" in lines
    assert any(line.startswith("expected: ") for line in lines)


def test_the_sections_are_in_the_order_of_explain() -> None:
    query = tocsin.pattern("PATTERN A a WHERE a.x > 1 AND 1 < 2").query
    parts = planner_sections(optimize(query).fired, None, chosen(TWO))
    assert list(parts) == ["Rules", "Statistics", "Strategy"]
    assert parts["Rules"].startswith("fold_constants: constants")
    assert "tried without effect: drop_idle_absences, partition_by_keys, share_keys" in parts["Rules"]
    assert parts["Statistics"] == statistics_text(None)


def test_rules_that_all_fired_leave_none_without_effect() -> None:
    from tocsin.optimizer.rules import RULES

    assert "tried" not in rules_text(RULES)


def test_a_choice_is_plain_values_for_tools() -> None:
    told = chosen(TWO, million()).to_dict()
    assert told["strategy"] in ("join", "kernel")
    assert told["join_orders"] == [["a", "b"]]
    assert {option["strategy"] for option in told["options"]} == {"join", "kernel", "clustered"}
