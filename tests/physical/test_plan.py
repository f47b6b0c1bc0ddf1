"""Plans are decided on the algebra alone; no Spark here."""

from __future__ import annotations

import pytest

import tocsin
from tocsin.algebra.alternatives import Alternative
from tocsin.analysis.temporal import network
from tocsin.language.sase.printer import print_expression
from tocsin.physical.describe import describe
from tocsin.physical.plan import Branch, Nearness, Plan, plan


def plan_of(text: str, *, integer_time: bool = True) -> Plan:
    query = tocsin.pattern(text).query
    return plan(query, network(query, "ts", integer_time=integer_time).closure)


def only(text: str) -> Branch:
    (branch,) = plan_of(text).branches
    return branch


def texts(conditions: tuple[object, ...]) -> list[str]:
    return [print_expression(condition) for condition in conditions]  # type: ignore[arg-type]


def test_a_condition_on_one_variable_filters_its_scan() -> None:
    branch = only("PATTERN SEQ(A a, B b) WHERE a.x > 1 AND b.y = 2 WITHIN 10 US")
    assert texts(branch.scan.conditions) == ["a.x > 1"]
    assert texts(branch.joins[0].scan.conditions) == ["b.y = 2"]
    assert branch.joins[0].conditions == ()


def test_an_equality_of_two_variables_is_a_key_and_other_conditions_are_residual() -> None:
    join = only("PATTERN SEQ(A a, B b) WHERE a.x + 1 = b.x AND a.y < b.y WITHIN 10 US").joins[0]
    assert texts(join.keys) == ["a.x + 1 = b.x"]
    assert texts(join.conditions) == ["a.y < b.y"]


def test_a_condition_is_applied_as_soon_as_its_variables_are_joined() -> None:
    branch = only("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND a.x + b.x < c.x WITHIN 10 US")
    assert [texts(join.conditions) for join in branch.joins] == [["a.x < b.x"], ["a.x + b.x < c.x"]]


def test_the_distance_becomes_time_buckets_and_implies_order_and_window() -> None:
    join = only("PATTERN SEQ(A a, B b) WITHIN 10 US").joins[0]
    assert join.near == Nearness("a", 1, 9)
    assert join.before == ()
    assert join.span is None


def test_the_nearest_joined_variable_anchors_the_buckets() -> None:
    branch = only("PATTERN SEQ(A a, B b, C c) WHERE c.ts - b.ts <= 3 WITHIN 100 US")
    assert branch.joins[1].near == Nearness("b", 1, 3)
    assert branch.joins[1].span is not None


def test_unordered_variables_lie_on_either_side() -> None:
    join = only("PATTERN AND(A a, B b) WITHIN 10 US").joins[0]
    assert join.near == Nearness("a", -9, 9)
    assert join.span is None


def test_without_a_window_only_the_order_remains() -> None:
    join = only("PATTERN SEQ(A a, B b)").joins[0]
    assert join.near is None
    assert join.before == (("a", "b"),)


def test_connected_variables_are_joined_before_unconnected_ones() -> None:
    branch = only("PATTERN SEQ(A a, B b, C c) WHERE a.k = c.k")
    assert [scan.variable for scan in branch.scans] == ["a", "c", "b"]
    assert branch.joins[0].before == (("a", "c"),)
    assert branch.joins[1].before == (("a", "b"), ("b", "c"))


def test_two_orders_of_the_same_bindings_are_one_branch_with_either_order() -> None:
    branch = only("PATTERN OR(SEQ(A a, B b, C c), SEQ(A a, C c, B b)) WITHIN 10 US")
    assert branch.orders == ((("b", "c"),), (("c", "b"),))
    assert branch.firsts == ("a",)


def test_an_order_that_another_alternative_does_not_need_is_not_demanded() -> None:
    branch = only("PATTERN OR(SEQ(A a, B b), AND(A a, B b)) WITHIN 10 US")
    assert branch.orders == ()
    assert branch.joins[0].before == ()


def test_alternatives_of_different_variables_are_different_branches() -> None:
    branches = plan_of("PATTERN SEQ(A a, OR(B b, C c)) WITHIN 10 US").branches
    assert [[scan.variable for scan in branch.scans] for branch in branches] == [["a", "b"], ["a", "c"]]


def test_one_name_of_two_types_makes_two_branches() -> None:
    branches = plan_of("PATTERN OR(A x, B x)").branches
    assert [branch.scan.type for branch in branches] == ["A", "B"]


