"""`analyze` measures what is there: one job over the inputs, checked against counting the rows by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tocsin
from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.engines.spark.analyze import analyze
from tocsin.engines.spark.inputs import resolve
from tocsin.optimizer.statistics import Layout, Statistics, TypeStatistics

SCHEMA = "type string, ts bigint, k int, x int, s string"
TEXT = """
    PATTERN SEQ(A a, NOT C n, B+ b)
    WHERE a.x < 10 AND b.s = a.s AND b.x > a.x AND n.x = 0
    PARTITION BY k WITHIN 1 SECOND
"""


def rows_of(number: int) -> list[tuple[Any, ...]]:
    choose = random.Random(7)
    return [
        (
            choose.choice("ABCD"),
            place * 1000,
            0 if place % 4 else choose.randrange(50),
            choose.randrange(100),
            "pqr"[place % 3],
        )
        for place in range(number)
    ]


def measured(text: str, inputs: Any, **options: Any) -> Statistics:
    query = tocsin.pattern(text).query
    return analyze(query, resolve(inputs, alg.event_types(query.pattern)), **options)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(rows_of(4000), SCHEMA).repartitionByRange(4, "ts")


@pytest.fixture(scope="module")
def statistics(events: DataFrame) -> Statistics:
    return measured(TEXT, events, sample=1.0)


def test_events_are_counted_by_type_with_their_first_and_last_time(statistics: Statistics) -> None:
    rows = rows_of(4000)
    assert statistics.rows == 4000
    for kind in "ABC":
        times = [row[1] for row in rows if row[0] == kind]
        assert statistics.types[kind] == TypeStatistics(len(times), min(times), max(times))
    assert set(statistics.types) == {"A", "B", "C"}
    assert statistics.source == "measured"


def test_candidates_are_counted_by_the_conditions_of_each_variable_alone(statistics: Statistics) -> None:
    rows = rows_of(4000)
    own = {"a": ("A", lambda x: x < 10), "b": ("B", lambda x: True), "n": ("C", lambda x: x == 0)}
    for variable, (kind, test) in own.items():
        of_type = [row[3] for row in rows if row[0] == kind]
        assert statistics.selectivity[variable] == sum(map(test, of_type)) / len(of_type)


def test_keys_and_their_skew_are_estimated(statistics: Statistics) -> None:
    kept = [row[2] for row in rows_of(4000) if row[0] in "ABC"]
    assert statistics.keys is not None
    assert statistics.keys.distinct == pytest.approx(len(set(kept)), rel=0.05)
    assert statistics.keys.heaviest == pytest.approx(kept.count(0) / len(kept))


def test_values_of_equated_attributes_are_estimated(statistics: Statistics) -> None:
    assert statistics.distinct == {"s": 3}


def test_an_input_in_order_of_time_is_found_clustered(statistics: Statistics, events: DataFrame) -> None:
    assert statistics.layout is not None
    assert statistics.layout.is_clustered
    assert statistics.layout.parts == 4
    assert 500_000 < statistics.layout.widest_us < 1_500_000
    mixed = measured(TEXT, events.repartition(3, "k")).layout
    assert mixed is not None
    assert not mixed.is_clustered


def test_one_input_per_type_gives_the_same_counts(statistics: Statistics, events: DataFrame) -> None:
    apart = {kind: events.filter(F.col("type") == kind).drop("type") for kind in "ABC"}
    found = measured(TEXT, apart, sample=1.0)
    assert (found.types, found.selectivity, found.distinct) == (
        statistics.types,
        statistics.selectivity,
        statistics.distinct,
    )
    assert found.keys == statistics.keys
    assert found.layout is not None
    assert not found.layout.is_clustered


def test_an_equality_over_all_variables_is_measured_as_the_key(events: DataFrame) -> None:
    found = measured("PATTERN SEQ(A a, B b) WHERE a.k = b.x WITHIN 1 SECOND", events)
    assert found.keys is not None
    assert found.keys.distinct == pytest.approx(100, rel=0.1)


def test_an_empty_input_has_statistics_too(spark: SparkSession) -> None:
    found = measured(TEXT, spark.createDataFrame([], SCHEMA))
    assert found.rows == 0
    assert found.layout == Layout(0, False, 0)
    assert found.types["A"] == TypeStatistics(0, None, None)


def test_time_stamps_are_measured_in_microseconds(spark: SparkSession) -> None:
    frame = spark.sql("SELECT timestamp'2026-01-01 00:00:00' ts, 1 k UNION ALL SELECT NULL, 2").coalesce(1)
    found = measured("PATTERN A a WHERE a.k = 1", {"A": frame})
    assert found.rows == 2
    assert found.types["A"] == TypeStatistics(1, 1_767_225_600_000_000, 1_767_225_600_000_000)


def test_a_sample_is_a_share(events: DataFrame) -> None:
    with pytest.raises(errors.InvalidOptionError):
        measured(TEXT, events, sample=5)


def test_a_stream_is_not_measured(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().select(F.col("timestamp").alias("ts"))
    with pytest.raises(errors.InvalidInputError, match="which has no end"):
        measured("PATTERN A a", {"A": stream})
