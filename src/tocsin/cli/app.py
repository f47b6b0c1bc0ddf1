"""The command `tocsin`: what all commands have in common. Each command is a module beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

import tocsin
from tocsin.cli import terminal
from tocsin.cli.check import check, explain
from tocsin.cli.demo import demo
from tocsin.cli.queries import module_folders
from tocsin.cli.run import run
from tocsin.cli.stream import stream


def _show_version(is_given: bool) -> None:
    if is_given:
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


for command in (run, stream, check, explain, demo):
    app.command()(terminal.failing_clearly(command))
