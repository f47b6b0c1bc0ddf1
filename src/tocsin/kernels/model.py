"""The input and output of a kernel: columns of numbers in, indices of rows out.

code        meaning
----        -------
Source      one variable of the pattern, negated ones included; a row may be bound to it when its flag is set
Carried     a column of values that conditions between events need; what only one event decides is in the flags
Rows        the events of one task in any order, as columns
Matches     what was found: for every variable the rows it holds
Made        events among them that are no rows, of the kinds that a kernel's `Template`s say
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import InternalError
from tocsin.language import expressions as ex

Integers = NDArray[np.int64]
Flags = NDArray[np.int64]  # one word for each row, or a row of words where there are more flags than one word has
WORD_BITS = 62
Mask = NDArray[np.bool_]
NO_FLOOR = -(2**63)


class Held(Enum):
    """How a kernel holds a value.

    A RANK is the place of a value among all values of its family in the task, counted from 0 with equal values equal:
    strings, decimals and bytes are compared by it. Columns of one family are ranked together.
    """

    INTEGER = "int64"  # integers; time stamps, days and intervals in microseconds
    FLOAT = "float64"
    BOOLEAN = "bool"
    RANK = "rank"


@dataclass(frozen=True)
class Slot:
    """A value of one event that conditions between events use: the largest part of them that speaks of it alone.

    `expression` refers to the event as `variable`, always without an index.
    """

    variable: str
    expression: ex.Expression
    held: Held


@dataclass(frozen=True)
class Carried:
    """A column of `Rows`: for the events of each type, the value of an expression over one variable."""

    held: Held
    family: int | None  # of a RANK: columns of one family are ranked together
    expressions: Mapping[str, ex.Expression]  # by event type; other types hold anything


@dataclass(frozen=True)
class Source:
    """The events a variable may hold."""

    variable: str
    types: tuple[str, ...]  # its event types; several when OR branches share the name
    is_negated: bool
    # The number of its flag. An event has it when it is of one of the types and makes all conditions TRUE.
    bit: int
    # The conjuncts that speak of this variable alone and hold for each of its events by itself.
    conditions: tuple[ex.Expression, ...] = ()


def is_flagged(flags: Flags, bit: int) -> Mask:
    """Which rows have a flag.

    Examples
    --------
    >>> is_flagged(np.array([1, 2, 3]), 1).tolist(), is_flagged(np.array([[0, 1], [1, 0]]), WORD_BITS).tolist()
    ([False, True, True], [True, False])
    """
    word, place = divmod(bit, WORD_BITS) if flags.ndim > 1 else (0, bit)
    found: Mask = (flags if flags.ndim == 1 else flags[:, word]) & (1 << place) != 0
    return found


def has_any(flags: Flags, bits: int = -1) -> Mask:
    """Which rows have one of these flags, given as the bits of a number; all flags by default."""
    found: Mask
    if flags.ndim == 1:
        found = (flags if bits < 0 else flags & bits) != 0
        return found
    found = np.zeros(len(flags), np.bool_)
    for word in range(flags.shape[1]):
        wanted = -1 if bits < 0 else (bits >> (word * WORD_BITS)) & ((1 << WORD_BITS) - 1)
        if wanted:
            found |= flags[:, word] & wanted != 0
    return found


@dataclass(frozen=True)
class Rows:
    """The events of one task, in any order; all arrays have one entry per row."""

    ts: Integers  # time in microseconds
    # Which variables each may be bound to. None for an event that only counts for positions.
    flags: Flags
    # A number per partition; rows of different partitions never meet. None: one partition.
    partition: Integers | None = None
    # The time slice each row was sent to, when slices are used: a row near an edge is sent to two, as two rows. A match
    # is reported by the slice that owns its start (or its end): the one with `slice · width_us ≤ start < (slice + 1) ·
    # width_us`.
    slice: Integers | None = None
    width_us: int = 0
    # Without slices, the first and the last start (or end) of the matches that are wanted. None: all are.
    owned: tuple[int, int] | None = None
    # The values of the kernel's `carried`, in its order, and which of them are NULL (None: none).
    columns: tuple[tuple[NDArray[Any], Mask | None], ...] = ()
    # The number of each row's event type in the sorted tuple of the pattern's types; needed when a variable has
    # several.
    kinds: Integers | None = None
    # The place of each row among all rows of its partition by (ts, tie, type, text), when positions matter. Rows of one
    # group have different places. Neighbours differ by 1: where contiguity matters, only events that do not count may
    # be left out, and they take no number.
    order: Integers | None = None
    # The rank of each row by (ts, tie columns), equal for rows that are equal in both, where tie columns order events
    # of one instant (R41). None: time alone orders them.
    instants: Integers | None = None
    # The attributes of a row as Python values, for conditions that numbers cannot decide; the kernel says which
    # attributes it `wants`.
    event: Callable[[int], Mapping[str, Any]] | None = None

    @property
    def nullable(self) -> frozenset[int]:
        """The numbers of the columns with NULLs."""
        return frozenset(number for number, (_, nulls) in enumerate(self.columns) if nulls is not None)


def reader(rows: Rows) -> Callable[[int], Mapping[str, Any]]:
    """A function that returns the attributes of a row as Python values, made once for each."""

    @cache
    def read(row: int) -> Mapping[str, Any]:
        if rows.event is None:
            raise InternalError("Conditions are evaluated on Python values, and the rows have no attributes.")
        return rows.event(row)

    return read


@dataclass(frozen=True)
class Bag:
    """The rows of an iterated variable: those of match i are `rows[offsets[i]:offsets[i + 1]]`, in order of time."""

    offsets: Integers
    rows: Integers

    @property
    def sizes(self) -> Integers:
        """How many rows each match has."""
        return np.diff(self.offsets)

    @property
    def shown(self) -> Bag:
        """The rows that a result shows."""
        return self

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.offsets.nbytes + self.rows.nbytes

    def sums(self, values: Callable[[Integers], Integers]) -> Integers:
        """The sum of a value of rows for each match, modulo 2**64."""
        totals = sums_before(values(self.rows))
        return totals[self.offsets[1:]] - totals[self.offsets[:-1]]

    def part(self, begin: int, end: int) -> Bag:
        """The bags of successive matches."""
        offsets = self.offsets[begin : end + 1]
        return Bag(offsets - offsets[0], self.rows[offsets[0] : offsets[-1]])

    def take(self, indices: Integers) -> Bag:
        """The bags of some matches."""
        offsets, where = picked(self.offsets, indices)
        return Bag(offsets, self.rows[where])

    def copy(self) -> Bag:
        """A bag that keeps no longer array alive."""
        return Bag(self.offsets.copy(), self.rows.copy())


class Ranges(Bag):
    """Bags that share one list: match i has the row `heads[i]`, then `listed[begins[i]:ends[i]]`.

    Windows that overlap take no more room than their list. A result shows the first and the last row of each: all else
    that it needs of them are aggregates. `offsets` and `rows` are there for those who ask, and take the room of all.
    """

    def __init__(self, heads: Integers, begins: Integers, ends: Integers, listed: Integers) -> None:
        vars(self).update(heads=heads, begins=begins, ends=ends, listed=listed)

    heads: Integers
    begins: Integers
    ends: Integers
    listed: Integers

    @cached_property
    def offsets(self) -> Integers:
        """Where the bag of each match begins and ends in `rows`."""
        return sums_before(self.sizes)

    @cached_property
    def rows(self) -> Integers:
        """The rows of all bags."""
        sizes, firsts = self.sizes, self.offsets[:-1]
        places = np.arange(self.offsets[-1]) + np.repeat(self.begins - 1 - firsts, sizes)
        found = np.empty(len(places), np.int64)
        is_listed = np.ones(len(places), np.bool_)
        is_listed[firsts] = False
        found[is_listed] = self.listed[places[is_listed]]
        found[firsts] = self.heads
        return found

    @property
    def sizes(self) -> Integers:
        """How many rows each match has."""
        return self.ends - self.begins + 1

    @property
    def shown(self) -> Bag:
        """The first and the last row of each match, or its only one."""
        is_longer = self.ends > self.begins
        offsets = sums_before(1 + is_longer)
        rows = np.empty(offsets[-1], np.int64)
        rows[offsets[:-1]] = self.heads
        rows[offsets[1:][is_longer] - 1] = self.listed[self.ends[is_longer] - 1]
        return Bag(offsets, rows)

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return 3 * self.heads.nbytes + self.listed.nbytes

    @cached_property
    def low(self) -> int:
        """Where the part of the list begins that some match has."""
        return int(self.begins.min(initial=2**62))

    @cached_property
    def involved(self) -> Integers:
        """The heads of all matches, then the part of the list that some match has."""
        return np.concatenate((self.heads, self.listed[self.low : int(self.ends.max(initial=0))]))

    def summed(self, values: Integers) -> Integers:
        """The sum for each match of a value of the rows that are `involved`, modulo 2**64."""
        totals = sums_before(values[len(self.heads) :])
        return values[: len(self.heads)] + (totals[self.ends - self.low] - totals[self.begins - self.low])

    def sums(self, values: Callable[[Integers], Integers]) -> Integers:
        """The sum of a value of rows for each match, modulo 2**64."""
        return self.summed(values(self.involved))

    def part(self, begin: int, end: int) -> Ranges:
        """The bags of successive matches."""
        return self.take(np.arange(begin, end))

    def take(self, indices: Integers) -> Ranges:
        """The bags of some matches."""
        return Ranges(self.heads[indices], self.begins[indices], self.ends[indices], self.listed)


def sums_before(values: NDArray[Any]) -> Integers:
    """The sums of all values before each place, and of all at the end; modulo 2**64."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)))


