"""How many events may come within a time: arrival curves, of declared and of emitted events.

A curve tells, for a length of time, the largest number of events whose time stamps lie in a closed interval of that
length. A declared `Rate` is one; those of emitted events are put together from the curves of what their rule reads.
All of them are exact: a bound that is computed from true curves is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol


def as_float(rate: Fraction) -> float:
    """A rate for people and tools; the rate of matches of many variables may be beyond all floats."""
    return float(min(rate, Fraction(10) ** 300))


class Arrivals(Protocol):
    """The most events of a type within any time."""

    @property
    def per_second(self) -> Fraction:
        """The most events per second in the long run."""
        ...

    def within(self, us: int) -> int:
        """The most events in any closed interval of this length."""
        ...


class _Composed:
    @property
    def per_second(self) -> Fraction:
        raise NotImplementedError

    def __str__(self) -> str:
        """Events per second in the long run, to six digits."""
        return f"{as_float(self.per_second):.6g}/s"


@dataclass(frozen=True)
class Copies(_Composed):
    """`times` events for each event of another kind, up to `spread_us` apart from each other.

    >>> from tocsin.analysis.rates import parse_rate
    >>> Copies(parse_rate("2/s"), 3).within(0), Copies(parse_rate("2/s"), 3, spread_us=1_000_000).within(0)
    (6, 12)
    """

    of: Arrivals
    times: int
    spread_us: int = 0

    @property
    def per_second(self) -> Fraction:
        """The most events per second in the long run."""
        return self.of.per_second * self.times

    def within(self, us: int) -> int:
        """The most events in any closed interval of this length."""
        return self.times * self.of.within(us + self.spread_us)


@dataclass(frozen=True)
class Together(_Composed):
    """The events of several kinds."""

    parts: tuple[Arrivals, ...]

    @property
    def per_second(self) -> Fraction:
        """The most events per second in the long run."""
        return sum((part.per_second for part in self.parts), Fraction(0))

    def within(self, us: int) -> int:
        """The most events in any closed interval of this length."""
        return sum(part.within(us) for part in self.parts)


@dataclass(frozen=True)
class Least(_Composed):
    """Several bounds that all hold."""

    choices: tuple[Arrivals, ...]

    @property
    def per_second(self) -> Fraction:
        """The most events per second in the long run."""
        return min(choice.per_second for choice in self.choices)

    def within(self, us: int) -> int:
        """The most events in any closed interval of this length."""
        return min(choice.within(us) for choice in self.choices)
