"""A kernel and its inputs → one DataFrame of matches. Nothing runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra import nodes as alg
from tocsin.analysis import types as analysis
from tocsin.analysis.attributes import attributes_by_variable
from tocsin.analysis.names import MISSING, STATUS
from tocsin.engines.spark import scan
from tocsin.engines.spark.bags import Bag, Binding, event_in
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.computed import computed
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.scan import Shipment, event_types
from tocsin.engines.spark.slices import distribute
from tocsin.engines.spark.spark_types import Shape
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, where
from tocsin.engines.spark.typed_columns import Kind, Value
from tocsin.engines.worker.tasks import Member, task_of
from tocsin.kernels.beginnings import missing_variables
from tocsin.kernels.reach import Search, width_us
from tocsin.language import expressions as ex
from tocsin.options import Options
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Gathered, Reader, brought, needed
from tocsin.plan.prepare import split


@dataclass(frozen=True)
class Found:
    """The matches of a kernel before RETURN: one row each."""

    # `__tocsin_start` and `__tocsin_end` in microseconds, `__tocsin_v0` … for the variables of `shapes`, and
    # `__tocsin_match_id`
    frame: DataFrame
    shapes: dict[str, Shape]  # the variables whose events are there, and the attributes that are


def matches(kernel: Search, inputs: Inputs, options: Options, *, find: Callable[..., Found] | None = None) -> DataFrame:
    """The matches of a query; the columns are `match_id`, `start`, `end`, then those of RETURN or of the variables.

    `find` has the parameters of `search`, which finds them by default.
    """
    found = (find or search)(kernel, inputs, options, with_digests=True)
    frame = found.frame
    having = split(kernel.query).query.having
    if having is not None:
        frame = where(frame, compiler_of(kernel, found).condition(having))
    return returned(kernel, inputs, Found(frame, found.shapes))


def compiler_of(kernel: Search, found: Found) -> Compiler:
    """What compiles expressions over the matches; tasks have computed some aggregates of them."""
    known: dict[ex.Expression, Value] = {
        aggregate: Value(F.col(names.value(number)), Kind.DOUBLE if kind is analysis.Kind.DOUBLE else Kind.INTEGER)
        for number, (aggregate, kind) in enumerate(kernel.aggregates.items())
    }
    return Compiler(bindings_of(kernel.query, found.shapes), known)


def returned(kernel: Search, inputs: Inputs, found: Found, others: Sequence[Column] = ()) -> DataFrame:
    """The columns that users see of the matches that HAVING keeps, and those of other outputs of a stream behind them.

    The native condition of HAVING has been applied before; what Python decides is decided here.
    """
    query, compiler, made = kernel.query, compiler_of(kernel, found), split(kernel.query)
    returns = made.query.returns or tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)
    kind = inputs.time_kind
    before = [
        F.col(names.MATCH_ID).alias("match_id"),
        Value(F.col(names.START), kind, in_micros=True).output.alias("start"),
        Value(F.col(names.END), kind, in_micros=True).output.alias("end"),
    ]
    after = [*(_said_of_timeouts(query) if query.timeouts else ()), *others]
    columns = (compiler.output(each.expression).alias(each.name) for each in returns)
    frame = select(found.frame, *before, *columns, *after)
    if made.is_native:
        return frame
    return computed(
        frame,
        made,
        before=[name for column in before for name in column.names],
        after=[name for column in after for name in column.names],
        always=[name for column in others for name in column.names],
    )


def _said_of_timeouts(query: alg.Query) -> list[Column]:
    """Whether a row is a match or a time-out, and what a time-out lacks."""
    number = F.col(names.MISSING)
    late = [(number == place, F.lit(name)) for place, name in enumerate(missing_variables(query), start=1)]
    status = F.cases([(number == 0, F.lit("match")), (number > 0, F.lit("timeout"))])
    return [status.alias(STATUS), F.cases(late).alias(MISSING)]


def search(kernel: Search, inputs: Inputs, options: Options, *, with_digests: bool) -> Found:
    """The matches of a kernel with the events and attributes that the query's outputs need."""
    shipment, found = ship(kernel, inputs, with_digests=with_digests)
    member = Member(kernel, shipment.layout, inputs.id is not None)
    return Found(run(member, shipment, match_schema(kernel, inputs, shipment, found), options), found)


def run(member: Member, shipment: Shipment, schema: T.StructType, options: Options) -> DataFrame:
    """Shuffle the rows of a batch once, and run a search on those of each task; the result has this schema."""
    width = width_us(member.search, options.slice_us)
    keys = () if member.search.crosses_partitions else shipment.keys
    rows = distribute(shipment.frame, shipment.columns, member.search, shipment.micros, keys, width, shipment.tasks)
    task = task_of(member, width, most=options.max_matches_per_start, memory=options.task_bytes)
    return rows.mapInArrow(task, schema)


def ship(
    kernel: Search, inputs: Inputs, *, with_digests: bool, stream: int = 0, rated: Sequence[str] = ()
) -> tuple[Shipment, dict[str, Shape]]:
    """What travels, and the variables and attributes that the query's outputs need."""
    attributes = attributes_by_variable(kernel.query, event_types(inputs).schemas)
    needs = brought(kernel, needed(kernel.query, attributes))
    reader = Reader(kernel, needs, inputs.id, inputs.ties, with_digests, digests_id=not stream)
    return scan.ship(reader, inputs, stream=stream, rated=rated)


def match_schema(kernel: Search, inputs: Inputs, shipment: Shipment, shapes: dict[str, Shape]) -> T.StructType:
    """The columns that a task gives."""
    schema = T.StructType().add(names.START, T.LongType()).add(names.END, T.LongType())
    if shipment.layout.identifies:
        schema = schema.add(names.MATCH_ID, T.StringType())
    if kernel.query.timeouts:
        schema = schema.add(names.MISSING, T.LongType())
    for number, gathered in enumerate(shipment.layout.gathered):
        schema = schema.add(names.variable(number), variable_type(inputs, gathered, shapes[gathered.name]))
    for number, kind in enumerate(kernel.aggregates.values()):
        schema = schema.add(names.value(number), T.DoubleType() if kind is analysis.Kind.DOUBLE else T.LongType())
    return schema


def variable_type(inputs: Inputs, gathered: Gathered, shape: Shape) -> T.DataType:
    """The type of the column that holds a variable's events."""
    dtypes = [*shape.values()]
    if not dtypes:  # a column that is there to count events
        stream = next(iter(inputs.streams.values()))
        dtypes = [T.LongType() if gathered.columns == (names.TIME,) else stream.schema[stream.time].dataType]
    struct = T.StructType([T.StructField(names.member(place), dtype) for place, dtype in enumerate(dtypes)])
    return T.ArrayType(struct) if gathered.is_iterated else struct


def bindings_of(
    query: alg.Query, shapes: Mapping[str, Shape], places: Sequence[int] | None = None
) -> dict[str, Binding | Bag]:
    """What expressions over a match mean by a variable; `places` are the numbers of the columns that hold them."""
    found: dict[str, Binding | Bag] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        held = F.col(names.variable(number if places is None else places[number]))
        fields = {attribute: (names.member(place), dtype) for place, (attribute, dtype) in enumerate(shape.items())}
        kind = query.variables[name]
        if kind.iterated:
            found[name] = Bag(held, fields)
        else:
            # A variable that is always bound needs no test whether it is.
            event = event_in(held, fields)
            found[name] = event if kind.optional or query.timeouts else replace(event, exists=None)
    return found
