"""Values as integers, totals over many matches, and the values of aggregates made of them.

An integer is itself; a double is a whole number of the smallest binary unit that any value of its column needs. So all
sums are exact however often a value occurs, and an aggregate is rounded once, at the very end (R18, R40). Infinities
and NaN are counted apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import NumberTooLargeError
from tocsin.kernels.model import Integers, Mask

MANTISSA = 53
LARGEST = 2**63 - 1


# --- values of events -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Weights:
    """Integers of any length: mantissa · 2^shift for every event."""

    mantissas: Integers
    shifts: Integers

    @property
    def bits(self) -> int:
        """How many bits the largest of them has, without its sign."""
        lengths = np.frexp(self.mantissas.astype(np.float64))[1] + self.shifts
        return int(lengths[self.mantissas != 0].max(initial=0))

    def integers(self) -> list[int]:
        """Python's own integers."""
        return [number << shift for number, shift in zip(self.mantissas.tolist(), self.shifts.tolist(), strict=True)]


def whole(numbers: NDArray[Any]) -> Weights:
    """Integers of 64 bits, or flags."""
    return Weights(numbers.astype(np.int64), np.zeros(len(numbers), np.int64))


@dataclass(frozen=True)
class Values:
    """The values of a column: integers in units of 2^exponent, and flags for "inf", "-inf" and "nan" if these occur."""

    exponent: int
    parts: Mapping[str, Weights]

    def amount(self, totals: Sequence[int]) -> Amount:
        """The sum, from the totals of the parts."""
        odd = dict(zip(self.parts, totals, strict=True))
        return Amount(odd.pop(""), self.exponent, odd)


def values_of(values: NDArray[Any], nulls: Mask | None) -> Values:
    """The parts of a column of 64-bit integers or doubles; a NULL adds nothing.

    Examples
    --------
    >>> values_of(np.array([3, -1]), None).parts[""].integers()
    [3, -1]
    >>> found = values_of(np.array([0.5, -3.0]), None)
    >>> found.exponent, found.parts[""].integers()
    (-1, [1, -6])
    """
    is_known = np.ones(len(values), np.bool_) if nulls is None else ~nulls
    if values.dtype != np.float64:
        return Values(0, {"": whole(np.where(is_known, values, 0))})
    fractions, exponents = np.frexp(np.where(is_known & np.isfinite(values), values, 0.0))
    mantissas = (fractions * 2.0**MANTISSA).astype(np.int64)
    # As few bits as there are: 0.5 is one unit of 2^-1, not 2^52 of 2^-53.
    zeros = np.log2(np.maximum(mantissas & -mantissas, 1).astype(np.float64)).astype(np.int64)
    mantissas >>= zeros
    units = exponents.astype(np.int64) - MANTISSA + zeros
    is_any = mantissas != 0
    exponent = int(units[is_any].min()) if is_any.any() else 0
    odd = {"inf": np.isposinf(values), "-inf": np.isneginf(values), "nan": np.isnan(values)}
    flags = {name: whole(flag & is_known) for name, flag in odd.items() if (flag & is_known).any()}
    return Values(exponent, {"": Weights(mantissas, np.where(is_any, units - exponent, 0)), **flags})


# --- totals ---------------------------------------------------------------------------------------


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
        """The double nearest to this divided by a number."""
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
class Totals:
    """The number of some matches, and for every measure a tally, an `Amount` or a value."""

    count: int
    found: tuple[Any, ...]


def together(left: Totals, right: Totals, kinds: tuple[str, ...]) -> Totals:
    """The totals of both; `kinds` has the kind of each measure."""
    found = tuple(_both(kind, one, other) for kind, one, other in zip(kinds, left.found, right.found, strict=True))
    return Totals(left.count + right.count, found)


def _both(kind: str, one: Any, other: Any) -> Any:
    if kind in ("sum", "tally"):
        return one + other
    if one is None or other is None:
        return other if one is None else one
    # NaN is above every number (R39), but not in Python's own order.
    return (min if kind == "min" else max)(one, other, key=lambda value: (value != value, value))  # noqa: PLR0124


def nothing(kinds: tuple[str, ...]) -> Totals:
    """The totals of no match."""
    return Totals(0, tuple({"sum": Amount(), "tally": 0}.get(kind) for kind in kinds))


# --- aggregates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """The value of an aggregate."""

    function: str
    measures: tuple[int, ...]  # the measures it is made of; none for COUNT(*)
    is_whole: bool
    as_digits: bool = False  # whether the query requests it as text

    @property
    def is_integer(self) -> bool:
        """Whether the value is an integer."""
        return self.function == "count" or (self.is_whole and self.function != "avg")

    def of(self, totals: Totals) -> Any:
        """The value; refuses an integer beyond 64 bits that is not requested as text."""
        found = [totals.found[number] for number in self.measures]
        value: Any = totals.count if not found else found[0]
        if isinstance(value, Amount):
            value = self._of_amount(value, *found[1:])
        if not self.is_integer:
            return value
        if self.as_digits:
            return None if value is None else digits(value)
        if value is not None and not -LARGEST - 1 <= value <= LARGEST:
            raise too_large(self.function)
        return value

    def _of_amount(self, value: Amount, count: int = 1) -> float | int | None:
        if self.function == "avg":
            return value.over(count) if count else None
        return value.number if self.is_whole else value.over(1)


def too_large(function: str) -> NumberTooLargeError:
    """An integer over all matches does not fit."""
    name = function.upper()
    return NumberTooLargeError(
        f"{name} over all matches is beyond 64 bits.",
        hint=f"`DIGITS({name}({'*' if name == 'COUNT' else 'b.x'}))` gives all of its digits as text.",
    )


def digits(value: int) -> str:
    """A whole number as decimal text, however long."""
    return str(Decimal(value))  # Python refuses to write an `int` of more than 4,300 digits
