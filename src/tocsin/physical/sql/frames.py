"""Columns applied to a DataFrame: each function is as few calls to Spark as there can be."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as spark

from tocsin.physical.sql.column import SUBSTITUTED, Column


def select(frame: DataFrame, *columns: Column) -> DataFrame:
    """These columns of each row."""
    if any(map(_is_misread, columns)):
        return frame.select(*map(to_spark, columns))
    return frame.selectExpr(*(column.named for column in columns))


def with_columns(frame: DataFrame, *columns: Column) -> DataFrame:
    """All columns of the frame, and these, whose names are new."""
    return frame.selectExpr("*", *(column.named for column in columns))


def where(frame: DataFrame, condition: Column) -> DataFrame:
    """The rows where a condition is TRUE."""
    return frame.filter(condition.text)


def join_on(one: DataFrame, other: DataFrame, condition: Column, how: str) -> DataFrame:
    """The pairs of rows where a condition is TRUE, as PySpark's `how` has it."""
    return one.join(other, to_spark(condition), how)


def union(frames: Sequence[DataFrame], *, by_name: bool = False) -> DataFrame:
    """All rows of frames with the same columns.

    Spark analyzes a union with all that is in it, at once. Of n frames, n log n are analyzed in pairs of pairs, and n²
    one after the other.
    """
    found = list(frames)
    while len(found) > 1:
        pairs = [
            one.unionByName(other) if by_name else one.union(other)
            for one, other in zip(found[::2], found[1::2], strict=False)
        ]
        found = [*pairs, *found[2 * len(pairs) :]]
    return found[0]


def repartition(frame: DataFrame, *by: Column) -> DataFrame:
    """The rows, those together that agree on these values; the session says in how many partitions."""
    return frame.repartition(*map(to_spark, by))


def repartition_by_range(frame: DataFrame, by: Column) -> DataFrame:
    """The rows, those together that agree on a value, in partitions that follow each other in its order."""
    return frame.repartitionByRange(to_spark(by))


def aggregate(frame: DataFrame, by: Sequence[Column], *aggregates: Column) -> DataFrame:
    """One row per group, or one in all: the values it agrees on, and the aggregates."""
    return frame.groupBy(*map(to_spark, by)).agg(*map(to_spark, aggregates))


def to_spark(column: Column) -> SparkColumn:
    """A Column of PySpark."""
    if _is_misread(column):
        return spark.expr(column.text).alias(*column.names)
    return spark.expr(column.named)


def _is_misread(column: Column) -> bool:
    """Whether Spark would put a setting in place of a name."""
    return any(SUBSTITUTED in name for name in column.names)
