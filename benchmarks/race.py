"""Contestants that find the same, run in turns: results compared once, then timed rounds. Knows no engine."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.calibrate import Ready
from benchmarks.settings import size
from tocsin.errors import InvalidOptionError, UnsupportedError

WORTH_TRYING = 3.0  # a plan that was this much slower than the best one while results were compared is not timed
SLOW_S = 20.0  # a plan that takes this long is run once more, not in every round: what it shows does not change
Say = Callable[[str], None]
Build = Callable[[Any, Ready], Any]  # from the events, as the contestant reads them, to its result


class StoppedError(Exception):
    """It ran longer than allowed."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Stop what runs in this process after so long; code that looks for no signals is stopped when it returns."""
    stopped = StoppedError(f"after {seconds:g} s")
    over = False

    def stop(*_: object) -> None:
        nonlocal over
        over = True
        raise stopped

    handler = signal.signal(signal.SIGALRM, stop)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except Exception as error:
        if over:
            raise stopped from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@dataclass(frozen=True)
class Contestant:
    """One row of a result: its plans by name (the fastest counts), and whether it finds matches at all.

    `reads_files`: its plans take the Parquet files, in a comparison where others take a DataFrame. `missing`: what has
    to be installed before it can run.
    """

    name: str
    variants: Mapping[str, Build]
    finds_matches: bool = True
    reads_files: bool = False
    missing: str = ""


@dataclass
class Entry:
    """The outcome of one contestant: `status` is ok, not yet, skipped, stopped, failed or wrong."""

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


class Runner(Protocol):
    """Runs what a contestant builds."""

    def timed(self, build: Callable[[], Any]) -> tuple[float, float]:
        """Wall and CPU seconds."""
        ...

    def checked(self, build: Callable[[], Any], ready: Ready) -> tuple[int, int]:
        """How many matches there are, and a checksum of them."""
        ...


@dataclass(frozen=True)
class Race:
    """The settings that all contestants of a job share."""

    runner: Runner
    ready: Ready
    events: Callable[[Contestant], Any]
    warmup: int
    repeat: int

    def run(self, entries: Sequence[Entry], say: Say) -> str | None:
        """Run all of them; what differs between their results, or None."""
        for entry in entries:
            if entry.status == "ok":
                self._prepare(entry)
            say(_words(entry))
        wrong = compare(entries, self.ready.matches)
        for entry in entries:
            entry.take_slow_run_as_time()
        running = [entry for entry in entries if entry.status == "ok" and not entry.times_s]
        for number in range(-self.warmup, self.repeat):
            # Each round begins with another contestant, so that none always runs after the same one.
            for entry in running[number % len(running) :] + running[: number % len(running)] if running else []:
                self._once(entry, counts=number >= 0)
        return wrong

    def _call(self, entry: Entry, build: Build) -> Callable[[], Any]:
        events = self.events(entry.contestant)
        return lambda: build(events, self.ready)

    def _prepare(self, entry: Entry) -> None:
        """Count and hash what each plan finds, warm it up, and choose the fastest."""
        contestant = entry.contestant
        if contestant.missing:
            return entry.give_up("skipped", contestant.missing)
        first: dict[str, float] = {}
        for variant, build in contestant.variants.items():
            try:
                began = time.perf_counter()
                if contestant.finds_matches:
                    found = self.runner.checked(self._call(entry, build), self.ready)
                    if entry.matches is not None and found != (entry.matches, entry.checksum):
                        return entry.give_up(
                            "wrong", f"{variant} finds {found[0]} matches, the other plans {entry.matches}"
                        )
                    entry.matches, entry.checksum = found
                else:
                    self.runner.timed(self._call(entry, build))
                first[variant] = time.perf_counter() - began
            except (UnsupportedError, InvalidOptionError) as refusal:
                return entry.give_up("not yet", refusal.message)
            except StoppedError as stopped:
                entry.give_up("stopped", str(stopped))
            except Exception as error:  # whatever a plan dies of, the others are still to be measured
                entry.give_up("failed", f"{type(error).__name__}: {str(error)[:300]}")
        for variant in [name for name, took in first.items() if took <= WORTH_TRYING * min(first.values())]:
            entry.tried_s[variant], _ = self.runner.timed(self._call(entry, contestant.variants[variant]))
        if entry.tried_s:
            entry.variant = min(entry.tried_s, key=entry.tried_s.__getitem__)
            entry.give_up("ok", "")
        return None

    def _once(self, entry: Entry, *, counts: bool) -> None:
        if entry.status != "ok":
            return
        try:
            wall, cpu = self.runner.timed(self._call(entry, entry.build))
        except StoppedError as stopped:
            return entry.give_up("stopped", str(stopped))
        if counts:
            entry.times_s.append(wall)
            entry.cpu_s.append(cpu)
        return None


def compare(entries: Sequence[Entry], counted: int | None) -> str | None:
    """The difference between the results of the contestants, or None. Those that differ from most are not timed."""
    results = [(entry.matches, entry.checksum) for entry in entries if entry.matches is not None]
    if not results:
        return None
    truth = statistics.mode(results)
    for entry in entries:
        if entry.matches is not None and (entry.matches, entry.checksum) != truth:
            entry.give_up("wrong", f"finds {entry.matches} matches, most find {truth[0]} (or other ones)")
    wrong = [f"{entry.contestant.name}: {entry.reason}" for entry in entries if entry.status == "wrong"]
    if counted is not None and counted != truth[0]:
        wrong.append(f"{truth[0]} matches found, {counted} counted beforehand")
    return "; ".join(wrong) or None


def matches_of(entries: Sequence[Entry], counted: int | None) -> int | None:
    """How many matches most contestants find."""
    found = [entry.matches for entry in entries if entry.matches is not None and entry.status != "wrong"]
    return statistics.mode(found) if found else counted


def ratios(contestants: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The throughput of Tocsin divided by that of each other contestant."""
    own = contestants.get("tocsin", {}).get("median_s")
    others = ((name, result["median_s"]) for name, result in contestants.items() if name != "tocsin")
    return {name: median / own for name, median in others if own and median}


def problems(records: Iterable[Mapping[str, Any]], *names: str) -> list[str]:
    """Contestants that found other matches, or failed; `names` distinguish the records."""
    found = []
    for record in records:
        at = ", ".join((*(record[name] for name in names), f"{size(record['rows'])} events"))
        found += [f"WRONG RESULT: {at}: {record['wrong']}"] if record["wrong"] else []
        failed = (item for item in record["contestants"].items() if item[1]["status"] == "failed")
        found += [f"FAILED: {at}: {name}: {one['reason']}" for name, one in failed]
    return found


def _words(entry: Entry) -> str:
    name = f"{entry.contestant.name:16}"
    if entry.status != "ok":
        return f"{name} {entry.status}: {entry.reason}"
    tried = ", ".join(f"{variant or 'warm-up'} {took:.2f} s" for variant, took in entry.tried_s.items())
    found = f"  {entry.matches} matches" if entry.matches is not None else ""
    return f"{name} {tried}{found}"
