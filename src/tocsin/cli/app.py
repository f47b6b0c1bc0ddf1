"""The commands and their options; what they do is in the modules beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

import tocsin
from tocsin.cli import terminal
from tocsin.cli.programs import module_folders
from tocsin.errors import InvalidOptionError, did_you_mean
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.options import MOST_TASK_MEMORY, STRATEGIES, STREAM, strategies_in


def _show_version(asked: bool) -> None:
    if asked:
        print(f"tocsin {tocsin.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="tocsin",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Find sequences of events in files, on a local Spark.",
    epilog="New here? `tocsin demo` shows rules, a stream and its matches.",
)


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--modules",
            metavar="FOLDER",
            help="Rules may also `use` modules of this folder. May be given several times.",
        ),
    ] = None,
) -> None:
    """Find sequences of events in files, on a local Spark."""
    module_folders.set(tuple(modules or ()))


PatternFile = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN_FILE", help="A file with a pattern (`.sase`, `.acel`) or rules (`.parte`), or `-` for stdin."
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="TYPE=PATH",
        help="Events of one type: a parquet, csv or json file, or a directory of them. Once per type; or one PATH "
        "without `TYPE=`, whose rows name their type.",
    ),
]
Time = Annotated[str, typer.Option("--time", "-t", help="The time column: timestamps, or integers.")]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", help="What integer times count: s, ms, us (the default) or ns.")
]
TypeColumn = Annotated[str, typer.Option("--type-column", help="The type column of a single input.")]
Strategy = Annotated[
    str,
    typer.Option("--strategy", help=f"How to run it: {', '.join(STRATEGIES)}; `tocsin explain` tells what auto takes."),
]
LIVE_STRATEGIES = tuple(name for name in strategies_in(STREAM) if name != "join")  # whose state Tocsin has
LiveStrategy = Annotated[str, typer.Option("--strategy", help=f"How to run it: {', '.join(LIVE_STRATEGIES)}.")]
Tie = Annotated[
    list[str] | None, typer.Option("--tie", help="A column that orders events of one instant; may be repeated.")
]
Id = Annotated[str | None, typer.Option("--id", help="A column that identifies an event.")]
MostMatches = Annotated[
    int, typer.Option("--max-matches-per-start", metavar="NUMBER", help="Stop when one event begins more matches.")
]
MaxTaskMemory = Annotated[
    str,
    typer.Option(
        "--max-task-memory",
        metavar="SIZE",
        help="Stop a task whose matches need more memory, as in `2GB`; as many tasks run at once as there are cores.",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="A reference table that rules ask, as in `registered`."),
]
Rates = Annotated[
    list[str] | None,
    typer.Option("--rate", "-r", metavar="TYPE=RATE", help="The largest rate of a type, as in `Login=100/s`."),
]
MaxState = Annotated[
    str | None, typer.Option("--max-state", metavar="SIZE", help="Refuse what may keep more: `4GB`, `64 kB per key`.")
]
LiveKeys = Annotated[int | None, typer.Option("--live-keys", help="How many keys are live at once, for rates per key.")]
Functions = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="NAME=TYPE",
        help="A function of your own that rules call, as in `uncommon_route=boolean`.",
    ),
]
Language = Annotated[
    str | None, typer.Option("--language", "-l", help="The language, when the file's ending does not tell it.")
]


@app.command()
@terminal.failing_clearly
def run(
    file: PatternFile,
    input: Inputs = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="PATH", help="Where the matches go; without it, see the first.")
    ] = None,
    time: Time = "ts",
    time_unit: TimeUnit = None,
    format: Annotated[str, typer.Option("--format", "-f", help="parquet, csv or json.")] = "parquet",
    mode: Annotated[str, typer.Option("--mode", help="What if PATH is there: error, overwrite or append.")] = "error",
    type_column: TypeColumn = "type",
    tie: Tie = None,
    id: Id = None,
    strategy: Strategy = "auto",
    rate: Rates = None,
    max_matches_per_start: MostMatches = MOST_MATCHES_PER_START,
    max_task_memory: MaxTaskMemory = MOST_TASK_MEMORY,
    table: Tables = None,
    language: Language = None,
) -> None:
    r"""Find the matches of a pattern, or of all rules of a program, in files.

    See the first matches:

        tocsin run takeover.sase --input Login=logins.csv --input Transfer=sent.csv

    Write all of them, from one file whose column `kind` names the event type:

        tocsin run takeover.sase --input all.csv --type-column kind --out matches

    All rules of a program in one run, each with a folder of its own, as has each template that they emit:

        tocsin run bank.parte --input all.csv --table known=known.csv --out found

    Let the matches of one event, and of one task, be more than usual:

        tocsin run takeover.sase --input events.parquet --out matches \
                                 --max-matches-per-start 1000000 --max-task-memory 2GB

    A result that is there already is never lost: `--mode overwrite` replaces it when the new one is complete.
    """
    from tocsin.cli.run import run as command

    command(
        file,
        inputs=input or [],
        out=out,
        time=time,
        time_unit=time_unit,
        format=format,
        mode=mode,
        type_column=type_column,
        tie=tie or [],
        id=id,
        language=language,
        strategy=strategy,
        rates=rate or [],
        most=max_matches_per_start,
        memory=max_task_memory,
        tables=table or [],
    )


@app.command()
@terminal.failing_clearly
def stream(
    file: PatternFile,
    input: Inputs = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", "-c", metavar="DIR", help="Where Spark keeps how far it is; a restart goes on."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where the matches go; without it, or `-`, see them as JSON."),
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help="parquet or json.")] = "parquet",
    late: Annotated[
        str | None, typer.Option("--late", metavar="DIR", help="Where events go that came too late.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop when an event comes too late.")] = False,
    lateness: Annotated[str, typer.Option("--lateness", help="How late events may come: `10 seconds`.")] = "0 seconds",
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and stop.")] = False,
    trigger: Annotated[str, typer.Option("--trigger", help="How often to look for new files.")] = "1 second",
    emit: Annotated[
        str, typer.Option("--emit", help="auto: as soon as nothing can change a match; watermark: in order of time.")
    ] = "auto",
    heartbeat: Annotated[
        bool, typer.Option("--heartbeat", help="Let the clock on the wall move time on, where inputs are silent.")
    ] = False,
    idle_timeout: Annotated[
        str | None, typer.Option("--idle-timeout", help="Wait no longer for an input that is silent: `1 minute`.")
    ] = None,
    time: Time = "ts",
    time_unit: TimeUnit = None,
    type_column: TypeColumn = "type",
    tie: Tie = None,
    id: Id = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema", "-s", metavar="TYPE=SCHEMA", help="The columns, where files that are there do not tell them."
        ),
    ] = None,
    input_format: Annotated[
        str | None, typer.Option("--input-format", help="parquet, csv or json, for folders that are still empty.")
    ] = None,
    max_files: Annotated[
        int | None, typer.Option("--max-files", help="How many files of an input a micro-batch may take.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option("--shards", help="How many parts keys are spread over; by default one per core.")
    ] = None,
    state_store: Annotated[
        str | None, typer.Option("--state-store", help="default (in memory) or rocksdb (on disk).")
    ] = None,
    strategy: LiveStrategy = "auto",
    rate: Rates = None,
    max_state: MaxState = None,
    live_keys: LiveKeys = None,
    max_matches_per_start: MostMatches = MOST_MATCHES_PER_START,
    max_task_memory: MaxTaskMemory = MOST_TASK_MEMORY,
    table: Tables = None,
    language: Language = None,
) -> None:
    r"""Match folders to which files are added, until you stop it with Ctrl-C.

    See matches as they are found:

        tocsin stream takeover.sase --input Login=logins/ --input Transfer=sent/ --lateness "1 minute"

    Write them, each once, also across restarts and crashes; late events go beside them:

        tocsin stream takeover.sase --input events/ --lateness "1 minute" \
                                    --checkpoint checkpoint/ --out matches/ --late late/

    Take what has come since the last time, and stop, as from cron:

        tocsin stream takeover.sase --input events/ --checkpoint checkpoint/ --out matches/ --once

    Be told when a source sends more than was declared, and refuse to start with too little room:

        tocsin stream takeover.sase --input events/ --rate Login=100/s --rate Transfer=20/s --max-state 1GB

    Files should be moved into a folder when they are complete. A line that cannot be read is counted as an event
    without a time; it stops nothing.
    """
    from tocsin.cli.stream import Asked
    from tocsin.cli.stream import stream as command

    command(
        Asked(
            file,
            input or [],
            checkpoint=checkpoint,
            out=out,
            format=format,
            late=late,
            strict=strict,
            schemas=schema or [],
            input_format=input_format,
            max_files=max_files,
            time=time,
            time_unit=time_unit,
            type_column=type_column,
            tie=tie or [],
            id=id,
            lateness=lateness,
            emit=emit,
            idle_timeout=idle_timeout,
            heartbeat=heartbeat,
            once=once,
            trigger=trigger,
            shards=shards,
            state_store=state_store,
            strategy=strategy,
            rates=rate or [],
            max_state=max_state,
            live_keys=live_keys,
            tables=table or [],
            most=max_matches_per_start,
            memory=max_task_memory,
            language=language,
        )
    )


@app.command()
@terminal.failing_clearly
def check(
    file: PatternFile,
    input: Inputs = None,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", "-s", metavar="TYPE=SCHEMA", help="`attr type, attr type`, or a JSON file."),
    ] = None,
    rate: Rates = None,
    time: Time = "ts",
    time_unit: TimeUnit = None,
    type_column: TypeColumn = "type",
    tie: Tie = None,
    lateness: Annotated[str | None, typer.Option("--lateness", help="How late events may come: `10 seconds`.")] = None,
    streaming: Annotated[bool, typer.Option("--streaming", help="Refuse what no finite state can run.")] = False,
    max_state: MaxState = None,
    live_keys: LiveKeys = None,
    format: Annotated[str, typer.Option("--format", "-f", help="text or json.")] = "text",
    function: Functions = None,
    language: Language = None,
) -> None:
    r"""Check a pattern: all errors at once; then distances, lifetimes, keys and the size of its state.

    Names and structure only:

        tocsin check takeover.sase

    Against schemas, without Spark; each may also be a JSON file:

        tocsin check takeover.sase --schema "Login=ts timestamp, user string" \
                                   --schema Transfer=transfer.json

    How much would it remember on a live stream?

        tocsin check takeover.sase --input events.parquet --streaming \
                                   --rate Login=100/s --rate Transfer=20/s

    Fail when that may be more than there is room for:

        tocsin check fraud.parte --rate Transfer=10/ms --max-state 4GB
    """
    from tocsin.cli.check import check as command

    command(
        file,
        inputs=input or [],
        schemas=schema or [],
        rates=rate or [],
        time=time,
        time_unit=time_unit,
        type_column=type_column,
        tie=tie or [],
        lateness=lateness,
        streaming=streaming,
        max_state=max_state,
        live_keys=live_keys,
        format=format,
        language=language,
        functions=function or [],
    )


@app.command()
@terminal.failing_clearly
def explain(
    file: PatternFile,
    input: Inputs = None,
    mode: Annotated[
        str, typer.Option("--mode", help="Spark's plan: simple, extended, codegen, cost, formatted.")
    ] = "simple",
    time: Time = "ts",
    time_unit: TimeUnit = None,
    type_column: TypeColumn = "type",
    tie: Tie = None,
    strategy: Strategy = "auto",
    function: Functions = None,
    language: Language = None,
) -> None:
    """Explain how a pattern is understood and run; with inputs, Spark's own plan too.

    Without data:

        tocsin explain takeover.sase

    With Spark's plan:

        tocsin explain takeover.sase --input events.parquet --mode formatted
    """
    from tocsin.cli.check import explain as command

    command(
        file,
        inputs=input or [],
        mode=mode,
        time=time,
        time_unit=time_unit,
        type_column=type_column,
        tie=tie or [],
        strategy=strategy,
        language=language,
        functions=function or [],
    )


@app.command()
@terminal.failing_clearly
def demo(
    name: Annotated[
        str, typer.Argument(metavar="[fraud|bank]", help="Rules on transfers, or a pattern on logins.")
    ] = "fraud",
    picture: Annotated[
        str | None, typer.Option("--picture", metavar="PATH", help="Save a picture of the matches too, as .svg.")
    ] = None,
) -> None:
    """Find frauds in a bundled stream: rules, timelines, what was found and what was not.

    There is nothing to prepare:

        tocsin demo

    Account takeovers, by a pattern:

        tocsin demo bank

    It runs on a local Spark and needs nothing but a JDK.
    """
    if name == "bank" and picture is None:
        from tocsin.cli.demo_bank import demo as bank

        bank()
    elif name == "fraud":
        from tocsin.cli.demo_fraud import demo as fraud

        fraud(picture)
    elif name == "bank":
        raise InvalidOptionError("`tocsin demo bank` draws no picture.", hint="leave out `--picture`.")
    else:
        raise InvalidOptionError(f"There is no demo `{name}`.", hint=did_you_mean(name, ("fraud", "bank"), "demos"))
