"""`match_id`: 32 lower-case hexadecimal digits that name a match, the same in every engine, plan and run.

The recipe, for any engine to reproduce. `xxhash64(v1, v2, …)` is Spark's: XXH64 of each value in turn, seeded with the
hash before it, the first with 42; a BIGINT is its 8 bytes, little endian, a DOUBLE the BIGINT of its bits (−0.0 as
0.0), a STRING its UTF-8 bytes, an array its elements in turn. It passes over NULL. Numbers that are not values are
BIGINT. A list of names is written as the text of a JSON array without blanks: `["A","k","ts"]`.

1. An event has two digests, d1 and d2: d_s = xxhash64(s, names, nulls, values…). The names are its type and then,
   sorted, its columns, or only the user's `id` column when there is one; the values are those of these columns. What
   PROJECT leaves of an event has its type and the columns that are left, what AGG makes the type "" and its values;
   behind the values of either comes d_s of the event that was read when it was made.
2. Bit i of nulls is set when value i, counted from 0, is NULL; there is one BIGINT for every 63 values begun. A NULL
   adds nothing else.
3. Other values are written as: integers as BIGINT; FLOAT and DOUBLE as DOUBLE; BOOLEAN as BIGINT 0 or 1; TIMESTAMP,
   TIMESTAMP_NTZ and intervals as BIGINT microseconds; BINARY as its upper-case hexadecimal text; a struct as BIGINT
   xxhash64(s, names, nulls, values…) of its fields, sorted by name; arrays, maps and variants as the text of `to_json`
   with NULL fields kept, in UTC, a TIMESTAMP in them as `2026-01-31T23:59:59.000001Z`, a TIMESTAMP_NTZ without the `Z`,
   always with six digits after the point; everything else (decimals, dates, strings) as STRING.
4. A match has two hashes, h1 and h2: h_s = xxhash64(s, names, start, end, then for each variable by name: n, and where
   n > 0 the sum of d_s of its n events modulo 2**64). The names are those of the variables, sorted; start and end are
   in microseconds; n is 0 for an unbound variable. Where the pattern has PROJECT or NEXT, which hide events, d_s of
   the match's first and last events follow `end`. A sum serves windows of thousands of events: that of a stretch is
   the difference of two prefix sums.
5. Equal rows make matches that are equal in all of this. They are numbered n = 0, 1, …; which is which does not matter,
   for nothing tells them apart. With an `id` column n is 0.
6. match_id = hex(xxhash64(1, h1, h2, n)) then hex(xxhash64(2, h1, h2, n)), 16 digits each.

So an event's share is two numbers, made where it is read, or in a task from a simple `id`; `tocsin.kernels.hashes` does
steps 4 to 6 on arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import with_columns
from tocsin.engines.spark.typed_columns import Kind, value_of
from tocsin.engines.worker.digests import NULLS_PER_WORD
from tocsin.engines.worker.event_order import end_of

FIRST_DIGEST, SECOND_DIGEST = "__tocsin_digest1", "__tocsin_digest2"
FIRST_HASH, SECOND_HASH = "__tocsin_hash1", "__tocsin_hash2"
ORDINAL = "__tocsin_ordinal"
SALTS = (1, 2)
LOW_HALF = (1 << 32) - 1
# Spark's own formats keep milliseconds only, so that different rows would look alike.
JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
Typed = Mapping[str, tuple[Column, T.DataType]]


@dataclass(frozen=True)
class Digests:
    """A variable's part in the hashes of a match: the number of its events, and the sums of their digests d1 and d2.

    A sum is a BIGINT; where it is NULL it adds nothing.
    """

    count: Column
    first: Column | None = None
    second: Column | None = None


def names_of(type: str | Column, columns: Iterable[str], *, id: str | None = None) -> Column:
    """The names of step 1: an event's type and its columns, or only the `id` column.

    The type may stand in a column; one that is NULL has no name.
    """
    others = sorted(columns) if id is None else [id]
    if isinstance(type, str):
        return F.lit(_as_text([type, *others]))
    kind = F.rtrim(F.to_json(F.array(F.coalesce(type, F.lit("")))), "]")
    return F.concat(kind, F.lit("," + _as_text(others).removeprefix("[")))


def digests(names: Column, columns: Typed, *, id: str | None = None) -> list[Column]:
    """The columns `__tocsin_digest1` and `__tocsin_digest2` of an event, from which its matches are hashed.

    `names` is a literal, or where one frame holds events of several types what is chosen by type: all else of them is
    the same.
    """
    hashed = columns if id is None else {id: columns[id]}
    return [
        _digest(salt, names, hashed).alias(alias)
        for salt, alias in zip(SALTS, (FIRST_DIGEST, SECOND_DIGEST), strict=True)
    ]


def copies(first: Sequence[Column], second: Sequence[Column]) -> Digests:
    """A variable that holds so many events, with a column for each digest; none: it is unbound."""
    if not first:
        return Digests(F.bigint(0))
    return Digests(F.bigint(len(first)), _sum_of(first), _sum_of(second))


def hashes(start_us: Column, end_us: Column, variables: Mapping[str, Digests]) -> list[Column]:
    """The columns `__tocsin_hash1` and `__tocsin_hash2` of matches; `variables` are all those of the query."""
    names = sorted(variables)
    both: list[Column] = []
    for number, (salt, alias) in enumerate(zip(SALTS, (FIRST_HASH, SECOND_HASH), strict=True)):
        values = [F.bigint(salt), F.lit(_as_text(names)), start_us, end_us]
        for name in names:
            held = variables[name]
            share = (held.first, held.second)[number]
            values += [held.count] if share is None else [held.count, share]
        both.append(F.xxhash64(*values).alias(alias))
    return both


def numbered(frame: DataFrame, *, id: str | None = None) -> DataFrame:
    """Matches that carry their hashes, with a number for those that are equal; without an `id`, this shuffles them."""
    if id is not None:
        return frame
    first, second = F.col(FIRST_HASH), F.col(SECOND_HASH)
    number = F.row_number().over([first, second], first).cast("bigint") - 1
    return with_columns(frame, number.alias(ORDINAL))


def match_id(*, id: str | None = None) -> Column:
    """The `match_id` of `numbered` matches."""
    ordinal = F.col(ORDINAL) if id is None else F.bigint(0)
    return text(*(F.xxhash64(F.bigint(salt), F.col(FIRST_HASH), F.col(SECOND_HASH), ordinal) for salt in SALTS))


def text(first: Column, second: Column) -> Column:
    """The `match_id` of its two halves, BIGINTs."""
    # The first `lower` of a JVM loads ICU, which takes a second.
    return F.format_string("%016x%016x", first, second)


def _sum_of(digests: Sequence[Column]) -> Column:
    """The sum of BIGINTs modulo 2**64, in two halves: Spark's own `+` raises an error beyond 64 bits."""
    if len(digests) == 1:
        return digests[0]
    low = reduce(Column.__add__, (one.bitwiseAND(LOW_HALF) for one in digests))
    high = reduce(Column.__add__, (F.shiftright(one, 32) for one in digests))
    return F.shiftleft(high + F.shiftright(low, 32), 32).bitwiseOR(low.bitwiseAND(LOW_HALF))


