"""From the rows of a task to one sorted list of candidates per variable.

A list holds the candidates of one variable only, so that a loop never walks over events of another type, sorted by
(group, time) or, where positions matter, by (group, position). A group is a partition in a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import UnsupportedError
from tocsin.gaps import Gaps
from tocsin.kernels.model import Integers, Rows, Source, differs, is_flagged
from tocsin.kernels.search.helpers import LEAST, MOST

BITS = 63
MARGIN = 2
HALF = 2**62  # no window is that long


@dataclass(frozen=True)
class Lists:
    """The lists of a task."""

    groups: int  # how many groups there are
    # For each group, what its times count from: small numbers sort faster, and the ends of 64 bits are left free for
    # "before all" and "after all".
    bases: Integers
    arrays: dict[str, NDArray[Any]]  # what generated functions take, by parameter name
    rows: dict[str, Integers]  # variable → the row of each of its candidates


def lists(
    rows: Rows, sources: Sequence[Source], numbers: Mapping[str, str], columns: Mapping[str, Sequence[int]]
) -> Lists:
    """Sort the candidates of every variable, with the carried `columns` each needs; `numbers` are their short names."""
    codes, slice_of = codes_of(rows.partition, rows.slice)
    times, base = _times(rows)
    sorted_by = times if rows.order is None else rows.order
    members: dict[str, tuple[Integers, Integers]] = {}
    for source in sources:
        chosen = np.flatnonzero(is_flagged(rows.flags, source.bit)).astype(np.int64, copy=False)
        members[source.variable] = _sorted(chosen, codes, sorted_by)
    codes_found = [members[source.variable][1] for source in sources if not source.is_negated]
    known = [code[differs(code)] for code in codes_found]
    groups = np.sort(np.concatenate([np.empty(0, np.int64), *known]))
    groups = groups[differs(groups)]
    starts = np.full(len(groups), base) if slice_of is None else slice_of(groups) * rows.width_us
    made = Lists(len(groups), starts, {}, {})
    made.arrays["own_low"], made.arrays["own_high"] = _owned(rows, times, base, len(groups))
    for source in sources:
        name = numbers[source.variable]
        chosen, code = members[source.variable]
        made.rows[source.variable] = chosen
        made.arrays[f"ts_{name}"] = times[chosen]
        made.arrays[f"row_{name}"] = chosen
        made.arrays.update(bounds(name, code, groups))
        if rows.order is not None:
            made.arrays[f"pos_{name}"] = rows.order[chosen]
        if rows.kinds is not None:
            made.arrays[f"kind_{name}"] = rows.kinds[chosen]
        for column in columns.get(source.variable, ()):
            values, nulls = rows.columns[column]
            made.arrays[f"c_{name}_{column}"] = values[chosen]
            if nulls is not None:
                made.arrays[f"null_{name}_{column}"] = nulls[chosen]
    return made


@dataclass(frozen=True)
class Merged:
    """The events of a task in one list, sorted by group, then by position, or by time where there are no positions."""

    rows: Integers  # the row of each event
    times: Integers  # their times, counted from the start of the slice
    places: Integers | None  # their positions, where these matter
    # Where each group begins and ends.
    group_from: Integers
    group_to: Integers
    # The first and the last time of the starts that each group owns.
    own_low: Integers
    own_high: Integers

    def of(self, chosen: NDArray[np.bool_]) -> Merged:
        """Some of its groups."""
        names = ("group_from", "group_to", "own_low", "own_high")
        return replace(self, **{name: getattr(self, name)[chosen] for name in names})

    def window_ends(self, window_us: int | None) -> Integers:
        """For each event the first place behind the window that begins with it; of all groups, behind its group."""
        sizes = self.group_to - self.group_from
        if window_us is None or not len(self.times):
            return np.repeat(self.group_to, sizes)
        past = self.times - np.repeat(self.times[self.group_from], sizes)  # no group is searched beyond its end
        width = int(past.max()) + window_us
        if width * len(sizes) < MOST:
            keys = past + np.repeat(np.arange(len(sizes), dtype=np.int64) * width, sizes)
            return np.searchsorted(keys, keys + (window_us - 1), side="right").astype(np.int64, copy=False)
        found = np.empty(len(past), np.int64)
        for low, high in zip(self.group_from.tolist(), self.group_to.tolist(), strict=True):
            last = np.minimum(past[low:high], MOST - window_us) + (window_us - 1)
            found[low:high] = low + np.searchsorted(past[low:high], last, side="right")
        return found


def merged(rows: Rows, chosen: Integers) -> Merged:
    """Some rows of a task as one list."""
    codes, _ = codes_of(rows.partition, rows.slice)
    times, base = _centered(rows)
    in_order = rows.order if rows.order is not None else rows.instants
    sorted_by = times if in_order is None else in_order
    chosen, code = _sorted(chosen, codes, sorted_by)
    limits = bounds("", code, code[differs(code)])
    low, high = _owned(rows, times, base, len(limits["from_"]))
    places = None if rows.order is None else rows.order[chosen]
    return Merged(chosen, times[chosen], places, limits["from_"], limits["to_"], low, high)


def _times(rows: Rows) -> tuple[Integers, int]:
    """Times from the start of the slice; without slices from a base of all."""
    if rows.slice is None:
        base = _base(rows)
        return rows.ts - base, base
    return rows.ts - rows.slice * rows.width_us, 0  # right even where the product overflows


def _centered(rows: Rows) -> tuple[Integers, int]:
    """Times whose differences, and sums with a window, have 64 bits."""
    if rows.slice is not None or not len(rows.ts):
        return _times(rows)
    low, high = int(rows.ts.min()), int(rows.ts.max())
    if low >= -HALF and high < HALF:
        return rows.ts, 0
    if high - low > MOST:
        raise _too_far_apart()
    base = (low + high) // 2
    return rows.ts - base, base


def _owned(rows: Rows, times: Integers, base: int, groups: int) -> tuple[Integers, Integers]:
    """The first and the last time that each group owns."""
    low, high = (LEAST, MOST) if rows.slice is None else (0, rows.width_us - 1)
    if rows.owned is not None:
        # No further than there are events, so that whoever computes with these numbers stays within 64 bits.
        first, last = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        low, high = max(rows.owned[0] - base, first), min(rows.owned[1] - base, last)
    return np.full(groups, low), np.full(groups, high)


def bounds(name: str, code: Integers, groups: Integers) -> dict[str, Integers]:
    """Where each group begins and ends in a list sorted by group."""
    return {
        f"from_{name}": np.searchsorted(code, groups, side="left").astype(np.int64, copy=False),
        f"to_{name}": np.searchsorted(code, groups, side="right").astype(np.int64, copy=False),
    }


Decode = Callable[[Integers], Integers]


def codes_of(partition: Integers | None, slices: Integers | None) -> tuple[Integers | None, Decode | None]:
    """One number per row for its group, and how the slice of a group is read from its number."""
    if slices is None:
        return partition, None
    if partition is None or not len(slices):
        return slices, lambda groups: groups
    least, most = int(slices.min()), int(slices.max())
    low, high = int(partition.min()), int(partition.max())
    width = most - least + 1
    if ((high - low + 1) * width).bit_length() <= BITS:
        return (partition - low) * width + (slices - least), lambda groups: groups % width + least
    pairs, codes = np.unique(np.stack([partition, slices], axis=1), axis=0, return_inverse=True)
    return codes.reshape(-1).astype(np.int64, copy=False), lambda groups: pairs[groups, 1]


def _sorted(chosen: Integers, codes: Integers | None, values: Integers) -> tuple[Integers, Integers]:
    """Some rows sorted by group and value, and the number of the group of each."""
    order = _order(None if codes is None else codes[chosen], values[chosen])
    chosen = chosen if order is None else chosen[order]
    return chosen, np.zeros(len(chosen), np.int64) if codes is None else codes[chosen]


def _order(code: Integers | None, value: Integers) -> Integers | None:
    """The order that sorts by (code, value); None when it is sorted already."""
    if len(value) < 2:
        return None
    if code is None:
        return None if bool(np.all(value[1:] >= value[:-1])) else np.argsort(value, kind="stable")
    (value, value_bits), (code, code_bits) = _small(value), _small(code)
    if code_bits + value_bits > BITS:
        return np.lexsort((value, code))
    # One packed number sorts much faster than two, and faster still when it holds the place it came from.
    packed = (code << value_bits) | value
    if bool(np.all(packed[1:] >= packed[:-1])):
        return None
    place_bits = (len(packed) - 1).bit_length()
    if code_bits + value_bits + place_bits > BITS:
        return np.argsort(packed, kind="stable")
    ordered = np.sort((packed << place_bits) | np.arange(len(packed)))
    return np.bitwise_and(ordered, (1 << place_bits) - 1, out=ordered)


def _small(numbers: Integers) -> tuple[Integers, int]:
    """Numbers of the same order that are as small as can be had quickly, and how many bits the largest has."""
    low, high = int(numbers.min()), int(numbers.max())
    if (high - low).bit_length() > BITS:
        return numbers, BITS + 1
    above = numbers - low
    # Times are often whole seconds, and keys even numbers: bits that are 0 in all of them are not needed.
    used = int(np.bitwise_or.reduce(above))
    zeros = (used & -used).bit_length() - 1 if used else 0
    return (above >> zeros if zeros else above), used.bit_length() - zeros


def _base(rows: Rows) -> int:
    """The time that others count from without slices: 0, or a little off when the very first or last instants occur.

    Bounds that lie beside a time, or further than 64 bits, must differ from every time.
    """
    if not len(rows.ts):
        return 0
    low, high = int(rows.ts.min()), int(rows.ts.max())
    base = max(high - (MOST - 1), 0) + min(low - (LEAST + MARGIN), 0)
    if low - base < LEAST + MARGIN or high - base >= MOST:
        raise _too_far_apart()
    return base


def _too_far_apart() -> UnsupportedError:
    return UnsupportedError(
        "Events lie at both ends of the times that 64 bits can hold, and one search would have to see them all.",
        gap=Gaps.ENDS_OF_TIME,
    )
