"""The expressions that only rules write, beside those of all languages.

A text has one form of call, `Invoke`; what its name stands for (an aggregate, a field of the calendar, a function or
table that the user has registered) is known when the program is analysed, and the other nodes say it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.language.expressions import Expression, Variable
from tocsin.language.user_defined import Function, Table


@dataclass(frozen=True)
class Invoke(Expression):
    """`name(a, b)` as written; no program that has been analysed holds one."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False


@dataclass(frozen=True)
class Apply(Expression):
    """A function or predicate of the user's own; NULL when an argument is."""

    name: str
    function: Function
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class InTable(Expression):
    """Whether a reference table has a row with these values; UNKNOWN when one of them is NULL."""

    name: str
    table: Table
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class CalendarField(Expression):
    """`hour(t)`, `weekday(t, 'Europe/Brussels')`: a field of the calendar, in UTC or in a zone.

    `of_clock` says that it is asked of the time of an event, which may be an integer of microseconds.
    """

    field: str
    operand: Expression
    zone: str | None = None
    of_clock: bool = False


@dataclass(frozen=True)
class ListOf(Expression):
    """`list(a, b)`: an array of the values, NULLs included."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Mean(Expression):
    """`avg(a, b)`: the mean of numbers, or of instants; NULL when one of them is."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class SameEvent(Expression):
    """Whether two variables hold the same event: not equal values, but one identity."""

    left: Variable
    right: Variable


# The fields of the calendar: weekday counts from 1, Monday, to 7; yearday from 1; week is ISO 8601's.
CALENDAR = ("year", "month", "day", "hour", "minute", "second", "weekday", "yearday", "week")
