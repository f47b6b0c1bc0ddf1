"""The longest match of each start of an iteration, without enumeration: O2 of paper 002.

Under `any` an iteration `V{m,n} v` whose events are decided one by one has a match for every choice of events in the
window, and `OUTPUT longest` reports one of them for each start: its event, and one event of each later instant of the
window. The one of an instant is its first by position, and with at most n events the first n instants count, since
matches of one length go by R5: the earliest last position, then the earliest positions. So a window is a range of a
list of instants, and the work grows with the events and what is reported. Where the result has no more of a match than
aggregates and its first and last events, these come from prefix sums: windows of any size cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.algebra import nodes as alg
from tocsin.errors import NumberTooLargeError
from tocsin.kernels.conditions import Conditions
from tocsin.kernels.expressions.leaves import Fold
from tocsin.kernels.expressions.prefixes import rounded_limbs, to_limbs
from tocsin.kernels.lists import merged
from tocsin.kernels.model import (
    Bag,
    Held,
    Integers,
    Mask,
    Matches,
    Ranges,
    Rows,
    Source,
    differs,
    is_flagged,
    portions,
    sums_before,
)
from tocsin.kernels.policies import chained
from tocsin.kernels.reach import iteration_of
from tocsin.language.ast import Skip

# Events of matches that come at a time, or matches that are ranges.
AT_ONCE = 1 << 20
RANGES_AT_ONCE = 1 << 16


def is_ranged(query: alg.Query, known: Conditions) -> bool:
    """Whether the longest matches of a query are ranges: no condition speaks of several events."""
    return iteration_of(query) is not None and not (known.tests or known.residual or known.residual_around)


def longest(query: alg.Query, known: Conditions, source: Source, rows: Rows, span_us: int | None) -> Iterator[Matches]:
    """The longest match of each start that the task owns, in order, as far as the after-match policy keeps them.

    The query `is_ranged`, and its only source is given; rows have positions. Without a span a window is a partition.
    """
    repeat = iteration_of(query)
    assert repeat is not None and rows.order is not None
    events = merged(rows, np.flatnonzero(is_flagged(rows.flags, source.bit)).astype(np.int64, copy=False))
    group = np.repeat(np.arange(len(events.group_from)), events.group_to - events.group_from)
    is_first = differs(group, events.times)
    # Of each candidate its instant, and how many instants its window has; of each instant its first candidate.
    instant, firsts = np.cumsum(is_first, dtype=np.int64) - 1, np.flatnonzero(is_first)
    sizes = instant[events.window_ends(span_us) - 1] + 1 - instant
    if repeat.most is not None:
        sizes = np.minimum(sizes, repeat.most)
    owned = (events.own_low[group] <= events.times) & (events.times <= events.own_high[group])
    chosen = np.flatnonzero((sizes >= max(repeat.least, 1)) & owned)
    lasts = np.where(sizes == 1, np.arange(len(sizes)), firsts[instant + sizes - 1])
    if query.after_match.skip in (Skip.PAST_LAST, Skip.TO_LAST):
        places = rows.order[events.rows]
        frontiers = places[lasts[chosen]] + (query.after_match.skip is Skip.PAST_LAST)
        chosen = chosen[chained(group[chosen], places[chosen], frontiers)]
    listed = events.rows[firsts]
    folds = [test.folds[0] for test in known.asked.values()]
    columns = [
        None if fold.slot is None else rows.columns[known.places[fold.variable, fold.slot.expression]] for fold in folds
    ]
    in_ranges = known.ranged is not None
    rooms, most = (np.ones(len(chosen), np.int64), RANGES_AT_ONCE) if in_ranges else (sizes[chosen], AT_ONCE)
    for begin, end in portions(sums_before(rooms), most):
        some = chosen[begin:end]
        begins = instant[some] + 1
        bags = Ranges(events.rows[some], begins, begins + sizes[some] - 1, listed)
        values = tuple(folded(fold, bags, column) for fold, column in zip(folds, columns, strict=True))
        held = bags if in_ranges else Bag(bags.offsets, bags.rows)
        start, end_times = (rows.ts[events.rows[which]] for which in (some, lasts[some]))
        yield Matches(start, end_times, {source.variable: held}, values=values)


HALF, LOW_HALF = np.int64(32), np.int64((1 << 32) - 1)
Values = tuple[NDArray[Any], Mask]


def folded(fold: Fold, bags: Ranges, column: tuple[NDArray[Any], Mask | None] | None) -> Values:
    """An aggregate of each bag; `column` has a value per row and a mask of those that are NULL."""
    if column is None or fold.slot is None:
        return bags.sizes, np.zeros(len(bags.heads), np.bool_)
    values, nulls = column[0][bags.involved], None if column[1] is None else column[1][bags.involved]
    number = bags.sizes if nulls is None else bags.summed((~nulls).astype(np.int64))
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

# `values` are those of the rows that bags involve.


def _halves(bags: Ranges, values: Integers) -> tuple[Integers, Integers]:
    """Exact sums as `high · 2**32 + low`, with 0 ≤ low < 2**32."""
    low, high = bags.summed(values & LOW_HALF), bags.summed(values >> HALF)
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
    if is_finite.all():
        return _finite_sums(bags, values)
    total = _finite_sums(bags, np.where(is_finite, values, 0.0))
    for odd in (np.inf, -np.inf):
        total += np.where(bags.summed((values == odd).astype(np.int64)) > 0, odd, 0.0)  # ∞ − ∞ is NaN
    total[bags.summed(np.isnan(values).astype(np.int64)) > 0] = np.nan
    return total


def _finite_sums(bags: Ranges, values: NDArray[np.float64]) -> NDArray[np.float64]:
    found = to_limbs(values)
    if found is None:
        return _exact_sums(bags, values)
    limbs, scale = found
    total, is_sure = rounded_limbs(*map(bags.summed, limbs))
    return total * scale if np.all(is_sure) else np.where(is_sure, total * scale, _exact_sums(bags, values))


def _exact_sums(bags: Ranges, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of any doubles, as whole numbers of the smallest unit among them."""
    mantissas, exponents = np.frexp(values)
    least = int(exponents.min(initial=0))
    mantissas, shifts = (mantissas * 2.0**53).tolist(), (exponents - least).tolist()
    whole = np.array([int(one) << shift for one, shift in zip(mantissas, shifts, strict=True)], object)
    heads, before = whole[: len(bags.heads)], np.append(0, np.cumsum(whole[len(bags.heads) :]))
    unit = Fraction(2) ** (least - 53)
    totals = heads + before[bags.ends - bags.low] - before[bags.begins - bags.low]
    return np.array([_rounded(total * unit) for total in totals], np.float64)


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


# --- extremes -------------------------------------------------------------------------------------


def _extremes(bags: Ranges, values: NDArray[Any], nulls: Mask | None, function: str) -> NDArray[Any]:
    """The least or the largest value of each bag; NaN is larger than every number, and NULL is passed over.

    Level k of the table has the extreme of the 2**k entries from each place on: any stretch is covered by two of them.
    """
    choose: np.ufunc = np.fmin if function == "min" else np.maximum
    nothing = _beyond_all(values.dtype, function)
    known = values if nulls is None else np.where(nulls, nothing, values)
    found, level = known[: len(bags.heads)].copy(), known[len(bags.heads) :]
    lengths = bags.ends - bags.begins
    if not lengths.any():
        return found
    width = 1
    while True:
        own = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        left, right = level[bags.begins[own] - bags.low], level[bags.ends[own] - width - bags.low]
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
