"""The sink that writes a micro-batch once, however often Spark runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.streaming.queries import Folder, settings

import tocsin
from tocsin import sinks
from tocsin.errors import InvalidInputError


def numbers(frame: DataFrame) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_micro_batch_that_runs_again_replaces_itself_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    write = sinks.once(out)
    write(spark.range(3), 0)
    write(spark.range(5), 1)
    (tmp_path / "out" / "batch=1" / "part-left-over.parquet").write_bytes(b"half a file")
    write(spark.range(4), 1)
    assert numbers(spark.read.parquet(out)) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 1)]
    # Readers that know nothing of Spark find the same.
    assert pq.read_table(out).num_rows == 7


def test_nothing_is_written_for_an_empty_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    write = sinks.once(str(tmp_path / "out"))
    write(spark.range(1), 0)
    write(spark.range(0), 1)
    assert [path.name for path in (tmp_path / "out").glob("batch=*")] == ["batch=0"]


def test_a_column_with_the_name_of_the_partition_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`batch`"):
        sinks.once(str(tmp_path))(spark.range(1).withColumnRenamed("id", "batch"), 0)
    sinks.once(str(tmp_path / "out"), column="n", format="json")(spark.range(1).withColumnRenamed("id", "batch"), 7)
    assert (tmp_path / "out" / "n=7").is_dir()


def test_late_events_that_were_not_asked_for_are_missed(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="late=True"):
        sinks.once(str(tmp_path / "out"), late=str(tmp_path / "late"))(spark.range(1), 0)


class Broken(Exception):
    pass


def test_matches_and_late_events_of_one_query_are_written_once_across_a_failure(
    spark: SparkSession, tmp_path: Path
) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 100 us RETURN b.x")
    out, late = str(tmp_path / "out"), str(tmp_path / "late")
    once, failures = sinks.once(out, late=late), [1, 2]

    def write(frame: DataFrame, batch: int) -> None:
        once(frame, batch)
        if batch in failures:  # after the rows are written, and before Spark knows it
            failures.remove(batch)
            raise Broken

    def run(matches: Any) -> None:
        sink = matches.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).foreachBatch(write)
        sink.trigger(availableNow=True).start().awaitTermination()

    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 10, "k": "p"}])
        folder.add([{"type": "B", "ts": 50, "k": "p", "x": 1}])
        folder.add([{"type": "B", "ts": 3, "k": "p", "x": 2}, {"type": "B", "ts": 60, "k": "p", "x": 3}])
        for _ in range(2):
            with pytest.raises(Exception, match="Broken"):
                run(pattern.match(folder.read(), lateness="10 us", late=True))
        run(pattern.match(folder.read(), lateness="10 us", late=True))
    assert failures == []
    assert numbers(spark.read.parquet(out).select("x", "batch")) == [(1, 1), (3, 2)]
    assert [row.late for row in spark.read.parquet(late).collect()] == ['{"type":"B","ts":3,"k":"p","x":2,"v":null}']
