"""Files in and out: patterns, inputs of three formats, and results that replace what was there only when complete."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tocsin import errors
from tocsin.cli import terminal
from tocsin.language.grammars import LONGEST_TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy")
LANGUAGES = {".sase": "sase", ".acel": "acel", ".parte": "parte"}
MODES = ("error", "overwrite", "append")
# Left to itself Spark writes milliseconds.
WRITTEN_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
# Left to itself Spark takes "12:30", "2026-01" and even the account "12345" for times.
READ_TIMES = "yyyy-M-d['T'][ ]H:mm[:ss[.SSSSSSSSS]][ ][XXX][XX][X][VV]"
READ: dict[str, dict[str, Any]] = {
    "parquet": {},
    "json": {"inferTimestamp": True, "timestampFormat": READ_TIMES},
    # A quoted value may hold line breaks, so that a file cannot be split into lines and is read by one task.
    "csv": {
        "header": True,
        "inferSchema": True,
        "enforceSchema": False,
        "escape": '"',
        "multiLine": True,
        "timestampFormat": READ_TIMES,
    },
}
NESTED = ("struct", "array", "map", "variant")


def read_pattern(file: str, language: str | None) -> tuple[str, str, str]:
    """The text of a pattern file, what messages call it, and its language."""
    if file == "-":
        return _text_of(sys.stdin.buffer, "stdin"), "<stdin>", language or "sase"
    path = Path(file)
    try:
        with path.open("rb") as content:
            text = _text_of(content, f"the pattern file `{file}`")
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        near = errors.nearest(path.name, _neighbours(path)) if is_missing else None
        raise errors.InputNotReadableError(
            f"The pattern file `{file}` cannot be read: {error.strerror}.",
            hint=f"did you mean `{path.with_name(near)}`?" if near else "give the path of a text file, or `-`.",
        ) from None
    return text, file, language or LANGUAGES.get(path.suffix, "sase")


def _text_of(file: BinaryIO, name: str) -> str:
    """Text in UTF-8, with or without the mark that some editors put in front of it."""
    content = file.read(LONGEST_TEXT * 4 + 1)  # UTF-8 takes at most four bytes per character
    if len(content) > LONGEST_TEXT * 4:
        raise errors.TextTooLongError(
            f"{name[0].upper()}{name[1:]} has more than the {LONGEST_TEXT:,} characters that a text may have.",
            hint="split it into several queries, or keep large lists in a table.",
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise errors.InputNotReadableError(
            f"{name[0].upper()}{name[1:]} is not UTF-8 text: line {line} holds the byte 0x{content[error.start]:02x}.",
            hint="save it as UTF-8; `iconv -f latin1 -t utf-8` converts older texts.",
        ) from None


def _neighbours(path: Path) -> list[str]:
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:
        return []


def named_values(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """`TYPE=VALUE` options as a dictionary."""
    named: dict[str, str] = {}
    for text in given:
        name, found, value = text.partition("=")
        if not found or not name or not value:
            raise errors.InvalidOptionError(
                f"`{option} {text}` does not say which event type it is for.", hint=f"write `{option} {example}`."
            )
        if name in named:
            raise errors.InvalidOptionError(
                f"`{option}` is given twice for the event type `{name}`.", hint="give one path; it may be a directory."
            )
        named[name] = value
    return named


def input_paths(given: Sequence[str]) -> dict[str, str] | str:
    """The inputs of `--input`: one path for all types, or a path per type."""
    if not given:
        raise errors.InvalidOptionError(
            "There is no input to match.",
            hint="add `--input Login=logins.parquet`, once per event type, or `--input events.csv` with a type column.",
        )
    # A path may hold an equals sign (`day=2026-01-01/part.parquet`), but a type is a name.
    if len(given) == 1 and not given[0].partition("=")[0].isidentifier():
        return given[0]
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return named_values(given, "--input", "Login=logins.parquet")


# --- reading --------------------------------------------------------------------------------------


def is_remote(path: str) -> bool:
    """Whether a path is on a file system only Spark knows."""
    return "://" in path and not path.startswith("file://")


def local(path: str) -> Path:
    """A path of this machine."""
    return Path(path.removeprefix("file://"))


def check_exists(path: str) -> None:
    """Refuse a missing input before Spark starts."""
    if is_remote(path) or any(character in path for character in "*?[{"):
        return
    where = local(path)
    try:
        is_there = where.exists()
    except OSError as error:  # a directory on the way that may not be entered
        raise errors.InputNotReadableError(f"`{path}` cannot be read: {error.strerror}.") from None
    if not is_there:
        near = errors.nearest(where.name, _neighbours(where))
        raise errors.InputNotReadableError(
            f"There is no file or directory `{path}`.",
            hint=f"did you mean `{where.with_name(near)}`?" if near else "check the path of `--input`.",
        )
    format_of(path)


def format_of(path: str) -> str:
    """The format of a file by its ending, or of a directory by the files inside."""
    where = local(path)
    if not is_remote(path) and where.is_dir():
        kinds = {kind for each in sorted(where.rglob("*")) if (kind := _by_ending(each)) and _is_data(each, where)}
        if len(kinds) == 1:
            return kinds.pop()
        what = f"files of different formats ({', '.join(sorted(kinds))})" if kinds else "no data file"
        raise errors.InputNotReadableError(
            f"The directory `{path}` holds {what}.", hint="it should hold parquet, csv or json files, all of one kind."
        )
    kind = _by_ending(where)
    if kind is None:
        raise errors.InputNotReadableError(
            f"The ending of `{path}` does not tell its format.",
            hint=f"it should end in {', '.join(FORMATS)}, or be a directory of such files.",
        )
    return kind


def _by_ending(path: Path) -> str | None:
    suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
    return FORMATS.get(suffixes[-1]) if suffixes else None


def _is_data(path: Path, root: Path) -> bool:
    """Whether Spark would read it: names that start with `_` or `.` are bookkeeping."""
    return path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)


def read(spark: SparkSession, path: str) -> DataFrame:
    """A DataFrame of the events in a file or directory."""
    kind = format_of(path)
    with reading(path):
        return spark.read.format(kind).options(**READ[kind], mode="FAILFAST").load(path)


OF_WORKERS = (
    errors.TooManyMatchesError,
    errors.TooMuchSearchError,
    errors.TooMuchMemoryError,
    errors.NumberTooLargeError,
    errors.UserFunctionError,
    errors.NotTimeClusteredError,
    errors.StateMismatchError,
    errors.LateEventsError,
)
# What Spark says of a file that it cannot read, and of a place it cannot write to.
UNREADABLE = ("MALFORMED_RECORD", "FAILED_READ_FILE", "CANNOT_READ_FILE", "INVALID_PARQUET", "is not a Parquet file")
UNWRITABLE = ("Permission denied", "No space left", "TASK_WRITE_FAILED", "Mkdirs failed", "Read-only file system")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Any fault of Spark while it looks at a file is the file's."""
    with spark_errors() as fault:
        yield
    if fault.error is not None:
        raise _unreadable([path], fault.error) from fault.error


