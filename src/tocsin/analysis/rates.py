"""Declared arrival rates: `100`, `"100/s"`, `"100 per minute"`, `"1 per 10 seconds"`, exactly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tocsin import errors
from tocsin.language.durations import MICROSECONDS

_RATE = re.compile(
    r"(?P<events>\d+(_\d+)*(\.\d+)?)\s*(/|per)\s*((?P<number>\d+(\.\d+)?)\s*)?(?P<unit>[a-z]+)(?P<key>\s+per\s+key)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Rate:
    """The largest number of events in a time: a hard limit, not an average (LRP, definition 2)."""

    per_second: Fraction
    is_per_key: bool = False

    def __str__(self) -> str:
        """Events per second, to six digits.

        Examples
        --------
        >>> str(parse_rate("6 per minute")), str(parse_rate(2.5))
        ('0.1/s', '2.5/s')
        """
        return f"{float(self.per_second):.6g}/s" + (" per key" if self.is_per_key else "")


def parse_rate(rate: str | float | Fraction | Rate, event_type: str = "") -> Rate:
    """A declared rate; a number is events per second.

    Examples
    --------
    >>> parse_rate("1 per 10 seconds").per_second, parse_rate("5/h per key").is_per_key
    (Fraction(1, 10), True)

    Raises
    ------
    InvalidOptionError
        When it is not a rate.
    """
    if isinstance(rate, Rate):
        return rate
    found = _parse(rate) if isinstance(rate, str) else _number(rate)
    if found is None or found.per_second < 0:
        of = f" of `{event_type}`" if event_type else ""
        raise errors.InvalidOptionError(
            f"The rate{of}, {rate!r}, is not a number of events in a time.",
            hint='write events per second, or a unit: 100, "100/s", "100 per minute", "1 per 10 seconds".',
        )
    return found


def _number(rate: float | Fraction) -> Rate | None:
    if isinstance(rate, bool) or not isinstance(rate, int | float | Fraction) or not math.isfinite(rate):
        return None
    return Rate(Fraction(str(rate)))  # the decimal number that was written, not its nearest float


def _parse(text: str) -> Rate | None:
    matched = _RATE.fullmatch(text.strip())
    if matched is None:
        return None
    unit = MICROSECONDS.get(matched["unit"].upper())
    span = unit and Fraction(matched["number"] or 1) * unit
    if not span:
        return None
    return Rate(Fraction(matched["events"]) * 1_000_000 / span, matched["key"] is not None)


def parse_rates(rates: Mapping[str, str | float | Fraction | Rate] | None) -> dict[str, Rate]:
    """The rate of each event type.

    Raises
    ------
    InvalidOptionError
        For the one that is not a rate, or all of them.
    """
    found: dict[str, Rate] = {}
    problems: list[errors.TocsinError] = []
    for event_type, rate in (rates or {}).items():
        try:
            found[event_type] = parse_rate(rate, event_type)
        except errors.InvalidOptionError as problem:
            problems.append(problem)
    errors.raise_all(problems)
    return found
