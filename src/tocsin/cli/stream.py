"""`tocsin stream`: match folders to which files are added, until somebody stops it or all is read."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tocsin
from tocsin import sinks
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import sources
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.cli import checkpoints, files, live_inputs, terminal
from tocsin.cli.programs import compiled_rules, is_program
from tocsin.cli.run import RATE, check_types, compiled
from tocsin.cli.run_rules import checked_rules, table_rows
from tocsin.cli.session import start
from tocsin.errors import InvalidOptionError, did_you_mean
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.options import FAIL, MOST_TASK_MEMORY, OPTIONS, check_option, microseconds
from tocsin.plan.constructs import counts_other_types
from tocsin.plan.strategies import refused_on_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tocsin.cli.watching import Watch

STREAM_FORMATS = ("parquet", "json")
CONSOLE = "-"
PATIENCE_S = 10.0  # for what Spark tells of the last micro-batch


@dataclass(frozen=True)
class Asked:
    """The options of `tocsin stream`; see its help."""

    file: str
    inputs: list[str]
    checkpoint: str | None = None
    out: str | None = None
    format: str = "parquet"
    late: str | None = None
    strict: bool = False
    schemas: list[str] = field(default_factory=list)
    input_format: str | None = None
    max_files: int | None = None
    time: str = "ts"
    time_unit: str | None = None
    type_column: str = "type"
    tie: list[str] = field(default_factory=list)
    id: str | None = None
    lateness: str = "0 seconds"
    emit: str = "auto"
    idle_timeout: str | None = None
    heartbeat: bool = False
    once: bool = False
    trigger: str = "1 second"
    shards: int | None = None
    state_store: str | None = None
    rates: list[str] = field(default_factory=list)
    max_state: str | None = None
    live_keys: int | None = None
    tables: list[str] = field(default_factory=list)
    strategy: str = "auto"
    most: int = MOST_MATCHES_PER_START
    memory: str = MOST_TASK_MEMORY
    language: str | None = None

    @property
    def shows(self) -> bool:
        """Whether matches are printed and not written."""
        return self.out in (None, CONSOLE)


def stream(asked: Asked) -> None:
    """Everything that can be refused is refused before Spark starts, but for what needs the columns of files."""
    _check(asked)
    # What fails in a micro-batch is told once, and clearly; the bridge to the JVM would show its stack too.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    paths = files.input_paths(asked.inputs)
    every = [paths] if isinstance(paths, str) else list(paths.values())
    for path in every:
        live_inputs.check_folder(path, asked.input_format)
    schemas = live_inputs.schemas_of(asked.schemas, paths)
    given_tables = files.named_values(asked.tables, "--table", "registered=recipients.csv")
    for path in given_tables.values():
        files.check_exists(path)
    kept = asked.checkpoint if asked.checkpoint is not None and not files.is_remote(asked.checkpoint) else None

    def known(query: alg.Query) -> DataFrame | dict[str, DataFrame]:
        check_types(query, paths)
        before = {} if kept is None else checkpoints.schemas_in(kept)
        return _inputs(start(), asked, paths, {**before, **schemas}, list(alg.event_types(query.pattern)))

    query = _compiled(asked, paths, None if given_tables else {}, known)
    out = None if asked.shows else asked.out
    for place in filter(None, (out, asked.late)):
        files.check_output(place, "append", paths)
    if asked.checkpoint is not None:
        checkpoints.check_checkpoint(asked.checkpoint, out, paths)
    fixed = {} if kept is None else checkpoints.settings_of(kept)
    schemas = schemas if kept is None else {**checkpoints.schemas_in(kept), **schemas}
    settings = _settings(asked, fixed)
    steps = terminal.Steps()
    with steps.step("Starting Spark"):
        spark = start()
    with ExitStack() as stack:
        stack.enter_context(_configured(spark, settings))
        with steps.step("Reading"):
            if query is None:
                rows = {name: table_rows(spark, at) for name, at in given_tables.items()}
                query = _compiled(asked, paths, rows, known)
                assert query is not None
            inputs = _inputs(spark, asked, paths, schemas, _wanted(query, paths))
            first = inputs if not isinstance(inputs, dict) else next(iter(inputs.values()))
            _require_room(query, asked, inputs)
            with terminal.showing_warnings():
                matches = query.match(inputs, **_options(asked, spark, first))
            if not asked.shows:
                sinks.check_columns(
                    matches, hint="call it something else: `RETURN … AS …`, or another name of the rule."
                )
        from tocsin.cli.watching import Watch

        watch = Watch(
            has_clock_times=dict(first.dtypes).get(asked.time, "").startswith("timestamp"),
            rates=files.named_values(asked.rates, "--rate", RATE) or None,
            unit=Unit(asked.time_unit or MICROSECONDS.name),
        )
        checkpoint = asked.checkpoint or stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-checkpoint-"))
        if not files.is_remote(checkpoint):
            frames = inputs if isinstance(inputs, dict) else {"": inputs}
            checkpoints.keep_schemas(checkpoint, {name: live_inputs.ddl_of(one) for name, one in frames.items()})
        with files.running(every, writes=out), checkpoints.using(checkpoint):
            _run(spark, matches, asked, checkpoint, watch)
    terminal.err().print(watch.summary())
    if out is not None:
        terminal.err().print(f"Written to {out} as {asked.format}.")


# --- what is asked --------------------------------------------------------------------------------


def _check(asked: Asked) -> None:
    """Refuse options that do not go together."""
    for given, known, what in (
        (asked.format, STREAM_FORMATS, "format"),
        (asked.state_store or "default", checkpoints.STORES, "state store"),
    ):
        if given not in known:
            raise InvalidOptionError(f"There is no {what} `{given}`.", hint=did_you_mean(given, known, f"{what}s"))
    if asked.checkpoint is None and not asked.shows:
        raise InvalidOptionError(
            "There is no checkpoint, and `--out` writes what has to be written once.",
            hint="add `--checkpoint DIR`: Spark keeps there how far it is, and a restart goes on from there.",
        )
    if asked.late is not None and asked.shows:
        raise InvalidOptionError("`--late` writes beside the matches.", hint="add `--out DIR` and `--checkpoint DIR`.")
    if asked.late is not None and asked.strict:
        raise InvalidOptionError(
            "`--late` keeps events that came too late, and `--strict` stops there.", hint="give one of them."
        )
    if asked.once and (asked.heartbeat or asked.idle_timeout is not None):
        name = "--heartbeat" if asked.heartbeat else "--idle-timeout"
        raise InvalidOptionError(
            f"`{name}` goes by the clock on the wall, and `--once` stops when all is read.", hint="give one of them."
        )
    for name, number in (
        ("shards", asked.shards),
        ("max-files", asked.max_files),
        ("max-matches-per-start", asked.most),
    ):
        if number is not None and number < 1:
            raise InvalidOptionError(f"`--{name} {number}` is no number from 1 on.", hint="leave it out.")
    check_option("strategy", asked.strategy)
    if asked.strategy == "join":
        raise InvalidOptionError(
            "`--strategy join` leaves the state to Spark, and there is nothing to watch.",
            hint='leave it out; in Python, `match(…, strategy="join")` runs joins of streams.',
        )
    OPTIONS["max_task_memory"].check("--max-task-memory", asked.memory)
    microseconds(asked.trigger)
    microseconds(asked.lateness)


def _compiled(
    asked: Asked,
    paths: Mapping[str, str] | str,
    tables: Mapping[str, Any] | None,
    schemas: Callable[[alg.Query], Any],
) -> tocsin.Pattern | tocsin.Rules | None:
    """The pattern or program, unless it cannot run; None while the tables that a program asks are not read."""
    if is_program(asked.file, asked.language):
        return None if tables is None else checked_rules(compiled_rules(asked.file, [], tables=tables), paths)
    if asked.tables:
        raise InvalidOptionError("`--table` is for programs of rules.", hint="leave it out.")
    pattern = compiled(asked.file, asked.language, schemas, time=asked.time, type_column=asked.type_column)
    refusal = refused_on_streams(pattern.query, asked.strategy)
    if refusal is not None:
        raise refusal
    check_types(pattern.query, paths)
    return pattern


def _settings(asked: Asked, fixed: Mapping[str, str]) -> dict[str, str]:
    """The session's settings: those that the checkpoint was made with, and else as asked."""
    wanted = {checkpoints.PARTITIONS: str(asked.shards or os.cpu_count() or 2)}
    if asked.state_store is not None or not fixed:
        wanted[checkpoints.PROVIDER] = checkpoints.STORES[asked.state_store or "default"]
    names = {checkpoints.PARTITIONS: asked.shards, checkpoints.PROVIDER: asked.state_store}
    for name, given in names.items():
        if given is not None and name in fixed and fixed[name] != wanted[name]:
            option = "--shards" if name == checkpoints.PARTITIONS else "--state-store"
            raise InvalidOptionError(
                f"`{option} {given}` differs from what the checkpoint `{asked.checkpoint}` was made with.",
                hint="leave it out, or start with a new checkpoint directory.",
            )
    return {**wanted, **fixed}


