"""`match_id` of matches that are rows of arrays: steps 4 to 6 of the recipe in `tocsin.engines.spark.match_ids`.

XXH64 of 64-bit numbers, one column at a time, as Spark's `xxhash64` chains them: each value is seeded with the hash
before it, the first with 42. The two digests of every event come from Spark; here they are gathered by row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels.model import Bag, Integers, Made, Mask, Matches, differs, starts_of_runs

Words = NDArray[np.uint64]

BITS = (1 << 64) - 1
SEED = 42
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
U1, U2, U3, U4, U5 = (np.uint64(prime) for prime in (P1, P2, P3, P4, P5))
EIGHT = np.uint64(8)


# --- XXH64 ----------------------------------------------------------------------------------------


def chain(seeds: Words, values: Integers) -> Words:
    """The hashes of one more value each."""
    # Arrays wrap around as the algorithm wants; only NumPy's scalars would warn.
    mixed = _rotated(values.view(np.uint64) * U2, 31) * U1
    found = _rotated((seeds + U5 + EIGHT) ^ mixed, 27) * U1 + U4
    found = (found ^ (found >> np.uint64(33))) * U2
    found = (found ^ (found >> np.uint64(29))) * U3
    return found ^ (found >> np.uint64(32))


def chain_texts(seeds: Words, texts: Sequence[str]) -> Words:
    """The hashes of one more text each, one by one."""
    found = (_xxh64(text.encode(), seed) for seed, text in zip(seeds.tolist(), texts, strict=True))
    return np.fromiter(found, np.uint64, len(texts))


def _rotated(words: Words, bits: int) -> Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def constant(*values: int | str) -> int:
    """The hash of constants, as the unsigned seed of what follows them."""
    return reduce(
        lambda seed, value: _xxh64(
            value.encode() if isinstance(value, str) else (value & BITS).to_bytes(8, "little"), seed
        ),
        values,
        SEED,
    )


def _xxh64(data: bytes, seed: int) -> int:
    """XXH64 of a text, as published; the arrays above have numbers only."""
    size, at = len(data), 0
    if size >= 32:
        lanes = [seed + P1 + P2, seed + P2, seed, seed - P1]
        for at in range(0, size - 31, 32):
            for lane in range(4):
                lanes[lane] = _mixed(lanes[lane], _word(data, at + 8 * lane, 8))
        at += 32
        found = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane_value in lanes:
            found = (found ^ _mixed(0, lane_value)) * P1 + P4 & BITS
    else:
        found = seed + P5
    found = found + size & BITS
    while at + 8 <= size:
        found = _turned(found ^ _mixed(0, _word(data, at, 8)), 27) * P1 + P4 & BITS
        at += 8
    if at + 4 <= size:
        found = _turned(found ^ _word(data, at, 4) * P1 & BITS, 23) * P2 + P3 & BITS
        at += 4
    for byte in data[at:]:
        found = _turned(found ^ byte * P5 & BITS, 11) * P1 & BITS
    found = (found ^ found >> 33) * P2 & BITS
    found = (found ^ found >> 29) * P3 & BITS
    return found ^ found >> 32


def _word(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _turned(value: int, bits: int) -> int:
    value &= BITS
    return (value << bits | value >> (64 - bits)) & BITS


def _mixed(lane: int, word: int) -> int:
    return _turned(lane + word * P2, 31) * P1 & BITS


# --- matches --------------------------------------------------------------------------------------


Digests = tuple[Integers, Integers]
Gather = Callable[[Integers], Integers]


def match_hashes(matches: Matches, digests: Digests, made: Digests | None = None) -> Digests:
    """h1 and h2 of matches, from the digests of the rows that their events are; all variables must be in `events`.

    `made` are the digests of the values of the events that were made.
    """
    of_made = (None, None) if made is None else made
    first, second = (
        _hashes(salt, matches, _gather(column, others, matches.made))
        for salt, column, others in zip((1, 2), digests, of_made, strict=True)
    )
    return first, second


def row_digests(rows: int) -> Digests:
    """Digests that depend on the number of a row alone, for comparisons within one task."""
    first, second = (chain(np.full(rows, constant(salt), np.uint64), np.arange(rows)).view(np.int64) for salt in (1, 2))
    return first, second


def _gather(digests: Integers, of_made: Integers | None, made: Made | None) -> Gather:
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


def twins(columns: list[Integers]) -> Mask | None:
    """Which rows are equal to another; None when no row is."""
    order = np.lexsort(columns)
    starts = differs(*(column[order] for column in columns))
    if starts.all():
        return None
    alone = starts & np.append(starts[1:], True)
    twins = np.empty(len(order), np.bool_)
    twins[order] = ~alone
    return twins


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
        *groups: Integers | None,
        has_id: bool = False,
        made: Callable[[Made], Digests] | None = None,
    ) -> None:
        self.digests, self.made = digests, made
        columns = [column for column in (*digests, *groups) if column is not None]
        self._has_twin = None if has_id else twins(columns)
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
