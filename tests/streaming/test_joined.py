"""Streams by Spark's own joins: the matches of the batch, and a clear word on all that they cannot do."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.streaming.queries import Folder, settings

import tocsin
from tocsin import errors

SCHEMA = "type string, ts timestamp, id bigint, k string, x bigint"
TEXT = "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x PARTITION BY k WITHIN 20 SECONDS RETURN a.id AS a, c.id AS c"


def event(number: int, chance: random.Random) -> dict[str, Any]:
    at = f"2026-03-02T08:{number // 60:02}:{number % 60:02}Z"
    return {"type": chance.choice("ABC"), "ts": at, "id": number, "k": chance.choice(["p", None]), "x": number % 3}


def test_joins_of_streams_give_the_matches_of_the_batch_and_forget(spark: SparkSession, tmp_path: Path) -> None:
    chance, pattern = random.Random(5), tocsin.pattern(TEXT)
    rows = [event(number, chance) for number in range(60)]
    with settings(spark, partitions=1):
        folder = Folder(spark, tmp_path, SCHEMA)
        for begin in range(0, 60, 20):
            folder.add(rows[begin : begin + 20])
        for minute in range(3):  # Spark's watermark is a micro-batch late
            folder.add([{"type": kind, "ts": f"2026-03-02T09:0{minute}:00Z", "k": "far"} for kind in "ABC"])
        query = folder.run(pattern.match(folder.read(), id="id", lateness="2 seconds", strategy="join"))
        batch = spark.read.schema(SCHEMA).json(str(tmp_path / "in"))
        expected = [row.asDict() for row in pattern.match(batch, id="id").collect()]
        found = folder.written()
    assert len(expected) > 10
    assert sorted(found, key=str) == sorted(expected, key=str)
    kept = [sum(one["numRowsTotal"] for one in told["stateOperators"]) for told in query.recentProgress]
    assert max(kept) > 20, kept
    assert kept[-1] < 10, kept  # only the last events are left


REFUSED = {
    "PATTERN SEQ(A a, NOT C c, B b) PARTITION BY k WITHIN 5 SECONDS": {},
    "PATTERN SEQ(A a, B b) WITHIN 5 SECONDS": {},
    "PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 5 SECONDS": {},
    "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 6 SECONDS": {"id": None},
    "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 7 SECONDS": {"late": True},
    "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 8 SECONDS": {"emit": "watermark"},
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_joins_of_streams_cannot_do_is_said(spark: SparkSession, text: str) -> None:
    rate = spark.readStream.format("rate").load()
    events = rate.selectExpr("'A' AS type", "timestamp AS ts", "value AS id", "'p' AS k")
    options: dict[str, Any] = {"id": "id", "lateness": "1 second", "strategy": "join"} | REFUSED[text]
    with pytest.raises(errors.TocsinError, match="a kernel runs it"):
        tocsin.pattern(text).match(events, **options)
