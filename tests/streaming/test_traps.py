"""Three traps of Structured Streaming into which chained joins and plain automata fall."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.streaming.queries import Folder, settings

import tocsin
from tocsin import reference


def at(second: int) -> str:
    return f"2026-03-02T08:{second // 60:02}:{second % 60:02}Z"


def test_a_type_that_never_comes_does_not_hold_the_watermark_back(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pushes a filter on the type below the watermark: that of B would never move, and no absence be told."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, NOT B b) WITHIN 10 SECONDS RETURN a.x")
    with settings(spark):
        folder = Folder(spark, tmp_path, "type string, ts timestamp, x bigint")
        folder.add([{"type": "A", "ts": at(0), "x": 7}])
        folder.add([{"type": "A", "ts": at(8), "x": 8}])
        folder.add([{"type": "other", "ts": at(30)}])
        events = folder.read().withWatermark("ts", "5 seconds")
        wanted = events.filter("type <> 'noise'")
        folder.run(pattern.match(wanted))
        assert sorted(row["x"] for row in folder.written()) == [7, 8]


def test_the_order_of_rows_in_a_micro_batch_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    """Two scan tasks and a shuffle mix the rows of a micro-batch, even where every file is in order."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 20 us SEMANTICS next")
    chance = random.Random(3)
    rows: list[dict[str, Any]] = [
        {"type": chance.choice("ABC"), "ts": ts, "k": chance.choice("pq"), "x": ts, "v": 0.5} for ts in range(120)
    ]
    expected = reference.evaluate(pattern, {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"})
    assert len(expected) > 10
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        for begin in range(0, 120, 40):
            batch = rows[begin : begin + 40]
            chance.shuffle(batch)
            folder.add(batch)
        folder.add([{"type": "other", "ts": 10**6}])
        several = folder.spark.readStream.schema(folder.schema).option("maxFilesPerTrigger", 2)
        read = several.json(str(tmp_path / "in")).repartition(3)
        folder.run(pattern.match(read, lateness="40 us"))
        assert sorted(row["match_id"] for row in folder.written()) == sorted(row["match_id"] for row in expected)


def test_one_source_is_read_once_however_many_variables_there_are(spark: SparkSession, tmp_path: Path) -> None:
    """A join has a branch for every variable, and Spark reads the source for each of them."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b, C c) PARTITION BY k WITHIN 20 us")
    with settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": kind, "ts": ts, "k": "p", "x": ts, "v": 0.5} for ts, kind in enumerate("ABCABC")])
        query = folder.run(pattern.match(folder.read(), lateness="0 seconds"))
        told = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
        assert len(folder.written()) == 4
    assert told == [6]
    assert [len(progress["sources"]) for progress in query.recentProgress] == [1]
