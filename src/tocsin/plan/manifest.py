"""What one event ships: a row whose columns are expressions over the event. Knows neither Spark nor Arrow.

A scan renders a manifest: as SQL over DataFrames, or in Python over Arrow tables. One manifest serves one search or
many; each search has a `Layout`, which says what the columns mean to it. A column that several searches ask for is
shipped once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema, attributes_of, column_types, variable_schemas
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.analysis.types import NULL, DataType
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import Held, Source
from tocsin.kernels.reach import Search
from tocsin.language import expressions as ex
from tocsin.plan.layout import POSITION, Layout, Packing

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


# --- what the result needs ------------------------------------------------------------------------


Needs = Mapping[str, tuple[str, ...]]


def needed(query: alg.Query, attributes: Needs, id: str | None = None) -> dict[str, tuple[str, ...]]:
    """The attributes of each variable that RETURN, GROUP BY and HAVING ask for, in the order of its `attributes`.

    A variable that nobody mentions is left out; one that is only counted needs none. Without RETURN all are needed;
    with an `id` column that one is, of every variable. Last comes `POSITION`, where the result asks which event is the
    first or the last of all matches.
    """
    outputs = [returned.expression for returned in (*query.returns, *query.group_by)]
    outputs += [query.having] if query.having is not None else []
    if not query.returns:
        return {name: tuple(attributes[name]) for name in query.variables}
    found: dict[str, set[str]] = {}
    for output in outputs:
        _collect(output, attributes, found)
    if id is not None:
        for name in query.variables:
            found.setdefault(name, set()).add(id)
    placed = _placed(outputs) if query.over_all_matches else frozenset()
    return {
        name: tuple(attribute for attribute in attributes[name] if attribute in found[name])
        + (POSITION,) * (name in placed)
        for name in query.variables
        if name in found
    }


def attributes_by_variable(query: alg.Query, schemas: Mapping[str, Schema]) -> dict[str, tuple[str, ...]]:
    """The attributes that the events of each variable may have."""
    held = variable_schemas(query.pattern, schemas)
    return {
        name: tuple(one for one in attributes_of(held[name]) if not one.startswith(RESERVED_PREFIX))
        for name in query.variables
    }


def brought(search: Search, needs: Needs) -> dict[str, tuple[str, ...]]:
    """The needs of the variables whose events matches bring; the others are only aggregated."""
    return {name: attributes for name, attributes in needs.items() if name not in search.hidden}


def _placed(outputs: Iterable[ex.Expression]) -> frozenset[str]:
    """The variables of which the first or the last event of all matches is asked for (R18)."""
    return frozenset(
        name
        for output in outputs
        for node in output.walk()
        if isinstance(node, ex.Aggregate) and node.function in ("first", "last")
        for name in ex.variables_in(node)
    )


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
