"""A kernel and its streams → one streaming DataFrame of matches; sink, trigger and checkpoint are the user's.

```
events of all inputs, conditions on single events as bits     Spark
    → shard batches, one for each task and shard                packing, in Python workers
    → by shard: state, searches, matches that are due           step, in Python workers
    → matches as rows                                           unpacking, in Python workers
    → HAVING, RETURN, match_id                                  Spark
```
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as spark
from pyspark.sql import types as T
from pyspark.sql.streaming.state import GroupStateTimeout

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.tree_text import to_text
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.analysis.temporal import Network
from tocsin.engines.spark import compact as graphs
from tocsin.engines.spark.compat import has_python_state, is_dataframe, is_streaming, schema_of
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.scan import WITH_CLOCK, WITH_EVENTS, Shipment
from tocsin.engines.spark.search import Found, compiler_of, match_schema, returned, ship
from tocsin.engines.spark.spark_types import arrow_schema
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, where
from tocsin.engines.spark.typed_columns import kind_of, micros_of
from tocsin.engines.stream import packing
from tocsin.engines.stream.grouped import Shard, Steps
from tocsin.engines.stream.guard import Guard
from tocsin.engines.stream.outputs import FOUND, LATE, NAME, OUTPUTS, Output, numbers_of, observed
from tocsin.engines.stream.packing import Packing, Unpacking, labels
from tocsin.engines.stream.shard_rules import LiveRule, alone, live_rule
from tocsin.engines.stream.step import Step
from tocsin.engines.worker.summaries import Compacting
from tocsin.kernels.reach import Search
from tocsin.kernels.runs.register_automaton import RunKernel
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.plan import manifest as names
from tocsin.plan.due import due_of
from tocsin.plan.prepare import split

MOST_SHARDS = 256
WATERMARK_DELAY = "spark.watermarkDelayMs"  # what `withWatermark` leaves in the metadata of a column
_COLUMN_TYPES = (T.IntegerType(), T.BinaryType(), T.LongType(), T.LongType(), T.BinaryType(), T.BinaryType())
SHARD_BATCHES = T.StructType([T.StructField(*pair) for pair in zip(packing.COLUMNS, _COLUMN_TYPES, strict=True)])
REMEMBERED = T.StructType([T.StructField("state", T.BinaryType())])


@dataclass(frozen=True)
class Heartbeat:
    """A stream of times: all events of some types before them have come, but for lateness."""

    frame: DataFrame
    micros: Column
    types: tuple[str, ...]


@dataclass(frozen=True)
class StreamSettings:
    """The options of a stream, resolved against its inputs."""

    lateness_us: dict[str, int] = field(default_factory=dict)  # by event type; one input has one
    shards: int | None = None  # None: as many as Spark has shuffle partitions
    eager: bool = True  # emit matches before the watermark has passed them, where that changes nothing
    max_matches_per_start: int = MOST_MATCHES_PER_START  # the search fails above it
    heartbeats: tuple[Heartbeat, ...] = ()  # streams of times for silent inputs
    with_late: bool = False  # whether late events are emitted too
    is_strict: bool = False  # whether a late event stops the stream
    idle_ms: int | None = None  # how long a silent input holds back the watermark; None: always
    guard: Guard | None = None
    bound: int | None = None  # the most events in the state by declared rates
    max_task_memory: int = MOST_MEMORY  # bytes for matches; the search fails above it
    unit: Unit = MICROSECONDS  # of integer times, in which all of this counts

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs beside the result."""
        return tuple(output for output in OUTPUTS if output.is_wanted(self))


def matches(kernel: Search, inputs: Inputs, distances: Network, options: StreamSettings) -> DataFrame:
    """The matches of a query on streams, with the columns of a batch."""
    query = kernel.query
    found = search(kernel, inputs, distances, options)
    frame = found.frame
    having = split(query).query.having
    if having is not None:
        kept = compiler_of(kernel, found).condition(having)
        others = (F.col(output.column).isNotNull() for output in options.outputs)
        frame = where(frame, reduce(or_, others, kept))
    return returned(kernel, inputs, Found(frame, found.shapes), output_columns(options))