def _as_text(names: Iterable[str]) -> str:
    return json.dumps(list(names), ensure_ascii=False, separators=(",", ":"))


def _digest(salt: int, names: Column, columns: Typed) -> Column:
    typed = [columns[name] for name in sorted(columns)]
    values = [_written(column, dtype, salt) for column, dtype in typed]
    return F.xxhash64(F.bigint(salt), names, *_nulls([column for column, _ in typed]), *values)


def _nulls(columns: list[Column]) -> Iterator[Column]:
    for begin in range(0, len(columns), NULLS_PER_WORD):
        bits = [
            F.when(column.isNull(), F.bigint(1 << place)).otherwise(F.bigint(0))
            for place, column in enumerate(columns[begin : begin + NULLS_PER_WORD])
        ]
        yield reduce(lambda word, bit: word.bitwiseOR(bit), bits)


def _written(column: Column, dtype: T.DataType, salt: int) -> Column:
    if isinstance(dtype, T.StructType):
        fields = {field.name: (column.getField(field.name), field.dataType) for field in dtype.fields}
        return F.when(column.isNotNull(), _digest(salt, F.lit(_as_text(sorted(fields))), fields))
    value = value_of(column, dtype)
    match value.kind:
        case Kind.INTEGER | Kind.BOOLEAN:
            return column.cast("bigint")
        case Kind.DOUBLE:
            return column.cast("double")
        case Kind.INSTANT | Kind.LOCAL | Kind.INTERVAL:
            return value.micros
        case _ if isinstance(dtype, T.BinaryType):
            return F.hex(column)
        case _ if isinstance(dtype, T.ArrayType | T.MapType | T.VariantType):
            return F.to_json(column, JSON_OPTIONS)
        case _:
            return column.cast("string")


