"""SQL's values as Python values: order, arithmetic and functions, where None is NULL (R39, D14, D15).

Time stamps are aware `datetime`s, intervals `timedelta`s; beside a number an interval counts microseconds, beside a
time stamp a day is its first instant in UTC. NaN equals itself and is above every number.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext
from functools import reduce
from typing import Any

from tocsin import errors
from tocsin.expressions import numeric
from tocsin.expressions.numeric import GREATEST, LEAST

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
EXACT = Context(prec=400)  # no product of decimals, and no double, has more digits


def zoned(value: Any) -> Any:
    """A value with its time zone: a time stamp without one is UTC."""
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) and value.tzinfo is None else value


def within_64_bits(value: Any) -> Any:
    """A value; NULL for an integer that 64 bits cannot hold."""
    return None if isinstance(value, int) and not LEAST <= value <= GREATEST else value


def _first_instant(value: Any) -> Any:
    is_day = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
    return dt.datetime.combine(value, dt.time(), dt.UTC) if is_day else value


def microseconds(value: dt.date | dt.timedelta) -> int:
    """A time stamp, the first instant of a day, or a length of time, in microseconds."""
    return (value if isinstance(value, dt.timedelta) else zoned(_first_instant(value)) - EPOCH) // MICROSECOND


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values that are not NULL, in a common domain."""
    if type(left) is type(right):
        return left, right
    if isinstance(left, dt.date) and isinstance(right, dt.date):
        return _first_instant(left), _first_instant(right)
    if isinstance(left, dt.timedelta) and _is_number(right):
        return _alike(left // MICROSECOND, right)
    if isinstance(right, dt.timedelta) and _is_number(left):
        return _alike(left, right // MICROSECOND)
    if isinstance(left, float) and _is_number(right):
        return left, float(right)
    if isinstance(right, float) and _is_number(left):
        return float(left), right
    return left, right


# --- order ----------------------------------------------------------------------------------------


def is_less(left: Any, right: Any) -> bool:
    """Whether one value that is not NULL comes before another."""
    left, right = _alike(left, right)
    if isinstance(left, float) and isinstance(right, float):
        return numeric.less_double(left, right)
    try:
        return bool(left < right)
    except TypeError:
        raise errors.TypeMismatchError(
            f"{errors.shown(left)} and {errors.shown(right)} cannot be compared.",
            hint="rows of one attribute must hold values of one type.",
        ) from None


def is_equal(left: Any, right: Any) -> bool:
    """Whether two values that are not NULL are the same."""
    return not is_less(left, right) and not is_less(right, left)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": is_equal,
    "!=": lambda left, right: not is_equal(left, right),
    "<": is_less,
    "<=": lambda left, right: not is_less(right, left),
    ">": lambda left, right: is_less(right, left),
    ">=": lambda left, right: not is_less(left, right),
}


def largest(values: Sequence[Any]) -> Any:
    """The largest of values that are not NULL; the first of equal ones."""
    return reduce(lambda best, value: value if is_less(best, value) else best, values)


def smallest(values: Sequence[Any]) -> Any:
    """The smallest of values that are not NULL; the first of equal ones."""
    return reduce(lambda best, value: value if is_less(value, best) else best, values)


# --- arithmetic -----------------------------------------------------------------------------------


def _remainder(left: Any, right: Any) -> Any:
    left, right = _alike(left, right)
    if right == 0:
        return None
    if isinstance(left, float):
        return numeric.remainder_doubles(left, float(right))
    size = abs(left) % abs(right)
    return -size if left < 0 else size


def _quotient(left: Any, right: Any) -> Any:
    if not right:
        return None
    if isinstance(left, dt.timedelta):
        return left / (float(right) if isinstance(right, Decimal) else right)
    return float(left) / float(right)


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, Decimal) and isinstance(right, float | dt.timedelta):
        left = float(left)
    elif isinstance(right, Decimal) and isinstance(left, float | dt.timedelta):
        right = float(right)
    return left * right


