"""When matches become due on a stream, and how long events are retained (SEMANTICS §6, §7).

Input    a search and its temporal network
Output   a `Due`: offsets of times as data, and how they apply to matches; a `Retention` for events

A match is *due at* D, the last time at which an event could still change it:

match                             D
-----                             -
without absences                  the time of its last event
guarded by absences               the end of their windows, if that is later
compared with other matches       when all of these are due: L after the start, L being the longest lifetime
a time-out                        `start + W − 1`, since what would extend it comes before `start + W`

Once the watermark is beyond D everything that matters has arrived and the match is emitted. One step therefore emits
the matches with `old watermark ≤ D < new watermark`, and none twice. Aggregates over all matches of a window are
emitted when every match that starts in it is due.

An event is evicted when the watermark is beyond its time plus the longest lifetime of the variables it may be bound to
(`analysis.lifetimes` has the proofs). Events that only count for positions are retained as long as any. Where no time
bounds a match, but its number of events n (R-CER, 000 §5), those before the last n − 1 of a partition are evicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import assert_never

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.analysis.lifetimes import lifetimes, span_of_words, span_us, waits_after_end
from tocsin.analysis.temporal import Network
from tocsin.kernels.model import WORD_BITS, Bag, Flags, Integers, Mask, Matches, Rows, has_any
from tocsin.kernels.reach import Search
from tocsin.language.ast import PER_START, Skip

BEFORE_ALL, AFTER_ALL = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Due:
    """The offsets that decide when matches are emitted and events evicted."""

    is_eager: bool  # whether a match is emitted with its last event
    # When matches are due that are compared with others: this long after their start, or their end. With both, a policy
    # keeps them after the first time, and they are emitted after the second. With windows, the first counts from the
    # end of the window.
    after_start_us: int | None
    after_end_us: int | None
    # Parts of a match that may be decided after its end: absences and gatherings, with their bounds.
    absences: tuple[alg.Around, ...]
    retention_us: tuple[int, ...]  # by source of the search, how long an event is retained that may be bound to it
    longest_us: int  # how long any event is retained
    every_us: int | None = None  # the length of the windows that aggregates are emitted for; None: matches are emitted
    window_us: int | None = None  # with time-outs, how long after their start they wait; None: there are none
    # Where matches have at most so many events more and take any time, how many events of a partition before the
    # watermark are retained; None: time decides.
    last_events: int | None = None

    def is_due(self, matches: Matches, rows: Rows, before: int, now: int) -> Mask:
        """Which matches are due by now and were not before."""
        due = self.due_at(matches, rows)
        return (due >= before) & (due < now)

    def due_at(self, matches: Matches, rows: Rows) -> Integers:
        """D of each match."""
        if self.after_start_us is not None:
            return later(self.last_of_window(matches.start), self.after_start_us)
        if self.after_end_us is not None:
            return later(matches.end, self.after_end_us)
        found = matches.end
        for absence in self.absences:
            found = np.maximum(found, _deadline(absence, matches, rows.ts))
        if self.window_us is not None and matches.missing is not None:
            found = np.where(matches.missing > 0, later(matches.start, self.window_us - 1), found)
        return found

    def last_of_window(self, starts: Integers) -> Integers:
        """The last instant of the windows in which matches start; without windows, their starts."""
        return starts if self.every_us is None else later(starts - starts % self.every_us, self.every_us - 1)

    def range_due(self, before: int, now: int) -> tuple[int, int] | None:
        """The first and the last instant of what is due by now and was not before, where it is emitted by time.

        With windows, those that are over; without, all of the time between. None: nothing is.
        """
        first, end = (before, now) if self.every_us is None else (self._closed(before), self._closed(now))
        return None if first == end else (first, end - 1)

    def _closed(self, watermark: int) -> int:
        """Where the first window begins that is not over: all matches that start before it are due."""
        assert self.every_us is not None and self.after_start_us is not None
        due = watermark - self.after_start_us
        return max(due - due % self.every_us, BEFORE_ALL)


@dataclass(frozen=True)
class Retention:
    """Which events a shard retains for all of its rules, as offsets from the watermark of the inputs."""

    flags: Mapping[int, int]  # by flag, how long an event is retained that has it
    unflagged_us: int | None = None  # for events without a flag, which count for positions; None: they are evicted
    # In place of time, how many events of each partition before the watermark; None: time decides.
    last_events: int | None = None

    def live(self, ts: Integers, flags: Flags, watermark: int, partition: Integers | None = None) -> tuple[Mask, Flags]:
        """Which events are retained, and the flags for which each is; the same array where these are all it has."""
        if self.last_events is not None:
            return (ts >= watermark) | _last_of_each(ts, partition, watermark, self.last_events), flags
        past = np.zeros_like(flags)
        for bit, life in self.flags.items():
            word, place = divmod(bit, WORD_BITS) if flags.ndim > 1 else (..., bit)
            past.T[word] |= (ts < max(watermark - life, BEFORE_ALL)).astype(np.int64) << place
        left = flags & ~past
        wanted = reduce(or_, (1 << bit for bit in self.flags), 0)
        live = has_any(left, wanted)
        if self.unflagged_us is not None:
            live |= ~has_any(flags) & (ts >= max(watermark - self.unflagged_us, BEFORE_ALL))
        return live, left if (left != flags)[live].any() else flags


def due_of(search: Search, distances: Network, *, eager: bool = True, counts: bool = False) -> Due:
    """State when the matches of a bounded query become due.

    `eager` allows to emit matches before the watermark has passed them, where that changes nothing. With `counts`,
    matches are counted: they are then words within a window, and nothing is absent.
    """
    query = search.query
    every_us = query.every_us
    if not search.has_variables and distances.unbounded_pair() is not None:
        assert search.most_events is not None
        return Due(False, None, None, (), (), 0, last_events=search.most_events - 1)
    known = lifetimes(query, distances)  # where matches are counted, by the names of the query that they stand for
    if not search.has_variables or counts:
        span = span_of_words(query, known)
        longest = span + (every_us or 0)
        is_eager = eager and not search.counts_every_event and not search.needs_order and every_us is None
        retention = (longest,) * len(search.sources)
        return Due(is_eager, None if every_us is None else span, None, (), retention, longest, every_us)
    absences = tuple(alg.around_in(query.pattern))
    span = span_us(query, known)
    found = [known[source.variable] for source in search.sources]
    retention = tuple(life for life in found if life is not None)
    assert len(retention) == len(found)
    # Events are retained longer for these, so that the first of a match is there when its end is due (D64).
    after_end = span if waits_after_end(query) else None
    waits = query.after_match.skip is not Skip.REUSE or query.output in PER_START or every_us is not None
    after_start = span if waits else None
    if after_start is not None and after_end is not None and every_us is not None:
        after_start += after_end
    return Due(
        is_eager=eager and not absences and not query.compares_matches and every_us is None,
        after_start_us=after_start,
        after_end_us=after_end,
        absences=absences,
        retention_us=retention,
        longest_us=max(retention, default=0),
        every_us=every_us,
        window_us=query.window_us if query.timeouts else None,
    )


def _last_of_each(ts: Integers, partition: Integers | None, watermark: int, number: int) -> Mask:
    """The last events of each partition before the watermark, and those of the same instant as the first of them."""
    found: Mask = np.zeros(len(ts), np.bool_)
    before = np.flatnonzero(ts < watermark)
    if not number or not len(before):
        return found
    code = np.zeros(len(before), np.int64) if partition is None else partition[before]
    order = np.lexsort((ts[before], code))
    sorted_code, sorted_ts = code[order], ts[before][order]
    ends = np.searchsorted(sorted_code, sorted_code, side="right")
    begins = np.searchsorted(sorted_code, sorted_code, side="left")
    found[before[order]] = sorted_ts >= sorted_ts[np.maximum(ends - number, begins)]
    return found


def _deadline(absence: alg.Around, matches: Matches, ts: Integers) -> Integers:
    """The last time of an event that could block each match, or be gathered; `BEFORE_ALL` where it has no part."""
    found = np.full(len(matches), AFTER_ALL, np.int64)
    for bound in absence.upper:
        found = np.minimum(found, _limit(bound, matches, ts))
    guards = np.zeros(len(matches), np.bool_)
    for name in alg.variables_of(absence.part):
        guards |= _counts(matches.events[name]) > 0
    return np.where(guards & (found < AFTER_ALL), found, BEFORE_ALL)


def _limit(bound: alg.Bound, matches: Matches, ts: Integers) -> Integers:
    """The last time that one bound allows; everything where its anchor is not there (R13)."""
    offset = bound.offset_us - bound.step_us
    match bound.anchor:
        case alg.Whole():
            return later(matches.start if bound.anchor is alg.Whole.START else matches.end, offset)
        case alg.FirstOf(variables):
            times = _extreme(variables, matches, ts, np.minimum, AFTER_ALL)
            return np.where(times == AFTER_ALL, times, later(times, offset))
        case alg.LastOf(variables):
            times = _extreme(variables, matches, ts, np.maximum, BEFORE_ALL)
            return np.where(times == BEFORE_ALL, AFTER_ALL, later(times, offset))
        case _:
            assert_never(bound.anchor)


def later(times: Integers, by_us: int) -> Integers:
    """Times plus a length, as far as there is time."""
    if by_us < 0:
        return np.where(times < BEFORE_ALL - by_us, BEFORE_ALL, times + by_us)
    return np.where(times > AFTER_ALL - by_us, AFTER_ALL, times + by_us)


def _extreme(variables: Sequence[str], matches: Matches, ts: Integers, choose: np.ufunc, nothing: int) -> Integers:
    """The least or the largest time of the events of some variables."""
    found = np.full(len(matches), nothing, np.int64)
    for name in variables:
        held = matches.events[name]
        if isinstance(held, Bag):
            match = np.repeat(np.arange(len(matches)), np.diff(held.offsets))
            choose.at(found, match, ts[held.rows[held.offsets[0] : held.offsets[-1]]])
        else:
            bound = np.flatnonzero(held >= 0)
            found[bound] = choose(found[bound], ts[held[bound]])
    return found


def _counts(held: Integers | Bag) -> Integers:
    return np.diff(held.offsets) if isinstance(held, Bag) else (held >= 0).astype(np.int64)
