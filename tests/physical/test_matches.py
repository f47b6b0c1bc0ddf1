"""The matches of small streams: what SEQ, AND, OR, keys and conditions mean on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.physical.support import bound, found, frames

import tocsin

SCHEMA = "ts bigint, x int, k string"


def test_a_sequence_pairs_each_event_with_every_later_one_strictly_inside_the_window(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, "")], "B": [(1, 0, ""), (2, 0, ""), (5, 0, ""), (6, 0, "")]}, SCHEMA)
    assert bound("PATTERN SEQ(A a, B b) WITHIN 5 US", inputs) == [{"a": 1, "b": 2}, {"a": 1, "b": 5}]


def test_the_window_is_the_span_of_the_whole_match(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, "")], "B": [(4, 0, "")], "C": [(5, 0, ""), (6, 0, "")]}, SCHEMA)
    assert bound("PATTERN SEQ(A a, B b, C c) WITHIN 5 US", inputs) == [{"a": 1, "b": 4, "c": 5}]


def test_and_is_a_product_and_may_bind_one_event_twice(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, ""), (2, 0, "")]}, SCHEMA)
    assert len(found("PATTERN AND(A a, A b)", inputs)) == 4
    assert bound("PATTERN AND(A a, A b) WHERE a.ts != b.ts", inputs) == [{"a": 1, "b": 2}, {"a": 2, "b": 1}]


def test_nested_patterns_compare_whole_intervals(spark: SparkSession) -> None:
    rows = {"A": [(1, 0, "")], "B": [(3, 0, "")], "C": [(2, 0, ""), (4, 0, "")], "D": [(5, 0, "")]}
    inputs = frames(spark, rows, SCHEMA)
    assert bound("PATTERN SEQ(AND(A a, B b), AND(C c, D d))", inputs) == [{"a": 1, "b": 3, "c": 4, "d": 5}]


def test_the_same_bindings_by_two_branches_are_one_match(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, ""), (4, 0, "")], "B": [(2, 0, ""), (4, 0, "")]}, SCHEMA)
    text = "PATTERN OR(SEQ(A a, B b), SEQ(B b, A a), SEQ(A a, B b))"
    assert bound(text, inputs) == [{"a": 1, "b": 2}, {"a": 1, "b": 4}, {"a": 4, "b": 2}]
    assert len(found("PATTERN OR(AND(A a, B b), SEQ(A a, B b))", inputs)) == 4


def test_variables_of_the_other_branch_are_null_structs(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, "")], "B": [(2, 0, "")]}, SCHEMA)
    out = tocsin.pattern("PATTERN OR(A a, B b)").match(inputs)
    assert out.columns == ["match_id", "start", "end", "a", "b"]
    assert out.schema["b"].dataType == inputs["B"].schema
    assert bound("PATTERN OR(A a, B b)", inputs) == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_a_conjunct_on_an_unbound_variable_holds(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 3, ""), (2, 9, "")], "B": [(3, 1, ""), (4, 9, "")]}, SCHEMA)
    text = "PATTERN OR(A a, B b) WHERE a.x > 5 AND b.x < 3"
    assert bound(text, inputs) == [{"a": 2, "b": None}, {"a": None, "b": 3}]


def test_a_null_attribute_of_a_bound_event_is_unknown(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, None, ""), (2, 9, "")]}, SCHEMA)
    assert bound("PATTERN A a WHERE a.x > 5 OR a.x <= 5", inputs) == [{"a": 2}]


def test_optional_elements_are_bound_or_left_out(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, "")], "B": [(2, 0, "")], "C": [(3, 0, "")]}, SCHEMA)
    assert bound("PATTERN SEQ(A a, B? b, C c)", inputs) == [
        {"a": 1, "b": None, "c": 3},
        {"a": 1, "b": 2, "c": 3},
    ]


def test_partition_by_takes_null_as_a_key_and_same_value_does_not(spark: SparkSession) -> None:
    rows = {"A": [(1, 0, "u"), (1, 1, None)], "B": [(2, 2, "u"), (2, 3, None), (2, 4, "v")]}
    inputs = frames(spark, rows, SCHEMA)
    pairs = [{"a": 0, "b": 2}, {"a": 1, "b": 3}]
    assert bound("PATTERN SEQ(A a, B b) PARTITION BY k", inputs, "x") == pairs
    assert bound("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 5 US", inputs, "x") == pairs
    assert bound("PATTERN SEQ(A a, B b) WHERE [k]", inputs, "x") == pairs[:1]
    assert bound("PATTERN A a WHERE [k]", inputs, "x") == [{"a": 0}]
    assert bound("PATTERN SEQ(A a, B b) WHERE a.k = b.k", inputs, "x") == pairs[:1]


def test_three_variables_of_one_partition(spark: SparkSession) -> None:
    rows = {name: [(number, number, key) for key in "uv"] for number, name in enumerate("ABC", start=1)}
    inputs = frames(spark, rows, SCHEMA)
    assert len(found("PATTERN SEQ(A a, B b, C c) PARTITION BY k, x", inputs)) == 0
    assert len(found("PATTERN SEQ(A a, B b, C c) PARTITION BY k", inputs)) == 2
    assert len(found("PATTERN SEQ(A a, B b, C c) PARTITION BY k WHERE [k] WITHIN 1 MINUTE", inputs)) == 2


def test_one_dataframe_with_a_type_column_serves_all_types(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [("A", 1, 5), ("B", 2, 5), ("B", 3, 6), ("C", 2, 5), (None, 2, 5)], "kind string, ts bigint, x int"
    )
    rows = found("PATTERN SEQ(A a, B b) WHERE a.x = b.x", events, type="kind")
    assert [(row["a"], row["b"]) for row in rows] == [({"kind": "A", "ts": 1, "x": 5}, {"kind": "B", "ts": 2, "x": 5})]


def test_a_variable_of_two_types_has_the_columns_of_both(spark: SparkSession) -> None:
    a = spark.createDataFrame([(1, 5, "p")], "ts bigint, x int, only_a string")
    b = spark.createDataFrame([(2, 2**40, True)], "ts bigint, x bigint, only_b boolean")
    out = tocsin.pattern("PATTERN OR(A v, B v) RETURN v, v.x").match({"A": a, "B": b})
    assert out.schema["v"].dataType.names == ["ts", "x", "only_a", "only_b"]
    assert sorted(map(tuple, (row.v for row in out.collect())), key=repr) == [
        (1, 5, "p", None),
        (2, 2**40, None, True),
    ]


def test_column_names_of_every_spelling_survive(spark: SparkSession) -> None:
    columns = ["ts", "a.b", "with space", "Ünï", "type", "a", "match_id", "start", "`"]
    frame = spark.createDataFrame([tuple(range(len(columns)))] * 1).toDF(*columns)
    (row,) = (
        tocsin.pattern("PATTERN SEQ(A a) WHERE a.`a.b` = 1 AND a.`with space` = 2 RETURN a, a.Ünï")
        .match({"A": frame})
        .collect()
    )
    assert row.a.__fields__ == columns
    assert row["Ünï"] == 3


def test_columns_that_differ_only_in_case_do_not_confuse_an_insensitive_session(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 2, 3)], "ts bigint, x int, y int").toDF("ts", "x", "X")
    (row,) = found("PATTERN A a WHERE a.x = 2 AND a.X = 3 RETURN a.X AS one", {"A": frame})
    assert row["one"] == 3


def test_nothing_is_found_in_empty_inputs(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [], "B": [(2, 0, "")]}, SCHEMA)
    out = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 5 US").match(inputs)
    assert out.count() == 0
    assert out.columns == ["match_id", "start", "end", "a", "b"]


def test_match_runs_no_job(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    frame = spark.range(3).select(F.col("id").alias("ts"), F.raise_error(F.lit("ran")).alias("x"))
    out = tocsin.pattern("PATTERN SEQ(A a, A b) WITHIN 5 US").match({"A": frame})
    with pytest.raises(Exception, match="ran"):
        out.collect()


def test_a_variable_of_a_branch_that_can_never_match_is_null(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1,)], "ts bigint")
    rows = bound("PATTERN OR(SEQ(A a, A b), A c) WHERE b.ts < a.ts", {"A": frame})
    assert rows == [{"a": None, "b": None, "c": 1}]
