"""The user's DataFrames → one DataFrame with the rows of a manifest.

Spark decides all that concerns one event: its type, the conditions on it alone (one bit per source), the values that
conditions between events use. One DataFrame with a type column is read once, whatever the number of variables; inputs
per type are a union.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import DataFrame

from tocsin.analysis.types import DataType
from tocsin.engines.spark.compat import make_ready_for_python, search_tasks
from tocsin.engines.spark.event_columns import EventColumns
from tocsin.engines.spark.inputs import Inputs, Part, parts_of
from tocsin.engines.spark.match_ids import JSON_OPTIONS
from tocsin.engines.spark.spark_types import Shape, arrow_type, schemas_of, to_spark
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, union, where, with_columns
from tocsin.engines.spark.typed_columns import micros_in
from tocsin.kernels.reach import Search
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Attribute, EventTypes, Layout, Manifest, Reader

WHICH = "__tocsin_which"
# The columns of streams, and how many of them travel.
STREAM_COLUMNS = (names.CLOCK, names.SOURCE, names.EVENT)
WITH_CLOCK, WITH_EVENTS = 2, 3


@dataclass(frozen=True)
class Shipment:
    """What travels."""

    frame: DataFrame  # a row per event, with the columns of `layout`
    columns: tuple[str, ...]
    layout: Layout  # what they mean
    micros: Column  # the time of a row in microseconds
    keys: tuple[Column, ...]  # what rows of one partition agree on
    tasks: int | None = None  # how many tasks search the rows of a batch; None: as many as Spark chooses

    @property
    def time(self) -> str:
        """The column with the time of a row."""
        return self.layout.time


@dataclass(frozen=True)
class Mixed:
    """One DataFrame with the events of several parts, so that it is read once."""

    frame: DataFrame
    parts: tuple[tuple[Column, Part], ...]  # where a condition holds, a row is an event of this part
    kept: Column | None = None  # where it is a match that was found before, to be passed on; None: nowhere
    columns: tuple[str, ...] = ()


def ship(
    reader: Reader[Search], inputs: Inputs, *, stream: int = 0, rated: Sequence[str] = ()
) -> tuple[Shipment, dict[str, Shape]]:
    """What travels for one search, and the types of the attributes that its matches bring.

    With `WITH_CLOCK`, every row of a stream travels, of one that takes no part only its time (`names.CLOCK`) and no
    bits; `names.SOURCE` has the number of its DataFrame. With `WITH_EVENTS`, also the whole event as JSON. The stream
    counts the events of `rated` types, numbered from 1.
    """
    manifest = manifest_of([reader], event_types(inputs), made_type)
    scan = Scan(manifest, parts_of(inputs, others=manifest.counts_every_event))
    frame = scan.streamed(stream, rated) if stream else scan.frame()
    make_ready_for_python(frame)
    (layout,), (shape,) = manifest.layouts, manifest.shapes
    tasks = None if stream else search_tasks(part.frame for part in scan.single)
    shipment = Shipment(frame, scan.columns(stream), layout, scan.micros, scan.keys(layout.keys), tasks)
    return shipment, spark_shapes(shape)


def event_types(inputs: Inputs) -> EventTypes:
    """The events of inputs, as manifests know them."""
    return EventTypes(
        schemas_of({name: stream.schema for name, stream in inputs.streams.items()}),
        {name: stream.time for name, stream in inputs.streams.items()},
        schemas_of({name: stream.schema for name, stream in inputs.others.items()}),
    )


def made_type(dtype: DataType) -> pa.DataType:
    """The Arrow type of values that workers make."""
    return arrow_type(to_spark(dtype))


def spark_shapes(shapes: Mapping[str, Mapping[str, DataType]]) -> dict[str, Shape]:
    """The attributes of variables in Spark's types."""
    return {name: {one: to_spark(dtype) for one, dtype in shape.items()} for name, shape in shapes.items()}


