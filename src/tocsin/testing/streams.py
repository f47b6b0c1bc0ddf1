"""Hypothesis strategies for streams: ties, duplicates, NULLs, few keys, empty inputs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

TYPES = ("A", "B", "C")
ATTRIBUTES = {"ts": "bigint", "k": "string", "x": "bigint", "v": "double"}
SECOND = 1_000_000
LONGEST_STREAM_S = 8
Streams = dict[str, list[dict[str, Any]]]
SEEDS = st.integers(0, 2**32)

KEYS = ["p", "p", "p", "q", "pq", None]
WHOLE = [0, 1, 2, 3, -1, 1, 2, None]
HALVES = [0.0, 0.5, 1.0, 2.5, -1.0, None]
# Few instants, so that events tie, and their neighbours, so that boundaries are met.
NEAR = [0, 0, 0, 0, 1, -1]


def streams(*, types: Sequence[str] = TYPES, max_events: int = 9) -> st.SearchStrategy[Streams]:
    """Rows per type with many ties, equal rows, NULLs and few keys; NULL times too.

    Half are drawn choice by choice, which shrinks well but likes extremes; half are spread evenly by a seeded
    generator, which finds more matches.
    """
    return st.one_of(_drawn(types, max_events), st.builds(spread, st.just(types), st.just(max_events), SEEDS))


def spread(types: Sequence[str], max_events: int, seed: int) -> Streams:
    """A stream spread evenly over few instants, keys and values."""
    choose = random.Random(seed)
    rows: Streams = {name: [] for name in types}
    for _ in range(choose.randint(max_events // 2, max_events)):
        second = choose.randint(0, LONGEST_STREAM_S)
        row = {
            "ts": second * SECOND + choose.choice(NEAR) if choose.random() > 0.05 else None,
            "k": choose.choice(KEYS),
            "x": choose.choice(WHOLE),
            "v": choose.choice(HALVES),
        }
        rows[choose.choice(types)] += [dict(row) for _ in range(1 + (choose.random() < 0.15))]
    return rows


@st.composite
def _drawn(draw: st.DrawFn, types: Sequence[str], max_events: int) -> Streams:
    times = st.builds(
        lambda second, near: second * SECOND + near, st.integers(0, LONGEST_STREAM_S), st.sampled_from(NEAR)
    )
    row = st.fixed_dictionaries(
        {
            "ts": st.one_of(*[times] * 15, st.none()),
            "k": st.sampled_from(KEYS),
            "x": st.sampled_from(WHOLE),
            "v": st.sampled_from(HALVES),
        }
    )
    rows: Streams = {name: [] for name in types}
    for kind, one in draw(st.lists(st.tuples(st.sampled_from(list(types)), row), max_size=max_events)):
        rows[kind].append(one)
        if draw(st.integers(0, 5)) == 0:
            rows[kind].append(dict(one))
    return rows
