"""From a DataFrame and a machine to the DataFrame of results, in batches and on streams. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.acer import arrow as names
from tocsin.acer.arrow import Incoming, Outgoing, payload
from tocsin.acer.clock import Clock, duration
from tocsin.acer.model import Machine
from tocsin.acer.stored import classes_of
from tocsin.acer.stream import OperatorStep, Task
from tocsin.acer.windows import Windows
from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.compat import ignores_case, is_dataframe, is_streaming, make_ready_for_python, schema_of
from tocsin.engines.spark.inputs import Inputs, Stream, require_order, stream_of
from tocsin.engines.spark.scan import Shipment
from tocsin.engines.spark.slices import slice_of
from tocsin.engines.spark.spark_types import arrow_type
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import repartition, repartition_by_range, select, to_spark, where
from tocsin.engines.spark.typed_columns import Kind, Value, micros_of
from tocsin.engines.stream import pipeline as streams
from tocsin.plan import manifest

CONSTRUCTIONS = ("fast", "literal")
EVENTS = "events"  # what messages call the input
REVISION = "revision"
FORMAT = 2  # of what machines remember; a checkpoint of another is refused
CLOCKS = {Kind.INSTANT: Clock.INSTANT, Kind.LOCAL: Clock.LOCAL, Kind.INTEGER: Clock.INTEGER}
TOO_EARLY = errors.InvalidInputError(
    "An event is so early that windows which hold it begin before the first time there is.",
    hint="leave out events whose time stands for none, such as the smallest integer.",
)


@dataclass(frozen=True)
class Source:
    """A DataFrame of events with the options that all operators have, checked."""

    stream: Stream  # its frame, schema and time column
    key: tuple[str, ...] | None  # its key columns; None: every event is its own key (f_K*)
    ties: tuple[str, ...]  # the columns that order events of one time
    unit: int  # δ
    is_literal: bool  # whether the construction of the paper is asked for
    # Of streams, as `match` has them.
    delay_us: int | None
    shards: int | None
    heartbeats: Any
    idle_us: int | None

    @property
    def clock(self) -> Clock:
        """How it tells time."""
        return CLOCKS[self.stream.time_kind]

    def columns(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The names of columns of the events on their way to workers."""
        places = {name: place for place, name in enumerate(self.stream.schema.names)}
        return tuple(manifest.column(places[name]) for name in wanted)

    def payload(self, schema: Any, own: tuple[str, ...] = ()) -> T.StructType:
        """The columns that results have beside the key, the time and their `own`."""
        stream = self.stream
        return payload(stream.schema, self.shown_key, stream.time, schema, own, ignores_case=ignores_case(stream.frame))

    @property
    def shown_key(self) -> tuple[str, ...]:
        """The key columns of results."""
        return self.key or ()


