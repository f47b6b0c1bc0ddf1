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
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tocsin.expressions import objects
from tocsin.language.user_defined import Monoid

Values = tuple[Any, ...]
# These are given NULLs like any other value.
TAKE_NULLS = frozenset({"count", "first", "last", "count distinct"})


def _pairs(left: Values, right: Values) -> Values:
    return tuple(one + other for one, other in zip(left, right, strict=True))


# --- sums: (whole numbers and decimals, doubles exactly, infinities and NaN, how many doubles, how many) ----------


def _lift_sum(value: Any) -> Values:
    if not isinstance(value, float):
        return (value, Fraction(0), 0.0, 0, 1)
    if math.isfinite(value):
        return (0, Fraction(value), 0.0, 1, 1)
    return (0, Fraction(0), value, 1, 1)


def _total(element: Values) -> Any:
    whole, doubles, special, number_of_doubles, _ = element
    if not number_of_doubles:
        return whole
    if special != 0:
        return special
    try:
        return float(Fraction(whole) + doubles)
    except OverflowError:
        return math.copysign(math.inf, doubles)


def _average(element: Values) -> float | None:
    return float(_total(element)) / element[-1] if element[-1] else None


NO_SUM = (0, Fraction(0), 0.0, 0, 0)


# --- extremes: nothing yet, or one value ----------------------------------------------------------


def _least(left: Values, right: Values) -> Values:
    return (objects.smallest(left + right),) if left or right else ()


def _greatest(left: Values, right: Values) -> Values:
    return (objects.largest(left + right),) if left or right else ()


def _only(element: Values) -> Any:
    return element[0] if element else None


def _lift_range(value: Any) -> Values:
    return ((value,), (value,))


def _combine_range(left: Values, right: Values) -> Values:
    return (_least(left[0], right[0]), _greatest(left[1], right[1]))


def _range(element: Values) -> Any:
    low, high = element
    return objects.fitting("range", high[0] - low[0]) if low else None


def _one(value: Any) -> Values:
    return (value,)


BUILT_IN: Mapping[str, Monoid] = {
    "count": Monoid(zero=0, lift=lambda _: 1, combine=lambda left, right: left + right),
    "sum": Monoid(
        zero=NO_SUM, lift=_lift_sum, combine=_pairs, finish=lambda element: objects.fitting("sum", _total(element))
    ),
    "avg": Monoid(zero=NO_SUM, lift=_lift_sum, combine=_pairs, finish=_average),
    "min": Monoid(zero=(), lift=_one, combine=_least, finish=_only),
    "max": Monoid(zero=(), lift=_one, combine=_greatest, finish=_only),
    "range": Monoid(zero=((), ()), lift=_lift_range, combine=_combine_range, finish=_range),
    # All values: the differences are those from their mean as a double.
    "stddev": Monoid(
        zero=(),
        lift=_one,
        combine=lambda left, right: left + right,
        finish=lambda values: objects.fold("stddev", values),
    ),
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

    def combine(left: Values, right: Values) -> Values:
        return left + tuple(value for value in right if not any(_is_same(value, other) for other in left))

    return Monoid(zero=(), lift=_one, combine=combine, finish=monoid.fold)


def _is_same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else objects.is_equal(one, other)