def compact(kernel: RunKernel, inputs: Inputs, distances: Network, options: StreamSettings) -> DataFrame:
    """The matches of a query on streams as graphs, with the columns of a batch: a row for each end."""
    kernel, shipment, schema = graphs.ship(kernel, inputs, stream=what_travels(options), rated=rated(options))
    rule = LiveRule(Compacting(kernel, shipment.layout), due_of(kernel, distances, eager=False))
    frame = run_rule(kernel, rule, inputs, options, shipment, schema, "compact")
    return graphs.named(kernel, inputs, frame, *output_columns(options))


def search(kernel: Search, inputs: Inputs, distances: Network, options: StreamSettings) -> Found:
    """The matches before RETURN; those that are only added up have no ids."""
    with_digests = not kernel.query.over_all_matches
    travels = what_travels(options)
    shipment, shapes = ship(kernel, inputs, with_digests=with_digests, stream=travels, rated=rated(options))
    schema = match_schema(kernel, inputs, shipment, shapes)
    due = due_of(kernel, distances, eager=options.eager)
    rule = live_rule(kernel, shipment.layout, due, has_id=inputs.id is not None)
    return Found(run_rule(kernel, rule, inputs, options, shipment, schema), shapes)


def output_columns(options: StreamSettings) -> list[Column]:
    """The columns of outputs, under the names that users see."""
    return [F.col(output.column).alias(output.name) for output in options.outputs]


def what_travels(options: StreamSettings) -> int:
    """How much is shipped of events that take no part."""
    return WITH_EVENTS if options.with_late else WITH_CLOCK


def rated(options: StreamSettings) -> tuple[str, ...]:
    """The types with a declared rate: rows carry them."""
    return () if options.guard is None else options.guard.types


def run_rule(
    search: Search,
    rule: LiveRule,
    inputs: Inputs,
    options: StreamSettings,
    shipment: Shipment,
    schema: T.StructType,
    *form: str,
) -> DataFrame:
    """Run a pattern, the only rule of its program, on the events that are shipped to shards; rows have the schema.

    `form` is part of the name of the plan.
    """
    reason = "" if shipment.keys else NO_KEY
    if search.crosses_partitions:
        reason = "`SEMANTICS contiguous` counts the events of all keys"
    shards = shards_of(options, shipment.frame, reason)
    step = Step(alone(rule), most=options.max_matches_per_start, memory=options.max_task_memory)
    # Two plans of one name can read each other's state. The state does not record which matches were emitted before the
    # watermark has passed them, so that a plan that emits them then cannot resume from it.
    form += ("digests of all",) if search.hides_events else ()
    plan = named(
        to_text(search.query),
        rule.due.is_eager,
        shipment.layout,
        types_in(shipment.frame),
        shards,
        [str(one) for one in search.sources],
        *ids_in(inputs.id, [search.query], *form),
    )
    return run_shards(step, plan, shipment, shards, source_types(inputs), options, schema)


