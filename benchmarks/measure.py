"""Runs the contestants of one job: results compared once, then interleaved runs into a sink that keeps nothing."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.calibrate import Ready
from benchmarks.contestants import Build, Contestant, naive
from benchmarks.processes import Peak, cpu_seconds
from benchmarks.settings import MEMORY, Job, Settings
from benchmarks.shapes import Shape, text_of
from tocsin.errors import InvalidOptionError, UnsupportedError

WORTH_TRYING = 3.0  # a plan that was this much slower than the best one while results were compared is not timed
SLOW_S = 20.0  # a plan that takes this long is run once more, not in every round: what it shows does not change
Say = Callable[[str], None]


class StoppedError(Exception):
    """It ran longer than allowed."""


@dataclass
class Entry:
    """What becomes of one contestant: `status` is ok, not yet, skipped, stopped, failed or wrong."""

    contestant: Contestant
    status: str = "ok"
    reason: str = ""
    variant: str = ""
    tried_s: dict[str, float] = field(default_factory=dict)
    matches: int | None = None
    checksum: int | None = None
    times_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    @property
    def build(self) -> Build:
        return self.contestant.variants[self.variant]

    def give_up(self, status: str, reason: str) -> None:
        self.status, self.reason = status, reason

    def take_slow_run_as_time(self) -> None:
        """Let the run that chose the plan count where further ones would only take time."""
        if self.status == "ok" and self.tried_s[self.variant] > SLOW_S:
            self.times_s.append(self.tried_s[self.variant])

    def to_dict(self, rows: int) -> dict[str, Any]:
        median = statistics.median(self.times_s) if self.times_s else None
        return {
            "status": self.status,
            "reason": self.reason,
            "variant": self.variant,
            "tried_s": self.tried_s,
            "matches": self.matches,
            "checksum": self.checksum,
            "times_s": self.times_s,
            "cpu_s": self.cpu_s,
            "median_s": median,
            "median_cpu_s": statistics.median(self.cpu_s) if self.cpu_s else None,
            "events_per_s": rows / median if median else None,
        }


def measure(
    spark: SparkSession,
    frame: DataFrame,
    ready: Ready,
    job: Job,
    settings: Settings,
    all_of: list[Contestant],
    say: Say,
) -> dict[str, Any]:
    """The record of one job."""
    entries = [Entry(contestant) for contestant in all_of]
    runner = _Runner(spark, settings.timeout_s)
    memory: dict[str, Any] = {}
    with Peak() if job.purpose == MEMORY else _Nothing() as peak:
        for entry in entries:
            _prepare(entry, runner, frame, ready, settings)
            say(_words(entry))
        wrong = _compare(entries, ready)
        for entry in entries:
            entry.take_slow_run_as_time()
        running = [entry for entry in entries if entry.status == "ok" and not entry.times_s]
        for number in range(-settings.warmup, settings.repeat):
            # Each round begins with another contestant, so that none always runs after the same one.
            for entry in running[number % len(running) :] + running[: number % len(running)] if running else []:
                _once(entry, runner, frame, ready, counts=number >= 0)
    if isinstance(peak, Peak):
        memory = {"workers": peak.workers, "worker": peak.worker, "jvm": peak.jvm, "samples": peak.samples}
    contestants = {entry.contestant.name: entry.to_dict(ready.rows) for entry in entries}
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
        "matches": (matches := _matches(entries, ready)),
        "selectivity": None if matches is None else matches / ready.rows,
        "wrong": wrong,
        "contestants": contestants,
        "ratios": ratios(contestants),
        "memory": memory,
    }


def ratios(contestants: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The throughput of Tocsin divided by that of each other contestant."""
    own = contestants.get("tocsin", {}).get("median_s")
    others = ((name, result["median_s"]) for name, result in contestants.items() if name != "tocsin")
    return {name: median / own for name, median in others if own and median}


