"""The built-in aggregates of Python values (R18): of a whole bag (`fold`), and value by value (`BUILT_IN`).

code      theory (003 §4)
----      ---------------
zero      the identity, the fold of the empty bag
lift      f′, one value as an element
combine   ⊕; earlier events on the left, so that `first`, `last` and `collect` need not commute
finish    g, computed once per derived event

One NULL spoils an element (`a ⊕ NULL = NULL`), but for those that `TAKE_NULLS`; the element is then None. Elements are
immutable and can be hashed, for two runs that hold equal ones go on as one: an element keeps the values that can still
decide the result. Sums of doubles are exact until they are finished, whatever the order of the additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import localcontext
from fractions import Fraction
from operator import itemgetter
from typing import Any

from tocsin import errors
from tocsin.expressions.numeric import GREATEST, LEAST
from tocsin.expressions.objects import ARITHMETIC, EXACT, is_equal, largest, smallest
from tocsin.language.user_defined import Monoid

Values = tuple[Any, ...]
# These are given NULLs like any other value.
TAKE_NULLS = frozenset({"count", "first", "last", "count distinct"})


# --- of a bag -------------------------------------------------------------------------------------


def _total(values: Sequence[Any]) -> Any:
    if any(isinstance(value, float) for value in values):
        try:
            return math.fsum(values)
        except (OverflowError, ValueError):  # beyond the doubles, or infinities that cancel
            return sum(map(float, values))
    with localcontext(EXACT):
        return sum(values, type(values[0])(0)) if values else 0


def _fitting(function: str, total: Any) -> Any:
    """The value of an aggregate, which 64 bits must hold when it is an integer (D24)."""
    if isinstance(total, int) and not LEAST <= total <= GREATEST:
        raise errors.NumberTooLargeError.of_match(function)
    return total


def _deviation(values: Sequence[Any]) -> float:
    mean = float(_total(values)) / len(values)
    squares = [(float(value) - mean) * (float(value) - mean) for value in values]
    return math.sqrt(_total(squares) / len(values))


OF_KNOWN: dict[str, Callable[[Sequence[Any]], Any]] = {
    "min": smallest,
    "max": largest,
    "range": lambda values: _fitting("range", ARITHMETIC["-"](largest(values), smallest(values))),
    "avg": lambda values: float(_total(values)) / len(values),
    "stddev": _deviation,
}


def fold(function: str | Monoid, values: Sequence[Any], *, distinct: bool = False) -> Any:
    """An aggregate of the values of a bag in order of time (R18).

    >>> fold("sum", [1, None, 2]), fold("max", [None]), fold("last", [1, None])
    (3, None, None)
    """
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if distinct:
        known = list(_joined_distinct((), known))
    if isinstance(function, Monoid):
        return function.fold(known)
    match function:
        case "count":
            return len(known)
        case "collect":
            return known
        case "sum":
            return _fitting("sum", _total(known))
        case _:
            return OF_KNOWN[function](known) if known else None


def _joined_distinct(left: Values, right: Sequence[Any]) -> Values:
    """Different values and those of others that are none of them; NULL is a value too."""
    for value in right:
        if not any(_is_same(value, other) for other in left):
            left = (*left, value)
    return left


def _is_same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else is_equal(one, other)


# --- value by value -------------------------------------------------------------------------------

# Of a sum: whole numbers and decimals, doubles exactly, infinities and NaN, how many doubles, how many values.
NO_SUM = (0, Fraction(0), 0.0, 0, 0)


def _lift_sum(value: Any) -> Values:
    if not isinstance(value, float):
        return (value, Fraction(0), 0.0, 0, 1)
    return (0, Fraction(value), 0.0, 1, 1) if math.isfinite(value) else (0, Fraction(0), value, 1, 1)


def _sum(finish: Callable[[Any, int], Any]) -> Monoid:
    """A sum; `finish` is given the total and the number of values."""

    def total(element: Values) -> Any:
        whole, doubles, special, number_of_doubles, number = element
        if number_of_doubles and special == 0:
            try:
                whole = float(Fraction(whole) + doubles)
            except OverflowError:
                whole = math.copysign(math.inf, doubles)
        return finish(special if special != 0 else whole, number)

    def combine(left: Values, right: Values) -> Values:
        return tuple(one + other for one, other in zip(left, right, strict=True))

    return Monoid(zero=NO_SUM, lift=_lift_sum, combine=combine, finish=total)


def _of_values(function: str, keep: Callable[[Values], Values] = tuple) -> Monoid:
    """An aggregate whose element is those of the values that can still decide it."""

    def combine(left: Values, right: Values) -> Values:
        return keep(left + right) if left or right else ()

    return Monoid(
        zero=(), lift=lambda value: keep((value,)), combine=combine, finish=lambda values: fold(function, values)
    )


BUILT_IN: Mapping[str, Monoid] = {
    "count": Monoid(zero=0, lift=lambda _: 1, combine=lambda left, right: left + right),
    "sum": _sum(lambda total, _: _fitting("sum", total)),
    "avg": _sum(lambda total, number: float(total) / number if number else None),
    "min": _of_values("min", lambda values: (smallest(values),)),
    "max": _of_values("max", lambda values: (largest(values),)),
    "range": _of_values("range", lambda values: (smallest(values), largest(values))),
    "stddev": _of_values("stddev"),
    "first": _of_values("first", itemgetter(slice(0, 1))),
    "last": _of_values("last", itemgetter(slice(-1, None))),
    "collect": Monoid(zero=(), lift=lambda value: (value,), combine=lambda left, right: left + right),
}


def distinct(monoid: Monoid) -> Monoid:
    """An aggregate of the different values: they are collected, and folded in the end.

    >>> distinct(BUILT_IN["sum"]).fold([1, 2, 1.0, 2])
    3
    """
    return Monoid(zero=(), lift=lambda value: (value,), combine=_joined_distinct, finish=monoid.fold)
