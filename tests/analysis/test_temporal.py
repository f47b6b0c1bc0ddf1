"""The temporal network against values derived by hand and against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.analysis.patterns import (
    SECOND,
    Constraint,
    at_most,
    between,
    both,
    constrained_queries,
    either,
    event,
    leading,
    matches,
    query,
    repeat,
    satisfies,
    sequence,
    trailing,
    ts,
)

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import alternatives
from tocsin.analysis.temporal import network
from tocsin.language import expressions as ex
from tocsin.source import Place, Source

HORIZON = 6


def compare(op: str, left: ex.Expression, right: ex.Expression) -> ex.Expression:
    return ex.Comparison(op, left, right)


def minus(left: str, right: str) -> ex.Expression:
    return ex.Arithmetic("-", ts(left), ts(right))


def seconds(number: int) -> ex.Interval:
    return ex.Interval(number * SECOND)


def test_a_sequence_in_a_window_leaves_one_microsecond_for_each_step():
    found = network(query(sequence("a", "b", "c"), within=10 * SECOND))
    assert found.distance("a", "c") == (2, 9_999_999)
    assert found.distance("a", "b") == (1, 9_999_998)
    assert found.distance("c", "b") == (-9_999_998, -1)
    assert found.unbounded_pair() is None


def test_a_conjunction_in_a_window_may_go_either_way():
    assert network(query(both("a", "b"), within=10 * SECOND)).distance("a", "b") == (-9_999_999, 9_999_999)


def test_a_single_variable_is_no_distance_from_itself():
    assert network(query(event("a"))).distance("a", "a") == (0, 0)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (compare("<=", minus("b", "a"), seconds(5)), (None, 5 * SECOND)),
        (compare("<", minus("b", "a"), seconds(5)), (None, 5 * SECOND - 1)),
        (compare(">=", minus("b", "a"), seconds(5)), (5 * SECOND, None)),
        (compare(">", minus("b", "a"), seconds(5)), (5 * SECOND + 1, None)),
        (compare("=", minus("b", "a"), seconds(5)), (5 * SECOND, 5 * SECOND)),
        (compare("<", ts("b"), ts("a")), (None, -1)),
        (compare("<=", ts("b"), ex.Arithmetic("+", ts("a"), seconds(5))), (None, 5 * SECOND)),
        (compare(">=", ts("a"), ex.Arithmetic("-", ts("b"), seconds(5))), (None, 5 * SECOND)),
        (compare(">=", seconds(5), minus("b", "a")), (None, 5 * SECOND)),
        (compare(">=", minus("a", "b"), ex.Negative(seconds(5))), (None, 5 * SECOND)),
        (compare("<=", minus("b", "a"), ex.Arithmetic("*", ex.Literal(2), seconds(5))), (None, 10 * SECOND)),
        (ex.Between(minus("b", "a"), seconds(2), seconds(5)), (2 * SECOND, 5 * SECOND)),
        (ex.Between(ts("b"), ts("a"), ex.Arithmetic("+", ts("a"), seconds(5))), (0, 5 * SECOND)),
        (ex.Not(compare(">", minus("b", "a"), seconds(5))), (None, 5 * SECOND)),
        (ex.Not(ex.Between(minus("b", "a"), seconds(2), seconds(5), negated=True)), (2 * SECOND, 5 * SECOND)),
        (compare("<=", ex.Call("abs", (minus("a", "b"),)), seconds(5)), (-5 * SECOND, 5 * SECOND)),
        (compare(">", seconds(5), ex.Call("abs", (minus("a", "b"),))), (-5 * SECOND + 1, 5 * SECOND - 1)),
    ],
)
def test_a_condition_on_two_time_stamps_bounds_their_distance_however_it_is_written(condition, expected):
    assert network(query(both("a", "b"), condition)).distance("a", "b") == expected


@pytest.mark.parametrize(
    "condition",
    [
        compare("!=", minus("b", "a"), seconds(5)),
        ex.Or((at_most("b", "a", 5), at_most("a", "b", 5))),
        ex.Between(minus("b", "a"), seconds(2), seconds(5), negated=True),
        compare("<=", ex.Arithmetic("+", ts("b"), ts("a")), seconds(5)),
        compare("<=", ex.Attribute("b", ("ts",), ex.Edge.LAST), ex.Arithmetic("+", ts("a"), seconds(5))),
        compare("<=", ex.Arithmetic("-", ex.Attribute("b", ("at",)), ts("a")), seconds(5)),
        compare(">=", ex.Call("abs", (minus("a", "b"),)), seconds(5)),
        compare("<=", minus("b", "a"), ex.Literal(5)),
    ],
)
def test_other_conditions_bound_nothing(condition):
    assert network(query(both("a", "b"), condition)).distance("a", "b") == (None, None)


def test_integers_are_microseconds_when_the_time_column_is_an_integer():
    condition = compare("<=", minus("b", "a"), ex.Literal(5))
    assert network(query(both("a", "b"), condition), integer_time=True).distance("a", "b") == (None, 5)
    doubled = compare(
        "<", ex.Arithmetic("*", ex.Literal(2), minus("b", "a")), ex.Arithmetic("+", seconds(1), ex.Literal(1))
    )
    found = network(query(both("a", "b"), doubled), integer_time=True)
    assert found.distance("a", "b") == (None, 500_000)


def test_each_event_type_may_have_a_time_attribute_of_its_own():
    def asked(x: str, y: str) -> alg.Query:
        difference = ex.Arithmetic("-", ex.Attribute("b", (y,)), ex.Attribute("a", (x,)))
        return query(both("a", "b"), compare("<=", difference, seconds(5)))

    clocks = {"A": "seen", "B": "sent"}
    assert network(asked("seen", "sent"), clocks).distance("a", "b") == (None, 5 * SECOND)
    assert network(asked("seen", "seen"), clocks).distance("a", "b") == (None, None)
    mixed = query(both(either(event("a", "A"), event("a", "B")), "c"), at_most("c", "a", 5))
    assert network(mixed, {"A": "ts", "B": "ts", "C": "ts"}).distance("a", "c") == (None, 5)
    assert network(mixed, {"A": "ts", "B": "at", "C": "ts"}).distance("a", "c") == (None, None)


def test_a_third_variable_that_cancels_out_can_still_make_a_condition_vacuous():
    condition = compare("<=", ex.Arithmetic("+", minus("b", "a"), minus("c", "c")), ex.Interval(5))
    assert network(query(both("a", "b", repeat("c", 0, 1)), condition)).distance("a", "b") == (None, None)


def test_distances_add_up_along_a_chain():
    chain = (at_most("b", "a", 5 * SECOND), at_most("c", "b", 10 * SECOND))
    found = network(query(sequence("a", "b", "c"), *chain))
    assert found.distance("a", "c") == (2, 15 * SECOND)
    assert found.unbounded_pair() is None


def test_without_a_window_a_sequence_is_unbounded_and_the_neighbours_are_named():
    found = network(query(sequence("a", "b", "c"), at_most("b", "a", 5)))
    assert found.unbounded_pair() == ("b", "c")
    with pytest.raises(errors.UnboundedPatternError, match="`b` and `c` may lie arbitrarily far apart"):
        found.require_bounded()


def test_an_iteration_without_a_window_is_unbounded_by_itself():
    assert network(query(repeat("b"))).unbounded_pair() == ("b", "b")
    assert network(query(sequence("a", repeat("b")), at_most("b", "a", 5))).unbounded_pair() is None


def test_the_events_of_an_iteration_are_apart_no_further_than_their_neighbours_allow():
    found = network(query(sequence("a", repeat("b"), "c"), within=10))
    assert found.distance("b", "b") == (-7, 7)
    assert network(query(repeat("b"), within=10)).distance("b", "b") == (-9, 9)


def test_a_condition_on_an_iterated_variable_holds_for_every_event():
    found = network(query(sequence("a", repeat("b")), at_most("b", "a", 5)))
    assert found.distance("a", "b") == (1, 5)
    assert found.distance("b", "b") == (-4, 4)


def test_a_running_index_alone_speaks_of_every_event_and_a_shared_one_does_not():
    def b(index: ex.Index) -> ex.Attribute:
        return ex.Attribute("b", ("ts",), index)

    def bounded(later: ex.Expression, earlier: ex.Expression) -> tuple[int | None, int | None]:
        condition = compare("<=", ex.Arithmetic("-", later, earlier), ex.Interval(5))
        return network(query(both(repeat("a"), repeat("b")), condition)).distance("a", "b")

    a_i = ex.Attribute("a", ("ts",), ex.Running("i"))
    assert bounded(b(ex.Running("i")), ts("a")) == (None, 5)
    assert bounded(b(ex.Running("j")), a_i) == (None, 5)
    assert bounded(b(ex.Running("i")), a_i) == (None, None)
    assert bounded(b(ex.Running("i", -1)), ts("a")) == (None, None)


def test_no_path_runs_through_a_variable_that_may_be_unbound():
    chain = (at_most("b", "a", 5), at_most("c", "b", 5))
    found = network(query(sequence("a", repeat("b", 0, 1), "c"), *chain))
    assert found.distance("a", "b") == (1, 5)
    assert found.distance("a", "c") == (1, None)
    assert found.unbounded_pair() == ("a", "c")


def test_the_distance_of_a_pair_is_the_hull_over_the_alternatives_that_bind_both():
    a_first = sequence("a", "b")
    found = network(query(either(a_first, sequence("b", "a")), within=10))
    assert found.distance("a", "b") == (-9, 9)
    apart = network(query(either("a", "b"), within=10))
    assert apart.distance("a", "b") == (None, None)
    assert apart.unbounded_pair() is None
    closure = found.closure(alternatives(a_first)[0])
    assert closure is not None
    assert closure.distance("a", "b") == (1, 9)


def test_no_path_runs_through_an_absent_variable():
    near = ex.all_of(at_most("n", "a", 5), at_most("c", "n", 5))
    core = between(sequence("a", "c"), "n", ("a",), ("c",), near)
    found = network(query(core))
    assert found.distance("a", "c") == (1, None)
    assert found.distance("a", "n") == (1, 5)
    assert found.distance("n", "c") == (1, 5)


def test_an_absent_event_lies_strictly_between_its_neighbours():
    found = network(query(between(sequence("a", "c"), "n", ("a",), ("c",)), within=10))
    assert found.distance("a", "n") == (1, 8)
    assert found.distance("n", "c") == (1, 8)


def test_an_absence_at_the_edge_reaches_as_far_as_the_window():
    ahead = network(query(trailing(sequence("a", "b"), "n", ("b",), 10), within=10))
    assert ahead.distance("b", "n") == (1, 8)
    assert ahead.distance("a", "n") == (2, 9)
    back = network(query(leading(sequence("a", "b"), "n", ("a",), 10), within=10))
    assert back.distance("n", "a") == (1, 8)
    assert back.distance("n", "b") == (2, 9)


def test_contradictory_distances_are_refused_with_both_conditions_shown():
    text = Source("b.ts - a.ts > 10 SECONDS AND b.ts - a.ts < 5 SECONDS")
    far = ex.Comparison(">", minus("b", "a"), seconds(10), where=Place(text, 0, 24))
    near = ex.Comparison("<", minus("b", "a"), seconds(5), where=Place(text, 29, 52))
    with pytest.raises(errors.ContradictoryDistancesError) as caught:
        network(query(both("a", "b"), far, near))
    assert {caught.value.where, caught.value.also[1]} == {far.where, near.where}
    said = "No events can keep these distances between `a` and `b`: by this condition `b` is "
    least, most = "at least 10.000001 s after", "at most 4.999999 s after"
    assert caught.value.message in (
        f"{said}{least} `a`, by the rest of the pattern {most} it.",
        f"{said}{most} `a`, by the rest of the pattern {least} it.",
    )


def test_a_condition_against_the_order_of_a_sequence_is_contradictory():
    with pytest.raises(
        errors.ContradictoryDistancesError,
        match=r"`a` is at least 1 µs after `b`, .* 1 µs before it",
    ):
        network(query(sequence("a", "b"), compare("<", ts("b"), ts("a"))))


def test_a_window_too_short_for_its_sequence_is_contradictory():
    with pytest.raises(errors.ContradictoryDistancesError, match="within the window"):
        network(query(sequence("a", "b", "c"), within=2))
    assert network(query(sequence("a", "b", "c"), within=3)).distance("a", "c") == (2, 2)


def test_a_contradictory_branch_is_a_warning_and_the_others_remain():
    core = sequence("a", repeat("b", 0, 1), "c")
    found = network(query(core, at_most("c", "a", 5), compare(">", minus("b", "a"), ex.Interval(7))))
    assert [warning.condition for warning in found.warnings] == ["CONTRADICTORY_BRANCH"]
    assert "`a`, `b`, `c`" in found.warnings[0].message
    assert found.distance("a", "c") == (1, 5)
    impossible = next(each for each in alternatives(core) if "b" in each.variables)
    assert found.closure(impossible) is None


def test_equal_positions_in_time_are_possible_where_positions_are_ordered():
    by_position = alg.Sequence((event("a"), event("b")), order=alg.Order.POSITION)
    assert network(query(by_position, within=10)).distance("a", "b") == (0, 9)


def many_choices(*rest: alg.Node) -> alg.Node:
    """More than 256 alternatives, and then the rest."""
    return sequence(*(repeat(f"o{number}", 0, 1) for number in range(9)), *rest)


def test_with_too_many_alternatives_the_network_is_coarser_and_still_sound():
    core = many_choices(event("a"), repeat("b", 0, 1), event("c"))
    chain = (at_most("b", "a", 5), at_most("c", "b", 5))
    found = network(query(core, *chain))
    assert not found.is_exact
    assert found.distance("a", "c") == (1, None)
    assert found.distance("a", "b") == (1, 5)
    windowed = network(query(core, *chain, within=100))
    assert windowed.unbounded_pair() is None
    assert windowed.distance("o0", "a") == (1, 98)
    assert windowed.distance("o0", "o1") == (1, 97)


def test_a_coarser_network_still_refuses_what_no_match_can_keep():
    with pytest.raises(errors.ContradictoryDistancesError):
        network(query(many_choices(event("a"), event("c")), compare(">", ts("a"), ts("c"))))


def test_the_text_form_is_a_small_table():
    found = network(query(sequence("a", "b"), at_most("b", "a", 10 * SECOND)))
    assert str(found) == "from  to  least  greatest\na     b   1 µs   10 s"


def brute_force(pattern: alg.Query, distances: list[Constraint]) -> list[dict[str, tuple[int, ...]]]:
    return [times for times, _ in matches(pattern.pattern, HORIZON) if satisfies(times, distances)]


@given(constrained_queries(horizon=HORIZON))
def test_every_distance_of_every_match_is_within_the_closure_and_the_bounds_are_attained(drawn):
    pattern, distances = drawn
    found = brute_force(pattern, distances)
    if not found:
        # The order inside and between the copies of an iteration is not in the network: it may miss this.
        if not any(kind.iterated for kind in pattern.variables.values()):
            with pytest.raises(errors.ContradictoryDistancesError):
                network(pattern)
        return
    known = network(pattern)
    kinds = pattern.variables
    for x in kinds:
        for y in kinds:
            gaps = [later - earlier for times in found for earlier in times.get(x, ()) for later in times.get(y, ())]
            least, most = known.distance(x, y)
            if not gaps:
                continue
            assert least is not None
            assert most is not None
            assert least <= min(gaps)
            assert max(gaps) <= most
            if not kinds[x].iterated and not kinds[y].iterated:
                assert (least, most) == (min(gaps), max(gaps))


@given(constrained_queries(horizon=HORIZON))
def test_the_coarser_network_never_excludes_what_a_match_can_have(drawn):
    pattern, distances = drawn
    # Nine optional elements before the pattern make it too large to enumerate; its distances stay.
    core = pattern.pattern.part if isinstance(pattern.pattern, alg.Within) else pattern.pattern
    condition = core.condition if isinstance(core, alg.Filter) else None
    inner = core.part if isinstance(core, alg.Filter) else core
    large = query(many_choices(inner), *([condition] if condition is not None else []), within=pattern.window_us)
    found = brute_force(pattern, distances)
    if not found:
        return
    known = network(large)
    assert not known.is_exact
    for times in found:
        for x in times:
            for y in times:
                least, most = known.distance(x, y)
                for earlier in times[x]:
                    for later in times[y]:
                        assert least is None or least <= later - earlier
                        assert most is None or later - earlier <= most
