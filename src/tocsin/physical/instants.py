"""Time as one BIGINT of microseconds, and back: never by way of the session's time zone.

Spark reads and computes many things in the session's zone: a cast between TIMESTAMP and TIMESTAMP_NTZ, the text of a
time stamp, even `timestamp + INTERVAL 1 DAY` (a calendar day, 23 or 25 hours long when clocks change). A window of a
pattern is a number of microseconds, so all arithmetic on time goes through these functions.
"""

from __future__ import annotations

import datetime as dt

from tocsin.physical.sql import Column
from tocsin.physical.sql import functions as F

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
    return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).__sub__(EPOCH) // MICROSECOND
