"""`python -m benchmarks.acer`: the operators of `tocsin.acer`, literal and fast, next to Spark's own and the planner.

question    literal, fast                          next to
--------    -------------                          -------
pairs       `time_cer`, WS from D to 10 D          the same as a pattern: what the planner chooses, and by aggregates
sums        `aggregate`, ten windows per event     Spark's `window`, which knows sums
distinct    `sort_and_preprocess`                  `dropDuplicates`
changes     `rule_cer`                             `lag` over a window

Times are whole seconds, so that windows that advance by one tick can be had at all. "Limit" is a scan, a shuffle and a
sort of the same columns. All plans of a question give equally many rows, or the benchmark stops.
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

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

import tocsin
from benchmarks import session
from benchmarks.settings import parse_size, size
from benchmarks.streams import Stream, files_of
from tocsin import acer

SECOND = 1_000_000
SPAN = 16 * SECOND  # D
SIZES = (1.0, 1.25, 1.5, 2.0, 4.0, 10.0)  # WS, in D
PATTERN = f"""
    PATTERN SEQ(A a, B b) PARTITION BY key WHERE b.value > a.value
    WITHIN {SPAN} MICROSECONDS RETURN a.value AS low, b.value AS high
"""
Build = Callable[[], DataFrame]


def pairs(events: DataFrame) -> tuple[dict[str, Build], list[str]]:
    """An A, and a greater B less than D later."""

    def rising(state: Any, event: Any) -> Any:
        if event.type == "A":
            return [*(state or []), (event.at, event.value)], []
        begun = [one for one in state or () if event.at - one[0] < SPAN]
        found = [(at, event.at, low, event.value) for at, low in begun if at < event.at and low < event.value]
        return begun, found

    def by_acer(times: float, construction: str) -> Build:
        wide = int(times * SPAN) // SECOND * SECOND
        return lambda: acer.time_cer(
            events.filter("type IN ('A', 'B')").withColumn("at", F.unix_micros("ts")).drop("ts"),
            rising,
            within=SPAN,
            time="at",
            key="key",
            size=wide,
            advance=wide - SPAN + SECOND,
            granularity=SECOND,
            schema="low double, high double",
            construction=construction,
        )

    def by_pattern(strategy: str) -> Build:
        return lambda: tocsin.pattern(PATTERN).match(events, time="ts", type="type", strategy=strategy)

    plans = {"planner's choice": by_pattern("auto"), "strategy aggregate": by_pattern("aggregate")}
    for times in SIZES:
        plans |= {f"{how}, WS = {times:g} D": by_acer(times, how) for how in ("fast", "literal")}
    return plans, ["ts", "type", "key", "value"]


def sums(events: DataFrame) -> tuple[dict[str, Build], list[str]]:
    """The sum of a key's values in windows of 100 seconds, every ten."""

    def by_acer(construction: str) -> Build:
        return lambda: acer.aggregate(
            events.select("ts", "key", "value"),
            key="key",
            advance="10 seconds",
            size="100 seconds",
            update=lambda state, event: (state or 0.0) + event.value,
            output=lambda total: (total,),
            schema="total double",
            construction=construction,
        )

    def by_hand() -> DataFrame:
        windows = F.window("ts", "100 seconds", "10 seconds")
        return events.groupBy("key", windows).agg(F.sum("value").alias("total"))

    return {"fast": by_acer("fast"), "literal": by_acer("literal"), "Spark's window": by_hand}, ["ts", "key", "value"]


def distinct(events: DataFrame) -> tuple[dict[str, Build], list[str]]:
    """One event of each type, key and time."""
    rows = events.select("ts", "type", "key")

    def by_acer(construction: str) -> Build:
        return lambda: acer.sort_and_preprocess(rows, lambda found: found[0], construction=construction)

    plans = {"fast": by_acer("fast"), "literal": by_acer("literal"), "dropDuplicates": rows.dropDuplicates}
    return plans, ["ts", "type", "key"]


