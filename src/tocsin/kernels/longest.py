"""The longest match of each start of an iteration, without enumeration: O2 of paper 002.

Under `any` an iteration `V{m,n} v` whose events are decided one by one has a match for every choice of events in the
window, and `OUTPUT longest` reports one of them for each start: its event, and one event of each later instant of the
window. The one of an instant is its first by position, and with at most n events the first n instants count, since
matches of one length go by R5: the earliest last position, then the earliest positions. So a window is a range of a
list of instants, and the work grows with the events and what is reported. Where the result has no more of a match than
aggregates and its first and last events, these come from prefix sums: windows of any size cost the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.algebra import nodes as alg
from tocsin.kernels.conditions import Conditions
from tocsin.kernels.expressions.leaves import Fold
from tocsin.kernels.layout import Merged, merged
from tocsin.kernels.model import Bag, Integers, Mask, Matches, Ranges, Rows, Source
from tocsin.kernels.policies.after import chained
from tocsin.kernels.ranges import folded
from tocsin.kernels.reach import iteration_of
from tocsin.language.ast import Skip

# Events of matches that come at a time, or matches that are ranges.
AT_ONCE = 1 << 20
RANGES_AT_ONCE = 1 << 16


def is_ranged(query: alg.Query, known: Conditions) -> bool:
    """Whether the longest matches of a query are ranges: no condition speaks of several events."""
    return iteration_of(query) is not None and not (known.tests or known.residual or known.residual_around)


@dataclass(frozen=True)
class _Instants:
    """Candidates by group and position, and the instants they are of.

    `number` is the instant of each candidate, `first` the first candidate of each instant, `ends` for each candidate
    the first instant behind its window.
    """

    rows: Integers
    number: Integers
    first: Integers
    ends: Integers


def longest(query: alg.Query, known: Conditions, source: Source, rows: Rows, span_us: int | None) -> Iterator[Matches]:
    """The longest match of each start that the task owns, in order, as far as the after-match policy keeps them.

    The query `is_ranged`, and its only source is given; rows have positions. Without a span a window is a partition.
    """
    repeat = iteration_of(query)
    assert repeat is not None and rows.order is not None
    events = merged(rows, np.flatnonzero(rows.flags & (1 << source.bit)).astype(np.int64, copy=False))
    group = np.repeat(np.arange(len(events.group_from)), events.group_to - events.group_from)
    instants = _instants(events, group, span_us)
    sizes = instants.ends - instants.number
    if repeat.most is not None:
        sizes = np.minimum(sizes, repeat.most)
    owned = (events.own_low[group] <= events.times) & (events.times <= events.own_high[group])
    chosen = np.flatnonzero((sizes >= max(repeat.least, 1)) & owned)
    lasts = np.where(sizes == 1, np.arange(len(sizes)), instants.first[instants.number + sizes - 1])
    if query.after_match.skip in (Skip.PAST_LAST, Skip.TO_LAST):
        places = rows.order[events.rows]
        frontiers = places[lasts[chosen]] + (query.after_match.skip is Skip.PAST_LAST)
        chosen = chosen[chained(group[chosen], places[chosen], frontiers)]
    listed = instants.rows[instants.first]
    for some in _portions(chosen, sizes, in_ranges=known.ranged is not None):
        begins = instants.number[some] + 1
        bags = Ranges(instants.rows[some], begins, begins + sizes[some] - 1, listed)
        values = tuple(folded(fold, bags, _column(known, fold, rows)) for fold in _folds(known))
        held = bags if known.ranged is not None else Bag(bags.offsets, bags.rows)
        start, end = (rows.ts[events.rows[which]] for which in (some, lasts[some]))
        yield Matches(start, end, {source.variable: held}, values=values)


def _portions(chosen: Integers, sizes: Integers, *, in_ranges: bool) -> Iterator[Integers]:
    """The matches that come at a time."""
    totals = np.arange(1, len(chosen) + 1) if in_ranges else np.cumsum(sizes[chosen])
    most = RANGES_AT_ONCE if in_ranges else AT_ONCE
    begin = 0
    while begin < len(chosen):
        before = int(totals[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(totals, before + most, side="right")), begin + 1)
        yield chosen[begin:end]
        begin = end


def _folds(known: Conditions) -> list[Fold]:
    return [test.folds[0] for test in known.asked.values()]


def _column(known: Conditions, fold: Fold, rows: Rows) -> tuple[NDArray[Any], Mask | None] | None:
    return None if fold.slot is None else rows.columns[known.places[fold.variable, fold.slot.expression]]


def _instants(events: Merged, group: Integers, span_us: int | None) -> _Instants:
    rows, times = events.rows, events.times
    is_first = np.ones(len(rows), np.bool_)
    is_first[1:] = (group[1:] != group[:-1]) | (times[1:] != times[:-1])
    number = np.cumsum(is_first) - 1
    first = np.flatnonzero(is_first)
    ends = np.zeros(len(rows), np.int64)
    if span_us is None:
        ends = np.searchsorted(group[first], group, side="right")
    else:
        for begin, end in zip(events.group_from.tolist(), events.group_to.tolist(), strict=True):
            own = slice(int(number[begin]), int(number[end - 1]) + 1)
            # No further than the last instant, so that sums of a time and a window have 64 bits.
            room = np.minimum(times[end - 1] - times[begin:end], span_us - 1)
            within = times[begin:end] + room
            ends[begin:end] = own.start + np.searchsorted(times[first[own]], within, side="right")
    return _Instants(rows, number.astype(np.int64, copy=False), first, ends.astype(np.int64, copy=False))
