"""Lengths of time as people write them, and as whole microseconds; computed exactly, never in floats."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

from tocsin import errors

# The first spelling of each unit is the one that is printed for one, the second for several.
SPELLINGS: dict[int, tuple[str, ...]] = {
    7 * 24 * 3600 * 1_000_000: ("WEEK", "WEEKS", "W"),
    24 * 3600 * 1_000_000: ("DAY", "DAYS", "D"),
    3600 * 1_000_000: ("HOUR", "HOURS", "H"),
    60 * 1_000_000: ("MINUTE", "MINUTES", "MIN"),
    1_000_000: ("SECOND", "SECONDS", "SEC", "S"),
    1000: ("MILLISECOND", "MILLISECONDS", "MS"),
    1: ("MICROSECOND", "MICROSECONDS", "US"),
}

LONGEST_US = 2**62  # sums of a time and a length fit into 64 bits
MICROSECONDS: dict[str, int] = {spelling: size for size, spellings in SPELLINGS.items() for spelling in spellings}


def to_microseconds(number: str, unit: str) -> int | None:
    """A decimal number of units in microseconds; None when that is not a whole number of them.

    >>> to_microseconds("1.5", "hours")
    5400000000
    >>> to_microseconds("0.1", "us") is None
    True
    """
    exact = Fraction(number) * MICROSECONDS[unit.upper()]
    return exact.numerator if exact.denominator == 1 else None


def describe(microseconds: int, *, weeks: bool = True) -> str:
    """A duration in the largest unit that divides it, of weeks or of days.

    >>> describe(90_000_000), describe(7 * 86_400_000_000, weeks=False), describe(0)
    ('90 SECONDS', '7 DAYS', '0 SECONDS')
    """
    if microseconds == 0:
        return "0 SECONDS"
    size = next(size for size in [*SPELLINGS][not weeks :] if microseconds % size == 0)
    count = microseconds // size
    one, several, *_ = SPELLINGS[size]
    return f"{count} {one if abs(count) == 1 else several}"


def microseconds(duration: str | dt.timedelta | None, option: str | None = None) -> int:
    """A length of time given as an option, which an error names.

    Examples
    --------
    >>> microseconds("10 seconds"), microseconds("500ms"), microseconds(None)
    (10000000, 500000, 0)
    """
    if duration is None:
        return 0
    if isinstance(duration, dt.timedelta):
        found: int | None = duration // dt.timedelta(microseconds=1)
    else:
        said = duration if isinstance(duration, str) else ""
        parts = re.fullmatch(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]+)\s*", said)
        known = parts is not None and parts[2].upper() in MICROSECONDS
        found = to_microseconds(parts[1], parts[2]) if parts is not None and known else None
    if found is None or not 0 <= found <= LONGEST_US:
        given = errors.named(duration) if option is None else f"{option}={errors.shown(duration)}"
        raise errors.InvalidOptionError(
            f"`{given}` is not a length of time.", hint="write a number and a unit, as in `10 seconds` or `500 ms`."
        )
    return found
