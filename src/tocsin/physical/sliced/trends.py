"""Aggregation over all matches without building them: tasks count, their totals are sent on and added up exactly.

What a task sends is one row per group, however many matches there are; sums of any length travel as bytes. The second
step is a Spark aggregation that collects these rows, and Python's integers.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.kernels.trends.asked import asked_in, keys_of, needs_of
from tocsin.kernels.trends.trend import Trend
from tocsin.language import expressions as ex
from tocsin.physical.bags import Binding
from tocsin.physical.compat import make_ready_for_python
from tocsin.physical.inputs import Inputs
from tocsin.physical.overall import Key, group_keys, returned
from tocsin.physical.sliced.counting import ALL_TOTALS, TOTALS, Answers, Counting
from tocsin.physical.sliced.events import Shipper
from tocsin.physical.sliced.matches import DEFAULTS, Options
from tocsin.physical.sliced.slices import distribute
from tocsin.physical.sliced.width import width_us
from tocsin.physical.sql import functions as F
from tocsin.physical.sql.frames import aggregate, select
from tocsin.physical.values import Value, value_of


def over_all(trend: Trend, inputs: Inputs, options: Options = DEFAULTS) -> DataFrame:
    """The RETURN rows of a query over all its matches."""
    query, kernel = trend.kernel.query, trend.kernel
    written = keys_of(query, trend.machine)
    needs = needs_of(written)
    shipper = Shipper(kernel, inputs, needs, with_digests=False)
    shipment = shipper.shipment()
    make_ready_for_python(shipment.frame)
    width = width_us(kernel, options.slice_us)
    rows = distribute(shipment.frame, shipment.columns, kernel, shipment.micros, shipment.keys, width)
    shapes = {name: {one: shipper.shapes[name][one] for one in attributes} for name, attributes in needs.items()}
    fields = [(name, attribute) for name, shape in shapes.items() for attribute in shape]
    schema = T.StructType(
        [T.StructField(f"f{number}", shapes[name][attribute]) for number, (name, attribute) in enumerate(fields)]
    ).add(TOTALS, T.BinaryType())
    counted = rows.mapInArrow(Counting(trend, shipment.layout, width), schema)
    bindings = {
        name: Binding({one: (F.col(f"f{fields.index((name, one))}"), dtype) for one, dtype in shape.items()})
        for name, shape in shapes.items()
    }
    keys = group_keys(written, bindings)
    return _answered(trend, counted, keys)


def _answered(trend: Trend, counted: DataFrame, keys: dict[ex.Expression, Key]) -> DataFrame:
    """Add up the totals of each group and answer what RETURN asks."""
    query = trend.kernel.query
    rows = select(counted, *(key.column.alias(key.name) for key in keys.values()), F.col(TOTALS))
    groups = aggregate(
        rows, [F.col(key.name) for key in keys.values()], F.collect_list(F.col(TOTALS)).alias(ALL_TOTALS)
    )
    schema = T.StructType([field for field in groups.schema.fields if field.name != ALL_TOTALS])
    asked = asked_in(query)
    known: dict[ex.Expression, Value] = {}
    for number, (one, answer) in enumerate(zip(asked, trend.answers, strict=True)):
        dtype: T.DataType = T.DoubleType()
        if answer.is_integer:
            dtype = T.StringType() if answer.as_digits else T.LongType()
        name = f"__tocsin_answer_{number}"
        schema = schema.add(name, dtype)
        known[one.expression] = value_of(F.col(name), dtype)
    answered = groups.mapInArrow(Answers(trend), schema)
    return returned(query, answered, keys, known)
