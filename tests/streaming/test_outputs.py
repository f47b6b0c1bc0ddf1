"""An output of a stream is one record: its rows come out of a shard in a column of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from tests.rules.support import compiled
from tests.streaming.queries import Folder
from tests.streaming.support import PLAN, Live
from tests.streaming.test_programs_on_spark import LOW, TEMPLATES

import tocsin
from tocsin.engines.stream import packing
from tocsin.engines.stream import pipeline as frames
from tocsin.engines.stream.grouped import Shard
from tocsin.engines.stream.outputs import FOUND, OUTPUTS, Output
from tocsin.engines.stream.packing import Unpacking
from tocsin.engines.stream.pipeline import StreamSettings
from tocsin.engines.stream.step import Outcome
from tocsin.engines.stream.store import rows_to_bytes, to_bytes
from tocsin.plan.manifest import MATCH_ID


class Group:
    """The state of a group, as Spark hands it to a shard."""

    exists = False
    get: tuple[bytes, ...] = ()

    def update(self, state: tuple[bytes, ...]) -> None:
        self.exists, self.get = True, state


def watermarks(outcome: Outcome) -> pa.Table:
    return pa.table({"__toy": pa.array([outcome.report.watermark])})


TOY = Output("watermark", "__toy", T.LongType(), lambda settings: settings.eager, watermarks)


def shard_batch(live: Live, rows: list[int], latest: int) -> pd.DataFrame:
    table = live.table.take(pa.array(rows, pa.int64()))
    values = [0, to_bytes([latest]), 0, len(rows), b"", rows_to_bytes(table)]
    return pd.DataFrame([values], columns=list(packing.COLUMNS))


def test_an_output_is_added_by_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "OUTPUTS", [*OUTPUTS, TOY])
    assert StreamSettings(eager=False).outputs == ()
    table = pa.table({"ts": [1, 2, 9], "x": [0, 1, 2]})
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b) WITHIN 5 us")
    live = Live(pattern, {"A": table}, lateness_us=1, eager=True)
    shard = Shard(live.step, PLAN, (1,), outputs=StreamSettings().outputs)
    group: Any = Group()
    emitted = [
        pd.concat(shard((0,), iter([shard_batch(live, rows, latest)]), group))
        for rows, latest in [([0, 1], 2), ([2], 9)]
    ]
    unpacking = Unpacking(pa.schema({MATCH_ID: pa.string(), "__toy": pa.int64()}))
    found: list[dict[str, Any]] = []
    for frame in emitted:
        written = pa.array([one for one in frame[FOUND] if one], pa.binary())
        for batch in unpacking(iter([pa.RecordBatch.from_arrays([written], names=[FOUND])])):
            found += batch.to_pylist()
    assert [row["__toy"] for row in found if row[MATCH_ID] is None] == [1, 8]
    assert len([row for row in found if row["__toy"] is None]) == 1
    assert [frame.iloc[-1]["watermark"] for frame in emitted] == [1, 8]


def test_an_output_is_a_column_of_patterns_and_of_programs(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, tmp_path: Path
) -> None:
    monkeypatch.setattr(frames, "OUTPUTS", [*OUTPUTS, TOY])
    stream = Folder(spark, tmp_path, "type string, ts timestamp, k string, x bigint").read()
    pattern, program = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 5 SECONDS"), compiled(TEMPLATES + LOW)
    shown = [
        pattern.match(stream, lateness="1 s"),
        program.match(stream, lateness="1 s"),
        program.matches("Low", stream, lateness="1 s"),
        program.events("E", stream, lateness="1 s"),
    ]
    assert [frame.columns[-1] for frame in shown] == ["watermark"] * 4
