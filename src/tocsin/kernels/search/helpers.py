"""Statuses that generated code returns, and small functions that it calls."""

from __future__ import annotations

from typing import Any

LEAST = -(2**63)
MOST = 2**63 - 1
LINEAR = 4
# Why a call returns: it is done, or the outputs are full; the stacks, the arena or the list of runs are too small; one
# start has too many matches, or takes too many steps. After `DONE`, `TOO_MANY` and `TOO_LONG` it does not go on.
DONE, FULL, DEEP, GROW, WIDE, TOO_MANY, TOO_LONG = range(7)


def first_after(times: Any, floor: int, low: int, high: int) -> int:
    """The first index in [low, high) whose time is larger than `floor`; `high` when there is none.

    A few steps forward, then doubling steps, then halving: the index is nearly always close to `low`.
    """
    near = low + LINEAR
    near = near if near < high else high
    while low < near and times[low] <= floor:
        low += 1
    if low < near or low == high:
        return low
    step = LINEAR
    last = low  # times before `last` are not larger
    while last + step < high and times[last + step] <= floor:
        last += step
        step += step
    end = last + step
    end = end if end < high else high
    while last < end:
        middle = (last + end) >> 1
        if times[middle] <= floor:
            last = middle + 1
        else:
            end = middle
    return last


def plus(time: int, distance: int) -> int:
    """`time + distance`, kept within 64 bits."""
    if distance >= 0:
        return time + distance if time <= MOST - distance else MOST
    return time + distance if time >= LEAST - distance else LEAST


HELPERS = {"first_after": first_after, "plus": plus}
