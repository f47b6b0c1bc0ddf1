"""Output of the command line: results on stdout, everything else on stderr, color only on terminals.

rich leaves color out when `NO_COLOR` is set or the output is not a terminal.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tocsin.cli.arguments import as_flags
from tocsin.errors import (
    InvalidOptionError,
    MatchError,
    MissingColumnError,
    QueryErrors,
    TimeTypeError,
    TocsinError,
    TocsinWarning,
)

P = ParamSpec("P")


def out() -> Console:
    """Where results go; made anew, since tests and pipes exchange stdout."""
    console = Console(soft_wrap=True, highlight=False)
    # In a file or pipe a table may be as wide as it likes: nothing is cut or folded.
    return console if console.is_terminal else Console(soft_wrap=True, highlight=False, width=1000)


def err() -> Console:
    """Where everything else goes."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def failing_clearly(command: Callable[P, None]) -> Callable[P, None]:
    """A command that ends with the report of a TocsinError and exit code 1, without a traceback."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            command(*arguments, **options)
        except TocsinError as error:
            _in_words_of_the_shell(error)
            if options.get("format") == "json" and command.__name__ == "check":
                print(json.dumps({"ok": False, "error": error.to_dict()}, indent=2))
            else:
                _report(error)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            err().print("Interrupted; nothing was written.")
            raise typer.Exit(130) from None

    return run


TIMES_OF_FILES = (
    "times are timestamps, or integers in microseconds, alike in all inputs; csv and json files write them as "
    "`2026-01-31T08:00:00.123456Z` (a blank for the T is fine, seconds and zone may be missing, no zone is UTC). "
    "Choose the column with `--time`."
)


def _in_words_of_the_shell(error: TocsinError) -> None:
    """Replace advice on Python by advice on files and options of the command line."""
    for each in error.errors if isinstance(error, QueryErrors) else (error,):
        if isinstance(each, TimeTypeError):
            each.hint = TIMES_OF_FILES
        elif isinstance(each, MissingColumnError | InvalidOptionError | MatchError):
            each.message = as_flags(each.message)
            each.hint = None if each.hint is None else as_flags(each.hint)


def _report(error: TocsinError) -> None:
    first, *rest = str(error).split("\n")
    text = Text(first, style="bold red")
    for line in rest:
        text.append("\n" + line, style="green" if line.startswith("Hint:") else "")
    err().print(text)


def several(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts.

    >>> several(1, "event"), several(2000, "match", "matches")
    ('1 event', '2,000 matches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def warn(given: Sequence[TocsinWarning]) -> None:
    """Show the warnings of a pattern."""
    for warning in given:
        err().print(Text(str(warning), style="yellow"))


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Show warnings that planning gives, without the places in code that Python would add."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", TocsinWarning)
        yield
    messages = {str(one.message): one.message for one in given if isinstance(one.message, TocsinWarning)}
    warn(list(messages.values()))
    for one in given:
        if not isinstance(one.message, TocsinWarning):
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@dataclass
class Steps:
    """The steps of a command, shown while they run with what `progress` returns, and the time each took."""

    progress: Callable[[], str] = str  # nothing, until Spark runs
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Show the step while it runs."""
        began = time.perf_counter()
        with _live(words, self.progress) if err().is_terminal else nullcontext():
            yield
        self.seconds[words] = time.perf_counter() - began

    def table(self) -> Table:
        """Where the time went."""
        total = sum(self.seconds.values()) or 1.0
        table = Table(box=None, show_header=False, pad_edge=False)
        for words, seconds in self.seconds.items():
            bar = "█" * max(1, round(30 * seconds / total))
            table.add_row(words, f"{seconds:6.1f} s", Text(bar, style="cyan"))
        return table


@contextmanager
def _live(words: str, progress: Callable[[], str]) -> Iterator[None]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Words(TextColumn):
        def render(self, task: Any) -> Text:
            return Text(f"{words}  {progress()}".rstrip())

    columns = (SpinnerColumn(), Words(""), TimeElapsedColumn())
    # A stream of its own: stderr itself is lent to the JVM while that starts.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding) as stream:
        console = Console(file=stream, force_terminal=True)
        with Progress(*columns, console=console, transient=True, refresh_per_second=4) as shown:
            shown.add_task(words, total=None)
            yield


def rows_table(columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Table:
    """A table of text; NULL is shown dim."""
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(cell) for cell in row))
    return table
