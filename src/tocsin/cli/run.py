"""`tocsin run`: match files, write or show the matches, count on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

import tocsin
from tocsin.cli import arguments, files, terminal
from tocsin.cli.queries import program_of, read_tables, runnable, table_paths
from tocsin.cli.session import faults, running, started
from tocsin.engines.dispatch import program_run
from tocsin.engines.local.paths import is_remote, local
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.options import LOCAL, MOST_TASK_MEMORY, Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation
    from rich.table import Table

    from tocsin.engines.rule_run import Run

OUTPUT_FORMATS = ("parquet", "csv", "json")
SHOWN_ROWS = 20
SUMMARY = "summary.json"


def run(
    file: arguments.PatternFile,
    input: arguments.Inputs = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Where the matches go; without it, see the first.")
    ] = None,
    time: arguments.Time = "ts",
    time_unit: arguments.TimeUnit = None,
    format: Annotated[str, typer.Option("--format", "-f", help="parquet, csv or json.")] = "parquet",
    mode: Annotated[str, typer.Option(help="What if PATH is there: error, overwrite or append.")] = "error",
    type_column: arguments.TypeColumn = "type",
    tie: arguments.Tie = None,
    id: arguments.Id = None,
    engine: arguments.Engine = "spark",
    strategy: arguments.Strategy = "auto",
    rate: arguments.Rates = None,
    max_matches_per_start: arguments.MostMatches = MOST_MATCHES_PER_START,
    max_task_memory: arguments.MaxTaskMemory = MOST_TASK_MEMORY,
    table: arguments.Tables = None,
    language: arguments.Language = None,
) -> None:
    r"""Find the matches of a pattern, or of all rules of a program, in files.

    See the first matches:

        tocsin run takeover.sase --input Login=logins.csv --input Transfer=sent.csv

    The same at once, without Spark and Java, for files that fit into memory:

        tocsin run takeover.sase --input events.parquet --engine local

    Write all of them, from one file whose column `kind` names the event type:

        tocsin run takeover.sase --input all.csv --type-column kind --out matches

    All rules of a program in one run, each with a folder of its own, as has each template that they emit:

        tocsin run bank.parte --input all.csv --table known=known.csv --out found

    Let the matches of one event, and of one task, be more than usual:

        tocsin run takeover.sase --input events.parquet --out matches \
                                 --max-matches-per-start 1000000 --max-task-memory 2GB

    A result that is there already is never lost: `--mode overwrite` replaces it when the new one is complete.
    """
    given = dict(locals())
    how = arguments.match_options(given)
    arguments.check_choice("format", format, OUTPUT_FORMATS)
    arguments.check_choice("mode", mode, files.MODES)
    tables = table_paths(given)
    inputs = files.Inputs.of(input)
    if engine == LOCAL:
        from tocsin.cli.run_locally import run_locally

        run_locally(given, how, inputs, tables)
        return
    # Everything that can be refused is refused before Spark starts, but for what needs the rows of a table.
    query = None if tables else runnable(given, inputs, {}, inputs.load)
    inputs.check()
    if out is not None:
        files.check_output(out, mode, inputs.paths.values())
    spark, steps = started()
    counters = Counters(time)
    with steps.step("Reading"):
        query = query or runnable(given, inputs, read_tables(spark, tables), inputs.load)
        is_counted = isinstance(query, tocsin.Pattern)

        def read(_: str, path: str) -> DataFrame:
            frame = files.read(spark, path)
            return counters.read(frame) if is_counted else frame

        frames = inputs.frames(program_of(query), read)
        with terminal.showing_warnings():
            found = query.match(frames, **how)
    with steps.step("Matching"), running(inputs.paths.values(), writes=out):
        if isinstance(query, tocsin.Rules):
            emitting = program_run(query.program, frames, Options(**how))
            table_and_lines = _of_rules(emitting, found, out, format, mode)
        else:
            table_and_lines = _of_pattern(counters, counters.found(found), out, format, mode)
    show(*table_and_lines)


def show(shown: Table | None, lines: Iterable[str]) -> None:
    """Print what was found, and what is to be said of it."""
    if shown is not None:
        terminal.out().print(shown)
    for line in lines:
        terminal.err().print(line)


# --- patterns -------------------------------------------------------------------------------------


class Counters:
    """Counts events and matches in the job that reads and finds them."""

    def __init__(self, time: str) -> None:
        self.time = time
        self.inputs: list[Observation] = []
        self.output: Observation | None = None

    def read(self, frame: DataFrame) -> DataFrame:
        """An input whose events are counted."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        if self.time not in frame.columns:
            return frame  # `match` refuses it
        self.inputs.append(Observation(f"input {len(self.inputs)}"))
        missing = F.count_if(F.col(files.in_backquotes(self.time)).isNull())
        return frame.observe(self.inputs[-1], F.count(F.lit(1)).alias("events"), missing.alias("without_time"))

    def found(self, frame: DataFrame) -> DataFrame:
        """Matches that are counted."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        self.output = Observation("matches")
        return frame.observe(self.output, F.count(F.lit(1)).alias("matches"))

    @property
    def matches(self) -> int:
        """The number of matches, when the job has run."""
        return (_metrics(self.output) or {"matches": 0})["matches"]

    def sentence(self) -> str:
        """The numbers for people."""
        read = [_metrics(each) for each in self.inputs]
        known = [each for each in read if each is not None]
        events, bad = (sum(each[name] for each in known) for name in ("events", "without_time"))
        return sentence(events, bad, self.matches, is_exact=len(known) == len(read))


def sentence(events: int, without_time: int, matches: int, *, is_exact: bool = True) -> str:
    """How many events were read, if that is known, and how many matches were found.

    >>> sentence(1000, 1, 0), sentence(0, 0, 1, is_exact=False)
    ('1,000 events read, 1 of them without a time; 0 matches.', 'events read; 1 match.')
    """
    counted = f"{terminal.several(events, 'event')} read" if is_exact else "events read"
    without = f", {without_time:,} of them without a time" if without_time and is_exact else ""
    return f"{counted}{without}; {terminal.several(matches, 'match', 'matches')}."


def _metrics(observation: Observation | None) -> Mapping[str, int] | None:
    try:
        return None if observation is None else observation.get
    except faults():
        return None  # the optimizer saw that this part of the plan gives no row


def _of_pattern(
    counters: Counters, found: DataFrame, out: str | None, format: str, mode: str
) -> tuple[Table | None, list[str]]:
    """Write the matches, or show the earliest. This runs the job."""
    if out is not None:
        files.write(found, out, format, mode)
        return written(counters.sentence(), out, format)
    return shown(found.columns, first_matches(found), counters.matches, counters.sentence())


def written(counted: str, out: str, format: str) -> tuple[None, list[str]]:
    """The summary of matches that were written to files."""
    return None, [counted, f"Written to {out} as {format}."]


def shown(
    columns: Sequence[str], rows: Sequence[Sequence[str | None]], matches: int, counted: str
) -> tuple[Table, list[str]]:
    """The earliest matches as a table, and what is said of them."""
    short = [
        [
            f"{cell[:8]}…" if name == "match_id" and cell is not None else cell
            for name, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    part = f"The first {len(rows)} of {matches:,}; write all of them with --out PATH."
    return terminal.rows_table(columns, short), [part, counted] if matches > len(rows) else [counted]


def first_matches(matches: DataFrame, rows: int = SHOWN_ROWS) -> list[list[str | None]]:
    """The earliest matches as text. This runs the job, to its end: the counters count everything."""
    from pyspark.sql import functions as F

    # Ordered, and not just limited, so that no part of the input stays unread.
    order = (F.col(files.in_backquotes(name)) for name in order_of(matches.columns))
    found = files.flat(matches.orderBy(*order).limit(rows), as_text=True).collect()
    return [[row[name] for name in matches.columns] for row in found]


def order_of(columns: Sequence[str]) -> Sequence[str]:
    """The columns by which matches are shown; rows over all matches have no interval."""
    return ("start", "end", "match_id") if columns[:1] == ["match_id"] else columns


# --- programs -------------------------------------------------------------------------------------


def _of_rules(
    run: Run[DataFrame], found: DataFrame, out: str | None, format: str, mode: str
) -> tuple[Table | None, list[str]]:
    """Count the matches of every rule, and write them and what they emit. This runs the job."""
    # Kept while it is written in several places, and given up after that: the session is the command's own.
    found.persist()
    try:
        known = {row["rule"]: int(row["count"]) for row in found.groupBy("rule").count().collect()}
        counts = {rule.name: known.get(rule.name, 0) for rule in run.program.in_order}
        if out is not None:
            _write(run, found, counts, out, format, mode)
    finally:
        found.unpersist()
    return summary(counts, out, format)


def summary(counts: Mapping[str, int], out: str | None, format: str) -> tuple[Table, list[str]]:
    """How many matches the rules have, and where they were written."""
    table = terminal.rows_table(["rule", "matches"], [[name, f"{number:,}"] for name, number in counts.items()])
    if out is None:
        return table, ["Write the matches and the events that rules emit with --out PATH."]
    return table, [f"Written to {out} as {format}: rules/, events/ and {SUMMARY}."]


def _write(run: Run[DataFrame], found: DataFrame, counts: Mapping[str, int], out: str, format: str, mode: str) -> None:
    from pyspark.sql import functions as F

    from tocsin.engines.spark.rule_engine import emitted_in

    how = mode if mode == "append" else "error"
    with files.replacing(out, mode) as place:
        for name in counts:
            own = found.where(F.col("rule") == name).select(
                "match_id", "start", "end", f"{files.in_backquotes(name)}.*"
            )
            files.save(own, f"{place}/rules/{folder_name(name)}", format, how)
        emitted: dict[str, int] = {}
        for name in run.program.emitted:
            events = emitted_in(run, found, name)
            files.save(events, f"{place}/events/{folder_name(name)}", format, how)
            emitted[name] = events.count()
        if not is_remote(place):
            write_summary(local(place), counts, emitted)


def write_summary(place: Path, counts: Mapping[str, int], emitted: Mapping[str, int]) -> None:
    """Write how many matches and events there are beside them."""
    found = {"rules": dict(counts), "events": dict(emitted)}
    place.joinpath(SUMMARY).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def folder_name(name: str) -> str:
    """A folder for a rule or template whose name may hold anything, such as `../..`.

    >>> folder_name("Refund"), folder_name("two words"), folder_name("../up")
    ('Refund', 'two words', '..%2Fup')
    """
    quoted = quote(name, safe=" ", errors="replace") if not name.isidentifier() else name
    return quoted if quoted.strip(". ") else quoted.replace(".", "%2E").replace(" ", "%20")
