"""`python -m benchmarks.acel`: formulas as automata, next to the same with aggregates, to kernels, to Spark's limit.

Every formula runs over the uniform stream, by key: as it stands; inside an AGG whose values are returned; and where
SASE+ can say the same, as that, with the plan that Tocsin chooses for it. Runs take turns, so that a busy machine is
busy for all of them. "Limit" is a scan, filter, shuffle and sort of the same columns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tocsin
from benchmarks import session
from benchmarks.settings import parse_size, size
from benchmarks.streams import Stream, files_of

CLAUSES = "PARTITION BY key WITHIN {window} SECONDS"
BELOW = "FILTER a[value < {share}] AND b[value < {share}] AND c[value < {share}]"


@dataclass(frozen=True)
class Formula:
    """A formula, what is returned of its matches, what an AGG around it adds, and the same in SASE+ if it can."""

    name: str
    text: str
    returned: str
    aggregates: str
    window: int
    sase: str | None = None

    def plain(self) -> str:
        return f"{self.text} {CLAUSES.format(window=self.window)} RETURN {self.returned}"

    def aggregated(self) -> str:
        names = [part.split("<-")[0].strip() for part in self.aggregates.split(",")]
        added = ", ".join(f"y.{name}" for name in names)
        return (
            f"AGG y[{self.aggregates}]({self.text}) {CLAUSES.format(window=self.window)} "
            f"RETURN {self.returned}, {added}"
        )


FORMULAS = (
    Formula(
        "A ; B ; C, sparse",
        f"(A AS a ; B AS b ; C AS c) {BELOW.format(share=0.2)}",
        "a.id AS a, b.id AS b, c.id AS c",
        "low <- min(b.value), s <- sum(c.value)",
        10,
        "PATTERN SEQ(A a, B b, C c) WHERE a.value < 0.2 AND b.value < 0.2 AND c.value < 0.2",
    ),
    Formula(
        "A ; B+ ; C, sparse",
        f"(A AS a ; (B AS b)+ ; C AS c) {BELOW.format(share=0.3)}",
        "a.id AS a, c.id AS c, COUNT(b) AS n",
        "s <- sum(b.value), high <- max(b.value)",
        20,
        "PATTERN SEQ(A a, B+ b, C c) WHERE a.value < 0.3 AND b.value < 0.3 AND c.value < 0.3",
    ),
    Formula(
        "A ; B+ ; C, dense",
        "(A AS a ; (B AS b)+ ; C AS c)",
        "a.id AS a, c.id AS c, COUNT(b) AS n",
        "s <- sum(b.value), n2 <- count(b)",
        20,
        "PATTERN SEQ(A a, B+ b, C c)",
    ),
    Formula(
        "A : B@+ : C",
        "(A AS a : (B AS b)@+ : C AS c)",
        "a.id AS a, c.id AS c, COUNT(b) AS n",
        "s <- sum(b.value), n2 <- count(b)",
        100,
    ),
    Formula(
        "B@+ increasing",
        "(B AS b)@+ FILTER b[increasing(value)]",
        "COUNT(b) AS n",
        "low <- min(b.value), high <- max(b.value)",
        100,
    ),
)


def limit(frame: DataFrame) -> DataFrame:
    """What any plan with one shuffle does with the columns that these queries need."""
    rows = frame.filter(F.col("type").isin("A", "B", "C")).select("id", "ts", "type", "key", "value")
    return rows.repartition("key").sortWithinPartitions("key", "ts")


def frames(formula: Formula, frame: DataFrame) -> dict[str, DataFrame]:
    """What is compared."""

    def matched(text: str, language: str) -> DataFrame:
        found: DataFrame = tocsin.pattern(text, language=language).match(frame, time="ts", type="type", id="id")
        return found

    found = {"plain": matched(formula.plain(), "acel"), "agg": matched(formula.aggregated(), "acel")}
    if formula.sase is not None:
        clauses = CLAUSES.format(window=formula.window)
        found["sase"] = matched(f"{formula.sase} {clauses} RETURN {formula.returned}", "sase")
    return {**found, "limit": limit(frame)}


def measure(formula: Formula, frame: DataFrame, repeat: int) -> dict[str, Any]:
    """Medians of runs that take turns, after one round that is not counted, in which all must find as much."""
    compared = frames(formula, frame)
    counts = {name: one.count() for name, one in compared.items() if name != "limit"}
    if len(set(counts.values())) > 1:
        sys.exit(f"WRONG RESULT: {formula.name}: {counts}")
    times: dict[str, list[float]] = {name: [] for name in compared}
    for turn in range(1 + repeat):
        for name, one in compared.items():
            began = time.perf_counter()
            one.write.format("noop").mode("overwrite").save()
            if turn:
                times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {"formula": formula.name, "matches": counts["plain"], "seconds": medians, "times": times}


def table(records: list[dict[str, Any]], rows: int) -> str:
    lines = [
        "| formula | matches | M events/s | ÷ limit | ÷ SASE+ | with AGG, ÷ without |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in records:
        found = one["seconds"]
        sase = f"{found['sase'] / found['plain']:.2f}" if "sase" in found else "–"
        lines.append(
            f"| `{one['formula']}` | {one['matches']:,} | {rows / found['plain'] / 1e6:.2f} | "
            f"{found['limit'] / found['plain']:.2f} | {sase} | {found['agg'] / found['plain']:.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.acel", description=__doc__)
    made.add_argument("--rows", default="1M", help="number of events (1M)")
    made.add_argument("--repeat", type=int, default=5, help="timed runs (5)")
    made.add_argument("--data", type=Path, default=Path("build/bench-data"), help="where the stream is kept")
    made.add_argument("--out", type=Path, default=Path("build/bench/acel.json"), help="where the result goes")
    given = made.parse_args()
    rows = parse_size(given.rows)
    folder = files_of(Stream("uniform"), rows, root=given.data, seed=1, layout="ordered", time="timestamp")
    spark: SparkSession = session.start(cores=2, partitions=8, memory="6g", scratch=given.data / "spark")
    frame = spark.read.parquet(str(folder))
    records = []
    for formula in FORMULAS:
        records.append(measure(formula, frame, given.repeat))
        print(f"  {formula.name}: {records[-1]['seconds']}", flush=True)
    result = {"environment": session.environment(rows=rows), "records": records}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{size(rows)} events\n\n{table(records, rows)}\n\nWritten: {given.out}")
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
