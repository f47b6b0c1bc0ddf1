"""The formulas of 003 §3 and §5, with results worked out by hand, and against the reference."""

from __future__ import annotations

from typing import Any

from tests.automata.formulas import POSITION, by_automaton, by_reference, stream

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.stream import Event

SELL, BUY = alg.Event("SELL", "SELL"), alg.Event("BUY", "BUY")
TRADE = alg.Any((BUY, SELL))
STOCKS = stream(
    *(
        (kind, second, {"name": name, "price": price})
        for second, (kind, name, price) in enumerate(
            [
                ("SELL", "MSFT", 101),
                ("SELL", "MSFT", 102),
                ("SELL", "INTL", 80),
                ("BUY", "INTL", 80),
                ("SELL", "AMZN", 1900),
                ("SELL", "INTL", 81),
                ("BUY", "AMZN", 1920),
                ("BUY", "MSFT", 101),
                ("BUY", "INTL", 79),
                ("SELL", "INTL", 80),
            ]
        )
    )
)


def price(variable: str, op: str, value: int) -> ex.Expression:
    return ex.Every(variable, ex.Comparison(op, ex.Attribute(variable, ("price",)), ex.Literal(value)))


def named(variable: str, name: str) -> ex.Expression:
    return ex.Every(variable, ex.Comparison("=", ex.Attribute(variable, ("name",)), ex.Literal(name)))


def found(node: alg.Node, events: list[Event]) -> list[tuple[int, int, dict[str, Any]]]:
    """The matches, after they were found equal to the reference's."""
    matches = by_automaton(node, events)
    assert matches == by_reference(node, events)
    return [
        (start, end, {name: [(at, *values) for held, at, *values in bound if held == name] for name, *_ in bound})
        for start, end, bound in sorted(matches)
    ]


def example_6() -> alg.Node:
    """INTL for the printed INTC, which the paper's stream does not have (SEMANTICS §11)."""
    pattern = alg.Sequence(
        (alg.Bind(SELL, "msft"), alg.Repeat(alg.Bind(SELL, "intel"), 1, None, POSITION), alg.Bind(SELL, "amzn")),
        POSITION,
    )
    condition = ex.all_of(
        named("msft", "MSFT"),
        price("msft", ">", 100),
        named("intel", "INTL"),
        named("amzn", "AMZN"),
        price("amzn", "<", 2000),
    )
    return alg.Derive(alg.Filter(pattern, condition), "M", (alg.Fold("MAX", "max", "intel", ("price",)),))


def test_example_6_finds_the_highest_price_between_two_sales() -> None:
    matches = found(example_6(), STOCKS)
    assert [(start, end, bound["M"]) for start, end, bound in matches] == [
        (0, 4, [(4, (("MAX", "80"),))]),
        (1, 4, [(4, (("MAX", "80"),))]),
    ]


def test_example_6_folds_each_choice_of_an_iteration() -> None:
    events = stream(
        ("SELL", 0, {"name": "MSFT", "price": 101}),
        ("SELL", 1, {"name": "INTL", "price": 80}),
        ("SELL", 2, {"name": "INTL", "price": 82}),
        ("SELL", 3, {"name": "INTL", "price": None}),
        ("SELL", 4, {"name": "AMZN", "price": 5}),
    )
    totals = sorted(bound["M"][0][1][0][1] for _, _, bound in found(example_6(), events))
    assert totals == ["80", "82", "82", "None", "None", "None", "None"]  # one NULL makes it NULL (R18)


def test_example_7_filters_by_a_length_that_was_counted() -> None:
    def long(least: int) -> alg.Node:
        pattern = alg.Sequence(
            (alg.Bind(TRADE, "l"), alg.Bind(alg.Repeat(TRADE, 1, None, POSITION), "m"), alg.Bind(TRADE, "h")), POSITION
        )
        inside = alg.Filter(
            pattern,
            ex.all_of(price("l", "<", 100), price("m", ">=", 100), price("m", "<=", 2000), price("h", ">", 2000)),
        )
        counted = alg.Derive(inside, "M", (alg.Fold("QNT", "count", "m", ("price",)),))
        quantity = ex.Comparison(">", ex.Attribute("M", ("QNT",)), ex.Literal(least))
        return alg.Filter(counted, ex.Every("M", quantity))

    prices = [50, 100, 150, 99, 2000, 700, 2500]
    events = stream(*(("BUY" if n % 2 else "SELL", n, {"price": p}) for n, p in enumerate(prices)))
    lengths = [len(bound["m"]) for _, _, bound in found(long(2), events)]
    assert sorted(lengths) == [3, 3, 3, 3, 4]  # of the trades at 100, 150, 2000, 700, after the one at 50
    assert [len(bound["m"]) for _, _, bound in found(long(3), events)] == [4]
    assert found(long(5), events) == []


A, B = alg.Event("A", "A"), alg.Event("B", "B")


def test_phi_1_is_found_once_however_many_ways_lead_to_it() -> None:
    both_ends = alg.Project(
        alg.Sequence((alg.Bind(A, "X"), alg.Repeat(B, 1, None, POSITION), alg.Bind(A, "X")), POSITION), (("X", None),)
    )
    events = stream(("A", 1, {}), ("B", 2, {}), ("B", 3, {}), ("A", 4, {}))
    assert found(both_ends, events) == [(0, 3, {"X": [(0, ()), (3, ())]})]


def test_phi_2_adds_two_equal_sums() -> None:
    inner = alg.Derive(alg.Adjacent((B, alg.RepeatAdjacent(A))), "X", (alg.Fold("a", "sum", "A", ("a",)),))
    outer = alg.Derive(alg.RepeatAdjacent(inner), "Y", (alg.Fold("b", "sum", "X", ("a",)),))
    events = stream(
        *(
            (kind, second, {"a": value})
            for second, (kind, value) in enumerate(
                [("B", None), ("A", 3), ("A", 5), ("B", None), ("A", 2), ("A", 4), ("A", 2)]
            )
        )
    )
    whole = [bound for start, end, bound in found(outer, events) if (start, end) == (0, 6)]
    assert [bound["Y"] for bound in whole] == [[(6, (("b", "16"),))]]
    assert [bound["X"] for bound in whole] == [[(2, (("a", "8"),)), (6, (("a", "8"),))]]


def test_aggregates_and_a_filter_compare_two_events() -> None:
    """§5, expressive power: what correlates two types without a predicate on two events."""
    pair = alg.Sequence((alg.Bind(A, "X"), alg.Bind(B, "Y")), POSITION)
    sums = (alg.Fold("b1", "sum", "X", ("a",)), alg.Fold("b2", "sum", "Y", ("a",)))
    equal = ex.Every("Z", ex.Comparison("=", ex.Attribute("Z", ("b1",)), ex.Attribute("Z", ("b2",))))
    node = alg.Project(alg.Filter(alg.Derive(pair, "Z", sums), equal), (("X", None), ("Y", None)))
    events = stream(("A", 1, {"a": 1}), ("A", 2, {"a": 2}), ("B", 3, {"a": 2}), ("B", 4, {"a": None}))
    assert found(node, events) == [(1, 2, {"X": [(1, ())], "Y": [(2, ())]})]
