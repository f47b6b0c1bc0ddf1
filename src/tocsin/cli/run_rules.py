"""`tocsin run` of a program: all of its rules in one plan, a folder for each rule and for each template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import tocsin
from tocsin.algebra.programs import sources
from tocsin.cli import files, terminal
from tocsin.cli.programs import compiled_rules
from tocsin.cli.session import start, task_progress
from tocsin.engines import program_run
from tocsin.errors import UnknownEventTypeError, did_you_mean, raise_all
from tocsin.options import Options, check_option
from tocsin.physical.programs.claims import refusals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUMMARY = "summary.json"


def run_rules(
    file: str,
    *,
    inputs: list[str],
    tables: list[str],
    out: str | None,
    time: str,
    format: str,
    mode: str,
    type_column: str,
    tie: list[str],
    id: str | None,
    strategy: str,
    rates: Mapping[str, str] | None,
    most: int,
    memory: str,
    time_unit: str | None = None,
) -> None:
    """Everything that can be refused is refused before Spark starts, but for what needs the rows of a table."""
    check_option("strategy", strategy, of_rules=True)
    given_tables = files.named_values(tables, "--table", "registered=recipients.csv")
    paths = files.input_paths(inputs)
    program = None if given_tables else checked_rules(compiled_rules(file, []), paths)
    every = [paths] if isinstance(paths, str) else list(paths.values())
    for path in (*every, *given_tables.values()):
        files.check_exists(path)
    if out is not None:
        files.check_output(out, mode, paths)
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    progress = task_progress(spark)
    with steps.step("Reading", progress):
        if program is None:
            rows = {name: table_rows(spark, path) for name, path in given_tables.items()}
            program = checked_rules(compiled_rules(file, [], tables=rows), paths)
        frames = files.read(spark, paths) if isinstance(paths, str) else _read(spark, program, paths)
        options: dict[str, Any] = {"time": time, "type": type_column, "tie": tie or None, "id": id}
        options |= {"strategy": strategy, "max_matches_per_start": most, "time_unit": time_unit}
        with terminal.showing_warnings():
            found = program.match(frames, **options, rates=rates, max_task_memory=memory)
            events = _events(program, frames, found, options)
    # Kept while it is written in several places, and given up after that: this session is nobody else's.
    found.persist()
    try:
        with steps.step("Matching", progress), files.running(every, writes=out):
            counts = _counts(program, found)
            if out is not None:
                _write(found, events, counts, out, format, mode)
    finally:
        found.unpersist()
    names = [rule.name for rule in program.program.in_order]
    shown = [[name, f"{counts[name]:,}"] for name in names]
    terminal.out().print(terminal.rows_table(["rule", "matches"], shown))
    if out is None:
        terminal.err().print("Write the matches and the events that rules emit with --out PATH.")
    else:
        terminal.err().print(f"Written to {out} as {format}: rules/, events/ and {SUMMARY}.")


def checked_rules(program: tocsin.Rules, paths: Mapping[str, str] | str) -> tocsin.Rules:
    """The program, unless Spark does not run it or an input is missing."""
    raise_all(list(refusals(program.program, "spark").values()))
    missing = [] if isinstance(paths, str) else [name for name in sources(program.program) if name not in paths]
    raise_all(
        [
            UnknownEventTypeError(
                f"The program reads events of `{name}`, and no `--input` has them.",
                hint=did_you_mean(name, paths, "inputs") + f" Add `--input {name}=PATH`.",
            )
            for name in missing
        ]
    )
    return program


def table_rows(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """The rows of a reference table, which travel to the workers with the conditions that ask it."""
    with files.reading(path):
        return [row.asDict() for row in files.read(spark, path).collect()]


def _read(spark: SparkSession, program: tocsin.Rules, paths: Mapping[str, str]) -> dict[str, DataFrame]:
    return {name: files.read(spark, path) for name, path in paths.items() if name in program.program.read}


def _events(program: tocsin.Rules, frames: Any, found: DataFrame, options: Mapping[str, Any]) -> dict[str, DataFrame]:
    """The events of every template that rules emit, from the matches."""
    from tocsin.physical.programs.emitted import emitted_in

    run = program_run(program.program, frames, Options(**options))
    return {name: emitted_in(run, found, name) for name in program.program.emitted}


def _counts(program: tocsin.Rules, found: DataFrame) -> dict[str, int]:
    """How many matches every rule has. This runs the job."""
    known = {row["rule"]: int(row["count"]) for row in found.groupBy("rule").count().collect()}
    return {rule.name: known.get(rule.name, 0) for rule in program.program.rules}


def _write(
    found: DataFrame, events: Mapping[str, DataFrame], counts: Mapping[str, int], out: str, format: str, mode: str
) -> None:
    from pyspark.sql import functions as F

    how = mode if mode == "append" else "error"
    with files.replacing(out, mode) as place:
        for name in counts:
            own = found.where(F.col("rule") == name).select(
                "match_id", "start", "end", f"{files.in_backquotes(name)}.*"
            )
            files.save(own, f"{place}/rules/{folder_name(name)}", format, how)
        written: dict[str, int] = {}
        for name, frame in events.items():
            files.save(frame, f"{place}/events/{folder_name(name)}", format, how)
            written[name] = frame.count()
        if not files.is_remote(place):
            summary = {"rules": dict(counts), "events": written}
            files.local(place).joinpath(SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def folder_name(name: str) -> str:
    """A folder for a rule or template whose name may hold anything, such as `../..`.

    Examples
    --------
    >>> folder_name("Refund"), folder_name("two words"), folder_name("../up")
    ('Refund', 'two words', '..%2Fup')
    """
    quoted = quote(name, safe=" ", errors="replace") if not name.isidentifier() else name
    return quoted if quoted.strip(". ") else quoted.replace(".", "%2E").replace(" ", "%20")
