"""Order by position as order by time: events that tie are moved apart, by so little that no window is changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tocsin.errors import UnsupportedError
from tocsin.kernels.layout import Merged
from tocsin.kernels.search.helpers import LEAST, MOST


def apart(events: Merged, window_us: int | None) -> tuple[Merged, int | None]:
    """The same events at times that differ, and a window for them.

    Where at most K events tie, time t becomes 2 K t + r for the r-th of them. Events that were less than W apart are
    now at most 2 K (W - 1) + K - 1 apart, others at least 2 K W - (K - 1): K (2 W - 1) lies between.

    Examples
    --------
    >>> numbers = [np.array(one) for one in ([0, 1, 2], [5, 5, 7], [0], [3], [0], [9])]
    >>> moved, window = apart(Merged(numbers[0], numbers[1], None, *numbers[2:]), 2)
    >>> moved.times.tolist(), moved.own_high.tolist(), window
    ([0, 1, 8], [17], 6)
    """
    times = events.times
    is_new = np.ones(len(times), np.bool_)
    is_new[1:] = times[1:] != times[:-1]
    is_new[events.group_from[events.group_from < len(times)]] = True
    begins = np.flatnonzero(is_new)
    place = np.arange(len(times)) - np.repeat(begins, np.diff(np.append(begins, len(times))))
    most = int(place.max(initial=0)) + 1
    if most == 1:
        return events, window_us
    is_whole = bool(len(events.own_low)) and int(events.own_low[0]) == LEAST
    base = int(times.min())  # small numbers, wherever times count from
    if 2 * most * (int(times.max()) - base) > MOST // 2:
        raise UnsupportedError(
            f"{most:,} events of one instant are too many to count all matches by their order.",
            hint="give events times that differ, or split them with PARTITION BY.",
        )
    moved = replace(
        events,
        times=(times - base) * (2 * most) + place,
        own_low=events.own_low if is_whole else (events.own_low - base) * (2 * most),
        own_high=events.own_high if is_whole else (events.own_high - base) * (2 * most) + most - 1,
    )
    return moved, None if window_us is None else most * (2 * window_us - 1)
