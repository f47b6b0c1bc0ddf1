"""What a listener makes of the progress of a stream, and when it warns."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.streaming.queries import Folder, settings

import tocsin

SECOND = 1_000_000


@contextmanager
def listening(spark: SparkSession, listener: tocsin.TocsinListener) -> Iterator[None]:
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


def wait_for(listener: tocsin.TocsinListener, batches: int) -> None:
    """The listener hears of a micro-batch a little after the query has ended."""
    patience = time.monotonic() + 60
    while len(listener.recent) < batches and time.monotonic() < patience:
        time.sleep(0.05)


def test_a_listener_follows_the_streams_that_tocsin_matches(spark: SparkSession, tmp_path: Path) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 100 us")
    heard: list[tocsin.Progress] = []
    listener = tocsin.TocsinListener(heard.append, keep=2)
    with settings(spark, partitions=2), listening(spark, listener):
        folder = Folder(spark, tmp_path / "matched")
        folder.add([{"type": "A", "ts": 10, "k": "p"}, {"type": "A", "ts": None, "k": "p"}])
        folder.add([{"type": "B", "ts": 50, "k": "p"}, {"type": "A", "ts": 40, "k": "q"}])
        folder.add([{"type": "B", "ts": 3, "k": "p"}])
        folder.run(pattern.match(folder.read(), lateness="10 us"))
        other = Folder(spark, tmp_path / "other")  # a stream of somebody else's, which the listener does not know
        other.add([{"type": "A", "ts": 1}])
        other.run(other.read())
        wait_for(listener, 2)
        patience = time.monotonic() + 60
        while len(heard) < 3 and time.monotonic() < patience:
            time.sleep(0.05)
    first, second, third = heard
    assert (first.batch, first.seen, first.bad, first.events, first.matches, first.watermark) == (0, 2, 1, 1, 0, 0)
    assert (second.events, second.late, second.matches, second.watermark) == (2, 0, 1, 40)
    assert (second.remembered, second.bound, dict(second.over)) == (3, None, {})
    assert second.largest in (2, 3)
    assert second.bytes > 0
    assert second.duration_ms > 0
    assert second.events_per_second == pytest.approx(2 / second.duration_ms * 1000)
    assert third.late == 1
    assert list(listener.recent) == [second, third]
    assert listener.last is third
    assert third.lag_seconds == pytest.approx(time.time(), rel=0.01)


RULE = """template A { k : String }  template B { k : String }
    rule R where a : A  b : B { k = a.k } when b in a [0 seconds, 1 minute]"""


@pytest.mark.parametrize(
    ("unit", "is_program"), [("s", False), ("ms", False), ("ms", True), ("us", False), ("ns", False)]
)
def test_the_watermark_is_in_microseconds_whatever_times_count(
    spark: SparkSession, tmp_path: Path, unit: str, is_program: bool
) -> None:
    query = tocsin.rules(RULE) if is_program else tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 1 MINUTE")
    ticks = {"s": 1, "ms": 1_000, "us": SECOND, "ns": 1_000 * SECOND}[unit]
    now = int(time.time())
    listener = tocsin.TocsinListener()
    with settings(spark, partitions=1), listening(spark, listener):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": now * ticks, "k": "p"}])
        folder.run(query.match(folder.read(), lateness="10 seconds", time_unit=unit))
        wait_for(listener, 1)
        folder.add([{"type": "A", "ts": (now - 11) * ticks, "k": "p"}])
        strict = query.match(folder.read(), lateness="10 seconds", time_unit=unit, late="fail")
        with pytest.raises(Exception, match=f"before {(now - 10) * ticks} {unit.replace('u', 'µ')}"):
            folder.run(strict)
    assert listener.recent[0].watermark == (now - 10) * SECOND
    assert 9 < (listener.recent[0].lag_seconds or 0) < 600


def test_nothing_is_known_of_time_before_every_input_has_spoken(spark: SparkSession, tmp_path: Path) -> None:
    listener = tocsin.TocsinListener()
    with settings(spark), listening(spark, listener):
        left, right = Folder(spark, tmp_path / "a"), Folder(spark, tmp_path / "b")
        left.add([{"type": "A", "ts": 1}])
        right.add([])
        pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 5 us")
        left.run(pattern.match({"A": left.read(), "B": right.read()}, lateness="0 us"))
        wait_for(listener, 1)
    assert listener.last is not None
    assert listener.last.watermark is None
    assert listener.last.lag_seconds is None


def test_it_warns_once_of_a_source_beyond_its_rate_and_once_of_a_state_beyond_its_bound(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 1 SECOND")
    listener = tocsin.TocsinListener()
    with settings(spark), listening(spark, listener), caplog.at_level(logging.WARNING, logger="tocsin"):
        folder = Folder(spark, tmp_path)
        for second in range(3):
            folder.add([{"type": "A", "ts": second * SECOND + number, "k": "p"} for number in range(9)])
        folder.run(pattern.match(folder.read(), lateness="0 us", rates={"A": "2/s", "B": "1/s"}))
        wait_for(listener, 3)
    assert [one.over["A"] for one in listener.recent] == [7, 7, 7]
    assert [one.is_over_bound for one in listener.recent] == [True, True, True]
    texts = [record.getMessage() for record in caplog.records if record.name == "tocsin"]
    assert len(texts) == 2
    assert "`A` comes faster than its declared rate: 7 events beyond it in micro-batch 0" in texts[0]
    assert "holds 9 events, and the declared rates allow 3:" in texts[1]
