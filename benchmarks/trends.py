"""`python -m benchmarks.trends`: aggregates over all matches, counted, next to enumerating them and to Spark's limit.

SEQ(A a, B+ b, C c) over the uniform stream, by how many events of B a window holds: every further one doubles the
matches. "Enumerated" is the same query with its matches built and added up (`strategy="kernel"`). "Rising" adds a
condition between neighbours, `b[i].value > b[i-1].value`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tocsin
from benchmarks import session
from benchmarks.settings import parse_size, size
from benchmarks.streams import MILLISECOND, Stream, files_of

ASKED = "DIGITS(COUNT(*)) AS n, DIGITS(COUNT(b)) AS events"
# Events of B in a window. One event in five is a B, one comes every millisecond.
WINDOWS = (2, 6, 10, 14, 100, 400, 1000)
RISING_WINDOWS = (2, 10, 100)
TOO_LONG_S = 60.0


def query(events: int | None, *, asked: str = ASKED, rising: bool = False) -> str:
    """By events in a window of the whole stream; None: no window, and a key."""
    pattern = f"PATTERN SEQ(A a, B+ b, C c){' WHERE b[i].value > b[i-1].value' if rising else ''}"
    if events is None:
        return f"{pattern} PARTITION BY key RETURN {asked}"
    return f"{pattern} WITHIN {5 * events * MILLISECOND} MICROSECONDS RETURN {asked}"


def limit(frame: DataFrame, *, keyed: bool, rising: bool = False) -> DataFrame:
    """What any plan with one shuffle does: scan, filter, shuffle and sort of the columns a count needs."""
    rows = frame.filter(F.col("type").isin("A", "B", "C")).select("ts", "type", "key", *(["value"] if rising else []))
    by = F.col("key") if keyed else F.expr("div(unix_micros(ts), 10000000)")
    return rows.repartition(by).sortWithinPartitions(*(["key", "ts"] if keyed else ["ts"]))


def _run(build: Callable[[], DataFrame]) -> float:
    """Seconds to plan and to run, into a sink that keeps nothing."""
    began = time.perf_counter()
    build().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def measure(
    frame: DataFrame, events: int | None, repeat: int, *, enumerate_too: bool = False, rising: bool = False
) -> dict[str, Any]:
    """Counting and the limit take turns, after a round that is not timed, so that a busy machine is busy for both."""
    text = query(events, rising=rising)

    def counted() -> DataFrame:
        return tocsin.pattern(text).match(frame, time="ts", type="type")

    def limited() -> DataFrame:
        return limit(frame, keyed=events is None, rising=rising)

    result = counted().toPandas()
    times = [(_run(counted), _run(limited)) for _ in range(1 + repeat)][1:]
    record = {
        "events_in_window": events,
        "rising": rising,
        "digits": len(result["n"][0]),
        "counted_s": statistics.median(one for one, _ in times),
        "limit_s": statistics.median(other for _, other in times),
        "enumerated_s": None,
    }
    if enumerate_too:
        text = query(events, asked="COUNT(*) AS n, COUNT(b) AS events")
        pattern = tocsin.pattern(text)
        began = time.perf_counter()
        same = pattern.match(frame, time="ts", type="type", strategy="kernel").toPandas()
        record["enumerated_s"] = time.perf_counter() - began
        if str(same["n"][0]) != result["n"][0] or str(same["events"][0]) != result["events"][0]:
            sys.exit(f"WRONG RESULT: {result.to_dict()} counted, {same.to_dict()} enumerated")
    return record


def table(records: list[dict[str, Any]], rows: int) -> str:
    lines = [
        "| B events in a window | digits of COUNT(*) | M events/s | ÷ limit | enumerated, s | counted, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in records:
        window = "no window, 1,000 keys" if one["events_in_window"] is None else str(one["events_in_window"])
        window += ", rising" if one["rising"] else ""
        listed = "–" if one["enumerated_s"] is None else f"{one['enumerated_s']:.1f}"
        speed, ratio = rows / one["counted_s"] / 1e6, one["limit_s"] / one["counted_s"]
        lines.append(f"| {window} | {one['digits']} | {speed:.2f} | {ratio:.2f} | {listed} | {one['counted_s']:.2f} |")
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.trends", description=__doc__)
    made.add_argument("--rows", default="1M", help="number of events (1M)")
    made.add_argument("--repeat", type=int, default=3, help="timed runs (3)")
    made.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the stream is kept")
    made.add_argument("--out", type=Path, default=Path("build/bench/trends.json"), help="where the result goes")
    given = made.parse_args()
    rows = parse_size(given.rows)
    folder = files_of(Stream("uniform"), rows, root=given.data, seed=1, layout="ordered", time="timestamp")
    spark = session.start(cores=2, partitions=8, memory="6g", scratch=given.data / "spark")
    frame = spark.read.parquet(str(folder))
    records: list[dict[str, Any]] = []
    is_short = True
    for events in (*WINDOWS, None):
        record = measure(frame, events, given.repeat, enumerate_too=is_short and events is not None)
        is_short = is_short and (record["enumerated_s"] or 0.0) * 16 < TOO_LONG_S
        records.append(record)
        print(f"  {events}: {record['counted_s']:.2f} s, {record['digits']} digits", flush=True)
    for events in (*RISING_WINDOWS, None):
        records.append(measure(frame, events, given.repeat, rising=True))
        print(f"  {events}, rising: {records[-1]['counted_s']:.2f} s, {records[-1]['digits']} digits", flush=True)
    result = {"environment": session.environment(rows=rows), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{size(rows)} events\n\n{table(records, rows)}\n\nWritten: {given.out}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
