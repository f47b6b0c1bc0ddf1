"""Sorting the candidates of a variable: packed, packed with places, or as two numbers, always the same stable order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin
from tocsin import errors, reference
from tocsin.kernels.lists import _order, _small
from tocsin.kernels.search.helpers import LEAST, MOST

WIDTHS = st.sampled_from([1, 3, 20, 40, 61, 63])


@st.composite
def numbers(draw: st.DrawFn, size: int) -> np.ndarray:
    """Numbers of some width, perhaps all multiples of a power of two, anywhere in 64 bits."""
    width = draw(WIDTHS)
    zeros = draw(st.integers(0, width - 1))
    low = draw(st.sampled_from([0, -5, -(2**63)]))
    found = draw(st.lists(st.integers(0, 2 ** (width - zeros) - 1), min_size=size, max_size=size))
    return np.array([low + (one << zeros) for one in found], np.int64)


@given(st.data())
def test_rows_are_sorted_by_group_and_time_and_otherwise_as_they_come(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    code, value = data.draw(numbers(size)), data.draw(numbers(size))
    expected = sorted(range(size), key=lambda row: (code[row], value[row], row))
    order = _order(code, value)
    assert (list(range(size)) if order is None else order.tolist()) == expected
    alone = _order(None, value)
    expected = sorted(range(size), key=lambda row: (value[row], row))
    assert (list(range(size)) if alone is None else alone.tolist()) == expected


@given(st.integers(1, 12).flatmap(numbers))
def test_small_numbers_keep_the_order_and_say_their_size(found: np.ndarray) -> None:
    small, bits = _small(found)
    assert np.array_equal(np.argsort(small, kind="stable"), np.argsort(found, kind="stable"))
    if bits <= 63:
        assert small.min() == 0 and int(small.max()).bit_length() <= bits


@pytest.mark.parametrize("ends", [(LEAST, 0), (LEAST, LEAST + 1), (0, MOST), (LEAST + 5, MOST)])
@pytest.mark.parametrize("pattern", ["AND(A a, A b)", "SEQ(A a, A b)", "SEQ(A a, A+ b)", "SEQ(NOT A n, A a, A b)"])
def test_events_at_an_end_of_time_are_events_like_any_other(pattern: str, ends: tuple[int, int]) -> None:
    times = sorted({end + step for end in ends for step in (-2, -1, 0, 1, 2) if LEAST <= end + step <= MOST})
    rows = [{"ts": time} for time in times]
    text = f"PATTERN {pattern} WITHIN 3 US"
    found = tocsin.pattern(text).match({"A": rows}, engine="local")
    expected = reference.evaluate(tocsin.pattern(text).query, {"A": rows})
    assert sorted(found["match_id"].to_pylist()) == sorted(row["match_id"] for row in expected)


def test_both_ends_of_time_at_once_are_refused_where_nothing_cuts_the_time_between() -> None:
    with pytest.raises(errors.UnsupportedError, match="both ends"):
        tocsin.pattern("PATTERN AND(A a, A b)").match({"A": [{"ts": LEAST}, {"ts": MOST}]}, engine="local")


@pytest.mark.parametrize("pattern", ["A{3} a", "A{3,4} a", "SEQ(A{2} a, B b)", "SEQ(B b, A{3} a)"])
@pytest.mark.parametrize("selection", ["any", "next"])
@pytest.mark.parametrize("first", [0, -1_000_000])
def test_just_enough_candidates_are_enough(pattern: str, selection: str, first: int) -> None:
    rows = {"A": [{"ts": first + time} for time in (1, 2, 3, 9, 20, 20, 21)], "B": [{"ts": first + 4}, {"ts": first}]}
    text = f"PATTERN {pattern} WITHIN 5 US SEMANTICS {selection}"
    found = tocsin.pattern(text).match(rows, engine="local")
    expected = reference.evaluate(tocsin.pattern(text).query, rows)
    assert len(expected) > 0
    assert sorted(found["match_id"].to_pylist()) == sorted(row["match_id"] for row in expected)
