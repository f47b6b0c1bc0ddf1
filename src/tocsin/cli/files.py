"""Files in and out: inputs of three formats, and results that replace what was there only when complete."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin import errors
from tocsin.algebra.programs import Program, sources
from tocsin.cli.arguments import named_values
from tocsin.cli.session import reading, started
from tocsin.engines.local.paths import absolute, check_exists, format_of, is_remote, local
from tocsin.plan.strategy import counts_other_types

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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
# Spark forgets files that are older than the newest by more than this; a late one would never be read.
FOR_EVER = "36500d"
BROKEN = "_corrupt_record"  # the column that Spark infers where a line is broken
SINGLE = ""  # the name of an input whose rows name their type
Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Inputs:
    """The inputs of a command: a path for each event type, or one path under the name `SINGLE`."""

    paths: Mapping[str, str]

    @classmethod
    def of(cls, given: Sequence[str] | None) -> Inputs:
        """From the values of `--input`."""
        if not given:
            raise errors.InvalidOptionError(
                "There is no input to match.",
                hint="add `--input Login=logins.parquet`, once per event type, or `--input events.csv` with a type "
                "column.",
            )
        # A path may hold an equals sign (`day=2026-01-01/part.parquet`), but a type is a name.
        name, equals, _ = given[0].partition("=")
        if len(given) == 1 and not (equals and name.isidentifier()):
            return cls({SINGLE: given[0]})
        return cls(named_values(given, "--input", "Login=logins.parquet"))

    @property
    def is_single(self) -> bool:
        """Whether one input has the events of all types."""
        return SINGLE in self.paths

    def require(self, program: Program, described: Collection[str] = ()) -> None:
        """Refuse a program that reads types of which there is no input, before Spark starts."""
        known = {*self.paths, *described}
        missing = [] if self.is_single else [name for name in sources(program) if name not in known]
        errors.raise_all(
            [
                errors.UnknownEventTypeError(
                    f"The query reads events of `{name}`, and no `--input` has them.",
                    hint=errors.did_you_mean(name, self.paths, "inputs") + f" Add `--input {name}=PATH`.",
                )
                for name in missing
            ]
        )

    def frames(self, program: Program, read: Callable[[str, str], Frame]) -> Frame | dict[str, Frame]:
        """The inputs that a program reads, each read by its name and path."""
        if self.is_single:
            return read(SINGLE, self.paths[SINGLE])
        # Neighbors may be events of every input, named by the pattern or not (R17); else they need not be read.
        reads_all = any(counts_other_types(rule.query) for rule in program.rules)
        return {name: read(name, path) for name, path in self.paths.items() if reads_all or name in program.read}

    def check(self) -> None:
        """Refuse a path that is not there, before Spark starts."""
        for path in self.paths.values():
            check_exists(path)

    def load(self, program: Program, described: Collection[str] = ()) -> DataFrame | dict[str, DataFrame]:
        """Check the inputs, start Spark, and read what a program reads of them."""
        self.check()
        self.require(program, described)
        spark, steps = started()
        with steps.step("Reading"):
            return self.frames(program, lambda _, path: read(spark, path))


# --- reading --------------------------------------------------------------------------------------


def check_folder(path: str, format: str | None) -> None:
    """Refuse what is no folder of files, before Spark starts. It may be empty when the format is given."""
    if is_remote(path):
        if format is None:
            format_of(path)
        return
    where = local(path)
    if where.is_file():
        raise errors.InputNotReadableError(
            f"`{path}` is a file, and a stream reads a folder to which files are added.",
            hint="give the folder, or read the file with `tocsin run`.",
        )
    if not where.exists() or format is None:
        check_exists(path)


def read(spark: SparkSession, path: str) -> DataFrame:
    """A DataFrame of the events in a file or directory."""
    kind = format_of(path)
    with reading(path):
        return spark.read.format(kind).options(**READ[kind], mode="FAILFAST").load(path)


def read_stream(
    spark: SparkSession, path: str, *, schema: str | None, format: str | None, most_files: int | None
) -> DataFrame:
    """A stream of the files of a folder. A broken line is a row without a time: it is counted, and stops nothing."""
    kind, place = format or format_of(path), absolute(path)
    reader = spark.readStream.format(kind).options(**READ[kind], mode="PERMISSIVE", maxFileAge=FOR_EVER)
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    with reading(path):
        if schema is None:
            # A column of NULLs alone has no known type: better no column than a wrong type.
            sample = spark.read.format(kind).options(**READ[kind], dropFieldIfAllNull=True).load(place)
            schema = ddl_of(dict(sample.drop(BROKEN).dtypes))
        return reader.schema(schema).load(place)


def ddl_of(columns: Mapping[str, str]) -> str:
    """Columns and their types, as text."""
    return ", ".join(f"{in_backquotes(name)} {kind}" for name, kind in columns.items())


def in_backquotes(name: str) -> str:
    """A column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


# --- writing --------------------------------------------------------------------------------------


def check_output(path: str, mode: str, inputs: Collection[str]) -> None:
    """Refuse an output that cannot be written, or would be lost, before Spark starts."""
    if is_remote(path):
        return
    with _writing(path):
        _check_local_output(path, local(path), mode, inputs)


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Report what the file system refuses."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # of Path.resolve, for links in a circle
        if isinstance(error, errors.TocsinError):
            raise
        why = getattr(error, "strerror", None) or errors.message_of(error)
        raise errors.OutputNotWritableError(
            f"The result cannot be written to `{path}`: {why}.",
            hint="choose a directory you may write to.",
        ) from error


def _check_local_output(path: str, where: Path, mode: str, inputs: Collection[str]) -> None:
    for read_from in inputs:
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
            f"`{path}` is a file, and the result is a directory of files.", hint="choose another path."
        )
    # A result that replaces another is written beside it.
    parent = where if where.exists() and mode == "append" else where.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise errors.OutputNotWritableError(
            f"`{parent}` cannot be written to.", hint="choose a directory you may write to."
        )
    # Permissions are not enough: a disk may be full, and some file systems have no new directories.
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
    writer = (flat(frame) if kind == "csv" else frame).write.mode(mode)
    if kind != "parquet":
        writer = writer.options(**WRITTEN_TIMES)
    if kind == "csv":
        # Quotes are doubled, as other readers of CSV expect; Spark would write a backslash.
        writer = writer.option("header", "true").option("escape", '"')
    writer.format(kind).save(path)


def flat(frame: DataFrame, *, as_text: bool = False) -> DataFrame:
    """Nested columns as JSON text, for CSV; the others too `as_text`, in the session's zone, for a table."""
    from pyspark.sql import functions as F

    def column(name: str, dtype: str) -> Column:
        value = F.col(in_backquotes(name))
        if dtype.startswith(NESTED):
            return F.to_json(value, WRITTEN_TIMES).alias(name)
        return value.cast("string").alias(name) if as_text else value

    return frame.select(*(column(name, dtype) for name, dtype in frame.dtypes))
