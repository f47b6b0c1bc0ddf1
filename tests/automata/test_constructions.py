"""Each construction on a few events, where one could go wrong; all are compared with the reference as well."""

from __future__ import annotations

from typing import Any

import pytest
from tests.automata.formulas import POSITION, by_automaton, by_reference, stream

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.stream import Event

A, B, C = (alg.Event(kind, kind) for kind in "ABC")
X = ("x",)


def seq(*parts: alg.Node) -> alg.Node:
    return alg.Sequence(parts, POSITION)


def plus(part: alg.Node) -> alg.Node:
    return alg.Repeat(part, 1, None, POSITION)


def fold(name: str, function: str, variable: str, path: tuple[str, ...] = X) -> tuple[alg.Fold, ...]:
    return (alg.Fold(name, function, variable, path),)


def xs(*events: tuple[str, int | None]) -> list[Event]:
    return stream(*((kind, second, {"x": value}) for second, (kind, value) in enumerate(events)))


def found(node: alg.Node, events: list[Event], **options: bool) -> set[tuple[Any, ...]]:
    matches = by_automaton(node, events, **options)
    assert options or matches == by_reference(node, events)
    return matches


def places(node: alg.Node, events: list[Event], variable: str, **options: bool) -> list[list[int]]:
    """The positions that a variable holds, match by match."""
    matches = found(node, events, **options)
    return sorted([at for name, at, _ in bound if name == variable] for _, _, bound in matches)


def values(node: alg.Node, events: list[Event], variable: str) -> list[str]:
    matches = found(node, events)
    return sorted(value for _, _, bound in matches for name, _, row in bound if name == variable for _, value in row)


# --- sequences and iterations ---------------------------------------------------------------------


def test_a_sequence_skips_and_an_adjacent_one_does_not() -> None:
    events = xs(("A", 1), ("C", 1), ("B", 1), ("A", 1), ("B", 1))
    assert places(seq(A, B), events, "B") == [[2], [4], [4]]
    assert places(alg.Adjacent((A, B)), events, "B") == [[4]]


def test_registers_begin_anew_in_every_copy() -> None:
    copies = plus(alg.Derive(seq(A, B), "M", fold("s", "sum", "A")))
    events = xs(("A", 1), ("B", 0), ("A", 2), ("B", 0))
    assert values(copies, events, "M") == ["1", "1", "1", "2", "2"]  # never 3


def test_a_bag_predicate_inside_a_copy_forgets_the_copy_before() -> None:
    falling = alg.Filter(seq(A, A), ex.BagPredicate(ex.BagOrder.DECREASING, "A", X))
    events = xs(("A", 2), ("A", 1), ("A", 9), ("A", 3))
    assert places(alg.RepeatAdjacent(falling), events, "A")[1:2] == [[0, 1, 2, 3]]


def test_adjacent_repetition_takes_runs_only() -> None:
    assert places(alg.RepeatAdjacent(A), xs(("A", 1), ("A", 1), ("B", 1), ("A", 1)), "A") == [[0], [0, 1], [1], [3]]


def test_next_stops_at_the_first() -> None:
    events = xs(("A", 1), ("C", 1), ("B", 1), ("B", 1))
    assert [match[:2] for match in sorted(found(alg.NextOf("B", "B"), events))] == [(0, 2), (1, 2), (2, 2), (3, 3)]
    assert places(alg.Adjacent((A, alg.NextOf("B", "B"))), events, "B") == [[2]]


# --- bindings -------------------------------------------------------------------------------------


def test_a_name_replaces_what_it_held_and_holds_derived_events() -> None:
    named = alg.Bind(alg.Derive(seq(alg.Bind(A, "X"), B), "M", fold("s", "max", "A")), "X")
    assert places(named, xs(("A", 1), ("B", 2)), "X") == [[0, 1, 1]]


def test_projection_narrows_drops_and_keeps_the_interval() -> None:
    events = stream(("A", 0, {"x": 1, "v": 2}), ("B", 1, {"x": 3}), ("B", 2, {"x": 3}))
    assert found(alg.Project(seq(A, B), (("A", X),)), events) == {
        (0, 1, (("A", 0, (("x", "1"),)),)),
        (0, 2, (("A", 0, (("x", "1"),)),)),
    }
    assert found(alg.Project(seq(A, B), ()), events) == set()  # what binds nothing is not reported