def run_shards(
    step: Steps,
    plan: str,
    shipment: Shipment,
    shards: int,
    sources: Sequence[tuple[str, ...]],
    options: StreamSettings,
    schema: T.StructType,
) -> DataFrame:
    """Run a step in shards, on the events that are shipped to them.

    `plan` is the name of the plan, `sources` are the event types of each DataFrame; `schema` has the columns of the
    result, without those of outputs.
    """
    if has_python_state(shipment.frame):
        raise errors.InvalidInputError(
            "The events are results of another operator with a state in the same query, and Spark runs one in a query.",
            hint="write the results of the first with a query of its own, `results.writeStream…start()`, and read them "
            "with `spark.readStream` for the second.",
        )
    guard = options.guard
    shard = Shard(
        step,
        plan,
        tuple(options.lateness_us[types[0]] for types in sources),
        options.idle_ms,
        0 if options.idle_ms is None else int(time.time() * 1000),
        guard,
        options.is_strict,
        options.unit,
        options.outputs,
    )
    shipped = shipment.frame
    for heartbeat in options.heartbeats:
        shipped = shipped.union(beats(heartbeat, shipment.columns, sources))
    shard_of = F.lit(0)
    if shipment.keys and shards > 1:
        shard_of = F.pmod(F.xxhash64(*shipment.keys), F.lit(shards)).cast("int")
    sharded = select(shipped, *map(F.col, shipment.columns), shard_of.alias(packing.SHARD))
    # By their own number and not by the session's, which Spark fixes with the checkpoint: one label is then common to
    # all numbers of shards, so that state of another number is found, and refused, instead of lying unread.
    called = labels(shards)
    batches = sharded.mapInArrow(Packing(shipment.time, called, len(sources), guard), SHARD_BATCHES)
    numbers = (T.StructField(name, T.LongType()) for name in numbers_of(guard))
    steps = batches.groupBy(packing.SHARD).applyInPandasWithState(
        shard,
        T.StructType([T.StructField(FOUND, T.BinaryType()), *numbers]),
        REMEMBERED,
        "append",
        GroupStateTimeout.NoTimeout if options.idle_ms is None else GroupStateTimeout.ProcessingTimeTimeout,
    )
    reported = steps.observe(NAME, *map(spark.expr, observed(guard, options.bound, options.unit)))
    found = select(where(reported, F.length(F.col(FOUND)) > 0), F.col(FOUND))
    for output in options.outputs:
        schema = schema.add(output.column, output.type)
    return found.mapInArrow(Unpacking(arrow_schema(schema)), schema)


def source_types(inputs: Inputs) -> list[tuple[str, ...]]:
    """The event types that come from each DataFrame, in the order of `parts_of`."""
    types = tuple(inputs.streams)
    if next(iter(inputs.streams.values())).type_column is not None:
        return [types]
    return [(name,) for name in (*types, *inputs.others)]


def lateness_of(inputs: Inputs, lateness_us: int | None, option: str = "lateness") -> dict[str, int]:
    """How late the events of each type may come: by an option, or by the watermarks of their DataFrames.

    Raises `InvalidInputError` when only some inputs are streams, `InvalidOptionError` when a lateness is missing.
    """
    found: dict[str, int] = {}
    for name, stream in {**inputs.streams, **inputs.others}.items():
        if not is_streaming(stream.frame):
            raise errors.InvalidInputError(
                f"The input of `{name}` is a batch, and others are streams.",
                hint="read it with `spark.readStream`, or join what never changes before matching.",
            )
        declared = stream.schema[stream.time].metadata.get(WATERMARK_DELAY)
        if lateness_us is None and declared is None:
            raise errors.InvalidOptionError(
                f"How late may events of `{name}` come? Neither `{option}=` nor a watermark says it.",
                hint=f'write `{option}="10 seconds"`, or `df.withWatermark({stream.time!r}, "10 seconds")`.',
            )
        found[name] = int(declared or 0) * 1000 if lateness_us is None else lateness_us
    return found


NO_KEY = "no key splits its events"


def shards_of(options: StreamSettings, frame: DataFrame, reason: str = "") -> int:
    """How many shards keys are spread over; `reason` states why there is only one, and is empty otherwise.

    Raises `InvalidOptionError` when several are asked for, and there is only one.
    """
    if reason and options.shards not in (None, 1):
        raise errors.InvalidOptionError(
            f"`shards={options.shards}` has no effect on this stream: {reason}.",
            hint="leave out `shards=`, or split the events by a key, as `PARTITION BY` does.",
        )
    if reason:
        return 1
    partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return min(partitions, MOST_SHARDS) if options.shards is None else options.shards


