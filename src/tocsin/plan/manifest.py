"""What one event ships: a row whose columns are expressions over the event, and what they mean.

A scan renders a manifest: as SQL over DataFrames, or in Python over Arrow tables. One manifest serves one search or
many, each with a `Layout`: what the columns mean to it. A column that several searches ask for is shipped once.

Every column costs time on the way to Python, so small things share one BIGINT, the *bits* of a row:

======  ==============================================================================
0–1     which slice the row is for: 0 the one before its own, 1 its own, 2 the next;
        in the state of a stream 2 says that no match may start here any more
2–      one bit per source of the kernel: whether the event is a candidate for it; above MOST_FLAGS, in columns
next    the number of the event's type, where a kernel asks for it
31      whether the partition's key is NULL     } when the only key is an integer
32–63   the partition's key                     } of at most 32 bits
56–61   for which group of kernels the row is, when kernels of several partitions search together
======  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema, column_types
from tocsin.analysis.types import NULL, DataType
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import WORD_BITS, Held, Source, Template
from tocsin.kernels.reach import MOST_GROUPS, Search
from tocsin.language import expressions as ex

Shape = Mapping[str, DataType]


# --- names of columns, and what they mean to a search ---------------------------------------------

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
MATCH_ID = "__tocsin_match_id"
MISSING = "__tocsin_missing"  # with time-outs: how many parts of the pattern there are, 0 for a match
PASSED_ON = "__tocsin_passed_on"  # a match that was found before

FLAGS_AT = 2
OWN_COPY = 1  # what bits 0–1 hold for the slice an event lies in
SPENT = 2  # and for an event of a stream that an after-match policy has skipped
MOST_FLAGS = 44  # so many fit beside the numbers of types and groups
KEY_AT = 31
MOST_BITS = 62
GROUP_AT = MOST_BITS - (MOST_GROUPS - 1).bit_length()


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
    attributes: tuple[str, ...] = ()  # their names; "" for a column that is there to count events only
    types: tuple[pa.DataType | None, ...] = ()  # the types of those that have no column


@dataclass(frozen=True)
class Layout:
    """The shipped columns."""

    packing: Packing  # what the bits hold
    time: str = TIME  # the column of the time: microseconds, or a time stamp
    keys: tuple[str, ...] = ()  # the columns of the partition's key; none when it is in the bits
    carried: tuple[str, ...] = ()  # the columns of the kernel's `carried`, in its order
    gathered: tuple[Gathered, ...] = ()  # the variables whose events are part of the result
    digests: tuple[str, ...] = ()  # the columns d1 and d2 of `match_id`, or none
    # Where the `id` column of events is shipped in place of their digests: its name, and the column that holds it. Not
    # on streams, whose checkpoints know a layout by its text.
    id: tuple[str, str] | None = field(default=None, repr=False)
    # ties, type, text: the columns that order events of one instant; for kernels that ask for an order only
    ties: tuple[str, ...] = ()
    type: str | None = None
    text: str | None = None
    # by event type, the attributes that `Rows.event` must know and their columns
    wants: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    templates: tuple[Template, ...] = ()  # the kinds of events that the kernel makes
    # by number of the template, the columns d1 and d2 of events that are left with some attributes
    trimmed: Mapping[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def identifies(self) -> bool:
        """Whether matches have ids."""
        return bool(self.digests) or self.id is not None


# --- columns --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attribute:
    """An attribute of events of these types, in one type."""

    name: str
    type: DataType
    types: frozenset[str]


@dataclass(frozen=True)
class Valued:
    """An expression over one event, and the types that its attributes have in the query; None: their own."""

    expression: ex.Expression
    shape: Shape | None


@dataclass(frozen=True)
class Value:
    """A value that conditions between events read: an expression for the events of each type."""

    held: Held
    values: Mapping[str, Valued]

    def can_hold(self, other: Value) -> bool:
        """Whether one column can hold both: no event has two values, and ranked values have one type."""
        same = all(
            anonymous(self.values.get(kind, one).expression) == anonymous(one.expression)
            for kind, one in other.values.items()
        )
        is_one_type = self.held is not Held.RANK or self.values.keys() == other.values.keys()
        return self.held is other.held and same and is_one_type


@dataclass(frozen=True)
class Key:
    """An attribute of the partition; times of several types meet as microseconds."""

    attribute: str
    type: DataType


@dataclass(frozen=True)
class Time:
    """The time in microseconds."""


@dataclass(frozen=True)
class Tie:
    """A column that orders events of one instant; of type NULL where its values are of several types."""

    attribute: str
    type: DataType


@dataclass(frozen=True)
class TypeName:
    """The event type."""


@dataclass(frozen=True)
class Text:
    """The attributes as canonical text, which orders events that nothing else does (R16)."""


@dataclass(frozen=True)
class Position:
    """The place of an event in the order of all events (R16): time, ties, type and text."""

    ties: tuple[Tie, ...]


@dataclass(frozen=True)
class Digest:
    """One of the two digests of whole events; 0 for events of other types than these, None: of every event."""

    half: int
    types: frozenset[str] | None
    id: str | None


@dataclass(frozen=True)
class TrimmedDigest:
    """A digest of events that PROJECT leaves with some attributes, of which `kept` are not NULL."""

    half: int
    types: frozenset[str]
    attributes: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """Flags that do not fit into the bits of a row."""

    number: int


Content = Attribute | Value | Key | Time | Tie | TypeName | Text | Position | Digest | TrimmedDigest | Word


@dataclass(frozen=True)
class Manifest:
    """What one event ships."""

    sources: tuple[Source, ...]  # the flags: which events are candidates, and of what
    types: tuple[str, ...]  # the event types, in the order of their numbers
    partition: alg.Partition  # the partition of all searches; none where they differ
    packing: Packing  # what the bits of a row hold
    columns: Mapping[str, Content]  # the columns beside the bits, by name
    layouts: tuple[Layout, ...]  # what the columns mean to each search
    # of each search, the variables whose events its matches bring, and the types of their attributes
    shapes: tuple[Mapping[str, Shape], ...]
    # by source, the types of the attributes that its conditions read; sources that are not there read their own
    source_shapes: Mapping[str, Shape]
    keys: Mapping[str, str]  # the columns of keys, by attribute
    counts_every_event: bool = False  # whether events that are candidates of nothing count for positions
    crosses_partitions: bool = False  # whether positions count over all partitions

    @property
    def time(self) -> str:
        """The column of the time."""
        return self.layouts[0].time


# --- what asks for them ---------------------------------------------------------------------------


Search_co = TypeVar("Search_co", bound=Search, covariant=True)


@dataclass(frozen=True)
class Reader(Generic[Search_co]):
    """A search that reads rows."""

    search: Search_co
    needs: Needs  # the attributes of each variable that its matches bring
    id: str | None = None  # the column that identifies its events, if there is one
    ties: tuple[str, ...] = ()  # the columns that order its events of one instant
    with_digests: bool = True  # whether its matches are identified by digests of their events
    digests_id: bool = False  # whether a column of simple ids is shipped, which the worker digests


@dataclass(frozen=True)
class EventTypes:
    """The events that searches read."""

    schemas: Mapping[str, Schema]  # the attributes of each event type
    times: Mapping[str, str]
    # the attributes of types that no pattern names, whose events count for positions
    others: Mapping[str, Schema] = field(default_factory=dict)
    # whether the scan has all events and numbers tie columns of several types, so that only those that meet are
    # compared
    numbers_ties: bool = False

    @property
    def every(self) -> tuple[Schema, ...]:
        """The attributes of all types."""
        return (*self.schemas.values(), *self.others.values())

    def ties(self, attributes: Sequence[str]) -> tuple[Tie, ...]:
        """Tie columns in the types that all inputs agree on.

        Raises
        ------
        TypeMismatchError
            When they agree on none.
        """
        try:
            shape = column_types("tie", self.every, attributes)
        except errors.TypeMismatchError:
            if self.numbers_ties:
                return tuple(Tie(name, NULL) for name in attributes)
            shown = [
                "struct<" + ",".join(f"{name}:{one.attributes[name].exact}" for name in attributes) + ">"
                for one in self.every
            ]
            raise errors.TypeMismatchError(
                f"The columns of `tie` cannot be compared between inputs: {' and '.join(dict.fromkeys(shown))}.",
                hint="`tie=` names columns that have one type in all inputs.",
            ) from None
        return tuple(Tie(name, shape[name]) for name in attributes)


# --- what the result needs ------------------------------------------------------------------------


Needs = Mapping[str, tuple[str, ...]]


def needed(query: alg.Query, attributes: Needs) -> dict[str, tuple[str, ...]]:
    """The attributes of each variable that RETURN, GROUP BY and HAVING ask for, in the order of its `attributes`.

    A variable that nobody mentions is left out; one that is only counted needs none. Without RETURN all are needed.
    Last comes `POSITION`, where the result asks which event is the first or the last of all matches.
    """
    if not query.returns:
        return {name: tuple(attributes[name]) for name in query.variables}
    found: dict[str, set[str]] = {}
    for output in query.outputs:
        _collect(output, attributes, found)
    placed = _placed(query.outputs) if query.over_all_matches else frozenset()
    return {
        name: tuple(attribute for attribute in attributes[name] if attribute in found[name])
        + (POSITION,) * (name in placed)
        for name in query.variables
        if name in found
    }


def brought(search: Search, needs: Needs) -> dict[str, tuple[str, ...]]:
    """The needs of the variables whose events matches bring; the others are only aggregated."""
    return {name: attributes for name, attributes in needs.items() if name not in search.hidden}


def _placed(outputs: Iterable[ex.Expression]) -> frozenset[str]:
    """The variables of which the first or the last event of all matches is asked for (R18)."""
    aggregates = (node for output in outputs for node in output.walk() if isinstance(node, ex.Aggregate))
    asked = (node for node in aggregates if node.function in ("first", "last"))
    return frozenset(name for node in asked for name in ex.variables_in(node))


def _collect(node: ex.Expression, attributes: Needs, found: dict[str, set[str]]) -> None:
    match node:
        case ex.Attribute():
            found.setdefault(node.variable, set()).add(node.path[0])
        case ex.Aggregate(argument=ex.Variable() as counted):
            found.setdefault(counted.name, set())
        case ex.Variable():
            found.setdefault(node.name, set()).update(attributes[node.name])
        case _:
            for child in node.children():
                _collect(child, attributes, found)