def test_what_projections_leave_of_an_event_is_one_event_when_it_is_equal() -> None:
    narrowed = alg.Project(alg.Bind(A, "Y"), (("A", X), ("Y", X)))
    assert places(alg.Bind(narrowed, "Z"), xs(("A", 1)), "Z") == [[0]]
    assert places(alg.Bind(alg.Bind(A, "Y"), "Z"), xs(("A", 1)), "Z") == [[0]]


def test_an_attribute_that_was_projected_away_is_null() -> None:
    narrowed = alg.Project(A, (("A", ("v",)),))
    kept = alg.Filter(narrowed, ex.Every("A", ex.IsNull(ex.Attribute("A", X))))
    assert len(found(kept, xs(("A", 1)))) == 1
    assert values(alg.Project(narrowed, (("A", X),)), xs(("A", 1)), "A") == ["None"]


# --- aggregates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("count", "3"),
        ("sum", "7"),
        ("min", "1"),
        ("max", "4"),
        ("avg", repr(round(7 / 3, 9))),
        ("range", "3"),
        ("first", "1"),
        ("last", "2"),
        ("stddev", repr(round((14 / 9) ** 0.5, 9))),
        ("collect", "['1', '4', '2']"),
    ],
)
def test_every_aggregate(function: str, value: str) -> None:
    node = alg.Derive(alg.Repeat(A, 3, 3, POSITION), "M", fold("d", function, "A"))
    assert values(node, xs(("A", 1), ("A", 4), ("A", 2)), "M") == [value]


@pytest.mark.parametrize(("function", "value"), [("count", "0"), ("sum", "0"), ("max", "None"), ("collect", "[]")])
def test_the_aggregate_of_an_empty_bag(function: str, value: str) -> None:
    node = alg.Derive(alg.Any((A, B)), "M", fold("d", function, "B"))
    assert values(node, xs(("A", 1)), "M") == [value]


def test_an_aggregate_of_aggregates() -> None:
    inner = alg.Derive(plus(A), "M", fold("s", "sum", "A"))
    node = alg.Derive(seq(inner, B), "N", fold("m", "max", "M", ("s",)))
    assert values(node, xs(("A", 1), ("A", 4), ("B", 0)), "N") == ["1", "4", "5"]


def test_a_derived_event_comes_with_the_last_event_of_its_own_part() -> None:
    node = seq(alg.Derive(seq(A, B), "M", fold("s", "sum", "A")), C)
    assert places(node, xs(("A", 1), ("B", 0), ("C", 0)), "M") == [[1]]


# --- filters --------------------------------------------------------------------------------------


def above(variable: str, number: int) -> ex.Expression:
    return ex.Every(variable, ex.Comparison(">", ex.Attribute(variable, X), ex.Literal(number)))


def test_a_filter_asks_every_event_and_holds_on_none() -> None:
    events = xs(("A", 1), ("A", 5), ("A", None))
    assert places(alg.Filter(plus(A), above("A", 2)), events, "A") == [[1]]
    either = alg.Filter(alg.Any((A, B)), above("B", 2))
    assert places(either, events, "A") == [[0], [1], [2]]


def test_an_event_may_have_a_condition_of_its_own() -> None:
    high = alg.Event("A", "A", ex.Comparison(">", ex.Attribute("A", X), ex.Literal(2)))
    assert places(high, xs(("A", 1), ("A", 5), ("B", 5), ("A", None)), "A") == [[1]]
    elsewhere = alg.Event("A", "A", ex.Comparison(">", ex.Attribute("B", X), ex.Literal(2)))
    assert places(elsewhere, xs(("A", 1)), "A") == [[0]]  # it speaks of an event that is not there (R1)


def test_or_is_decided_per_atom_over_the_whole_match() -> None:
    either = alg.Filter(alg.Repeat(A, 2, 2, POSITION), ex.any_of(above("A", 2), ex.Not(above("A", 0))))
    events = xs(("A", 3), ("A", 4), ("A", 1), ("A", 0))
    assert places(either, events, "A") == [[0, 1], [0, 3], [1, 3], [2, 3]]


@pytest.mark.parametrize("order", list(ex.BagOrder))
@pytest.mark.parametrize(
    "given", [(1, 2, 3), (1, 1, 2), (3, 2, 1), (2, 2), (None,), (2, None), (None, 1), (1, None, 2)]
)
def test_bag_predicates(order: ex.BagOrder, given: tuple[int | None, ...]) -> None:
    whole = alg.Repeat(A, len(given), len(given), POSITION)
    for condition in (
        ex.BagPredicate(order, "A", X),
        ex.any_of(ex.BagPredicate(order, "A", X), above("A", 1)),
        ex.Not(ex.BagPredicate(order, "A", X)),
    ):
        found(alg.Filter(whole, condition), xs(*(("A", one) for one in given)))


