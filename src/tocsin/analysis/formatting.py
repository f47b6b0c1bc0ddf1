"""Lengths of time for people: microseconds in reports and messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

SECOND_US = 1_000_000
WHOLE_UNITS = (
    (86_400 * SECOND_US, "d"),
    (3_600 * SECOND_US, "h"),
    (60 * SECOND_US, "min"),
    (SECOND_US, "s"),
)


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


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Columns of text, aligned; the first column to the left, the others too.

    >>> print(table(("variable", "lifetime"), [("a", "10 s")]))
    variable  lifetime
    a         10 s
    """
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [header, *rows]]
    return "\n".join(line.rstrip() for line in lines)
