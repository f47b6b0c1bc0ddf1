"""The user's DataFrames → one DataFrame of the events that can take part, with the columns the search needs.

Spark decides all that concerns one event: its type, the conditions on it alone (one bit per variable), the values that
conditions between events use. One DataFrame with a type column is read once, whatever the number of variables; inputs
per type are a union.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.analysis.attributes import attributes_of, column_types, types_with
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.analysis.variable_schemas import variable_schemas
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.model import Carried, Held, Template
from tocsin.kernels.searches import Search
from tocsin.language import expressions as ex
from tocsin.physical.identity import JSON_OPTIONS
from tocsin.physical.inputs import Inputs
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.flags import Flags
from tocsin.physical.sliced.layout import Gathered, Layout, Packing
from tocsin.physical.sliced.needs import Needs
from tocsin.physical.sliced.parts import Part, parts_of
from tocsin.physical.sliced.positions import position_of, position_type, tie_types, type_of
from tocsin.physical.sliced.questions import Questions
from tocsin.physical.sliced.text import text_of
from tocsin.physical.sliced.values import (
    NARROW,
    Attribute,
    cast,
    digest_of,
    digest_of_all,
    is_held_as,
    key_value,
    micros_of,
    plain_attribute,
)
from tocsin.physical.spark_types import Shape, arrow_type, schemas_of, shape_of, to_spark
from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import select, union, where, with_columns
from tocsin.physical.values import TIMES, Kind, kind_of, value_of

# How many of these columns travel.
STREAM_COLUMNS = (names.CLOCK, names.SOURCE, names.EVENT)
WITH_CLOCK, WITH_EVENTS = 2, 3


@dataclass(frozen=True)
class Shipment:
    """What travels.

    Attributes
    ----------
    frame
        A row per event, with the columns of `layout`.
    columns
        Their names.
    layout
        What they mean.
    micros
        The time of a row in microseconds.
    keys
        What rows of one partition agree on.
    """

    frame: DataFrame
    columns: tuple[str, ...]
    layout: Layout
    micros: Column
    keys: tuple[Column, ...]

    @property
    def time(self) -> str:
        """The column with the time of a row."""
        return self.layout.time


@dataclass
class _Column:
    """A shipped column: its name, and its value for each part."""

    name: str
    value: Callable[[Part], Column]


@dataclass
class Shipper(Flags):
    """Decides what is shipped for a kernel and builds the DataFrame.

    Attributes
    ----------
    stream
        `WITH_CLOCK` for a stream: every row travels, of one that takes no part only its time (`layout.CLOCK`) and no
        bits; `layout.SOURCE` says which DataFrame it comes from. `WITH_EVENTS`: also the whole event as JSON.
    attributes
        What the events of each variable may have.
    shapes
        The types of what is needed of it.
    rated
        Event types whose events a stream counts, numbered from 1.
    """

    kernel: Search
    inputs: Inputs
    needs: Needs
    with_digests: bool
    stream: int = 0
    columns: list[_Column] = field(default_factory=list)
    given: Sequence[Part] | None = None
    rated: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.parts = (
            parts_of(self.inputs, others=self.kernel.counts_every_event) if self.given is None else list(self.given)
        )
        self.schemas = {name: stream.schema for name, stream in self.inputs.streams.items()}
        self.variables = variable_schemas(self.kernel.query.pattern, schemas_of(self.schemas))
        self.attributes = {
            name: tuple(one for one in attributes_of(self.variables[name]) if not one.startswith(RESERVED_PREFIX))
            for name in self.kernel.query.variables
        }
        self.shapes: dict[str, Shape] = {
            name: {
                attribute: to_spark(found)
                for attribute, found in column_types(
                    name, self.variables[name], (one for one in wanted if one != names.POSITION)
                ).items()
            }
            | ({names.POSITION: position_type(self.inputs)} if names.POSITION in wanted else {})
            for name, wanted in self.needs.items()
        }
        self.questions = Questions(self.kernel.sources)
        # The sources of automata are no variables: a condition is the same for all types of one, each with its own.
        self.source_shapes: dict[str, Shape] = {}
        if self.kernel.has_variables:
            self.source_shapes = {
                source.variable: shape_of(source.variable, [self.schemas[name] for name in source.types])
                for source in self.kernel.sources
            }

    def shipment(self) -> Shipment:
        """What travels, and what it means."""
        kernel = self.kernel
        packing = self.packing(sum(1 for attributes in kernel.wants.values() if attributes))
        gathered, wants = self.gathered(packing), self.wants()
        time, micros = self.time()
        gathered = counting(gathered, time)
        keys = () if packing.has_key else tuple(map(self.key, kernel.query.partition.attributes))
        carried = tuple(map(self._carried, kernel.carried))
        digests = tuple(self.digest(number) for number in (0, 1)) if self.with_digests else ()
        templates = kernel.templates
        trimmed = {
            number: (self._trimmed_digest(template, 0), self._trimmed_digest(template, 1))
            for number, template in enumerate(templates)
            if self.with_digests and not template.is_derived
        }
        ties: tuple[str, ...] = ()
        kind = text = None
        if kernel.needs_order or kernel.compares_ties:
            ties = tuple(self._tie(name, dtype) for name, dtype in tie_types(self.inputs).items())
        if kernel.needs_order:
            kind = self._add(names.TYPE, type_of) if kernel.counts_every_event else None
            text = self._add(names.TEXT, lambda part: text_of(part.columns, without=part.time))
        layout = Layout(packing, time, keys, carried, gathered, digests, ties, kind, text, wants, templates, trimmed)
        self.add_words(packing)
        frames = [self._select(part, packing, number) for number, part in enumerate(self.parts)]
        by = (F.shiftright(F.col(names.BITS), names.KEY_AT),) if packing.has_key else tuple(map(F.col, keys))
        return Shipment(
            union(frames),
            (*(column.name for column in self.columns), names.BITS, *STREAM_COLUMNS[: self.stream]),
            layout,
            micros,
            by,
        )

    def _select(self, part: Part, packing: Packing, number: int) -> DataFrame:
        if self.stream:
            return self._select_all(part, packing, number)
        return select(where(self.answered(part), self.filter(part)), *self.values(part, packing))

    def values(self, part: Part, packing: Packing) -> list[Column]:
        """What is shipped of a part's events."""
        shipped = [column.value(part).alias(column.name) for column in self.columns]
        return [*shipped, self.bits(part, packing).alias(names.BITS)]

    def _select_all(self, part: Part, packing: Packing, number: int) -> DataFrame:
        """Every row; those that take no part tell the time, and nothing else."""
        judged = with_columns(self.answered(part), F.coalesce(self.filter(part), F.lit(False)).alias(names.TAKES_PART))
        takes_part = F.col(names.TAKES_PART)
        clock = micros_of(part.columns[part.time][0], part.time_kind)
        return select(
            judged,
            *(F.when(takes_part, column.value(part)).alias(column.name) for column in self.columns),
            F.when(takes_part, self.bits(part, packing)).otherwise(F.bigint(0)).alias(names.BITS),
            F.when(~takes_part, clock).alias(names.CLOCK),
            source_of(part, number, self.rated).alias(names.SOURCE),
            *([F.when(takes_part, json_of(part)).alias(names.EVENT)] if self.stream == WITH_EVENTS else []),
        )

    # --- columns ----------------------------------------------------------------------------------

    def _add(self, name: str, value: Callable[[Part], Column]) -> str:
        self.columns.append(_Column(name, value))
        return name

    def _new(self) -> str:
        return names.column(len(self.columns))

    def gathered(self, packing: Packing) -> tuple[Gathered, ...]:
        """The columns that hold the events of the result."""
        return tuple(self._gathered(name, packing) for name in self.needs)

    def wants(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """By event type, the attributes that conditions on Python values read, and their columns."""
        return {
            name: tuple(
                (attribute, self._attribute(attribute, self.schemas[name][attribute].dataType, [name]))
                for attribute in attributes
            )
            for name, attributes in self.kernel.wants.items()
            if attributes
        }

    def _gathered(self, variable: str, packing: Packing) -> Gathered:
        shape, attributes = self.shapes[variable], tuple(self.needs[variable])
        columns: list[str | None] = []
        for name in attributes:
            if name == names.POSITION:
                columns.append(self._position())
                continue
            types = types_with(self.variables[variable], name)
            is_key = packing.has_key and name == self.kernel.query.partition.attributes[0]
            if not types:
                columns.append(None)
            elif is_key and NARROW.get(type(shape[name])) == packing.key_bits:
                columns.append(names.KEY)
            else:
                columns.append(self._attribute(name, shape[name], types))
        own = tuple(
            arrow_type(shape[name]) if column is None else None
            for name, column in zip(attributes, columns, strict=True)
        )
        is_iterated = self.kernel.query.variables[variable].iterated
        return Gathered(variable, tuple(columns), is_iterated, attributes, own)

    def _attribute(self, attribute: str, dtype: T.DataType, types: Iterable[str]) -> str:
        """A column with an attribute of these types; one column serves all variables that ask for the same."""
        for column in self.columns:
            value = column.value
            if isinstance(value, Attribute) and (value.name, value.dtype) == (attribute, dtype):
                value.types |= frozenset(types)
                return column.name
        return self._add(self._new(), Attribute(attribute, dtype, frozenset(types)))

    def _shared(self, attribute: str, types: Iterable[str]) -> tuple[str, T.DataType] | None:
        """A column that is shipped anyway and can hold an attribute as it is, for all these types; and its type."""
        wanted = frozenset(types)
        for column in self.columns:
            value = column.value
            if (
                isinstance(value, Attribute)
                and value.name == attribute
                and all(attribute in self.schemas[name].names for name in wanted)
                and all(self.schemas[name][attribute].dataType == value.dtype for name in wanted)
            ):
                value.types |= wanted
                return column.name, value.dtype
        return None

    def time(self) -> tuple[str, Column]:
        """The column of the time, and the time in microseconds."""
        attributes = {part.time for part in self.parts}
        shared = self._shared(next(iter(attributes)), self.schemas) if len(attributes) == 1 else None
        counts_others = self.kernel.counts_every_event
        if shared is not None and not counts_others and self.inputs.time_kind in (Kind.INTEGER, Kind.INSTANT):
            name, _ = shared
            return name, micros_of(F.col(name), self.inputs.time_kind)
        self._add(names.TIME, lambda part: micros_of(part.columns[part.time][0], part.time_kind))
        return names.TIME, F.col(names.TIME)

    def key(self, attribute: str) -> str:
        """A column of the partition's key."""
        kinds = {kind_of(part.columns[attribute][1]) for part in self.parts if attribute in part.columns}
        shared = self._shared(attribute, self.schemas)
        if shared is not None and not self.kernel.counts_every_event and not kinds & {Kind.DOUBLE, Kind.INTERVAL}:
            return shared[0]
        return self._add(self._new(), lambda part: key_value(part, attribute, kinds))

    def _tie(self, attribute: str, dtype: T.DataType) -> str:
        return self._add(self._new(), lambda part: value_of(cast(part, attribute, dtype), dtype).column)

    def _carried(self, carried: Carried) -> str:
        known = self.shipped_anyway(carried)
        if known is not None:
            return known
        values = self.held(carried)
        return self.add(lambda part: part.choose(values))

    def shipped_anyway(self, carried: Carried) -> str | None:
        """A column that holds a value as it is and is there for another reason."""
        attribute = plain_attribute(carried)
        shared = None if attribute is None else self._shared(attribute, carried.expressions)
        return shared[0] if shared is not None and is_held_as(shared[1], carried.held) else None

    def held(self, carried: Carried) -> dict[str, tuple[Hashable, Callable[[Part], Column]]]:
        """For the events of each type the value to carry, and what it is whatever its variable is called."""

        def value(expression: ex.Expression) -> Callable[[Part], Column]:
            return lambda part: self._held(part, expression, carried.held)

        return {kind: (anonymous(each), value(each)) for kind, each in carried.expressions.items()}

    def add(self, value: Callable[[Part], Column], name: str | None = None) -> str:
        """A new column."""
        return self._add(name or self._new(), value)

    def _held(self, part: Part, expression: ex.Expression, held: Held) -> Column:
        value = self.compiler(part, *ex.variables_in(expression)).value(expression)
        match held:
            case Held.INTEGER if value.kind in TIMES:
                return value.micros
            case Held.INTEGER:
                return value.number.cast("bigint")
            case Held.FLOAT:
                return value.number.cast("double")
            case Held.RANK if value.kind is Kind.INTEGER:
                return value.column.cast("decimal(20,0)")
            case Held.BOOLEAN | Held.RANK:
                return value.column
            case _:
                assert_never(held)

    def add_words(self, packing: Packing) -> None:
        """Add the columns of flags that do not fit into the bits."""
        for number, name in enumerate(packing.words):
            self._add(name, partial(self.word, number))

    def digest(self, number: int) -> str:
        """A digest of whole events; of all of them where a match may begin or end with one that it does not show."""
        kinds = {kind for held in self.kernel.query.variables.values() for kind in held.types if kind is not None}
        is_of_all = self.kernel.hides_events

        def digest(part: Part) -> Column:
            # What we have added to an event is no part of it.
            own = {name: typed for name, typed in part.columns.items() if not name.startswith(RESERVED_PREFIX)}
            if is_of_all:
                return digest_of_all(part, own, number, id=self.inputs.id)
            return digest_of(part, kinds, own, number, id=self.inputs.id)

        return self._add(self._new(), digest)

    def _trimmed_digest(self, template: Template, number: int) -> str:
        """A digest of what PROJECT leaves of events: of their type, and with these attributes."""
        nothing = (F.lit(None), T.NullType())

        def digest(part: Part) -> Column:
            columns = {
                name: part.columns.get(name, nothing) if name in template.kept else nothing
                for name in template.attributes
            }
            return digest_of(part, set(self.kernel.types), columns, number)

        return self._add(self._new(), digest)

    def _position(self) -> str:
        """The column of positions; one serves all variables."""
        if all(column.name != names.POSITION for column in self.columns):
            self._add(names.POSITION, lambda part: position_of(part, self.inputs))
        return names.POSITION


def json_of(part: Part) -> Column:
    """A whole event: its type, where the DataFrame does not tell it, and all its columns."""
    own = [F.lit(part.name).alias("type")] if part.name is not None and "type" not in part.columns else []
    event = F.struct(*own, *(column.alias(name) for name, (column, _) in part.columns.items()))
    return F.to_json(event, JSON_OPTIONS)  # left to itself Spark leaves out NULLs and microseconds


def source_of(part: Part, number: int, rated: Sequence[str]) -> Column:
    """Which DataFrame a row comes from, and of which type with a rate it is, if it is."""
    codes = {name: number | place << names.TYPE_AT for place, name in enumerate(rated, start=1)}
    if part.type_column is None:
        return F.lit(codes.get(part.name or "", number))
    known = [(part.columns[part.type_column][0] == name, F.lit(code)) for name, code in codes.items()]
    return F.cases(known).otherwise(F.lit(number)) if known else F.lit(number)


def counting(gathered: tuple[Gathered, ...], time: str) -> tuple[Gathered, ...]:
    """The same, where a variable is only counted: any column that every event has tells how many there are."""
    return tuple(
        one if one.columns else replace(one, columns=(time,), attributes=("",), types=(None,)) for one in gathered
    )
