"""`match_id` of matches that are rows of arrays: steps 4 to 6 of the recipe in `tocsin.engines.spark.match_ids`.

The two digests of every event come from elsewhere; here they are gathered by row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np

from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches, differs, starts_of_runs
from tocsin.kernels.xxhash import Words, chain, constant, digits

Ids = Words  # of each match the 32 digits of its id, as four times eight characters
MIXING = 0x5851F42D4C957F2D  # odd, so that few different keys look alike
BLOCK = 1 << 15  # matches that are hashed at once: their numbers stay near the processor


# --- matches --------------------------------------------------------------------------------------


class Gatherable(Protocol):
    """Numbers of rows: an array, or what computes them when they are asked for."""

    def __getitem__(self, rows: Integers, /) -> Integers:
        """The numbers of some rows."""


Digests = tuple[Gatherable, Gatherable]
Hashes = tuple[Integers, Integers]
Gather = Callable[[Integers], Integers]


def match_hashes(matches: Matches, digests: Digests, made: Hashes | None = None) -> Hashes:
    """h1 and h2 of matches, from the digests of the rows that their events are; all variables must be in `events`.

    `made` are the digests of the values of the events that were made.
    """
    of_made = (None, None) if made is None else made
    gathers = [_gather(column, others, matches.made) for column, others in zip(digests, of_made, strict=True)]
    names = sorted(matches.events)
    shape = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    parts = [_Part(None, [gather(rows) for gather in gathers]) for rows in matches.edges or ()]
    parts += [_part(matches.events[name], gathers) for name in names]
    found = np.empty(len(matches), np.int64), np.empty(len(matches), np.int64)
    for begin in range(0, len(matches), BLOCK):
        block = slice(begin, begin + BLOCK)
        times = matches.start[block], matches.end[block]
        for salt, hashes in enumerate(found):
            some = reduce(chain, times, np.full(len(times[0]), constant(salt + 1, shape), np.uint64))
            for part in parts:
                some = part.chained(some, salt, block)
            hashes[block] = some.view(np.int64)
    return found


@dataclass(frozen=True)
class _Part:
    """What a variable of matches, or an edge of theirs, adds to their hashes."""

    counts: Integers | None  # how many events there are; None: there is one, and it is not counted
    sums: Sequence[Integers]  # of their digests, for each of the two hashes

    def chained(self, found: Words, salt: int, block: slice) -> Words:
        """The hashes of a block of matches with the variable."""
        sums = self.sums[salt][block]
        if self.counts is None:
            return chain(found, sums)
        counts = self.counts[block]
        found, is_bound = chain(found, counts), counts > 0
        if is_bound.all():
            return chain(found, sums)
        found[is_bound] = chain(found[is_bound], sums[is_bound])
        return found


def _part(held: Integers | Bag, gathers: Sequence[Gather]) -> _Part:
    if isinstance(held, Bag):
        return _Part(held.sizes, [held.sums(gather) for gather in gathers])
    is_bound = held >= 0
    rows = held if is_bound.all() else np.where(is_bound, held, 0)
    return _Part(is_bound.astype(np.int64), [gather(rows) for gather in gathers])


def row_digests(rows: int) -> Hashes:
    """Digests that depend on the number of a row alone, for comparisons within one task."""
    first, second = (chain(np.full(rows, constant(salt), np.uint64), np.arange(rows)).view(np.int64) for salt in (1, 2))
    return first, second


def _gather(digests: Gatherable, of_made: Integers | None, made: Made | None) -> Gather:
    """From events to their digests."""
    if made is None or of_made is None:
        return lambda rows: digests[rows]
    base = made.base

    def of(numbers: Integers) -> Integers:
        """Equal values that were made at two events are two: behind them comes the event that was read."""
        return chain(of_made[numbers].view(np.uint64), digests[made.rows[numbers]]).view(np.int64)

    def gather(rows: Integers) -> Integers:
        is_made = rows >= base
        if not is_made.any():
            return digests[rows]
        found = digests[np.where(is_made, 0, rows)]
        found[is_made] = of(rows[is_made] - base)
        return found

    return gather


def ids(first: Integers, second: Integers, ordinals: Integers) -> Ids:
    """`match_id`, from the hashes of matches and their numbers among equal ones.

    >>> print(ids(np.array([1]), np.array([2]), np.array([0])).tobytes().decode())
    0d4803b99cf84f88e47050fb1e4c66a5
    """
    found = np.empty((len(first), 4), np.uint64)
    for begin in range(0, len(first), BLOCK):
        block = slice(begin, begin + BLOCK)
        hashed = first[block], second[block], ordinals[block]
        for salt in (1, 2):
            half = reduce(chain, hashed, np.full(len(hashed[0]), constant(salt), np.uint64))
            found[block, 2 * salt - 2] = digits(half >> np.uint64(32))
            found[block, 2 * salt - 1] = digits(half & np.uint64(2**32 - 1))
    return found


# --- equal matches --------------------------------------------------------------------------------


def ordinals(first: Integers, second: Integers) -> Integers:
    """Numbers 0, 1, … for the entries that are equal in both columns.

    Examples
    --------
    >>> ordinals(np.array([5, 7, 5, 5]), np.array([1, 1, 1, 2])).tolist()
    [0, 0, 1, 0]
    """
    order = np.lexsort((second, first))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order)) - starts_of_runs(differs(first[order], second[order]))
    return numbers


def twins(keys: Sequence[Integers], digests: Digests) -> Mask | None:
    """Which rows are equal to another in all columns; None when no row is.

    Digests are looked at only where all keys are equal, so that they may be computed when they are asked for.
    """
    rows = rows_alike(keys)
    if not len(rows):
        return None
    columns = [*(key[rows] for key in keys), *(digest[rows] for digest in digests)]
    order = np.lexsort(columns)
    starts = differs(*(column[order] for column in columns))
    if starts.all():
        return None
    alone = starts & np.append(starts[1:], True)
    found = np.zeros(len(keys[0]), np.bool_)
    found[rows[order]] = ~alone
    return found


def rows_alike(keys: Sequence[Integers]) -> Integers:
    """The rows that are equal to another in all keys, and few others."""
    mixed = reduce(lambda found, key: found * MIXING + key, keys[1:], keys[0])
    if (mixed[1:] > mixed[:-1]).all():
        return np.empty(0, np.int64)
    ordered = np.sort(mixed)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return np.empty(0, np.int64)
    places = np.minimum(np.searchsorted(repeated, mixed), len(repeated) - 1)
    return np.flatnonzero(repeated[places] == mixed)


def holds_any(matches: Matches, marked: Mask) -> Mask:
    """Which matches hold a marked row, or an event that was made of one, or begin or end with one."""
    found = np.zeros(len(matches), np.bool_)
    for rows in matches.edges or ():
        found |= marked[rows]
    if matches.made is not None:
        marked = np.append(marked, marked[matches.made.rows])
    of_row = marked.astype(np.int64)
    for held in matches.events.values():
        found |= held.sums(lambda rows: of_row[rows]) > 0 if isinstance(held, Bag) else (held >= 0) & marked[held]
    return found


class Identity:
    """Computes `match_id`, and numbers equal matches 0, 1, … over all that it is given.

    Equal matches are made of equal rows, which are in the same task, so that only matches of a row with a twin need
    looking at. `groups` are columns (slice, partition) that tell apart rows which never meet. With `has_id`, a column
    identifies events, and equal matches share an id. `made` computes the digests of the values of made events.
    """

    def __init__(
        self,
        digests: Digests,
        times: Integers,
        *groups: Integers | None,
        has_id: bool = False,
        made: Callable[[Made], Hashes] | None = None,
    ) -> None:
        self.digests, self.made = digests, made
        self._has_twin = None if has_id else twins([times, *(each for each in groups if each is not None)], digests)
        self._seen: Counter[tuple[int, int]] = Counter()

    @property
    def may_find_equals(self) -> bool:
        """Whether the number of a match can be another than 0."""
        return self._has_twin is not None

    def __call__(self, matches: Matches) -> Ids:
        """The ids of matches."""
        made = None if self.made is None or matches.made is None else self.made(matches.made)
        first, second = match_hashes(matches, self.digests, made)
        return ids(first, second, self.ordinals(matches, first, second))

    def ordinals(self, matches: Matches, first: Integers, second: Integers) -> Integers:
        """The number of each match among the equal ones so far."""
        numbers = np.zeros(len(matches), np.int64)
        if self._has_twin is not None:
            chosen = np.flatnonzero(holds_any(matches, self._has_twin))
            first, second = first[chosen], second[chosen]
            pairs = list(zip(first.tolist(), second.tolist(), strict=True))
            before = np.array([self._seen[pair] for pair in pairs], np.int64)
            numbers[chosen] = ordinals(first, second) + before
            self._seen.update(pairs)
        return numbers
