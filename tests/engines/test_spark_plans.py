"""What Spark makes of the plans: no product of everything with everything, filters in the scan, columns pruned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import physical_plan

import tocsin

BOUNDED = [
    "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS",
    "PATTERN AND(A a, B b) WITHIN 10 SECONDS",
    "PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x + b.x WITHIN 10 SECONDS",
    "PATTERN SEQ(A a, AND(B b, C c), A d) WITHIN 10 SECONDS",
    "PATTERN SEQ(A a, OR(B b, C c)) PARTITION BY k WITHIN 10 SECONDS",
    "PATTERN OR(SEQ(A a, B b), SEQ(B b, A a)) WITHIN 10 SECONDS",
    "PATTERN AND(A a, B b) WHERE b.ts - a.ts BETWEEN 1 SECOND AND 5 SECONDS",
    "PATTERN SEQ(A a, B b) WHERE a.k = 1 AND b.k = 1 WITHIN 10 SECONDS",
]
EVERYTHING_WITH_EVERYTHING = ("CartesianProduct", "BroadcastNestedLoopJoin")


@pytest.fixture(scope="module")
def inputs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    path = tmp_path_factory.mktemp("events")
    frame = spark.range(10).selectExpr("timestamp_seconds(id) AS ts", "id AS k", "id AS x", "'wide' AS note")
    read = {}
    for name in "ABC":
        frame.write.parquet(str(path / name))
        read[name] = spark.read.parquet(str(path / name))
    return read


@pytest.mark.parametrize("text", BOUNDED)
def test_a_bounded_pattern_never_joins_everything_with_everything(
    text: str, inputs: dict[str, DataFrame], spark: SparkSession, capsys: Any
) -> None:
    matches = tocsin.pattern(text).match(inputs, strategy="join")
    for broadcast in ("10485760", "-1"):
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
        try:
            shown = physical_plan(matches.select("*"), capsys)
        finally:
            spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        assert not any(word in shown for word in EVERYTHING_WITH_EVERYTHING)


def test_an_unbounded_pattern_without_a_key_joins_by_its_order(inputs: dict[str, DataFrame], capsys: Any) -> None:
    shown = physical_plan(tocsin.pattern("PATTERN SEQ(A a, B b)").match(inputs, strategy="join"), capsys)
    assert any(word in shown for word in EVERYTHING_WITH_EVERYTHING)


@pytest.mark.parametrize("text", ["PATTERN SEQ(A a, B b) PARTITION BY k", "PATTERN SEQ(A a, B b) WHERE [k]"])
def test_a_key_alone_makes_an_equi_join(text: str, inputs: dict[str, DataFrame], capsys: Any) -> None:
    shown = physical_plan(tocsin.pattern(text).match(inputs, strategy="join"), capsys)
    assert not any(word in shown for word in EVERYTHING_WITH_EVERYTHING)


def test_conditions_on_one_event_reach_the_files(inputs: dict[str, DataFrame], capsys: Any) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x > 5 AND b.k = 3 AND a.ts >= TIMESTAMP '1970-01-01 00:00:02' WITHIN 1 HOUR"
    shown = physical_plan(tocsin.pattern(text).match(inputs, strategy="join"), capsys)
    pushed = [line for line in shown.splitlines() if line.startswith("PushedFilters")]
    assert any("GreaterThan(x,5)" in line and "GreaterThanOrEqual(ts" in line for line in pushed)
    assert any("EqualTo(k,3)" in line for line in pushed)
    assert all("IsNotNull(ts)" in line for line in pushed)


def test_columns_that_nothing_needs_are_not_read(inputs: dict[str, DataFrame], capsys: Any) -> None:
    text = "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 1 HOUR RETURN a.x"
    shown = physical_plan(tocsin.pattern(text).match(inputs, id="k", strategy="join"), capsys)
    schemas = [line for line in shown.splitlines() if line.startswith("ReadSchema")]
    assert len(schemas) == 2
    assert not any("note" in line for line in schemas)


def test_an_id_column_saves_the_shuffle_of_the_matches(
    inputs: dict[str, DataFrame], spark: SparkSession, tmp_path: Path, capsys: Any
) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 1 HOUR")
    assert "Window" in physical_plan(pattern.match(inputs, strategy="join"), capsys)
    assert "Window" not in physical_plan(pattern.match(inputs, id="k", strategy="join"), capsys)
