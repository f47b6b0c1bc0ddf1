"""`tocsin demo bank`: one morning of a bank, a pattern, and the matches drawn on timelines."""

from __future__ import annotations

import datetime as dt
from typing import Any

from rich.table import Table

from tocsin import datasets
from tocsin.cli import files, run, terminal, timeline
from tocsin.cli.session import start, task_progress
from tocsin.cli.shown import coloured, short

STORY = """\
One morning at a small bank: logins, password changes, transfers and alerts of
twelve customers. Some accounts are taken over: somebody logs in from abroad,
sets a new password, and sends a large amount within a quarter of an hour.
Others come close and are innocent."""
MINUTES_AROUND = 12


def demo() -> None:
    """Match the bundled stream on a local Spark and show everything."""
    console = terminal.out()
    source = datasets.pattern_path("bank")
    stream = str(datasets.path("bank"))
    pattern = run.compiled(str(source), None)
    console.print(STORY, end="\n\n")
    console.print(coloured(pattern.text), end="\n\n")
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    progress = task_progress(spark)
    with steps.step("Planning", progress):
        job = run.job(spark, pattern, stream, time="ts", type_column="type", tie=[], id=None)
    with steps.step("Matching", progress), files.running([stream]):
        rows = run.first_matches(job.matches)
    matches = [dict(zip(job.matches.columns, row, strict=True)) for row in rows]
    console.print(_timelines(datasets.load("bank"), matches))
    console.print("\nL login   P password change   T transfer   A alert      └──┴──┘ a match\n")
    console.print(_table(matches))
    console.print(job.counted().sentence(), end="\n\n")
    console.print(steps.table())
    console.print(f"\nTry it yourself:\n  tocsin run {short(source)} --input {short(stream)}")


def _timelines(events: list[dict[str, Any]], matches: list[dict[str, str | None]]) -> str:
    """One picture per match: the user it concerns, and what happened around it."""
    pictures = []
    for match in matches:
        times = [_time(match[name]) for name in ("start", "changed", "sent")]
        around = dt.timedelta(minutes=MINUTES_AROUND)
        marks = tuple(
            timeline.Mark(event["ts"], event["type"][0]) for event in events if event["user"] == match["user"]
        )
        line = timeline.Line(str(match["user"]), marks, (tuple(times),))
        pictures.append(timeline.draw([line], times[0] - around, times[-1] + around))
    return "\n".join(pictures)


def _table(matches: list[dict[str, str | None]]) -> Table:
    """The matches; of times only the hour, so that the table fits every terminal."""
    columns = {"user": "user", "country": "country", "start": "login", "changed": "changed", "sent": "sent"}
    rows = [
        [
            match[name] and str(match[name])[-8:] if name in ("start", "changed", "sent") else match[name]
            for name in columns
        ]
        + [match["amount"]]
        for match in matches
    ]
    return terminal.rows_table([*columns.values(), "amount"], rows)


def _time(text: str | None) -> dt.datetime:
    return dt.datetime.fromisoformat(text or "").replace(tzinfo=dt.UTC)
