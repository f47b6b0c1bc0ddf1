"""What all hand-written plans share: the events of a step, and the columns that go out."""

from __future__ import annotations

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from benchmarks.shapes import Shape, Step


def micros(frame: DataFrame) -> Column:
    """The time column in microseconds."""
    return F.unix_micros("ts") if isinstance(frame.schema["ts"].dataType, T.TimestampType) else F.col("ts")


def time_of(frame: DataFrame, micros_column: Column) -> Column:
    """Microseconds as the time column has them."""
    is_timestamp = isinstance(frame.schema["ts"].dataType, T.TimestampType)
    return F.timestamp_micros(micros_column) if is_timestamp else micros_column


def keeps(step: Step) -> Column:
    """Whether an event may be bound by a step."""
    of_type = F.col("type") == step.type
    return of_type if step.above is None else of_type & (F.col("value") > F.lit(step.above))


def keeps_any(shape: Shape) -> Column:
    return reduce(or_, map(keeps, dict.fromkeys(shape.steps)))


def flags(shape: Shape, *, may_start: Column | None = None) -> Column:
    """The flags that the automaton reads; events for which `may_start` is false start no match."""
    ordered = (*shape.positives, *(step for step in shape.steps if step.is_negated))
    bits = [keeps(step) for step in ordered]
    if may_start is not None:
        bits[0] = bits[0] & may_start
    return reduce(lambda a, b: a.bitwiseOR(b), (F.when(bit, 1 << at).otherwise(0) for at, bit in enumerate(bits)))


def events_of(frame: DataFrame, shape: Shape, place: int) -> DataFrame:
    """The events of the positive step at `place`, their columns numbered: t0, id0, v0 and the key."""
    return _numbered(frame, shape, shape.positives[place], str(place))


def negated_events(frame: DataFrame, shape: Shape, step: Step) -> DataFrame:
    return _numbered(frame, shape, step, "_n")


def _numbered(frame: DataFrame, shape: Shape, step: Step, suffix: str) -> DataFrame:
    keys = [F.col("key")] if shape.is_keyed else []
    columns = (micros(frame).alias(f"t{suffix}"), F.col("id").alias(f"id{suffix}"), F.col("value").alias(f"v{suffix}"))
    return frame.filter(keeps(step)).select(*keys, *columns)


def follows(shape: Shape, place: int) -> Column:
    """The condition on the event at `place`, given all before it; its own bounds first."""
    here, before = F.col(f"t{place}"), F.col(f"t{place - 1}")
    condition = (here > before) & (here < F.col("t0") + shape.window_us)
    if shape.gap is not None:
        condition &= F.col(f"v{place}") > F.col(f"v{place - 1}") + F.lit(shape.gap)
    return condition


def outputs(found: DataFrame, frame: DataFrame, shape: Shape) -> DataFrame:
    """The columns that go out, from the numbered ones."""
    last = len(shape.positives) - 1
    ids = [F.col(f"id{place}") for place in range(last + 1)]
    value = F.col(f"v{last}").alias("value")
    columns = [time_of(frame, F.col("t0")).alias("start"), time_of(frame, F.col(f"t{last}")).alias("end")]
    if shape.is_iteration:
        return found.select(*columns, F.array(*ids).alias("ids"), value)
    named = [column.alias(f"{step.variable}_id") for column, step in zip(ids, shape.positives, strict=True)]
    return found.select(*columns, *named, value, *([F.col("key")] if shape.is_keyed else []))
