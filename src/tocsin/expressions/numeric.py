"""The functions that generated conditions call: SQL's arithmetic and order on 64-bit integers and doubles.

Each is a plain Python function that Numba can compile as it is, and calls none of the others. All but `whole_sum` and
`whole_range` are total: where the result is NULL, which another function decides, they return some number. None wraps
around, so that NumPy scalars raise no warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

LEAST = -(2**63)
GREATEST = 2**63 - 1
ABOVE = 2.0**63
HALF = 2**31  # the product of two integers below it fits
INFINITY = math.inf
NAN = math.nan

# --- integers beyond 64 bits are NULL (D14) -------------------------------------------------------


def add_overflows(a: int, b: int) -> bool:
    """Whether a + b needs more than 64 bits."""
    return a > GREATEST - b if b > 0 else a < LEAST - b


def subtract_overflows(a: int, b: int) -> bool:
    """Whether a − b needs more than 64 bits."""
    return a < LEAST + b if b > 0 else a > GREATEST + b


def multiply_overflows(a: int, b: int) -> bool:
    """Whether a · b needs more than 64 bits."""
    if -HALF <= a < HALF and -HALF <= b < HALF:
        return False
    if a > 0:
        if b > 0:
            return a > GREATEST // b
        # By a negative number the quotient is positive, so that its floor is the largest factor that fits.
        return b < -1 and a > LEAST // b
    if b > 0:
        return a < -1 and b > LEAST // a
    if a == 0 or b == 0:
        return False
    return LEAST in (a, b) or -a > GREATEST // -b


def wrapped_sum(a: int, b: int) -> int:
    """The sum modulo 2**64, as a signed number."""
    if b > 0 and a > GREATEST - b:
        return (a + LEAST) + (b + LEAST)
    if b < 0 and a < LEAST - b:
        return (a - LEAST) + (b - LEAST)
    return a + b


def carry(a: int, b: int) -> int:
    """How many times 2**64 `wrapped_sum` leaves out: 1, 0 or -1."""
    if b > 0 and a > GREATEST - b:
        return 1
    return -1 if b < 0 and a < LEAST - b else 0


def whole_sum(total: int, carries: int, is_null: bool) -> int:
    """A sum whose carries were counted apart; it fits into 64 bits, or the query stops."""
    if carries != 0 and not is_null:
        raise OverflowError("SUM")
    return total


def whole_range(high: int, low: int, is_null: bool) -> int:
    """The largest less the smallest value; it fits into 64 bits, or the query stops."""
    if is_null:
        return 0
    if high > GREATEST + low if low < 0 else high < LEAST + low:
        raise OverflowError("RANGE")
    return high - low


def remainder_integers(a: int, b: int) -> int:
    """The remainder with the sign of the dividend; 0 by zero."""
    if b in (0, -1):  # the least integer by -1 is a trap in machine code
        return 0
    rest = a % b
    return rest - b if rest != 0 and (rest < 0) != (a < 0) else rest


def round_integer(x: int, step: int) -> int:
    """The nearest multiple of a power of ten, halves away from zero; some other one when it does not fit."""
    rest = x % step
    if x < 0 and rest != 0:
        rest -= step
    towards_zero = x - rest
    if rest >= step // 2:
        return towards_zero + step if towards_zero <= GREATEST - step else towards_zero
    if rest <= -(step // 2):
        return towards_zero - step if towards_zero >= LEAST + step else towards_zero
    return towards_zero


def round_overflows(x: int, step: int) -> bool:
    """Whether the nearest multiple of a power of ten needs more than 64 bits."""
    rest = x % step
    if x < 0 and rest != 0:
        rest -= step
    if rest >= step // 2:
        return x - rest > GREATEST - step
    return rest <= -(step // 2) and x - rest < LEAST + step


# --- doubles: NaN equals itself and is above every number (D14) -----------------------------------


def equal_doubles(a: float, b: float) -> bool:
    """Whether they are equal."""
    return a == b or (a != a and b != b)  # noqa: PLR0124 - only NaN differs from itself


def less_double(a: float, b: float) -> bool:
    """Whether the first is less."""
    return a < b or (a == a and b != b)  # noqa: PLR0124


def at_most_double(a: float, b: float) -> bool:
    """Whether the first is less or equal."""
    return a <= b or b != b  # noqa: PLR0124


def divide(a: float, b: float) -> float:
    """The quotient; 0 by zero."""
    return a / b if b != 0.0 else 0.0


def remainder_doubles(a: float, b: float) -> float:
    """The remainder with the sign of the dividend; 0 by zero."""
    if b == 0.0:
        return 0.0
    if math.isnan(a) or math.isinf(a):
        return NAN
    size = abs(a) % abs(b)  # exact; Numba has no `math.fmod`
    return -size if a < 0.0 else size


def fits_integer(x: float) -> bool:
    """Whether the integers beside a double have 64 bits; not those of NaN and the infinities."""
    return -ABOVE <= x < ABOVE


def floor_integer(x: float) -> int:
    """The greatest integer below or at a double; 0 when there is none."""
    return math.floor(x) if -ABOVE <= x < ABOVE else 0


def ceil_integer(x: float) -> int:
    """The least integer above or at a double; 0 when there is none."""
    return math.ceil(x) if -ABOVE <= x < ABOVE else 0


def nearest_integer(x: float) -> int:
    """The integer nearest to a double, halves to the even one; 0 when there is none."""
    if not -ABOVE <= x < ABOVE:
        return 0
    below = math.floor(x)
    rest = x - float(below)
    return below + 1 if rest > 0.5 or (rest == 0.5 and below % 2 != 0) else below


def square_root(x: float) -> float:
    """The square root; NaN of a negative number."""
    return math.sqrt(x) if x >= 0.0 else NAN


def power(base: float, exponent: float) -> float:
    """A power; infinity when it is beyond the doubles, NaN when it is not real."""
    if base == 0.0 and exponent < 0.0:
        return INFINITY
    if base < 0.0 and math.isfinite(base) and math.isfinite(exponent) and math.floor(exponent) != exponent:
        return NAN
    try:
        result = math.pow(base, exponent)
    except Exception:  # beyond the doubles; Numba knows no narrower class, and gives an infinity
        return INFINITY
    return INFINITY if math.isinf(result) and math.isfinite(base) and math.isfinite(exponent) else result


def sign(x: float) -> float:
    """-1, 0 or 1; NaN of NaN."""
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return 0.0 if x == 0.0 else NAN


# --- both -----------------------------------------------------------------------------------------


def larger(a: Any, a_null: bool, b: Any, b_null: bool) -> Any:
    """The larger of two values of one type that is not NULL; any of them when both are."""
    if a_null:
        return b
    if b_null:
        return a
    return b if b > a or (b != b and a == a) else a  # noqa: PLR0124


def smaller(a: Any, a_null: bool, b: Any, b_null: bool) -> Any:
    """The smaller of two values of one type that is not NULL; any of them when both are."""
    if a_null:
        return b
    if b_null:
        return a
    return b if b < a or (a != a and b == b) else a  # noqa: PLR0124


def compensation(total: float, x: float) -> float:
    """The part that is lost when x is added to a total (Neumaier's sum); 0 beyond the doubles."""
    after = total + x
    lost = (total - after) + x if abs(total) >= abs(x) else (x - after) + total
    return lost if math.isfinite(lost) else 0.0


HELPERS: dict[str, Callable[..., Any]] = {
    name: each for name, each in vars().copy().items() if getattr(each, "__module__", "") == __name__
}