def test_a_filter_on_an_aggregate_asks_the_step_that_makes_it() -> None:
    total = alg.Derive(plus(A), "M", fold("x", "sum", "A"))
    assert places(alg.Filter(total, above("M", 4)), xs(("A", 1), ("A", 4), ("A", 2)), "A") == [
        [0, 1],
        [0, 1, 2],
        [1, 2],
    ]


def test_events_of_one_position_follow_each_other_in_a_bag() -> None:
    named = alg.Bind(alg.Derive(plus(A), "M", fold("x", "sum", "A")), "X")
    kept = alg.Filter(named, ex.BagPredicate(ex.BagOrder.INCREASING, "X", X))
    assert places(kept, xs(("A", 1), ("A", 2)), "A") == [[0, 1]]  # 1, 2 and their sum; never 1 and the sum 1


def test_the_next_event_of_a_bag_follows_the_last_one_of_the_position_before() -> None:
    copy = alg.Derive(alg.Adjacent((A, A)), "M", fold("x", "sum", "A"))
    kept = alg.Filter(alg.Bind(alg.RepeatAdjacent(copy), "X"), ex.BagPredicate(ex.BagOrder.INCREASING, "X", X))
    assert places(kept, xs(("A", 1), ("A", 2), ("A", 3), ("A", 4)), "A") == [[0, 1], [1, 2], [2, 3]]  # 3 twice
    assert places(kept, xs(("A", 1), ("A", 2), ("A", 4), ("A", 5)), "A")[1] == [0, 1, 2, 3]


# --- AND ------------------------------------------------------------------------------------------


def test_and_needs_equal_bindings() -> None:
    events = xs(("A", 1), ("B", 2))
    assert found(alg.Both((A, B)), events) == set()
    assert found(alg.Both((alg.Bind(A, "x"), alg.Bind(A, "y"))), events) == set()
    assert len(found(alg.Both((seq(A, B), alg.Adjacent((A, B)))), events)) == 1
    assert found(alg.Both((alg.Project(seq(A, B), (("A", None),)), A)), events) == set()  # the intervals differ


def test_and_compares_derived_events_by_value() -> None:
    def total(function: str) -> alg.Node:
        return alg.Derive(plus(A), "M", fold("d", function, "A"))

    events = xs(("A", 0), ("A", 4), ("A", None), ("A", 2))
    # One event alone, and those where all others are 0; where both are NULL they are equal too.
    assert [bag for bag in places(alg.Both((total("sum"), total("max"))), events, "A") if 2 not in bag] == [
        [0],
        [0, 1],
        [0, 3],
        [1],
        [3],
    ]


def test_and_pairs_derived_events_in_any_order() -> None:
    def twice(first: str, second: str) -> alg.Node:
        return alg.Derive(alg.Derive(plus(A), "M", fold("d", first, "A")), "M", fold("d", second, "A"))

    events = xs(("A", 1), ("A", 4))
    assert len(found(alg.Both((twice("sum", "max"), twice("max", "sum"))), events)) == 3
    assert places(alg.Both((twice("sum", "max"), twice("max", "max"))), events, "A") == [[0], [1]]


# --- SASE+ ----------------------------------------------------------------------------------------

ABC = alg.Sequence((A, alg.Repeat(B, 1, None), C))


def tied_events() -> list[Event]:
    kinds = [("A", 1), ("B", 1), ("B", 2), ("B", 2), ("C", 2), ("C", 3)]
    return stream(*((kind, second, {"x": n}) for n, (kind, second) in enumerate(kinds)))


def test_sase_sequences_never_step_inside_one_instant() -> None:
    assert places(ABC, tied_events(), "B") == [[2], [3]]  # not the B that ties with A, not both, not the C beside them
    by_position = seq(A, plus(B), C)
    assert len(found(by_position, tied_events())) == 14


