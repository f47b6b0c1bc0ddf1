"""Plans are decided on the algebra alone; no Spark here."""

from __future__ import annotations

from typing import Any

import pytest

import tocsin
from tocsin.algebra.alternatives import Alternative
from tocsin.analysis.temporal import network
from tocsin.language.sase.printer import print_expression
from tocsin.plan.joins.build import plan
from tocsin.plan.joins.describe import describe
from tocsin.plan.joins.model import Branch, Limit, Nearness, Plan, Sliding, Way


def plan_of(text: str, *, integer_time: bool = True, **options: Any) -> Plan:
    query = tocsin.pattern(text).query
    return plan(query, network(query, "ts", integer_time=integer_time).closure, **options)


def only(text: str, **options: Any) -> Branch:
    (branch,) = plan_of(text, **options).branches
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
    assert branch.ways == (Way((("b", "c"),)), Way((("c", "b"),)))
    assert branch.firsts == ("a",)


def test_an_order_that_another_alternative_does_not_need_is_not_demanded() -> None:
    branch = only("PATTERN OR(SEQ(A a, B b), AND(A a, B b)) WITHIN 10 US")
    assert branch.ways == ()
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
    assert branch.ways == ()
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


# --- absences -------------------------------------------------------------------------------------


def test_an_absence_is_an_anti_join_as_soon_as_its_neighbours_are_joined() -> None:
    branch = only("PATTERN SEQ(A a, NOT B n, C c, D d) WITHIN 10 US")
    assert [len(join.absences) for join in branch.joins] == [1, 0]
    (absence,) = branch.joins[0].absences
    assert absence.lower == (Limit(("a",), latest=True),)
    assert absence.upper == (Limit(("c",), latest=False),)
    assert absence.near == Nearness("a", 1, 7)


def test_an_absence_waits_for_the_variables_of_its_conditions() -> None:
    branch = only("PATTERN SEQ(A a, NOT B n, C c, D d) WHERE n.x < d.x AND n.k = a.k AND n.x > 0 WITHIN 10 US")
    assert [len(join.absences) for join in branch.joins] == [0, 1]
    (absence,) = branch.joins[1].absences
    assert texts(absence.scan.conditions) == ["n.x > 0"]
    assert texts(absence.keys) == ["n.k = a.k"]
    assert texts(absence.conditions) == ["n.x < d.x"]


def test_an_absence_at_the_edge_is_closed_by_the_window_of_the_whole_match() -> None:
    branch = only("PATTERN SEQ(NOT B n, A a, C c, NOT B m) WITHIN 10 US")
    leading, trailing = branch.joins[0].absences
    assert leading.lower == (Limit(("c",), latest=True, offset_us=-10),)
    assert leading.upper == (Limit(("a",), latest=False),)
    assert trailing.lower == (Limit(("c",), latest=True),)
    assert trailing.upper == (Limit(("a",), latest=False, offset_us=10),)


def test_an_absence_of_one_event_alone_is_decided_at_its_scan() -> None:
    branch = only("PATTERN SEQ(A a, NOT B n) WITHIN 10 US")
    (absence,) = branch.absences
    assert absence.near == Nearness("a", 1, 9)


def test_an_anchor_that_is_not_bound_bounds_nothing() -> None:
    branches = {
        frozenset(branch.bags): branch
        for branch in plan_of("PATTERN SEQ(A a, NOT N n, B? b, C c) WITHIN 10 US").branches
    }
    (without,) = branches[frozenset("ac")].joins[0].absences
    (between,) = branches[frozenset("abc")].joins[0].absences
    assert without.upper == (Limit(("c",), latest=False),)
    assert between.upper == (Limit(("b",), latest=False),)


def test_a_condition_on_an_unbound_variable_does_not_keep_an_absence_from_blocking() -> None:
    branches = {
        frozenset(branch.bags): branch
        for branch in plan_of(
            "PATTERN SEQ(A a, NOT N n, B? b, C c) WHERE n.x = b.x AND n.x = a.x WITHIN 10 US"
        ).branches
    }
    (absence,) = branches[frozenset("ac")].joins[0].absences
    assert texts(absence.keys) == ["n.x = a.x"]
    assert absence.conditions == ()


def test_without_a_window_an_absence_has_no_time_buckets() -> None:
    (absence,) = only("PATTERN SEQ(A a, NOT B n, C c) PARTITION BY k").joins[0].absences
    assert absence.near is None


def test_an_absence_that_no_event_can_break_is_left_out() -> None:
    branch = only("PATTERN SEQ(A a, NOT B n, C c) WHERE n.ts - a.ts > 20 WITHIN 10 US")
    assert branch.joins[0].absences == ()


def test_different_absences_of_the_same_bindings_are_alternatives() -> None:
    branch = only("PATTERN OR(SEQ(A a, NOT B n, C c), SEQ(A a, NOT D m, C c)) WITHIN 10 US")
    assert branch.joins[0].absences == ()
    assert [[absence.scan.type for absence in way.absences] for way in branch.ways] == [["B"], ["D"]]


