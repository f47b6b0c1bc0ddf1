"""Whether a deployment keeps up with declared rates, measured on its micro-batches (LRP §1.3, §8.7).

A micro-batch of n rows takes about `a + b·n`. While one takes T, `r·T` rows come for the next, so that micro-batches
settle where `T = a + b·r·T`; they do when `b·r < 1`, and otherwise grow without end. A failure costs the time to come
back, R, and the micro-batch that is run again: f of them a second leave `1 − f·(R + T)` of the time. The largest rate
needs all of it: with u = 1 − b·r, what is not spent on rows, it is where `u = f·(R + a / u)`.

code              theory
----              ------
per_batch_s       a, by medians: the first micro-batches, which compile, do not count more than others
per_row_s         b, the median of the slopes between micro-batches; never more than the least `T / n`
rows_per_second   r
load              r by the largest rate
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

from tocsin import errors
from tocsin.analysis.rates import parse_rate, parse_rates
from tocsin.language.durations import microseconds

if TYPE_CHECKING:
    from tocsin.progress import Progress


@dataclass(frozen=True)
class Feasibility:
    """The load that declared rates put on a deployment.

    Attributes
    ----------
    rows_per_second
        The declared rows of all inputs.
    per_batch_s, per_row_s
        How long a micro-batch takes, and each of its rows, in seconds.
    failures_per_second, recovery_s
        How often the stream may fail, and how long it then is away.
    is_upper_bound
        Whether `per_row_s` is an upper bound: the micro-batches were too alike to measure a row.
    """

    rows_per_second: float
    per_batch_s: float
    per_row_s: float
    failures_per_second: float = 0.0
    recovery_s: float = 0.0
    is_upper_bound: bool = False

    @property
    def most_rows_per_second(self) -> float:
        """The largest rate that could be carried, with micro-batches as large as they have to be."""
        lost = self.failures_per_second * self.recovery_s
        left = (lost + math.sqrt(lost**2 + 4 * self.failures_per_second * self.per_batch_s)) / 2
        return max(1 - left, 0.0) / self.per_row_s if self.per_row_s else math.inf

    @property
    def load(self) -> float:
        """The declared rate, as a part of the largest that could be carried; from 1 on the stream falls behind."""
        return self.rows_per_second / self.most_rows_per_second if self.most_rows_per_second else math.inf

    @property
    def keeps_up(self) -> bool:
        """Whether micro-batches settle at some length."""
        return self.load < 1

    @property
    def batch_s(self) -> float:
        """The length at which micro-batches settle, in seconds; infinite when they do not."""
        left = 1 - self.per_row_s * self.rows_per_second
        return self.per_batch_s / left if left > 0 else math.inf

    @property
    def catch_up_s(self) -> float:
        """How long after a failure and its recovery the stream is as far as it would have been."""
        busy = self.per_row_s * self.rows_per_second
        return (self.recovery_s + self.batch_s) * busy / (1 - busy) if busy < 1 else math.inf

    def __str__(self) -> str:
        """A few lines for people."""
        lines = [
            f"declared     {self.rows_per_second:,.6g} rows/s; up to {self.most_rows_per_second:,.6g} can be carried",
            f"load         {'at most ' * self.is_upper_bound}{self.load:.1%} of that",
            f"micro-batch  {self.batch_s:.3g} s: {self.per_batch_s:.3g} s each, {self.per_row_s * 1e6:.3g} µs a row",
        ]
        if self.failures_per_second:
            lines.append(f"failure      {self.recovery_s:.3g} s away, then {self.catch_up_s:.3g} s to catch up")
        verdict = "It keeps up." if self.keeps_up else "It falls behind."
        if self.is_upper_bound and not self.keeps_up:
            verdict = "Micro-batches of other sizes would tell whether it keeps up."
        return "\n".join([*lines, verdict])


def feasibility(
    progress: Iterable[Progress],
    rates: Mapping[str, Any],
    *,
    failures: Any = None,
    recovery: str | dt.timedelta | None = None,
) -> Feasibility:
    """Estimate whether a deployment keeps up with declared rates, from the times of its micro-batches.

    Parameters
    ----------
    progress
        The progress of micro-batches of one query: `listener.recent`.
    rates
        Event type → the largest rate of all its events, as for `match`: of every type in the inputs, also of those that
        the pattern does not name.
    failures, recovery
        How often the stream may fail, `"2 per day"`, and how long it is away then, `"1 minute"`.

    Raises
    ------
    InvalidOptionError
        For what is no rate or time, a rate per key, no rate at all, or when no micro-batch had rows.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> progress = [SimpleNamespace(seen=n, duration_ms=100 + n // 100) for n in (1_000, 5_000, 20_000)]
    >>> print(feasibility(progress, {"Login": "20000/s"}, failures="4 per hour", recovery="30 seconds"))
    declared     20,000 rows/s; up to 96,361.3 can be carried
    load         20.8% of that
    micro-batch  0.125 s: 0.1 s each, 10 µs a row
    failure      30 s away, then 7.53 s to catch up
    It keeps up.
    """
    problems: list[errors.TocsinError] = []
    declared, often, away_us = {}, 0.0, 0
    with errors.collecting(problems):
        declared = parse_rates(rates)
    with errors.collecting(problems):
        often = 0.0 if failures is None else float(parse_rate(failures).per_second)
    with errors.collecting(problems):
        away_us = microseconds(recovery)
    problems += [
        errors.InvalidOptionError(
            f"The rate of `{name}` is per key, and says nothing of all of them.",
            hint='declare both, as in `"100/s, 5/h per key"`.',
        )
        for name, rate in declared.items()
        if rate.is_per_key
    ]
    if rates is None or (isinstance(rates, Mapping) and not rates):
        problems.append(errors.InvalidOptionError("No rate is declared.", hint='write `{"Login": "100/s"}`.'))
    try:
        taken = [(one.seen, one.duration_ms / 1000) for one in progress if one.seen]
    except (TypeError, AttributeError) as problem:
        raise errors.InvalidOptionError(
            f"`progress=` holds no progress of micro-batches: {errors.fault(problem)}.",
            hint="pass `listener.recent` of a `tocsin.TocsinListener`.",
        ) from None
    if not taken:
        problems.append(
            errors.InvalidOptionError(
                "No micro-batch had rows, so that nothing is known of what they take.",
                hint="let the stream run for some micro-batches, best of different sizes.",
            )
        )
    errors.raise_all(problems)
    rows_per_second = float(sum(rate.per_second for rate in declared.values()))
    most = min(took / rows for rows, took in taken)
    slopes = [(t - s) / (n - m) for (m, s), (n, t) in combinations(taken, 2) if n != m]
    slope = median(slopes) if slopes else 0.0
    per_row = min(slope, most) if slope > 0 else most
    per_batch = max(median(took - per_row * rows for rows, took in taken), 0.0)
    return Feasibility(rows_per_second, per_batch, per_row, often, away_us / 1e6, slope <= 0)
