"""What one event ships: a row whose columns are expressions over the event. Knows neither Spark nor Arrow.

A scan renders a manifest: as SQL over DataFrames, or in Python over Arrow tables. One manifest serves one search or
many; each search has a `Layout`, which says what the columns mean to it. A column that several searches ask for is
shipped once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema, column_types
from tocsin.analysis.types import NULL, DataType
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import Held, Source
from tocsin.kernels.searches import Search
from tocsin.language import expressions as ex
from tocsin.plan.layout import Layout, Packing
from tocsin.plan.needs import Needs

Shape = Mapping[str, DataType]


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
