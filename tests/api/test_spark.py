"""`check` and `explain` with DataFrames."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import tocsin

TEXT = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 MINUTES"


def test_check_takes_frames_schemas_and_mappings(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "ts timestamp, k string, place struct<lat: double>")
    pattern = tocsin.pattern(TEXT)
    reports = [pattern.check({"A": given, "B": {"ts": "timestamp", "k": "string"}}) for given in (frame, frame.schema)]
    assert reports[0].columns == reports[1].columns
    assert dict(reports[0].columns)["a"] == "struct<ts:timestamp,k:string,place:struct<lat:double>>"


@pytest.mark.parametrize("mode", ["simple", "extended", "cost", "formatted"])
def test_explain_with_inputs_ends_with_spark_s_plan(
    spark: SparkSession, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.createDataFrame([], "ts timestamp, k string")
    report = tocsin.pattern(TEXT).explain({"A": frame, "B": frame}, mode=mode)
    assert "Physical Plan ==" in report.partition("== Spark plan ==")[2]
    assert capsys.readouterr().out == ""


def test_explain_uses_the_inputs_time(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "at bigint, k string")
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE b.at - a.at < 100")
    assert "unbounded: a and b" in pattern.explain()
    assert "unbounded: a and b" not in pattern.explain({"A": frame, "B": frame}, time="at")
