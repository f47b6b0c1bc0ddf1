"""The commands and their options; what they do is in the modules beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

import tocsin
from tocsin.cli import terminal
from tocsin.errors import InvalidOptionError, did_you_mean
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.physical.claims import STRATEGIES


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
) -> None:
    """Find sequences of events in files, on a local Spark."""


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
Time = Annotated[str, typer.Option("--time", "-t", help="The time column: timestamps, or integers in microseconds.")]
TypeColumn = Annotated[str, typer.Option("--type-column", help="The type column of a single input.")]
Strategy = Annotated[
    str,
    typer.Option("--strategy", help=f"How to run it: {', '.join(STRATEGIES)}; `tocsin explain` tells what auto takes."),
]
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
    format: Annotated[str, typer.Option("--format", "-f", help="parquet, csv or json.")] = "parquet",
    mode: Annotated[str, typer.Option("--mode", help="What if PATH is there: error, overwrite or append.")] = "error",
    type_column: TypeColumn = "type",
    tie: Annotated[
        list[str] | None, typer.Option("--tie", help="A column that orders events of one instant; may be repeated.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="A column that identifies an event.")] = None,
    strategy: Strategy = "auto",
    max_matches_per_start: Annotated[
        int,
        typer.Option("--max-matches-per-start", metavar="NUMBER", help="Stop when one event begins more matches."),
    ] = MOST_MATCHES_PER_START,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME=PATH", help="A reference table that rules ask, as in `registered`."),
    ] = None,
    language: Language = None,
) -> None:
    r"""Find the matches of a pattern, or of all rules of a program, in files.

    See the first matches:

        tocsin run takeover.sase --input Login=logins.csv --input Transfer=sent.csv

    Write all of them, from one file whose column `kind` names the event type:

        tocsin run takeover.sase --input all.csv --type-column kind --out matches

    All rules of a program in one run, each with a folder of its own, as has each template that they emit:

        tocsin run bank.parte --input all.csv --table known=known.csv --out found

    A result that is there already is never lost: `--mode overwrite` replaces it when the new one is complete.
    """
    from tocsin.cli.run import run as command

    command(
        file,
        inputs=input or [],
        out=out,
        time=time,
        format=format,
        mode=mode,
        type_column=type_column,
        tie=tie or [],
        id=id,
        language=language,
        strategy=strategy,
        most=max_matches_per_start,
        tables=table or [],
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
    rate: Annotated[
        list[str] | None,
        typer.Option("--rate", "-r", metavar="TYPE=RATE", help="The largest rate of a type, as in `Login=100/s`."),
    ] = None,
    time: Time = "ts",
    type_column: TypeColumn = "type",
    lateness: Annotated[str | None, typer.Option("--lateness", help="How late events may come: `10 seconds`.")] = None,
    streaming: Annotated[bool, typer.Option("--streaming", help="Refuse what no finite state can run.")] = False,
    max_state: Annotated[
        str | None,
        typer.Option("--max-state", metavar="SIZE", help="Refuse what may keep more: `4GB`, `64 kB per key`."),
    ] = None,
    live_keys: Annotated[
        int | None, typer.Option("--live-keys", help="How many keys are live at once, for rates per key.")
    ] = None,
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
        type_column=type_column,
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
    type_column: TypeColumn = "type",
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
        type_column=type_column,
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
