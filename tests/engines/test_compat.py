"""What a query changes in the user's session, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin.engines.spark.compat import BATCH_BYTES, BATCH_ROWS, NO_BYTE_LIMIT, search_tasks

TEXT = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"


@pytest.fixture
def events(spark: SparkSession) -> Iterator[DataFrame]:
    """Events in a session of their own, which is thrown away."""
    yield spark.newSession().createDataFrame([], "ts bigint, type string")


def plan(events: DataFrame, strategy: str = "kernel") -> None:
    tocsin.pattern(TEXT).match(events, time="ts", strategy=strategy)


def test_batches_for_python_are_not_measured_after_every_row(events: DataFrame) -> None:
    plan(events)
    assert events.sparkSession.conf.get(BATCH_BYTES) == NO_BYTE_LIMIT


def test_a_limit_of_the_user_stays(events: DataFrame) -> None:
    events.sparkSession.conf.set(BATCH_BYTES, "1m")
    plan(events)
    assert events.sparkSession.conf.get(BATCH_BYTES) == "1m"


def test_the_limit_stays_where_rows_are_not_limited(events: DataFrame) -> None:
    conf = events.sparkSession.conf
    before = conf.get(BATCH_BYTES)
    conf.set(BATCH_ROWS, "0")
    plan(events)
    assert conf.get(BATCH_BYTES) == before != NO_BYTE_LIMIT


def test_joins_need_no_python_and_change_nothing(events: DataFrame) -> None:
    before = events.sparkSession.conf.getAll
    plan(events, "join")
    assert events.sparkSession.conf.getAll == before


# --- the number of tasks --------------------------------------------------------------------------


@pytest.fixture
def adaptive(spark: SparkSession) -> SparkSession:
    """A session that joins small partitions."""
    own = spark.newSession()
    own.conf.set("spark.sql.adaptive.enabled", "true")
    return own


def matches_of_tasks(events: DataFrame) -> list[int]:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"matches": [sum(batch.num_rows for batch in batches)]})

    found = tocsin.pattern(TEXT).match(events, strategy="kernel").mapInArrow(count, "matches bigint")
    return [row.matches for row in found.collect()]


def ranged(session: SparkSession) -> DataFrame:
    return session.range(20_000).selectExpr("timestamp_seconds(id) AS ts", "if(id % 2 = 0, 'A', 'B') AS type")


@pytest.mark.parametrize(("partitions", "tasks"), [(1, 1), (7, 7), (8, 8), (200, 8)])
def test_a_search_of_little_data_has_several_tasks_per_core(
    adaptive: SparkSession, partitions: int, tasks: int
) -> None:
    adaptive.conf.set("spark.sql.shuffle.partitions", partitions)
    found = matches_of_tasks(ranged(adaptive))
    assert (len(found), sum(found)) == (tasks, 49_990)
    assert partitions == 1 or sum(number > 0 for number in found) >= 4


def test_many_partitions_are_used_where_inputs_are_large(adaptive: SparkSession) -> None:
    adaptive.conf.set("spark.sql.shuffle.partitions", 100)
    large = adaptive.range(64 << 20)  # 512 MiB
    assert search_tasks([large]) == 16
    assert search_tasks([large, large]) == 16
    assert search_tasks([large, adaptive.range(1, (64 << 20) + 1)]) == 32
    assert search_tasks([adaptive.range(1 << 32)]) == 100


def test_spark_chooses_where_the_size_of_inputs_is_not_known(adaptive: SparkSession) -> None:
    adaptive.conf.set("spark.sql.shuffle.partitions", 200)
    rows = adaptive.createDataFrame([(number, "AB"[number % 2]) for number in range(20)], "ts bigint, type string")
    assert search_tasks([rows]) is None
    assert len(matches_of_tasks(rows.selectExpr("timestamp_seconds(ts) AS ts", "type"))) == 1
    adaptive.conf.set("spark.sql.shuffle.partitions", 5)
    assert search_tasks([rows]) == 5
