"""Scalars of the reference: three-valued logic, arithmetic and functions on plain Python values.

None is NULL. A time stamp is an aware `datetime` (a naive one is UTC), an interval a `timedelta`; beside an integer an
interval counts microseconds, or the unit that integer times have (R42). NaN equals itself and is above every number, as
in Spark (R39 and `docs/reference`).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from tocsin import errors

MICROSECOND = dt.timedelta(microseconds=1)
PER_MICROSECOND = {"ns": Fraction(1000), "us": Fraction(1), "ms": Fraction(1, 1000), "s": Fraction(1, 1_000_000)}
TICKS: ContextVar[Fraction] = ContextVar("TICKS", default=PER_MICROSECOND["us"])
EXACT = Context(prec=400)  # enough for every double and for products of decimals


def microseconds(interval: dt.timedelta) -> int:
    """The length of an interval, exactly."""
    return interval // MICROSECOND


def ticks(us: int) -> int | Fraction:
    """A length of time as integer times count it (R42), exactly."""
    found = us * TICKS.get()
    return found.numerator if found.denominator == 1 else found


@contextmanager
def counting(unit: str | None) -> Iterator[None]:
    """Integer times count this unit."""
    token = TICKS.set(PER_MICROSECOND[unit or "us"])
    try:
        yield
    finally:
        TICKS.reset(token)


def normal(value: Any) -> Any:
    """A value as the interpreter wants it: zoned time stamps, days as their first instant when compared with one."""
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value


def _together(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values in a common domain."""
    left, right = normal(left), normal(right)
    if isinstance(left, dt.timedelta) and _is_number(right):
        left = ticks(microseconds(left))
    elif isinstance(right, dt.timedelta) and _is_number(left):
        right = ticks(microseconds(right))
    elif isinstance(left, dt.datetime) != isinstance(right, dt.datetime):
        left, right = _instant(left), _instant(right)
    elif isinstance(left, float) and _is_number(right):
        right = float(right)
    elif isinstance(right, float) and _is_number(left):
        left = float(left)
    return left, right


def _instant(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def order(left: Any, right: Any) -> int | None:
    """-1, 0 or 1; None when either side is NULL."""
    if left is None or right is None:
        return None
    left, right = _together(left, right)
    left_nan = isinstance(left, float) and math.isnan(left)
    right_nan = isinstance(right, float) and math.isnan(right)
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    try:
        return int(left > right) - int(left < right)
    except TypeError:
        raise errors.TypeMismatchError(
            f"{errors.shown(left)} and {errors.shown(right)} cannot be compared.",
            hint="rows of one attribute must hold values of one type.",
        ) from None


COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}


def compare(op: str, left: Any, right: Any) -> bool | None:
    """A comparison, UNKNOWN with NULL.

    >>> compare("<", 1, 2), compare("=", None, 1), compare("=", float("nan"), float("nan"))
    (True, None, True)
    """
    sign = order(left, right)
    return None if sign is None else COMPARISONS[op](sign)


def extreme(values: list[Any], sign: int) -> Any:
    """The largest of values that are not NULL, or with sign -1 the smallest; the first of equal ones."""
    best = values[0]
    for value in values[1:]:
        if (order(value, best) or 0) * sign > 0:
            best = value
    return best


def all_true(values: list[bool | None]) -> bool | None:
    """Three-valued AND."""
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def any_true(values: list[bool | None]) -> bool | None:
    """Three-valued OR."""
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def negate(value: bool | None) -> bool | None:
    """Three-valued NOT."""
    return None if value is None else not value


def fitting(value: Any) -> Any:
    """A value, or NULL when it is an integer beyond 64 bits."""
    return None if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def arithmetic(op: str, left: Any, right: Any) -> Any:
    """`+ - * / % ||`; NULL with NULL, on division by zero and beyond 64 bits.

    >>> arithmetic("/", 1, 0) is None, arithmetic("%", -7, 3), arithmetic("/", 1, 2)
    (True, -1, 0.5)
    >>> arithmetic("*", 2**62, 2) is None
    True
    """
    if left is None or right is None:
        return None
    try:
        with localcontext(EXACT):
            return fitting(_computed(op, left, right))
    except OverflowError:  # an interval or an instant beyond what there are
        return None