def changes(events: DataFrame) -> tuple[dict[str, Build], list[str]]:
    """Events of a key that are of another type than the one before."""
    rows = events.select("ts", "type", "key", "value")

    def changed(last: Any, event: Any) -> Any:
        return event.type, [(event.type,)] if last is not None and last != event.type else []

    def by_acer(construction: str) -> Build:
        return lambda: acer.rule_cer(
            rows,
            changed,
            key="key",
            ties=["value"],
            schema="type string",
            granularity=SECOND,
            watermark_distance="16 seconds",
            construction=construction,
        )

    def by_hand() -> DataFrame:
        before = F.lag("type").over(Window.partitionBy("key").orderBy("ts", "value"))
        return rows.withColumn("before", before).filter("before != type")

    return {"fast": by_acer("fast"), "literal": by_acer("literal"), "lag": by_hand}, ["ts", "type", "key", "value"]


QUESTIONS = {"pairs": pairs, "sums": sums, "distinct": distinct, "changes": changes}


def limit(events: DataFrame, columns: list[str]) -> DataFrame:
    return events.select(*columns).repartition("key").sortWithinPartitions("key", "ts")


def timed(build: Build) -> float:
    began = time.perf_counter()
    build().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def measured(name: str, events: DataFrame, repeat: int) -> list[dict[str, Any]]:
    """All plans of a question take turns, after one that counts their rows."""
    plans, columns = QUESTIONS[name](events)
    rows = {plan: build().count() for plan, build in plans.items()}
    if len(set(rows.values())) != 1:
        sys.exit(f"WRONG RESULT: {name} gives {rows}")
    plans["limit"] = lambda: limit(events, columns)
    times: dict[str, list[float]] = {plan: [] for plan in plans}
    for turn in range(repeat):
        for plan, build in plans.items():
            times[plan].append(timed(build))
            print(f"  {name}, {plan}: {times[plan][-1]:.2f} s ({turn + 1} of {repeat})", flush=True)
    found = {plan: statistics.median(seconds) for plan, seconds in times.items()}
    return [
        {
            "question": name,
            "plan": plan,
            "seconds": seconds,
            "rows": rows.get(plan),
            "to_limit": seconds / found["limit"],
        }
        for plan, seconds in found.items()
    ]


def table(records: list[dict[str, Any]], rows: int) -> str:
    lines = ["| question | plan | seconds | events/s | × limit | results |", "| --- | --- | --- | --- | --- | --- |"]
    for one in records:
        results = "" if one["rows"] is None else f"{one['rows']:,}"
        lines.append(
            f"| {one['question']} | {one['plan']} | {one['seconds']:.2f} | {rows / one['seconds']:,.0f} | "
            f"{one['to_limit']:.1f} | {results} |"
        )
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.acer", description=__doc__)
    made.add_argument("--rows", default="300k", help="number of events (300k)")
    made.add_argument("--repeat", type=int, default=3, help="timed runs (3)")
    made.add_argument("--only", choices=QUESTIONS, nargs="*", help="some of the questions")
    made.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the stream is kept")
    made.add_argument("--out", type=Path, default=Path("build/bench/acer.json"), help="where the result goes")
    given = made.parse_args()
    rows = parse_size(given.rows)
    folder = files_of(Stream("uniform"), rows, root=given.data, seed=1, layout="ordered", time="timestamp")
    spark = session.start(cores=2, partitions=4, memory="4g", scratch=given.data / "spark")
    events = spark.read.parquet(str(folder)).withColumn("ts", F.date_trunc("second", "ts")).cache()
    events.count()
    records = [one for name in given.only or QUESTIONS for one in measured(name, events, given.repeat)]
    result = {"environment": session.environment(rows=rows), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{size(rows)} events\n\n{table(records, rows)}\n\nWritten: {given.out}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
