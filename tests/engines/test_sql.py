"""Expressions as SQL text: they must mean what PySpark's own Columns mean, whatever the settings of the session."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_properties
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as spark_functions
from pyspark.sql import types as T
from tests.engines.support import light_settings, physical_plan

import tocsin
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import (
    Plain,
    aggregate,
    join_on,
    repartition,
    select,
    to_spark,
    where,
    with_columns,
)

SETTINGS: list[dict[str, str]] = [
    {},
    {"spark.sql.parser.escapedStringLiterals": "true"},
    {"spark.sql.ansi.enabled": "false"},
    {"spark.sql.ansi.doubleQuotedIdentifiers": "true", "spark.sql.ansi.enforceReservedKeywords": "true"},
    {"spark.sql.parser.quotedRegexColumnNames": "true", "spark.sql.timestampType": "TIMESTAMP_NTZ"},
    {"spark.sql.caseSensitive": "true"},
]
STRINGS = [
    "",
    "plain",
    "it's",
    'say "so"',
    "back\\slash",
    "a\\nb",
    "line\nbreak",
    "${spark.master}",
    "é ∨ 🔔",
    "-- /* `",
]
NAMES = [
    "x",
    "X y",
    "a.b",
    "it's",
    'say "so"',
    "tick`tick",
    "back\\slash",
    "${spark.master}",
    "select",
    "é",
    "1",
    "a:b",
]


@contextmanager
def settings(spark: SparkSession, changed: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark) as session:
        yield session


@pytest.fixture
def one_row(light: SparkSession) -> DataFrame:
    return light.range(1).coalesce(1)


def value_of(frame: DataFrame, column: Column) -> Any:
    return select(frame, column.alias("value")).collect()[0]["value"]


# --- literals -------------------------------------------------------------------------------------

LITERALS: list[Plain] = [
    None,
    True,
    False,
    *(0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63) + 1, -(2**63)),
    *(0.0, -0.0, 0.1, -1.5, 1e16, 1e-5, 5e-324, 1.7976931348623157e308, math.inf, -math.inf),
    *(Decimal(5), Decimal("-1.50"), Decimal(10**37), Decimal("1E-7"), Decimal(2**63)),
    *STRINGS,
]


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
def test_a_literal_has_the_value_and_the_type_that_pyspark_gives_it(
    changed: dict[str, str], one_row: DataFrame
) -> None:
    names = [f"c{number}" for number in range(len(LITERALS))]
    theirs = one_row.select(
        *(spark_functions.lit(value).alias(name) for value, name in zip(LITERALS, names, strict=True))
    )
    with settings(one_row.sparkSession, changed):
        ours = select(one_row, *(F.lit(value).alias(name) for value, name in zip(LITERALS, names, strict=True)))
        assert [field.dataType for field in ours.schema] == [field.dataType for field in theirs.schema]
        assert repr(ours.collect()) == repr(theirs.collect())  # which tells −0.0 from 0.0


def test_nan_is_a_literal(one_row: DataFrame) -> None:
    assert math.isnan(value_of(one_row, F.lit(math.nan)))


# One job reads many literals.
@settings_of_properties(max_examples=3)
@given(st.lists(st.floats(allow_nan=False), min_size=20, max_size=30))
def test_a_double_is_read_back_exactly(light: SparkSession, numbers: list[float]) -> None:
    assert list(map(repr, read_back(light, numbers))) == list(map(repr, numbers))


@settings_of_properties(max_examples=3)
@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=20, max_size=30))
def test_a_string_is_read_back_exactly(light: SparkSession, texts: list[str]) -> None:
    assert read_back(light, texts) == texts


def read_back(session: SparkSession, values: Sequence[Plain]) -> list[Any]:
    """The values of literals, in one row."""
    literals = (F.lit(value).alias(f"c{number}") for number, value in enumerate(values))
    return list(select(session.range(1), *literals).collect()[0])


@pytest.mark.parametrize("number", [0, -7, 2**31, 2**63 - 1, -(2**63)])
def test_a_bigint_is_one_however_small(number: int, one_row: DataFrame) -> None:
    frame = select(one_row, F.bigint(number).alias("value"))
    assert frame.schema["value"].dataType == T.LongType()
    assert frame.collect()[0]["value"] == number


def test_the_least_bigint_stands_wherever_an_operand_does(one_row: DataFrame) -> None:
    least = F.lit(-(2**63))
    assert value_of(one_row, (F.lit(0) - 1) + (least + 1)) == -(2**63)
    assert value_of(one_row, F.coalesce(F.try_add(least, -1), least)) == -(2**63)
    assert value_of(one_row, F.when(least < 0, least).otherwise(0)) == -(2**63)


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
@pytest.mark.parametrize("text", ["plain", "it's", "back\\slash"])
def test_a_comparison_with_a_literal_reaches_the_files(
    text: str, changed: dict[str, str], light: SparkSession, tmp_path: Path, capsys: Any
) -> None:
    light.createDataFrame([(text, 1)], "__tocsin_s string, __tocsin_n bigint").write.parquet(str(tmp_path / "files"))
    read = light.read.parquet(str(tmp_path / "files"))
    condition = (F.col("__tocsin_s") == text) & (F.col("__tocsin_n") >= -5) & (F.col("__tocsin_n") < F.lit(2**40))
    with settings(light, changed):
        kept = where(read, condition)
        shown = physical_plan(kept, capsys)
        assert f"EqualTo(__tocsin_s,{text})" in shown
        assert "GreaterThanOrEqual(__tocsin_n,-5)" in shown
        assert "LessThan(__tocsin_n,1099511627776)" in shown
        assert kept.count() == 1


# --- names and types ------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
def test_every_name_can_be_given_to_a_column_and_to_a_field(changed: dict[str, str], one_row: DataFrame) -> None:
    with settings(one_row.sparkSession, changed):
        made = select(
            one_row,
            F.struct(*(F.lit(number).alias(name) for number, name in enumerate(NAMES))).alias("__tocsin_s"),
            *(F.lit(number).alias(name) for number, name in enumerate(NAMES)),
        )
        assert made.columns == ["__tocsin_s", *NAMES]
        assert made.schema["__tocsin_s"].dataType.fieldNames() == NAMES
        fields = select(made, *(F.col("__tocsin_s").getField(name) for name in NAMES))
        assert list(fields.collect()[0]) == list(range(len(NAMES)))


def test_every_column_is_found_by_its_name(one_row: DataFrame) -> None:
    names = [name for name in NAMES if "${" not in name]
    made = select(one_row, *(F.lit(number).alias(name) for number, name in enumerate(names)))
    assert list(select(made, *map(F.col, names)).collect()[0]) == list(range(len(names)))


def test_names_that_differ_in_case_are_two_where_the_session_says_so(light: SparkSession) -> None:
    with settings(light, {"spark.sql.caseSensitive": "true"}):
        frame = select(light.range(1), F.struct(F.lit(1).alias("x"), F.lit(2).alias("X")).alias("s"))
        assert list(select(frame, F.col("s")["x"], F.col("s")["X"]).collect()[0]) == [1, 2]


def test_a_type_is_read_as_it_was(light: SparkSession) -> None:
    odd = T.StructType().add("a b", "integer").add("c`d", T.StructType().add("t", "timestamp"), False)
    types: list[T.DataType] = [
        *(T.ByteType(), T.ShortType(), T.IntegerType(), T.LongType(), T.FloatType(), T.DoubleType()),
        *(T.DecimalType(20, 3), T.StringType(), T.StringType("UTF8_LCASE"), T.BinaryType(), T.BooleanType()),
        *(
            T.DateType(),
            T.TimestampType(),
            T.TimestampNTZType(),
            T.DayTimeIntervalType(0, 1),
            T.YearMonthIntervalType(),
        ),
        *(T.NullType(), T.VariantType(), odd, T.ArrayType(odd), T.MapType(T.StringType(), odd), T.StructType()),
    ]
    with settings(light, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        frame = select(light.range(1), *(F.lit(None).cast(dtype).alias(f"c{n}") for n, dtype in enumerate(types)))
        assert [field.dataType for field in frame.schema] == types


# --- operators ------------------------------------------------------------------------------------


def test_operators_need_no_care_for_precedence(one_row: DataFrame) -> None:
    one, two, three = (F.lit(number) for number in (1, 2, 3))
    yes, no = F.lit(True), F.lit(False)
    assert value_of(one_row, (one + two) * three) == 9
    assert value_of(one_row, one - (two - three)) == 2
    assert value_of(one_row, ~(yes & no)) is True
    assert value_of(one_row, (no & yes) | yes) is True
    assert value_of(one_row, no & (yes | yes)) is False
    assert value_of(one_row, (one == two) == (two == three)) is True
    assert value_of(one_row, one.bitwiseOR(two).bitwiseAND(2)) == 2
    assert value_of(one_row, (one + two).isin([three])) is True
    assert value_of(one_row, F.lit(-7).div(two)) == -3
    assert value_of(one_row, (one - two).cast("string")) == "-1"


def test_only_the_null_safe_equality_tells_null(one_row: DataFrame) -> None:
    nothing, one = F.lit(None), F.lit(1)
    assert value_of(one_row, nothing == one) is None
    assert value_of(one_row, one != nothing) is None
    assert value_of(one_row, nothing.eqNullSafe(one)) is False
    assert value_of(one_row, nothing.eqNullSafe(nothing)) is True
    assert value_of(one_row, nothing.isNull() & one.isNotNull()) is True
    assert value_of(one_row, F.lit(1) != 2) is True


def test_a_column_is_no_truth() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(F.col("x") == 1)


@pytest.mark.parametrize("changed", SETTINGS[:3], ids=str)
def test_like_escapes_with_a_backslash(changed: dict[str, str], one_row: DataFrame) -> None:
    with settings(one_row.sparkSession, changed):
        assert value_of(one_row, F.lit("50%").like("50\\%")) is True
        assert value_of(one_row, F.lit("50x").like("50\\%")) is False
        assert value_of(one_row, F.lit("a'b\\c").like("a'%\\\\_")) is True


def test_long_chains_are_read(one_row: DataFrame) -> None:
    number = F.col("id")
    any_of = reduce(or_, (number == place for place in range(300)))
    all_of = reduce(and_, (number != place for place in range(1, 300)))
    bits = reduce(lambda word, bit: word.bitwiseOR(bit), (F.lit(1 << place % 8) for place in range(500)))
    choice = F.cases((number == place, F.lit(place + 5)) for place in range(199, -1, -1)).otherwise(-1)
    assert value_of(where(one_row, any_of & all_of), choice) == 5
    assert value_of(one_row, bits) == 255


def test_nested_conditions_are_read_in_time(one_row: DataFrame) -> None:
    condition = F.col("id") == 0
    for place in range(40):
        condition = ~(condition & (F.col("id") < 1 + place)) | (F.col("id") > place)
        condition = ~condition
    assert value_of(one_row, condition) is True


# --- functions ------------------------------------------------------------------------------------


def test_a_lambda_sees_the_parameters_of_those_around_it(one_row: DataFrame) -> None:
    numbers = F.array(F.lit(1), F.lit(2))
    table = F.transform(numbers, lambda x: F.transform(numbers, lambda y: x * 10 + y))
    assert value_of(one_row, table) == [[11, 12], [21, 22]]
    made_before = F.transform(numbers, lambda x: x + 1)
    assert value_of(one_row, F.transform(numbers, lambda x: F.concat(F.array(x), made_before))) == [
        [1, 2, 3],
        [2, 2, 3],
    ]
    sums = F.transform(numbers, lambda x: F.aggregate(numbers, x, lambda total, y: total + y * x, lambda t: t - x))
    assert value_of(one_row, sums) == [3, 6]
    assert value_of(one_row, F.zip_with(numbers, numbers, lambda x, y: x * y)) == [1, 4]


def test_a_failed_lambda_leaves_the_names_of_others_alone() -> None:
    def fails(_: Column) -> Column:
        raise ValueError

    before = F.transform(F.col("a"), lambda x: x).text
    with pytest.raises(ValueError):
        F.transform(F.col("a"), fails)
    assert F.transform(F.col("a"), lambda x: x).text == before


@pytest.mark.parametrize("changed", SETTINGS, ids=str)
def test_functions_with_a_form_of_their_own(changed: dict[str, str], one_row: DataFrame) -> None:
    with settings(one_row.sparkSession, changed):
        span = F.lit("1 02:03:04.5").cast("interval day to second")
        assert value_of(one_row, F.extract("HOUR", span)) == 2
        assert value_of(one_row, F.rtrim(F.lit("1.500"), "0")) == "1.5"
        moment = F.timestamp_add("MICROSECOND", F.bigint(1_000_001), F.lit("1970-01-01").cast("timestamp_ntz"))
        assert value_of(one_row, moment.cast("string")) == "1970-01-01 00:00:01.000001"
        pair = F.struct(F.lit(None).alias("a"), moment.alias("b"))
        options = {"ignoreNullFields": "false", "timestampNTZFormat": "yyyy'T'ss.SSSSSS"}
        assert value_of(one_row, F.to_json(pair, options)) == '{"a":null,"b":"1970T01.000001"}'
        assert value_of(one_row, F.to_json(F.struct(F.lit(1).alias("a")))) == '{"a":1}'


# --- frames ---------------------------------------------------------------------------------------


def test_columns_reach_a_frame_by_every_way(light: SparkSession) -> None:
    number = F.col("id")
    frame = with_columns(light.range(6), F.pmod(number, 2).alias("odd"), (number * 2).alias("double"))
    assert frame.columns == ["id", "odd", "double"]
    groups = aggregate(frame, [F.col("odd")], F.sum(number).alias("sum"), F.count_distinct(F.col("odd")).alias("n"))
    assert sorted(map(tuple, groups.collect())) == [(0, 6, 1), (1, 9, 1)]
    assert aggregate(frame, [], F.max(number).alias("most")).collect()[0]["most"] == 5
    other = select(light.range(6), number.alias("other"))
    joined = join_on(frame, other, (F.col("double") == F.col("other")) & (number > 0), "inner")
    assert sorted(row["id"] for row in joined.collect()) == [1, 2]
    assert repartition(frame, F.col("odd")).count() == 6
    assert light.range(1).select(to_spark(F.lit(1).alias("a ${spark.master}"))).columns == ["a ${spark.master}"]
    placed = select(light.range(1), F.posexplode_outer(F.array(F.lit("x"))).alias("place", "item"))
    assert placed.collect() == [(0, "x")]


def test_a_window_looks_at_later_rows(light: SparkSession) -> None:
    frame, number = light.range(5), F.col("id")
    near = F.count(number).over([], number, later_by=(1, 2)).alias("near")
    later = F.count(number).over([F.lit(1)], number, later_by=(1, None)).alias("later")
    place = F.row_number().over([F.lit(1)], number).alias("place")
    rows = select(frame, near, later, place).collect()
    assert sorted(map(tuple, rows), key=lambda row: row[2]) == [(2, 4, 1), (2, 3, 2), (2, 2, 3), (1, 1, 4), (0, 0, 5)]


# --- whole queries --------------------------------------------------------------------------------

QUERY = r"""
    PATTERN SEQ(A a, B+ b, NOT C n, D? d) WHERE a.s = 'it''s' AND b.s LIKE '%\\_%' AND b.x BETWEEN -5 AND 9.5
    AND n.x IN (1, 2) WITHIN 1 HOUR
    RETURN a.ts AS t, b.x AS xs, STDDEV(b.x) AS spread, SUM(b.x) AS total, COALESCE(d.s, a.s || '\') AS s,
        CASE WHEN a.x > 0 THEN a.ts + 1 DAY ELSE a.ts END AS later, b AS `b ${spark.master}`
"""


@pytest.mark.parametrize("strategy", ["kernel", "join"])
def test_a_query_finds_the_same_under_every_setting(strategy: str, light: SparkSession) -> None:
    rows = [("A", "it's", 1), ("B", "a\\_b", 2), ("B", "\\_", -3), ("C", "", 3), ("B", "x", 4), ("D", "${x}", 5)]
    events = light.createDataFrame(rows, "type string, s string, x long").coalesce(1)
    timed = events.selectExpr("*", "timestamp_micros(x * 1000000 + 10000000) AS ts")
    text = QUERY.replace("B+", "B{1,2}") if strategy == "join" else QUERY
    found = []
    for changed in SETTINGS:
        with settings(light, changed):
            found.append(sorted(map(repr, tocsin.pattern(text).match(timed, strategy=strategy).collect())))
    assert found[0]
    assert all(one == found[0] for one in found)


def test_a_function_that_spark_does_not_have_is_no_function_here() -> None:
    assert not hasattr(F, "pytest_plugins")
    assert F.try_add(F.col("a"), 1).text == "try_add(`a`, 1)"
