"""Aggregation over all matches without building them: tasks count, their totals are sent on and added up exactly.

What a task sends is one row per group, however many matches there are; sums of any length travel as bytes. The second
step is a Spark aggregation that collects these rows, and Python's integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.kernels.reach import width_us
from tocsin.kernels.trends.request import keys_of, needs_of, requested_in
from tocsin.kernels.trends.trend import Trend
from tocsin.language import expressions as ex
from tocsin.options import Options
from tocsin.physical.bags import Binding
from tocsin.physical.compat import schema_of
from tocsin.physical.inputs import Inputs
from tocsin.physical.overall import Key, group_keys, returned
from tocsin.physical.sliced import scan
from tocsin.physical.sliced.counting import ALL_TOTALS, TOTALS, WINDOW, Answers, counting
from tocsin.physical.sliced.matches import DEFAULTS
from tocsin.physical.sliced.scan import Shipment
from tocsin.physical.sliced.slices import distribute
from tocsin.physical.sliced.worker import task_of
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import aggregate, select
from tocsin.physical.values import Kind, Value, value_of
from tocsin.plan.manifest import Reader


def over_all(trend: Trend, inputs: Inputs, options: Options = DEFAULTS) -> DataFrame:
    """The RETURN rows of a query over all its matches."""
    kernel = trend.kernel
    shipment, schema = ship(trend, inputs)
    width = width_us(kernel, options.slice_us)
    rows = distribute(shipment.frame, shipment.columns, kernel, shipment.micros, shipment.keys, width)
    return answers(trend, inputs, rows.mapInArrow(task_of(counting(trend, shipment.layout), width), schema))


def ship(trend: Trend, inputs: Inputs, *, stream: int = 0, rated: Sequence[str] = ()) -> tuple[Shipment, T.StructType]:
    """What travels, and the columns of what is counted: those of group keys, the window, and the totals."""
    query = trend.kernel.query
    needs = needs_of(keys_of(query, trend.machine))
    reader = Reader(trend.kernel, needs, ties=inputs.ties, with_digests=False)
    shipment, shapes = scan.ship(reader, inputs, stream=stream, rated=rated)
    dtypes = [shapes[name][one] for name, attributes in needs.items() for one in attributes]
    schema = T.StructType([T.StructField(f"f{number}", dtype) for number, dtype in enumerate(dtypes)])
    if query.every_us is not None:
        schema = schema.add(WINDOW, T.LongType())
    return shipment, schema.add(TOTALS, T.BinaryType())


def answers(trend: Trend, inputs: Inputs, counted: DataFrame) -> DataFrame:
    """The RETURN rows, from what tasks have counted."""
    written = keys_of(trend.kernel.query, trend.machine)
    fields = [(name, one) for name, attributes in needs_of(written).items() for one in attributes]
    bindings: dict[str, Binding] = {}
    for name in dict.fromkeys(name for name, _ in fields):
        own = {one: number for number, (of, one) in enumerate(fields) if of == name}
        dtypes = schema_of(counted)
        bindings[name] = Binding({one: (F.col(f"f{number}"), dtypes[number].dataType) for one, number in own.items()})
    return _answered(trend, counted, group_keys(written, bindings), inputs.time_kind)


def _answered(trend: Trend, counted: DataFrame, keys: dict[ex.Expression, Key], time: Kind) -> DataFrame:
    """Add up the totals of each group and answer what RETURN asks."""
    query = trend.kernel.query
    windows = [] if query.every_us is None else [F.col(WINDOW)]
    rows = select(counted, *(key.column.alias(key.name) for key in keys.values()), *windows, F.col(TOTALS))
    names = [*(F.col(key.name) for key in keys.values()), *windows]
    groups = aggregate(rows, names, F.collect_list(F.col(TOTALS)).alias(ALL_TOTALS))
    schema = T.StructType([field for field in groups.schema.fields if field.name != ALL_TOTALS])
    asked = requested_in(query)
    known: dict[ex.Expression, Value] = {}
    for number, (one, answer) in enumerate(zip(asked, trend.answers, strict=True)):
        dtype: T.DataType = T.DoubleType()
        if answer.is_integer:
            dtype = T.StringType() if answer.as_digits else T.LongType()
        name = f"__tocsin_answer_{number}"
        schema = schema.add(name, dtype)
        known[one.expression] = value_of(F.col(name), dtype)
    answered = groups.mapInArrow(Answers(trend), schema)
    return returned(query, answered, keys, known, time)
