"""Aggregates over all matches of a stream, reported for windows of time (EVERY).

All shards have the same watermark, so that their parts of a window come out in one micro-batch, when every match that
starts in it is decided: totals that were counted, or the matches themselves. They are brought together by window and
added up in Python; none of them is state.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.temporal import Network
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.overall import ship, window_of
from tocsin.engines.spark.spark_types import arrow_schema, to_spark
from tocsin.engines.spark.sql.column import with_columns
from tocsin.engines.spark.typed_columns import TIME_TYPES
from tocsin.engines.stream.pipeline import StreamSettings, rated, run_rule, search, what_travels
from tocsin.engines.stream.shard_rules import LiveRule
from tocsin.engines.worker.arrow_types import completed
from tocsin.engines.worker.results import Result, answered, grouped
from tocsin.engines.worker.summaries import WINDOW, counting
from tocsin.kernels.reach import Search
from tocsin.kernels.trends.trend_count import Trend
from tocsin.plan.due import due_of


def counted(trend: Trend, inputs: Inputs, distances: Network, options: StreamSettings, bound: BoundQuery) -> DataFrame:
    """The RETURN rows of each window, counted without finding a match."""
    shipment, fields = ship(trend, inputs, stream=what_travels(options), rated=rated(options))
    rule = LiveRule(counting(trend, shipment.layout), due_of(trend.kernel, distances, eager=False, counts=True))
    frame = run_rule(trend.kernel, rule, inputs, options, shipment, fields)

    def rows(table: pa.Table) -> pa.Table:
        return grouped(bound, answered(trend, table), pa.int64())

    return _closed(frame, bound, inputs, rows, options)


def found(kernel: Search, inputs: Inputs, distances: Network, options: StreamSettings, bound: BoundQuery) -> DataFrame:
    """The RETURN rows of each window, whose matches are found one by one."""
    query = kernel.query
    matches = search(kernel, inputs, distances, options)
    places = {name: (place, tuple(shape)) for place, (name, shape) in enumerate(matches.shapes.items())}
    frame = with_columns(matches.frame, window_of(query).alias(WINDOW))

    def rows(table: pa.Table) -> pa.Table:
        return Result(bound, table, places).over_all(pa.int64())

    return _closed(frame, bound, inputs, rows, options)


def _closed(
    frame: DataFrame, bound: BoundQuery, inputs: Inputs, rows: Callable[[pa.Table], pa.Table], options: StreamSettings
) -> DataFrame:
    """Make the rows of each window from all that is known of it: its bounds, then the columns of RETURN."""
    bounds = ((name, TIME_TYPES[inputs.time_kind]) for name in ("window_start", "window_end"))
    columns = ((name, to_spark(dtype)) for name, dtype in bound.columns)
    schema = T.StructType([T.StructField(name, dtype) for name, dtype in (*bounds, *columns)])
    for output in options.outputs:
        schema = schema.add(output.name, output.type)
    wanted = arrow_schema(schema)
    others = {output.column: output.name for output in options.outputs}

    def close(table: pa.Table) -> pa.Table:
        if table.column(WINDOW).null_count:  # rows of other outputs
            found = table.select(list(others)).rename_columns(list(others.values()))
        else:
            found = rows(table.drop_columns(list(others)))
        return completed(found, wanted)

    return frame.groupBy(WINDOW).applyInArrow(close, schema)
