"""Order by position or tie columns as order by time: events that tie are moved apart, so little that no window changes.

Where at most K events of a group tie, time t becomes 2 K t + r for the r-th of them. Two events that were d apart are
then between 2 K d − (K − 1) and 2 K d + (K − 1) apart, so that different distances stay different. A search that
compares nothing but times orders tied events without knowing it, and its windows still measure time alone (R7, R41).

code        meaning
----        -------
room        K
unit        what all distances between times are a multiple of; 1 unless that is needed to stay within 64 bits
shift       the time that becomes 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError
from tocsin.gaps import Gaps
from tocsin.kernels.lists import Merged
from tocsin.kernels.model import Integers, Mask, Matches, Rows, differs, starts_of_runs
from tocsin.kernels.policies.flat import groups_of
from tocsin.kernels.search.helpers import LEAST

# The times of a task stay below the first and its distances below the second, so that no sum of them overflows.
MOST_SPAN, MOST_DISTANCE = 2**60, 2**61
# Generated code contains distances: few different numbers of ties mean few functions to compile.
STEP_BITS = 6


@dataclass(frozen=True)
class Stretch:
    """How times become times that differ; see the module."""

    room: int
    unit: int = 1
    shift: int = 0

    @property
    def factor(self) -> int:
        """How many new units one old unit is."""
        return 2 * self.room

    def times(self, ts: Integers, places: Integers) -> Integers:
        """The new times of events at some places among those that tie with them."""
        return (ts - self.shift) // self.unit * self.factor + places

    def back(self, times: Integers) -> Integers:
        """The old times."""
        return times // self.factor * self.unit + self.shift

    def more_than(self, distance_us: int) -> int:
        """The limit that new distances exceed, or reach from below, exactly when the old ones do: `>` and `≤`.

        Examples
        --------
        >>> Stretch(2).more_than(10), Stretch(2).less_than(10)
        (41, 39)
        """
        return _within(distance_us // self.unit * self.factor + self.room - 1)

    def less_than(self, distance_us: int) -> int:
        """The limit that new distances stay below, or reach from above, exactly when the old ones do: `<` and `≥`."""
        return _within(-(-distance_us // self.unit) * self.factor - (self.room - 1))

    def node(self, node: alg.Node) -> alg.Node:
        """A pattern with new windows and distances; bounds by neighbours compare the order, and stay."""
        match node:
            case alg.Within():
                return replace(node, part=self.node(node.part), window_us=self.less_than(node.window_us))
            case alg.Around():
                return self.around(node)
            case _:
                return node.map_children(self.node)

    def around(self, node: alg.Around) -> alg.Around:
        """An absence or a gathering with new distances."""
        lower = tuple(self._bound(bound, is_lower=True) for bound in node.lower)
        upper = tuple(self._bound(bound, is_lower=False) for bound in node.upper)
        return replace(node, part=self.node(node.part), lower=lower, upper=upper)

    def _bound(self, bound: alg.Bound, *, is_lower: bool) -> alg.Bound:
        if bound.order is alg.Order.TIES:
            return bound
        change = self.more_than if bound.strict is is_lower else self.less_than
        return replace(bound, offset_us=change(bound.offset_us))

    def matches(self, found: Matches) -> Matches:
        """Matches with their old start and end."""
        return replace(found, start=self.back(found.start), end=self.back(found.end))


def _within(distance: int) -> int:
    return max(-MOST_DISTANCE, min(distance, MOST_DISTANCE))


# --- one list of events ---------------------------------------------------------------------------


def apart(events: Merged, window_us: int | None, instants: Integers | None = None) -> tuple[Merged, int | None]:
    """Move tied events to times that differ, and adapt the window.

    `instants` are the ranks of all rows by time and tie columns: events equal in both still tie. Without them, the
    order of the list counts.

    Examples
    --------
    >>> numbers = [np.array(one) for one in ([0, 1, 2], [5, 5, 7], [0], [3], [0], [9])]
    >>> moved, window = apart(Merged(numbers[0], numbers[1], None, *numbers[2:]), 2)
    >>> moved.times.tolist(), moved.own_high.tolist(), window
    ([0, 1, 8], [13], 7)
    """
    times = events.times
    is_new = differs(times)
    is_new[events.group_from[events.group_from < len(times)]] = True
    is_other = None if instants is None else differs(instants[events.rows]) | is_new
    places = _places(is_new, is_other)
    room = int(places.max(initial=0)) + 1
    if room == 1:
        return events, window_us
    made = _stretch(times, room)
    is_whole = bool(len(events.own_low)) and int(events.own_low[0]) == LEAST
    moved = replace(
        events,
        times=made.times(times, places),
        own_low=events.own_low if is_whole else _owned(made, events.own_low, times, made.less_than),
        own_high=events.own_high if is_whole else _owned(made, events.own_high, times, made.more_than),
    )
    return moved, None if window_us is None else made.less_than(window_us)


def _owned(made: Stretch, limits: Integers, times: Integers, change: Callable[[int], int]) -> Integers:
    """The first or last new times that groups own, no further than a little beyond the events."""
    first, last = int(times.min()) - made.unit, int(times.max()) + made.unit
    known = {limit: change(max(first, min(limit, last)) - made.shift) for limit in set(limits.tolist())}
    return np.array([known[limit] for limit in limits.tolist()], np.int64)


# --- rows in any order ----------------------------------------------------------------------------


def stretched(rows: Rows) -> tuple[Rows, Stretch | None]:
    """Rows whose times contain the order of their tie columns, and what happened to the times; None: nothing."""
    assert rows.instants is not None and rows.owned is None
    plain = replace(rows, instants=None)
    groups = groups_of(rows)
    by = np.lexsort((rows.instants, groups))
    is_new = differs(rows.ts[by], groups[by])
    places = np.empty(len(by), np.int64)
    places[by] = _places(is_new, is_new | differs(rows.instants[by]))
    room = int(places.max(initial=0)) + 1
    if room == 1:
        return plain, None
    bits = -(-(room - 1).bit_length() // STEP_BITS) * STEP_BITS
    if rows.slice is None:
        made = _stretch(rows.ts, room, 1 << bits)
        return replace(plain, ts=made.times(rows.ts, places)), made
    first = int(rows.slice.min())
    made = _stretch(rows.ts, room, 1 << bits, shift=first * rows.width_us)
    ts = made.times(rows.ts, places)
    return replace(plain, ts=ts, slice=rows.slice - first, width_us=rows.width_us * made.factor), made


def _places(is_new: Mask, is_other: Mask | None) -> Integers:
    """The number of each entry among those that tie with it: of the entry itself, or of different instants."""
    counts = np.arange(len(is_new)) if is_other is None else np.cumsum(is_other)
    return np.asarray(counts - counts[starts_of_runs(is_new)], np.int64)


def _stretch(times: Integers, room: int, wanted: int | None = None, *, shift: int | None = None) -> Stretch:
    """The stretch for times of which so many tie, with more room where that is wanted and fits."""
    least = int(times.min())
    base = least if shift is None else shift
    span = max(int(times.max()) - base, base - least)
    base = (base + 2**63) % 2**64 - 2**63  # differences of 64 bits are right even where this overflows
    for some in (room if wanted is None else wanted, room):
        if 2 * some * (span + 1) <= MOST_SPAN:
            return Stretch(some, shift=base)
    unit = 0 if shift is not None or span >= 2**63 else int(np.gcd.reduce(times - least))
    if unit > 1 and 2 * room * (span // unit + 1) <= MOST_SPAN:
        return Stretch(room, unit, base)
    raise UnsupportedError(
        f"{room:,} events of one instant, among events of {span:,} µs, are too many to be searched by their order.",
        gap=Gaps.CROWDED_INSTANT,
    )