def _wanted(query: tocsin.Pattern | tocsin.Rules, paths: Mapping[str, str] | str) -> list[str]:
    """The types whose inputs are read."""
    if isinstance(query, tocsin.Rules):
        return [name for name in paths if name in query.program.read or name in sources(query.program)]
    # Neighbours may be events of every input, named by the pattern or not (R17); else they need not be read.
    return list(paths) if counts_other_types(query.query) else list(alg.event_types(query.query.pattern))


def _inputs(
    spark: SparkSession, asked: Asked, paths: Mapping[str, str] | str, schemas: Mapping[str, str], wanted: list[str]
) -> DataFrame | dict[str, DataFrame]:
    def read(name: str, path: str) -> DataFrame:
        return live_inputs.read_stream(
            spark, path, schema=schemas.get(name), format=asked.input_format, most_files=asked.max_files
        )

    return read("", paths) if isinstance(paths, str) else {name: read(name, paths[name]) for name in wanted}


def _require_room(query: tocsin.Pattern | tocsin.Rules, asked: Asked, inputs: Any) -> None:
    """Refuse what has no bound, or may keep more than there is room for."""
    rates = files.named_values(asked.rates, "--rate", RATE) or None
    demands: dict[str, Any] = {"max_state": asked.max_state, "live_keys": asked.live_keys, "lateness": asked.lateness}
    columns: dict[str, Any] = {"time": asked.time, "tie": asked.tie, "type": asked.type_column}
    if isinstance(query, tocsin.Rules):
        if rates or asked.max_state is not None:
            query.check(None, rates, **columns, time_unit=asked.time_unit, streaming=True, **demands)
        return
    query.check(inputs, rates, **columns, time_unit=asked.time_unit, streaming=True, **demands)


