"""Values as natural numbers, so that they are added exactly however often they occur, and back again.

An integer is itself; a double is a whole number of the smallest binary unit that any value of its column needs. What is
negative is added up apart, and so are the three values that are no numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.model import Integers, Mask

MANTISSA = 53
DIGIT, MASK = 32, 0xFFFFFFFF
Digits = NDArray[np.uint64]  # (values, digits), the lowest digit first


@dataclass(frozen=True)
class Amount:
    """A sum: `number · 2^exponent`, and how many infinities and NaNs are in it beside."""

    number: int = 0
    exponent: int = 0
    odd: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Amount) -> Amount:
        """Both, exactly."""
        exponent = min(self.exponent, other.exponent)
        number = (self.number << (self.exponent - exponent)) + (other.number << (other.exponent - exponent))
        odd = {name: self.odd.get(name, 0) + other.odd.get(name, 0) for name in {*self.odd, *other.odd}}
        return Amount(number, exponent, odd)

    def over(self, count: int) -> float:
        """The double nearest to this divided by a number.

        Examples
        --------
        >>> Amount(1, -1).over(1), Amount(1).over(3), Amount(7, 0, {"inf": 1}).over(2)
        (0.5, 0.3333333333333333, inf)
        """
        odd = {name for name, times in self.odd.items() if times}
        if odd:
            return float(odd.pop()) if len(odd) == 1 else float("nan")
        try:
            if self.exponent >= 0:
                return (self.number << self.exponent) / count
            return self.number / (count << -self.exponent)
        except OverflowError:
            return float("inf") if self.number > 0 else float("-inf")


@dataclass(frozen=True)
class Parts:
    """The parts of a column: each a name and the weight of every value.

    Names are "plus", "minus", and "inf", "-inf", "nan" where such values occur.
    """

    exponent: int
    weights: Mapping[str, Digits]

    def amount(self, totals: Mapping[str, int]) -> Amount:
        """The sum, from the totals of the parts."""
        odd = {name: total for name, total in totals.items() if name not in ("plus", "minus")}
        return Amount(totals.get("plus", 0) - totals.get("minus", 0), self.exponent, odd)


def parts(values: NDArray[Any], nulls: Mask | None) -> Parts:
    """The parts of a column of 64-bit integers or doubles; a NULL adds nothing.

    Examples
    --------
    >>> parts(np.array([3, -1]), None).weights["minus"].tolist()
    [[0], [1]]
    >>> parts(np.array([0.5, 3.0]), None).exponent
    -1
    """
    is_known = np.ones(len(values), np.bool_) if nulls is None else ~nulls
    if values.dtype == np.float64:
        return _of_doubles(values, is_known)
    weights = {
        "plus": _digits(np.where(is_known & (values > 0), values, 0).astype(np.uint64)),
        # The least integer has no positive one: its bits, read without a sign, are it.
        "minus": _digits(np.negative(np.where(is_known & (values < 0), values, 0)).view(np.uint64)),
    }
    return Parts(0, {name: found for name, found in weights.items() if found.any()})


def _digits(numbers: Digits) -> Digits:
    low, high = numbers & np.uint64(MASK), numbers >> np.uint64(DIGIT)
    return np.stack([low, high], axis=1) if high.any() else low[:, None]


def _of_doubles(values: NDArray[np.float64], is_known: Mask) -> Parts:
    is_number = is_known & np.isfinite(values)
    fractions, exponents = np.frexp(np.where(is_number, np.abs(values), 0.0))
    mantissas = (fractions * 2.0**MANTISSA).astype(np.int64)
    # As few bits as there are: 0.5 is one unit of 2^-1, not 2^52 of 2^-53.
    zeros = np.log2(np.maximum(mantissas & -mantissas, 1).astype(np.float64)).astype(np.int64)
    mantissas >>= zeros
    units = exponents.astype(np.int64) - MANTISSA + zeros
    is_any = mantissas != 0
    exponent = int(units[is_any].min()) if is_any.any() else 0
    shifted = _shifted(mantissas.astype(np.uint64), np.where(is_any, units - exponent, 0))
    weights = {
        "plus": np.where((values > 0)[:, None], shifted, np.uint64(0)),
        "minus": np.where((values < 0)[:, None], shifted, np.uint64(0)),
        "inf": _digits((is_known & np.isposinf(values)).astype(np.uint64)),
        "-inf": _digits((is_known & np.isneginf(values)).astype(np.uint64)),
        "nan": _digits((is_known & np.isnan(values)).astype(np.uint64)),
    }
    return Parts(exponent, {name: found for name, found in weights.items() if found.any()})


def _shifted(mantissas: Digits, places: Integers) -> Digits:
    """Numbers of up to 53 bits times 2^places, as digits."""
    digit, bit = places // DIGIT, (places % DIGIT).astype(np.uint64)
    mask, shift = np.uint64(MASK), np.uint64(DIGIT)
    low, high = (mantissas & mask) << bit, (mantissas >> shift) << bit
    middle = (low >> shift) + (high & mask)
    found = np.zeros((len(mantissas), int(digit.max(initial=0)) + 3), np.uint64)
    rows = np.arange(len(mantissas))
    found[rows, digit] = low & mask
    found[rows, digit + 1] = middle & mask
    found[rows, digit + 2] = (high >> shift) + (middle >> shift)
    used = int(np.flatnonzero(found.any(axis=0)).max(initial=0)) + 1
    return found[:, :used]
