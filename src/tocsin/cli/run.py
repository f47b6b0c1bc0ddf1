"""`tocsin run`: match files, write or show the matches, count on the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.algebra.units import check_unit
from tocsin.cli import files, terminal
from tocsin.cli.programs import is_program
from tocsin.cli.run_rules import run_rules
from tocsin.cli.session import start, task_progress
from tocsin.errors import (
    InvalidOptionError,
    QueryBindingError,
    TocsinWarning,
    UnknownEventTypeError,
    did_you_mean,
    raise_all,
)
from tocsin.explain.check import problems_with_schemas
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.options import MOST_TASK_MEMORY, OPTIONS, check_option
from tocsin.plan.constructs import counts_other_types
from tocsin.plan.strategies import unsupported

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

OUTPUT_FORMATS = ("parquet", "csv", "json")
SHOWN_ROWS = 20
RATE = "Login=100/s"  # how one is written


@dataclass(frozen=True)
class Counted:
    """What was read and found; None where Spark saw that it need not read."""

    events: int | None
    without_time: int | None
    matches: int | None

    def sentence(self) -> str:
        """For people."""
        read = "events read" if self.events is None else f"{terminal.several(self.events, 'event')} read"
        bad = f", {self.without_time:,} of them without a time" if self.without_time else ""
        return f"{read}{bad}; {terminal.several(self.matches or 0, 'match', 'matches')}."


@dataclass
class Job:
    """A match to be run: its frame, and the counters that the same job fills."""

    matches: DataFrame
    inputs: list[Observation]
    output: Observation

    def counted(self) -> Counted:
        """The counters, when the job has run."""
        read = [_metrics(observation) for observation in self.inputs]
        events = [metrics["events"] for metrics in read if metrics is not None]
        without = [metrics["without_time"] for metrics in read if metrics is not None]
        found = _metrics(self.output)
        return Counted(
            sum(events) if len(events) == len(read) else None,
            sum(without) if len(without) == len(read) else None,
            found["matches"] if found is not None else None,
        )


def _metrics(observation: Observation) -> Mapping[str, int] | None:
    try:
        return observation.get
    except Exception as error:
        if not files.is_sparks(error):
            raise
        return None  # the optimizer saw that this part of the plan gives no row


def job(
    spark: SparkSession,
    pattern: tocsin.Pattern,
    paths: Mapping[str, str] | str,
    *,
    time: str,
    type_column: str,
    tie: list[str],
    id: str | None,
    strategy: str = "auto",
    rates: Mapping[str, str] | None = None,
    most: int = MOST_MATCHES_PER_START,
    memory: str = MOST_TASK_MEMORY,
    time_unit: str | None = None,
) -> Job:
    """Read the inputs and plan the match; nothing runs yet but what Spark needs to know the columns."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counters: list[Observation] = []

    def counted(frame: DataFrame) -> DataFrame:
        if time not in frame.columns:
            return frame  # the library says so better
        counters.append(Observation(f"input {len(counters)}"))
        missing = F.count_if(F.col(files.in_backquotes(time)).isNull())
        return frame.observe(counters[-1], F.count(F.lit(1)).alias("events"), missing.alias("without_time"))

    inputs: DataFrame | dict[str, DataFrame]
    if isinstance(paths, str):
        inputs = counted(files.read(spark, paths))
    else:
        needed = alg.event_types(pattern.query.pattern)
        # Neighbours may be events of every input, named by the pattern or not (R17); else they need not be read.
        wanted = paths if counts_other_types(pattern.query) else needed
        inputs = {name: counted(files.read(spark, paths[name])) for name in wanted}
    options: dict[str, Any] = {"time": time, "time_unit": time_unit, "type": type_column, "tie": tie or None, "id": id}
    options |= {"strategy": strategy, "rates": rates, "max_matches_per_start": most, "max_task_memory": memory}
    with terminal.showing_warnings():
        matches = pattern.match(inputs, **options)
    output = Observation("matches")
    return Job(matches.observe(output, F.count(F.lit(1)).alias("matches")), counters, output)


def check_types(query: alg.Query, paths: Mapping[str, str] | str) -> None:
    """Refuse a pattern whose types have no input, before Spark starts."""
    if isinstance(paths, str):
        return
    raise_all(
        [
            UnknownEventTypeError(
                f"The pattern names the event type `{name}`, and no `--input` has it.",
                hint=did_you_mean(name, paths, "inputs") + f" Add `--input {name}=PATH`.",
            )
            for name in alg.event_types(query.pattern)
            if name not in paths
        ]
    )


def input_frames(query: alg.Query, inputs: list[str]) -> DataFrame | dict[str, DataFrame]:
    """The inputs as DataFrames: one, or one for each type."""
    paths = files.input_paths(inputs)
    for path in [paths] if isinstance(paths, str) else paths.values():
        files.check_exists(path)
    check_types(query, paths)
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    with steps.step("Reading"):
        if isinstance(paths, str):
            return files.read(spark, paths)
        return {name: files.read(spark, path) for name, path in paths.items()}


