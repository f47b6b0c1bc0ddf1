"""Limits on the source: the counts of `tools/house.py`, and how many modules one `match` passes."""

from __future__ import annotations

from pyspark.sql import SparkSession
from tools import house


def test_each_phase_has_its_callers_and_each_concept_its_class() -> None:
    found = house.counts()
    assert {name: number for name, number in found.items() if name.startswith("callers of ") and number} == {}
    assert found["class Options"] == 1
    assert [name for name in ("Shipper", "JointTask", "AnyKernel") if found[f"class {name}"]] == []


def test_the_source_stays_within_its_budget() -> None:
    found = house.counts()
    assert found["files"] <= 350
    assert found["module names in several places"] <= 20


def test_a_batch_match_passes_few_modules(spark: SparkSession) -> None:
    passed = house.walk(spark, streaming=False)
    assert ("api.py", "match", "DataFrame") in passed
    assert len(passed) <= 50, passed


def test_a_match_of_streams_passes_few_modules(spark: SparkSession) -> None:
    passed = house.walk(spark, streaming=True)
    assert ("api.py", "match", "DataFrame") in passed
    assert len(passed) <= 55, passed
