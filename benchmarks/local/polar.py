"""The Polars expressions of a workload: several plans, of which the fastest counts.

join_where
    The joins that the query says literally, with inequalities. It looks at all pairs (of a key).
buckets
    Equi-joins on (key, time bucket of the first event); later events are copied into the buckets that may need them.
wide buckets
    The same with buckets of four windows: fewer copies, more pairs to look at.

Positions found by binary search (`search_sorted`) and exploded took as long as buckets, or longer.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from benchmarks.shapes import Shape, Step

WIDE = 4
Plan = Callable[[pl.LazyFrame, Shape], pl.LazyFrame]


def answer(plan: Plan, shape: Shape, events: pa.Table | str) -> pa.Table:
    """The rows of a plan over events: an Arrow table, or a glob of Parquet files."""
    frame = pl.scan_parquet(events) if isinstance(events, str) else pl.DataFrame(events).lazy()
    return plan(frame, shape).collect().to_arrow()


def join_where(frame: pl.LazyFrame, shape: Shape) -> pl.LazyFrame:
    def joined(found: pl.LazyFrame, place: int) -> pl.LazyFrame:
        later = _events(frame, shape, shape.positives[place], str(place), key=f"key{place}")
        found = found.join_where(later, *_same(shape, f"key{place}"), *_follows(shape, place))
        for step in shape.negated_before(place):
            blockers = _events(frame, shape, step, "_n", key="key_n")
            found = found.join_where(blockers, *_same(shape, "key_n"), *_between(place), how="left")
            found = found.filter(pl.col("t_n").is_null()).drop(cs.ends_with("_n"))
        return found

    return _outputs(_chain(_events(frame, shape, shape.positives[0], "0"), shape, joined), frame, shape)


def buckets(frame: pl.LazyFrame, shape: Shape, wide: int = 1) -> pl.LazyFrame:
    width, on = wide * shape.window_us, [*_keys(shape), "bucket"]

    def copied(step: Step, suffix: str) -> pl.LazyFrame:
        return _copies(_events(frame, shape, step, suffix), shape, width, f"t{suffix}")

    def joined(found: pl.LazyFrame, place: int) -> pl.LazyFrame:
        found = found.join(copied(shape.positives[place], str(place)), on=on).filter(_follows(shape, place))
        for step in shape.negated_before(place):
            ids = [f"id{number}" for number in range(place + 1)]
            blocked = found.join(copied(step, "_n"), on=on).filter(_between(place)).select(ids)
            found = found.join(blocked, on=ids, how="anti")
        return found

    first = _events(frame, shape, shape.positives[0], "0").with_columns(bucket=pl.col("t0") // width)
    return _outputs(_chain(first, shape, joined), frame, shape)


def wide_buckets(frame: pl.LazyFrame, shape: Shape) -> pl.LazyFrame:
    return buckets(frame, shape, WIDE)


def count(frame: pl.LazyFrame, shape: Shape, wide: int = 1) -> pl.LazyFrame:
    """How many matches a sequence of three has when its middle step is an iteration; see `duck.count`."""
    first, middle, last = (step.type for step in shape.steps)
    names, width = _keys(shape), wide * shape.window_us
    kept = frame.filter(pl.col("type").is_in([first, middle, last]))
    kept = kept.select(*names, "type", t=pl.col("ts").to_physical()).sort("t")
    counted = (pl.col("type") == middle).cast(pl.Int64).cum_sum()
    kept = kept.with_columns(n=counted.over(names) if names else counted)
    starts = kept.filter(pl.col("type") == first).select(*names, t0="t", n0="n", bucket=pl.col("t") // width)
    ends = kept.filter(pl.col("type") == last).select(*names, t1="t", n1="n")
    pairs = starts.join(_copies(ends, shape, width, "t1"), on=[*names, "bucket"]).filter(_range(shape, 1))
    return pairs.select(n=(pl.lit(2, pl.Int64).pow(pl.col("n1") - pl.col("n0")) - 1).sum())


def wide_count(frame: pl.LazyFrame, shape: Shape) -> pl.LazyFrame:
    return count(frame, shape, WIDE)


def _chain(found: pl.LazyFrame, shape: Shape, joined: Callable[[pl.LazyFrame, int], pl.LazyFrame]) -> pl.LazyFrame:
    for place in range(1, len(shape.positives)):
        found = joined(found, place)
    return found


def _events(frame: pl.LazyFrame, shape: Shape, step: Step, suffix: str, key: str = "key") -> pl.LazyFrame:
    kept = pl.col("type") == step.type
    if step.above is not None:
        kept &= pl.col("value") > step.above
    keys = [pl.col(name).alias(key) for name in _keys(shape)]
    named = {f"t{suffix}": pl.col("ts").to_physical(), f"id{suffix}": pl.col("id"), f"v{suffix}": pl.col("value")}
    return frame.filter(kept).select(*keys, **named)


def _copies(events: pl.LazyFrame, shape: Shape, width: int, time: str) -> pl.LazyFrame:
    """A row for each bucket of a first event that is earlier than this one, and less than a window earlier."""
    first, last = (pl.col(time) - (shape.window_us - 1)) // width, (pl.col(time) - 1) // width
    return events.with_columns(bucket=pl.int_ranges(first, last + 1)).explode("bucket")


def _keys(shape: Shape) -> list[str]:
    return ["key"] if shape.is_keyed else []


def _same(shape: Shape, key: str) -> list[pl.Expr]:
    return [pl.col(name) == pl.col(key) for name in _keys(shape)]


def _range(shape: Shape, place: int) -> list[pl.Expr]:
    time = pl.col(f"t{place}")
    return [time > pl.col(f"t{place - 1}"), time < pl.col("t0") + shape.window_us]


def _follows(shape: Shape, place: int) -> list[pl.Expr]:
    conditions = _range(shape, place)
    if shape.gap is not None:
        conditions.append(pl.col(f"v{place}") > pl.col(f"v{place - 1}") + shape.gap)
    return conditions


def _between(place: int) -> list[pl.Expr]:
    return [pl.col("t_n") > pl.col(f"t{place - 1}"), pl.col("t_n") < pl.col(f"t{place}")]


def _outputs(found: pl.LazyFrame, frame: pl.LazyFrame, shape: Shape) -> pl.LazyFrame:
    last, clock = len(shape.positives) - 1, frame.collect_schema()["ts"]
    ids = [pl.col(f"id{place}") for place in range(last + 1)]
    columns = [pl.col("t0").cast(clock).alias("start"), pl.col(f"t{last}").cast(clock).alias("end")]
    value = pl.col(f"v{last}").alias("value")
    if shape.is_iteration:
        return found.select(*columns, pl.concat_list(ids).alias("ids"), value)
    named = (id.alias(f"{step.variable}_id") for id, step in zip(ids, shape.positives, strict=True))
    return found.select(*columns, *named, value, *_keys(shape))


# Those that find all matches, and those that count them.
PLANS: dict[str, Plan] = {"join_where": join_where, "buckets": buckets, "wide buckets": wide_buckets}
COUNTS: dict[str, Plan] = {"buckets": count, "wide buckets": wide_count}