def test_a_conjunct_on_an_unbound_variable_is_vacuous() -> None:
    a, b = plan_of("PATTERN OR(A a, B b) WHERE a.x > 1 AND (a.x = 2 OR b.x = 3)").branches
    assert texts(a.scan.conditions) == ["a.x > 1"]
    assert b.scan.conditions == ()


def test_an_aggregate_over_an_unbound_variable_is_evaluated() -> None:
    a, b = plan_of("PATTERN OR(A a, B b) WHERE COUNT(b) = 0").branches
    assert texts(a.scan.conditions) == ["COUNT(b) = 0"]
    assert texts(b.scan.conditions) == ["COUNT(b) = 0"]


def test_an_index_outside_the_bag_makes_a_conjunct_vacuous() -> None:
    assert only("PATTERN A a WHERE a[2].x = 1").scan.conditions == ()
    assert len(only("PATTERN A a WHERE a[1].x = 1 AND a[last].x = 1").scan.conditions) == 2


def test_an_optional_element_may_be_left_out_but_not_all_of_them() -> None:
    branches = plan_of("PATTERN SEQ(A? a, B? b) WITHIN 10 US").branches
    assert {frozenset(scan.variable for scan in branch.scans) for branch in branches} == {
        frozenset("a"),
        frozenset("b"),
        frozenset("ab"),
    }


@pytest.mark.filterwarnings("ignore::tocsin.TocsinWarning")
def test_an_alternative_that_no_events_can_satisfy_is_not_planned() -> None:
    text = "PATTERN OR(SEQ(A a, B b), SEQ(B b, A a)) WHERE b.ts - a.ts >= 3 WITHIN 10 US"
    branch = only(text)
    assert branch.orders == ()
    assert branch.joins[0].near == Nearness("a", 3, 9)


def test_the_empty_alternative_has_no_network_and_no_branch() -> None:
    asked: list[Alternative] = []
    query = tocsin.pattern("PATTERN A? a").query
    made = plan(query, lambda alternative: asked.append(alternative) or network(query).closure(alternative))
    assert len(made.branches) == 1
    assert all(alternative.types for alternative in asked)


def test_a_plan_reads_as_a_list_of_steps() -> None:
    text = """
        PATTERN SEQ(Login a, OR(Transfer b, Payment c)) PARTITION BY user
        WHERE a.country != 'DE' AND b.amount > 100 AND b.bank = a.bank AND c.amount > a.amount
        WITHIN 10 MINUTES
    """
    query = tocsin.pattern(text).query
    assert describe(plan_of(text), query.partition) == "\n".join(
        [
            "native joins: every match once, no sliding window",
            "alternative 1 of 2: a, b",
            "  scan Login a  where a.country != 'DE'",
            "  join Transfer b  where b.amount > 100",
            "       on b.bank = a.bank, same user, time buckets of 599.999999 s",
            "       b.ts - a.ts in [1 µs, 599.999999 s]",
            "alternative 2 of 2: a, c",
            "  scan Login a  where a.country != 'DE'",
            "  join Payment c",
            "       on same user, time buckets of 599.999999 s",
            "       c.ts - a.ts in [1 µs, 599.999999 s]",
            "       c.amount > a.amount",
            "union of 2 alternatives; unbound variables are NULL",
        ]
    )


def test_a_join_with_nothing_to_join_on_says_so() -> None:
    assert "neither a key nor a largest distance" in describe(
        plan_of("PATTERN SEQ(A a, B b)"), tocsin.pattern("PATTERN SEQ(A a, B b)").query.partition
    )


def test_a_distance_that_is_unbounded_in_practice_makes_no_time_buckets() -> None:
    (branch,) = plan_of(f"PATTERN SEQ(A a, B b) WITHIN {3 * 10**18} US").branches
    (join,) = branch.joins
    assert join.near is None
    assert join.before == (("a", "b"),)
    assert join.span is not None
    assert join.span.window_us == 3 * 10**18


def test_the_time_column_is_called_by_its_name() -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"
    partition = tocsin.pattern(text).query.partition
    assert "b.at - a.at in [1 µs, 9.999999 s]" in describe(plan_of(text), partition, "at")
    assert "b.`my time` - a.at in" in describe(plan_of(text), partition, {"A": "at", "B": "my time"})
