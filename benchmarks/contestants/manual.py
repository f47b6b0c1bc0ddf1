"""Plans by hand: what an engineer who knows Spark and the data writes for one pattern.

buckets
    Equi-joins on (key, time bucket of the first event). Later events are copied into every bucket in which a match that
    they end may start; so all joins of a pattern use the same keys, and nothing found so far is shuffled again.
wide buckets
    The same with buckets of four windows: fewer copies, more pairs to look at.
chain
    Each join has its own buckets: what was found so far is copied into the buckets of its possible continuations.
arrays
    One scan: the events of each (key, bucket) in arrays, and nested loops by higher-order functions over them.

Absence: an anti join on the same buckets, or NOT EXISTS over the array.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from benchmarks.calibrate import Ready
from benchmarks.contestants.columns import events_of, follows, keeps, keeps_any, micros, negated_events, outputs
from benchmarks.shapes import Shape

WIDE = 4


def buckets(frame: DataFrame, ready: Ready) -> DataFrame:
    return _buckets(frame, ready.shape, ready.shape.window_us)


def wide_buckets(frame: DataFrame, ready: Ready) -> DataFrame:
    return _buckets(frame, ready.shape, WIDE * ready.shape.window_us)


def _buckets(frame: DataFrame, shape: Shape, width: int) -> DataFrame:
    on = [*(["key"] if shape.is_keyed else []), "bucket"]
    found = events_of(frame, shape, 0).withColumn("bucket", _bucket(F.col("t0"), width))
    for place in range(1, len(shape.positives)):
        right = events_of(frame, shape, place)
        # The first event is earlier than this one, and less than a window earlier.
        right = right.withColumn("bucket", _copies(F.col(f"t{place}"), shape.window_us, width))
        found = found.join(right, on).filter(follows(shape, place))
        found = _without_blocked(found, frame, shape, place, width)
    return outputs(found, frame, shape)


def chain(frame: DataFrame, ready: Ready) -> DataFrame:
    shape, width = ready.shape, ready.shape.window_us
    on = [*(["key"] if shape.is_keyed else []), "bucket"]
    found = events_of(frame, shape, 0)
    for place in range(1, len(shape.positives)):
        right = events_of(frame, shape, place).withColumn("bucket", _bucket(F.col(f"t{place}"), width))
        earliest, latest = F.col(f"t{place - 1}") + 1, F.col("t0") + (shape.window_us - 1)
        found = found.withColumn("bucket", _explode(_bucket(earliest, width), _bucket(latest, width)))
        found = found.join(right, on).filter(follows(shape, place)).drop("bucket")
        if shape.negated_before(place):
            found = found.withColumn("bucket", _bucket(F.col("t0"), width))
            found = _without_blocked(found, frame, shape, place, width).drop("bucket")
    return outputs(found, frame, shape)


def arrays(frame: DataFrame, ready: Ready) -> DataFrame:
    shape, width = ready.shape, ready.shape.window_us
    keys = ["key"] if shape.is_keyed else []
    columns = [*keys, micros(frame).alias("t"), F.col("id"), F.col("value").alias("v")]
    distinct = tuple(dict.fromkeys(shape.steps))
    marked = frame.filter(keeps_any(shape)).select(
        *columns, *(keeps(step).alias(f"is{number}") for number, step in enumerate(distinct))
    )
    # Also the bucket of the event itself, where it may be the first of a match.
    first, last = _bucket(F.col("t") - (shape.window_us - 1), width), _bucket(F.col("t"), width)
    marked = marked.withColumn("bucket", _explode(first, last))
    event = F.struct("t", "id", "v")
    collected = marked.groupBy(*keys, "bucket").agg(
        *(F.collect_list(F.when(F.col(f"is{number}"), event)).alias(f"all{number}") for number in range(len(distinct)))
    )
    fewest = {number: shape.positives.count(step) for number, step in enumerate(distinct)}
    found = collected.filter(
        reduce(and_, (F.size(f"all{number}") >= least for number, least in fewest.items() if least))
    )
    for place, step in enumerate(shape.positives):
        candidates = F.col(f"all{distinct.index(step)}")
        found = found.withColumn(f"e{place}", F.explode(F.filter(candidates, _may_be(shape, place, width))))
        for negated in shape.negated_before(place) if place else ():
            found = found.filter(~F.exists(f"all{distinct.index(negated)}", _is_between(place)))
    numbered = [
        F.col(f"e{place}.{field}").alias(f"{name}{place}")
        for place in range(len(shape.positives))
        for field, name in (("t", "t"), ("id", "id"), ("v", "v"))
    ]
    return outputs(found.select(*keys, *numbered), frame, shape)


def _may_be(shape: Shape, place: int, width: int):
    def condition(event: Column) -> Column:
        if place == 0:
            return _bucket(event["t"], width) == F.col("bucket")
        before = F.col(f"e{place - 1}")
        follows = (event["t"] > before["t"]) & (event["t"] < F.col("e0.t") + shape.window_us)
        return follows if shape.gap is None else follows & (event["v"] > before["v"] + F.lit(shape.gap))

    return condition


def _is_between(place: int):
    def condition(event: Column) -> Column:
        return (event["t"] > F.col(f"e{place - 1}.t")) & (event["t"] < F.col(f"e{place}.t"))

    return condition


def _bucket(micros_column: Column, width: int) -> Column:
    # A division of integers: all times are after 1970, so that rounding to zero is rounding down.
    return F.call_function("div", micros_column, F.lit(width))


def _copies(micros_column: Column, window_us: int, width: int) -> Column:
    return _explode(_bucket(micros_column - (window_us - 1), width), _bucket(micros_column - 1, width))


def _explode(first: Column, last: Column) -> Column:
    return F.explode(F.sequence(first, last))


def _without_blocked(found: DataFrame, frame: DataFrame, shape: Shape, place: int, width: int) -> DataFrame:
    """Without the matches that a negated event between `place` and the one before it blocks."""
    keys = ["key"] if shape.is_keyed else []
    for step in shape.negated_before(place):
        negated = negated_events(frame, shape, step)
        negated = negated.withColumn("bucket_n", _copies(F.col("t_n"), shape.window_us, width))
        negated = negated.withColumnsRenamed({"key": "key_n"})
        same = reduce(and_, (F.col(name) == F.col(f"{name}_n") for name in [*keys, "bucket"]))
        between = (F.col("t_n") > F.col(f"t{place - 1}")) & (F.col("t_n") < F.col(f"t{place}"))
        found = found.join(negated, same & between, "left_anti")
    return found
