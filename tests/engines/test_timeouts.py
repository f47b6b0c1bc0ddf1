"""Time-outs on Spark: of keys and slices, with an `id` column, and beside what other strategies refuse."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.engines.support import light_settings

import tocsin
from tocsin import errors, reference
from tocsin.engines.spark.engine import prepare
from tocsin.options import Options
from tocsin.testing import assert_same_rows

SCHEMA = "type string, ts bigint, k string, x bigint, id bigint"
CHAIN = "PATTERN SEQ(A a, B b, C c) WHERE b.x >= a.x AND c.x <> a.x WITHIN 7 us WITH TIMEOUTS"
TEXTS = [
    CHAIN,
    CHAIN.replace("WITHIN", "PARTITION BY k WITHIN"),
    "PATTERN SEQ(NOT C n, A a, B{1,2} b, NOT C m) WITHIN 6 us RETURN a.x, COUNT(b) AS n, b.x AS bs WITH TIMEOUTS",
    "PATTERN SEQ(A a, OR(SEQ(B b, NOT C n, B d), C c), A e) WITHIN 9 us RETURN a, b, e.x HAVING a.x > 0 WITH TIMEOUTS",
]


def events(seed: int, size: int = 60) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    return [
        {
            "type": chance.choice("ABC"),
            "ts": chance.randint(0, 80),
            "k": chance.choice(["p", "q", None]),
            "x": chance.choice([0, 1, 2, None]),
            "id": number,
        }
        for number in range(size)
    ]


@pytest.mark.parametrize("id", [None, "id"])
@pytest.mark.parametrize("text", TEXTS)
def test_time_outs_of_keys_and_slices_equal_the_reference(spark: SparkSession, text: str, id: str | None) -> None:
    rows = events(len(text))
    pattern = tocsin.pattern(text)
    with light_settings(spark, partitions=3):
        frame = spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA)
        matches = prepare(pattern.query, frame, Options(id=id, slice_us=1)).matches()
        found = [row.asDict(recursive=True) for row in matches.collect()]
    expected = reference.evaluate(pattern, rows)
    assert {row["status"] for row in found} == {"match", "timeout"}
    assert_same_rows(found, [{**row, "start": row["start"], "end": row["end"]} for row in expected])
    assert len({row["match_id"] for row in found}) == len(found)
    if id is None:
        assert {row["match_id"] for row in found} == {row["match_id"] for row in expected}


@pytest.mark.parametrize("strategy", ["join", "sliding-window", "clustered", "automaton", "trend"])
def test_only_the_kernel_knows_time_outs(spark: SparkSession, strategy: str) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    with pytest.raises(errors.UnsupportedError):
        tocsin.pattern(CHAIN).match(frame, strategy=strategy)
