"""`match_id` of matches that are rows of arrays: steps 4 to 6 of the recipe in `tocsin.engines.spark.match_ids`.

XXH64 of 64-bit numbers, one column at a time, as Spark's `xxhash64` chains them: each value is seeded with the hash
before it, the first with 42. The two digests of every event come from Spark; here they are gathered by row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, reduce
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches, differs, starts_of_runs

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

SEED = 42
U1, U2, U3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
U4, U5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)
MIXING = 0x5851F42D4C957F2D  # odd, so that few different keys look alike
ZERO, EIGHT = np.zeros(1, np.uint64), np.uint64(8)
BLOCK_BYTES = 1 << 20  # of texts that are hashed at once


# --- XXH64 ----------------------------------------------------------------------------------------

# Arrays wrap around as the algorithm wants; only NumPy's scalars would warn.


def chain(seeds: Words, values: Integers) -> Words:
    """The hashes of one more value each."""
    return _avalanche(_with_word(seeds + U5 + EIGHT, values.view(np.uint64)))


def chain_texts(seeds: Words, begins: Integers, ends: Integers, data: Bytes) -> Words:
    """The hashes of one more text each, given as places in UTF-8 data."""
    found = np.empty(len(seeds), np.uint64)
    sizes = ends - begins
    order = np.argsort(sizes, kind="stable")
    edges = np.flatnonzero(np.diff(sizes[order], prepend=-1, append=-1))
    for first, last in pairwise(edges.tolist()):
        size = int(sizes[order[first]])
        block = max(BLOCK_BYTES // max(size, 1), 1)
        for at in range(first, last, block):
            some = order[at : min(at + block, last)]
            found[some] = _of_texts(seeds[some], data[begins[some][:, None] + np.arange(size)])
    return found


def _of_texts(seeds: Words, texts: Bytes) -> Words:
    """XXH64 of texts of one length, one in each row, as published."""
    size = texts.shape[1]
    words = np.ascontiguousarray(texts[:, : size // 8 * 8]).view(np.uint64)
    stripes = size // 32 * 4
    if stripes:
        lanes = [seeds + U1 + U2, seeds + U2, seeds, seeds - U1]
        for number in range(stripes):
            lanes[number % 4] = _mixed(lanes[number % 4], words[:, number])
        found = sum((_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), ZERO)
        for lane in lanes:
            found = (found ^ _mixed(ZERO, lane)) * U1 + U4
    else:
        found = seeds + U5
    found = found + np.uint64(size)
    for number in range(stripes, size // 8):
        found = _with_word(found, words[:, number])
    at = size // 8 * 8
    if at + 4 <= size:
        half = np.ascontiguousarray(texts[:, at : at + 4]).view(np.uint32)[:, 0].astype(np.uint64)
        found = _rotated(found ^ half * U1, 23) * U2 + U3
        at += 4
    for place in range(at, size):
        found = _rotated(found ^ texts[:, place].astype(np.uint64) * U5, 11) * U1
    return _avalanche(found)


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(lanes: Words, words: Words) -> Words:
    return _rotated(lanes + words * U2, 31) * U1


def _with_word(found: Words, words: Words) -> Words:
    return _rotated(found ^ _mixed(ZERO, words), 27) * U1 + U4


def _avalanche(found: Words) -> Words:
    found = (found ^ (found >> np.uint64(33))) * U2
    found = (found ^ (found >> np.uint64(29))) * U3
    return found ^ (found >> np.uint64(32))


@cache
def constant(*values: int | str) -> int:
    """The hash of constants, as the unsigned seed of what follows them."""
    found = np.array([SEED], np.uint64)
    for value in values:
        if isinstance(value, int):
            found = chain(found, np.array([value], np.int64))
        else:
            text = np.frombuffer(value.encode(), np.uint8)
            found = _of_texts(found, text[None, :])
    return int(found[0])


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
    first, second = (
        _hashes(salt, matches, _gather(column, others, matches.made))
        for salt, column, others in zip((1, 2), digests, of_made, strict=True)
    )
    return first, second


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


def _hashes(salt: int, matches: Matches, digests: Gather) -> Integers:
    names = sorted(matches.events)
    shape = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    found = np.full(len(matches), constant(salt, shape), np.uint64)
    found = chain(chain(found, matches.start), matches.end)
    for rows in matches.edges or ():
        found = chain(found, digests(rows))
    for name in names:
        held = matches.events[name]
        found = _with_bag(found, held, digests) if isinstance(held, Bag) else _with_event(found, held, digests)
    return found.view(np.int64)


def _with_event(found: Words, rows: Integers, digests: Gather) -> Words:
    is_bound = rows >= 0
    found = chain(found, is_bound.astype(np.int64))
    if is_bound.all():
        return chain(found, digests(rows))
    found[is_bound] = chain(found[is_bound], digests(rows[is_bound]))
    return found


def _with_bag(found: Words, bag: Bag, digests: Gather) -> Words:
    sizes = bag.sizes
    found = chain(found, sizes)
    is_bound = sizes > 0
    found[is_bound] = chain(found[is_bound], bag.sums(digests)[is_bound])
    return found


def halves(first: Integers, second: Integers, ordinals: Integers) -> tuple[Integers, Integers]:
    """The two halves of `match_id`, which `identity.text` writes."""
    one, other = (
        chain(chain(chain(np.full(len(first), constant(salt), np.uint64), first), second), ordinals).view(np.int64)
        for salt in (1, 2)
    )
    return one, other


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
    """Computes the two halves of `match_id`, and numbers equal matches 0, 1, … over all that it is given.

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

    def __call__(self, matches: Matches) -> tuple[Integers, Integers]:
        """The halves of the ids of matches."""
        made = None if self.made is None or matches.made is None else self.made(matches.made)
        first, second = match_hashes(matches, self.digests, made)
        return halves(first, second, self.ordinals(matches, first, second))

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
