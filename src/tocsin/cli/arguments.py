"""The options of the commands: their help, the arguments of the library that they stand for, and their values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import tocsin
import tocsin.plan.strategies  # registers the strategies that help texts list
from tocsin.errors import InvalidOptionError, did_you_mean
from tocsin.options import FAIL, OPTIONS, STRATEGIES, STREAM, Options, strategies_in

LANGUAGES = {".sase": "sase", ".acel": "acel", ".parte": "parte"}

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
TimeUnit = Annotated[str | None, typer.Option(help="What integer times count: s, ms, us (the default) or ns.")]
TypeColumn = Annotated[str, typer.Option(help="The type column of a single input.")]
Engine = Annotated[
    str,
    typer.Option(
        help="Where to run it: spark, or local, in this process, at once and without Java; inputs must fit into memory."
    ),
]
Strategy = Annotated[
    str, typer.Option(help=f"How to run it: {', '.join(STRATEGIES)}; `tocsin explain` shows what auto chooses.")
]
LIVE_STRATEGIES = tuple(name for name in strategies_in(STREAM) if name != "join")  # whose state Tocsin has
LiveStrategy = Annotated[str, typer.Option(help=f"How to run it: {', '.join(LIVE_STRATEGIES)}.")]
Tie = Annotated[list[str] | None, typer.Option(help="A column that orders events of one instant; may be repeated.")]
Id = Annotated[str | None, typer.Option(help="A column that identifies an event.")]
MostMatches = Annotated[int, typer.Option(metavar="NUMBER", help="Stop when one event begins more matches.")]
MaxTaskMemory = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Stop a task whose matches need more memory, as in `2GB`; as many tasks run at once as there are cores.",
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PATH", help="A reference table of the rules, as in `registered=recipients.csv`."),
]
Rates = Annotated[
    list[str] | None,
    typer.Option("--rate", "-r", metavar="TYPE=RATE", help="The largest rate of a type, as in `Login=100/s`."),
]
MaxState = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Refuse what may keep more: `4GB`, `64 kB per key`.")
]
LiveKeys = Annotated[int | None, typer.Option(help="How many keys are live at once, for rates per key.")]
Functions = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=TYPE", help="A function of your own that rules call, as in `uncommon_route=boolean`."),
]
Language = Annotated[
    str | None,
    typer.Option("--language", "-l", help="The language, when it does not follow from the ending of the file."),
]


# --- from the shell to Python and back ------------------------------------------------------------

# Options of `match` that have another name on the command line, or none.
OTHER_FLAGS = {"type": "--type-column", "rates": "--rate", "heartbeats": "--heartbeat"}
OF_PYTHON = ("form", "statistics")
FLAGS = {
    name: OTHER_FLAGS.get(name, f"--{name.replace('_', '-')}")
    for name in (*OPTIONS, "max_state", "live_keys")
    if name not in OF_PYTHON
}


def keywords(given: Mapping[str, Any], method: Callable[..., Any]) -> dict[str, Any]:
    """The options of a command as arguments of a method of `Pattern` or `Rules`: those that it has."""
    arguments = {
        **given,
        "type": given["type_column"],
        "tie": given["tie"] or None,
        "rates": named_values(given.get("rate"), "--rate", "Login=100/s") or None,
        "late": FAIL if given.get("strict") else given.get("late") is not None,
    }
    return {name: arguments[name] for name in inspect.signature(method).parameters if name in arguments}


def match_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command as those of `match`; values that they cannot have are refused, all at once."""
    options = keywords(given, tocsin.Pattern.match)
    Options.checked(options, of_rules=is_program(given))
    return options


def is_program(given: Mapping[str, Any]) -> bool:
    """Whether the file of a command holds rules, by its language or its ending."""
    return (given["language"] or LANGUAGES.get(Path(given["file"]).suffix)) == "parte"


def as_flags(text: str) -> str:
    """A text in which options of Python are those of the shell.

    >>> print(as_flags('`shards=7` has no effect with `strategy="join"`. Choose one with `tie= and id=`.'))
    `--shards 7` has no effect with `--strategy join`. Choose one with `--tie` and `--id`.
    """

    def flag(found: re.Match[str]) -> str:
        name, value = found[1], found[2].strip("'\"")
        return found[0] if name not in FLAGS else f"`{FLAGS[name]}{' ' * bool(value)}{value}`"

    return re.sub(r"`(\w+)=([^`]*)`", flag, text.replace("`tie= and id=`", "`tie=` and `id=`"))


def named_values(given: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """`TYPE=VALUE` options as a dictionary."""
    named: dict[str, str] = {}
    for text in given or ():
        name, found, value = text.partition("=")
        if not found or not name or not value:
            raise InvalidOptionError(
                f"`{option} {text}` does not say which event type it is for.", hint=f"write `{option} {example}`."
            )
        if name in named:
            raise InvalidOptionError(
                f"`{option}` is given twice for the event type `{name}`.", hint="give one path; it may be a directory."
            )
        named[name] = value
    return named


def check_choice(what: str, given: str, known: Collection[str]) -> None:
    """Refuse a word that is none of those that an option may have."""
    if given not in known:
        raise InvalidOptionError(f"There is no {what} `{given}`.", hint=did_you_mean(given, known, f"{what}s"))


def without_effect(option: str, why: str) -> InvalidOptionError:
    """An option that would change nothing."""
    return InvalidOptionError(f"`{option}` has no effect {why}.", hint="leave it out.")
