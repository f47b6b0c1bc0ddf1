"""Functions of rules on Python values: tables, the calendar, means. NULL is left to the caller."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

from tocsin.expressions import objects

EXACT = (str, int, bytes)  # values that a set compares as conditions do


def asked(rows: frozenset[tuple[Any, ...]]) -> Callable[..., bool | None]:
    """Whether a table has a row of these values, none of them NULL; UNKNOWN where only a NULL of the table hides it.

    >>> known = asked(frozenset({("A", 1), ("B", None)}))
    >>> known("A", 1), known("A", 2), known("B", 1)
    (True, False, None)
    """
    exact = {row for row in rows if all(isinstance(value, EXACT) for value in row)}
    others = [tuple(map(objects.zoned, row)) for row in rows if row not in exact]

    def has(*values: Any) -> bool | None:
        is_exact = all(isinstance(value, EXACT) for value in values)
        if is_exact and values in exact:
            return True
        found: bool | None = False
        for row in others if is_exact else [*exact, *others]:
            equal = [
                None if one is None else objects.is_equal(one, other) for one, other in zip(row, values, strict=True)
            ]
            if all(equal):
                return True
            if False not in equal:
                found = None
        return found

    return has


def calendar(field: str, zone: str | None) -> Callable[[Any], int]:
    """A field of the calendar; an integer counts microseconds, a day is its first instant.

    >>> calendar("weekday", None)(dt.date(2018, 1, 1)), calendar("hour", "Europe/Brussels")(0)
    (1, 1)
    """
    region = ZoneInfo(zone or "UTC")

    def of(value: Any) -> int:
        at = _instant(value).astimezone(region)
        match field:
            case "weekday":
                return at.isoweekday()
            case "yearday":
                return at.timetuple().tm_yday
            case "week":
                return at.isocalendar().week
            case _:
                found: int = getattr(at, field)
                return found

    return of


def mean(*values: Any) -> Any:
    """The mean of numbers, or of instants to the nearest microsecond.

    >>> mean(1, 2), mean(dt.datetime(2018, 1, 1), dt.datetime(2018, 1, 3))
    (1.5, datetime.datetime(2018, 1, 2, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if isinstance(values[0], dt.date):
        first, *rest = map(_instant, values)
        return first + sum((one - first for one in rest), dt.timedelta()) / len(values)
    total = values[0]
    for value in values[1:]:
        total = None if total is None else objects.arithmetic("+")(total, value)
    return None if total is None else objects.arithmetic("/")(total, len(values))


def _instant(value: Any) -> dt.datetime:
    if isinstance(value, int):
        return objects.EPOCH + value * objects.MICROSECOND
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    found: dt.datetime = objects.zoned(value)
    return found
