"""match_id: reproducible by hand, the same for every partitioning, different for equal matches."""

from __future__ import annotations

import struct
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import desc, rand

import tocsin
from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select

MASK = 2**64 - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & MASK


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data: bytes, seed: int) -> int:
    """The published algorithm, for texts shorter than 32 bytes."""
    assert len(data) < 32
    value, rest = (seed + P5 + len(data)) & MASK, data
    while len(rest) >= 8:
        value = (_rotate(value ^ _round(0, int.from_bytes(rest[:8], "little")), 27) * P1 + P4) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        value = (_rotate(value ^ (int.from_bytes(rest[:4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        rest = rest[4:]
    for byte in rest:
        value = _rotate(value ^ (byte * P5 & MASK), 11) * P1 & MASK
    value = (value ^ (value >> 33)) * P2 & MASK
    value = (value ^ (value >> 29)) * P3 & MASK
    return value ^ (value >> 32)


def hashed(*values: int | float | str) -> int:
    """Spark's xxhash64: one value after the other, each seeded with the hash before."""
    seed = 42
    for value in values:
        match value:
            case str():
                data = value.encode()
            case float():
                data = struct.pack("<d", value)
            case _:
                data = (value & MASK).to_bytes(8, "little")
        seed = xxh64(data, seed)
    return seed


class Digest:
    """An event or a struct: its names, the bits of its NULLs, and its other values."""

    def __init__(self, names: str, nulls: int, *values: Any) -> None:
        self.names, self.nulls, self.values = names, nulls, values

    def of(self, salt: int) -> int:
        values = [value.of(salt) if isinstance(value, Digest) else value for value in self.values]
        return hashed(salt, self.names, self.nulls, *values)


def match_id(*values: Any, ordinal: int = 0) -> str:
    one, two = (
        hashed(salt, *(value.of(salt) if isinstance(value, Digest) else value for value in values)) for salt in (1, 2)
    )
    return "".join(f"{hashed(salt, one, two, ordinal):016x}" for salt in (1, 2))


def ids(text: str, inputs: Any, **options: Any) -> list[str]:
    return sorted(row.match_id for row in tocsin.pattern(text).match(inputs, **options).select("match_id").collect())


def test_the_recipe_can_be_reproduced_by_hand(spark: SparkSession) -> None:
    a = spark.createDataFrame([(1, "ä", None, 1.5)], "ts bigint, name string, n int, f float")
    b = spark.createDataFrame([(3, True)], "ts int, ok boolean")
    first = Digest('["A","f","n","name","ts"]', 0b0010, 1.5, "ä", 1)
    second = Digest('["B","ok","ts"]', 0, 1, 3)
    values = ('["a","b","c"]', 1, 3, 1, first, 1, second, 0)
    text = "PATTERN OR(SEQ(A a, B b), B c) WHERE COUNT(c) = 0 WITHIN 10 US"
    assert ids(text, {"A": a, "B": b}) == [match_id(*values)]


def test_an_id_column_stands_for_the_values(spark: SparkSession) -> None:
    a = spark.createDataFrame([(1, 77), (1, 77)], "ts bigint, key bigint")
    expected = match_id('["a"]', 1, 1, 1, Digest('["A","key"]', 0, 77))
    assert ids("PATTERN A a", {"A": a}, id="key") == [expected, expected]


def test_time_stamps_count_microseconds_whatever_the_zone(spark: SparkSession) -> None:
    a = spark.sql("SELECT timestamp_micros(5) AS ts, TIMESTAMP_NTZ'1970-01-01 00:00:01' AS local")
    expected = [match_id('["a"]', 5, 5, 1, Digest('["A","local","ts"]', 0, 1_000_000, 5))]
    for zone in ("UTC", "Asia/Kolkata"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        try:
            assert ids("PATTERN A a", {"A": a}) == expected
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_equal_rows_make_equal_matches_with_ids_of_their_own(spark: SparkSession) -> None:
    rows = [(1, 5), (1, 5), (1, 5), (2, 5)]
    frame = spark.createDataFrame(rows, "ts bigint, x int")
    values = ('["a"]', 1, 1, 1, Digest('["A","ts","x"]', 0, 1, 5))
    expected = sorted(match_id(*values, ordinal=number) for number in range(3))
    assert ids("PATTERN A a WHERE a.ts = 1", {"A": frame}) == expected


def test_ids_do_not_depend_on_how_the_rows_are_spread(spark: SparkSession) -> None:
    rows = [(number % 13, number % 3) for number in range(60)]
    frame = spark.createDataFrame(rows, "ts bigint, x int")
    text = "PATTERN SEQ(A a, A b) WHERE a.x = b.x WITHIN 3 US"
    expected = ids(text, {"A": frame.coalesce(1)})
    assert len(set(expected)) == len(expected) > 100
    assert ids(text, {"A": frame.repartition(7, rand(1))}) == expected
    assert ids(text, {"A": frame.orderBy(desc("ts"))}) == expected


def test_null_and_absent_values_never_look_alike(spark: SparkSession) -> None:
    def one(columns: str, values: tuple[Any, ...]) -> DataFrame:
        return spark.createDataFrame([(1, *values)], f"ts bigint, {columns}")

    frames = [
        one("x int, y int", (None, 1)),
        one("x int, y int", (1, None)),
        one("x int, y int", (1, 1)),
        one("x int, y int", (None, None)),
        one("x string, y string", (None, "1")),
        one("x struct<p: int, q: int>, y int", ((None, 1), 2)),
        one("x struct<p: int, q: int>, y int", ((1, None), 2)),
        one("x struct<p: int, q: int>, y int", ((None, None), 2)),
        one("x struct<p: int, q: int>, y int", (None, 2)),
    ]
    found = [ids("PATTERN A a", {"A": frame})[0] for frame in frames]
    assert len(set(found)) == len(found)


def test_a_struct_is_hashed_as_an_event_is_and_a_null_struct_is_one_null(spark: SparkSession) -> None:
    schema = "ts bigint, place struct<y: double, x: int>"
    texts = ('["a"]', 1, 1, 1)
    names = '["A","place","ts"]'
    full = spark.createDataFrame([(1, (1.5, None))], schema)
    inner = Digest('["x","y"]', 0b01, 1.5)
    assert ids("PATTERN A a", {"A": full}) == [match_id(*texts, Digest(names, 0, inner, 1))]
    none = spark.createDataFrame([(1, None)], schema)
    assert ids("PATTERN A a", {"A": none}) == [match_id(*texts, Digest(names, 0b01, 1))]


def test_the_nulls_of_many_columns_are_counted_in_several_numbers(spark: SparkSession) -> None:
    columns = [f"c{number:03}" for number in range(130)]
    known = {"c000": 7, "c064": 8}
    frame = spark.createDataFrame(
        [(1, *(known.get(name) for name in columns))], f"ts bigint, {', '.join(f'{name} int' for name in columns)}"
    )
    row = {"ts": 1, **{name: known.get(name) for name in columns}}
    (expected,) = tocsin.reference.evaluate(tocsin.pattern("PATTERN A a"), {"A": [row]})
    assert ids("PATTERN A a", {"A": frame}) == [expected.match_id]


def test_every_type_of_column_can_be_hashed(spark: SparkSession) -> None:
    frame = spark.sql(
        """
        SELECT 1L AS ts, 1Y AS byte, 1S AS short, 1.5BD AS dec, X'00FF' AS bin, DATE'2026-01-01' AS day,
               ARRAY(1, NULL) AS list, MAP('a', 1) AS dict, ARRAY(STRUCT(1 AS p, NULL AS q)) AS nested,
               INTERVAL '1 02:03:04.5' DAY TO SECOND AS wait, INTERVAL '1-2' YEAR TO MONTH AS months,
               PARSE_JSON('{"a": 1}') AS doc, NULL AS nothing
        """
    )
    (only,) = ids("PATTERN A a", {"A": frame})
    assert len(only) == 32
    assert set(only) <= set("0123456789abcdef")


def test_variables_and_types_are_part_of_the_identity(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "ts bigint")
    both = {"A": frame, "B": frame}
    found = {ids(f"PATTERN {text}", both)[0] for text in ("A a", "A b", "B a", "OR(A a, B b) WHERE COUNT(b) = 0")}
    assert len(found) == 4


def test_time_stamps_in_arrays_and_maps_keep_their_microseconds_whatever_the_zone(spark: SparkSession) -> None:
    moments = "TIMESTAMP_NTZ'2026-01-01 00:00:00.00000{0}', TIMESTAMP'2026-01-01 00:00:00.00000{0}Z'"
    rows = [
        f"SELECT 1L AS ts, ARRAY(STRUCT({moments.format(digit)})) AS list, MAP('k', ARRAY({last})) AS dict"
        for digit, last in ((1, "timestamp_micros(1)"), (2, "timestamp_micros(1)"), (2, "timestamp_micros(2)"))
    ]
    frame = spark.sql(" UNION ALL ".join(rows))
    expected = ids("PATTERN A a", {"A": frame.union(frame.limit(1))})
    assert len(set(expected)) == 4
    text = '["1970-01-01T00:00:00.000007Z"]'
    one = spark.sql("SELECT 1L AS ts, ARRAY(timestamp_micros(7)) AS list")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        assert ids("PATTERN A a", {"A": frame.union(frame.limit(1))}) == expected
        expected = [match_id('["a"]', 1, 1, 1, Digest('["A","list","ts"]', 0, text, 1))]
        assert ids("PATTERN A a", {"A": one}) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_several_digests_are_hashed_as_their_sum(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2, 9), (1, 2, None), (1, 2, -4)], "start bigint, end bigint, one bigint")
    many = [F.bigint(value) for value in (5, -6, 2**63 - 1, -7, 9)]
    events = {
        "b": identity.copies(many, many),
        "a": identity.Digests(F.when(F.col("one").isNull(), 0).otherwise(1).cast("bigint"), F.col("one"), F.col("one")),
        "c": identity.copies([], []),
        "d": identity.copies([F.bigint(1)], [F.bigint(1)]),
        "e": identity.copies([F.col("end")], [F.col("end")]),
        "f": identity.copies([F.col("end"), F.bigint(-(2**63))], [F.col("end"), F.bigint(-(2**63))]),
    }
    found = select(frame.coalesce(1), *identity.hashes(F.col("start"), F.col("end"), events)).collect()
    for salt in (1, 2):
        prefix = (salt, '["a","b","c","d","e","f"]', 1, 2)
        last = (2, 2 - 2**63)
        expected = [
            hashed(*prefix, 1, 9, 5, -(2**63), 0, 1, 1, 1, 2, *last),
            hashed(*prefix, 0, 5, -(2**63), 0, 1, 1, 1, 2, *last),
            hashed(*prefix, 1, -4, 5, -(2**63), 0, 1, 1, 1, 2, *last),
        ]
        assert [row[salt - 1] & MASK for row in found] == expected


def test_an_id_written_by_spark_from_its_halves_has_all_its_digits(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, -1), (-(2**63), 255)], "a bigint, b bigint").coalesce(1)
    texts = [row[0] for row in select(frame, identity.text(F.col("a"), F.col("b"))).collect()]
    assert texts == ["0000000000000001ffffffffffffffff", "800000000000000000000000000000ff"]
