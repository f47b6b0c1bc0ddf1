"""Picking and joining `Matches`, bags and floors included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tocsin.kernels.model import Bag, Integers, Mask, Matches


def take(matches: Matches, which: Integers | Mask) -> Matches:
    """Some of the matches: those of a mask, or those at these indices in their order."""
    indices = as_indices(which)
    return Matches(
        matches.start[indices],
        matches.end[indices],
        _taken(matches.events, indices),
        _taken(matches.floors, indices),
    )


def concatenate(parts: Sequence[Matches]) -> Matches:
    """All matches of several `Matches` of one pattern, in their order.

    Floors are kept when every part has them.
    """
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return Matches(nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    return Matches(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        _joined([part.events for part in parts]),
        _joined([part.floors for part in parts]) if all(part.floors for part in parts) else {},
    )


def as_indices(which: Integers | Mask) -> Integers:
    """The indices a mask sets; indices stay what they are."""
    return np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64, copy=False)


def picked(offsets: Integers, indices: Integers) -> tuple[Integers, Integers]:
    """Of lists in one array (list i at `offsets[i]:offsets[i + 1]`), those at `indices`.

    Returns
    -------
    tuple
        The offsets of the new lists, and where each of their elements was.

    Examples
    --------
    >>> offsets, where = picked(np.array([0, 2, 3, 6]), np.array([2, 0]))
    >>> offsets.tolist(), where.tolist()
    ([0, 3, 5], [3, 4, 5, 0, 1])
    """
    sizes = offsets[indices + 1] - offsets[indices]
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False)
    where = np.arange(starts[-1], dtype=np.int64) + np.repeat(offsets[indices] - starts[:-1], sizes)
    return starts, where


def _taken(held: Mapping[str, Integers | Bag], indices: Integers) -> dict[str, Integers | Bag]:
    taken: dict[str, Integers | Bag] = {}
    for variable, values in held.items():
        if isinstance(values, Bag):
            offsets, where = picked(values.offsets, indices)
            taken[variable] = Bag(offsets, values.rows[where])
        else:
            taken[variable] = values[indices]
    return taken


def _joined(parts: Sequence[Mapping[str, Integers | Bag]]) -> dict[str, Integers | Bag]:
    joined: dict[str, Integers | Bag] = {}
    for variable, first in parts[0].items():
        if not isinstance(first, Bag):
            joined[variable] = np.concatenate([part[variable] for part in parts])
            continue
        bags = [bag for part in parts if isinstance(bag := part[variable], Bag)]
        sizes = np.concatenate([np.diff(bag.offsets) for bag in bags])
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64, copy=False)
        # A bag's rows may begin before its first offset and end after its last.
        rows = np.concatenate([bag.rows[bag.offsets[0] : bag.offsets[-1]] for bag in bags])
        joined[variable] = Bag(offsets, rows)
    return joined
