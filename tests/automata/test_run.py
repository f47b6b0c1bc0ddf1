"""The runner: windows, shared histories, sets of matches, aggregates of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.automata.formulas import POSITION
from tests.automata.run import Reading, run

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.errors import NumberTooLargeError
from tocsin.language import expressions as ex
from tocsin.language.user_defined import Monoid
from tocsin.reference.aggregates import fold

PRODUCT = Monoid(zero=1, combine=lambda x, y: x * y)
A, B, C = (alg.Event(kind, kind) for kind in "ABC")


def test_an_empty_stream_has_no_match() -> None:
    assert run(automata.automaton(A), []) == []


def test_the_window_is_open_at_its_end() -> None:
    pair = automata.automaton(alg.Sequence((A, B)))
    events = [Reading("A", 0), Reading("B", 9), Reading("B", 10)]
    assert [match.end for match in run(pair, events, window_us=10)] == [1]
    assert [match.end for match in run(pair, events)] == [1, 2]


def test_runs_that_cannot_be_told_apart_go_on_as_one() -> None:
    """2**40 choices of B lead to the same match; without sharing this would never end."""
    hidden = alg.Project(alg.Sequence((A, alg.Repeat(B, 1, None), C)), (("A", None), ("C", None)))
    events = [Reading("A", 0), *(Reading("B", n) for n in range(1, 41)), Reading("C", 41)]
    (match,) = run(automata.automaton(hidden), events)
    assert (match.start, match.end) == (0, 41)


def test_ways_that_bind_the_same_event_to_different_variables_are_different() -> None:
    either = alg.Repeat(alg.Any((alg.Event("A", "p"), alg.Event("A", "q"))), 2, 2)
    assert len(run(automata.automaton(either), [Reading("A", 0), Reading("A", 1)])) == 4


def test_a_match_may_be_long() -> None:
    run_of_a = automata.automaton(alg.Adjacent((B, alg.RepeatAdjacent(A), C)))
    events = [Reading("B", 0), *(Reading("A", n) for n in range(3000)), Reading("C", 3001)]
    (match,) = run(run_of_a, events)
    assert len(match.bindings["A"]) == 3000


def test_equal_totals_are_shared_too() -> None:
    """Sixty choices of length and sum, not 2**40 of events."""
    total = alg.Derive(
        alg.Sequence((A, alg.Repeat(B, 1, None), C)),
        "M",
        (alg.Fold("n", "count", "B"), alg.Fold("s", "sum", "B", ("x",))),
    )
    only = automata.automaton(alg.Project(total, (("M", None),)))
    events = [Reading("A", 0), *(Reading("B", n, {"x": 1}) for n in range(1, 41)), Reading("C", 41)]
    assert len(run(only, events)) == 40


def test_registers_are_compared_by_name_and_by_type() -> None:
    """Two runs with (1, 2) and (2, 1) in their registers are different, and so are those with 1 and 1.0."""
    first = alg.Any((alg.Bind(A, "X"), alg.Bind(A, "Y")))
    pair = alg.Sequence((first, first, C), POSITION)
    folds = (alg.Fold("p", "sum", "X", ("x",)), alg.Fold("q", "sum", "Y", ("x",)))
    node = alg.Project(alg.Derive(pair, "M", folds), (("M", None),))
    events = [Reading("A", 0, {"x": 1}), Reading("A", 1, {"x": 2}), Reading("C", 2)]
    found = {match.bindings["M"][0].values for match in run(automata.automaton(node), events)}
    assert found == {(("p", p), ("q", q)) for p, q in [(3, 0), (0, 3), (1, 2), (2, 1)]}

    last = alg.Derive(alg.Sequence((B, A, C), POSITION), "M", (alg.Fold("p", "last", "A", ("x",)),))
    mixed = [Reading("B", 0), *(Reading("A", 1, {"x": x}) for x in (1, 1.0, True, 1)), Reading("C", 2)]
    assert len(run(automata.automaton(alg.Project(last, (("M", None),))), mixed)) == 3


@pytest.mark.parametrize(
    ("monoid", "total"), [(PRODUCT, 24), (Monoid(zero=[], combine=list.__add__, lift=lambda x: [x]), [2, 3, 4])]
)
def test_a_monoid_of_ones_own(monoid: Monoid, total: Any) -> None:
    node = alg.Derive(alg.Repeat(A, 3, 3), "M", (alg.Fold("p", "mine", "A", ("x",), monoid=monoid),))
    made = automata.automaton(node)
    events = [Reading("A", n, {"x": n + 2}) for n in range(3)]
    (match,) = run(made, events)
    assert match.bindings["M"][0].values == (("p", total),)
    (spoiled,) = run(made, [*events[:2], Reading("A", 2, {})])
    assert spoiled.bindings["M"][0].values == (("p", None),)


def test_a_monoid_of_ones_own_in_a_condition() -> None:
    product = ex.Aggregate("mine", ex.Attribute("A", ("x",)), monoid=PRODUCT)
    node = alg.Filter(alg.Repeat(A, 2, 2), ex.Comparison("=", product, ex.Literal(8)))
    events = [Reading("A", n, {"x": n + 2}) for n in range(3)]
    assert [(match.start, match.end) for match in run(automata.automaton(node), events)] == [(0, 2)]


NUMBERS = st.lists(
    st.none() | st.integers(-3, 3) | st.sampled_from([0.1, 0.2, 1e300, 2.5, float("inf"), 2**63 - 1]), max_size=6
)


@pytest.mark.parametrize("is_distinct", [False, True])
@pytest.mark.parametrize("function", ["count", "sum", "min", "max", "avg", "first", "last", "collect"])
@given(NUMBERS)
def test_aggregates_fold_as_the_reference_does(function: str, is_distinct: bool, values: list[Any]) -> None:
    folds = (alg.Fold("d", function, "A", ("x",), distinct=is_distinct),)
    node = alg.Derive(alg.Sequence((B, alg.Repeat(A, len(values), len(values))), POSITION), "M", folds)
    events = [Reading("B", 0), *(Reading("A", n, {"x": value}) for n, value in enumerate(values, 1))]
    try:
        expected = fold(function, values, distinct=is_distinct, nulls_spoil=True)
    except NumberTooLargeError:
        with pytest.raises(NumberTooLargeError):
            run(automata.automaton(node), events)
        return
    (match,) = run(automata.automaton(node), events)
    ((_, found),) = match.bindings["M"][0].values or ()
    assert repr(list(found) if isinstance(found, tuple) else found) == repr(expected)


def test_a_condition_may_ask_for_a_type_and_a_time() -> None:
    node = alg.Filter(alg.Repeat(A, 2, 2), ex.Comparison("<", ex.Aggregate("count", ex.Variable("A")), ex.Literal(3)))
    assert len(run(automata.automaton(node), [Reading("A", 0), Reading("A", 0), Reading("A", 1)])) == 2
