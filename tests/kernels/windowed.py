"""Γ as the exchange that Spark makes of it: events are sent to each window that they fall in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tocsin.kernels.model import Integers, Rows
from tocsin.kernels.reach import Windows


def holds(windows: Windows, longest_us: int) -> bool:
    """Whether everything within `longest_us` lies in a window, wherever it begins."""
    return windows.advance_us <= windows.size_us - longest_us + 1 and windows.size_us >= longest_us


def assigned(rows: Rows, windows: Windows) -> tuple[Rows, Integers]:
    """A row for every event and window that it falls in, its window as its slice; and the row that each was.

    Examples
    --------
    >>> events = Rows(ts=np.array([0, 9, 10, 19]), flags=np.zeros(4, np.int64))
    >>> found, was = assigned(events, Windows(10, 15))
    >>> list(zip(found.ts.tolist(), found.slice.tolist()))
    [(0, 0), (9, 0), (10, 1), (19, 1), (0, -1), (10, 0)]
    """
    advance = windows.advance_us
    own, within = np.divmod(rows.ts, advance)
    # Not `ts + before`: at the end of all time that would be too much for 64 bits.
    later, within = np.divmod(within + windows.before_us, advance)
    inside = [
        np.flatnonzero(within + back * advance < windows.size_us) for back in range(-(-windows.size_us // advance))
    ]
    was = np.concatenate(inside)
    numbers = np.concatenate([(own + later)[some] - back for back, some in enumerate(inside)])
    read = rows.event
    taken = replace(
        rows,
        ts=rows.ts[was],
        flags=rows.flags[was],
        partition=None if rows.partition is None else rows.partition[was],
        slice=numbers,
        width_us=advance,
        columns=tuple((values[was], None if nulls is None else nulls[was]) for values, nulls in rows.columns),
        kinds=None if rows.kinds is None else rows.kinds[was],
        order=None if rows.order is None else rows.order[was],
        instants=None if rows.instants is None else rows.instants[was],
        event=None if read is None else lambda row: read(int(was[row])),
    )
    return taken, was
