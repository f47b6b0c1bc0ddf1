"""`tocsin stream`: match folders to which files are added, until somebody stops it or all is read."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

import tocsin
from tocsin import sinks
from tocsin.algebra.programs import Program
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.cli import arguments, checkpoints, files, terminal
from tocsin.cli.check import read_schema
from tocsin.cli.queries import Query, program_of, read_tables, runnable, table_paths
from tocsin.cli.session import faults, running, start, started
from tocsin.engines.local.paths import absolute
from tocsin.errors import InvalidOptionError, did_you_mean
from tocsin.language.durations import microseconds
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.options import MOST_TASK_MEMORY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tocsin.cli.watch import Watch

STREAM_FORMATS = ("parquet", "json")
CONSOLE = "-"
PATIENCE_S = 10.0  # for the report of the last micro-batch


def stream(
    file: arguments.PatternFile,
    input: arguments.Inputs = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", "-c", metavar="DIR", help="Checkpoint directory; a restart resumes from it."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where the matches go; without it, or `-`, see them as JSON."),
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help="parquet or json.")] = "parquet",
    late: Annotated[str | None, typer.Option(metavar="DIR", help="Where events go that came too late.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop when an event comes too late.")] = False,
    lateness: Annotated[str, typer.Option(help="How late events may come: `10 seconds`.")] = "0 seconds",
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and stop.")] = False,
    trigger: Annotated[str, typer.Option(help="How often to look for new files.")] = "1 second",
    emit: Annotated[
        str, typer.Option(help="auto: as soon as nothing can change a match; watermark: in order of time.")
    ] = "auto",
    heartbeat: Annotated[
        bool, typer.Option("--heartbeat", help="Let wall-clock time advance the watermark of idle inputs.")
    ] = False,
    idle_timeout: Annotated[
        str | None, typer.Option(help="Stop waiting for an idle input after this long: `1 minute`.")
    ] = None,
    time: arguments.Time = "ts",
    time_unit: arguments.TimeUnit = None,
    type_column: arguments.TypeColumn = "type",
    tie: arguments.Tie = None,
    id: arguments.Id = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema", "-s", metavar="TYPE=SCHEMA", help="The columns, where they cannot be read from files yet."
        ),
    ] = None,
    input_format: Annotated[
        str | None, typer.Option(help="parquet, csv or json, for folders that are still empty.")
    ] = None,
    max_files: Annotated[int | None, typer.Option(help="How many files of an input a micro-batch may take.")] = None,
    shards: Annotated[
        int | None, typer.Option(help="How many parts keys are spread over; by default one per core.")
    ] = None,
    state_store: Annotated[str | None, typer.Option(help="default (in memory) or rocksdb (on disk).")] = None,
    strategy: arguments.LiveStrategy = "auto",
    rate: arguments.Rates = None,
    max_state: arguments.MaxState = None,
    live_keys: arguments.LiveKeys = None,
    max_matches_per_start: arguments.MostMatches = MOST_MATCHES_PER_START,
    max_task_memory: arguments.MaxTaskMemory = MOST_TASK_MEMORY,
    table: arguments.Tables = None,
    language: arguments.Language = None,
) -> None:
    r"""Match folders to which files are added, until you stop it with Ctrl-C.

    See matches as they are found:

        tocsin stream takeover.sase --input Login=logins/ --input Transfer=sent/ --lateness "1 minute"

    Write them, each once, also across restarts and crashes; late events go beside them:

        tocsin stream takeover.sase --input events/ --lateness "1 minute" \
                                    --checkpoint checkpoint/ --out matches/ --late late/

    Take what has come since the last time, and stop, as from cron:

        tocsin stream takeover.sase --input events/ --checkpoint checkpoint/ --out matches/ --once

    Warn when a source sends more than was declared, and refuse to start with too little memory:

        tocsin stream takeover.sase --input events/ --rate Login=100/s --rate Transfer=20/s --max-state 1GB

    Files should be moved into a folder when they are complete. A line that cannot be read is counted as an event
    without a time; it stops nothing.
    """
    given = dict(locals())
    how = arguments.match_options(given)
    out = None if out == CONSOLE else out
    _check(given, out)
    # A failed micro-batch is reported once, in one sentence; the bridge to the JVM would log its stack too.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    inputs = files.Inputs.of(input)
    for path in inputs.paths.values():
        files.check_folder(path, input_format)
    columns = _columns(schema, inputs)
    tables = table_paths(given)
    for place in filter(None, (out, late)):
        files.check_output(place, "append", inputs.paths.values())
    if checkpoint is not None:
        checkpoints.check_checkpoint(checkpoint, out, inputs.paths.values())
        columns = {**checkpoints.schemas_in(checkpoint), **columns}
    settings = _settings(shards, state_store, checkpoint)

    def load(program: Program) -> DataFrame | dict[str, DataFrame]:
        def read(name: str, path: str) -> DataFrame:
            declared = columns.get(name)
            return files.read_stream(start(), path, schema=declared, format=input_format, most_files=max_files)

        inputs.require(program)
        return inputs.frames(program, read)

    # Everything that can be refused is refused before Spark starts, but for what needs the columns of files.
    query = None if tables else runnable(given, inputs, {}, load, is_live=True)
    spark, steps = started()
    with ExitStack() as stack:
        stack.enter_context(_configured(spark, settings))
        with steps.step("Reading"):
            query = query or runnable(given, inputs, read_tables(spark, tables), load, is_live=True)
            frames = load(program_of(query))
            by_name = frames if isinstance(frames, dict) else {files.SINGLE: frames}
            first = next(iter(by_name.values()))
            _require_room(query, frames, arguments.keywords(given, query.check))
            how["heartbeats"] = _heartbeats(spark, time, first, time_unit) if heartbeat else None
            with terminal.showing_warnings():
                matches = query.match(frames, **how)
            if out is not None:
                hint = "call it something else: `RETURN … AS …`, or another name of the rule."
                sinks.check_columns(matches, hint=hint)
        checkpoint = checkpoint or stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-checkpoint-"))
        checkpoints.keep_schemas(checkpoint, {name: files.ddl_of(dict(one.dtypes)) for name, one in by_name.items()})
        from tocsin.cli.watch import Watch

        is_clock = dict(first.dtypes).get(time, "").startswith("timestamp")
        watch = Watch(has_clock_times=is_clock, rates=how["rates"], unit=Unit(time_unit or MICROSECONDS.name))
        writer = matches.writeStream.queryName("tocsin").option("checkpointLocation", absolute(checkpoint))
        every = f"{microseconds(trigger) // 1000} milliseconds"
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
        with running(inputs.paths.values(), writes=out), checkpoints.using(checkpoint):
            _run(spark, writer.foreachBatch(_sink(out, late, format)).start, watch)
    terminal.err().print(watch.summary())
    if out is not None:
        terminal.err().print(f"Written to {out} as {format}.")


# --- before it starts -----------------------------------------------------------------------------


def _check(given: Mapping[str, Any], out: str | None) -> None:
    """Refuse values that an option cannot have, and options that do not go together."""
    arguments.check_choice("format", given["format"], STREAM_FORMATS)
    arguments.check_choice("state store", given["state_store"] or "default", checkpoints.STORES)
    arguments.check_choice("input format", given["input_format"] or "csv", files.READ)
    microseconds(given["trigger"])
    late, once = given["late"] is not None, given["once"]
    by_wall_clock = "`{}` follows the wall clock, and `--once` stops when all is read."
    for is_wrong, message, hint in (
        (
            out is not None and given["checkpoint"] is None,
            "There is no checkpoint, and `--out` writes what has to be written once.",
            "add `--checkpoint DIR`: a restart resumes from it.",
        ),
        (late and out is None, "`--late` writes beside the matches.", "add `--out DIR` and `--checkpoint DIR`."),
        (
            late and given["strict"],
            "`--late` keeps events that came too late, and `--strict` stops there.",
            "give one of them.",
        ),
        (once and given["heartbeat"], by_wall_clock.format("--heartbeat"), "give one of them."),
        (once and given["idle_timeout"] is not None, by_wall_clock.format("--idle-timeout"), "give one of them."),
        (
            given["max_files"] is not None and given["max_files"] < 1,
            f"`--max-files {given['max_files']}` is not a positive integer.",
            "leave it out.",
        ),
        (
            given["strategy"] == "join",
            "`--strategy join` leaves the state to Spark, and there is nothing to watch.",
            'leave it out; in Python, `match(…, strategy="join")` runs joins of streams.',
        ),
    ):
        if is_wrong:
            raise InvalidOptionError(message, hint=hint)


def _columns(given: Sequence[str] | None, inputs: files.Inputs) -> dict[str, str]:
    """The columns that `--schema` declares, as DDL, by the name of the input."""
    if inputs.is_single:
        if given and len(given) > 1:
            raise InvalidOptionError("There is one input, and `--schema` is given twice.", hint="give one schema.")
        named = {files.SINGLE: given[0]} if given else {}
    else:
        named = arguments.named_values(given, "--schema", "'Login=ts timestamp, user string'")
    for name in named:
        if name not in inputs.paths:
            raise InvalidOptionError(
                f"`--schema` names `{name}`, which has no `--input`.", hint=did_you_mean(name, inputs.paths, "inputs")
            )
    return {name: files.ddl_of(read_schema(name or "the input", text)) for name, text in named.items()}


def _settings(shards: int | None, state_store: str | None, checkpoint: str | None) -> dict[str, str]:
    """The session's settings: those that the checkpoint was made with, and else as given."""
    fixed = {} if checkpoint is None else checkpoints.settings_of(checkpoint)
    wanted = {checkpoints.PARTITIONS: str(shards or os.cpu_count() or 2)}
    if state_store is not None or not fixed:
        wanted[checkpoints.PROVIDER] = checkpoints.STORES[state_store or "default"]
    names = {checkpoints.PARTITIONS: ("--shards", shards), checkpoints.PROVIDER: ("--state-store", state_store)}
    for name, (option, given) in names.items():
        if given is not None and fixed.get(name, wanted[name]) != wanted[name]:
            raise InvalidOptionError(
                f"`{option} {given}` differs from what the checkpoint `{checkpoint}` was made with.",
                hint="leave it out, or start with a new checkpoint directory.",
            )
    return {**wanted, **fixed}


