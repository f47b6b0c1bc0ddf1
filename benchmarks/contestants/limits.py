"""No matches: what Spark itself needs to bring the candidate events together.

`limit` scans, filters, shuffles by key (without a key: by time slice) and sorts the columns that a match needs. A plan
with one shuffle and a sort cannot be faster; one that needs no shuffle can.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.calibrate import Ready
from benchmarks.contestants.columns import keeps_any, micros

SLICES = 32  # of the whole stream, when there is no key; never narrower than five windows


def slice_width(ready: Ready) -> int:
    return max(5 * ready.shape.window_us, ready.span_us // SLICES + 1)


def slice_of(time: Column, ready: Ready) -> Column:
    return F.call_function("div", time, F.lit(slice_width(ready)))


def scan(frame: DataFrame, ready: Ready) -> DataFrame:
    keys = ["key"] if ready.shape.is_keyed else []
    return frame.filter(keeps_any(ready.shape)).select(*keys, "ts", "type", "id", "value")


def limit(frame: DataFrame, ready: Ready) -> DataFrame:
    if ready.shape.is_keyed:
        return scan(frame, ready).repartition("key").sortWithinPartitions("key", "ts")
    return scan(frame, ready).repartition(slice_of(micros(frame), ready)).sortWithinPartitions("ts")
