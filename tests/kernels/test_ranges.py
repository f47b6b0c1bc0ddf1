"""Aggregates of ranges equal those of the bags that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.analysis.types import Kind
from tocsin.errors import NumberTooLargeError
from tocsin.kernels.expressions.leaves import Fold
from tocsin.kernels.expressions.prefixes import RANGED
from tocsin.kernels.longest import folded
from tocsin.kernels.model import Bag, Held, Ranges, Slot
from tocsin.language import expressions as ex

ROWS = 12
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
DOUBLES = st.floats(width=64) | st.sampled_from([0.1, 0.2, 1e300, -1e300, 1e-300, 2.0**53, 1.0, -0.5])


@st.composite
def ranges(draw: st.DrawFn) -> Ranges:
    listed = draw(st.permutations(range(ROWS)))
    begins = draw(st.lists(st.integers(0, ROWS), max_size=6))
    ends = [draw(st.integers(begin, ROWS)) for begin in begins]
    heads = [draw(st.integers(0, ROWS - 1)) for _ in begins]
    return Ranges(*(np.array(one, np.int64) for one in (heads, begins, ends, listed)))


@given(bags=ranges(), values=st.lists(INTEGERS, min_size=ROWS, max_size=ROWS))
def test_they_are_the_bags_that_they_stand_for(bags: Ranges, values: list[int]) -> None:
    column = np.array(values, np.int64)
    plain = Bag(bags.offsets, bags.rows)
    expected = [
        [head, *bags.listed[begin:end].tolist()]
        for head, begin, end in zip(bags.heads.tolist(), bags.begins.tolist(), bags.ends.tolist(), strict=True)
    ]
    split = [one.tolist() for one in np.split(plain.rows, plain.offsets[1:-1])] if expected else []
    assert split == expected
    assert bags.sizes.tolist() == plain.sizes.tolist()
    assert bags.sums(lambda rows: column[rows]).tolist() == plain.sums(lambda rows: column[rows]).tolist()
    edges = bags.shown
    shown = [one.tolist() for one in np.split(edges.rows, edges.offsets[1:-1])] if expected else []
    assert shown == [rows[:1] + rows[1:][-1:] for rows in expected]


@settings(max_examples=300)
@given(
    bags=ranges(),
    function=st.sampled_from(sorted(RANGED)),
    column=st.lists(st.none() | INTEGERS, min_size=ROWS, max_size=ROWS)
    | st.lists(st.none() | DOUBLES, min_size=ROWS, max_size=ROWS),
)
def test_aggregates_are_those_of_the_bags(bags: Ranges, function: str, column: list[Any]) -> None:
    is_double = any(isinstance(value, float) for value in column)
    held = Held.FLOAT if is_double else Held.INTEGER
    slot = Slot("v", ex.Attribute("v", ("x",)), held)
    numbers = np.array([value or 0 for value in column], np.float64 if is_double else np.int64)
    nulls = np.array([value is None for value in column])
    fold = Fold(function, slot, "v", Kind.DOUBLE if is_double else Kind.INTEGER)
    known = [
        [column[row] for row in rows if column[row] is not None]
        for rows in (np.split(bags.rows, bags.offsets[1:-1]) if len(bags.heads) else [])
    ]
    wanted = [aggregate(function, [float(one) if is_double else one for one in values]) for values in known]
    if any(isinstance(one, int) and not -(2**63) <= one < 2**63 for one in wanted):
        with pytest.raises(NumberTooLargeError):
            folded(fold, bags, (numbers, nulls))
        return
    found, missing = folded(fold, bags, (numbers, nulls if nulls.any() else None))
    given = [None if is_null else value for value, is_null in zip(found.tolist(), missing.tolist(), strict=True)]
    assert len(given) == len(wanted)
    for one, other in zip(given, wanted, strict=True):
        assert one == other or (is_nan(one) and is_nan(other)), (function, given, wanted)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def aggregate(function: str, values: list[Any]) -> Any:
    """NaN is larger than every number; an infinity swallows all but NaN and its opposite."""
    by_size = sorted(values, key=lambda one: (is_nan(one), 0.0 if is_nan(one) else one))
    match function:
        case "count":
            return len(values)
        case "sum":
            return total(values)
        case "min":
            return by_size[0] if values else None
        case "max":
            return by_size[-1] if values else None
        case "range":
            return by_size[-1] - by_size[0] if values else None
    return mean(values)


def total(values: list[Any]) -> Any:
    if not any(isinstance(value, float) for value in values):
        return sum(values)
    if not all(map(math.isfinite, values)):
        return sum(value for value in values if not math.isfinite(value))
    try:
        return float(sum(map(Fraction, values)))
    except OverflowError:
        return math.copysign(math.inf, sum(map(Fraction, values)))


def mean(values: list[Any]) -> float | None:
    if not values:
        return None
    found = total(values)
    whole = (found + 2**63) % 2**64 - 2**63 if isinstance(found, int) else 0
    as_double = float(whole) + (found - whole) // 2**64 * 2.0**64 if isinstance(found, int) else found
    return as_double / len(values)
