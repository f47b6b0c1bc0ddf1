"""Errors of inputs that engines with Spark and without it refuse alike."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin import errors
from tocsin.analysis.names import RESERVED_PREFIX


def missing(column: str, known: Iterable[str], owner: str, option: str, what: str) -> errors.MissingColumnError:
    """A column that is not there."""
    return errors.MissingColumnError(
        f"There is no {what} `{column}` in {owner}.",
        hint=errors.did_you_mean(column, known, "its columns") + f" Choose one with `{option}`.",
    )


def reserved(column: str, owner: str) -> errors.ReservedNameError:
    """A column whose name has Tocsin's prefix."""
    return errors.ReservedNameError(
        f"The column `{column}` of {owner} has a name that Tocsin keeps for its own columns.",
        hint=f"rename it: names that start with `{RESERVED_PREFIX}` are reserved.",
    )


def unordered(option: str, name: str, dtype: str) -> errors.InvalidOptionError:
    """A column that shall order events, and cannot."""
    return errors.InvalidOptionError(
        f"`{option}` names `{name}`, whose values have no order: {dtype}.",
        hint="name columns of numbers, texts or times.",
    )