def _options(asked: Asked, spark: SparkSession, first: DataFrame) -> dict[str, Any]:
    """What `match` is asked for."""
    return {
        "time": asked.time,
        "time_unit": asked.time_unit,
        "type": asked.type_column,
        "tie": asked.tie or None,
        "id": asked.id,
        "lateness": asked.lateness,
        "idle_timeout": asked.idle_timeout,
        "heartbeats": live_inputs.beats(spark, asked.time, first, asked.time_unit) if asked.heartbeat else None,
        "late": FAIL if asked.strict else asked.late is not None,
        "shards": asked.shards,
        "rates": files.named_values(asked.rates, "--rate", RATE) or None,
        "emit": asked.emit,
        "strategy": asked.strategy,
        "max_matches_per_start": asked.most,
        "max_task_memory": asked.memory,
    }


# --- running --------------------------------------------------------------------------------------


@contextmanager
def _configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings; it may be that of a notebook or of tests, which get theirs back."""
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with files.spark_errors():  # a signal to all processes may have ended the JVM
            for name, old in before.items():
                spark.conf.set(name, str(old))


def _run(spark: SparkSession, matches: DataFrame, asked: Asked, checkpoint: str, watch: Watch) -> None:
    """Run the query until it ends or is asked to, and show what it tells."""
    listener = tocsin.TocsinListener(watch.told, on_warning=watch.warn)
    spark.streams.addListener(listener)
    place = checkpoint if files.is_remote(checkpoint) else str(files.local(checkpoint).resolve())
    every_ms = microseconds(asked.trigger) // 1000
    trigger: dict[str, Any] = {"availableNow": True} if asked.once else {"processingTime": f"{every_ms} milliseconds"}
    try:
        with watch.shown(), _asked_to_stop() as stop:
            writer = matches.writeStream.queryName("tocsin").option("checkpointLocation", place)
            query = writer.foreachBatch(_sink(asked)).trigger(**trigger).start()
            with files.spark_errors() as fault:
                while query.isActive and not stop.wait(0.2):
                    pass
                failure = None if stop.is_set() else query.exception()
                query.stop()
                _wait_for_last(query, watch)
                if failure is not None:
                    raise failure
            # A supervisor signals all processes: the JVM may be gone before it can be asked to stop.
            if fault.error is not None and not stop.is_set():
                raise fault.error
    finally:
        with files.spark_errors():
            spark.streams.removeListener(listener)


def _sink(asked: Asked) -> Callable[[DataFrame, int], None]:
    if asked.shows:
        return _print
    assert asked.out is not None
    options = files.WRITTEN_TIMES if asked.format == "json" else {}
    late = None if asked.late is None else _absolute(asked.late)
    return sinks.once(_absolute(asked.out), format=asked.format, late=late, **options)


def _absolute(path: str) -> str:
    return path if files.is_remote(path) else str(files.local(path).resolve())


def _print(frame: DataFrame, batch: int) -> None:
    """Every match as one line of JSON."""
    from pyspark.sql import functions as F

    for row in frame.select(F.to_json(F.struct("*"), files.WRITTEN_TIMES).alias("match")).collect():
        print(row["match"], flush=True)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and a supervisor's SIGTERM set: to stop is how a stream ends, and no failure."""
    stop = threading.Event()
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _wait_for_last(query: StreamingQuery, watch: Watch) -> None:
    """Listeners hear of a micro-batch a little later than the query knows it."""
    last = query.lastProgress
    patience = clock.monotonic() + PATIENCE_S
    while last is not None and (watch.last is None or watch.last.batch < last["batchId"]):
        if clock.monotonic() > patience:
            return
        clock.sleep(0.05)
