"""The DataFrames a query reads, checked: the events of each type (`Stream`), and DataFrames with their types (`Part`).

`{type: DataFrame}`, or one DataFrame with a type column. Nothing is read; schemas are read once per DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.analysis.names import RESERVED_PREFIX
from tocsin.engines.spark.compat import has_streams, ignores_case, is_dataframe, schema_of
from tocsin.engines.spark.spark_types import require_distinct_names, to_spark, types_in
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import where, with_columns
from tocsin.engines.spark.typed_columns import Kind, kind_of, micros_in, null
from tocsin.engines.wording import missing, reserved, unordered
from tocsin.optimizer.routes import Routes, key_name, role_name
from tocsin.options import untimed

TIME_HINTS: dict[Kind, str] = {
    Kind.STRING: "convert it first: `df.withColumn({name!r}, F.to_timestamp({name!r}))`.",
    Kind.DOUBLE: "if it counts seconds: `df.withColumn({name!r}, F.timestamp_seconds({name!r}))`.",
    Kind.DECIMAL: "if it counts seconds: `df.withColumn({name!r}, F.timestamp_seconds({name!r}))`.",
    Kind.DATE: "convert it first: `df.withColumn({name!r}, F.col({name!r}).cast('timestamp'))`.",
}
NESTED = (T.ArrayType, T.MapType, T.StructType, T.VariantType)


@dataclass(frozen=True)
class Stream:
    """The events of one type: the rows of `frame`, or those of them whose `type_column` names the type."""

    type: str
    frame: DataFrame
    schema: T.StructType
    time: str
    time_kind: Kind
    type_column: str | None = None


@dataclass(frozen=True)
class Inputs:
    """The events of every type a query names."""

    streams: Mapping[str, Stream]
    time_kind: Kind  # INSTANT, LOCAL or INTEGER, the same for all
    is_streaming: bool
    id: str | None = None  # the column that identifies an event, when the user has one
    ties: tuple[str, ...] = ()  # the columns that order events of one instant
    # Inputs that the pattern does not name, by event type, when they were asked for: their events count for positions
    # (R17). In one DataFrame with a type column they are in the same frame, and not here.
    others: Mapping[str, Stream] = field(default_factory=dict)


def resolve(
    inputs: Any,
    types: Iterable[str],
    *,
    time: str | Mapping[str, str] = "ts",
    tie: str | Iterable[str] | None = None,
    type: str = "type",
    id: str | None = None,
    others: bool = False,
) -> Inputs:
    """Check the inputs of a query and find the events of its types; with `others`, those of all other inputs too.

    Raises a `PlanError` or `QueryBindingError`: the one thing that is wrong, or all of them together.
    """
    ties = (tie,) if isinstance(tie, str) else tuple(tie or ())
    named = tuple(types)
    problems: list[errors.TocsinError] = []
    frames = _frames(inputs, named, type, others=others)
    type_column = type if is_dataframe(inputs) else None
    streams: dict[str, Stream] = {}
    for name, (frame, schema) in frames.items():
        # An event of another type has no identity that anybody asks for.
        required = (*ties, *((id,) if id is not None and name in named else ()))
        try:
            if not isinstance(time, str) and name not in time:
                raise untimed(name)
            own_time = time if isinstance(time, str) else time[name]
            streams[name] = stream_of(name, frame, schema, type_column, own_time, required)
            require_order("tie", ties, schema)
        except errors.QueryErrors as several:
            problems.extend(several.errors)
        except errors.TocsinError as problem:
            problems.append(problem)
    # One DataFrame under several types gives the same report for each.
    errors.raise_all(list({str(problem): problem for problem in problems}.values()))
    return Inputs(
        {name: streams[name] for name in named},
        common_kind(streams),
        has_streams({name: frame for name, (frame, _) in frames.items()}),
        id,
        ties,
        {name: stream for name, stream in streams.items() if name not in named},
    )


def _frames(
    inputs: Any, types: tuple[str, ...], type_column: str, *, others: bool
) -> dict[str, tuple[DataFrame, T.StructType]]:
    """The DataFrame that holds the events of each type, and its schema; those of all inputs when asked."""
    if is_dataframe(inputs):
        schema = schema_of(inputs)
        require_type_column(type_column, schema)
        return dict.fromkeys(types, (inputs, schema))
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) for name in inputs):
        raise errors.InvalidInputError(
            f"`inputs` is {_article(inputs)}, neither a DataFrame nor a mapping from event type to DataFrame.",
            hint="pass `{'Login': logins, 'Transfer': transfers}`, or one DataFrame with a type column.",
        )
    wrong = [name for name, frame in inputs.items() if not is_dataframe(frame)]
    if wrong:
        raise errors.InvalidInputError(
            f"The input of `{wrong[0]}` is {_article(inputs[wrong[0]])}, not a Spark DataFrame.",
            hint="make one with `spark.createDataFrame(...)` or `spark.read`.",
        )
    errors.raise_all(
        [
            errors.UnknownEventTypeError(
                f"The pattern names the event type `{name}`, and no input has it.",
                hint=errors.did_you_mean(name, inputs, "inputs"),
            )
            for name in types
            if name not in inputs
        ]
    )
    # Sorted: a checkpoint knows the sources of a stream by their order.
    wanted = (*types, *(name for name in sorted(inputs) if others and name not in types))
    frames = {id(inputs[name]): inputs[name] for name in wanted}
    schemas = {key: schema_of(frame) for key, frame in frames.items()}
    return {name: (inputs[name], schemas[id(inputs[name])]) for name in wanted}


def require_type_column(name: str, schema: T.StructType) -> None:
    """Refuse a DataFrame for several types without a column of their names."""
    _require(name, schema, "the input", "type=", "type column")
    dtype = schema[name].dataType
    if kind_of(dtype) is not Kind.STRING:
        raise errors.InvalidInputError(
            f"The type column `{name}` holds {dtype.simpleString()}, not strings.",
            hint="it must hold the names of event types that the pattern uses; cast it to a string.",
        )


def stream_of(
    name: str,
    frame: DataFrame,
    schema: T.StructType,
    type_column: str | None,
    time: str,
    others: tuple[str, ...] = (),
    option: str = "tie= and id=",
) -> Stream:
    """The events of one type, checked; `others` are columns that must be there too, and `option` names them."""
    owner = f"the input of `{name}`"
    ours = next((column for column in schema.names if column.startswith(RESERVED_PREFIX)), None)
    if ours is not None:
        raise reserved(ours, owner)
    require_distinct_names(schema, owner, ignores_case=lambda: ignores_case(frame))
    _require(time, schema, owner, "time=", "time column")
    for column in others:
        _require(column, schema, owner, option, "column")
    dtype = schema[time].dataType
    kind = kind_of(dtype)
    if kind not in (Kind.INSTANT, Kind.LOCAL, Kind.INTEGER):
        hint = TIME_HINTS.get(kind, "choose a column that says when each event happened.")
        raise errors.TimeTypeError(
            f"The time column `{time}` of {owner} is {dtype.simpleString()}, neither a timestamp nor an integer.",
            hint=hint.format(name=time),
        )
    return Stream(name, frame, schema, time, kind, type_column)


def require_order(option: str, names: Iterable[str], schema: T.StructType) -> None:
    """Refuse columns that shall order events, and hold lists, maps or structs (`InvalidOptionError`)."""
    for name in names:
        if isinstance(schema[name].dataType, NESTED):
            raise unordered(option, name, schema[name].dataType.simpleString())


def _require(column: str, schema: T.StructType, owner: str, option: str, what: str) -> None:
    if column not in schema.names:
        raise missing(column, schema.names, owner, option, what)


def common_kind(streams: Mapping[str, Stream]) -> Kind:
    """The one kind of all time columns."""
    first, *others = streams.values()
    for other in others:
        if other.time_kind is not first.time_kind:
            one, another = (
                f"`{each.time}` of `{each.type}` is {each.schema[each.time].dataType.simpleString()}"
                for each in (first, other)
            )
            raise errors.TimeTypeError(
                f"The time columns differ: {one}, {another}.",
                hint="convert one of them, so that all inputs tell time in the same way.",
            )
    return first.time_kind


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


# --- DataFrames, each with the event types it holds -----------------------------------------------


@dataclass(frozen=True)
class Part(Stream):
    """Events that one DataFrame holds: those of one type, or of several in its type column."""

    types: tuple[str, ...] = ()  # the types that the pattern names
    has_others: bool = False  # rows of types that the pattern does not name are not filtered out
    computed: Mapping[str, tuple[Column, T.DataType]] | None = None  # the columns, when they are not those of the frame
    label: str = "in"  # of its columns, where those of several parts stand side by side

    @cached_property
    def columns(self) -> dict[str, tuple[Column, T.DataType]]:
        """Its columns by name; renamed by place, so that no two names clash whatever the session's rules on case."""
        if self.computed is not None:
            return dict(self.computed)
        return {
            field.name: (F.col(self.column_name(number)), field.dataType)
            for number, field in enumerate(self.schema.fields)
        }

    @cached_property
    def renamed(self) -> DataFrame:
        """The DataFrame with these names."""
        return self.frame.toDF(*map(self.column_name, range(len(self.schema.fields))))

    def column_name(self, suffix: object) -> str:
        """The name of a column of `renamed`, by its number, or of one that is added to it."""
        return f"__tocsin_{self.label}_{suffix}"

    @property
    def micros(self) -> Column:
        """The time of an event in microseconds."""
        return micros_in(*self.columns[self.time])

    @property
    def kind(self) -> Column | None:
        """The column with the type of an event; None when all are of one type."""
        return None if self.type_column is None else self.columns[self.type_column][0]

    def cast(self, attribute: str, dtype: T.DataType) -> Column:
        """An attribute in a type that all event types agree on; NULL where it is not there."""
        if attribute not in self.columns:
            return null(dtype)
        column, own = self.columns[attribute]
        return column if own == dtype else column.cast(dtype)

    def is_of(self, types: Iterable[str]) -> Column | None:
        """Whether a row is of one of these types; None when all rows are."""
        return None if self.kind is None else _is_one_of(self.kind, types)

    def choose(self, keys: Mapping[str, Hashable], compute: Callable[[str], Column]) -> Column:
        """For the events of each of these types its value; equal keys mean the same value, which is written once."""
        groups: dict[Hashable, list[str]] = {}
        for name in self.types:
            if name in keys:
                groups.setdefault(keys[name], []).append(name)
        if not groups:
            return F.lit(None)
        made = {key: compute(members[0]) for key, members in groups.items()}
        if self.kind is None:
            return next(iter(made.values()))
        *tested, (last, _) = groups.items()
        is_complete = not self.has_others and sum(map(len, groups.values())) == len(self.types)
        if not is_complete:
            tested = list(groups.items())
        elif not tested:
            return made[last]
        chosen = F.cases((_is_one_of(self.kind, members), made[key]) for key, members in tested)
        return chosen.otherwise(made[last]) if is_complete else chosen


