"""Tie columns order the events of one instant on streams as in the reference, under any cut and order (R41)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.streaming import texts
from tests.streaming.support import Live, arrivals, cut
from tests.tied import SCHEMA, tied_queries

import tocsin
from tocsin import errors, reference
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.analysis.temporal import network
from tocsin.language import ast
from tocsin.plan.strategies import refused_on_streams
from tocsin.testing.strategies import LANGUAGE, SECOND, TIMEOUTS, Streams
from tocsin.testing.streams import SEEDS

SINGLE = replace(LANGUAGE, over_all=False)


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def runs_on_streams(pattern: tocsin.Pattern) -> bool:
    try:
        network(ordered_by_ties(pattern.query), integer_time=True).require_bounded()
    except errors.TocsinError:
        return False
    return pattern.query.window_us is not None and refused_on_streams(pattern.query, "auto") is None


def check(
    pattern: tocsin.Pattern,
    rows: Streams,
    tie: tuple[str, ...],
    seed: int,
    unit: int,
    strategy: str,
    latenesses: Sequence[int] = (0, 1, 5, 20),
) -> None:
    """Feed the events in some order and some cuts, and compare with the reference."""
    chance = random.Random(seed)
    lateness = chance.choice(latenesses) * unit
    tables = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    live = Live(pattern, tables, lateness_us=lateness, eager=chance.random() < 0.5, strategy=strategy, ties=tie)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    live.end()
    expected = reference.evaluate(pattern, rows, tie=tie)
    assert sorted(live.ids) == sorted(row["match_id"] for row in expected)
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


@settings(max_examples=30)
@given(case=st.one_of(tied_queries(SINGLE), tied_queries(TIMEOUTS)), seed=st.integers(0, 2**32))
def test_streams_order_ties_as_the_reference(case: tuple[ast.Query, Streams, tuple[str, ...]], seed: int) -> None:
    query, rows, tie = case
    pattern = compiled(replace(query, returns=()))
    assume(runs_on_streams(pattern))
    check(pattern, rows, tie, seed, SECOND, "auto")


EVENTS = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 9),
        "k": st.sampled_from(["p", "q", None]),
        "x": st.sampled_from([0, 1, 2, None]),
        "v": st.just(0.5),
        "n": st.sampled_from([0, 1, 2, 3, None]),
        "m": st.just("m"),
    }
)
BUSY = st.fixed_dictionaries({kind: st.lists(EVENTS, max_size=6) for kind in "ABC"})


@settings(max_examples=50)
@given(text=st.sampled_from(texts.EVERYTHING), rows=BUSY, seed=st.integers(0, 2**32))
def test_what_waits_for_the_watermark_knows_the_order_of_ties(text: str, rows: Streams, seed: int) -> None:
    """The windows of these are a few microseconds: a lifetime that is one too short loses what it needs."""
    check(compiled(text), rows, ("n",), seed, 1, "auto")


# Windows of so few instants that events of the first and of the last one are often both needed.
NARROW = [
    "A a, NOT B b, C c",
    "A a, NOT B b, C c",
    "A a, B b, C c",
    "A a, B+ b, C c",
    "NOT B b, A a, C c",
    "A a, C c, NOT B b",
]


def crowded(seed: int) -> tuple[str, Streams]:
    """A pattern with a narrow window, and a stream with an A and a B at one instant, and a C as late as may be."""
    choose = random.Random(seed)
    window = choose.choice((2, 2, 3))
    last = window - 1
    some = [("A", 0), ("B", 0), ("C", last), ("A", last)]
    some += [(choose.choice("ABC"), choose.randint(0, window)) for _ in range(choose.randint(0, 3))]
    rows: Streams = {kind: [] for kind in "ABC"}
    for n, (kind, ts) in enumerate(some):
        rows[kind].append({"ts": ts, "k": "p", "x": 1, "v": 0.5, "n": choose.choice((n, n, None)), "m": "m"})
    return f"PATTERN SEQ({choose.choice(NARROW)}) WITHIN {window} us", rows


@settings(max_examples=400)
@given(case=SEEDS.map(crowded), seed=SEEDS)
def test_what_ties_with_the_first_event_is_remembered_as_long(case: tuple[str, Streams], seed: int) -> None:
    text, rows = case
    check(compiled(text), rows, ("n",), seed, 1, "auto", (0, 0, 1))


@settings(max_examples=15)
@given(rows=BUSY, seed=st.integers(0, 2**32), strategy=st.sampled_from(["automaton", "aggregate"]))
def test_automata_and_aggregates_on_streams_know_the_order_of_ties(rows: Streams, seed: int, strategy: str) -> None:
    check(compiled("PATTERN SEQ(A a, B+ b, C c) WITHIN 5 us"), rows, ("n",), seed, 1, strategy)
