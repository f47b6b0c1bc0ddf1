"""LIKE with many wildcards takes time that grows with text and pattern, not a power of them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin.expressions import objects
from tocsin.reference import values

SHORT = st.text("ab%_\\\n", max_size=9)


@settings(max_examples=500)
@given(SHORT, SHORT)
def test_the_evaluator_and_the_reference_agree(pattern: str, text: str) -> None:
    assert objects.like(pattern)(text) is values.like(text, pattern)


@pytest.mark.parametrize("piece", ["%a", "%_", "%%", "%a_", "%ab"])
@pytest.mark.parametrize("end", ["b", "%b", ""])
def test_many_wildcards_take_no_power_of_the_text(piece: str, end: str) -> None:
    pattern, text = piece * 60 + end, "a" * 2_000
    begun = time.process_time()
    found = objects.like(pattern)(text)
    assert values.like(text, pattern) is found
    assert time.process_time() - begun < 2


def test_a_query_with_many_wildcards_ends() -> None:
    query = tocsin.pattern(f"PATTERN SEQ(A a, B b) WHERE CONCAT(a.s, b.s) LIKE '{'%a' * 30}b' WITHIN 1 SECOND")
    rows = {kind: [{"ts": at, "s": "a" * 100}] for at, kind in enumerate("AB")}
    assert query.match(rows, engine="local", time_unit="us").num_rows == 0
