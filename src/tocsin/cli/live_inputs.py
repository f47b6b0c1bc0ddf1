"""Inputs of a live stream: folders to which files are added, and the clock on the wall."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.algebra.units import Unit
from tocsin.cli import files
from tocsin.cli.check import read_schema
from tocsin.errors import InputNotReadableError, InvalidOptionError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BROKEN = "_corrupt_record"  # the column that Spark infers where a line is broken
# Spark forgets files that are older than the newest by more than this; a late one would never be read.
FOR_EVER = "36500d"


def check_folder(path: str, format: str | None) -> None:
    """Refuse what is no folder of files, before Spark starts. It may be empty when the format is given."""
    if format is not None and format not in files.READ:
        raise InvalidOptionError(
            f"There is no input format `{format}`.", hint=did_you_mean(format, files.READ, "formats")
        )
    if files.is_remote(path):
        if format is None:
            files.format_of(path)
        return
    where = files.local(path)
    if where.is_file():
        raise InputNotReadableError(
            f"`{path}` is a file, and a stream reads a folder to which files are added.",
            hint="give the folder, or read the file with `tocsin run`.",
        )
    if not where.exists() or format is None:
        files.check_exists(path)


def schemas_of(given: list[str], paths: Mapping[str, str] | str) -> dict[str, str]:
    """The schemas of `--schema` as DDL, by event type; that of a single input by the empty name."""
    if isinstance(paths, str):
        if len(given) > 1:
            raise InvalidOptionError("There is one input, and `--schema` is given twice.", hint="give one schema.")
        return {"": _ddl("the input", given[0])} if given else {}
    named = files.named_values(given, "--schema", "'Login=ts timestamp, user string'")
    for name in named:
        if name not in paths:
            raise InvalidOptionError(
                f"`--schema` names `{name}`, which has no `--input`.", hint=did_you_mean(name, paths, "inputs")
            )
    return {name: _ddl(name, text) for name, text in named.items()}


def _ddl(name: str, text: str) -> str:
    return ", ".join(f"{_quoted(each)} {kind}" for each, kind in read_schema(name, text).items())


def read_stream(
    spark: SparkSession, path: str, *, schema: str | None, format: str | None, most_files: int | None
) -> DataFrame:
    """A stream of the files of a folder. A broken line is a row without a time: it is counted, and stops nothing."""
    kind = format or files.format_of(path)
    place = path if files.is_remote(path) else str(Path(files.local(path)).resolve())
    reader = spark.readStream.format(kind).options(**files.READ[kind], mode="PERMISSIVE", maxFileAge=FOR_EVER)
    if most_files is not None:
        reader = reader.option("maxFilesPerTrigger", most_files)
    with files.reading(path):
        if schema is None:
            # Of a column that has only NULLs nobody knows the type: better none than a wrong one.
            sample = spark.read.format(kind).options(**files.READ[kind], dropFieldIfAllNull=True).load(place)
            schema = ddl_of(sample.drop(BROKEN) if BROKEN in sample.columns else sample)
        return reader.schema(schema).load(place)


def ddl_of(frame: DataFrame) -> str:
    """The columns of a DataFrame, as text."""
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in frame.dtypes)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def beats(spark: SparkSession, time: str, like: DataFrame, time_unit: str | None = None) -> DataFrame:
    """The clock on the wall, every second, as the time column of an input."""
    from pyspark.sql import functions as F

    ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    kind = dict(like.dtypes).get(time)
    tick = Unit(time_unit or "us").microseconds
    whole = F.expr(f"(unix_micros(timestamp) * {tick.denominator}L) DIV {tick.numerator}L")
    now = whole if kind in ("bigint", "int") else F.col("timestamp").cast(kind or "timestamp")
    return ticks.select(now.alias(time))
