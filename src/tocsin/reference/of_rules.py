"""The expressions of rules: functions and tables of the user's own, the calendar, means."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

from tocsin import errors
from tocsin.language import rule_expressions as rx
from tocsin.language.user_defined import Function
from tocsin.reference.values import TICKS, all_true, any_true, arithmetic, compare, normal

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def applied(function: Function, arguments: list[Any]) -> Any:
    """A function of the user's own; NULL when an argument is."""
    return None if None in arguments else function.call(*arguments)


def in_table(node: rx.InTable, arguments: list[Any]) -> bool | None:
    """Whether a table has a row of these values; UNKNOWN when one of them is NULL."""
    rows = node.table.rows
    if rows is None:
        raise errors.InvalidInputError(
            f"The table `{node.name}` is a DataFrame, and the reference reads plain rows.",
            hint=f"give its rows: `tables={{'{node.name}': [('A', 'B'), …]}}`.",
        )
    if None in arguments:
        return None
    return any_true([all_true([compare("=", *pair) for pair in zip(row, arguments, strict=True)]) for row in rows])


def instant(value: Any) -> dt.datetime:
    """A time stamp in UTC; an integer counts microseconds, a day is its first instant."""
    if isinstance(value, int):
        return EPOCH + dt.timedelta(microseconds=value // TICKS.get())
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    zoned: dt.datetime = normal(value)
    return zoned.astimezone(dt.UTC)


def calendar(field: str, value: Any, zone: str | None) -> int | None:
    """A field of the calendar.

    >>> calendar("weekday", dt.date(2018, 1, 1), None), calendar("hour", 0, "Europe/Brussels")
    (1, 1)
    """
    if value is None:
        return None
    at = instant(value).astimezone(ZoneInfo(zone or "UTC"))
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


def mean(values: list[Any]) -> Any:
    """The mean of numbers, or of instants; NULL when one of them is.

    >>> mean([1, 2]), mean([dt.datetime(2018, 1, 1), dt.datetime(2018, 1, 3)])
    (1.5, datetime.datetime(2018, 1, 2, 0, 0, tzinfo=datetime.timezone.utc))
    """
    if None in values:
        return None
    if isinstance(values[0], dt.date):
        first, *rest = [instant(value) for value in values]
        return first + sum((one - first for one in rest), dt.timedelta()) / len(values)
    total = values[0]
    for value in values[1:]:
        total = arithmetic("+", total, value)
    return arithmetic("/", total, len(values))
