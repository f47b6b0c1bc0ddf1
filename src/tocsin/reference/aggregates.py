"""Aggregates of a bag of values (R18): NULLs are ignored as in SQL, or, in ACEL, spoil the result."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from tocsin.errors import NumberTooLargeError
from tocsin.language.user_defined import Monoid
from tocsin.reference.values import extreme, order


def fold(
    function: str | Monoid,
    values: list[Any],
    *,
    distinct: bool = False,
    nulls_spoil: bool = False,
    unbounded: bool = False,
) -> Any:
    """Aggregate the values of a bag, given in the order of their events; `unbounded` keeps an integer beyond 64 bits.

    >>> fold("sum", [1, None, 2]), fold("sum", []), fold("min", []), fold("avg", [1, 2])
    (3, 0, None, 1.5)
    >>> fold("sum", [1, None], nulls_spoil=True) is None
    True
    """
    if function in ("first", "last"):
        return values[0 if function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if function == "count":
        counted = values if nulls_spoil else known
        # Where NULLs are counted, they are one value among the different ones.
        return len(_distinct(known)) + (len(counted) > len(known)) if distinct else len(counted)
    if nulls_spoil and len(known) < len(values):
        return None
    if distinct:
        known = _distinct(known)
    if isinstance(function, Monoid):
        return function.fold(known)
    if function == "collect":
        return known
    if function == "sum":
        return _total(known) if unbounded else in_64_bits("sum", _total(known))
    if not known:
        return None
    match function:
        case "min":
            return extreme(known, -1)
        case "max":
            return extreme(known, 1)
        case "range":
            apart = extreme(known, 1) - extreme(known, -1)
            return apart if unbounded else in_64_bits("range", apart)
        case "avg":
            return float(_total(known)) / len(known)
        case "stddev":
            mean = float(_total(known)) / len(known)
            return math.sqrt(_total([(float(value) - mean) * (float(value) - mean) for value in known]) / len(known))
        case _:
            raise KeyError(function)


def in_64_bits(function: str, total: Any) -> Any:
    """The value of an aggregate within a match that is used: one that 64 bits cannot hold is an error (D24)."""
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise NumberTooLargeError.of_match(function)
    return total


def _total(values: list[Any]) -> Any:
    if any(isinstance(value, float) for value in values):
        try:
            return math.fsum(values)
        except (OverflowError, ValueError):  # beyond the doubles, or infinities that cancel: as IEEE has it
            return sum(map(float, values))
    return sum(values, Decimal(0) if values and isinstance(values[0], Decimal) else 0)


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if not any(order(value, other) == 0 for other in kept):
            kept.append(value)
    return kept
