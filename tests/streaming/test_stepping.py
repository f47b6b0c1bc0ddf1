"""The steps of a shard give what the reference gives on all events at once: any cut, any order of arrival."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.fitting import cases, formula_cases, queries_with_streams
from tests.streaming import texts
from tests.streaming.support import Live, arrivals, cut

import tocsin
from tocsin import errors, reference
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.language.acel import print_query
from tocsin.plan.strategies import unsupported
from tocsin.testing.strategies import EVERYTHING, SECOND, TIMEOUTS, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def compiled_formula(query: acel.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(print_query(query), language="acel")


def has_one_type_per_attribute(pattern: tocsin.Pattern) -> bool:
    """Whether what a variable holds fits a column: events that AGG makes may differ."""
    try:
        pattern.match({kind: SCHEMA.empty_table() for kind in "ABC"}, engine="local")
    except errors.TypeMismatchError:
        return False
    return True


def runs_on_streams(pattern: tocsin.Pattern) -> bool:
    query = pattern.query
    return (
        query.window_us is not None and not query.over_all_matches and unsupported(query) is None and not query.having
    )


@settings(max_examples=300)
@given(**cases(EVERYTHING, max_events=9), seed=st.integers(0, 2**32), eager=st.booleans())
def test_any_cut_and_any_order_give_the_reference(query: ast.Query, rows: Streams, seed: int, eager: bool) -> None:
    pattern = compiled(query)
    assume(runs_on_streams(pattern))
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 5, 20])
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=eager)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    expected = reference.evaluate(pattern, rows)
    assert sorted(live.ids) == sorted(row["match_id"] for row in expected)
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


events = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 14),
        "k": st.sampled_from(["p", "q", None]),
        "x": st.sampled_from([0, 1, 2, None]),
        "v": st.just(0.5),
    }
)
busy_streams = st.fixed_dictionaries({kind: st.lists(events, max_size=6) for kind in "ABC"})


def assert_as_the_reference(
    pattern: tocsin.Pattern,
    rows: Streams,
    seed: int,
    eager: bool,
    latenesses: Sequence[int] = (0, 1, 3, 20),
    strategy: str = "auto",
) -> None:
    chance = random.Random(seed)
    lateness = chance.choice(latenesses)
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=eager, strategy=strategy)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    assert sorted(live.ids) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


@settings(max_examples=200)
@given(case=queries_with_streams(TIMEOUTS, max_events=8), seed=st.integers(0, 2**32), eager=st.booleans())
def test_any_cut_and_any_order_give_the_time_outs(
    case: tuple[ast.Query, list[Streams]], seed: int, eager: bool
) -> None:
    query, (rows,) = case
    pattern = compiled(replace(query, returns=()))
    assume(runs_on_streams(pattern))
    assert_as_the_reference(pattern, rows, seed, eager, latenesses=(0, 1, SECOND, 20 * SECOND))


@pytest.mark.parametrize("text", texts.EVERYTHING)
@settings(max_examples=60)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_what_has_to_wait_waits_and_no_longer(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(compiled(text), rows, seed, eager)


@pytest.mark.parametrize("strategy", ["auto", "automaton", "aggregate"])
@pytest.mark.parametrize("text", texts.UNWINDOWED)
@settings(max_examples=40)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_distances_bound_what_no_window_does(text: str, strategy: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(compiled(text), rows, seed, eager, strategy=strategy)


@pytest.mark.parametrize("text", texts.ACEL)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@settings(max_examples=60)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_formulas_are_decided_at_their_end(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(tocsin.pattern(text, language="acel"), rows, seed, eager)


@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@settings(max_examples=100)
@given(**formula_cases(max_events=8), seed=st.integers(0, 2**32), eager=st.booleans())
def test_any_formula_is_decided_at_its_end(query: acel.Query, rows: Streams, seed: int, eager: bool) -> None:
    pattern = compiled_formula(query)
    assume(runs_on_streams(pattern) and has_one_type_per_attribute(pattern))
    assert_as_the_reference(pattern, rows, seed, eager, latenesses=(0, 1, SECOND, 20 * SECOND))


def stepped(text: str, rows: Streams, batches: list[list[int]]) -> tuple[list[str], list[str]]:
    """The ids that steps give, and those of the reference; events are numbered in order of time."""
    pattern = compiled(text)
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=20, eager=True)
    by_time = sorted(range(len(live.ts)), key=lambda row: int(live.ts[row]))
    for batch in batches:
        live.take([by_time[place] for place in batch])
    live.end()
    return sorted(live.ids), sorted(row["match_id"] for row in reference.evaluate(pattern, rows))


def event(ts: int) -> dict[str, Any]:
    return {"ts": ts, "k": "p", "x": 0, "v": 0.5}


def test_equal_matches_of_two_steps_have_different_numbers() -> None:
    rows = {"A": [event(1), event(1)], "B": [event(2)], "C": []}
    found, expected = stepped(texts.ANY[0], rows, [[0, 2], [1]])
    assert found == expected
    assert len(set(found)) == 2


@pytest.mark.parametrize("times", [[26, 27], [26, 28, 29, 30, 31, 32, 33, 34, 35, 40]])
def test_matches_of_one_end_wait_for_the_absences_of_each_other(times: list[int]) -> None:
    """Only the match of the first A is left, since a C follows soon enough after the second; nobody knows it at 6."""
    rows = {"A": [event(0), event(2)], "B": [event(3)], "C": [event(7), *map(event, times)]}
    text = "PATTERN SEQ(A a, B b, NOT C c) OUTPUT last per end WITHIN 6 us"
    found, expected = stepped(text, rows, [[0, 1, 2, 4], [3], *([place] for place in range(5, 4 + len(times)))])
    assert found == expected
    assert len(found) == 1


def test_a_time_out_is_told_when_time_has_reached_the_end_of_its_window_and_a_match_at_once() -> None:
    rows = {"A": [event(0), event(3)], "B": [event(5)], "C": []}
    pattern = compiled("PATTERN SEQ(A a, B b) WHERE b.ts - a.ts < INTERVAL 3 us WITHIN 6 us WITH TIMEOUTS")
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=0, eager=True)
    for batch, latest, told in [([0, 1], 3, 0), ([2], 5, 1), ([], 5, 0), ([], 6, 1), ([], 9, 0), ([], 90, 0)]:
        before = len(live.ids)
        live.take(batch, latest)
        assert len(live.ids) - before == told, latest
    assert sorted(live.ids) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))


def test_a_late_second_step_extends_what_the_first_one_has_not_given_up() -> None:
    """B arrives after events of its own time: eagerly the match is given then, and its beginning is no time-out."""
    rows = {"A": [event(0), event(9)], "B": [event(5)], "C": []}
    found, expected = stepped(texts.TIMED[0], rows, [[0], [2], [1]])
    assert found == expected
    assert len(found) == 2


def test_a_key_to_which_something_comes_is_searched_with_all_that_is_remembered_of_it() -> None:
    rows = {"A": [{**event(ts), "k": "pq"[ts % 2]} for ts in range(6)], "B": [event(7)], "C": []}
    found, expected = stepped("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 9 us", rows, [[0, 1, 2, 3, 4, 5], [6]])
    assert found == expected
    assert len(found) == 3
