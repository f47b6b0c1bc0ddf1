"""One Spark session: `python -m benchmarks.worker SETTINGS JOBS RECORDS` runs the jobs and appends a record for each.

A process of its own, so that cores and memory of one session say nothing of another, and a JVM that dies takes only the
job that killed it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks import session
from benchmarks.calibrate import calibrate
from benchmarks.contestants import contestants
from benchmarks.measure import measure
from benchmarks.processes import keep_to
from benchmarks.settings import Job, Settings
from benchmarks.streams import files_of
from benchmarks.workloads import workloads


def say(text: str) -> None:
    print(f"    {text}", flush=True)


def run(settings: Settings, jobs: list[Job], records: Path) -> None:
    data = Path(settings.data)
    by_name = {workload.name: workload for workload in workloads()}
    # Files first: what is made here shall not disturb what is timed.
    ready = {}
    for job in jobs:
        workload = by_name[job.workload]
        ready[job] = calibrate(workload, job.rows, seed=settings.seed, cache=data / "thresholds")
        files_of(workload.stream, job.rows, root=data, seed=settings.seed, layout=settings.layout, time=settings.time)
    keep_to(jobs[0].cores)
    spark = session.start(
        cores=jobs[0].cores, partitions=settings.partitions, memory=settings.memory, scratch=data / "spark"
    )
    try:
        for job in jobs:
            print(f"  {job.words}", flush=True)
            began = time.perf_counter()
            stream = by_name[job.workload].stream
            folder = files_of(
                stream, job.rows, root=data, seed=settings.seed, layout=settings.layout, time=settings.time
            )
            available = contestants(
                strategies=settings.strategies,
                all_variants=settings.all_variants,
                cores=job.cores,
                time=settings.time,
                timeout_s=settings.timeout_s,
            )
            # Forced strategies are compared wherever Tocsin is.
            chosen = [
                contestant
                for contestant in available
                if not job.contestants or contestant.name.partition(":")[0] in job.contestants
            ]
            record = measure(spark, folder, ready[job], job, settings, chosen, say)
            with records.open("a", encoding="utf-8") as out:
                out.write(json.dumps(record) + "\n")
            say(_summary(record) + f"  ({time.perf_counter() - began:.0f} s)")
    finally:
        spark.stop()


def _summary(record: dict) -> str:
    if record["wrong"]:
        return f"WRONG RESULT: {record['wrong']}"
    own = record["contestants"].get("tocsin", {})
    if not own.get("events_per_s"):
        return f"tocsin: {own.get('status', 'not measured')}"
    compared = ", ".join(f"{ratio:.2f} × {name}" for name, ratio in record["ratios"].items())
    peak = record["memory"].get("workers")
    return (
        f"tocsin: {own['events_per_s'] / 1e6:.2f} M events/s"
        + (f" = {compared}" if compared else "")
        + (f", {peak / 2**20:.0f} MiB in Python workers" if peak is not None else "")
    )


if __name__ == "__main__":
    given_settings, given_jobs, given_records = sys.argv[1:]
    listed = [Job(**{**job, "contestants": tuple(job["contestants"])}) for job in json.loads(given_jobs)]
    run(Settings.from_json(given_settings), listed, Path(given_records))
