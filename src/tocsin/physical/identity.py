"""`match_id`: 32 lower-case hexadecimal digits that name a match, the same in every engine, plan and run.

The recipe, for any engine to reproduce. `xxhash64(v1, v2, …)` is Spark's: XXH64 of each value in turn, seeded with the
hash before it, the first with 42; a BIGINT is its 8 bytes, little endian, a DOUBLE the BIGINT of its bits (−0.0 as
0.0), a STRING its UTF-8 bytes.

1. The values of a match are, in this order: `start` and `end` in microseconds; then for each variable of the query, by
   name: its name; 1 or 0, whether it is bound; and if it is bound, its event type and the event's identity.
2. An event's identity is the value of the user's `id` column, or, without one, for each of its columns by name: the
   column's name and its value.
3. A value is written as 0 when it is NULL, and otherwise as 1 followed by: integers as BIGINT; FLOAT and DOUBLE as
   DOUBLE; BOOLEAN as BIGINT 0 or 1; TIMESTAMP, TIMESTAMP_NTZ and intervals as BIGINT microseconds; BINARY as its
   upper-case hexadecimal text; arrays, maps and variants as the text of `to_json` with NULL fields kept, in UTC, a
   TIMESTAMP in them as `2026-01-31T23:59:59.000001Z`, a TIMESTAMP_NTZ without the `Z`, always with six digits after the
   point; everything else (decimals, dates, strings) as STRING. A struct is written as 0 or 1 and then, in both cases,
   its fields by name, each written in the same way. Numbers that are not values (1, 0, microseconds) are BIGINT. NULL
   itself is never hashed: xxhash64 passes over it, so that it would vanish.
4. h1 = xxhash64(1, values…), h2 = xxhash64(2, values…).
5. Equal rows make matches that are equal in all of this. They are numbered n = 0, 1, …; which is which does not matter,
   for nothing tells them apart. With an `id` column n is 0.
6. match_id = hex(xxhash64(1, h1, h2, n)) then hex(xxhash64(2, h1, h2, n)), 16 digits each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tocsin.physical import instants
from tocsin.physical.values import Kind, kind_of

FIRST_HASH, SECOND_HASH = "__tocsin_hash1", "__tocsin_hash2"
ORDINAL, MATCH_ID = "__tocsin_ordinal", "__tocsin_match_id"
# Spark's own formats keep milliseconds only, so that different rows would look alike.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True)
class Event:
    """A bound event: its type, and its own columns with their types by name."""

    type: str
    columns: Mapping[str, tuple[Column, T.DataType]]


def hashes(
    start_us: Column, end_us: Column, events: Mapping[str, Event | list[Column]], *, id: str | None = None
) -> list[Column]:
    """The columns h1 and h2 of the matches of a branch: for every variable its event, or its `absent`."""
    values = [start_us, end_us]
    for name in sorted(events):
        event = events[name]
        if isinstance(event, Event):
            values += [F.lit(name), _number(1), F.lit(event.type), *_identity(event, id)]
        else:
            values += event
    return [F.xxhash64(_number(salt), *values).alias(name) for salt, name in ((1, FIRST_HASH), (2, SECOND_HASH))]


def absent(name: str) -> list[Column]:
    """The values of a variable that is not bound."""
    return [F.lit(name), _number(0)]


def with_match_id(frame: DataFrame, *, id: str | None = None) -> DataFrame:
    """Adds `__tocsin_match_id` to matches that carry their hashes; without an `id`, this shuffles the matches."""
    ordinal = _number(0)
    if id is None:
        equal = Window.partitionBy(FIRST_HASH, SECOND_HASH).orderBy(FIRST_HASH)
        frame = frame.withColumn(ORDINAL, F.row_number().over(equal).cast("bigint") - 1)
        ordinal = F.col(ORDINAL)
    halves = [
        F.lpad(F.lower(F.hex(F.xxhash64(_number(salt), FIRST_HASH, SECOND_HASH, ordinal))), 16, "0") for salt in (1, 2)
    ]
    return frame.withColumn(MATCH_ID, F.concat(*halves))


def _number(value: int) -> Column:
    return F.lit(int(value)).cast("bigint")


def _identity(event: Event, id: str | None) -> Iterable[Column]:
    if id is not None:
        yield from _written(*event.columns[id])
        return
    for name in sorted(event.columns):
        column, dtype = event.columns[name]
        yield F.lit(name)
        yield from _written(column, dtype)


def _written(column: Column, dtype: T.DataType) -> Iterable[Column]:
    yield F.when(column.isNull(), 0).otherwise(1).cast("bigint")
    if isinstance(dtype, T.StructType):
        for field in sorted(dtype.fields, key=lambda field: field.name):
            yield from _written(column.getField(field.name), field.dataType)
        return
    match kind_of(dtype):
        case Kind.INTEGER | Kind.BOOLEAN:
            yield column.cast("bigint")
        case Kind.DOUBLE:
            yield column.cast("double")
        case Kind.INSTANT:
            yield instants.micros_of_instant(column)
        case Kind.LOCAL:
            yield instants.micros_of_local(column)
        case Kind.INTERVAL:
            yield instants.micros_of_interval(column)
        case _ if isinstance(dtype, T.BinaryType):
            yield F.hex(column)
        case _ if isinstance(dtype, T.ArrayType | T.MapType | T.VariantType):
            yield F.to_json(column, JSON_OPTIONS)
        case _:
            yield column.cast("string")
