"""`python -m benchmarks.live.soak`: steady input for half an hour; nothing may grow, and no micro-batch be slower.

Files arrive at a fixed rate, as from a broker that is drained to disk. What is told of every micro-batch is put
together in slices of time: their median and 99th percentile, the state against its bound, and the memory of the JVM and
of its workers. Flat means that the last slices are like those after the warm-up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from benchmarks import session
from benchmarks.live.__main__ import bound_of
from benchmarks.live.plans import STORES, by_tocsin
from benchmarks.live.runs import PROVIDER, percentile, told, write
from benchmarks.processes import Process, descendants
from benchmarks.settings import parse_size, size
from benchmarks.streams import BEGIN, MILLISECOND, Events, table_of

KEYS = 1_000
FLAT = 1.25  # how much slower than those after the warm-up the last slices may be


class Feed(threading.Thread):
    """Writes a file of events every `each_s` seconds, one event per millisecond of their own time."""

    def __init__(self, folder: Path, rate: int, each_s: float) -> None:
        super().__init__(daemon=True)
        self.folder, self.rate, self.each_s = folder, rate, each_s
        self.over = threading.Event()
        self.written = 0

    def run(self) -> None:
        began, number = time.monotonic(), 0
        rows = int(self.rate * self.each_s)
        rng = np.random.default_rng(1)
        while not self.over.is_set():
            write(self._table(rng, rows), self.folder / f"{number:06}.parquet")
            number += 1
            self.written += rows
            self.over.wait(max(0.0, began + number * self.each_s - time.monotonic()))

    def _table(self, rng: np.random.Generator, rows: int) -> pa.Table:
        events = Events(
            BEGIN + (self.written + np.arange(rows, dtype=np.int64)) * MILLISECOND,
            tuple("ABCDE"),
            rng.integers(0, 5, rows, dtype=np.int8),
            rng.integers(0, KEYS, rows, dtype=np.int32),
            rng.random(rows),
        )
        return table_of(events)


def memory_mb() -> dict[str, float]:
    """Of the JVM, and of all Python workers together."""
    found = list(descendants())
    return {
        # The largest: when the JVM starts a command, there are for a moment two of it, with the same memory.
        "jvm": max((process.rss / 1e6 for process in found if _is_jvm(process)), default=0.0),
        "workers": sum(process.rss / 1e6 for process in found if not _is_jvm(process)),
    }


def _is_jvm(process: Process) -> bool:
    return "java" in process.command.split(" ", 1)[0]


def watch(query: StreamingQuery, seconds: float) -> list[dict[str, Any]]:
    """What each micro-batch told, until the time is over."""
    began, seen, found = time.monotonic(), -1, []
    while time.monotonic() - began < seconds:
        time.sleep(1)
        if not query.isActive:
            query.awaitTermination()
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["numInputRows"]:
                seen = progress["batchId"]
                found.append(
                    {
                        "at_s": time.monotonic() - began,
                        "rows": progress["numInputRows"],
                        "ms": progress["durationMs"]["triggerExecution"],
                        **told(progress),
                        **memory_mb(),
                    }
                )
    return found


def slices(batches: Sequence[dict[str, Any]], seconds: float, number: int) -> list[dict[str, Any]]:
    """Micro-batches by the time at which they were done."""
    found = []
    for place in range(number):
        low, high = seconds * place / number, seconds * (place + 1) / number
        own = [one for one in batches if low <= one["at_s"] < high]
        if own:
            found.append(
                {
                    "minutes": [round(low / 60, 1), round(high / 60, 1)],
                    "batches": len(own),
                    "rows": sum(one["rows"] for one in own),
                    "median_ms": statistics.median(one["ms"] for one in own),
                    "p99_ms": percentile([one["ms"] for one in own], 0.99),
                    "us_per_event": 1000 * sum(one["ms"] for one in own) / sum(one["rows"] for one in own),
                    "remembered": max(one["remembered"] for one in own),
                    "jvm_mb": max(one["jvm"] for one in own),
                    "workers_mb": max(one["workers"] for one in own),
                }
            )
    return found


def table(found: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| minutes | batches | events | median ms | p99 ms | µs per event | state, events | JVM MB | workers MB |",
        "| --- " * 9 + "|",
    ]
    lines += [
        f"| {one['minutes'][0]:g}-{one['minutes'][1]:g} | {one['batches']} | {one['rows']:,} | "
        f"{one['median_ms']:,.0f} | {one['p99_ms']:,.0f} | {one['us_per_event']:.1f} | {one['remembered']:,} | "
        f"{one['jvm_mb']:,.0f} | {one['workers_mb']:,.0f} |"
        for one in found
    ]
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.live.soak", description=__doc__)
    made.add_argument("--minutes", type=float, default=30, help="how long (30)")
    made.add_argument("--rate", default="20k", help="events per second (20k)")
    made.add_argument("--each", type=float, default=2.0, help="seconds between two files (2)")
    made.add_argument("--window", type=int, default=10, help="seconds of the window, in time of events (10)")
    made.add_argument("--store", choices=STORES, default="rocksdb", help="the state store (rocksdb)")
    made.add_argument("--slices", type=int, default=6, help="into how many slices time is cut (6)")
    made.add_argument("--out", type=Path, default=Path("build/bench/soak.json"), help="where the result goes")
    given = made.parse_args()
    rate, seconds = parse_size(given.rate), given.minutes * 60
    bound = bound_of(given.window)
    with tempfile.TemporaryDirectory(prefix="tocsin-soak-") as scratch:
        spark: SparkSession = session.start(cores=2, partitions=2, memory="2g", scratch=Path(scratch) / "spark")
        spark.conf.set(PROVIDER, STORES[given.store])
        folder = Path(scratch) / "in"
        folder.mkdir()
        feed = Feed(folder, rate, given.each)
        feed.start()
        while not feed.written:
            time.sleep(0.1)
        events = spark.readStream.schema(spark.read.parquet(str(folder)).schema).parquet(str(folder))
        query = (
            by_tocsin(events, given.window)
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{scratch}/checkpoint")
            .option("path", f"{scratch}/out")
            .trigger(processingTime=f"{given.each} seconds")
            .start()
        )
        batches = watch(query, seconds)
        feed.over.set()
        query.stop()
        spark.stop()
    found = slices(batches, seconds, given.slices)
    first, last = found[min(1, len(found) - 1)]["us_per_event"], found[-1]["us_per_event"]
    peak = max(one["remembered"] for one in batches)
    result = {
        "environment": session.environment(rate=rate, window_s=given.window, store=given.store),
        "slices": found,
        "last_to_first": last / first,
        "peak": peak,
        "bound": bound,
        "batches": batches,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{size(rate)} events/s, {given.store}, window {given.window} s; state at most {peak:,}, bound {bound:,}\n")
    print(f"{table(found)}\n\nlast slice ÷ second slice: {last / first:.2f}. Written: {given.out}")
    return 0 if last <= FLAT * first and peak <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