def _prepare(entry: Entry, runner: _Runner, frame: DataFrame, ready: Ready, settings: Settings) -> None:
    """Count and hash what each plan finds, warm it up, and choose the fastest."""
    name = entry.contestant.name
    if name == "naive" and (pairs := naive.pairs(ready)) > settings.most_pairs:
        return entry.give_up("skipped", f"about {pairs:.0e} pairs to look at")
    first: dict[str, float] = {}
    for variant, build in entry.contestant.variants.items():
        try:
            began = time.perf_counter()
            if entry.contestant.finds_matches:
                found = runner.checked(lambda build=build: build(frame, ready), ready.shape)
                if entry.matches is not None and found != (entry.matches, entry.checksum):
                    return entry.give_up(
                        "wrong", f"{variant} finds {found[0]} matches, the other plans {entry.matches}"
                    )
                entry.matches, entry.checksum = found
            else:
                runner.timed(lambda build=build: build(frame, ready))
            first[variant] = time.perf_counter() - began
        except (UnsupportedError, InvalidOptionError) as refusal:
            return entry.give_up("not yet", refusal.message)
        except StoppedError as stopped:
            entry.give_up("stopped", str(stopped))
        except Exception as error:  # whatever a plan dies of, the others are still to be measured
            entry.give_up("failed", f"{type(error).__name__}: {str(error)[:300]}")
    for variant in [name for name, took in first.items() if took <= WORTH_TRYING * min(first.values())]:
        entry.tried_s[variant], _ = runner.timed(lambda build=entry.contestant.variants[variant]: build(frame, ready))
    if entry.tried_s:
        entry.variant = min(entry.tried_s, key=entry.tried_s.__getitem__)
        entry.give_up("ok", "")
    return None


def _once(entry: Entry, runner: _Runner, frame: DataFrame, ready: Ready, *, counts: bool) -> None:
    if entry.status != "ok":
        return
    try:
        wall, cpu = runner.timed(lambda: entry.build(frame, ready))
    except StoppedError as stopped:
        return entry.give_up("stopped", str(stopped))
    if counts:
        entry.times_s.append(wall)
        entry.cpu_s.append(cpu)
    return None


def _compare(entries: list[Entry], ready: Ready) -> str | None:
    """What differs between the results of the contestants, or None. Those that differ from most are not timed."""
    results = [(entry.matches, entry.checksum) for entry in entries if entry.matches is not None]
    if not results:
        return None
    truth = statistics.mode(results)
    for entry in entries:
        if entry.matches is not None and (entry.matches, entry.checksum) != truth:
            entry.give_up("wrong", f"finds {entry.matches} matches, most find {truth[0]} (or other ones)")
    wrong = [f"{entry.contestant.name}: {entry.reason}" for entry in entries if entry.status == "wrong"]
    if ready.matches is not None and ready.matches != truth[0]:
        wrong.append(f"{truth[0]} matches found, {ready.matches} counted beforehand")
    return "; ".join(wrong) or None


def _matches(entries: list[Entry], ready: Ready) -> int | None:
    found = [entry.matches for entry in entries if entry.matches is not None and entry.status != "wrong"]
    return statistics.mode(found) if found else ready.matches


def _words(entry: Entry) -> str:
    name = f"{entry.contestant.name:16}"
    if entry.status != "ok":
        return f"{name} {entry.status}: {entry.reason}"
    tried = ", ".join(f"{variant or 'warm-up'} {took:.2f} s" for variant, took in entry.tried_s.items())
    found = f"  {entry.matches} matches" if entry.matches is not None else ""
    return f"{name} {tried}{found}"


class _Runner:
    def __init__(self, spark: SparkSession, timeout_s: float) -> None:
        self.context = spark.sparkContext
        self.timeout_s = timeout_s
        self.jobs = 0

    def timed(self, build: Callable[[], DataFrame]) -> tuple[float, float]:
        """Wall and CPU seconds of building a plan and running it into a sink that keeps nothing."""
        cpu, began = cpu_seconds(), time.perf_counter()
        self._run(lambda: build().write.format("noop").mode("overwrite").save())
        wall = time.perf_counter() - began
        return wall, cpu_seconds() - cpu

    def checked(self, build: Callable[[], DataFrame], shape: Shape) -> tuple[int, int]:
        """How many matches there are, and the sum of the hashes of their events' ids."""
        return self._run(lambda: checksum(build(), shape))

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
