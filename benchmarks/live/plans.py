"""The plans that are measured on a stream: Tocsin's, and the chain of stream-stream joins that it replaces."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tocsin

LATENESS = "1 second"
CLIMB = 0.7, 0.1  # by how much b is above a, and c above b
STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def pattern(window_s: int) -> tocsin.Pattern:
    """SEQ(3) on one key."""
    return tocsin.pattern(
        f"PATTERN SEQ(A a, B b, C c) WHERE b.value > a.value + {CLIMB[0]} AND c.value > b.value + {CLIMB[1]} "
        f"PARTITION BY key WITHIN {window_s} SECONDS RETURN a.id AS a, b.id AS b, c.id AS c"
    )


def by_tocsin(events: DataFrame, window_s: int) -> DataFrame:
    """The matches, without `match_id`: the joins have none."""
    return pattern(window_s).match(events, time="ts", id="id", lateness=LATENESS).select("start", "end", "a", "b", "c")


def by_joins(events: DataFrame, window_s: int) -> DataFrame:
    """Two interval joins, the best that Spark offers for this pattern."""
    a, b, c = (_branch(events, name) for name in "abc")
    first = a.join(
        b,
        (F.col("a_key") == F.col("b_key"))
        & F.expr(f"b_ts > a_ts AND b_ts < a_ts + INTERVAL {window_s} SECONDS AND b_value > a_value + {CLIMB[0]}"),
    )
    # One event-time column may leave a join: that of `a`, which bounds the state of the next.
    first = first.select("a", "a_key", "a_ts", "b", "b_value", F.unix_micros("b_ts").alias("b_us"))
    second = first.join(
        c,
        (F.col("a_key") == F.col("c_key"))
        & F.expr(f"c_ts > a_ts AND c_ts < a_ts + INTERVAL {window_s} SECONDS")
        & F.expr(f"unix_micros(c_ts) > b_us AND c_value > b_value + {CLIMB[1]}"),
    )
    return second.select(F.unix_micros("a_ts").alias("start"), F.unix_micros("c_ts").alias("end"), "a", "b", "c")


def _branch(events: DataFrame, name: str) -> DataFrame:
    """The events of one type under names of their own."""
    # A filter on the type alone is pushed below the watermark, which then sees this type only (SPARK-21587).
    wanted = events.withWatermark("ts", LATENESS).filter(f"CASE WHEN type = '{name.upper()}' THEN ts END IS NOT NULL")
    return wanted.select(
        F.col("id").alias(name), *(F.col(column).alias(f"{name}_{column}") for column in ("ts", "key", "value"))
    )


PLANS = {"tocsin": by_tocsin, "joins": by_joins}
