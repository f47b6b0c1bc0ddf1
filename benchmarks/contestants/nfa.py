"""One operator with an automaton in plain Python, as FlinkCEP has it, after Spark's own filter and sort.

Spark evaluates types and thresholds (`flags`); without a key, the stream is cut into time slices, each with the events
of the window after it, and a match belongs to the slice in which it starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.automaton import Automaton, Match
from benchmarks.calibrate import Ready
from benchmarks.contestants.columns import flags, keeps_any, micros, outputs
from benchmarks.contestants.limits import slice_of, slice_width
from benchmarks.shapes import Shape


def partitions(frame: DataFrame, ready: Ready) -> DataFrame:
    """Over whole partitions, sorted by Spark; the automaton starts anew where the group changes."""
    shape = ready.shape
    rows = _rows(frame, ready).repartition("grp").sortWithinPartitions("grp", "t")

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        automaton, current = Automaton(shape), None
        for batch in batches:
            found: list[Match] = []
            of_group: list[int] = []
            columns = (batch.column(name).to_pylist() for name in ("grp", "t", "flags", "id", "v"))
            for group, ts, flag, id, value in zip(*columns, strict=True):
                if group != current:
                    current = group
                    automaton.reset()
                automaton.feed(ts, flag, id, value, found)
                if len(found) > len(of_group):
                    of_group.extend([group] * (len(found) - len(of_group)))
            if found:
                yield pa.RecordBatch.from_pydict(_columns(shape, of_group, found), schema=_arrow(shape))

    return outputs(rows.mapInArrow(find, _schema(shape)), frame, shape)


def groups(frame: DataFrame, ready: Ready) -> DataFrame:
    """Over one group at a time, sorted by pandas: `groupBy(key).applyInPandas`."""
    shape = ready.shape

    def find(group: pd.DataFrame) -> pd.DataFrame:
        group = group.sort_values("t")
        columns = (group[name].tolist() for name in ("t", "flags", "id", "v"))
        found = list(Automaton(shape).matches(zip(*columns, strict=True)))
        return pd.DataFrame(_columns(shape, [group["grp"].iat[0]] * len(found), found))

    found = _rows(frame, ready).groupBy("grp").applyInPandas(find, _schema(shape))
    return outputs(found, frame, shape)


def _rows(frame: DataFrame, ready: Ready) -> DataFrame:
    """Events with their group: the key, or the time slices that may need them."""
    shape = ready.shape
    filtered = frame.filter(keeps_any(shape))
    columns = (F.col("id"), F.col("value").alias("v"))
    if shape.is_keyed:
        return filtered.select(
            F.col("key").cast("bigint").alias("grp"), micros(frame).alias("t"), flags(shape).alias("flags"), *columns
        )
    time = micros(frame)
    first, last = slice_of(time - (shape.window_us - 1), ready), slice_of(time, ready)
    copied = filtered.select("type", "value", time.alias("t"), "id", F.explode(F.sequence(first, last)).alias("grp"))
    is_own = F.call_function("div", F.col("t"), F.lit(slice_width(ready))) == F.col("grp")
    return copied.select("grp", "t", flags(shape, may_start=is_own).alias("flags"), *columns)


def _names(shape: Shape) -> list[tuple[str, str]]:
    last = len(shape.positives) - 1
    ids = [(f"id{place}", "bigint") for place in range(last + 1)]
    return [("key", "bigint"), ("t0", "bigint"), (f"t{last}", "bigint"), *ids, (f"v{last}", "double")]


def _schema(shape: Shape) -> str:
    return ", ".join(f"{name} {type}" for name, type in _names(shape))


def _arrow(shape: Shape) -> pa.Schema:
    kinds = {"bigint": pa.int64(), "double": pa.float64()}
    return pa.schema([(name, kinds[type]) for name, type in _names(shape)])


def _columns(shape: Shape, of_group: list[int], found: list[Match]) -> dict[str, list[Any]]:
    last = len(shape.positives) - 1
    starts, ends, ids, values = zip(*found, strict=True) if found else ((), (), (), ())
    by_place = zip(*ids, strict=True) if found else ((),) * (last + 1)
    return {
        "key": list(of_group),
        "t0": list(starts),
        f"t{last}": list(ends),
        **{f"id{place}": list(column) for place, column in enumerate(by_place)},
        f"v{last}": list(values),
    }