@contextmanager
def running(paths: Sequence[str], writes: str | None = None) -> Iterator[None]:
    """A fault of Spark while a job runs, told as one of the input, of the output or of the job."""
    with spark_errors() as fault:
        yield
    error = fault.error
    if error is None:
        return
    text = str(error)
    # Raised on a worker, of which only the text is left.
    for kind in OF_WORKERS:
        told = re.search(rf"\[{kind.condition}\] (.*)\nHint: (.*)", text)
        if told is not None:
            hint = terminal.as_flags(told[2].replace('`late="fail"`', "`--strict`"))
            raise kind(told[1], hint=hint) from error
    if any(word in text for word in UNREADABLE):
        raise _unreadable(paths, error) from error
    if writes is not None and any(word in text for word in UNWRITABLE):
        raise errors.OutputNotWritableError(
            f"The result cannot be written to `{writes}`: {sentence(error)}", hint="nothing was changed there."
        ) from error
    raise errors.MatchFailedError(f"Spark could not finish: {sentence(error)}") from error


@dataclass
class Fault:
    """What Spark raised, if it raised."""

    error: Exception | None = None


@contextmanager
def spark_errors() -> Iterator[Fault]:
    """Catches what Spark raises, from Python and from the JVM."""
    fault = Fault()
    try:
        yield fault
    except Exception as error:
        if not is_sparks(error):
            raise
        fault.error = error


def is_sparks(error: Exception) -> bool:
    """Whether an exception comes from Spark: its Python side and its bridge to the JVM have no common base."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def _unreadable(paths: Sequence[str], error: Exception) -> errors.InputNotReadableError:
    # A job reads several files; Spark names the broken one in its message.
    guilty = [path for path in paths if Path(path).name in str(error)] or list(paths)
    hints = {
        "csv": "every line must have the columns of the first one.",
        "json": "every line must be one object, from `{` to `}`.",
    }
    return errors.InputNotReadableError(
        f"{' or '.join(f'`{path}`' for path in guilty)} cannot be read: {sentence(error)}",
        hint=hints.get(format_of(guilty[0])),
    )


def sentence(error: Exception) -> str:
    """What Spark says for people: the first line, without the names of classes and conditions before it."""
    text = str(getattr(error, "java_exception", None) or error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = lines[0].rpartition("terminated with exception: ")[2] if lines else type(error).__name__
    if "Python Proxy" in first:  # raised while a micro-batch was written: what happened stands further down
        deeper = re.search(r"\[(?!STREAM_FAILED)[A-Z_.]{8,}\] [^\n]+", text) or re.search(r"\w+: [^\n]+\Z", text)
        first = deeper[0] if deeper else "a micro-batch failed."
    first = re.sub(r"^(?:[\w.$]+(?:Exception|Error): )*(?:\[[\w.]+\] )?", "", first)
    return first if first.endswith((".", "!")) else f"{first}."


def in_backquotes(name: str) -> str:
    """A column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


