"""What is shipped of every event, and what each column means. Known to the driver and to the workers.

Every column costs time in the shuffle and on the way to Python, so small things share one BIGINT, the *bits* of a row:

======  ==============================================================================
0–1     which slice the row is for: 0 the one before its own, 1 its own, 2 the next;
        in the state of a stream 2 says that no match may start here any more
2–      one bit per source of the kernel: whether the event is a candidate for it; where these are more than
        MOST_FLAGS, they are in columns of their own
next    the number of the event's type, where a kernel asks for it
31      whether the partition's key is NULL     } when the only key is an integer
32–63   the partition's key                     } of at most 32 bits
56–61   for which group of kernels the row is, when kernels of several partitions search together
======  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tocsin.kernels.model import WORD_BITS, Template

BITS = "__tocsin_bits"
TIME = "__tocsin_us"
TYPE = "__tocsin_type"
KEY = "__tocsin_key"  # never shipped: read from the bits
TEXT = "__tocsin_text"
POSITION = "__tocsin_position"  # what orders all events, where FIRST or LAST looks for one among all matches
CLOCK = "__tocsin_clock"  # of rows that take no part in a stream: their time
SOURCE = "__tocsin_source"  # of a stream: the number of the DataFrame, and above it that of a type with a rate
TYPE_AT = 16
SOURCE_MASK = (1 << TYPE_AT) - 1
EVENT = "__tocsin_event"  # of a stream that shows late events: all of it, as JSON
START, END = "__tocsin_start", "__tocsin_end"
FIRST_HALF, SECOND_HALF = "__tocsin_half1", "__tocsin_half2"
MISSING = "__tocsin_missing"  # with time-outs: how many parts of the pattern there are, 0 for a match
PASSED_ON = "__tocsin_passed_on"  # a match that was found before

FLAGS_AT = 2
OWN_COPY = 1  # what bits 0–1 hold for the slice an event lies in
SPENT = 2  # and for an event of a stream that an after-match policy has skipped
MOST_FLAGS = 44  # so many fit beside the numbers of types and groups
KEY_AT = 31
MOST_BITS = 62
GROUP_AT = 56


def column(number: int) -> str:
    """The name of a shipped column."""
    return f"__tocsin_c{number}"


def variable(number: int) -> str:
    """The name of the column that holds a variable's events in a match."""
    return f"__tocsin_v{number}"


def value(number: int) -> str:
    """The column of what is asked of a bag that does not travel."""
    return f"__tocsin_f{number}"


def position(time: Any, ties: Iterable[Any], kind: Any, text: Any) -> dict[str, Any]:
    """The parts of a position by name, in the order in which they count."""
    return {"time": time, **{f"tie{number}": tie for number, tie in enumerate(ties)}, "type": kind, "text": text}


def member(number: int) -> str:
    """The name of an attribute inside a variable's column: by number, since Spark may ignore the case of names."""
    return f"f{number}"


@dataclass(frozen=True)
class Packing:
    """How the bits of a row are laid out."""

    sources: int  # how many bits say what the event may be bound to
    kinds: int = 0  # how many bits hold the number of its type; 0 when nobody asks
    key_bits: int = 0  # how wide the partition's key is that is there too; 0: it is not

    @property
    def has_key(self) -> bool:
        """Whether the partition's key is there."""
        return self.key_bits > 0

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of flags that do not fit into the bits; none where they do."""
        if self.sources <= MOST_FLAGS:
            return ()
        return tuple(f"__tocsin_flags{number}" for number in range(-(-self.sources // WORD_BITS)))

    @property
    def kinds_at(self) -> int:
        """Where the number of the type begins."""
        return FLAGS_AT + (0 if self.words else self.sources)

    @property
    def size(self) -> int:
        """How many bits are used, without the key."""
        return self.kinds_at + self.kinds


@dataclass(frozen=True)
class Gathered:
    """A variable's column in a match."""

    name: str
    # the shipped columns of its attributes, or `KEY`, in the order of the struct's fields; None for an attribute that
    # no event brings, but one that is made may have
    columns: tuple[str | None, ...]
    is_iterated: bool  # whether it is an array of structs
    # the names of these attributes; "" for a column that is there to count events only
    attributes: tuple[str, ...] = ()
    types: tuple[pa.DataType | None, ...] = ()  # the types of those that have no column


@dataclass(frozen=True)
class Layout:
    """The shipped columns."""

    packing: Packing  # what the bits hold
    time: str = TIME  # the column of the time: microseconds, or a time stamp
    # the columns of the partition's key; none when it is in the bits or there is no partition
    keys: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()  # the columns of the kernel's `carried`, in its order
    gathered: tuple[Gathered, ...] = ()  # the variables whose events are part of the result
    digests: tuple[str, ...] = ()  # the columns d1 and d2 of `match_id`, or none
    # ties, type, text: the columns that order events of one instant; for kernels that ask for an order only
    ties: tuple[str, ...] = ()
    type: str | None = None
    text: str | None = None
    # by event type, the attributes that `Rows.event` must know and their columns
    wants: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()  # the kinds of events that the kernel makes
    # by number of the template, the columns d1 and d2 of events that are left with some attributes
    trimmed: Mapping[int, tuple[str, str]] = field(default_factory=dict)
