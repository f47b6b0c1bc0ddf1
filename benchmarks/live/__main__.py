"""`python -m benchmarks.live`: a sequence of three on a live stream, next to chained joins and to a batch.

Every plan reads the same files, so many in each micro-batch, with both state stores, and writes Parquet with a real
checkpoint; all must find the same matches. "batch" is Tocsin over all files at once. The slow joins see fewer
micro-batches, enough for a median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import session
from benchmarks.live.plans import LATENESS, STORES, pattern
from benchmarks.live.runs import Load, result_of, run
from benchmarks.settings import parse_size, size

RATE = "300/s"  # of a type: 200 on average, and 300 in no second


def batch_seconds(spark: SparkSession, folder: Path, window_s: int, repeat: int) -> tuple[float, dict[str, int]]:
    """The median time of a batch over all files, after one that is not counted."""
    found = pattern(window_s).match(spark.read.parquet(str(folder)), time="ts", id="id")
    found = found.select("start", "end", "a", "b", "c")
    times = []
    for _ in range(1 + repeat):
        began = time.perf_counter()
        found.write.format("noop").mode("overwrite").save()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:]), result_of(found)


def bound_of(window_s: int) -> int:
    """The most events that the state may hold, known before anything runs."""
    schema = {name: {"id": "bigint", "ts": "timestamp", "key": "int", "value": "double"} for name in "ABC"}
    report = pattern(window_s).check(schema, dict.fromkeys("ABC", RATE), lateness=LATENESS, streaming=True)
    assert report.sizes is not None and report.sizes.events is not None
    return report.sizes.events


def measure(spark: SparkSession, per_batch: int, given: argparse.Namespace) -> dict[str, Any]:
    """All plans at one size of micro-batch."""
    load = Load(per_batch * given.batches, per_batch, given.window)
    folder = load.folder(given.data)
    batch_s, wanted = batch_seconds(spark, folder, given.window, given.repeat)
    print(f"{size(per_batch)} a batch: batch {load.rows / batch_s / 1e6:.2f} M events/s", flush=True)
    records = []
    for plan in given.plans.split(","):
        for store in STORES:
            record = run(spark, plan, store, load, folder)
            if {name: record[name] for name in wanted} != wanted:
                sys.exit(f"WRONG RESULT: {plan} on {store}: {record['matches']} matches, {wanted['matches']} wanted")
            records.append(record)
            print(f"  {plan} on {store}: {record['events_per_s']:,.0f} events/s", flush=True)
    bound = bound_of(given.window)
    peak = max(one["remembered"] for record in records for one in record["told"] if one)
    if peak > bound:
        sys.exit(f"STATE BEYOND ITS BOUND: {peak} events, {bound} allowed")
    return {
        "per_batch": per_batch,
        "rows": load.rows,
        "window_s": given.window,
        "batch_events_per_s": load.rows / batch_s,
        "bound": bound,
        "peak": peak,
        "runs": records,
    }


def table(records: list[dict[str, Any]]) -> str:
    lines = [
        "| a micro-batch | plan | store | events/s | median ms | p99 ms | ÷ joins | ÷ batch | CPU s per 1M | "
        "state MB | checkpoint MB |",
        "| --- " * 11 + "|",
    ]
    for record in records:
        joins = {one["store"]: one["events_per_s"] for one in record["runs"] if one["plan"] == "joins"}
        for one in record["runs"]:
            of_joins = f"{one['events_per_s'] / joins[one['store']]:.1f}" if one["store"] in joins else ""
            lines.append(
                f"| {size(record['per_batch'])} | {one['plan']} | {one['store']} | {one['events_per_s']:,.0f} | "
                f"{one['median_ms']:,.0f} | {one['p99_ms']:,.0f} | {of_joins} | "
                f"{one['events_per_s'] / record['batch_events_per_s']:.2f} | {one['cpu_s_per_million']:.1f} | "
                f"{one['state_mb']:.1f} | {one['checkpoint_mb']:.1f} |"
            )
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__)
    made.add_argument("--per-batch", default="500k,1M", help="events in a micro-batch (500k,1M)")
    made.add_argument("--batches", type=int, default=9, help="micro-batches of a run, of which two thirds count (9)")
    made.add_argument("--plans", default="tocsin,joins", help="which plans run (tocsin,joins)")
    made.add_argument("--window", type=int, default=10, help="seconds of the window (10)")
    made.add_argument("--repeat", type=int, default=3, help="timed runs of the batch (3)")
    made.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the streams are kept")
    made.add_argument("--out", type=Path, default=Path("build/bench/live.json"), help="where the result goes")
    given = made.parse_args()
    spark: SparkSession = session.start(cores=2, partitions=2, memory="6g", scratch=given.data / "spark")
    records = [measure(spark, parse_size(one), given) for one in given.per_batch.split(",")]
    result = {"environment": session.environment(window_s=given.window), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nWindow {given.window} s; state at most {records[0]['peak']:,} events, bound {records[0]['bound']:,}\n")
    print(f"{table(records)}\n\nWritten: {given.out}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
