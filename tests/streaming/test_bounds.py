"""What shards remember never exceeds what `check` told before the start (requirement 36), whatever the query."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.fitting import cases, formula_cases
from tests.streaming import texts
from tests.streaming.support import Live, arrivals, cut
from tests.streaming.test_stepping import (
    SCHEMA,
    busy_streams,
    compiled,
    compiled_formula,
    has_one_type_per_attribute,
    runs_on_streams,
)

import tocsin
from tocsin.language import ast
from tocsin.language.acel import ast as acel
from tocsin.testing.strategies import EVERYTHING, Streams

ATTRIBUTES = {"ts": "bigint", "k": "string", "x": "bigint", "v": "double"}
FORMULAS = [
    "(A ; B ; C) WITHIN 7 us",
    "(A : B) WITHIN 5 us",
    "(A ; B+) WITHIN 5 us",
    "(A@+ AS x ; C) WITHIN 5 us",
    "PROJECT[C](A ; B ; C) WITHIN 6 us",
    "PROJECT[x](A AS x ; (B ; C)+) WITHIN 6 us",
    "PROJECT[A](A ; B) AND PROJECT[A](A ; C) WITHIN 6 us",
    "(A OR C) AS x",
]


def largest_rates(rows: Streams, stretch: int) -> dict[str, str]:
    """The rates that the streams keep, and no less."""
    found = {}
    for kind, events in rows.items():
        times = [row["ts"] for row in events if row["ts"] is not None]
        most = max((sum(start <= time < start + stretch for time in times) for start in times), default=0)
        found[kind] = f"{most} per {stretch} us"
    return found


def assert_bounded(pattern: tocsin.Pattern, rows: Streams, seed: int, *, eager: bool) -> None:
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 5])
    told = pattern.check(
        dict.fromkeys(rows, ATTRIBUTES),
        largest_rates(rows, chance.choice([1, 3, 10])),
        lateness=dt.timedelta(microseconds=lateness),
        streaming=True,
    )
    assert told.sizes is not None
    assert told.sizes.events is not None
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=eager)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    assert live.most_remembered <= told.sizes.events, f"{told.sizes}"


@settings(max_examples=60)
@given(**cases(EVERYTHING, max_events=9), seed=st.integers(0, 2**32), eager=st.booleans())
def test_no_query_remembers_more_than_its_bound(query: ast.Query, rows: Streams, seed: int, eager: bool) -> None:
    pattern = compiled(query)
    assume(runs_on_streams(pattern))
    assert_bounded(pattern, rows, seed, eager=eager)


@pytest.mark.parametrize("text", [*texts.EVERYTHING, *texts.UNWINDOWED])
@given(rows=busy_streams, seed=st.integers(0, 2**32), eager=st.booleans())
def test_busy_streams_remember_no_more_than_the_bound(text: str, rows: Streams, seed: int, eager: bool) -> None:
    assert_bounded(compiled(text), rows, seed, eager=eager)


@pytest.mark.parametrize("text", FORMULAS)
@given(rows=busy_streams, seed=st.integers(0, 2**32))
def test_formulas_remember_no_more_than_the_bound(text: str, rows: Streams, seed: int) -> None:
    assert_bounded(tocsin.pattern(text, language="acel"), rows, seed, eager=False)


@settings(max_examples=60)
@given(**formula_cases(max_events=9), seed=st.integers(0, 2**32))
def test_no_formula_remembers_more_than_its_bound(query: acel.Query, rows: Streams, seed: int) -> None:
    """Also of events that no variable holds in the end."""
    pattern = compiled_formula(query)
    assume(runs_on_streams(pattern) and has_one_type_per_attribute(pattern))
    assert_bounded(pattern, rows, seed, eager=False)
