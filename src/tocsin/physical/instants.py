"""Time as one BIGINT of microseconds, and back: never by way of the session's time zone.

Spark reads and computes many things in the session's zone: a cast between TIMESTAMP and TIMESTAMP_NTZ, the text of a
time stamp, even `timestamp + INTERVAL 1 DAY` (a calendar day, 23 or 25 hours long when clocks change). A window of a
pattern is a number of microseconds, so all arithmetic on time goes through these functions.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F

if TYPE_CHECKING:
    from tocsin.plan.joins.model import Nearness, Sliding

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
DAY_US = 86_400_000_000


def micros_of_instant(column: Column) -> Column:
    """Microseconds since the epoch of a TIMESTAMP."""
    return F.unix_micros(column)


def micros_of_local(column: Column) -> Column:
    """Microseconds of a TIMESTAMP_NTZ, read as if in UTC.

    `unix_micros` would first cast to TIMESTAMP, in the session's zone, where local times may be missing or come twice.
    The fields of a TIMESTAMP_NTZ are taken as they are.
    """
    days = F.unix_date(column.cast("date")).cast("bigint")
    minutes = (F.hour(column) * 60 + F.minute(column)).cast("bigint")
    within = minutes * 60_000_000 + _second_micros(column)
    # Counted back from the end of a day before the epoch: the start of the very first one is beyond 64 bits.
    back = (days + 1) * DAY_US + (within - DAY_US)
    return F.when(days < 0, back).otherwise(days * DAY_US + within)


def micros_of_date(column: Column) -> Column:
    """Microseconds of the first instant of a DATE in UTC; NULL when no TIMESTAMP is that far away."""
    return F.try_multiply(F.unix_date(column).cast("bigint"), F.lit(DAY_US))


def micros_of_interval(column: Column) -> Column:
    """Microseconds of a day-time interval, which may have fewer fields than INTERVAL DAY TO SECOND."""
    column = column.cast("interval day to second")
    days = F.extract("DAY", column).cast("bigint")
    minutes = days * 1440 + F.extract("HOUR", column) * 60 + F.extract("MINUTE", column)
    return minutes * 60_000_000 + _second_micros(column)


def _second_micros(column: Column) -> Column:
    return (F.extract("SECOND", column) * 1_000_000).cast("bigint")


def instant_of_micros(micros: Column) -> Column:
    """A TIMESTAMP from its microseconds."""
    return F.timestamp_micros(micros)


def local_of_micros(micros: Column) -> Column:
    """A TIMESTAMP_NTZ from its microseconds."""
    return F.timestamp_add("MICROSECOND", micros, _local_epoch())


def interval_of_micros(micros: Column) -> Column:
    """An INTERVAL DAY TO SECOND from its microseconds."""
    return local_of_micros(micros) - _local_epoch()


def _local_epoch() -> Column:
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")


# What Spark calls the fields of the calendar that it has by other names than rules.
EXTRACTED = {
    "year": "YEAR",
    "month": "MONTH",
    "day": "DAY",
    "weekday": "DAYOFWEEK_ISO",
    "yearday": "DOY",
    "week": "WEEK",
}


def calendar(field: str, micros: Column, zone: str | None) -> Column:
    """A field of the calendar, by the wall clock in a zone."""
    # That clock as if it stood in UTC. The fields of a TIMESTAMP are those of the session's zone, so it is made local.
    shown = micros if zone is None else micros_of_instant(F.from_utc_timestamp(instant_of_micros(micros), zone))
    local = local_of_micros(shown)
    of_clock = {"hour": F.hour, "minute": F.minute, "second": F.second}
    found = of_clock[field](local) if field in of_clock else F.extract(EXTRACTED[field], local)
    return found.cast("bigint")


def micros_of_literal(value: dt.datetime) -> int:
    """Microseconds of a literal instant; without a zone it is UTC."""
    return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH) // MICROSECOND


# --- distances, buckets and sliding windows -------------------------------------------------------


def bucket(time: Column, width_us: int) -> Column:
    """The time bucket an event lies in."""
    # Integer division rounds towards zero, which makes the bucket around zero wider and no match less: it is monotonic.
    return time.div(width_us)


def buckets(time: Column, low_us: int, high_us: int, width_us: int) -> Column:
    """The time buckets of `[time + low, time + high]`, an array: at most two when they are as wide as that."""
    return F.sequence(bucket(plus(time, low_us), width_us), bucket(plus(time, high_us), width_us))


def windows(time: Column, sliding: Sliding) -> Column:
    """The sliding windows an event lies in, an array."""
    first = floor_div(plus(time, -sliding.width_us), sliding.slide_us) + 1
    return F.sequence(first, floor_div(time, sliding.slide_us))


def floor_div(time: Column, width_us: int) -> Column:
    """Division that rounds down, also below zero."""
    return time.div(width_us) - F.when(F.pmod(time, F.lit(width_us)) == 0, 0).when(time < 0, 1).otherwise(0)


def plus(time: Column, offset_us: int) -> Column:
    """A sum that stops at the ends of BIGINT."""
    edge = 2**63 - 1 if offset_us >= 0 else -(2**63)
    return F.coalesce(F.try_add(time, F.lit(offset_us)), F.lit(edge))


def minus(later: Column, earlier: Column) -> Column:
    """A difference; one beyond 64 bits is beyond any window: NULL drops it."""
    return F.try_subtract(later, earlier)


def is_near(time: Column, anchor: Column, near: Nearness) -> Column:
    """The exact distance, where equal time buckets only bound it."""
    return minus(time, anchor).between(near.low_us, near.high_us)


def least(columns: list[Column]) -> Column:
    """The earliest of them."""
    return columns[0] if len(columns) == 1 else F.least(*columns)


def greatest(columns: list[Column]) -> Column:
    """The latest of them."""
    return columns[0] if len(columns) == 1 else F.greatest(*columns)
