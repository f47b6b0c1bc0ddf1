"""What engines with Spark and without it say alike of inputs that they refuse."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin import errors


def missing(column: str, known: Iterable[str], owner: str, option: str, what: str) -> errors.MissingColumnError:
    """Of a column that is not there."""
    return errors.MissingColumnError(
        f"There is no {what} `{column}` in {owner}.",
        hint=errors.did_you_mean(column, known, "its columns") + f" Choose one with `{option}`.",
    )


def untimed(name: str) -> errors.InvalidOptionError:
    """The error for an event type that a mapping of time columns leaves out."""
    return errors.InvalidOptionError(
        f"`time=` names no time column for the event type `{name}`.",
        hint=f"add it: `time={{..., {name!r}: 'ts'}}`.",
    )


def unordered(option: str, name: str, dtype: str) -> errors.InvalidOptionError:
    """Of a column that shall order events, and cannot."""
    return errors.InvalidOptionError(
        f"`{option}` names `{name}`, whose values have no order: {dtype}.",
        hint="name columns of numbers, texts or times.",
    )
