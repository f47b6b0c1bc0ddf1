"""Picking and joining `Matches`; bags, floors and events that were made included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches, Ranges


def take(matches: Matches, which: Integers | Mask) -> Matches:
    """Some of the matches: those of a mask, or those at these indices in their order."""
    indices = as_indices(which)
    return Matches(
        matches.start[indices],
        matches.end[indices],
        _taken(matches.events, indices),
        _taken(matches.floors, indices),
        matches.made,
        tuple((numbers[indices], nulls[indices]) for numbers, nulls in matches.values),
        None if matches.missing is None else matches.missing[indices],
        None if matches.edges is None else (matches.edges[0][indices], matches.edges[1][indices]),
    )


def concatenate(parts: Sequence[Matches]) -> Matches:
    """All matches of several `Matches` of one pattern, in their order.

    Floors are kept when every part has them. Events that were made are numbered anew where parts have their own.
    """
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return Matches(nothing, nothing)
    if len(parts) == 1:
        return parts[0]
    made, shifts = _made_by_all([part.made for part in parts])
    events = [
        _shifted(part.events, part.made, shift) if shift else part.events
        for part, shift in zip(parts, shifts, strict=True)
    ]
    return Matches(
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        _joined(events),
        _joined([part.floors for part in parts]) if all(part.floors for part in parts) else {},
        made,
        tuple(
            (np.concatenate([numbers for numbers, _ in some]), np.concatenate([nulls for _, nulls in some]))
            for some in zip(*(part.values for part in parts), strict=True)
        ),
        _all_missing(parts),
        _all_edges(parts),
    )


def _all_missing(parts: Sequence[Matches]) -> Integers | None:
    known = [part.missing for part in parts if part.missing is not None]
    return np.concatenate(known) if known else None


def _all_edges(parts: Sequence[Matches]) -> tuple[Integers, Integers] | None:
    known = [part.edges for part in parts if part.edges is not None]
    return (np.concatenate([one for one, _ in known]), np.concatenate([one for _, one in known])) if known else None


def _made_by_all(several: Sequence[Made | None]) -> tuple[Made | None, list[int]]:
    """All events that parts have made, each once, and how much later those of each part come in them."""
    kept: list[Made] = []
    shifts = [0] * len(several)
    for number, made in enumerate(several):
        if made is None:
            continue
        before = next((place for place, one in enumerate(kept) if one is made), len(kept))
        if before == len(kept):
            kept.append(made)
        shifts[number] = sum(len(one.rows) for one in kept[:before])
    if len(kept) < 2:
        return (kept[0] if kept else None), shifts
    places = []
    sizes = [0] * len(kept[0].columns)
    for made in kept:
        offsets = np.array(sizes, np.int64)
        places.append(made.places + (offsets[made.templates] if len(sizes) else 0))
        sizes = [size + (len(columns[0]) if columns else 0) for size, columns in zip(sizes, made.columns, strict=True)]
    columns = tuple(
        tuple(_column(column_parts) for column_parts in zip(*parts, strict=True))
        for parts in zip(*(made.columns for made in kept), strict=True)
    )
    return Made(
        kept[0].base,
        np.concatenate([made.rows for made in kept]),
        np.concatenate([made.templates for made in kept]),
        np.concatenate(places),
        columns,
    ), shifts


def _column(parts: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The values of several columns below each other; NULLs may be None, or masked in an array."""
    if all(isinstance(part, np.ndarray) for part in parts):
        found: Sequence[Any] = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
        return found
    return [value for part in parts for value in (part.tolist() if isinstance(part, np.ndarray) else part)]


def _shifted(events: Mapping[str, Integers | Bag], made: Made | None, shift: int) -> dict[str, Integers | Bag]:
    """The same events, where those that were made have later numbers."""
    base = 0 if made is None else made.base

    def later(rows: Integers) -> Integers:
        return np.where(rows >= base, rows + shift, rows)

    return {
        name: Bag(held.offsets, later(held.rows)) if isinstance(held, Bag) else later(held)
        for name, held in events.items()
    }


def as_indices(which: Integers | Mask) -> Integers:
    """The indices a mask sets; indices stay what they are."""
    return np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64, copy=False)


def picked(offsets: Integers, indices: Integers) -> tuple[Integers, Integers]:
    """Of lists in one array (list i at `offsets[i]:offsets[i + 1]`), those at `indices`.

    Returns the offsets of the new lists, and where each of their elements was.

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
        if isinstance(values, Ranges):
            taken[variable] = Ranges(values.heads[indices], values.begins[indices], values.ends[indices], values.listed)
        elif isinstance(values, Bag):
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
