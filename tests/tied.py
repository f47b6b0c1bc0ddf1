"""Streams with many ties that tie columns order, for random queries."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.fitting import queries_with_streams

from tocsin.language import ast
from tocsin.testing.strategies import LANGUAGE, SECOND, Features, Streams

SCHEMA = pa.schema(
    {"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64(), "n": pa.int64(), "m": pa.string()}
)
TIES = [("n",), ("n", "m"), ("m", "n"), ("v", "n")]
# How long an instant is: of some streams all events are at one.
GRIDS = [1, SECOND, 3 * SECOND, 100 * SECOND]


@st.composite
def tied_queries(
    draw: st.DrawFn, features: Features = LANGUAGE, *, max_events: int = 7
) -> tuple[ast.Query, Streams, tuple[str, ...]]:
    """A query, a stream that fits it with events moved to few instants, and the columns that order them."""
    query, (rows,) = draw(queries_with_streams(features, max_events=max_events))
    return query, _tied(rows, draw(st.integers(0, 2**32))), draw(st.sampled_from(TIES))


def _tied(rows: Streams, seed: int) -> Streams:
    """The same events at fewer instants; `n` and `m` nearly keep the order they had, some are equal and some NULL."""
    choose = random.Random(seed)
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
