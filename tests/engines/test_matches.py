"""The matches of small streams: what SEQ, AND, OR, keys and conditions mean on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.engines.support import bound, found, frames

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


# --- absences and iterations ----------------------------------------------------------------------


def test_an_absence_between_two_events_is_strict_on_both_sides(spark: SparkSession) -> None:
    rows = {"A": [(1, 0, "")], "N": [(1, 0, ""), (4, 0, ""), (5, 0, "")], "C": [(4, 0, ""), (5, 0, "")]}
    inputs = frames(spark, rows, SCHEMA)
    assert bound("PATTERN SEQ(A a, NOT N n, C c)", inputs, strategy="join") == [{"a": 1, "c": 4}]
    assert bound("PATTERN SEQ(A a, NOT N n, C c) WITHIN 9 US", inputs, strategy="join") == [{"a": 1, "c": 4}]


def test_an_absence_at_the_edge_reaches_as_far_as_the_window(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(10, 0, ""), (20, 0, ""), (31, 0, "")], "N": [(15, 0, ""), (30, 0, "")]}, SCHEMA)
    assert bound("PATTERN SEQ(NOT N n, A a) WITHIN 5 US", inputs, strategy="join") == [{"a": 10}, {"a": 20}]
    assert bound("PATTERN SEQ(A a, NOT N n) WITHIN 5 US", inputs, strategy="join") == [
        {"a": 10},
        {"a": 20},
        {"a": 31},
    ]
    assert bound("PATTERN SEQ(A a, NOT N n) WITHIN 6 US", inputs, strategy="join") == [{"a": 20}, {"a": 31}]


def test_an_event_blocks_only_when_all_its_conditions_are_true(spark: SparkSession) -> None:
    rows = {"A": [(1, 1, "u"), (1, 2, "v"), (1, 3, "w")], "N": [(2, 1, "u"), (2, None, "v"), (2, 3, "u")]}
    inputs = frames(spark, {**rows, "C": [(3, 0, "")]}, SCHEMA)
    text = "PATTERN SEQ(A a, NOT N n, C c) WHERE n.x = a.x AND n.k = a.k WITHIN 9 US RETURN a.x"
    assert [row["x"] for row in found(text, inputs, strategy="join")] == [2, 3]


def test_null_keys_of_absent_events_follow_the_partition(spark: SparkSession) -> None:
    rows = {"A": [(1, 1, None), (1, 2, "u")], "N": [(2, 0, None)], "C": [(3, 1, None), (3, 2, "u")]}
    inputs = frames(spark, rows, SCHEMA)
    pairs = [{"a": 2, "c": 2}]
    assert bound("PATTERN SEQ(A a, NOT N n, C c) PARTITION BY k", inputs, "x", strategy="join") == pairs
    assert bound("PATTERN SEQ(A a, NOT N n, C c) WHERE [k]", inputs, "x", strategy="join") == pairs


def test_a_match_lives_when_one_of_its_derivations_does(spark: SparkSession) -> None:
    rows = {"A": [(1, 0, ""), (11, 0, ""), (21, 0, "")], "C": [(5, 0, ""), (15, 0, ""), (25, 0, "")]}
    inputs = frames(spark, {**rows, "N": [(3, 0, ""), (13, 0, "")], "M": [(13, 0, ""), (23, 0, "")]}, SCHEMA)
    text = "PATTERN OR(SEQ(A a, NOT N n, C c), SEQ(A a, NOT M m, C c)) WITHIN 9 US"
    assert bound(text, inputs, strategy="join") == [{"a": 1, "c": 5}, {"a": 21, "c": 25}]


def test_an_iteration_is_an_array_in_order_of_time(spark: SparkSession) -> None:
    inputs = frames(spark, {"B": [(3, 30, ""), (1, 10, ""), (2, 20, ""), (2, 5, "")]}, SCHEMA)
    text = """
        PATTERN B{2,3} b WHERE b[i].x > b[i-1].x WITHIN 9 US
        RETURN b.ts AS at, b[last].x AS last, b[3].x AS third, SUM(b.x) AS total, COUNT(b) AS n
    """
    rows = found(text, inputs, strategy="join")
    assert [(row["at"], row["last"], row["third"], row["total"], row["n"]) for row in rows] == [
        ([1, 2], 20, None, 30, 2),
        ([1, 2, 3], 30, 30, 60, 3),
        ([1, 3], 30, None, 40, 2),
        ([2, 3], 30, None, 35, 2),
        ([2, 3], 30, None, 50, 2),
    ]


def test_a_bag_that_is_empty_is_null(spark: SparkSession) -> None:
    inputs = frames(spark, {"A": [(1, 0, "")], "B": [(2, 7, "")]}, SCHEMA)
    rows = found("PATTERN SEQ(A a, B{0,2} b) WITHIN 9 US", inputs, strategy="join")
    assert [row["b"] and [event["x"] for event in row["b"]] for row in rows] == [None, [7]]
