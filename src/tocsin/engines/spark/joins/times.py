"""Distances between events, time buckets (O1) and sliding windows, as Columns over times in microseconds."""

from __future__ import annotations

from tocsin.engines.spark.slices import slice_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.plan.joins.model import Nearness, Sliding


def bucket(time: Column, width_us: int) -> Column:
    """The time bucket an event lies in."""
    # Integer division rounds towards zero, which makes the bucket around zero wider and no match less: it is monotonic.
    return time.div(width_us)


def buckets(time: Column, low_us: int, high_us: int, width_us: int) -> Column:
    """The time buckets of `[time + low, time + high]`, an array: at most two when they are as wide as that."""
    return F.sequence(bucket(plus(time, low_us), width_us), bucket(plus(time, high_us), width_us))


def windows(time: Column, sliding: Sliding) -> Column:
    """The sliding windows an event lies in, an array."""
    first = slice_of(plus(time, -sliding.width_us), sliding.slide_us) + 1
    return F.sequence(first, slice_of(time, sliding.slide_us))


def plus(time: Column, offset_us: int) -> Column:
    """A sum that stops at the ends of BIGINT."""
    edge = 2**63 - 1 if offset_us >= 0 else -(2**63)
    return F.coalesce(F.try_add(time, F.lit(offset_us)), F.lit(edge))


def is_near(time: Column, anchor: Column, near: Nearness) -> Column:
    """The exact distance, where equal time buckets only bound it; one beyond 64 bits is beyond any window."""
    apart = F.try_subtract(time, anchor)
    return (apart >= near.low_us) & (apart <= near.high_us)
