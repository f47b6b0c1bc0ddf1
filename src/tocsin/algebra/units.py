"""Units: that of an integer time column (R42), and those in which reports and messages give times and sizes.

Engines compare times as they are and call their unit microseconds; in a query for another unit every duration has been
converted, so that nothing else has to know of it. Two instants never become one, and `start` and `end` come out in the
column's unit. An interval counts ticks where it meets an integer; beside a timestamp it stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.durations import describe

NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NAMES = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}
LONGEST_TICKS = 2**62


def check_unit(unit: object) -> None:
    """Refuse a unit that there is not."""
    if unit is not None and (not isinstance(unit, str) or unit not in NANOSECONDS):
        raise errors.InvalidOptionError(
            f"`time_unit={errors.shown(unit)}` is not a unit of time.", hint='write "s", "ms", "us" or "ns".'
        )


@dataclass(frozen=True)
class Unit:
    """A unit, and the attributes that are times or intervals by their type."""

    name: str
    times: Collection[str] = ()

    @property
    def microseconds(self) -> Fraction:
        """How long a tick is."""
        return Fraction(NANOSECONDS[self.name], NANOSECONDS["us"])

    @property
    def symbol(self) -> str:
        """Its name after a number: `µs` for microseconds."""
        return self.name.replace("u", "µ")

    def ticks(self, us: int) -> int:
        """A duration in microseconds as ticks.

        >>> Unit("ms").ticks(600_000_000), Unit("ns").ticks(-5), Unit("us").ticks(7)
        (600000, -5000, 7)
        """
        ticks, rest = divmod(us * NANOSECONDS["us"], NANOSECONDS[self.name])
        if rest:
            raise errors.InvalidOptionError(
                f'With `time_unit="{self.name}"`, {describe(us)} is not a whole number of {NAMES[self.name]}.',
                hint=f"write a whole number of {NAMES[self.name]}, or convert the time column to a finer unit.",
            )
        if abs(ticks) >= LONGEST_TICKS:
            raise errors.InvalidOptionError(
                f'With `time_unit="{self.name}"`, {describe(us)} is longer than 64-bit times can tell.',
                hint="write a shorter duration, or convert the time column to a coarser unit.",
            )
        return ticks

    def query(self, query: alg.Query) -> alg.Query:
        """A query over times of this unit."""
        if self.name == "us":
            return query
        query = query.map_expressions(self.expression)
        every_us = None if query.every_us is None else self.ticks(query.every_us)
        return replace(query, pattern=query.pattern.transform(self._node), every_us=every_us)

    def program(self, program: Program) -> Program:
        """A program over times of this unit."""
        if self.name == "us":
            return program
        return replace(
            program, rules=tuple(rule.changed(self.query(rule.query), self.expression) for rule in program.rules)
        )

    def _node(self, node: alg.Node) -> alg.Node:
        def bounds(given: tuple[alg.Bound, ...]) -> tuple[alg.Bound, ...]:
            return tuple(replace(bound, offset_us=self.ticks(bound.offset_us)) for bound in given)

        match node:
            case alg.Within():
                return replace(node, window_us=self.ticks(node.window_us))
            case alg.Around():
                return replace(node, lower=bounds(node.lower), upper=bounds(node.upper))
            case _:
                return node  # without durations of its own

    def expression(self, node: ex.Expression) -> ex.Expression:
        """An expression whose intervals count ticks where they meet integers."""
        node = node.map_children(self.expression)
        match node:
            case rx.CalendarField() if node.of_clock and self._is_number(node.operand):
                return replace(node, operand=self._instant(node.operand))
            case ex.Arithmetic(op="+" | "-") | ex.Comparison() | ex.Between() | ex.In() | ex.Case() | ex.Call():
                met = [child for child in node.children() if not _is_truth(child)]
                if any(map(self._is_number, met)):
                    return node.map_children(lambda child: self._counted(child) if child in met else child)
                return node
            case _:
                return node

    def _instant(self, node: ex.Expression) -> ex.Expression:
        """An integer time in microseconds, as fields of the calendar read it."""
        if self.microseconds < 1:
            raise errors.UnsupportedError(
                f'With `time_unit="{self.name}"`, fields of the calendar cannot be computed from integer times.',
                gap=Gaps.CALENDAR_OF_NANOSECONDS,
                where=node.where,
            )
        return ex.Arithmetic("*", node, ex.Literal(int(self.microseconds)))

    def _is_number(self, node: ex.Expression) -> bool:
        """Whether an expression is neither a time nor an interval, as far as can be told."""
        return not self._is_interval(node) and not self._is_time(node) and node != ex.Literal(None)

    def _is_time(self, node: ex.Expression) -> bool:
        match node:
            case ex.Timestamp() | ex.Date():
                return True
            case ex.Attribute():
                return node.path[0] in self.times
            case ex.Arithmetic(op="+" | "-"):
                return self._is_time(node.left) != self._is_time(node.right)
            case ex.Aggregate() | ex.Call() | ex.Case():
                return any(map(self._is_time, node.children()))
            case _:
                return False

    def _is_interval(self, node: ex.Expression) -> bool:
        match node:
            case ex.Interval():
                return True
            case ex.Negative():
                return self._is_interval(node.operand)
            case ex.Arithmetic(op="*"):
                return self._is_interval(node.left) != self._is_interval(node.right)
            case ex.Arithmetic(op="/"):
                return self._is_interval(node.left) and not self._is_interval(node.right)
            case ex.Arithmetic(op="+" | "-"):
                times = self._is_time(node.left) and self._is_time(node.right)
                return times or (self._is_interval(node.left) and self._is_interval(node.right))
            case _:
                return False

    def _counted(self, node: ex.Expression) -> ex.Expression:
        """An interval that meets a number, in ticks."""
        if not self._is_interval(node):
            return node
        if isinstance(node, ex.Interval):
            return replace(node, microseconds=self.ticks(node.microseconds))
        if any(isinstance(part, ex.Attribute) and part.path[0] in self.times for part in node.walk()):
            raise errors.TypeMismatchError(
                f'With `time_unit="{self.name}"`, the distance of two timestamps cannot meet an integer.',
                where=node.where,
                hint="compare it with an interval, such as `5 MINUTES`.",
            )
        return node.transform(lambda one: self._counted(one) if isinstance(one, ex.Interval) else one)


MICROSECONDS = Unit("us")


def _is_truth(node: ex.Expression) -> bool:
    return isinstance(node, ex.Comparison | ex.Between | ex.In | ex.And | ex.Or | ex.Not | ex.IsNull | ex.Like)


def has_durations(*queries: alg.Query) -> bool:
    """Whether anything in queries is measured in units of time."""
    return any(map(_has_durations, queries))


def _has_durations(query: alg.Query) -> bool:
    nodes = list(query.pattern.walk())
    offsets = (bound.offset_us for node in nodes if isinstance(node, alg.Around) for bound in node.lower + node.upper)
    is_measured = query.every_us is not None or any(isinstance(node, alg.Within) for node in nodes) or any(offsets)
    return is_measured or any(isinstance(part, ex.Interval) for each in query.expressions() for part in each.walk())


# --- lengths of time and sizes for people -----------------------------------------------------------

SECOND_US = 1_000_000
WHOLE_UNITS = ((86_400 * SECOND_US, "d"), (3_600 * SECOND_US, "h"), (60 * SECOND_US, "min"), (SECOND_US, "s"))

_tick: ContextVar[Fraction] = ContextVar("_tick", default=Fraction(1))


@contextmanager
def counting(tick: Fraction) -> Iterator[None]:
    """Lengths of time are given in ticks of so many microseconds (R42)."""
    token = _tick.set(tick)
    try:
        yield
    finally:
        _tick.reset(token)


def format_us(microseconds: int) -> str:
    """A length of time in the largest unit that gives it exactly, or in seconds with decimals.

    >>> format_us(600_000_000), format_us(9_999_999), format_us(2_000), format_us(-1), format_us(0)
    ('10 min', '9.999999 s', '2 ms', '-1 µs', '0 s')
    """
    if microseconds < 0:
        return f"-{format_us(-microseconds)}"
    length = microseconds * _tick.get()
    if length.denominator != 1:
        return f"{int(length * 1000)} ns"
    microseconds = length.numerator
    if microseconds == 0:
        return "0 s"
    for unit, name in WHOLE_UNITS:
        if microseconds % unit == 0:
            return f"{microseconds // unit} {name}"
    if microseconds < SECOND_US:
        return f"{microseconds // 1_000} ms" if microseconds % 1_000 == 0 else f"{microseconds} µs"
    seconds, rest = divmod(microseconds, SECOND_US)
    return f"{seconds}.{rest:06d}".rstrip("0") + " s"


def format_bound(microseconds: int | None) -> str:
    """A length of time, or the word for none.

    >>> format_bound(None), format_bound(1_000_000)
    ('unbounded', '1 s')
    """
    return "unbounded" if microseconds is None else format_us(microseconds)


def format_count(number: int | None) -> str:
    """A number of events for people.

    >>> format_count(91_000), format_count(262_290_837_313), format_count(None)
    ('91 000', '2.62e+11', 'unknown')
    """
    if number is None:
        return "unknown"
    return f"{number:,}".replace(",", " ") if number < 10**10 else f"{Decimal(number):.2e}"


def format_bytes(number: int | None) -> str:
    """A size for people.

    >>> format_bytes(1_500), format_bytes(2_300_000), format_bytes(None)
    ('1.5 kB', '2.3 MB', 'unknown')
    """
    if number is None:
        return "unknown"
    for size, unit in ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number < 10**18 else f"{Decimal(number) / size:.2e} {unit}"
    return f"{number} B"


# --- limits in bytes --------------------------------------------------------------------------------

UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", 1)},
}
MOST_BYTES, LONGEST_TEXT = 10**30, 200
_LIMIT = re.compile(
    r"(?P<number>\d+(_\d+)*(\.\d+)?)\s*(?P<unit>[a-z]+)(?P<key>\s+per\s+key)?", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True)
class Limit:
    """A number of bytes, of all that is kept or of each key."""

    bytes: int
    is_per_key: bool = False

    def __str__(self) -> str:
        """As it may be written."""
        return format_bytes(self.bytes) + " per key" * self.is_per_key


def parse_limit(limit: str | int | Limit, option: str = "max_state") -> Limit:
    """A limit; a number is bytes. `option` is the name that messages have for it.

    >>> parse_limit("4GB").bytes, parse_limit("1.5 KiB per key")
    (4000000000, Limit(bytes=1536, is_per_key=True))
    """
    if isinstance(limit, Limit):
        return limit
    if isinstance(limit, int) and not isinstance(limit, bool) and 0 <= limit <= MOST_BYTES:
        return Limit(limit)
    found = _LIMIT.fullmatch(limit.strip()) if isinstance(limit, str) and len(limit) <= LONGEST_TEXT else None
    unit = UNITS.get(found["unit"].lower()) if found is not None else None
    size = None if found is None or unit is None else int(Fraction(found["number"]) * unit)
    if found is None or size is None or size > MOST_BYTES:
        raise errors.InvalidOptionError(
            f"`{option}={errors.shown(limit)}` is not a number of bytes.",
            hint="write a number and a unit, as in `4GB`, `512 MiB` or `64 kB per key`.",
        )
    return Limit(size, found["key"] is not None)