class Scan:
    """Renders a manifest over DataFrames: `single` ones hold the events of one part, `mixed` ones of several."""

    def __init__(self, manifest: Manifest, single: Sequence[Part], mixed: Sequence[Mixed] = ()) -> None:
        self.manifest, self.single, self.mixed = manifest, single, mixed
        self.events = EventColumns(manifest)
        self.passes_on = any(one.kept is not None for one in mixed)

    # --- columns ----------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The columns of a row; the bits come last, but for matches that are passed on."""
        return [*self.manifest.columns, names.BITS, *([names.PASSED_ON] if self.passes_on else [])]

    def columns(self, stream: int = 0) -> tuple[str, ...]:
        """The same, and those that streams have."""
        return (*self.names, *STREAM_COLUMNS[:stream])

    @property
    def micros(self) -> Column:
        """The time of a row in microseconds."""
        content = self.manifest.columns[self.manifest.time]
        column = F.col(self.manifest.time)
        if not isinstance(content, Attribute):
            return column
        return micros_in(column, to_spark(content.type))

    def keys(self, columns: Sequence[str]) -> tuple[Column, ...]:
        """What rows of one partition agree on: these columns, or the bits."""
        if self.manifest.packing.has_key:
            return (F.shiftright(F.col(names.BITS), names.KEY_AT),)
        return tuple(map(F.col, columns))

    # --- rows of a batch --------------------------------------------------------------------------

    def frame(self) -> DataFrame:
        """A row per event that can take part, and one for each match that is passed on."""
        frames = [self._mixed(one) for one in sorted(self.mixed, key=lambda one: one.kept is None)]  # types come first
        nothing = [F.lit(None).alias(names.PASSED_ON)] if self.passes_on else []
        for part in self.single:
            rows = where(self.events.answered(part), self.events.filter(part))
            values = zip(self.events.values(part), self.names, strict=False)
            frames.append(select(rows, *(value.alias(name) for value, name in values), *nothing))
        return union(frames)

    def _mixed(self, mixed: Mixed) -> DataFrame:
        """The events of several parts, and the matches among them, by one look at each row."""
        passes = [is_own & self.events.filter(part) for is_own, part in mixed.parts]
        passes += [] if mixed.kept is None else [mixed.kept]
        *columns, bits = self._chosen(mixed.parts)
        columns.append(F.coalesce(bits, F.bigint(names.OWN_COPY)).alias(names.BITS))
        if mixed.kept is not None:
            match = F.struct(*(F.col(name).alias(name) for name in mixed.columns))
            columns.append(F.when(mixed.kept, match).alias(names.PASSED_ON))
        elif self.passes_on:
            columns.append(F.lit(None).alias(names.PASSED_ON))
        return select(where(mixed.frame, reduce(or_, passes)), *columns)

    def _chosen(self, parts: Sequence[tuple[Column, Part]]) -> list[Column]:
        """The columns of the first part whose condition holds; NULL where none does."""
        values = [(is_own, self.events.values(part)) for is_own, part in parts]
        return [
            (F.cases((is_own, own[place]) for is_own, own in values) if values else F.lit(None)).alias(name)
            for place, name in enumerate([*self.manifest.columns, names.BITS])
        ]

    # --- rows of a stream -------------------------------------------------------------------------

    def streamed(self, stream: int, rated: Sequence[str] = ()) -> DataFrame:
        """Every row of the inputs: what takes part with all its columns, others with their time."""
        every = [(self._answered(one), one.parts) for one in self.mixed]
        every += [(self.events.answered(part), ((F.lit(True), part),)) for part in self.single]
        return union(
            [
                self._every_row(frame, parts, _source(parts, number, rated), stream)
                for number, (frame, parts) in enumerate(every)
            ]
        )

    def _answered(self, mixed: Mixed) -> DataFrame:
        """The rows with what DataFrames answer of them: only events from outside ask."""
        outside = [part for _, part in mixed.parts if part.computed is None]
        return self.events.answered(outside[0]) if outside else mixed.frame

    def _every_row(
        self, frame: DataFrame, parts: Sequence[tuple[Column, Part]], source: Column, stream: int
    ) -> DataFrame:
        passes = [(is_own & self.events.filter(part), F.lit(at)) for at, (is_own, part) in enumerate(parts)]
        judged = with_columns(frame, F.cases(passes).alias(WHICH))
        which, first = F.col(WHICH), parts[0][1]
        *columns, bits = self._chosen([(which == at, part) for at, (_, part) in enumerate(parts)])
        return select(
            judged,
            *columns,
            F.coalesce(bits, F.bigint(0)).alias(names.BITS),
            F.when(which.isNull(), first.micros).alias(names.CLOCK),
            source.alias(names.SOURCE),
            *([F.when(which.isNotNull(), _json(first)).alias(names.EVENT)] if stream == WITH_EVENTS else []),
        )


def _json(part: Part) -> Column:
    """A whole event: its type, where the DataFrame does not tell it, and all its columns."""
    own = [F.lit(part.type).alias("type")] if part.type_column is None and "type" not in part.columns else []
    event = F.struct(*own, *(column.alias(name) for name, (column, _) in part.columns.items()))
    return F.to_json(event, JSON_OPTIONS)  # left to itself Spark leaves out NULLs and microseconds


def _source(parts: Sequence[tuple[Column, Part]], number: int, rated: Sequence[str]) -> Column:
    """Which DataFrame a row comes from, and of which type with a rate it is, whether or not it takes part."""
    known = []
    for place, name in enumerate(rated, start=1):
        code = F.lit(number | place << names.TYPE_AT)
        for is_own, part in parts:
            if part.kind is not None:
                known.append((is_own & (part.kind == name), code))
            elif part.type == name:
                known.append((is_own, code))
    return F.cases(known).otherwise(F.lit(number)) if known else F.lit(number)