def as_text(frame: DataFrame) -> DataFrame:
    """Every column as text, in the session's zone: what a table shows."""
    from pyspark.sql import functions as F

    def text(name: str, dtype: str) -> Column:
        column = F.col(files.in_backquotes(name))
        nested = dtype.startswith(files.NESTED)
        return F.to_json(column, files.WRITTEN_TIMES) if nested else column.cast("string")

    return frame.select(*(text(name, dtype).alias(name) for name, dtype in frame.dtypes))


def first_matches(matches: DataFrame, rows: int = SHOWN_ROWS) -> list[list[str | None]]:
    """The earliest matches as text. This runs the job, to its end: the counters count everything."""
    from pyspark.sql import functions as F

    # Ordered, and not just limited, so that no part of the input stays unread. Rows over all matches have no interval.
    order = ("start", "end", "match_id") if matches.columns[:1] == ["match_id"] else matches.columns
    earliest = as_text(matches.orderBy(*(F.col(files.in_backquotes(name)) for name in order)).limit(rows))
    return [[_shortened(name, row[name]) for name in earliest.columns] for row in earliest.collect()]


def _shortened(name: str, cell: str | None) -> str | None:
    return f"{cell[:8]}…" if name == "match_id" and cell is not None else cell


def run(
    file: str,
    *,
    inputs: list[str],
    out: str | None,
    time: str,
    format: str,
    mode: str,
    type_column: str,
    tie: list[str],
    id: str | None,
    language: str | None,
    strategy: str = "auto",
    rates: list[str] | None = None,
    most: int = MOST_MATCHES_PER_START,
    memory: str = MOST_TASK_MEMORY,
    tables: list[str] | None = None,
    time_unit: str | None = None,
) -> None:
    """Everything that can be refused is refused before Spark starts."""
    if format not in OUTPUT_FORMATS:
        raise InvalidOptionError(
            f"There is no format `{format}`.", hint=did_you_mean(format, OUTPUT_FORMATS, "formats")
        )
    files.check_mode(mode)
    check_option("strategy", strategy)
    check_unit(time_unit)
    if most < 1:
        raise InvalidOptionError(
            f"`--max-matches-per-start {most}` allows no match.", hint="write a number from 1 on, or leave it out."
        )
    OPTIONS["max_task_memory"].check("--max-task-memory", memory)
    per_type = files.named_values(rates or [], "--rate", RATE) or None
    if is_program(file, language):
        run_rules(
            file,
            inputs=inputs,
            tables=tables or [],
            out=out,
            time=time,
            format=format,
            mode=mode,
            type_column=type_column,
            tie=tie,
            id=id,
            strategy=strategy,
            rates=per_type,
            most=most,
            memory=memory,
            time_unit=time_unit,
        )
        return
    if tables:
        raise InvalidOptionError("`--table` is for programs of rules.", hint="leave it out.")
    pattern = compiled(file, language, lambda query: input_frames(query, inputs), time=time, type_column=type_column)
    refusal = unsupported(pattern.query)
    if refusal is not None:
        raise refusal
    paths = files.input_paths(inputs)
    for path in [paths] if isinstance(paths, str) else paths.values():
        files.check_exists(path)
    check_types(pattern.query, paths)
    if out is not None:
        files.check_output(out, mode, paths)
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    progress = task_progress(spark)
    all_paths = [paths] if isinstance(paths, str) else list(paths.values())
    with steps.step("Reading", progress):
        planned = job(
            spark,
            pattern,
            paths,
            time=time,
            type_column=type_column,
            tie=tie,
            id=id,
            strategy=strategy,
            rates=per_type,
            most=most,
            memory=memory,
            time_unit=time_unit,
        )
    with steps.step("Matching", progress), files.running(all_paths, writes=out):
        if out is None:
            rows = first_matches(planned.matches)
        else:
            files.write(planned.matches, out, format, mode)
    counted = planned.counted()
    if out is None:
        terminal.out().print(terminal.rows_table(planned.matches.columns, rows))
        if counted.matches is not None and counted.matches > len(rows):
            terminal.err().print(f"The first {len(rows)} of {counted.matches:,}; write all of them with --out PATH.")
    terminal.err().print(counted.sentence())
    if out is not None:
        terminal.err().print(f"Written to {out} as {format}.")


def compiled(
    file: str,
    language: str | None,
    schemas: Callable[[alg.Query], Any] | None = None,
    *,
    time: str = "ts",
    type_column: str = "type",
) -> tocsin.Pattern:
    """The pattern of a file; its warnings are shown, not raised.

    Where its names are wrong and `schemas` are there to be found, the error lists wrong attributes too.
    """
    text, name, language = files.read_pattern(file, language)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        try:
            pattern = tocsin.pattern(text, language=language, name=name)
        except QueryBindingError:
            if schemas is not None:
                raise_all(problems_with_schemas(text, language, name, schemas, time=time, type=type_column))
            raise
    terminal.warn(pattern.warnings)
    return pattern