def _moved(step: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`+` and `-`."""

    def move(left: Any, right: Any) -> Any:
        if isinstance(left, dt.timedelta) and isinstance(right, dt.date):
            return step(left, _first_instant(right))
        if isinstance(left, dt.date) and isinstance(right, dt.timedelta):
            return step(_first_instant(left), right)
        return step(*_alike(left, right))

    return move


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": _moved(operator.add),
    "-": _moved(operator.sub),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "||": lambda left, right: f"{left}{right}",
}


def arithmetic(op: str) -> Callable[[Any, Any], Any]:
    """An operator on values that are not NULL; NULL by zero, and for what is beyond the integers and instants."""
    compute = ARITHMETIC[op]

    def guarded(left: Any, right: Any) -> Any:
        try:
            if isinstance(left, Decimal) or isinstance(right, Decimal):
                with localcontext(EXACT):
                    return compute(left, right)
            return within_64_bits(compute(left, right))
        except OverflowError:  # an interval or an instant beyond those there are
            return None

    return guarded


def opposite(value: Any) -> Any:
    """`-x` of a value that is not NULL."""
    return value.copy_negate() if isinstance(value, Decimal) else within_64_bits(-value)


# --- functions of values that are not NULL --------------------------------------------------------


def _rounded(value: Any, digits: int = 0) -> Any:
    """Half away from zero; a double by its shortest decimal text."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    with localcontext(EXACT):
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if -exact.as_tuple().exponent <= digits:  # type: ignore[operator] # only NaN and the infinities have a letter
            return value
        places = Decimal((0, (1,), -digits))
        nearest = (exact / places).to_integral_value(ROUND_HALF_UP) * places
        return type(value)(nearest)


def _whole(rounding: str, of_double: Callable[[float], int]) -> Callable[[Any], int | None]:
    """FLOOR and CEIL; NULL of NaN and the infinities."""

    def whole(value: Any) -> int | None:
        if isinstance(value, float):
            return of_double(value) if numeric.fits_integer(value) else None
        return int(value.to_integral_value(rounding)) if isinstance(value, Decimal) else int(value)

    return whole


def _part(text: str, first: int, length: int | None = None) -> str:
    """A part of a text by place from 1, or from the end when it is negative; what lies outside is left out."""
    begin = first - 1 if first > 0 else first + len(text) if first < 0 else 0
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda value: value.copy_abs() if isinstance(value, Decimal) else abs(value),
    "ceil": _whole(ROUND_CEILING, numeric.ceil_integer),
    "floor": _whole(ROUND_FLOOR, numeric.floor_integer),
    "round": _rounded,
    "sqrt": lambda value: numeric.square_root(float(value)),
    "power": lambda base, exponent: numeric.power(float(base), float(exponent)),
    "mod": _remainder,
    "sign": lambda value: numeric.sign(float(value)),
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "digits": str,
    "trim": lambda text: text.strip(" "),
    "concat": lambda *texts: "".join(texts),
    "substring": _part,
}


def like(pattern: str) -> Callable[[str], bool]:
    r"""Whether a text is like a pattern.

    >>> like(r"50\%_")("50%!"), like("p%")("a pin")
    (True, False)
    """
    pieces = re.findall(r"\\(.)|\\\Z|(.)", pattern, re.DOTALL)
    between = [""]  # what stands before, between and behind the `%`
    for quoted, plain in pieces:
        if plain == "%":
            between.append("")
        else:
            between[-1] += "." if plain == "_" else re.escape(quoted or plain)
    first, *middle, last = between if len(between) > 1 else (between[0], "")
    # The first place of each piece is as good as any later one, so that nothing is tried twice.
    wildcards = "".join(f"(?>.*?{piece})" for piece in middle) + ".*" * (len(between) > 1)
    matches = re.compile(first + wildcards + last, re.DOTALL).fullmatch
    return lambda text: matches(text) is not None