def _require_room(query: Query, frames: Any, demands: Mapping[str, Any]) -> None:
    """Refuse what has no bound, or may keep more than there is room for; of rules, when rates or a limit are given."""
    if isinstance(query, tocsin.Pattern):
        query.check(frames, **demands, streaming=True)
    elif demands["rates"] or demands["max_state"] is not None:
        query.check(None, **demands, streaming=True)


def _heartbeats(spark: SparkSession, time: str, like: DataFrame, time_unit: str | None) -> DataFrame:
    """Wall-clock time, every second, as the time column of an input."""
    from pyspark.sql import functions as F

    ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    kind = dict(like.dtypes).get(time)
    tick = Unit(time_unit or MICROSECONDS.name).microseconds
    whole = F.expr(f"(unix_micros(timestamp) * {tick.denominator}L) DIV {tick.numerator}L")
    now = whole if kind in ("bigint", "int") else F.col("timestamp").cast(kind or "timestamp")
    return ticks.select(now.alias(time))


# --- while it runs --------------------------------------------------------------------------------


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings; it may be that of a notebook or of tests, which get theirs back."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(*faults()):  # a signal to all processes may have ended the JVM
            for name, old in before.items():
                spark.conf.set(name, str(old))


def _run(spark: SparkSession, begin: Callable[[], StreamingQuery], watch: Watch) -> None:
    """Run the query until it ends or is stopped, and show its progress."""
    listener = tocsin.TocsinListener(watch.add, on_warning=watch.warn)
    spark.streams.addListener(listener)
    try:
        with watch.live(), _signals() as stop:
            query = begin()
            try:
                while query.isActive and not stop.wait(0.2):
                    pass
                failure = None if stop.is_set() else query.exception()
                query.stop()
                _wait_for_last(query, watch)
                if failure is not None:
                    raise failure
            except faults():
                # A supervisor signals all processes: the JVM may be gone before it can stop the query.
                if not stop.is_set():
                    raise
    finally:
        with suppress(*faults()):
            spark.streams.removeListener(listener)


def _sink(out: str | None, late: str | None, format: str) -> Callable[[DataFrame, int], None]:
    if out is None:
        return _print
    times = files.WRITTEN_TIMES if format == "json" else {}
    beside = None if late is None else absolute(late)
    return sinks.once(absolute(out), format=format, late=beside, **times)


def _print(frame: DataFrame, batch: int) -> None:
    """Every match as one line of JSON."""
    from pyspark.sql import functions as F

    for row in frame.select(F.to_json(F.struct("*"), files.WRITTEN_TIMES).alias("match")).collect():
        print(row["match"], flush=True)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a supervisor's SIGTERM set: to stop is how a stream ends, and no failure."""
    stop = threading.Event()
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait_for_last(query: StreamingQuery, watch: Watch) -> None:
    """Wait for the listener, which is called a little after a micro-batch has ended."""
    last = query.lastProgress
    patience = clock.monotonic() + PATIENCE_S
    while last is not None and (watch.last is None or watch.last.batch < last["batchId"]):
        if clock.monotonic() > patience:
            return
        clock.sleep(0.05)
