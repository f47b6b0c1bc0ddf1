"""Statistics of the data: how many events of each type, how many of them each variable may bind, keys, layout.

Measured by `analyze`, which says that it runs a job, or written by hand:

>>> print(Statistics.of({"A": 1_000_000, "B": 50_000}, duration=3_600_000_000, selectivity={"a": 0.01}, keys=1000))
type  events     rate     from  to
A     1 000 000  277.8/s
B     50 000     13.89/s
<BLANKLINE>
variable  selectivity
a         1 %
<BLANKLINE>
1 h of events, given
keys: 1 000
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from numbers import Real
from typing import Any

from tocsin import errors
from tocsin.algebra.tree_text import table
from tocsin.algebra.units import format_us
from tocsin.analysis.rates import Rate, parse_rates

DAY_US = 86_400_000_000
LONGEST_US = 2**62
SECOND_US = 1_000_000


@dataclass(frozen=True)
class TypeStatistics:
    """The events of one type: how many, and when the first and the last was."""

    count: float
    first_us: int | None = None
    last_us: int | None = None


@dataclass(frozen=True)
class KeyStatistics:
    """The partition key: how many there are, and the share of all events that the heaviest has."""

    distinct: float
    heaviest: float | None = None

    @property
    def share_of_heaviest(self) -> float:
        """The share of the heaviest key, never below that of equal keys."""
        return min(1.0, max(self.heaviest or 0.0, 1 / max(self.distinct, 1.0)))

    @property
    def meeting(self) -> float:
        """The probability that two events have the same key: one heavy key, the others equal."""
        heavy = self.share_of_heaviest
        return heavy**2 + (1 - heavy) ** 2 / max(self.distinct - 1, 1.0)


@dataclass(frozen=True)
class Layout:
    """How the input lies in its partitions or files."""

    parts: int  # how many there are
    is_clustered: bool  # their time ranges are disjoint, so that they can be put in order of time
    widest_us: int  # how long the longest of them is


@dataclass(frozen=True)
class Statistics:
    """Statistics of the inputs of a query.

    Attributes
    ----------
    rows
        All rows of the inputs.
    duration_us
        From the first event to the last.
    types
        By event type.
    selectivity
        By variable, negated ones included: the share of its types' events that satisfy its own conditions.
    keys
        The partition key, or the equality that joins all variables; None when there is none, or it is not known.
    layout
        How the input lies in time; None when not known.
    distinct
        By attribute: the number of different values.
    pairs
        By condition between variables, as `explain()` prints it: the share of event pairs that satisfy it.
    source
        `"measured"`, `"given"`, or `"rates"` when only rates were declared and the counts are those of a day.
    """

    rows: float
    duration_us: int
    types: Mapping[str, TypeStatistics]
    selectivity: Mapping[str, float] = field(default_factory=dict)
    keys: KeyStatistics | None = None
    layout: Layout | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, float] = field(default_factory=dict)
    source: str = "given"

    @classmethod
    def of(
        cls,
        counts: Mapping[str, float] | None = None,
        *,
        rates: Mapping[str, str | float | Fraction | Rate] | None = None,
        duration: int | dt.timedelta | None = None,
        selectivity: Mapping[str, float] | None = None,
        keys: float | None = None,
        heaviest: float | None = None,
        distinct: Mapping[str, float] | None = None,
        pairs: Mapping[str, float] | None = None,
        clustered: int | dt.timedelta | None = None,
    ) -> Statistics:
        """Statistics written by hand.

        Parameters
        ----------
        counts
            Event type → number of events.
        rates
            Event type → rate, for types without a count: `100`, `"100/s"`, `"5 per minute per key"`.
        duration
            How long the input is, a timedelta or microseconds; a day when not given.
        selectivity
            Variable → share of its events that satisfy its own conditions; 1 when not given.
        keys, heaviest
            How many partition keys there are, and the share of the heaviest.
        distinct
            Attribute → number of different values.
        pairs
            Condition between variables, as printed → share of pairs that satisfy it.
        clustered
            When each partition of the input holds a time range of its own: how long the longest is.

        Raises
        ------
        InvalidOptionError
            For a number that cannot be.
        """
        duration_us = DAY_US if duration is None else _micros("duration", duration)
        _check("counts", counts)
        _check("keys", None if keys is None else {"the keys": keys})
        found = {name: float(count) for name, count in (counts or {}).items()}
        for name, rate in parse_rates(rates).items():
            per_second = float(rate.per_second) * (max(keys or 1.0, 1.0) if rate.is_per_key else 1.0)
            found.setdefault(name, per_second * duration_us / SECOND_US)
        _check("selectivity", selectivity, most=1)
        _check("pairs", pairs, most=1)
        _check("counts", found)
        _check("distinct", distinct)
        _check("heaviest", None if heaviest is None else {"the heaviest key": heaviest}, most=1)
        _check("duration", {"the input": duration_us})
        layout = None
        if clustered is not None:
            width = max(_micros("clustered", clustered), 1)
            layout = Layout(max(1, round(duration_us / width)), True, width)
        return cls(
            rows=sum(found.values()),
            duration_us=max(duration_us, 1),
            types={name: TypeStatistics(count) for name, count in found.items()},
            selectivity=dict(selectivity or {}),
            keys=None if keys is None else KeyStatistics(max(float(keys), 1.0), heaviest),
            layout=layout,
            distinct=dict(distinct or {}),
            pairs=dict(pairs or {}),
            source="given" if counts else "rates",
        )

    def count(self, event_type: str) -> float:
        """The number of events of a type; 0 for one that is not known."""
        known = self.types.get(event_type)
        return 0.0 if known is None else known.count

    def times(self, factor: Fraction) -> Statistics:
        """The statistics in another unit, where all times are so many times as long."""

        def moved(us: int | None) -> int | None:
            return None if us is None else math.floor(us * factor)

        def length(us: int) -> int:
            return max(math.floor(us * factor), 1)

        types = {
            name: replace(one, first_us=moved(one.first_us), last_us=moved(one.last_us))
            for name, one in self.types.items()
        }
        layout = None if self.layout is None else replace(self.layout, widest_us=length(self.layout.widest_us))
        return replace(self, duration_us=length(self.duration_us), types=types, layout=layout)

    def rate(self, event_type: str) -> float:
        """Events of a type per second, on average over the whole input."""
        return self.count(event_type) * SECOND_US / self.duration_us

    def to_dict(self) -> dict[str, Any]:
        """Plain values, to be stored as JSON.

        Examples
        --------
        >>> known = Statistics.of({"A": 10}, keys=3)
        >>> Statistics.from_dict(known.to_dict()) == known
        True
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Statistics:
        """Statistics as `to_dict` gave them.

        Raises
        ------
        InvalidOptionError
            When something is missing or too much.
        """
        try:
            values = dict(stored)
            values["types"] = {name: TypeStatistics(**one) for name, one in values["types"].items()}
            values["keys"] = None if values.get("keys") is None else KeyStatistics(**values["keys"])
            values["layout"] = None if values.get("layout") is None else Layout(**values["layout"])
            return cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise errors.InvalidOptionError(
                f"These are no stored statistics: {errors.fault(problem)}.",
                hint="pass what `Statistics.to_dict()` gave.",
            ) from None

    def __str__(self) -> str:
        """Tables: event types, then variables; then a line each for time, keys and layout."""
        rows: list[tuple[str, ...]] = [
            (name, spaced(one.count), f"{self.rate(name):.4g}/s", _instant(one.first_us), _instant(one.last_us))
            for name, one in self.types.items()
        ]
        parts = [table(("type", "events", "rate", "from", "to"), rows)]
        shares: list[tuple[str, ...]]
        if self.selectivity:
            shares = [(name, percent(share)) for name, share in self.selectivity.items()]
            parts.append(table(("variable", "selectivity"), shares))
        if self.pairs:
            shares = [(text, percent(share)) for text, share in self.pairs.items()]
            parts.append(table(("condition", "selectivity"), shares))
        parts.append("\n".join(self._notes()))
        return "\n\n".join(parts)

    def _notes(self) -> list[str]:
        told = {"rates": "from rates, as for a day" if self.duration_us == DAY_US else "from rates"}
        notes = [f"{format_us(self.duration_us)} of events, {told.get(self.source, self.source)}"]
        if self.keys is not None:
            heaviest = "" if self.keys.heaviest is None else f", the heaviest has {percent(self.keys.heaviest)}"
            notes.append(f"keys: {spaced(self.keys.distinct)}{heaviest}")
        if self.distinct:
            notes.append("values: " + ", ".join(f"{name} {spaced(number)}" for name, number in self.distinct.items()))
        if self.layout is not None and self.layout.is_clustered:
            notes.append(
                f"layout: {self.layout.parts} parts, each a time range of its own, of at most "
                f"{format_us(self.layout.widest_us)}"
            )
        elif self.layout is not None:
            notes.append(f"layout: {self.layout.parts} parts whose time ranges overlap")
        return notes