def _is_one_of(column: Column, values: Iterable[str]) -> Column:
    wanted = sorted(values)
    return column == wanted[0] if len(wanted) == 1 else column.isin(wanted)


def part_of(stream: Stream) -> Part:
    """The events of one type."""
    return Part(**vars(stream), types=(stream.type,))


def parts_of(inputs: Inputs, *, others: bool) -> list[Part]:
    """The DataFrames to read; those of types that the pattern does not name only when they count."""
    parts = [part_of(stream) for stream in inputs.streams.values()]
    if parts[0].type_column is not None:
        return [replace(parts[0], types=tuple(inputs.streams), has_others=others)]
    return parts + [replace(part_of(one), types=()) for one in inputs.others.values() if others]


# --- events sent by each of their keys ------------------------------------------------------------


def routed(inputs: Inputs, routes: Routes) -> Inputs:
    """The inputs, with a row for each key that an event has."""
    streams = {name: _sent(stream, routes) for name, stream in inputs.streams.items()}
    return replace(inputs, streams=streams)


def _sent(stream: Stream, routes: Routes) -> Stream:
    """The events of a type, a row for each key, with its roles."""
    used, roles, frame = routes.used(stream.type), routes.roles, stream.frame
    if stream.type_column is not None:
        frame = where(frame, F.col(stream.type_column) == F.lit(stream.type))
    values = {names: [F.col(name) for name in names] for names in used}
    rows = []
    for place, names in enumerate(used):
        row = F.struct(
            *(value.alias(key_name(number)) for number, value in enumerate(values[names])),
            *(
                (_equal(values[names], values[other]) if other in values else F.lit(False)).alias(role_name(number))
                for other, number in roles.items()
            ),
        )
        for other in used[:place]:
            row = F.when(~_equal(values[names], values[other]), row)
        rows.append(row)
    columns = routes.columns(stream.type, types_in(stream.schema))
    fields = [T.StructField(name, to_spark(found)) for name, found in columns.items()]
    sent = F.inline(F.array_compact(F.array(*rows)))
    schema = T.StructType([*stream.schema.fields, *fields])
    return replace(stream, frame=with_columns(frame, sent), schema=schema, type_column=None)


def _equal(ones: Sequence[Column], others: Sequence[Column]) -> Column:
    """Whether two keys are the same; NULL is a key like any other."""
    return reduce(and_, (one.eqNullSafe(other) for one, other in zip(ones, others, strict=True)), F.lit(True))
