"""Arrival curves: how many events may come within a time, of declared and of emitted types.

A curve gives, for a length of time, the largest number of events whose time stamps lie in a closed interval of that
length. A declared `Rate` is one: `100`, `"100/s"`, `"1 per 10 seconds"`, `"10/ms spaced"`, `"9/s, 5/h per key"`. Those
of emitted events are put together from the curves of what their rule reads. All of them are exact: a bound that is
computed from true curves is true.

A rate of n per u is a hard limit (LRP, definition 2), under one of two models of how events come (digest, ERR-8):

- in *bursts*, the default: at most n in any half-open stretch of length u, all at one instant if they like. A closed
  interval of length t is covered by ⌊t / u⌋ + 1 such stretches, so that it holds at most `n × (⌊t / u⌋ + 1)`;
- *spaced*: any two are at least u / n apart: at most `⌊t × n / u⌋ + 1`.

Spaced streams keep the limit of bursts, so that the default is safe for both. A rate counts whole events: 2.5/s is
3 in any second, and 0.1/s is 1 in any ten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.units import Unit, format_us
from tocsin.language.durations import MICROSECONDS


def as_float(rate: Fraction) -> float:
    """A rate for people and tools; the rate of matches of many variables may be beyond all floats."""
    return float(min(rate, Fraction(10) ** 300))


@dataclass(frozen=True)
class Curve:
    """Arrivals that follow from those of other types: of all keys together."""

    per_second: Fraction  # in the long run
    within: Callable[[int], int]  # the most events in any closed interval of a length in microseconds

    @property
    def of_key(self) -> Curve:
        """The curve that bounds the events of one key."""
        return self

    def of_all(self, _live_keys: int | None) -> Curve:
        """The curve of all events together."""
        return self

    def __str__(self) -> str:
        """Events per second in the long run, to six digits."""
        return f"{as_float(self.per_second):.6g}/s"


def copies(of: Arrivals, times: int, spread_us: int = 0) -> Curve:
    """`times` events for each event of another kind, up to `spread_us` apart from each other.

    >>> copies(parse_rate("2/s"), 3).within(0), copies(parse_rate("2/s"), 3, spread_us=1_000_000).within(0)
    (6, 12)
    """
    return Curve(of.per_second * times, lambda us: times * of.within(us + spread_us))


def together(parts: Sequence[Arrivals]) -> Curve:
    """The events of several kinds."""
    per_second = sum((part.per_second for part in parts), Fraction(0))
    return Curve(per_second, lambda us: sum(part.within(us) for part in parts))


def least(bounds: Sequence[Arrivals]) -> Curve:
    """Several bounds that all hold."""
    return Curve(min(each.per_second for each in bounds), lambda us: min(each.within(us) for each in bounds))


# --- declared rates -------------------------------------------------------------------------------

SECOND_US = 1_000_000
# Of a rate and of the time that it is given for; and of its text.
MOST_PER_SECOND, LONGEST_US, LONGEST_TEXT = 10**18, 2**62, 200
_RATE = re.compile(
    r"(?P<events>\d+(_\d+)*(\.\d+)?)\s*(/|per)\s*((?P<number>\d+(\.\d+)?)\s*)?(?P<unit>[a-z]+)"
    r"(?P<words>(\s+(per\s+key|spaced))*)",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Rate:
    """The largest number of events in a time: a hard limit, not an average."""

    per_second: Fraction  # events per second
    is_per_key: bool = False  # whether each key has this limit, and nothing is known of all together
    is_spaced: bool = False  # whether events keep their distance; otherwise they may come in bursts
    stretch_us: Fraction = Fraction(SECOND_US)  # the time in which the events of one burst come
    per_key: Rate | None = None  # what else is known of each key, beside the limit for all together

    def within(self, us: int) -> int:
        """The most events in any closed interval of this length.

        >>> parse_rate("10/ms").within(14_000), parse_rate("10/ms spaced").within(14_000)
        (150, 141)
        >>> parse_rate("0.1/s").within(0), parse_rate("0.1/s").within(10_000_000)
        (1, 2)
        """
        if not self.per_second:
            return 0
        if self.is_spaced:
            return us * self.per_second // SECOND_US + 1
        events = self.per_second * self.stretch_us / SECOND_US
        if events < 1:
            # Whole microseconds: a third written as a float is a little less than a third.
            return us // (SECOND_US // self.per_second) + 1
        return math.ceil(events) * (us // self.stretch_us + 1)

    def counting(self, unit: Unit) -> Rate:
        """The rate where ticks of a unit take the place of microseconds.

        >>> str(parse_rate("60/min").counting(Unit("ms")))
        '60 per 60 ms'
        """
        tick = unit.microseconds
        per_key = None if self.per_key is None else self.per_key.counting(unit)
        return replace(self, per_second=self.per_second * tick, stretch_us=self.stretch_us / tick, per_key=per_key)

    @property
    def of_key(self) -> Arrivals:
        """The curve of the events of one key."""
        return self if self.per_key is None else least((self, self.per_key))

    def of_all(self, live_keys: int | None) -> Arrivals | None:
        """The curve of all events together, given how many keys are live at once; None when it does not follow."""
        if self.is_per_key:
            return None if live_keys is None else copies(self, live_keys)
        if self.per_key is not None and live_keys is not None:
            return least((self, copies(self.per_key, live_keys)))
        return self

    def __str__(self) -> str:
        """As it may be written.

        >>> str(parse_rate("6 per minute")), str(parse_rate(2.5)), str(parse_rate("1 per 5 minutes spaced per key"))
        ('6/min', '2.5/s', '1 per 5 min spaced per key')
        """
        events = f"{as_float(self.per_second * self.stretch_us / SECOND_US):.6g}"
        whole = self.stretch_us.denominator == 1
        stretch = format_us(int(self.stretch_us)) if whole else f"{float(self.stretch_us):.6g} µs"
        unit = stretch.removeprefix("1 ")
        said = f"{events}/{unit}" if unit != stretch else f"{events} per {stretch}"
        said += " spaced" * self.is_spaced + " per key" * self.is_per_key
        return said if self.per_key is None else f"{said}, {self.per_key}"


Arrivals = Curve | Rate  # the most events of a type within any time


def parse_rate(rate: str | float | Fraction | Rate, event_type: str = "") -> Rate:
    """A declared rate; a number is events per second.

    >>> parse_rate("1 per 10 seconds").per_second, parse_rate("5/h per key").is_per_key
    (Fraction(1, 10), True)
    """
    if isinstance(rate, Rate):
        return rate
    found = _parse(rate) if isinstance(rate, str) else _number(rate)
    if found is None or not 0 <= found.per_second <= MOST_PER_SECOND or found.stretch_us > LONGEST_US:
        of = f" of `{errors.named(event_type)}`" if event_type else ""
        raise errors.InvalidOptionError(
            f"The rate{of}, {errors.shown(rate)}, is not a number of events in a time.",
            hint='write events per second, or a unit: 100, "100/s", "100 per minute", "1 per 10 seconds".',
        )
    return found


def _number(rate: float | Fraction) -> Rate | None:
    if isinstance(rate, bool) or not isinstance(rate, int | float | Fraction):
        return None
    if isinstance(rate, float):
        # The decimal number that was written, not its nearest float.
        return Rate(Fraction(str(rate))) if math.isfinite(rate) else None
    return Rate(Fraction(rate))


def _parse(text: str) -> Rate | None:
    """One limit, or two: of all events, and of each key."""
    limits = [_limit(part.strip()) for part in text.split(",")]
    match sorted((each for each in limits if each is not None), key=lambda each: each.is_per_key):
        case [only] if len(limits) == 1:
            return only
        case [of_all, of_key] if len(limits) == 2 and of_key.is_per_key and not of_all.is_per_key:
            return replace(of_all, per_key=of_key)
        case _:
            return None


def _limit(text: str) -> Rate | None:
    matched = _RATE.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if matched is None:
        return None
    unit = MICROSECONDS.get(matched["unit"].upper())
    stretch = Fraction(matched["number"] or 1) * (unit or 0)
    words = matched["words"].lower()
    if not stretch:
        return None
    return Rate(Fraction(matched["events"]) * SECOND_US / stretch, "key" in words, "spaced" in words, stretch)


def parse_rates(rates: Mapping[str, str | float | Fraction | Rate] | None) -> dict[str, Rate]:
    """The rate of each event type."""
    if rates is not None and not isinstance(rates, Mapping):
        raise errors.InvalidOptionError(
            f"`rates=` is a {type(rates).__name__}, not a mapping from event types to rates.",
            hint="write `rates={'Login': '100/s'}`.",
        )
    found: dict[str, Rate] = {}
    problems = errors.Problems()
    for event_type, rate in (rates or {}).items():
        try:
            found[event_type] = parse_rate(rate, event_type)
        except errors.InvalidOptionError as problem:
            problems.append(problem)
    errors.raise_all(problems)
    return found


def check_rates(rates: Any, pattern: alg.Node) -> None:
    """Refuse what is not a rate, and what looks like a misspelt event type of the pattern.

    One mapping may serve several patterns, so that a rate of another type is no mistake by itself.
    """
    if not isinstance(rates, Mapping):
        raise errors.InvalidOptionError(
            f"`rates` is a {type(rates).__name__}, not a mapping from event type to rate.",
            hint='write `{"Login": "100/s"}`.',
        )
    known = alg.event_types(pattern)
    undeclared = [name for name in known if name not in rates]
    problems: list[errors.TocsinError] = [
        errors.InvalidOptionError(
            f"`rates` names `{errors.named(name)}`, which is no event type of the pattern.",
            hint=errors.did_you_mean(name, known, "event types"),
        )
        for name in rates
        if name not in known and errors.nearest(errors.named(name), undeclared)
    ]
    with errors.collecting(problems):
        parse_rates(rates)
    errors.raise_all(problems)
