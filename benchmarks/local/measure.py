"""Measures one question without Spark: seconds in turns, and the memory of each contestant in a process of its own.

`python -m benchmarks.local.measure JOB` is such a process: it prints what one contestant's run needed.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import session
from benchmarks.calibrate import Ready, calibrate
from benchmarks.local.contestants import Events, columns_of, contestants, glob_of, read
from benchmarks.local.questions import Question, questions
from benchmarks.processes import highest_rss, keep_to, lower_highest_rss, rss
from benchmarks.race import Contestant, Entry, Race, Say, limited, matches_of, ratios
from benchmarks.shapes import Shape
from benchmarks.streams import files_of

FORMS = ("arrow", "parquet")
# The first run of a contestant, over these, makes it load and compile what it needs; its memory is not counted.
FIRST_ROWS = 100_000
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Job:
    """A question at one size, with the events in one form."""

    question: str
    rows: int
    form: str
    cores: int = 2
    seed: int = 1
    repeat: int = 5
    warmup: int = 1
    timeout_s: float = 120.0
    data: str = "build/bench-data"
    only: tuple[str, ...] = ()  # contestants; none: all

    @property
    def asked(self) -> Question:
        return next(question for question in questions() if question.name == self.question)

    @property
    def folder(self) -> Path:
        """The Parquet files of the stream, which are made when they are not there yet."""
        return files_of(self.asked.workload.stream, self.rows, root=Path(self.data), seed=self.seed)

    def ready(self) -> Ready:
        return calibrate(self.asked.workload, self.rows, seed=self.seed, cache=Path(self.data) / "thresholds")

    def events(self) -> Events:
        """A glob, or a table in chunks as large as row groups, as a reader gives them."""
        files = glob_of(self.folder)
        return files if self.form == "parquet" else read(files)

    def chosen(self) -> list[Contestant]:
        known = contestants(self.asked, self.form, cores=self.cores, timeout_s=self.timeout_s)
        return [one for one in known if not self.only or one.name in self.only]


def measure(job: Job, say: Say, *, with_memory: bool = True) -> dict[str, Any]:
    """The record of one job."""
    question, ready = job.asked, job.ready()
    entries = [Entry(contestant) for contestant in job.chosen()]
    wrong = _seconds(job, entries, say)
    found = {entry.contestant.name: entry.to_dict(job.rows) for entry in entries}
    for name, one in found.items():
        one["memory"] = memory_of(job, name, one["variant"]) if with_memory and one["median_s"] else {}
    return {
        "question": question.name,
        "title": question.workload.title,
        "language": question.language,
        "query": question.text(ready.shape),
        "form": job.form,
        "rows": job.rows,
        "cores": job.cores,
        "input_bytes": read(glob_of(job.folder), columns_of(ready.shape, counts=question.is_count)).nbytes,
        "matches": matches_of(entries, ready.matches),
        "wrong": wrong,
        "contestants": found,
        "ratios": ratios(found),
    }


def _seconds(job: Job, entries: Sequence[Entry], say: Say) -> str | None:
    """Run all in turns; what differs between their results, or None."""
    ready, events = job.ready(), job.events()
    return Race(_Runner(job.asked, job.timeout_s), ready, lambda _: events, job.warmup, job.repeat).run(entries, say)


class _Runner:
    """Runs what builds a table in this process."""

    def __init__(self, question: Question, timeout_s: float) -> None:
        self.question = question
        self.timeout_s = timeout_s

    def timed(self, build: Callable[[], pa.Table]) -> tuple[float, float]:
        gc.collect()
        cpu, began = time.process_time(), time.perf_counter()
        with limited(self.timeout_s):
            build()
        return time.perf_counter() - began, time.process_time() - cpu

    def checked(self, build: Callable[[], pa.Table], ready: Ready) -> tuple[int, int]:
        with limited(self.timeout_s):
            found = build()
        if self.question.is_count:
            (number,) = found.column("n").to_pylist()
            return int(number), 0
        return found.num_rows, checksum(found, ready.shape)


def checksum(found: pa.Table, shape: Shape) -> int:
    """The sum of a hash of each match's ids, so that the order of matches does not count."""
    hashes = np.zeros(found.num_rows, dtype=np.uint64)
    for step in shape.positives:
        name = f"{step.variable}_id"
        # A rule returns whole events.
        ids = found[name] if name in found.column_names else pc.struct_field(found[step.variable], "id")
        hashes = (hashes ^ ids.to_numpy().astype(np.uint64)) * MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    return int(hashes.sum(dtype=np.uint64))


def memory_of(job: Job, contestant: str, variant: str) -> dict[str, int]:
    """The memory of one contestant, run in a process of its own; empty when it dies."""
    path = os.pathsep.join([str(session.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "benchmarks.local.measure", json.dumps(asdict(job)), contestant, variant]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    return {} if ended.returncode else json.loads(ended.stdout.splitlines()[-1])


def _own_memory(job: Job, contestant: str, variant: str) -> dict[str, int]:
    keep_to(job.cores)
    ready, events = job.ready(), job.events()
    (build,) = (one.variants[variant] for one in job.chosen() if one.name == contestant)
    build(_first(job, events), ready)
    gc.collect()
    pa.default_memory_pool().release_unused()
    lower_highest_rss()
    before = rss()
    found = build(events, ready)
    return {"before": before, "peak": highest_rss(), "result": found.nbytes}


def _first(job: Job, events: Events) -> Events:
    if isinstance(events, pa.Table):
        return events.slice(0, FIRST_ROWS)
    return glob_of(files_of(job.asked.workload.stream, FIRST_ROWS, root=Path(job.data), seed=job.seed))


def main(arguments: Sequence[str]) -> None:
    given, contestant, variant = arguments
    known = json.loads(given)
    job = Job(**{**known, "only": tuple(known["only"])})
    print(json.dumps(_own_memory(job, contestant, variant)))


if __name__ == "__main__":
    main(sys.argv[1:])
