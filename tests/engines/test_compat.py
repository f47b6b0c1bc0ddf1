"""What a query changes in the user's session, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin.engines.spark.compat import BATCH_BYTES, BATCH_ROWS, NO_BYTE_LIMIT

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
