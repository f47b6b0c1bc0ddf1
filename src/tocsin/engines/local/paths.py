"""Files of events: a path, a folder or a glob → files of one format. For the command line too: it imports no Arrow."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.parse import unquote

from tocsin import errors

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # the folder of a partition whose value is NULL
ALTERNATIVES = re.compile(r"\{([^{}]*)\}")  # of a glob: `{csv,json}`


@dataclass(frozen=True)
class DataFile:
    """A file of events, and the columns that folders such as `day=1` around it add, as text."""

    path: Path
    partition: tuple[tuple[str, str | None], ...] = ()


def is_remote(path: str) -> bool:
    """Whether only Spark can read the file system of a path."""
    return "://" in path and not path.startswith("file://")


def local(path: str) -> Path:
    """A path of this machine."""
    return Path(path.removeprefix("file://"))


def absolute(path: str) -> str:
    """A path that a query finds from any working directory."""
    return path if is_remote(path) else str(local(path).resolve())


def neighbors(path: Path) -> list[str]:
    """The names beside a path."""
    try:
        return [each.name for each in path.parent.iterdir()]
    except OSError:
        return []


def is_glob(path: str) -> bool:
    """Whether a path stands for those that it matches."""
    return any(character in path for character in "*?[{")


def check_exists(path: str) -> None:
    """Refuse a path that is not there, or does not tell its format."""
    if is_remote(path) or is_glob(path):
        return
    where = local(path)
    try:
        is_there = where.exists()
    except OSError as error:  # a directory on the way that may not be entered, or a name that no file can have
        raise errors.InputNotReadableError(
            f"`{path}` cannot be read: {error.strerror}.", hint="check the path and its permissions."
        ) from None
    if not is_there:
        near = errors.nearest(where.name, neighbors(where))
        raise errors.InputNotReadableError(
            f"There is no file or directory `{path}`.",
            hint=f"did you mean `{where.with_name(near)}`?" if near else "check the path.",
        )
    format_of(path)


def format_of(path: str) -> str:
    """The format of a file by its ending, or of a directory by the files inside."""
    where = local(path)
    if not is_remote(path) and where.is_dir():
        kinds = {kind for each in _inside(where) if (kind := _by_ending(each))}
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


def _inside(root: Path) -> Iterator[Path]:
    """The files below a directory; Spark ignores names that start with `_` or `.`, which are bookkeeping."""
    for each in sorted(root.rglob("*")):
        if not any(part.startswith(("_", ".")) for part in each.relative_to(root).parts) and each.is_file():
            yield each


# --- without Spark --------------------------------------------------------------------------------


def data_files(path: str) -> tuple[str, list[DataFile]]:
    """The format of a path, directory or glob, and its files in order.

    Raises `InputNotReadableError` unless there are files, all of one format, and folders inside are partitions.
    """
    if not path:
        raise errors.InputNotReadableError("The path of an input is empty.", hint="check the path.")
    if is_remote(path):
        raise errors.InputNotReadableError(
            f"`{path}` is a URL, and the local engine reads files of this machine.",
            hint="pass a pyarrow Dataset, which reads URLs too, or run it on Spark.",
        )
    kinds: dict[str, str] = {}
    found: list[DataFile] = []
    for each in _matched(path):
        check_exists(each)
        kinds.setdefault(format_of(each), each)
        found += _of_directory(local(each)) if local(each).is_dir() else [DataFile(local(each))]
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise errors.InputNotReadableError(
            f"`{path}` matches files of different formats: `{first}` is {one}, `{second}` is {other}.",
            hint="all files of an input have one format; end the pattern in `*.parquet`, for example.",
        )
    names = {tuple(name for name, _ in each.partition) for each in found}
    if len(names) > 1:
        raise errors.InputNotReadableError(
            f"The folders inside `{path}` are partitions of different columns: "
            f"{' and '.join(sorted('/'.join(one) or 'none' for one in names))}.",
            hint="all files must lie equally deep, in folders such as `day=1/hour=2`.",
        )
    return next(iter(kinds)), found


def _matched(path: str) -> list[str]:
    if not is_glob(path) or local(path).exists():
        return [path]
    parts = ALTERNATIVES.split(str(local(path)))
    choices = product(*(part.split(",") if place % 2 else [part] for place, part in enumerate(parts)))
    found = sorted({each for choice in choices for each in glob.glob("".join(choice))})
    if not found:
        raise errors.InputNotReadableError(
            f"No file matches `{path}`.",
            hint="check the pattern: `*` stands for any part of one name.",
        )
    return found


def _of_directory(root: Path) -> list[DataFile]:
    found = []
    for path in _inside(root):
        if _by_ending(path) is None:
            raise errors.InputNotReadableError(
                f"The directory `{root}` holds `{path.relative_to(root)}` beside its data files.",
                hint="move it elsewhere, or give the data files by a glob such as `folder/*.csv`.",
            )
        found.append(DataFile(path, tuple(_partition(root, path.relative_to(root).parts[:-1]))))
    return found


def _partition(root: Path, folders: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """The columns that folders stand for, as Spark reads them."""
    for folder in folders:
        name, is_partition, value = folder.partition("=")
        if not (name and is_partition):
            raise errors.InputNotReadableError(
                f"The directory `{root}` holds a directory `{os.path.join(*folders)}`, which is not a partition.",
                hint="name it like `day=1`, or give the files inside by a glob such as `folder/*/*.csv`.",
            )
        yield unquote(name), None if value == NO_VALUE else unquote(value)
