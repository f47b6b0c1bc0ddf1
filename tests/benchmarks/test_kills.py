"""A stream that is killed has the rows of the batch: small, and with everything that is killed for real."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from benchmarks import kills


def test_events_come_out_of_order_twice_and_without_a_time_and_never_late(tmp_path: Path) -> None:
    kills.make(tmp_path / "data", 5_000, 4, seed=1)
    rows = pq.read_table(tmp_path / "data").to_pylist()
    times = [row["ts"] for row in rows if row["ts"] is not None and row["type"] != "clock"]
    assert times != sorted(times)
    newest = 0
    for time in times:
        assert time > newest - kills.LATENESS_US
        newest = max(newest, time)
    numbers = [row["n"] for row in rows]
    assert len(set(numbers)) < len(numbers)
    assert any(row["ts"] is None for row in rows)


def test_a_result_is_judged_by_its_rows() -> None:
    exact = {"matches": 3, "rows": 3, "ids": 3, "lost": 0, "surplus": 0}
    assert kills.is_exact(exact)
    for worse in ({"rows": 4}, {"ids": 2}, {"lost": 1}, {"surplus": 1}):
        assert not kills.is_exact({**exact, **worse})
    assert not kills.is_exact({**exact, "matches": 0, "rows": 0, "ids": 0})


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("store", "sink"), [("default", "files"), ("rocksdb", "once")])
def test_a_stream_that_is_killed_twice_has_the_rows_of_the_batch(tmp_path: Path, store: str, sink: str) -> None:
    out = tmp_path / "kills.json"
    options = ["--rows", "20k", "--files", "9", "--kills", "2", "--home", str(tmp_path / "home"), "--out", str(out)]
    assert kills.main([*options, "--stores", store, "--sinks", sink]) == 0
    (record,) = json.loads(out.read_text())["records"]
    assert len(record["kills"]) == 2
    assert all(kill["processes"] >= 3 for kill in record["kills"])  # the driver, the JVM, and workers