@dataclass(frozen=True)
class Operator:
    """An operator over a source."""

    source: Source
    machine: Machine
    schema: T.StructType  # the payload of results
    spans: int = 0  # how many of its first columns are times
    has_revision: bool = False  # whether results tell how often they have been given before
    windows: Windows | None = None  # windows by which a batch is cut, so that a key is not one task; None: it is
    # Whether results are of events of one time, and of no others; those of a batch are in order of time.
    is_instant: bool = False
    said: tuple[object, ...] = ()  # what the state of a stream depends on beside all this
    functions: tuple[Callable[..., Any], ...] = ()

    def frame(self) -> DataFrame:
        """The results."""
        frame = self.source.stream.frame
        make_ready_for_python(frame)
        found = self._on_stream() if is_streaming(frame) else self._on_batch()
        return self._shown(found)

    # --- in batches -------------------------------------------------------------------------------

    def _on_batch(self) -> DataFrame:
        rows = where(self._shipped(), F.col(names.TIME).isNotNull())
        group = [F.col(name) for name in (names.FIRST_KEY, names.SECOND_KEY)]
        windows = self.windows
        if windows is not None:
            rows = self._with_blocks(rows, windows)
            group.append(F.col(names.BLOCK))
        time, ties = F.col(names.TIME), map(F.col, self.source.columns(self.source.ties))
        order = [*group, time]
        if self.is_instant:  # a group is of one time then, and results come in order without another shuffle
            rows, order = repartition_by_range(rows, time), [time, *group]
        elif self.source.key == () and windows is None:
            rows = rows.repartition(1)
        else:
            rows = repartition(rows, *group)
        order += [*ties, F.col(names.FIRST_TIE), F.col(names.SECOND_TIE)]
        rows = rows.sortWithinPartitions(*map(to_spark, order))
        task = Task(self.machine, self._incoming(), self._outgoing(), None if windows is None else windows.per_block)
        return rows.mapInArrow(task, self._worker_schema())

    def _with_blocks(self, rows: DataFrame, windows: Windows) -> DataFrame:
        """A row for each block of windows that needs the event."""
        time, per_block = F.col(names.TIME), windows.per_block
        early = F.coalesce(
            F.try_subtract(time, F.bigint(windows.size)), F.raise_error(F.lit(str(TOO_EARLY))).cast("bigint")
        )
        first = slice_of(slice_of(early, windows.advance) + 1, per_block)
        last = slice_of(slice_of(time, windows.advance), per_block)
        # Between two windows there is an event that nobody needs.
        blocks = F.when(first <= last, F.sequence(first, F.greatest(first, last))).otherwise(
            F.array().cast("array<bigint>")
        )
        return select(rows, *map(F.col, self._columns()), F.explode(blocks).alias(names.BLOCK))

    # --- on streams -------------------------------------------------------------------------------

    def _on_stream(self) -> DataFrame:
        source = self.source
        inputs = Inputs({EVENTS: source.stream}, source.stream.time_kind, True)
        lateness = streams.lateness_of(inputs, source.delay_us, option="watermark")
        options = streams.StreamSettings(
            lateness,
            source.shards,
            heartbeats=streams.heartbeats_of(source.heartbeats, inputs),
            idle_ms=None if source.idle_us is None else max(source.idle_us // 1000, 1),
        )
        shipped = self._shipped(for_stream=True)
        shipment = Shipment(
            shipped,
            (*self._columns(), *STREAMED),
            manifest.Layout(manifest.Packing(1), names.TIME),
            F.col(names.TIME),
            self._digests_of_key() if source.key != () else (),
        )
        shards = streams.shards_of(options, shipped, "" if shipment.keys else streams.NO_KEY)
        step = OperatorStep(
            self.machine,
            self._incoming(),
            self._outgoing(),
            classes_of(*self.functions),
        )
        called = (FORMAT, type(self.machine).__name__, *source.stream.schema.names)
        plan = streams.named(called, self.said, streams.types_in(shipped), shards)
        return streams.run_shards(step, plan, shipment, shards, [(EVENTS,)], options, self._worker_schema())

    # --- what travels -----------------------------------------------------------------------------

    def _shipped(self, *, for_stream: bool = False) -> DataFrame:
        """Events with their time in microseconds, and what tells keys and equal times apart."""
        stream = self.source.stream
        every = self.source.columns(stream.schema.names)
        (time,) = map(F.col, self.source.columns([stream.time]))
        micros = micros_of(time, stream.time_kind)
        values = (micros, *self._digests_of_key(), *self._digests(stream.schema.names))
        own = [value.alias(name) for name, value in zip(names.OWN, values, strict=True)]
        if for_stream:
            own += [
                F.when(time.isNotNull(), F.bigint(1)).otherwise(F.bigint(0)).alias(manifest.BITS),
                F.lit(None).cast("bigint").alias(manifest.CLOCK),
                F.lit(0).alias(manifest.SOURCE),
            ]
        # By place: names may have dots in them, or differ in nothing but case.
        return select(stream.frame.toDF(*every), *map(F.col, every), *own)

    def _columns(self) -> tuple[str, ...]:
        return (*self.source.columns(self.source.stream.schema.names), *names.OWN)

    def _digests_of_key(self) -> tuple[Column, ...]:
        """Two numbers that keys have in common which Spark would group: NULL is a key, and so is NaN."""
        key = self.source.key
        return self._digests(self.source.stream.schema.names if key is None else key)

    def _digests(self, wanted: Iterable[str]) -> tuple[Column, ...]:
        schema = self.source.stream.schema
        named = tuple(wanted)
        columns = map(F.col, self.source.columns(named))
        typed = {name: (column, schema[name].dataType) for name, column in zip(named, columns, strict=True)}
        if not typed:
            return F.bigint(0), F.bigint(0)
        return tuple(identity.digests(F.lit(""), typed))

    def _incoming(self) -> Incoming:
        source = self.source
        return Incoming(tuple(source.stream.schema.names), source.shown_key, source.ties, source.unit, source.clock)

    def _outgoing(self) -> Outgoing:
        found = self._columns_of_results().fields
        schema = pa.schema([pa.field(one.name, arrow_type(one.dataType), one.nullable) for one in found])
        return Outgoing(schema, len(self.source.shown_key), self.has_revision, self.source.clock)

    # --- what comes back --------------------------------------------------------------------------

    def _columns_of_results(self) -> T.StructType:
        """The key, the time, perhaps the revision, and the payload, as workers give them: times are numbers."""
        stream = self.source.stream
        found = T.StructType([T.StructField(name, stream.schema[name].dataType) for name in self.source.shown_key])
        found = found.add(stream.time, T.LongType())
        if self.has_revision:
            found = found.add(REVISION, T.IntegerType())
        return T.StructType([*found.fields, *self.schema.fields])

    def _worker_schema(self) -> T.StructType:
        """The same by place, and NULL wherever there may be one."""
        kinds = (one.dataType for one in self._columns_of_results().fields)
        return T.StructType([T.StructField(manifest.column(place), kind) for place, kind in enumerate(kinds)])

    def _shown(self, found: DataFrame) -> DataFrame:
        """With the names and the times that the input has."""
        called = self._columns_of_results().names
        first = len(called) - len(self.schema.names)
        times = {len(self.source.shown_key), *range(first, first + self.spans)}
        columns = [F.col(manifest.column(place)) for place in range(len(called))]
        for place in times:
            columns[place] = Value(columns[place], self.source.stream.time_kind, in_micros=True).output
        return select(found, *(column.alias(name) for column, name in zip(columns, called, strict=True)))


STREAMED = (manifest.BITS, manifest.CLOCK, manifest.SOURCE)


def source(
    df: Any,
    time: str,
    key: Any,
    ties: Any,
    granularity: Any,
    construction: Any,
    watermark: Any,
    shards: Any,
    heartbeats: Any,
    idle_timeout: Any,
) -> Source:
    """A DataFrame of events and the options that all operators have; refuses what is wrong with them."""
    if not is_dataframe(df):
        raise errors.InvalidInputError(
            f"The input is {type(df).__name__}, not a Spark DataFrame.",
            hint="make one with `spark.createDataFrame(...)` or `spark.read`.",
        )
    named = None if key is None else _names("key", key)
    ordered = _names("ties", ties)
    schema = schema_of(df)
    stream = stream_of(EVENTS, df, schema, None, time, (*(named or ()), *ordered), "key= and ties=")
    require_order("ties", ordered, schema)
    if not isinstance(construction, str) or construction not in CONSTRUCTIONS:
        raise errors.InvalidOptionError(
            f"There is no construction `{errors.named(construction)}`.",
            hint=errors.did_you_mean(construction, CONSTRUCTIONS, "constructions"),
        )
    if shards is not None and (not isinstance(shards, int) or isinstance(shards, bool) or shards < 1):
        raise errors.InvalidOptionError(
            f"`shards={errors.shown(shards)}` is not a positive integer.", hint="leave it out."
        )
    return Source(
        stream,
        named,
        ordered,
        duration("granularity", granularity),
        construction == "literal",
        None if watermark is None else duration("watermark", watermark),
        shards,
        heartbeats,
        None if idle_timeout is None else duration("idle_timeout", idle_timeout),
    )


def _names(option: str, given: Any) -> tuple[str, ...]:
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else None
    if found is None or not all(isinstance(name, str) and name for name in found):
        raise errors.InvalidOptionError(
            f"`{option}={errors.shown(given)}` is neither the name of a column nor a list of such names.",
            hint=f'write `{option}="user"` or `{option}=["user", "device"]`.',
        )
    return found
