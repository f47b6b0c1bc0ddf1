"""The steps of a shard give what the reference gives on all events at once: any cut, any order of arrival."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.streaming import texts
from tests.streaming.support import Live, arrivals, cut

import tocsin
from tocsin import errors, reference
from tocsin.language import ast
from tocsin.language.ast import Skip
from tocsin.physical.claims import unsupported
from tocsin.physical.streaming.decisions import PER_END
from tocsin.testing.strategies import EVERYTHING, Streams, queries, streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def runs_on_streams(pattern: tocsin.Pattern) -> bool:
    query = pattern.query
    return (
        query.window_us is not None
        and not query.over_all_matches
        and unsupported(query) is None
        and not (query.after_match.skip is not Skip.REUSE and query.output in PER_END)
        and not query.having
    )


@settings(max_examples=300)
@given(query=queries(EVERYTHING), rows=streams(max_events=9), seed=st.integers(0, 2**32), eager=st.booleans())
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


def assert_as_the_reference(pattern: tocsin.Pattern, rows: Streams, seed: int, eager: bool) -> None:
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 3, 20])
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=eager)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    assert sorted(live.ids) == sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


@pytest.mark.parametrize("text", [*texts.ANY, *texts.ABSENT, *texts.SELECTED, *texts.REPORTED, *texts.SKIPPING])
@settings(max_examples=60)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_what_has_to_wait_waits_and_no_longer(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(compiled(text), rows, seed, eager)


@pytest.mark.parametrize("text", texts.ACEL)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # ties are what is tested
@settings(max_examples=60)
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_formulas_are_decided_at_their_end(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_as_the_reference(tocsin.pattern(text, language="acel"), rows, seed, eager)


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
