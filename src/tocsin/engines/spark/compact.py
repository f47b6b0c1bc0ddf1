"""Compact output: one row for each event that matches end at, with the graph they are ways through. Nothing runs here.

column    what it holds
------    -------------
start     the earliest start of its matches
end       their end
matches   how many they are, exactly, as text: it may have any number of digits
starts    where they start
events    a struct with an array for every event type: the events that they are made of, each once
graph     how they are made of them; `Pattern.enumerate` reads it
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.engines.spark import scan
from tocsin.engines.spark.bags import Bag
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.scan import Shipment
from tocsin.engines.spark.search import run
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select
from tocsin.engines.spark.typed_columns import Value
from tocsin.engines.worker.summaries import COUNT, GRAPH, STARTS, Compacting
from tocsin.kernels.runs.register_automaton import RunKernel
from tocsin.options import Options
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Reader


def compact(kernel: RunKernel, inputs: Inputs, options: Options) -> DataFrame:
    """The matches of a query as graphs."""
    kernel, shipment, schema = ship(kernel, inputs)
    return named(kernel, inputs, run(Compacting(kernel, shipment.layout), shipment, schema, options))


def ship(
    kernel: RunKernel, inputs: Inputs, *, stream: int = 0, rated: Sequence[str] = ()
) -> tuple[RunKernel, Shipment, T.StructType]:
    """The kernel that makes graphs, what travels to it, and the columns that it gives."""
    schemas = {name: inputs.streams[name].schema for name in kernel.types}
    kernel = kernel.as_graphs({name: schema.names for name, schema in schemas.items()})
    reader = Reader(kernel, {}, ties=inputs.ties, with_digests=False)
    shipment, _ = scan.ship(reader, inputs, stream=stream, rated=rated)
    return kernel, shipment, _schema(kernel, schemas)


def named(kernel: RunKernel, inputs: Inputs, found: DataFrame, *others: Column) -> DataFrame:
    """What tasks give, under the names that users know."""
    kind = inputs.time_kind
    events = F.struct(
        *(
            _named(F.col(names.variable(number)), inputs.streams[name].schema).alias(name)
            for number, name in enumerate(kernel.types)
        )
    )
    return select(
        found,
        Value(F.col(names.START), kind, in_micros=True).output.alias("start"),
        Value(F.col(names.END), kind, in_micros=True).output.alias("end"),
        F.col(COUNT).alias("matches"),
        F.transform(F.col(STARTS), lambda at: Value(at, kind, in_micros=True).output).alias("starts"),
        F.when(F.col(GRAPH).isNotNull(), events).alias("events"),
        F.col(GRAPH).alias("graph"),
        *others,
    )


def _schema(kernel: RunKernel, schemas: dict[str, T.StructType]) -> T.StructType:
    schema = T.StructType().add(names.START, T.LongType()).add(names.END, T.LongType())
    schema = schema.add(COUNT, T.StringType()).add(STARTS, T.ArrayType(T.LongType()))
    for number, name in enumerate(kernel.types):
        fields = [
            T.StructField(names.member(place), field.dataType) for place, field in enumerate(schemas[name].fields)
        ]
        schema = schema.add(names.variable(number), T.ArrayType(T.StructType(fields)))
    return schema.add(GRAPH, T.BinaryType())


def _named(events: Column, schema: T.StructType) -> Column:
    """Events under the names of their attributes."""
    fields = {field.name: (names.member(place), field.dataType) for place, field in enumerate(schema.fields)}
    return F.transform(events, lambda event: Bag(events, fields).one(event).event)
