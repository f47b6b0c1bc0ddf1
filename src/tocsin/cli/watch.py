"""The view of a running stream: a small table that stays in its place, or plain lines without a terminal."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.live import Live
from rich.table import Table
from rich.text import Text

from tocsin.algebra.units import MICROSECONDS, Unit, format_bytes
from tocsin.analysis.rates import parse_rates
from tocsin.capacity import feasibility
from tocsin.cli import terminal
from tocsin.cli.terminal import several
from tocsin.progress import KEPT, Progress

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def about(seconds: float) -> str:
    """A length of time in a unit that gives two digits or more.

    >>> about(9.4), about(600), about(90_000), about(22_408_631)
    ('9 s', '10 min', '25 h', '259 d')
    """
    return next((f"{seconds / size:.0f} {unit}" for unit, size in UNITS if seconds >= 2 * size), f"{seconds:.0f} s")


class Watch:
    """Shows the progress of one query and adds it up."""

    def __init__(
        self, *, has_clock_times: bool, rates: Mapping[str, str] | None = None, unit: Unit = MICROSECONDS
    ) -> None:
        self.has_clock_times, self.rates, self.unit = has_clock_times, rates, unit
        self.recent: deque[Progress] = deque(maxlen=KEPT)
        self.last: Progress | None = None
        self.batches = self.peak = 0
        self.total: Counter[str] = Counter()
        self.over: Counter[str] = Counter()
        self._live: Live | None = None
        self._lock = threading.Lock()  # Spark calls from a thread of its own

    @contextmanager
    def live(self) -> Iterator[None]:
        """Show the progress while this lasts."""
        console = terminal.err()
        if not console.is_terminal:
            yield
            return
        with Live(self._table(), console=console, refresh_per_second=4, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def add(self, progress: Progress) -> None:
        """Add the progress of a micro-batch."""
        with self._lock:
            self.last = progress
            self.recent.append(progress)
            self.batches += 1
            self.peak = max(self.peak, progress.remembered)
            self.total.update({name: getattr(progress, name) for name in ("seen", "bad", "late", "matches")})
            self.over.update(progress.over)
            if self._live is not None:
                self._live.update(self._table())
            elif not terminal.err().is_terminal and (progress.seen or progress.matches):
                terminal.err().print(self._line(progress), markup=False)

    def warn(self, text: str) -> None:
        """Show a warning, above the table if there is one."""
        console = self._live.console if self._live is not None else terminal.err()
        console.print(Text(text, style="yellow"))

    def summary(self) -> str:
        """All that the query has done, in one line."""
        total = self.total
        parts = [
            several(total["seen"], "event") + " in " + several(self.batches, "micro-batch", "micro-batches"),
            several(total["matches"], "match", "matches"),
            f"{total['late']:,} late, {total['bad']:,} without a time",
        ]
        if self.last is not None:
            bound = "" if self.last.bound is None else f" (bound: {self.last.bound:,})"
            parts.append(f"{self.last.remembered:,} remembered now, {self.peak:,} at the peak{bound}")
        parts += [f"{events:,} of `{name}` beyond the declared rate" for name, events in self.over.items() if events]
        return "; ".join([*parts, *self._load()]) + "."

    def _load(self) -> list[str]:
        """The load that the declared rates put on this machine, where that is known."""
        if not self.rates or sum(one.seen > 0 for one in self.recent) < 2:  # the first one mostly starts and compiles
            return []
        known = parse_rates(self.rates)
        if any(rate.is_per_key for rate in known.values()):
            return []
        found = feasibility(self.recent, known)
        if found.is_upper_bound and not found.keeps_up:  # micro-batches too small to measure a row
            return []
        at_most = "at most " * found.is_upper_bound
        return [
            f"the declared {found.rows_per_second:,.6g} events/s are {at_most}{found.load:.1%} of what it can carry"
        ]

    def _line(self, progress: Progress) -> str:
        return "  ".join(f"{name} {value}" for name, value in self._facts(progress).items())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        if self.last is None:
            table.add_row(Text("waiting for the first micro-batch", style="dim"))
            return table
        total = {"events": self.total["seen"], **{name: self.total[name] for name in ("matches", "late", "bad")}}
        for name, value in self._facts(self.last).items():
            style = "yellow" if name == "state" and self.last.is_over_bound else ""
            sum_of_all = f"{total[name]:,} in all" if name in total else ""
            table.add_row(Text(name, style="bold"), Text(value, style=style), Text(sum_of_all, style="dim"))
        return table

    def _facts(self, progress: Progress) -> dict[str, str]:
        bound = "" if progress.bound is None else f" of {progress.bound:,}"
        return {
            "batch": f"{progress.batch:,}",
            "events": f"{progress.seen:,} ({progress.events_per_second:,.0f}/s)",
            "matches": f"{progress.matches:,}",
            "late": f"{progress.late:,}",
            "bad": f"{progress.bad:,}",
            "state": f"{progress.remembered:,}{bound} events, {format_bytes(progress.bytes)}",
            "watermark": self._watermark(progress),
            "took": f"{progress.duration_ms:,} ms",
        }

    def _watermark(self, progress: Progress) -> str:
        if progress.watermark is None:
            return "none yet"
        if not self.has_clock_times:
            return f"{math.floor(progress.watermark / self.unit.microseconds)}"
        try:
            at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=progress.watermark)
        except OverflowError:  # beyond the years of Python
            return f"{progress.watermark}"
        lag = progress.lag_seconds or 0.0
        behind = f" ({about(lag)} behind)" if lag >= 0 else ""
        return f"{at.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}{behind}"
