"""The view of a running stream, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.cli import terminal
from tocsin.cli.watch import Watch
from tocsin.progress import Progress

FIRST = Progress(
    query="tocsin",
    batch=3,
    seen=1_200,
    bad=1,
    events=1_000,
    late=2,
    matches=7,
    remembered=40,
    largest=30,
    bytes=5_000,
    watermark=1_772_438_400_000_000,
    duration_ms=600,
    events_per_second=2_000.0,
    bound=35,
    over={"Login": 5},
    at="2026-03-02T08:00:09.000Z",
)
SECOND = Progress(**{**vars(FIRST), "batch": 4, "watermark": None, "over": {}, "bound": None, "remembered": 12})


def watched(
    monkeypatch: pytest.MonkeyPatch, *, on_terminal: bool, has_clock_times: bool = True, unit: Unit = MICROSECONDS
) -> tuple[str, Watch]:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=on_terminal, width=200, soft_wrap=True, color_system=None)
    monkeypatch.setattr(terminal, "err", lambda: console)
    watch = Watch(has_clock_times=has_clock_times, unit=unit)
    with watch.live():
        watch.add(FIRST)
        watch.warn("too fast")
        watch.add(SECOND)
    return shown.getvalue(), watch


def test_without_a_terminal_every_micro_batch_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    text, watch = watched(monkeypatch, on_terminal=False)
    first, warning, second = text.splitlines()
    assert first == (
        "batch 3  events 1,200 (2,000/s)  matches 7  late 2  bad 1  state 40 of 35 events, 5 kB  "
        "watermark 2026-03-02T08:00:00.000Z (9 s behind)  took 600 ms"
    )
    assert warning == "too fast"
    assert "state 12 events, 5 kB  watermark none yet" in second
    assert watch.summary() == (
        "2,400 events in 2 micro-batches; 14 matches; 4 late, 2 without a time; 12 remembered now, 40 at the peak; "
        "5 of `Login` beyond the declared rate."
    )


def test_with_declared_rates_the_summary_tells_what_they_ask_of_the_machine() -> None:
    watch = Watch(has_clock_times=True, rates={"Login": "100/s", "Logout": "300/s, 5/h per key"})
    assert "declared" not in watch.summary()
    watch.add(Progress(**{**vars(FIRST), "seen": 300, "duration_ms": 300, "over": {}}))
    assert "declared" not in watch.summary()  # whatever it took: it was the first, which starts and compiles
    watch.recent.clear()
    for _ in range(2):
        watch.add(Progress(**{**vars(FIRST), "seen": 1, "over": {}}))
    assert "declared" not in watch.summary()  # one row in 600 ms: nobody knows what a row takes
    watch.add(Progress(**{**vars(FIRST), "over": {}}))
    assert watch.summary().endswith("; the declared 400 events/s are at most 20.0% of what it can carry.")
    watch.add(Progress(**{**vars(FIRST), "seen": 5_000, "duration_ms": 1_000}))
    assert watch.summary().endswith("; the declared 400 events/s are 3.2% of what it can carry.")
    watch.rates = {"Login": "100/s", "Reset": "5/h per key"}
    assert "declared 1" not in watch.summary()


def test_on_a_terminal_a_table_stays_and_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = watched(monkeypatch, on_terminal=True)
    assert "waiting for the first micro-batch" in text
    last = text[text.rindex("batch ") :]
    assert "2,400 in all" in last
    assert "14 in all" in last
    assert "too fast" in text


@pytest.mark.parametrize(("unit", "shown"), [("s", 1_772_438_400), ("us", 1_772_438_400_000_000)])
def test_times_that_are_numbers_are_shown_as_numbers(monkeypatch: pytest.MonkeyPatch, unit: str, shown: int) -> None:
    text, _ = watched(monkeypatch, on_terminal=False, has_clock_times=False, unit=Unit(unit))
    assert f"watermark {shown}  took" in text