def spaced(number: float) -> str:
    """A count for people: whole, or in powers of ten when it is too long to read.

    >>> spaced(1234567), spaced(0.25), spaced(3e20), spaced(float("inf"))
    ('1 234 567', '0.25', '3e+20', 'inf')
    """
    if number >= 1e15 or (0 < number < 10 and number != round(number)):
        return f"{number:.3g}"
    return f"{round(number):,}".replace(",", " ")


def percent(share: float) -> str:
    """A share for people.

    >>> percent(0.01), percent(0.12345), percent(0)
    ('1 %', '12.3 %', '0 %')
    """
    return f"{share * 100:.3g} %"


def _instant(micros: int | None) -> str:
    if micros is None:
        return ""
    try:
        when = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
    except OverflowError:
        return f"{micros} µs"
    return when.isoformat(sep=" ", timespec="seconds")


def _micros(option: str, duration: int | dt.timedelta) -> int:
    number: Any = duration // dt.timedelta(microseconds=1) if isinstance(duration, dt.timedelta) else duration
    _check(option, {"the input": number}, most=LONGEST_US)
    return int(number)


def _check(option: str, numbers: Mapping[str, float] | None, *, most: float = float("inf")) -> None:
    if numbers is not None and not isinstance(numbers, Mapping):
        raise errors.InvalidOptionError(
            f"`{option}=` is a {type(numbers).__name__}, not a mapping from names to numbers.",
            hint=f"write `{option}={{'A': 1}}`.",
        )
    for name, number in (numbers or {}).items():
        try:
            is_between = isinstance(number, Real) and 0 <= float(number) <= most  # NaN is not
        except OverflowError:  # no double holds it
            is_between = False
        if not is_between:
            limit = f"between 0 and {most:g}" if most != float("inf") else "0 or more"
            raise errors.InvalidOptionError(
                f"The statistics say {errors.shown(number)} for `{errors.named(name)}`.",
                hint=f"numbers in `{option}` are {limit}.",
            )
