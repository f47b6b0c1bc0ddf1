"""Aggregates of `Ranges` without visiting their rows: prefix sums, and a table of extremes of blocks.

Input    bags that are ranges of one list, a column of values
Output   the aggregate of each bag, and which of them are NULL

The work grows with the list and the bags, not with the sizes of the bags. Integers are exact, and a result beyond 64
bits stops the query (D24). A sum of doubles is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import NumberTooLargeError
from tocsin.kernels.expressions.leaves import Fold
from tocsin.kernels.expressions.prefixes import rounded_limbs, to_limbs
from tocsin.kernels.model import Held, Integers, Mask, Ranges

RANGED = frozenset({"count", "sum", "avg", "min", "max", "range"})
HALF, LOW_HALF = np.int64(32), np.int64((1 << 32) - 1)
Values = tuple[NDArray[Any], Mask]


def folded(fold: Fold, bags: Ranges, column: tuple[NDArray[Any], Mask | None] | None) -> Values:
    """An aggregate of each bag; `column` has a value per row and a mask of those that are NULL."""
    if column is None or fold.slot is None:
        return bags.sizes, np.zeros(len(bags.heads), np.bool_)
    values, nulls = column
    number = bags.sizes if nulls is None else bags.sums(lambda rows: (~nulls[rows]).astype(np.int64))
    is_empty = number == 0
    known = values if nulls is None else np.where(nulls, np.zeros(1, values.dtype), values)
    is_double = fold.slot.held is Held.FLOAT
    match fold.function:
        case "count":
            return number, np.zeros(len(number), np.bool_)
        case "sum":
            total: NDArray[Any] = _double_sums(bags, known) if is_double else _integer_sums(bags, known)
            return total, np.zeros(len(number), np.bool_)
        case "avg":
            total = _double_sums(bags, known) if is_double else _as_doubles(*_halves(bags, known))
            return total / np.maximum(number, 1), is_empty
        case "min" | "max":
            return _extremes(bags, values, nulls, fold.function), is_empty
        case "range":
            high, low = (_extremes(bags, values, nulls, function) for function in ("max", "min"))
            if is_double:
                with np.errstate(invalid="ignore"):  # ∞ − ∞
                    return np.where(is_empty, 0.0, high - low), is_empty
            high, low = np.where(is_empty, 0, high), np.where(is_empty, 0, low)
            # The difference of two integers has wrapped around exactly where it is negative.
            if np.any(high - low < 0):
                raise NumberTooLargeError.of_match("RANGE")
            return high - low, is_empty
        case _:
            raise ValueError(fold.function)


# --- sums -----------------------------------------------------------------------------------------


def _halves(bags: Ranges, values: Integers) -> tuple[Integers, Integers]:
    """Exact sums as `high · 2**32 + low`, with 0 ≤ low < 2**32."""
    low = bags.sums(lambda rows: values[rows] & LOW_HALF)
    high = bags.sums(lambda rows: values[rows] >> HALF)
    return high + (low >> HALF), low & LOW_HALF


def _integer_sums(bags: Ranges, values: Integers) -> Integers:
    high, low = _halves(bags, values)
    if np.any((high < -(1 << 31)) | (high >= 1 << 31)):
        raise NumberTooLargeError.of_match("SUM")
    return (high << HALF) | low


def _as_doubles(high: Integers, low: Integers) -> NDArray[np.float64]:
    """Sums of integers as doubles: those of 64 bits are rounded once."""
    carries = (high + (1 << 31)) >> HALF
    wrapped = (high << HALF) | low
    return wrapped.astype(np.float64) + carries * 2.0**64


def _double_sums(bags: Ranges, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums rounded once; of values that are not finite NaN or an infinity."""
    is_finite = np.isfinite(values)
    finite = values if is_finite.all() else np.where(is_finite, values, 0.0)
    total = _finite_sums(bags, finite)
    if finite is not values:
        for odd in (np.inf, -np.inf):
            total += np.where(_number_of(bags, values == odd) > 0, odd, 0.0)  # ∞ − ∞ is NaN
        total[_number_of(bags, np.isnan(values)) > 0] = np.nan
    return total


def _finite_sums(bags: Ranges, values: NDArray[np.float64]) -> NDArray[np.float64]:
    involved = _involved(bags)
    found = to_limbs(values[involved])
    if found is None:
        return _exact_sums(bags, values)
    limbs, scale = found
    column = np.zeros(len(values), np.int64)
    sums = []
    for limb in limbs:
        column[involved] = limb
        sums.append(bags.sums(_taken(column)))
    total, is_sure = rounded_limbs(*sums)
    return total * scale if np.all(is_sure) else np.where(is_sure, total * scale, _exact_sums(bags, values))


def _exact_sums(bags: Ranges, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of any doubles, as whole numbers of the smallest unit among them."""
    mantissas, exponents = np.frexp(values[_involved(bags)])
    shifts = (exponents - exponents.min(initial=0)).tolist()
    whole = [int(one) << shift for one, shift in zip((mantissas * 2.0**53).tolist(), shifts, strict=True)]
    heads, listed = whole[: len(bags.heads)], whole[len(bags.heads) :]
    before = list(accumulate(listed, initial=0))
    unit = Fraction(2) ** (int(exponents.min(initial=0)) - 53)
    low = int(bags.begins.min(initial=2**62))
    found = [
        _rounded((head + before[end - low] - before[begin - low]) * unit)
        for head, begin, end in zip(heads, bags.begins.tolist(), bags.ends.tolist(), strict=True)
    ]
    return np.array(found, np.float64)


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _number_of(bags: Ranges, is_one: Mask) -> Integers:
    return bags.sums(_taken(is_one.astype(np.int64)))


def _involved(bags: Ranges) -> Integers:
    """The heads of bags, then the part of their list that they share."""
    low, high = int(bags.begins.min(initial=2**62)), int(bags.ends.max(initial=0))
    return np.concatenate((bags.heads, bags.listed[low:high]))


def _taken(column: Integers) -> Callable[[Integers], Integers]:
    return lambda rows: column[rows]


# --- extremes -------------------------------------------------------------------------------------


def _extremes(bags: Ranges, values: NDArray[Any], nulls: Mask | None, function: str) -> NDArray[Any]:
    """The least or the largest value of each bag; NaN is larger than every number, and NULL is passed over.

    Level k of the table has the extreme of the 2**k entries from each place on: any stretch is covered by two of them.
    """
    choose: np.ufunc = np.fmin if function == "min" else np.maximum
    nothing = _beyond_all(values.dtype, function)
    known = values if nulls is None else np.where(nulls, nothing, values)
    found = known[bags.heads]
    lengths = bags.ends - bags.begins
    if not len(lengths) or not lengths.any():
        return found
    low = int(bags.begins.min())
    level = known[bags.listed[low : int(bags.ends.max())]]
    width = 1
    while True:
        own = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        left, right = level[bags.begins[own] - low], level[bags.ends[own] - width - low]
        found[own] = choose(found[own], choose(left, right))
        if 2 * width > lengths.max():
            return found
        level = choose(level[:-width], level[width:])
        width *= 2


def _beyond_all(dtype: np.dtype[Any], function: str) -> Any:
    """A value that no other is beyond; of doubles, NaN counts as larger than ∞."""
    if np.issubdtype(dtype, np.floating):
        return np.nan if function == "min" else -np.inf
    limits = np.iinfo(dtype)
    return limits.max if function == "min" else limits.min
