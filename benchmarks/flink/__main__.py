"""`python -m benchmarks.flink`: Flink's interval join and MATCH_RECOGNIZE next to Tocsin and DuckDB, on CSV files.

The jars of PyPI's apache-flink read CSV and JSON, but not Parquet, so everybody reads the same two CSV files. "join"
finds all matches. "next" is `SEMANTICS next`, of which MATCH_RECOGNIZE finds the same; it cannot find all matches.
"scan" only reads and filters, on Flink. Flink's seconds are those of the job by its own account, without planning and
without the second or so that its local cluster takes to start; all others are wall-clock seconds, planning included.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from pyspark.sql import DataFrame, SparkSession

import tocsin
from benchmarks import report, session
from benchmarks.calibrate import Ready, calibrate
from benchmarks.flink.process import VERSION, Flink, Insert, python_of, read_csv
from benchmarks.flink.sql import interval_join, match_recognize, scan
from benchmarks.local import duck
from benchmarks.local.measure import checksum
from benchmarks.processes import keep_to
from benchmarks.race import Build, Contestant, Entry, Race, matches_of, problems, ratios
from benchmarks.settings import parse_size, size
from benchmarks.shapes import text_of
from benchmarks.streams import SECOND, generate, table_of
from benchmarks.workloads import UNIFORM, Workload, sequence, workloads

BEGIN, END = "<!-- flink: written by `python -m benchmarks.flink --update-docs` -->", "<!-- end of flink -->"
SCHEMA = "id bigint, ts bigint, type string, key int, value double"
COLUMNS = {"id": pa.int64(), "ts": pa.int64(), "type": pa.string(), "key": pa.int32(), "value": pa.float64()}
CORES = 2
HEADS = {
    "flink": "Flink",
    "scan": "Flink, scan",
    "tocsin": "`tocsin`, Spark",
    "local": "`tocsin`, local",
    "duckdb": "DuckDB",
}


def asked_of() -> tuple[Workload, ...]:
    (unkeyed,) = (workload for workload in workloads() if workload.name == "seq2-27%")
    keyed = sequence(*"AB", window_us=10 * SECOND, keyed=True)
    return (unkeyed, Workload("seq2-keyed", "keyed SEQ(2), filters keep 20 % of each", UNIFORM, keyed, share=0.2))


class _Runner:
    def __init__(self, flink: Flink | None) -> None:
        self.flink = flink

    def timed(self, build: Callable[[], Any]) -> tuple[float, float]:
        began = time.perf_counter()
        found = build()
        if isinstance(found, Insert):
            assert self.flink is not None
            return self.flink.seconds(found), 0.0
        if isinstance(found, DataFrame):
            found.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began, 0.0

    def checked(self, build: Callable[[], Any], ready: Ready) -> tuple[int, int]:
        found = build()
        if isinstance(found, Insert):
            assert self.flink is not None
            found = self.flink.rows(found)
        table = found.toArrow() if isinstance(found, DataFrame) else found
        return table.num_rows, checksum(table, ready.shape)


def contestants(how: str, missing: str) -> list[Contestant]:
    """Who finds all matches ("join") or the next ones ("next")."""

    def text(ready: Ready) -> str:
        policy = "SEMANTICS next\n" if how == "next" else ""
        return text_of(ready.shape).replace("RETURN", f"{policy}RETURN")

    def on_spark(frame: DataFrame, ready: Ready) -> DataFrame:
        return tocsin.pattern(text(ready)).match(frame, time="ts", id="id", time_unit="us").drop("match_id")

    def locally(folder: Path, ready: Ready) -> pa.Table:
        events = read_csv(folder, COLUMNS)
        return tocsin.pattern(text(ready)).match(events, time="ts", id="id", time_unit="us", engine="local")

    def by_duckdb(plan: duck.Plan) -> Build:
        columns = dict(column.split() for column in SCHEMA.split(", "))

        def build(folder: Path, ready: Ready) -> pa.Table:
            source = f"read_csv('{folder}/*', header = false, columns = {columns})"
            return duck.answer(plan(ready.shape), source, threads=CORES, time="bigint")

        return build

    select = interval_join if how == "join" else match_recognize
    found = [
        Contestant("flink", {"": lambda _, ready: Insert(select(ready.shape))}, missing=missing),
        Contestant("scan", {"": lambda _, ready: Insert(scan(ready.shape))}, finds_matches=False, missing=missing),
        Contestant("tocsin", {"": on_spark}),
        Contestant("local", {"": locally}),
    ]
    plans = {name: by_duckdb(plan) for name, plan in duck.PLANS.items()}
    return [*found, Contestant("duckdb", plans)] if how == "join" else found


def measure(
    spark: SparkSession, workload: Workload, rows: int, given: argparse.Namespace, python: Path | str
) -> Iterator[dict[str, Any]]:
    """The records of one workload; `python` is a text where it says why Flink is missing."""
    ready, folder = calibrate(workload, rows, cache=given.data / "thresholds"), files(workload, rows, given.data)
    frame = spark.read.schema(SCHEMA).csv(str(folder))

    def events(contestant: Contestant) -> Any:
        return frame if contestant.name == "tocsin" else folder

    with contextlib.ExitStack() as stack:
        flink, missing = None, python if isinstance(python, str) else ""
        if isinstance(python, Path):
            scratch = given.data.resolve() / "flink"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            flink = stack.enter_context(contextlib.closing(Flink(python, ready.shape, folder, scratch, CORES)))
        for how in ("join", "next"):
            print(f"{workload.name}, {size(rows)} events, {how}", flush=True)
            entries = [Entry(one) for one in contestants(how, missing)]
            # Matches have been counted for "join" alone.
            asked = ready if how == "join" else replace(ready, matches=None)
            race = Race(_Runner(flink), asked, events, given.warmup, given.repeat)
            wrong = race.run(entries, lambda words: print(f"  {words}", flush=True))
            found = {entry.contestant.name: entry.to_dict(rows) for entry in entries}
            yield {
                "workload": workload.name,
                "title": workload.title,
                "how": how,
                "rows": rows,
                "wrong": wrong,
                "matches": matches_of(entries, asked.matches),
                "contestants": found,
                "ratios": ratios(found),
            }


def files(workload: Workload, rows: int, data: Path) -> Path:
    """A folder with two CSV files, one for each core; either is in order of time, and Flink reads them side by side."""
    folder = data.resolve() / f"{workload.stream.name_at(rows, 1)}-csv"
    if not folder.exists():
        table = table_of(generate(workload.stream, rows, 1), time="bigint")
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for number in range(CORES):
            part = table.take(np.arange(number, rows, CORES))
            csv.write_csv(part, unfinished / f"{number}.csv", csv.WriteOptions(include_header=False))
        unfinished.rename(folder)
    return folder


def markdown(result: dict[str, Any]) -> str:
    heads = ("workload", "matches wanted", "events", "matches", *(f"{words}, s" for words in HEADS.values()))
    rows = []
    for record in result["records"]:
        wanted = {"join": "all", "next": "`SEMANTICS next`"}[record["how"]]
        found = [record["contestants"].get(name) for name in HEADS]
        cells = ("–" if one is None else one["status"] if one["median_s"] is None else _cell(one) for one in found)
        title = f"`{record['workload']}` {record['title']}"
        rows.append((title, wanted, size(record["rows"]), f"{record['matches']:,}", *cells))
    facts = result["environment"]
    words = f"Medians of {facts['repeat']} runs in turns, {CORES} cores for each; Flink {VERSION}."
    return f"{report.machine(facts)} {words}\n\n{report.table(heads, rows)}\n"


def _cell(found: dict[str, Any]) -> str:
    return f"{found['median_s']:.3g}" + (f" ({found['variant']})" if found["variant"] else "")


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.flink", description=__doc__)
    add = made.add_argument
    add("--rows", default="1M,10M", help="numbers of events (1M,10M)")
    add("--repeat", type=int, default=3, help="timed runs (3)")
    add("--warmup", type=int, default=1, help="rounds that are not timed (1)")
    add("--home", type=Path, default=Path("build/flink"), help="the environment of apache-flink (build/flink)")
    add("--data", type=Path, default=Path("build/bench-data"), help="where the streams are kept (build/bench-data)")
    add("--out", type=Path, default=Path("build/bench/flink.json"), help="where the result goes")
    add("--update-docs", type=Path, metavar="FILE", help="write an earlier result into docs/benchmarks.md and stop")
    given = made.parse_args(arguments)
    if given.update_docs:
        known = json.loads(given.update_docs.read_text(encoding="utf-8"))
        report.put_between(BEGIN, END, markdown(known), session.ROOT / "docs" / "benchmarks.md")
        return 0
    python = python_of(given.home)
    if isinstance(python, str):
        print(f"Flink is left out: {python}", file=sys.stderr)
    keep_to(CORES)
    spark = session.start(cores=CORES, partitions=8, memory="6g", scratch=given.data / "spark")
    result: dict[str, Any] = {"environment": session.environment(repeat=given.repeat), "records": []}
    for rows in map(parse_size, given.rows.split(",")):
        for workload in asked_of():
            result["records"] += measure(spark, workload, rows, given, python)
    spark.stop()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\n{markdown(result)}\nWritten: {given.out}")
    found = problems(result["records"], "workload", "how")
    for words in found:
        print(words, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