def ids_in(id: str | None, queries: Iterable[alg.Query], *form: str) -> tuple[str, ...]:
    """The part of a plan's name for the column that identifies events, the form of results, and the ids of matches.

    Ids of matches with bags have changed, and a replayed micro-batch must repeat its ids.
    """
    has_bags = any(
        kind.iterated for query in queries if not query.over_all_matches for kind in query.variables.values()
    )
    return (*(() if id is None else ("id", id)), *form, *(("sums of digests",) if has_bags else ()))


def require_one_late(frame: DataFrame, with_late: bool) -> DataFrame:
    """Return the result; raise `InvalidOptionError` if another column has the name of that of late events."""
    if with_late and sum(name.casefold() == LATE.name for name in frame.columns) > 1:
        raise errors.InvalidOptionError(
            f"With `late=True` late events are in a column `{LATE.name}`, and the result has one of that name already.",
            hint=f"give it another name: `RETURN ... AS was_{LATE.name}`.",
        )
    return frame


def types_in(frame: DataFrame) -> list[str]:
    """The types of the columns that are shipped."""
    return [field.dataType.simpleString() for field in frame.schema.fields]


def named(*parts: object) -> str:
    """A short name for all that a state depends on."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


# --- heartbeats: streams of times for silent inputs -----------------------------------------------


def beats(heartbeat: Heartbeat, columns: Sequence[str], sources: Sequence[tuple[str, ...]]) -> DataFrame:
    """The rows of a heartbeat, with the columns of events: a time for each of its sources, and nothing else."""
    numbers = [number for number, types in enumerate(sources) if set(types) & set(heartbeat.types)]
    known = {
        names.BITS: F.bigint(0),
        names.CLOCK: heartbeat.micros,
        names.SOURCE: F.explode(F.array(*map(F.lit, numbers))),
    }
    nothing = F.lit(None)
    return select(heartbeat.frame, *(known.get(name, nothing).alias(name) for name in columns))


def heartbeats_of(given: Any, inputs: Inputs) -> tuple[Heartbeat, ...]:
    """The user's heartbeats: one stream for all inputs, or some by event type.

    Raises `InvalidInputError`, `UnknownEventTypeError`, `MissingColumnError` or `TimeTypeError` for other values.
    """
    if given is None:
        return ()
    streams = {**inputs.streams, **inputs.others}
    if is_dataframe(given):
        given = {None: given}
    if not isinstance(given, Mapping) or not all(map(is_dataframe, given.values())):
        raise errors.InvalidInputError(
            "`heartbeats` is neither a DataFrame nor a mapping from event types to DataFrames.",
            hint="pass a streaming DataFrame with a time column, or `{'Login': beats}`.",
        )
    found = []
    for name, frame in given.items():
        if name is not None and name not in streams:
            raise errors.UnknownEventTypeError(
                f"`heartbeats` names `{name}`, which is no input.",
                hint=errors.did_you_mean(str(name), streams, "inputs"),
            )
        first = streams[name] if name is not None else next(iter(streams.values()))
        schema = schema_of(frame)
        if first.time not in schema.names:
            raise errors.MissingColumnError(
                f"There is no time column `{first.time}` in the heartbeats.",
                hint=errors.did_you_mean(first.time, schema.names, "their columns"),
            )
        kind = kind_of(schema[first.time].dataType)
        if kind is not first.time_kind or not is_streaming(frame):
            raise errors.TimeTypeError(
                f"The heartbeats are no stream of times such as those of `{first.type}`.",
                hint=f"pass a streaming DataFrame whose `{first.time}` has the type of the events'.",
            )
        types = tuple(streams) if name is None else (name,)
        found.append(Heartbeat(frame, micros_of(F.col(first.time), kind), types))
    return tuple(found)