def test_an_absence_that_all_derivations_demand_is_an_anti_join() -> None:
    text = "PATTERN OR(SEQ(A a, NOT B n, C c), SEQ(A a, NOT B n, NOT D m, C c)) WITHIN 10 US"
    branch = only(text)
    assert [absence.scan.type for absence in branch.joins[0].absences] == ["B"]
    assert branch.ways == ()  # what demands more than another derivation adds nothing


# --- iterations -----------------------------------------------------------------------------------


def test_an_iteration_is_a_self_join_of_copies_in_order() -> None:
    branch = only("PATTERN B{3} b WHERE b[i].x > b[i-1].x AND b.x > 0 WITHIN 10 US")
    assert branch.bags == {"b": ("b[1]", "b[2]", "b[3]")}
    assert [scan.variable for scan in branch.scans] == ["b[1]", "b[2]", "b[3]"]
    assert [len(scan.conditions) for scan in branch.scans] == [1, 1, 1]
    assert [len(join.conditions) for join in branch.joins] == [1, 1]
    assert branch.joins[1].near == Nearness("b[1]", 2, 9)
    assert branch.joins[1].before == (("b[2]", "b[3]"),)


def test_every_number_of_copies_is_a_branch() -> None:
    branches = plan_of("PATTERN SEQ(A a, B{0,2} b) WITHIN 10 US").branches
    assert [len(branch.scans) for branch in branches] == [1, 2, 3]


def test_a_fixed_index_outside_the_bag_is_vacuous_in_that_branch_only() -> None:
    two, three = plan_of("PATTERN B{2,3} b WHERE b[3].x > b[1].x WITHIN 10 US").branches
    assert [join.conditions for join in two.joins] == [()]
    assert [len(join.conditions) for join in three.joins] == [0, 1]


def test_a_name_iterated_in_one_branch_is_a_bag_in_all() -> None:
    branches = plan_of("PATTERN OR(A b, SEQ(A{2} b, C c)) WITHIN 10 US").branches
    assert [branch.bags["b"] for branch in branches] == [("b[1]",), ("b[1]", "b[2]")]


def test_more_copies_than_the_window_has_room_for_have_no_time_buckets() -> None:
    branch = only("PATTERN B{3} b WITHIN 2 US")
    assert branch.joins[1].near == Nearness("b[2]", 1, 1)
    assert branch.joins[1].span is not None


# --- what a planner chooses -----------------------------------------------------------------------


def test_variables_are_joined_in_the_given_order() -> None:
    branch = only("PATTERN SEQ(A a, B b, C c) WITHIN 10 US", order=("c",))
    assert [scan.variable for scan in branch.scans] == ["c", "a", "b"]
    assert branch.joins[0].near == Nearness("c", -9, -2)
    turned = only("PATTERN SEQ(A a, B{2} b) WITHIN 10 US", order=lambda names: tuple(reversed(names)))
    assert [scan.variable for scan in turned.scans] == ["b[2]", "b[1]", "a"]
    assert [scan.variable for scan in only("PATTERN SEQ(A a, B{2} b) WITHIN 10 US", order=("b", "a")).scans] == [
        "b[1]",
        "b[2]",
        "a",
    ]


def test_a_rare_variable_prefilters_the_others() -> None:
    branch = only("PATTERN SEQ(A a, NOT N n, B b) WHERE a.k = b.k AND n.k = b.k WITHIN 10 US", prefilter="b")
    assert branch.joins[0].scan.prefilter is None
    assert branch.scan.prefilter is not None
    assert branch.scan.prefilter.near == Nearness("b", -9, -1)
    assert texts(branch.scan.prefilter.keys) == ["a.k = b.k"]
    (absence,) = branch.joins[0].absences
    assert absence.scan.prefilter is not None
    assert texts(absence.scan.prefilter.keys) == ["n.k = b.k"]


def test_sliding_windows_are_wide_enough_for_every_match() -> None:
    made = plan_of("PATTERN SEQ(A a, B b) WITHIN 100 US", sliding=True)
    assert made.sliding == Sliding(width_us=110, slide_us=10)
    (join,) = made.branches[0].joins
    assert join.near is None
    assert join.before == (("a", "b"),)
    assert join.span is not None


def test_absences_copies_and_prefilters_are_described() -> None:
    text = "PATTERN SEQ(A a, NOT N n, B{2} b) WHERE b[i].x > b[i-1].x AND n.x = a.x WITHIN 10 SECONDS"
    made = plan_of(text, prefilter="a", order=("b", "a"))
    assert describe(made, tocsin.pattern(text).query.partition) == "\n".join(
        [
            "native joins: every match once, no sliding window",
            "  scan B b[1]",
            "       kept near a, broadcast: time buckets of 9.999999 s",
            "  join B b[2]",
            "       kept near a, broadcast: time buckets of 9.999999 s",
            "       on time buckets of 9.999998 s",
            "       b[2].ts - b[1].ts in [1 µs, 9.999998 s]",
            "       b[2].x > b[1].x",
            "  join A a",
            "       on time buckets of 9.999999 s",
            "       a.ts - b[1].ts in [-9.999999 s, -1 µs]",
            "       span less than 10 s",
            "  drop rows with N n",
            "       kept near a, broadcast: n.x = a.x, time buckets of 9.999998 s",
            "       on n.x = a.x, time buckets of 9.999998 s",
            "       n.ts > a.ts",
            "       n.ts < b[1].ts",
        ]
    )