@pytest.mark.parametrize(
    ("least", "most", "held"),
    [
        (2, 3, [[0, 1], [0, 1, 2], [0, 2], [1, 2]]),
        (3, None, [[0, 1, 2]]),
        (1, 1, [[0], [1], [2]]),
        (0, 1, [[0], [1], [2]]),
        (0, 0, []),
    ],
)
def test_bounds_are_counted(least: int, most: int | None, held: list[list[int]]) -> None:
    events = xs(("B", 1), ("B", 1), ("B", 1))
    assert places(alg.Repeat(B, least, most), events, "B") == held


def test_an_optional_part_may_be_missing() -> None:
    events = xs(("A", 1), ("B", 1), ("C", 1))
    optional = alg.Sequence((A, alg.Repeat(B, 0, 1), C))
    assert places(optional, events, "B") == [[], [1]]
    assert places(alg.Sequence((alg.Repeat(A, 0, None), alg.Repeat(B, 0, 1))), events, "A") == [[], [0], [0]]


def test_a_condition_on_a_part_that_is_missing() -> None:
    def kept(condition: ex.Expression) -> list[list[int]]:
        return places(alg.Sequence((A, alg.Filter(alg.Repeat(B, 0, 1), condition))), xs(("A", 1), ("B", 2)), "B")

    assert kept(ex.Comparison(">", ex.Aggregate("count", ex.Variable("B")), ex.Literal(0))) == [[1]]
    assert kept(ex.Comparison("=", ex.Aggregate("sum", attribute("B")), ex.Literal(0))) == [[]]
    assert kept(ex.Comparison(">", attribute("B"), ex.Literal(5))) == [[]]
    assert kept(ex.any_of(above("B", 5), above("B", 6))) == [[]]


def attribute(variable: str, index: ex.Index = ex.Each.PLAIN) -> ex.Expression:
    return ex.Attribute(variable, X, index)


@pytest.mark.parametrize(
    "condition",
    [
        ex.Comparison("<", attribute("A"), attribute("B")),
        ex.Comparison("<", attribute("B"), attribute("B", ex.Each.NEXT)),
        ex.Comparison("<", attribute("B", ex.Running("i", -2)), attribute("B", ex.Running("i"))),
        ex.Comparison(">", attribute("B", ex.Each.NEXT), ex.Literal(1)),
        ex.Comparison(">", attribute("B", ex.Running("i", -1)), ex.Literal(1)),
        ex.Comparison("<", attribute("B", ex.Edge.FIRST), attribute("C")),
        ex.Comparison("<", attribute("B", ex.Edge.LAST), attribute("C")),
        ex.Comparison("<", attribute("B", ex.Edge.FIRST), attribute("B", ex.Edge.LAST)),
        ex.Comparison("<=", attribute("B", ex.Edge.FIRST), attribute("B")),
        ex.Comparison("<", attribute("B", ex.Fixed(2)), attribute("C")),
        ex.Comparison(">", ex.Aggregate("sum", attribute("B")), attribute("C")),
        ex.Comparison(">", ex.Aggregate("first", attribute("B")), ex.Literal(1)),
        ex.Comparison(">", ex.Aggregate("last", attribute("B")), ex.Literal(1)),
        ex.Comparison(">", ex.Aggregate("count", ex.Variable("B")), ex.Literal(1)),
        ex.Comparison("=", ex.Aggregate("count", attribute("B"), distinct=True), ex.Literal(2)),
        ex.Comparison(">", ex.Aggregate("sum", attribute("B"), distinct=True), ex.Literal(2)),
        ex.any_of(ex.Comparison("=", attribute("A"), attribute("C")), ex.IsNull(attribute("C"))),
    ],
    ids=str,
)
@pytest.mark.parametrize("pattern", [ABC, alg.Sequence((A, alg.Repeat(B, 0, 3), alg.Repeat(C, 0, 1)))], ids=["+", "?"])
def test_conditions_on_several_events(condition: ex.Expression, pattern: alg.Node) -> None:
    given = [("A", 1), ("B", 2), ("B", None), ("B", 3), ("C", 3), ("B", 1), ("A", None), ("C", 1), ("C", None)]
    assert found(alg.Filter(pattern, condition), xs(*given)), "nothing was tested"


def test_contiguous_runs_skip_nothing() -> None:
    events = stream(("A", 1, {}), ("B", 2, {}), ("B", 3, {}), ("A", 4, {}), ("C", 5, {}), ("C", 6, {}))
    assert places(alg.Sequence((alg.Repeat(B, 1, None), A)), events, "B", contiguous=True) == [[1, 2], [2]]
    assert places(alg.Sequence((A, C, C)), events, "C", contiguous=True) == [[4, 5]]
