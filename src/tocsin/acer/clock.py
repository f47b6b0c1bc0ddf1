"""Times as users' functions see them, and as machines count them: microseconds."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Any

from tocsin.errors import InvalidOptionError, shown
from tocsin.expressions.objects import EPOCH, MICROSECOND
from tocsin.language.durations import describe, microseconds

LOCAL_EPOCH = EPOCH.replace(tzinfo=None)


class Clock(Enum):
    """The kind of the time column."""

    INSTANT = "timestamp"
    LOCAL = "timestamp_ntz"
    INTEGER = "integer"

    @property
    def epoch(self) -> dt.datetime:
        """Where it begins to count."""
        return EPOCH if self is Clock.INSTANT else LOCAL_EPOCH

    def shown(self, micros: int) -> Any:
        """A time as a value of the column: a datetime with its zone, UTC, or without one, or an integer.

        >>> Clock.INSTANT.shown(1_000_000), Clock.INTEGER.shown(7)
        (datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc), 7)
        """
        if self is Clock.INTEGER:
            return micros
        try:
            return self.epoch + dt.timedelta(microseconds=micros)
        except OverflowError:  # beyond the years of a datetime
            return micros

    def micros(self, value: Any) -> int:
        """A time as microseconds, from what `shown` returns; raises TypeError when it is no time of this clock."""
        if self is Clock.INTEGER:
            if isinstance(value, int) and not isinstance(value, bool):
                return value
            raise TypeError(f"{shown(value)} is not an integer, as the time column is")
        if isinstance(value, int) and self.shown(value) is value:  # beyond the years of a datetime
            return value
        if not isinstance(value, dt.datetime) or (value.tzinfo is None) == (self is Clock.INSTANT):
            wanted = "a datetime with a zone" if self is Clock.INSTANT else "a datetime without a zone"
            raise TypeError(f"{shown(value)} is not {wanted}, as the time column's are")
        return (value - self.epoch) // MICROSECOND


def duration(option: str, given: Any) -> int:
    """A length of time in microseconds, from a text, a timedelta or microseconds."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    if not isinstance(given, str | dt.timedelta):
        raise InvalidOptionError(
            f"`{option}={shown(given)}` is not a length of time.",
            hint='write a number and a unit, as in `"10 seconds"`, or microseconds.',
        )
    return microseconds(given)


def length(micros: int) -> str:
    """A length of time in the largest unit that shows it whole.

    >>> length(90_000_000), length(60_000_000), length(1500), length(7)
    ('90 seconds', '1 minute', '1500 microseconds', '7 microseconds')
    """
    return describe(micros, weeks=False).lower() if micros else "0 microseconds"