def starts_of_runs(is_new: Mask) -> Integers:
    """For each element the index at which its run of equal ones begins."""
    return np.maximum.accumulate(np.where(is_new, np.arange(len(is_new), dtype=np.int64), 0))


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
    starts = sums_before(sizes)
    where = np.arange(starts[-1], dtype=np.int64) + np.repeat(offsets[indices] - starts[:-1], sizes)
    return starts, where


def portions(offsets: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Cut lists, list i at `offsets[i]:offsets[i + 1]`, into stretches of at most so many elements, or one list."""
    begin = 0
    while begin < len(offsets) - 1:
        end = max(int(np.searchsorted(offsets, offsets[begin] + most, side="right")) - 1, begin + 1)
        yield begin, end
        begin = end


def differs(*columns: Integers) -> Mask:
    """Whether each entry of sorted columns differs from the one before; the first does."""
    found: Mask = np.zeros(len(columns[0]), np.bool_)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


@dataclass(frozen=True)
class Template:
    """A kind of event that a pattern makes: attributes of the event read (PROJECT), or new values (AGG).

    Of the attributes of an event read, `absent` are NULL all the same.
    """

    attributes: tuple[str, ...]
    is_derived: bool
    absent: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The attributes that the event read brings."""
        return () if self.is_derived else tuple(name for name in self.attributes if name not in self.absent)


@dataclass(frozen=True)
class Made:
    """Events that are no row: made by AGG, or left of one by PROJECT. Number `base + i` in `Matches` means i here."""

    base: int  # how many rows there are
    rows: Integers  # the row that was read when each was made
    templates: Integers  # the number of its template in the kernel's `templates`
    places: Integers  # its place in the columns of its template
    # For each derived template, the values of its attributes in their order, as Python values; nothing for others.
    columns: tuple[tuple[Sequence[Any], ...], ...]


@dataclass(frozen=True)
class Matches:
    """Matches found together."""

    # The times of their first and last events, in microseconds.
    start: Integers
    end: Integers
    # For a variable of one event its row, or −1 when it is unbound; for an iterated variable a `Bag`.
    events: Mapping[str, Integers | Bag] = field(default_factory=dict)
    # In the same layout, for every bound event the largest time that SEQ and iteration demand before it in the way this
    # match was derived, `NO_FLOOR` when there is none. Only there when the policy `next` needs it (R2).
    floors: Mapping[str, Integers | Bag] = field(default_factory=dict)
    made: Made | None = None  # the events among them that are no rows; None when all are
    # What is asked of bags that are not here: for each, the numbers of all matches, and which of them are NULL.
    values: tuple[tuple[NDArray[Any], Mask], ...] = ()
    # With time-outs, 0 for a match, and for a time-out how many parts of the pattern it has.
    missing: Integers | None = None
    # The rows of their first and last events, where no variable need hold these (PROJECT, NEXT).
    edges: tuple[Integers, Integers] | None = None

    def __len__(self) -> int:
        """How many there are."""
        return len(self.start)
