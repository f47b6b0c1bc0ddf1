"""Inputs that cannot be matched: what is said about them, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import found

import tocsin
from tocsin import errors

TEXT = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"


@pytest.fixture
def good(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], "ts bigint, x int, kind string")


def refused(inputs: Any, text: str = TEXT, **options: Any) -> errors.TocsinError:
    with pytest.raises(errors.TocsinError) as refusal:
        tocsin.pattern(text).match(inputs, **options)
    return refusal.value


def test_inputs_must_be_dataframes(good: DataFrame) -> None:
    for wrong in (None, 5, [good], "events", {1: good}):
        assert refused(wrong).condition == "INVALID_INPUT"
    problem = refused({"A": good, "B": [(1,)]})
    assert problem.condition == "INVALID_INPUT"
    assert problem.message == "The input of `B` is a list, not a Spark DataFrame."


def test_a_type_without_input_is_named_with_the_nearest(good: DataFrame) -> None:
    problem = refused({"A": good, "b": good})
    assert problem.condition == "UNKNOWN_EVENT_TYPE"
    assert "`B`" in problem.message
    assert "did you mean `b`?" in str(problem)


def test_several_missing_types_are_reported_together(good: DataFrame) -> None:
    problem = refused({"C": good})
    assert isinstance(problem, errors.QueryErrors)
    assert [one.condition for one in problem.errors] == ["UNKNOWN_EVENT_TYPE"] * 2


def test_more_inputs_than_types_are_fine(good: DataFrame) -> None:
    assert tocsin.pattern(TEXT).match({"A": good, "B": good, "C": good}).columns[0] == "match_id"


def test_a_missing_time_column_is_named_with_the_nearest(good: DataFrame, spark: SparkSession) -> None:
    problem = refused({"A": good, "B": spark.createDataFrame([], "tss bigint")})
    assert problem.condition == "MISSING_COLUMN"
    assert problem.message == "There is no time column `ts` in the input of `B`."
    assert "did you mean `tss`?" in str(problem)
    assert "`time=`" in str(problem)


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [
        ("string", "F.to_timestamp('ts')"),
        ("double", "F.timestamp_seconds('ts')"),
        ("decimal(20, 3)", "F.timestamp_seconds('ts')"),
        ("date", "F.col('ts').cast('timestamp')"),
        ("array<int>", "choose a column"),
    ],
)
def test_a_time_column_of_another_type_comes_with_the_conversion(spark: SparkSession, dtype: str, advice: str) -> None:
    frame = spark.createDataFrame([], f"ts {dtype}")
    problem = refused({"A": frame, "B": frame})
    assert isinstance(problem, errors.QueryErrors)
    first = problem.errors[0]
    assert isinstance(first, errors.TimeTypeError)
    assert advice in str(first)


def test_one_dataframe_under_two_names_gives_two_reports_one_per_name(spark: SparkSession) -> None:
    events = spark.createDataFrame([], "type string, when bigint")
    problem = refused(events)
    assert isinstance(problem, errors.QueryErrors)
    assert [one.message for one in problem.errors] == [
        "There is no time column `ts` in the input of `A`.",
        "There is no time column `ts` in the input of `B`.",
    ]


@pytest.mark.parametrize("other", ["timestamp", "timestamp_ntz"])
def test_inputs_must_tell_time_alike(good: DataFrame, spark: SparkSession, other: str) -> None:
    problem = refused({"A": good, "B": spark.createDataFrame([], f"ts {other}")})
    assert problem.condition == "TIME_TYPE"
    assert problem.message == f"The time columns differ: `ts` of `A` is bigint, `ts` of `B` is {other}."


def test_integers_of_different_width_are_alike(good: DataFrame, spark: SparkSession) -> None:
    assert tocsin.pattern(TEXT).match({"A": good, "B": spark.createDataFrame([], "ts int")}).columns


def test_the_time_of_every_type_must_be_told(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good}, time={"A": "ts"})
    assert problem.condition == "INVALID_OPTION"
    assert "`B`" in problem.message


def test_reserved_names_are_refused(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good.withColumnRenamed("x", "__tocsin_x")})
    assert problem.condition == "RESERVED_NAME"
    assert "`__tocsin_x`" in problem.message


def test_a_missing_or_numeric_type_column_is_refused(good: DataFrame) -> None:
    assert refused(good).condition == "MISSING_COLUMN"
    problem = refused(good, type="x")
    assert problem.condition == "INVALID_INPUT"
    assert "holds int" in problem.message


@pytest.mark.parametrize("option", ["tie", "id"])
def test_tie_and_id_columns_must_be_there(good: DataFrame, option: str) -> None:
    problem = refused({"A": good, "B": good}, text="PATTERN A a", **{option: "kin"})
    assert problem.condition == "MISSING_COLUMN"
    assert "did you mean `kind`?" in str(problem)


def test_an_unknown_strategy_is_refused(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good}, strategy="jion")
    assert problem.condition == "INVALID_OPTION"
    assert "did you mean `join`?" in str(problem)


def test_attributes_of_one_variable_must_agree_across_its_types(spark: SparkSession) -> None:
    a, b = spark.createDataFrame([], "ts bigint, x int"), spark.createDataFrame([], "ts bigint, x string")
    problem = refused({"A": a, "B": b}, text="PATTERN OR(A v, B v)")
    assert problem.condition == "TYPE_MISMATCH"


def test_an_unknown_attribute_is_refused_with_its_place(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good}, text="PATTERN SEQ(A a, B b) WHERE a.y = b.x")
    assert problem.condition == "UNKNOWN_ATTRIBUTE"
    assert "^" in str(problem)


def test_a_string_beside_a_number_is_refused(good: DataFrame) -> None:
    assert refused({"A": good}, text="PATTERN A a WHERE a.kind > 5").condition == "TYPE_MISMATCH"


def test_contradictory_distances_are_refused(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good}, text="PATTERN SEQ(A a, B b) WHERE b.ts < a.ts")
    assert problem.condition == "CONTRADICTORY_DISTANCES"


def test_an_unsupported_construct_is_refused(good: DataFrame) -> None:
    problem = refused({"A": good, "B": good}, text="PATTERN SEQ(A a, B+ b) WITHIN 1 HOUR", strategy="join")
    assert problem.condition == "OPTION_REFUSED"


def test_two_columns_of_one_name_are_refused_by_name(good: DataFrame) -> None:
    twice = good.toDF("ts", "x", "x")
    problem = refused({"A": good, "B": twice})
    assert isinstance(problem, errors.DuplicateInputColumnError)
    assert problem.condition == "DUPLICATE_INPUT_COLUMN"
    assert problem.message == "2 columns are called `x` in the input of `B`."
    assert problem.hint
    with pytest.raises(errors.DuplicateInputColumnError, match="`x` in the input of `B`"):
        tocsin.pattern(TEXT).check({"A": good, "B": twice})
    with pytest.raises(errors.DuplicateInputColumnError, match="`x` in the input"):
        tocsin.pattern(TEXT).check(twice.schema)
    assert tocsin.pattern("PATTERN A a").match({"A": good, "B": twice}).columns


def test_columns_whose_names_differ_only_in_case_are_told_apart(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 10, 20)], "ts bigint, x int, X int")
    assert [dict(row["a"]) for row in found("PATTERN A a WHERE a.x = 10 AND a.X = 20", {"A": frame})] == [
        {"ts": 1, "x": 10, "X": 20}
    ]


def test_fields_that_the_session_cannot_tell_apart_are_refused(spark: SparkSession) -> None:
    exact = spark.createDataFrame([], "ts bigint, s struct<p: int, q: struct<r: int, r: int>>")
    assert refused({"A": exact}, text="PATTERN A a").message == "2 fields of `s.q` are called `r` in the input of `A`."
    cased = spark.createDataFrame([], "ts bigint, s struct<p: int, P: int>")
    assert refused({"A": cased}, text="PATTERN A a").condition == "DUPLICATE_INPUT_COLUMN"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert tocsin.pattern("PATTERN A a").match({"A": cased}).columns
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("time", None),
        ("time", 5),
        ("time", {"A": 5, "B": "ts"}),
        ("type", 5),
        ("tie", 5),
        ("tie", ["x", 5]),
        ("id", 5),
        ("lateness", "soon"),
        ("lateness", 5),
        ("rates", {"A": "x"}),
        ("rates", {"a": 1}),
        ("rates", 5),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_with_advice(good: DataFrame, option: str, value: Any) -> None:
    problem = refused({"A": good, "B": good}, **{option: value})
    assert isinstance(problem, errors.InvalidOptionError)
    assert problem.hint


def test_options_that_are_right_are_taken(good: DataFrame) -> None:
    out = tocsin.pattern(TEXT).match({"A": good, "B": good}, tie=iter(["x", "kind"]), rates={"A": "1/s"}, id="x")
    assert out.columns == ["match_id", "start", "end", "a", "b"]


@pytest.fixture
def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS x")


def test_an_unbounded_pattern_on_a_stream_names_the_pair(stream: DataFrame) -> None:
    problem = refused({"A": stream, "B": stream}, text="PATTERN SEQ(A a, B b) WHERE a.x = b.x")
    assert problem.condition == "UNBOUNDED_PATTERN"
    assert "`a` and `b`" in problem.message


def test_a_stream_must_say_how_late_events_may_come(stream: DataFrame) -> None:
    problem = refused({"A": stream, "B": stream})
    assert problem.condition == "INVALID_OPTION"
    assert "withWatermark('ts', \"10 seconds\")" in str(problem)


def test_a_batch_beside_a_stream_is_refused(spark: SparkSession, stream: DataFrame) -> None:
    batch = spark.sql("SELECT timestamp'2026-01-01' AS ts, 1L AS x")
    problem = refused({"A": stream, "B": batch}, lateness="1 second")
    assert problem.condition == "INVALID_INPUT"
    assert "`B` is a batch" in problem.message
