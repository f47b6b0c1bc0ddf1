"""The built-in aggregates as monoids: what a register holds while a match grows, and what it becomes at the end (R18).

code      theory (003 §4)
----      ---------------
zero      the identity, the fold of the empty bag
lift      f′, one value as an element
combine   ⊕; earlier events on the left, so that `first`, `last` and `collect` need not commute
finish    g, computed once per derived event

One NULL spoils an element (`a ⊕ NULL = NULL`), but for those that `TAKE_NULLS`; the element is then None. Elements are
immutable and can be hashed, for two runs that hold equal ones go on as one. Sums of doubles are exact until they are
finished: the result does not depend on the order of the additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

from tocsin.errors import NumberTooLargeError
from tocsin.expressions.objects import is_equal, is_less
from tocsin.language.user_defined import Monoid

# These are given NULLs like any other value.
TAKE_NULLS = frozenset({"count", "first", "last", "count distinct"})


def _pairs(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(one + other for one, other in zip(left, right, strict=True))


# --- sums: (whole numbers and decimals, doubles exactly, infinities and NaN, how many doubles, how many) ----------


def _lift_sum(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, float):
        return (value, Fraction(0), 0.0, 0, 1)
    if math.isfinite(value):
        return (0, Fraction(value), 0.0, 1, 1)
    return (0, Fraction(0), value, 1, 1)


def _total(element: tuple[Any, ...]) -> Any:
    whole, doubles, special, number_of_doubles, _ = element
    if not number_of_doubles:
        return whole
    if special != 0:
        return special
    try:
        return float(Fraction(whole) + doubles)
    except OverflowError:
        return math.copysign(math.inf, doubles)


def _whole(function: str, total: Any) -> Any:
    """The value of an aggregate, which 64 bits must hold when it is an integer (D24)."""
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise NumberTooLargeError.of_match(function)
    return total


def _average(element: tuple[Any, ...]) -> float | None:
    return float(_total(element)) / element[-1] if element[-1] else None


NO_SUM = (0, Fraction(0), 0.0, 0, 0)


# --- extremes: nothing yet, or one value ----------------------------------------------------------


def _extreme(is_better: Callable[[Any, Any], bool]) -> Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]:
    def combine(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        if not left or not right:
            return left or right
        return right if is_better(right[0], left[0]) else left

    return combine


_least, _greatest = _extreme(is_less), _extreme(lambda one, other: is_less(other, one))


def _only(element: tuple[Any, ...]) -> Any:
    return element[0] if element else None


def _lift_range(value: Any) -> tuple[Any, ...]:
    return ((value,), (value,))


def _combine_range(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    return (_least(left[0], right[0]), _greatest(left[1], right[1]))


def _range(element: tuple[Any, ...]) -> Any:
    low, high = element
    return _whole("range", high[0] - low[0]) if low else None


# --- the spread: all values, since the differences are those from their mean as a double -------------------------


def _stddev(values: tuple[Any, ...]) -> float | None:
    """From the exact sum of the squared differences, so that every engine has the same digits."""
    if not values:
        return None
    mean = _average(_summed(values))
    assert mean is not None
    squares = _total(_summed((float(value) - mean) * (float(value) - mean) for value in values))
    return math.sqrt(squares / len(values))


def _summed(values: Iterable[Any]) -> tuple[Any, ...]:
    return reduce(_pairs, map(_lift_sum, values), NO_SUM)


def _one(value: Any) -> tuple[Any, ...]:
    return (value,)


BUILT_IN: Mapping[str, Monoid] = {
    "count": Monoid(zero=0, lift=lambda _: 1, combine=lambda left, right: left + right),
    "sum": Monoid(zero=NO_SUM, lift=_lift_sum, combine=_pairs, finish=lambda element: _whole("sum", _total(element))),
    "avg": Monoid(zero=NO_SUM, lift=_lift_sum, combine=_pairs, finish=_average),
    "min": Monoid(zero=(), lift=_one, combine=_least, finish=_only),
    "max": Monoid(zero=(), lift=_one, combine=_greatest, finish=_only),
    "range": Monoid(zero=((), ()), lift=_lift_range, combine=_combine_range, finish=_range),
    "stddev": Monoid(zero=(), lift=_one, combine=lambda left, right: left + right, finish=_stddev),
    "first": Monoid(zero=(), lift=_one, combine=lambda left, right: left or right, finish=_only),
    "last": Monoid(zero=(), lift=_one, combine=lambda left, right: right or left, finish=_only),
    "collect": Monoid(zero=(), lift=_one, combine=lambda left, right: left + right),
}


def distinct(monoid: Monoid) -> Monoid:
    """An aggregate of the different values: they are collected, and folded in the end; NULL is one of them.

    Examples
    --------
    >>> distinct(BUILT_IN["sum"]).fold([1, 2, 1.0, 2])
    3
    """

    def combine(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
        return left + tuple(value for value in right if not any(_is_same(value, other) for other in left))

    return Monoid(zero=(), lift=_one, combine=combine, finish=monoid.fold)


def _is_same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else is_equal(one, other)
