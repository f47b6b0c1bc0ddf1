"""The rate guard: count events beyond the declared rate of their type. It drops nothing.

Time is cut into stretches of each type's rate: none may hold more events than the rate allows in a time of its length.
Stretches that the watermark has not passed are kept in the state of one shard, so that neither the cut into
micro-batches nor that into tasks matters. What is reported is true, whatever the order of arrival; a burst that lies
across the border of two stretches is reported when it is more than twice what is allowed, or falls into one of them.

code            theory (analysis.arrivals, D56)
----            ------
width_us        k × u: whole stretches of the rate, longer ones where the lateness spans very many
limit           the most events in a closed interval of length `width_us − 1`, which holds all of a stretch
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from tocsin.analysis.rates import SECOND_US, Rate
from tocsin.kernels.model import Integers

MOST_STRETCHES = 1024  # that the lateness spans: the state keeps a number for each
UNRATED = 0

Arrived = dict[tuple[int, int], int]  # number of the type, number of the stretch → events


@dataclass(frozen=True)
class Guard:
    """The types that have a declared rate; in rows they are numbered from 1, in this order."""

    types: tuple[str, ...]
    widths_us: tuple[int, ...]  # of the stretches of each type
    limits: tuple[int, ...]  # the most events in one stretch

    @property
    def name(self) -> str:
        """All that counts depend on: those of another guard mean something else."""
        return ",".join(f"{kind}:{width}" for kind, width in zip(self.types, self.widths_us, strict=True))

    def counted(self, times: Integers, types: Integers) -> bytes:
        """How many events of each type lie in each stretch, as rows of (type, stretch, events).

        >>> guard = Guard(("A",), (10,), (2,))
        >>> read(guard.counted(np.array([1, 9, 10, -1]), np.array([1, 1, 1, 0])))
        {(0, 0): 2, (0, 1): 1}
        """
        rows = []
        for number, width in enumerate(self.widths_us):
            stretches, events = np.unique(times[types == number + 1] // width, return_counts=True)
            rows.append(np.column_stack([np.full_like(stretches, number), stretches, events]))
        return np.concatenate(rows).astype("<i8").tobytes()

    def added(self, known: Mapping[tuple[int, int], int], batches: Iterable[bytes]) -> tuple[Arrived, list[int]]:
        """Add the counts of shard batches; return the sums, and how many events are beyond the limit of each type."""
        found, over = dict(known), [0] * len(self.types)
        for batch in batches:
            for (number, stretch), events in read(batch).items():
                before = found.get((number, stretch), 0)
                found[number, stretch] = before + events
                limit = self.limits[number]
                over[number] += max(before + events - limit, 0) - max(before - limit, 0)
        return found, over

    def open(self, arrived: Mapping[tuple[int, int], int], watermark: int) -> Arrived:
        """The stretches in which more may come."""
        return {
            (number, stretch): events
            for (number, stretch), events in arrived.items()
            if (stretch + 1) * self.widths_us[number] > watermark
        }


def read(counted: bytes) -> Arrived:
    """Read what `Guard.counted` wrote."""
    rows = np.frombuffer(counted, "<i8").reshape(-1, 3).tolist()
    return {(number, stretch): events for number, stretch, events in rows}


def guard_of(rates: Mapping[str, Rate], lateness_us: int) -> Guard | None:
    """The guard of declared rates; None when there are none of all events of a type together.

    >>> from tocsin.analysis.rates import parse_rates
    >>> guard_of(parse_rates({"A": "100/s", "B": "0.1/s", "C": "5/h per key"}), 0)
    Guard(types=('A', 'B'), widths_us=(1000000, 10000000), limits=(100, 1))
    >>> guard_of(parse_rates({"A": "10/ms"}), 3_600_000_000).widths_us
    (3516000,)
    """
    guarded = {name: rate for name, rate in rates.items() if not rate.is_per_key}
    if not guarded:
        return None
    widths = tuple(_width_us(rate, lateness_us) for rate in guarded.values())
    limits = tuple(rate.within(width - 1) for rate, width in zip(guarded.values(), widths, strict=True))
    return Guard(tuple(guarded), widths, limits)


def _width_us(rate: Rate, lateness_us: int) -> int:
    between = SECOND_US / rate.per_second if rate.per_second else Fraction(0)
    width = ceil(max(rate.stretch_us, between))
    return width * max(1, ceil(lateness_us / (MOST_STRETCHES * width)))
