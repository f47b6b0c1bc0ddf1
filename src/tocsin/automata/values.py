"""Scalars on plain Python values: comparison, arithmetic and functions, NULL as None.

Not three-valued logic, which `evaluate` adds. Time stamps are aware datetimes, intervals are timedeltas and count
microseconds beside integers; NaN equals itself and is above every number (R39).
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from functools import lru_cache
from typing import Any

from tocsin import errors

MICROSECOND = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
WIDE = Context(prec=400)  # no product of two decimals or doubles is rounded


def field(row: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """An attribute of an event, or NULL when it has none of that name; a naive time stamp is UTC."""
    found: Any = row
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found.replace(tzinfo=dt.UTC) if isinstance(found, dt.datetime) and found.tzinfo is None else found


def identity(value: Any) -> Any:
    """Equal for values that are the same in type too, and hashable: how matches are compared (R24)."""
    match value:
        case list() | tuple():
            return ("list", *map(identity, value))
        case Mapping():
            return ("struct", *sorted((name, identity(inner)) for name, inner in value.items()))
        case float():
            return ("float", repr(value + 0.0))  # −0.0 is 0.0
        case _:
            try:
                hash(value)
            except TypeError:  # an element of a user's monoid: the same only as itself
                return ("object", id(value))
            return (type(value).__name__, value)


def text(value: Any) -> tuple[str, str]:
    """A value as canonical text (R16), and its type: what orders values that are not identical.

    Examples
    --------
    >>> sorted([2.5, None, -0.0, 0.5], key=text)
    [-0.0, 0.5, 2.5, None]
    """
    written = json.dumps(_zeros_alike(value), separators=(",", ":"), ensure_ascii=False, default=_as_json)
    return written, type(value).__name__


def _zeros_alike(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_zeros_alike(one) for one in value]
    return value + 0.0 if isinstance(value, float) else value


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime():
            return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH) // MICROSECOND
        case dt.timedelta():
            return value // MICROSECOND
        case bytes():
            return value.hex()
        case Mapping():
            return dict(sorted(value.items()))
        case _:
            return str(value)


def fitting(value: Any) -> Any:
    """A value, or NULL when it is an integer beyond 64 bits."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


# --- order ----------------------------------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _midnight(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values in one domain: microseconds, instants, or doubles."""
    if isinstance(left, dt.timedelta) and _is_number(right):
        return left // MICROSECOND, right
    if isinstance(right, dt.timedelta) and _is_number(left):
        return left, right // MICROSECOND
    if isinstance(left, dt.datetime) != isinstance(right, dt.datetime):
        return _midnight(left), _midnight(right)
    if isinstance(left, float) != isinstance(right, float) and _is_number(left) and _is_number(right):
        return float(left), float(right)
    return left, right


def order(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; NULL when either side is.

    Examples
    --------
    >>> order(1, 2.0), order("b", "a"), order(None, 1), order(float("nan"), 9)
    (-1, 1, None, 1)
    """
    if left is None or right is None:
        return None
    left, right = _alike(left, right)
    nans = [isinstance(value, float) and math.isnan(value) for value in (left, right)]
    if any(nans):
        return nans[0] - nans[1]
    try:
        return int(left > right) - int(left < right)
    except TypeError:
        raise errors.TypeMismatchError(f"{left!r} and {right!r} cannot be compared.") from None


COMPARED: Mapping[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def compare(op: str, left: Any, right: Any) -> bool | None:
    """A comparison, UNKNOWN with NULL."""
    sign = order(left, right)
    return None if sign is None else COMPARED[op](sign)


# --- arithmetic -----------------------------------------------------------------------------------


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """`+ - * / % ||`; NULL with NULL, by zero, and beyond what 64 bits or the calendar hold."""
    if left is None or right is None:
        return None
    try:
        with localcontext(WIDE):
            return fitting(OPERATIONS[op](left, right))
    except OverflowError:
        return None


def _add(left: Any, right: Any, sign: int = 1) -> Any:
    left, right = _alike(left, right)
    if isinstance(right, dt.timedelta):
        left = _midnight(left)
    return left + right if sign > 0 else left - right


def _multiply(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) and isinstance(right, float | dt.timedelta):
        left = float(left)
    elif isinstance(right, Decimal) and isinstance(left, float | dt.timedelta):
        right = float(right)
    return left * right


def _divide(left: Any, right: Any) -> Any:
    if not right:
        return None
    if isinstance(left, dt.timedelta):
        return left / (float(right) if isinstance(right, Decimal) else right)
    return float(left) / float(right)


def _remainder(left: Any, right: Any) -> Any:
    """With the sign of the dividend, as in SQL."""
    left, right = _alike(left, right)
    if right == 0:
        return None
    if isinstance(left, float):
        return math.fmod(left, right) if math.isfinite(left) else math.nan
    size = abs(left) % abs(right)
    return -size if left < 0 else size


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": lambda left, right: _add(left, right, -1),
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "||": lambda left, right: f"{left}{right}",
}


# --- functions ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _like_pattern(pattern: str) -> re.Pattern[str]:
    wild = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.compile("".join(wild.get(p) or re.escape(p[-1] if len(p) > 1 else p) for p in pieces), re.DOTALL)


def like(text: Any, pattern: str) -> bool | None:
    r"""SQL's LIKE.

    Examples
    --------
    >>> like("fraud", "fr%"), like("a%b", r"a\%_"), like(None, "%")
    (True, True, None)
    """
    return None if text is None else _like_pattern(pattern).fullmatch(text) is not None


def _round(value: Any, digits: int = 0) -> Any:
    """Half away from zero."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    with localcontext(WIDE):
        exact, step = Decimal(str(value)), Decimal(1).scaleb(-digits)
        if digits >= -int(exact.as_tuple().exponent):
            return value
        return type(value)((exact / step).quantize(Decimal(1), rounding=ROUND_HALF_UP) * step)


def _whole(towards: Callable[[Any], int]) -> Callable[[Any], int | None]:
    return lambda value: None if isinstance(value, float) and not math.isfinite(value) else towards(value)


def _power(base: Any, exponent: Any) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _substring(text: str, start: int, length: int | None = None) -> str:
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    return text[max(begin, 0) : len(text) if length is None else max(begin + length, 0)]


# Of arguments that are not NULL.
STRICT: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _round,
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "power": _power,
    "mod": _remainder,
    "sign": lambda value: math.nan if math.isnan(value) else float((value > 0) - (value < 0)),
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "digits": str,
    "trim": lambda text: text.strip(" "),
    "concat": lambda *texts: "".join(texts),
    "substring": _substring,
}


def call(function: str, arguments: Sequence[Any]) -> Any:
    """A scalar function; all but four are NULL when an argument is."""
    known = [value for value in arguments if value is not None]
    match function:
        case "coalesce":
            return known[0] if known else None
        case "nullif":
            return None if compare("=", *arguments) else arguments[0]
        case "greatest" | "least":
            best = known[0] if known else None
            for value in known:
                if (order(value, best) or 0) * (1 if function == "greatest" else -1) > 0:
                    best = value
            return best
        case _:
            return None if len(known) < len(arguments) else fitting(STRICT[function](*arguments))