# --- writing --------------------------------------------------------------------------------------


def check_mode(mode: str) -> None:
    """Refuse a mode that is none."""
    if mode not in MODES:
        raise errors.InvalidOptionError(f"There is no mode `{mode}`.", hint=errors.did_you_mean(mode, MODES, "modes"))


def check_output(path: str, mode: str, inputs: Mapping[str, str] | str) -> None:
    """Refuse an output that cannot be written, or would be lost, before Spark starts."""
    if is_remote(path):
        return
    with _writing(path):
        _check_local_output(path, local(path), mode, inputs)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Tells what the file system refuses."""
    try:
        yield
    except OSError as error:
        raise errors.OutputNotWritableError(
            f"The result cannot be written to `{path}`: {error.strerror or error}.",
            hint="choose a directory you may write to.",
        ) from error


def _check_local_output(path: str, where: Path, mode: str, inputs: Mapping[str, str] | str) -> None:
    for read_from in [inputs] if isinstance(inputs, str) else inputs.values():
        if not is_remote(read_from) and overlap(where, local(read_from)):
            raise errors.OutputNotWritableError(
                f"The output `{path}` is also an input.", hint="write the matches somewhere else."
            )
    for each in (where, *where.parents):
        if each.is_symlink() and not each.exists():
            raise errors.OutputNotWritableError(
                f"`{each}` is a link to `{each.readlink()}`, which is not there.",
                hint="make the directory that it leads to, or choose another path.",
            )
    # Through a link, what it leads to is replaced, and the link stays.
    where = where.resolve()
    if where.exists() and mode == "error":
        raise errors.OutputNotWritableError(
            f"`{path}` is there already.",
            hint="choose another path, or say `--mode overwrite` or `--mode append`.",
        )
    if where.exists() and not where.is_dir():
        raise errors.OutputNotWritableError(
            f"`{path}` is a file, and Spark writes a directory of files.", hint="choose another path."
        )
    # A result that replaces another is written beside it.
    parent = where if where.exists() and mode == "append" else where.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise errors.OutputNotWritableError(
            f"`{parent}` cannot be written to.", hint="choose a directory you may write to."
        )
    # Permissions do not tell all: a disk may be full, and some file systems let nobody make a directory.
    Path(tempfile.mkdtemp(prefix=".tocsin-", dir=parent)).rmdir()


def overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or lies in it."""
    one, other = one.resolve(), other.resolve()
    return one == other or one in other.parents or other in one.parents


def write(frame: DataFrame, path: str, kind: str, mode: str) -> None:
    """Write the matches. On this machine, what was there is replaced only when the new result is complete."""
    with replacing(path, mode) as place:
        save(frame, place, kind, mode)


@contextmanager
def replacing(path: str, mode: str) -> Iterator[str]:
    """Where to write what shall stand at a path: beside it, on this machine, until it is complete."""
    if is_remote(path) or mode == "append":
        yield path
        return
    with _writing(path):
        where = local(path).resolve()
        where.parent.mkdir(parents=True, exist_ok=True)
    fresh, old = (where.with_name(f".{where.name}.{word}-{uuid.uuid4().hex[:8]}") for word in ("new", "old"))
    try:
        yield str(fresh)
        with _writing(path):
            if where.exists():
                where.rename(old)
            fresh.rename(where)
    finally:
        if old.exists() and not where.exists():
            old.rename(where)
        for rest in (fresh, old):
            shutil.rmtree(rest, ignore_errors=True)


def save(frame: DataFrame, path: str, kind: str, mode: str) -> None:
    """Write a DataFrame to a place."""
    from pyspark.sql import functions as F

    if kind == "csv":
        # CSV has no nested columns: events become JSON text.
        frame = frame.select(
            *(
                F.to_json(F.col(in_backquotes(name)), WRITTEN_TIMES).alias(name)
                if dtype.startswith(NESTED)
                else F.col(in_backquotes(name))
                for name, dtype in frame.dtypes
            )
        )
    writer = frame.write.mode(mode)
    if kind != "parquet":
        writer = writer.options(**WRITTEN_TIMES)
    if kind == "csv":
        # Quotes are doubled, as other readers of CSV expect; Spark would write a backslash.
        writer = writer.option("header", "true").option("escape", '"')
    writer.format(kind).save(path)
