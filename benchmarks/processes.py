"""CPU time and memory of the processes below this one, read from /proc: Spark's JVM and its Python workers."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    cpu_s: float  # its own, and that of its children that have ended
    rss: int

    @property
    def command(self) -> str:
        """Its command line; empty when it has ended."""
        try:
            return (PROC / str(self.pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return ""


def _process(pid: int) -> Process | None:
    try:
        # The name in parentheses may hold blanks.
        fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    ticks = sum(int(field) for field in fields[11:15])
    return Process(pid, int(fields[1]), ticks / TICKS, int(fields[21]) * PAGE)


def descendants(root: int | None = None) -> list[Process]:
    """All processes below `root` (this one)."""
    root = os.getpid() if root is None else root
    everyone = [process for name in os.listdir(PROC) if name.isdigit() and (process := _process(int(name)))]
    children: dict[int, list[Process]] = {}
    for process in everyone:
        children.setdefault(process.parent, []).append(process)
    found, left = [], list(children.get(root, []))
    while left:
        process = left.pop()
        found.append(process)
        left += children.get(process.pid, [])
    return found


def cpu_seconds() -> float:
    """CPU seconds that all processes below this one have used so far."""
    return sum(process.cpu_s for process in descendants())


def keep_to(cores: int) -> None:
    """Pin the process to so many processors where the system allows it: the JVM's own threads and Python take more."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def rss() -> int:
    """The resident memory of this process, in bytes."""
    return _status("VmRSS")


def highest_rss() -> int:
    """The most resident memory that this process has had since `lower_highest_rss`, or ever."""
    return _status("VmHWM")


def lower_highest_rss() -> None:
    """Let `highest_rss` begin again with what is resident now."""
    (PROC / "self" / "clear_refs").write_text("5", encoding="utf-8")


def _status(name: str) -> int:
    lines = (PROC / "self" / "status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def is_worker(command: str) -> bool:
    """Whether a command line is that of Spark's Python daemon or of a worker, which the daemon forks."""
    return "pyspark.daemon" in command or "pyspark.worker" in command


class Peak:
    """Samples memory while a block runs: `with Peak() as peak: …`, then `peak.workers` and `peak.jvm` in bytes.

    `workers` is the sum over all Python workers, `worker` the largest one.
    """

    def __init__(self, every_s: float = 0.05) -> None:
        self.every_s = every_s
        self.workers = self.worker = self.jvm = self.samples = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            below = [(process.command, process.rss) for process in descendants()]
            sizes = [rss for command, rss in below if is_worker(command)]
            self.workers = max(self.workers, sum(sizes))
            self.worker = max(self.worker, *sizes, 0)
            self.jvm = max(self.jvm, sum(rss for command, rss in below if "/java " in command))
            self.samples += 1
            self._stop.wait(self.every_s)
