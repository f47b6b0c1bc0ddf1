"""Streams with many ties that tie columns order, for random queries, so that the order often decides on a match."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.candidates import TooManyCandidatesError, few_candidates
from tests.fitting import MOST_PAIRS, decides, fitting, meaning

from tocsin.language import ast
from tocsin.testing.strategies import LANGUAGE, SECOND, Features, Streams, queries

SCHEMA = pa.schema(
    {"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64(), "n": pa.int64(), "m": pa.string()}
)
TIES = [("n",), ("n", "m"), ("m", "n"), ("v", "n")]
# How long an instant is: of some streams all events are at one.
GRIDS = [1, SECOND, 3 * SECOND, 100 * SECOND]
MOST_TRIES = 8

Tied = tuple[ast.Query, Streams, tuple[str, ...]]


def tied_queries(features: Features = LANGUAGE, *, max_events: int = 7) -> st.SearchStrategy[Tied]:
    """A query, a stream that fits it with events moved to few instants, and the columns that order them."""
    return tied(queries(features), max_events=max_events)


@st.composite
def tied(draw: st.DrawFn, asked: st.SearchStrategy[ast.Query], *, max_events: int = 7) -> Tied:
    """One of these queries, a stream and columns as those of `tied_queries`."""
    query = draw(asked)
    rows = draw(fitting(meaning(query), max_events=max_events))
    tie = draw(st.sampled_from(TIES))
    return query, _decided(query, rows, tie, draw(st.integers(0, 2**32))), tie


def _decided(query: ast.Query, rows: Streams, tie: tuple[str, ...], seed: int) -> Streams:
    """The events at fewer instants: the first of some tries in which the order of ties decides on a match."""
    choose = random.Random(seed)
    kept = rows
    for _ in range(MOST_TRIES):
        moved = _moved(rows, choose)
        try:
            with few_candidates(MOST_PAIRS):
                is_decided = decides(tie, meaning(query), moved)
        except TooManyCandidatesError:
            continue
        kept = moved
        if is_decided:
            break
    return kept if kept is not rows else _moved({name: events[:1] for name, events in rows.items()}, choose)


def _moved(rows: Streams, choose: random.Random) -> Streams:
    """The same events at fewer instants; `n` and `m` nearly keep the order they had, some are equal and some NULL."""
    grid = choose.choice(GRIDS)
    times = sorted({row["ts"] for events in rows.values() for row in events if row["ts"] is not None})
    ranks = {ts: number for number, ts in enumerate(times)}
    per_value = choose.choice([1, 1, 2, 3])

    def moved(row: dict[str, Any]) -> dict[str, Any]:
        if row["ts"] is None:
            return {**row, "n": None, "m": None}
        rank = ranks[row["ts"]] // per_value + choose.choice([0, 0, 0, 0, 1])
        ts = row["ts"] // grid * grid
        return {**row, "ts": ts, "n": None if choose.random() < 0.1 else rank, "m": choose.choice(["a", "b", None])}

    return {kind: [moved(row) for row in events] for kind, events in rows.items()}
