"""The nodes that SASE+ text cannot write: ACEL's and the rules', on the reference, from hand-made algebra.

Their rulings (R7, R8, R19, R22, R24-R30) get case files with their languages; here each has the example that tells
its reading from the other.
"""

from __future__ import annotations

from typing import Any

import pytest

from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex

SECOND = 1_000_000


def rows(*events: tuple[str, int, dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for kind, second, values in events:
        grouped.setdefault(kind, []).append({"ts": second * SECOND, **values})
    return grouped


def found(node: alg.Node, stream: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return reference.evaluate(alg.Query(node), stream)


A, B, C = alg.Event("A", "A"), alg.Event("B", "B"), alg.Event("C", "C")

# 003, Example 1: the running stream of stock events.
STOCKS = rows(
    ("SELL", 0, {"name": "MSFT", "price": 101}),
    ("SELL", 1, {"name": "MSFT", "price": 102}),
    ("SELL", 2, {"name": "INTL", "price": 80}),
    ("BUY", 3, {"name": "INTL", "price": 80}),
    ("SELL", 4, {"name": "AMZN", "price": 1900}),
    ("SELL", 5, {"name": "INTL", "price": 81}),
    ("BUY", 6, {"name": "AMZN", "price": 1920}),
    ("BUY", 7, {"name": "MSFT", "price": 101}),
    ("BUY", 8, {"name": "INTL", "price": 79}),
    ("SELL", 9, {"name": "INTL", "price": 80}),
)


def test_r7_acel_sequence_compares_positions_where_sase_compares_time() -> None:
    tied = rows(("A", 1, {}), ("B", 1, {}))
    assert len(found(alg.Sequence((A, B), alg.Order.POSITION), tied)) == 1
    assert found(alg.Sequence((A, B)), tied) == []


def test_r7_acel_iteration_steps_inside_one_instant() -> None:
    tied = rows(("A", 1, {"x": 1}), ("A", 1, {"x": 2}))
    assert len(found(alg.Repeat(A, 1, None, alg.Order.POSITION), tied)) == 3
    assert len(found(alg.Repeat(A, 1, None), tied)) == 2


def test_adjacent_needs_the_very_next_position() -> None:
    stream = rows(("A", 1, {}), ("C", 2, {}), ("B", 3, {}), ("A", 4, {}), ("B", 5, {}))
    assert [(row["start"], row["end"]) for row in found(alg.Adjacent((A, B)), stream)] == [(4 * SECOND, 5 * SECOND)]


def test_adjacent_repetition_takes_runs_only() -> None:
    stream = rows(("A", 1, {}), ("A", 2, {}), ("B", 3, {}), ("A", 4, {}))
    lengths = sorted(len(row["A"]) for row in found(alg.RepeatAdjacent(A), stream))
    assert lengths == [1, 1, 1, 2]  # with `+` also the pairs (1, 4), (2, 4) and the triple


def test_r8_projection_keeps_the_interval() -> None:
    stream = rows(("A", 1, {}), ("B", 2, {}), ("B", 3, {}))
    projected = alg.Project(alg.Sequence((A, B)), (("A", None),))
    assert [(row["end"], row["A"]["ts"]) for row in found(projected, stream)] == [
        (2 * SECOND, SECOND),
        (3 * SECOND, SECOND),
    ]


def test_r8_a_sequence_after_a_projection_starts_after_what_was_projected_away() -> None:
    stream = rows(("A", 1, {}), ("C", 2, {}), ("B", 3, {}))
    projected = alg.Project(alg.Sequence((A, B)), (("A", None),))
    assert found(alg.Sequence((projected, C)), stream) == []


def test_r19_a_name_holds_every_event_of_the_match_once() -> None:
    stream = rows(("A", 1, {"x": 5}), ("B", 2, {"x": 7}))
    named = alg.Bind(alg.Bind(alg.Sequence((A, B)), "Y"), "X")
    (row,) = found(named, stream)
    assert [event["x"] for event in row["X"]] == [5, 7]  # not twice, though A, B and Y hold them


def test_r19_what_projection_removed_is_gone() -> None:
    stream = rows(("A", 1, {"x": 5}), ("B", 2, {"x": 7}))
    named = alg.Bind(alg.Project(alg.Sequence((A, B)), (("A", None),)), "X")
    (row,) = found(named, stream)
    assert [event["x"] for event in row["X"]] == [5]


def test_r22_next_is_the_first_from_each_position_on() -> None:
    stream = rows(("A", 1, {}), ("C", 2, {}), ("B", 3, {}), ("B", 4, {}))
    matches = found(alg.NextOf("B", "B"), stream)
    assert [(row["start"] // SECOND, row["end"] // SECOND) for row in matches] == [(1, 3), (2, 3), (3, 3), (4, 4)]


def test_r24_two_equal_derived_events_are_two_in_the_bag() -> None:
    stream = rows(("A", 1, {"x": 3}), ("A", 2, {"x": 5}))
    total = (alg.Fold("s", "sum", "A", ("x",)),)
    twice = alg.Derive(alg.Derive(alg.Repeat(A, 2, 2), "Y", total), "Y", total)
    summed = alg.Derive(twice, "Z", (alg.Fold("t", "sum", "Y", ("s",)),))
    (row,) = found(summed, stream)
    assert [event["s"] for event in row["Y"]] == [8, 8]
    assert row["Z"]["t"] == 16


def test_r24_derived_events_make_equal_matches_one() -> None:
    stream = rows(("A", 1, {"x": 4}), ("B", 2, {"x": 1}))
    total = (alg.Fold("s", "max", "A", ("x",)),)
    one = alg.Derive(A, "Y", total)
    assert len(found(alg.Any((one, one)), stream)) == 1


def test_r25_acel_and_is_an_intersection_not_a_product() -> None:
    stream = rows(("A", 1, {}), ("B", 2, {}))
    assert found(alg.Both((A, B)), stream) == []
    assert found(alg.Both((alg.Bind(A, "x"), alg.Bind(A, "y"))), stream) == []
    assert len(found(alg.Both((alg.Sequence((A, B)), alg.Sequence((A, B)))), stream)) == 1


def price_above(variable: str, price: int) -> ex.Expression:
    return ex.Every(variable, ex.Comparison(">", ex.Attribute(variable, ("price",)), ex.Literal(price)))


def test_r26_a_filter_holds_for_every_event_and_on_none() -> None:
    sells = alg.Repeat(alg.Event("SELL", "s"), 2, 2)
    kept = found(alg.Filter(sells, price_above("s", 101)), STOCKS)
    assert [[event["price"] for event in row["s"]] for row in kept] == [[102, 1900]]
    nothing_bound = alg.Filter(alg.Any((alg.Event("BUY", "b"), alg.Event("SELL", "s"))), price_above("s", 10_000))
    assert len(found(nothing_bound, STOCKS)) == 4  # the four BUY: no s, so the filter is TRUE


def test_r26_or_of_filters_is_decided_per_atom() -> None:
    pair = alg.Sequence((alg.Event("SELL", "s"), alg.Event("BUY", "b")))
    either = ex.any_of(price_above("s", 1000), price_above("b", 1000))
    kept = found(alg.Filter(pair, either), STOCKS)
    assert {(row["s"]["price"], row["b"]["price"]) for row in kept} == {
        (101, 1920),
        (102, 1920),
        (80, 1920),
        (1900, 1920),
        (81, 1920),
        (1900, 101),
        (1900, 79),
    }


@pytest.mark.parametrize(
    ("order", "values", "kept"),
    [
        (ex.BagOrder.INCREASING, [1, 2, 3], True),
        (ex.BagOrder.INCREASING, [1, 1, 2], False),
        (ex.BagOrder.DECREASING, [3, 2, 1], True),
        (ex.BagOrder.SAME, [2, 2, 2], True),
        (ex.BagOrder.SAME, [2, 2, 1], False),
        (ex.BagOrder.SAME, [None], True),  # one event is always fine
        (ex.BagOrder.SAME, [2, None], False),  # UNKNOWN drops the match
        (ex.BagOrder.INCREASING, [None, 1], False),
    ],
)
def test_r27_bag_predicates_compare_different_events_only(
    order: ex.BagOrder, values: list[int | None], kept: bool
) -> None:
    stream = rows(*(("A", second, {"x": value}) for second, value in enumerate(values)))
    whole = alg.Repeat(A, len(values), len(values))
    assert bool(found(alg.Filter(whole, ex.BagPredicate(order, "A", ("x",))), stream)) is kept


def test_r27_successors_go_by_position_when_times_tie() -> None:
    tied = rows(("A", 1, {"x": 1}), ("A", 1, {"x": 2}))
    whole = alg.Repeat(A, 2, 2, alg.Order.POSITION)
    assert found(alg.Filter(whole, ex.BagPredicate(ex.BagOrder.INCREASING, "A", ("x",))), tied)
    assert not found(alg.Filter(whole, ex.BagPredicate(ex.BagOrder.DECREASING, "A", ("x",))), tied)


def no_b(*windows: tuple[int, int], condition: ex.Expression | None = None) -> alg.Absent:
    """`no b : B`, `no b in A [low, high]` for each window, in seconds, closed at both ends."""
    anchor = alg.FirstOf(("A",))
    return alg.Absent(
        A,
        "B",
        "b",
        condition,
        tuple(alg.Bound(anchor, low * SECOND, strict=False) for low, _ in windows),
        tuple(alg.Bound(anchor, high * SECOND, strict=False) for _, high in windows),
    )


@pytest.mark.parametrize(("second", "blocks"), [(9, False), (10, True), (12, True), (14, True), (15, False)])
def test_r28_the_window_of_an_absence_in_a_rule_is_closed(second: int, blocks: bool) -> None:
    assert bool(found(no_b((0, 4)), rows(("A", 10, {}), ("B", second, {})))) is not blocks


def test_r28_a_blocker_must_lie_in_all_its_windows() -> None:
    both = no_b((0, 4), (3, 8))
    assert found(both, rows(("A", 10, {}), ("B", 12, {})))
    assert not found(both, rows(("A", 10, {}), ("B", 13, {})))


def test_r28_unknown_does_not_block_and_several_absences_block_alone() -> None:
    same = ex.Comparison("=", ex.Attribute("b", ("k",)), ex.Attribute("A", ("k",)))
    guarded = no_b((0, 4), condition=same)
    assert found(guarded, rows(("A", 10, {"k": 1}), ("B", 11, {"k": None})))
    assert not found(guarded, rows(("A", 10, {"k": 1}), ("B", 11, {"k": 1})))


def test_r29_one_event_may_stand_in_several_variables_and_permutations_differ() -> None:
    both = alg.All((alg.Event("A", "p"), alg.Event("A", "q")))
    pairs = {(row["p"]["x"], row["q"]["x"]) for row in found(both, rows(("A", 1, {"x": 1}), ("A", 2, {"x": 2})))}
    assert pairs == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_r29_an_event_may_block_itself() -> None:
    at_a = (alg.Bound(alg.FirstOf(("A",)), 0, strict=False),)
    itself = alg.Absent(A, "A", "n", None, lower=at_a, upper=at_a)
    assert found(itself, rows(("A", 1, {}))) == []


def test_r30_every_match_emits_its_own_event() -> None:
    stream = rows(("A", 1, {"x": 1}), ("A", 2, {"x": 1}), ("B", 3, {}))
    emit = alg.Emit(alg.Sequence((A, B)), "ALERT", ex.Variable("B"), (("x", ex.Attribute("A", ("x",))),), rule="r")
    emitted = found(emit, stream)
    assert [row["ALERT"]["x"] for row in emitted] == [1, 1]
    assert [row["start"] for row in emitted] == [3 * SECOND, 3 * SECOND]


def test_digest_9_5_nesting_compares_whole_intervals() -> None:
    stream = rows(("A", 2, {}), ("B", 1, {}), ("C", 3, {}))
    assert found(alg.Sequence((alg.All((A, B)), C)), stream) != []
    assert found(alg.Sequence((alg.Sequence((A, B)), C)), stream) == []
    assert found(alg.Sequence((A, alg.Sequence((B, C)))), stream) == []


def test_003_example_2_finds_a_sale_then_a_purchase_of_the_same_stock() -> None:
    # SELL AS msft ; (BUY OR SELL) AS intel ; SELL AS amzn with filters on names, INTL for the printed INTC.
    def named(variable: str, name: str) -> ex.Expression:
        return ex.Every(variable, ex.Comparison("=", ex.Attribute(variable, ("name",)), ex.Literal(name)))

    pattern = alg.Sequence(
        (
            alg.Bind(alg.Event("SELL", "SELL"), "msft"),
            alg.Bind(alg.Any((alg.Event("BUY", "BUY"), alg.Event("SELL", "SELL"))), "intel"),
            alg.Bind(alg.Event("SELL", "SELL"), "amzn"),
        ),
        alg.Order.POSITION,
    )
    kept = found(
        alg.Filter(pattern, ex.all_of(named("msft", "MSFT"), named("intel", "INTL"), named("amzn", "AMZN"))), STOCKS
    )
    assert sorted(
        (row["msft"]["ts"] // SECOND, row["intel"]["ts"] // SECOND, row["amzn"]["ts"] // SECOND) for row in kept
    ) == [(0, 2, 4), (0, 3, 4), (1, 2, 4), (1, 3, 4)]


def test_r19_a_name_holds_derived_events_too() -> None:
    stream = rows(("A", 1, {"x": 5}), ("B", 2, {"x": 7}))
    total = alg.Derive(alg.Sequence((A, B)), "Y", (alg.Fold("s", "sum", "A", ("x",)),))
    (row,) = found(alg.Bind(total, "X"), stream)
    assert {"s": 5} in row["X"]
    assert len(row["X"]) == 3


def test_r24_a_derived_event_stands_at_the_end_of_its_match() -> None:
    stream = rows(("A", 1, {"x": 5}), ("B", 2, {"x": 7}))
    total = alg.Derive(alg.Sequence((A, B)), "Y", (alg.Fold("s", "sum", "A", ("x",)),))
    (row,) = found(alg.Bind(total, "X"), stream)
    assert [event.get("x") for event in row["X"]] == [5, 7, None]  # last by position


def test_r26_not_inside_a_filter_is_three_valued() -> None:
    stream = rows(("A", 1, {"x": 1}), ("A", 2, {"x": None}), ("A", 3, {"x": 9}))
    above = ex.Comparison(">", ex.Attribute("A", ("x",)), ex.Literal(5))
    kept = found(alg.Filter(A, ex.Every("A", ex.Not(above))), stream)
    assert [row["A"]["x"] for row in kept] == [1]  # the complement of TRUE would keep NULL too


def test_r28_several_absences_block_each_alone() -> None:
    c_later = alg.Bound(alg.FirstOf(("A",)), 0, strict=False), alg.Bound(alg.FirstOf(("A",)), 4 * SECOND, strict=False)
    both = alg.Absent(no_b((0, 4)), "C", "c", None, c_later[:1], c_later[1:])
    assert found(both, rows(("A", 10, {})))
    assert not found(both, rows(("A", 10, {}), ("B", 11, {})))
    assert not found(both, rows(("A", 10, {}), ("C", 11, {})))
