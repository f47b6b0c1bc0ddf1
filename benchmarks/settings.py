"""What is to be measured, and how: settings, and the jobs they give. Both travel to another process as JSON."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from benchmarks.workloads import Workload, workloads

CORES, MEMORY = "cores", "memory"
# Finish in about two minutes: one of each kind.
QUICK = ("seq3-sparse", "seq3-dense", "seq3-strong", "seq2-27%", "iter3", "nseq")
QUICK_ROWS = 200_000


@dataclass(frozen=True)
class Settings:
    rows: tuple[int, ...] = (1_000_000, 10_000_000)
    only: tuple[str, ...] = ()
    contestants: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    all_variants: bool = True
    repeat: int = 3
    warmup: int = 1
    cores: int = 2
    partitions: int = 8
    memory: str = "6g"
    seed: int = 1
    layout: str = "ordered"
    time: str = "timestamp"
    timeout_s: float = 600.0
    most_pairs: float = 5e8
    data: str = "build/bench-data"

    @classmethod
    def from_json(cls, text: str) -> Settings:
        known = json.loads(text)
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Job:
    """One workload at one size in one session; `purpose` is "speed", "cores" or "memory"."""

    workload: str
    rows: int
    cores: int
    purpose: str = "speed"
    contestants: tuple[str, ...] = ()  # none: all

    @property
    def words(self) -> str:
        extra = {"speed": "", CORES: ", cores compared", MEMORY: ", memory"}[self.purpose]
        return f"{self.workload}, {size(self.rows)} events, {self.cores} core{'s'[: self.cores > 1]}{extra}"


@dataclass(frozen=True)
class Session:
    """Jobs that share a Spark session, and so a process."""

    cores: int
    jobs: tuple[Job, ...] = field(default_factory=tuple)


def sessions(settings: Settings) -> Iterator[Session]:
    """All jobs, by session: one for speed, one per number of cores, one per measurement of memory."""
    chosen = [workload for workload in workloads() if _is_chosen(workload.name, settings.only)]
    speed = [
        Job(workload.name, rows, settings.cores, contestants=settings.contestants)
        for rows in settings.rows
        for workload in chosen
    ]
    if speed:
        yield Session(settings.cores, tuple(speed))
    if _is_chosen(CORES, settings.only):
        for cores in sorted({1, settings.cores}):
            jobs = [
                Job(workload.name, rows, cores, CORES, ("tocsin", "limit"))
                for rows in settings.rows
                for workload in tagged(CORES)
            ]
            yield Session(cores, tuple(jobs))
    if _is_chosen(MEMORY, settings.only):
        for workload in tagged(MEMORY):
            for rows in settings.rows:
                yield Session(settings.cores, (Job(workload.name, rows, settings.cores, MEMORY, ("tocsin",)),))


def tagged(tag: str) -> list[Workload]:
    return [workload for workload in workloads() if tag in workload.tags]


def unknown(only: tuple[str, ...]) -> list[str]:
    """Names that choose nothing."""
    names = [CORES, MEMORY, *(workload.name for workload in workloads())]
    return [pattern for pattern in only if not fnmatch.filter(names, pattern)]


def _is_chosen(name: str, only: tuple[str, ...]) -> bool:
    return not only or any(fnmatch.fnmatchcase(name, pattern) for pattern in only)


def size(rows: int) -> str:
    """A number of events as people say it: 1M, 200k.

    Examples
    --------
    >>> size(10_000_000), size(200_000), size(1_234)
    ('10M', '200k', '1234')
    """
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if rows >= unit and rows % (unit // 10) == 0:
            return f"{rows / unit:g}{letter}"
    return str(rows)


def parse_size(text: str) -> int:
    """The number that `size` wrote.

    Examples
    --------
    >>> parse_size("10M"), parse_size("200k"), parse_size("1_234")
    (10000000, 200000, 1234)
    """
    factor = {"M": 1_000_000, "K": 1_000}.get(text[-1:].upper(), 1)
    return round(float(text[:-1] if factor > 1 else text) * factor)
