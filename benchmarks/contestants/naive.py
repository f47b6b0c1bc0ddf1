"""The plan that the query says literally: one join per step, with inequalities in the join condition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.calibrate import Ready
from benchmarks.contestants.columns import events_of, follows, negated_events, outputs
from benchmarks.shapes import Shape


def theta(frame: DataFrame, ready: Ready) -> DataFrame:
    shape = ready.shape
    found = events_of(frame, shape, 0)
    for place in range(1, len(shape.positives)):
        found = _join(found, events_of(frame, shape, place), shape, place)
        for step in shape.negated_before(place):
            negated = negated_events(frame, shape, step)
            between = (F.col("t_n") > F.col(f"t{place - 1}")) & (F.col("t_n") < F.col(f"t{place}"))
            if shape.is_keyed:
                negated = negated.withColumnRenamed("key", "key_n")
                between &= F.col("key") == F.col("key_n")
            found = found.join(negated, between, "left_anti")
    return outputs(found, frame, shape)


def _join(found: DataFrame, right: DataFrame, shape: Shape, place: int) -> DataFrame:
    condition = follows(shape, place)
    if shape.is_keyed:
        right = right.withColumnRenamed("key", "key_r")
        return found.join(right, (F.col("key") == F.col("key_r")) & condition).drop("key_r")
    return found.join(right, condition)
