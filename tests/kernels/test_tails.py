"""Iterations leave time for what must follow them: starts that lead nowhere are not searched to their end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.test_find import compiled, expected, found, kernel_of

from tocsin import reference
from tocsin.testing.strategies import Streams

SECOND = 1_000_000


def stream(text: str) -> Streams:
    """An event per letter, a second apart."""
    rows: Streams = {name: [] for name in "ABC"}
    for place, kind in enumerate(text):
        rows[kind].append({"ts": place * SECOND, "k": "p", "x": place, "v": 0.5})
    return rows


@pytest.mark.parametrize("within", ["WITHIN 1 DAY", ""])
@pytest.mark.parametrize(
    ("pattern", "events", "number"),
    [
        ("SEQ(A+ a, B b)", "B" + 40 * "A", 0),
        ("SEQ(A{20} a, B b)", 20 * "A" + "B" + 20 * "A", 1),
        ("SEQ(A{20} a, B b, A{20} c)", 20 * "A" + "B" + 20 * "A", 1),
        ("SEQ(C c, A+ a, B{3} b)", "CBB" + 40 * "A" + "BB", 0),
        ("SEQ(A{20} a, C? c, OR(B b, SEQ(B d, C e)))", 20 * "A" + "B" + 20 * "A", 1),
        ("SEQ(SEQ(A a, B b){10}, C c)", 10 * "AB" + "C" + 10 * "AB", 1),
        ("SEQ(SEQ(A a, B b)+, C c)", "C" + 20 * "AB", 0),
    ],
)
def test_a_match_is_not_refused_for_starts_that_lead_nowhere(
    pattern: str, events: str, number: int, within: str
) -> None:
    assert len(found(kernel_of(f"PATTERN {pattern} {within}"), stream(events))) == number


EVENTS = st.text(st.sampled_from("AAABBC"), max_size=9)
ITERATIONS = st.sampled_from(["A+ a", "A{2} a", "A{2,3} a", "A{1,3} a", "SEQ(A a, B b)+", "SEQ(A a, B b){1,2}"])
BEFORE = st.sampled_from(["", "C c, ", "C? c, ", "B* c, "])
BEHIND = st.sampled_from(
    ["B d", "B{2} d", "B d, C e", "B? d, C e", "OR(B d, SEQ(C e, A f))", "SEQ(B d, A e)+, C f", "B* d"]
)
WITHIN = st.sampled_from(["", "WITHIN 3 SECONDS", "WITHIN 6 SECONDS"])
WHERE = st.sampled_from(["", "WHERE a.x > 1", "WHERE d.x - a.x < 4"])


@given(EVENTS, BEFORE, ITERATIONS, BEHIND, WITHIN, WHERE, st.sampled_from([None, SECOND]), st.booleans())
@settings(deadline=None, max_examples=150)
def test_what_follows_an_iteration_leaves_out_no_match(
    events: str, before: str, iteration: str, behind: str, within: str, where: str, width: int | None, is_tied: bool
) -> None:
    rows = stream(events)
    if is_tied:  # two at each instant
        rows = {
            kind: [{**row, "ts": row["ts"] // (2 * SECOND) * SECOND} for row in some] for kind, some in rows.items()
        }
    text = f"PATTERN SEQ({before}{iteration}, {behind}) {where} {within}"
    pattern, made = compiled(text), kernel_of(text)
    slice_us = None if width is None or not made.can_slice else max(width, made.ahead_us, made.back_us)
    assert found(made, rows, slice_us) == expected(pattern.query, reference.evaluate(pattern, rows))