def _computed(op: str, left: Any, right: Any) -> Any:
    if op == "||":
        return str(left) + str(right)
    if op == "*":
        return _multiply(left, right)
    if op == "/":
        return _divide(left, right)
    left, right = _together(left, right)
    if op == "%":
        return _remainder(left, right)
    if isinstance(left, dt.date) and isinstance(right, dt.timedelta):
        left = _instant(left)
    return left + right if op == "+" else left - right


def _multiply(left: Any, right: Any) -> Any:
    kinds = {type(left), type(right)}
    if Decimal in kinds and kinds & {float, dt.timedelta}:
        left = float(left) if isinstance(left, Decimal) else left
        right = float(right) if isinstance(right, Decimal) else right
    return left * right


def _divide(left: Any, right: Any) -> Any:
    """A double, or an interval when one is divided by a number; NULL by zero."""
    if not right:
        return None
    if isinstance(left, dt.timedelta):
        return left / (float(right) if isinstance(right, Decimal) else right)
    return float(left) / float(right)


def _remainder(left: Any, right: Any) -> Any:
    """The remainder with the sign of the dividend."""
    if right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return math.nan if math.isinf(left) or math.isnan(left) else math.fmod(left, right)
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def like(text: str | None, pattern: str) -> bool | None:
    r"""SQL's LIKE: `%` any text, `_` one character, a backslash makes the next character ordinary.

    >>> like("fraud", "fr%"), like("a%b", r"a\%_"), like(None, "%")
    (True, True, None)
    """
    if text is None:
        return None
    places, escaped = {0}, False  # the places of the text that the pattern so far may lead to
    for character in pattern:
        if escaped or character not in "\\%_":
            places = {place + 1 for place in places if text[place : place + 1] == character}
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == "_":
            places = {place + 1 for place in places if place < len(text)}
        else:
            places = set(range(min(places, default=len(text) + 1), len(text) + 1))
    return len(text) in places


# --- functions ------------------------------------------------------------------------------------


def _round(value: Any, digits: int = 0) -> Any:
    """Half away from zero, as SQL rounds."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    with localcontext(EXACT):
        exact = Decimal(str(value))
        if digits >= -int(exact.as_tuple().exponent):
            return value  # there is nothing to round
        step = Decimal(1).scaleb(-digits)
        return type(value)((exact / step).quantize(Decimal(1), rounding=ROUND_HALF_UP) * step)


def _whole(towards: Callable[[Any], int]) -> Callable[[Any], int | None]:
    """CEIL and FLOOR: NULL for NaN and the infinities, which no integer is near."""
    return lambda value: None if isinstance(value, float) and not math.isfinite(value) else towards(value)


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Characters from a position counted from 1; a negative position counts from the end, as in Spark."""
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _sign(value: Any) -> float:
    return math.nan if value != value else float((value > 0) - (value < 0))  # noqa: PLR0124 - only NaN differs from itself


def _power(base: Any, exponent: Any) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _sqrt(value: Any) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


# Functions of values that are not NULL; any NULL argument makes the result NULL.
STRICT: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _round,
    "sqrt": _sqrt,
    "power": _power,
    "mod": _remainder,
    "sign": _sign,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "digits": str,
    "trim": lambda text: text.strip(" "),
    "concat": lambda *texts: "".join(texts),
    "substring": _substring,
}


def call(function: str, arguments: list[Any]) -> Any:
    """A scalar function.

    >>> call("coalesce", [None, 2]), call("round", [2.5]), call("greatest", [1, None, 3])
    (2, 3.0, 3)
    """
    present = [value for value in arguments if value is not None]
    if function == "coalesce":
        return present[0] if present else None
    if function == "nullif":
        return None if compare("=", *arguments) else arguments[0]
    if function in ("greatest", "least"):
        return extreme(present, 1 if function == "greatest" else -1) if present else None
    return None if len(present) < len(arguments) else fitting(STRICT[function](*arguments))
