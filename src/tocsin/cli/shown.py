"""How texts of programs and paths of files are shown."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from rich.syntax import Syntax
from rich.text import Text


def coloured(query: str) -> Text:
    """A query with colours, set in a little; rich leaves them out where there is no terminal."""
    # Set in by hand: rich fills the lines of a `Padding` up to the width of the console, which a file has none of.
    text = Syntax("", "sql", theme="ansi_dark", background_color="default").highlight(indent(query.strip(), "  "))
    text.rstrip()
    return text


def short(path: str | Path) -> str:
    """A path below the working directory, when it is there."""
    return str(Path(path).relative_to(Path.cwd())) if Path(path).is_relative_to(Path.cwd()) else str(path)