# --- canonical text, which orders events (R16) ----------------------------------------------------

# The JSON of an event's attributes by name, without the names: events whose texts are compared are of one type and have
# the same. Its order is that of code points. Native, so that Spark computes it.


def text_of(columns: Typed, *, without: str) -> Column:
    """The text of an event; its time, the same for all that are compared, is left out."""
    others = {name: typed for name, typed in columns.items() if name != without}
    return _object(others, end=end_of(others, without))


def _object(columns: Typed, *, begin: str = "", end: str = "}") -> Column:
    values = [F.coalesce(_value(*columns[name]), F.lit("null")) for name in sorted(columns)]
    return F.concat(F.lit(begin), F.concat_ws(",", *values), F.lit(end)) if values else F.lit(begin + end)


def _value(column: Column, dtype: T.DataType) -> Column:
    """A value as JSON; NULL when it is NULL."""
    if isinstance(dtype, T.StructType):
        fields = {field.name: (column.getField(field.name), field.dataType) for field in dtype.fields}
        return F.when(column.isNotNull(), _object(fields, begin="{"))
    value = value_of(column, dtype)
    match value.kind:
        case Kind.INTEGER | Kind.BOOLEAN:
            return column.cast("string")
        case Kind.DOUBLE:
            return number_text(column.cast("double"))
        case Kind.INSTANT | Kind.LOCAL | Kind.INTERVAL:
            return value.micros.cast("string")
        case Kind.STRING:
            return _quoted(column)
        case _ if isinstance(dtype, T.BinaryType):
            return F.concat(F.lit('"'), F.lower(F.hex(column)), F.lit('"'))
        case _ if isinstance(dtype, T.ArrayType | T.MapType | T.VariantType):
            return F.to_json(column, JSON_OPTIONS)
        case _:
            return F.concat(F.lit('"'), column.cast("string"), F.lit('"'))


def _quoted(column: Column) -> Column:
    listed = F.to_json(F.array(column))
    return F.when(column.isNotNull(), F.substring(listed, 2, F.length(listed) - 2))


def number_text(column: Column) -> Column:
    """A DOUBLE as Python writes it: with an exponent from 1e16 on and below 1e-4, where Java does from 1e7 and 1e-3."""
    size, java = F.abs(column), column.cast("string")
    plain = _trimmed(java.try_cast("decimal(38,21)"))
    is_plain = ((size >= 1e7) & (size < 1e16)) | ((size >= 1e-4) & (size < 1e-3))
    digits = F.regexp_replace(F.substring_index(java, "E", 1), r"\.0$", "")
    exponent = F.substring_index(java, "E", -1)
    sign = F.when(F.startswith(exponent, "-"), "-").otherwise("+")
    scientific = F.concat(digits, F.lit("e"), sign, _two_digits(F.regexp_replace(exponent, "-", "")))
    has_exponent = ((size >= 1e16) | (size < 1e-4)) & (size > 0) & (size < float("inf"))
    return F.when(is_plain, plain).when(has_exponent, scientific).otherwise(java)


def _two_digits(digits: Column) -> Column:
    return F.when(F.length(digits) < 2, F.lpad(digits, 2, "0")).otherwise(digits)


def _trimmed(column: Column) -> Column:
    text = F.rtrim(column.cast("string"), "0")
    return F.when(F.endswith(text, "."), F.concat(text, F.lit("0"))).otherwise(text)
