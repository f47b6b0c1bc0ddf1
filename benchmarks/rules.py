"""`python -m benchmarks.rules`: a program of eight rules in one plan, next to the same rules one by one.

Six rules begin alike (`a, b`), two of them with one event more (`a, b, c`); two more begin with `c, d`. Of every rule
all columns of all events are asked for. "One by one" is the sum of eight jobs, "limit" a scan, filter, shuffle and sort
of the same columns, once. Runs take turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tocsin
from benchmarks import session
from benchmarks.settings import parse_size, size
from benchmarks.streams import Stream, files_of

TYPES = "ABCDE"
TEMPLATES = "\n".join(f"template {name} {{ id : Long, key : Integer, value : Double }}" for name in TYPES)
BEGIN = "a : A { value < 0.5 } b : B { key = a.key, value > a.value }"
THEN = {
    "ThenC": ("c : C { key = a.key, value > b.value }", "c in b [0 s, 10 s]"),
    "ThenD": ("d : D { key = a.key, value > b.value }", "d in b [0 s, 10 s]"),
    "ThenE": ("e : E { key = a.key, value > b.value }", "e in b [0 s, 10 s]"),
    "ThenCD": ("c : C { key = a.key, value > b.value } d : D { key = a.key }", "c in b [0 s, 10 s] d in c [0 s, 5 s]"),
    "ThenCE": ("c : C { key = a.key, value > b.value } e : E { key = a.key }", "c in b [0 s, 10 s] e in c [0 s, 5 s]"),
    "NoC": ("no c : C { key = a.key }", "no c in b [0 s, 10 s]"),
}
RULES = {
    **{name: f"where {BEGIN} {part} when b in a [0 s, 10 s] {distance}" for name, (part, distance) in THEN.items()},
    "Other": "where c : C { value < 0.5 } d : D { key = c.key, value > c.value } when d in c [0 s, 10 s]",
    "OtherNoE": "where c : C { value < 0.5 } d : D { key = c.key, value > c.value } no e : E { key = c.key } "
    "when d in c [0 s, 10 s] no e in d [0 s, 10 s]",
}
PROGRAM = TEMPLATES + "\n" + "\n".join(f"rule {name} {text}" for name, text in RULES.items())


def limit(frame: DataFrame) -> DataFrame:
    """What any plan with one shuffle does with the columns that these rules need."""
    rows = frame.filter(F.col("type").isin(*TYPES)).select("id", "ts", "type", "key", "value")
    return rows.repartition("key").sortWithinPartitions("key", "ts")


def seconds(frame: DataFrame) -> float:
    began = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def measure(frame: DataFrame, repeat: int) -> dict[str, Any]:
    """Medians of runs that take turns, after one round that is not counted, in which both must find as much."""
    program = tocsin.rules(PROGRAM)
    together = program.match(frame, time="ts", id="id")
    alone = {name: program.matches(name, frame, time="ts", id="id") for name in RULES}
    counts = {row["rule"]: row["count"] for row in together.groupBy("rule").count().collect()}
    wanted = {name: one.count() for name, one in alone.items()}
    if counts != {name: count for name, count in wanted.items() if count}:
        sys.exit(f"WRONG RESULT: {counts} {wanted}")
    times: dict[str, list[float]] = {"together": [], "one by one": [], "limit": []}
    for turn in range(1 + repeat):
        found = {
            "together": seconds(together),
            "one by one": sum(map(seconds, alone.values())),
            "limit": seconds(limit(frame)),
        }
        if turn:
            for name, taken in found.items():
                times[name].append(taken)
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {"matches": counts, "seconds": medians, "times": times}


def table(record: dict[str, Any], rows: int) -> str:
    found = record["seconds"]
    lines = [
        "| plan | seconds | M events/s | ÷ limit | ÷ one by one |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {found[name]:.1f} | {rows / found[name] / 1e6:.2f} | {found['limit'] / found[name]:.2f} | "
        f"{found['one by one'] / found[name]:.1f} |"
        for name in ("together", "one by one", "limit")
    ]
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    made.add_argument("--rows", default="1M", help="number of events (1M)")
    made.add_argument("--repeat", type=int, default=5, help="timed runs (5)")
    made.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the stream is kept")
    made.add_argument("--out", type=Path, default=Path("build/bench/rules.json"), help="where the result goes")
    given = made.parse_args()
    rows = parse_size(given.rows)
    folder = files_of(Stream("uniform"), rows, root=given.data, seed=1, layout="ordered", time="timestamp")
    spark: SparkSession = session.start(cores=2, partitions=8, memory="6g", scratch=given.data / "spark")
    record = measure(spark.read.parquet(str(folder)), given.repeat)
    result = {"environment": session.environment(rows=rows), "records": [record]}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    matches = sum(record["matches"].values())
    print(f"\n{size(rows)} events, {matches:,} matches\n\n{table(record, rows)}\n\nWritten: {given.out}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
