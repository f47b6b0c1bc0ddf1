"""Runs the contestants of one job on a Spark session, into a sink that keeps nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.calibrate import Ready
from benchmarks.processes import Peak, cpu_seconds
from benchmarks.race import Contestant, Entry, Race, Say, StoppedError, matches_of, ratios
from benchmarks.settings import MEMORY, Job, Settings
from benchmarks.shapes import Shape, text_of


def measure(
    spark: SparkSession,
    folder: Path,
    ready: Ready,
    job: Job,
    settings: Settings,
    all_of: list[Contestant],
    say: Say,
) -> dict[str, Any]:
    """The record of one job on the files of a folder."""
    frame = spark.read.parquet(str(folder))
    entries = [Entry(contestant) for contestant in all_of]
    for entry in entries:
        if entry.contestant.name == "naive" and ready.pairs > settings.most_pairs:
            entry.give_up("skipped", f"about {ready.pairs:.0e} pairs to look at")
    runner = _Runner(spark, settings.timeout_s)
    memory: dict[str, Any] = {}

    def events(contestant: Contestant) -> Any:
        return folder if contestant.reads_files else frame

    with Peak() if job.purpose == MEMORY else _Nothing() as peak:
        wrong = Race(runner, ready, events, settings.warmup, settings.repeat).run(entries, say)
    if isinstance(peak, Peak):
        memory = {"workers": peak.workers, "worker": peak.worker, "jvm": peak.jvm, "samples": peak.samples}
    contestants = {entry.contestant.name: entry.to_dict(ready.rows) for entry in entries}
    matches = matches_of(entries, ready.matches)
    return {
        "workload": job.workload,
        "title": ready.workload.title,
        "purpose": job.purpose,
        "rows": ready.rows,
        "cores": job.cores,
        "sweep": ready.workload.sweep,
        "at": ready.workload.at,
        "tags": sorted(ready.workload.tags),
        "query": text_of(ready.shape),
        "wanted_selectivity": ready.workload.selectivity,
        "matches": matches,
        "selectivity": None if matches is None else matches / ready.rows,
        "wrong": wrong,
        "contestants": contestants,
        "ratios": ratios(contestants),
        "memory": memory,
    }


class _Runner:
    def __init__(self, spark: SparkSession, timeout_s: float) -> None:
        self.spark = spark
        self.context = spark.sparkContext
        self.timeout_s = timeout_s
        self.jobs = 0

    def timed(self, build: Callable[[], DataFrame | pa.Table]) -> tuple[float, float]:
        """Seconds of building a plan and running it into a sink that keeps nothing; a table has been run already."""

        def action() -> None:
            found = build()
            if not isinstance(found, pa.Table):
                found.write.format("noop").mode("overwrite").save()

        cpu, began = _cpu_seconds(), time.perf_counter()
        self._run(action)
        wall = time.perf_counter() - began
        return wall, _cpu_seconds() - cpu

    def checked(self, build: Callable[[], DataFrame | pa.Table], ready: Ready) -> tuple[int, int]:
        """How many matches there are, and the sum of the hashes of their events' ids."""

        def action() -> tuple[int, int]:
            found = build()
            frame = self.spark.createDataFrame(found) if isinstance(found, pa.Table) else found
            return checksum(frame, ready.shape)

        return self._run(action)

    def _run(self, action: Callable[[], Any]) -> Any:
        self.jobs += 1
        group, stopped = f"benchmark-{self.jobs}", threading.Event()

        def stop() -> None:
            stopped.set()
            self.context.cancelJobGroup(group)

        self.context.setJobGroup(group, group, interruptOnCancel=True)
        timer = threading.Timer(self.timeout_s, stop)
        timer.start()
        try:
            return action()
        except Exception as error:
            if stopped.is_set():
                raise StoppedError(f"after {self.timeout_s:g} s") from error
            raise
        finally:
            timer.cancel()


def _cpu_seconds() -> float:
    """Those of this process, in which DuckDB and Polars run, and of all below it."""
    return time.process_time() + cpu_seconds()


def checksum(found: DataFrame, shape: Shape) -> tuple[int, int]:
    ids = [name for name in shape.columns if name not in ("value", "key")]
    # Sums stay far below 2^63, which ANSI mode would refuse to pass.
    hashed = F.pmod(F.xxhash64(*ids), F.lit(1 << 31))
    row = found.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).first()
    assert row is not None
    return int(row[0]), int(row[1])


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None
