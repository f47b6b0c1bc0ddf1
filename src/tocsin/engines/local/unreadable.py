"""What is wrong with files of events, in words for people."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from tocsin import errors

HINTS = {
    "csv": "every line must have the columns of the first one.",
    "json": "every line must be one object, from `{` to `}`, and an attribute has values of one type.",
    "parquet": "write it anew, or check that it was copied completely.",
}


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Report what the file system or Arrow refuses."""
    try:
        yield
    except OSError as problem:
        why = f"{problem.strerror}." if problem.strerror else first_sentence(problem)
        raise errors.InputNotReadableError(f"`{path}` cannot be read: {why}", hint=HINTS[kind]) from None
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as problem:
        raise errors.InputNotReadableError(
            f"`{path}` cannot be read: {first_sentence(problem)}", hint=HINTS[kind]
        ) from None


def first_sentence(problem: Exception) -> str:
    """The first line of a message of Arrow, as a sentence."""
    first = errors.message_of(problem).split("\n")[0].rstrip(".")
    return f"{first}."


@contextmanager
def of_one_schema(given: str) -> Iterator[None]:
    """Report that the files of an input have no schema together."""
    try:
        yield
    except pa.ArrowException as problem:
        raise errors.InputNotReadableError(
            f"The files of `{given}` have columns of one name and different types: {first_sentence(problem)}",
            hint="write them with one schema, or read them as inputs of their own.",
        ) from None


def require_distinct(names: Sequence[str], path: Path) -> None:
    """Refuse columns without a name, and those that Spark does not tell apart."""
    counts = Counter(name.lower() for name in names)
    wrong = next((name for name in names if not name or counts[name.lower()] > 1), None)
    if wrong is not None:
        what = f"two columns called `{wrong}`, in any case of letters" if wrong else "a column without a name"
        raise errors.InputNotReadableError(f"`{path}` has {what}.", hint="give every column a name of its own.")
