"""The checkpoint of a live stream: refuse a damaged one, and restart with the settings and columns that it has."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tocsin.cli import files
from tocsin.cli.session import faults, sentence
from tocsin.engines.local.paths import absolute, is_remote, local
from tocsin.errors import OutputNotWritableError, StateMismatchError

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
# In messages of Spark on a checkpoint that it cannot read: its logs, and the state in it.
UNUSABLE = (
    "CANNOT_LOAD_STATE_STORE",
    "STATE_STORE",
    "INVALID_CHECKPOINT",
    "LOG_FILE",
    "log file",
    "StreamMetadata",
    "metadata from",
    "STREAMING_STATEFUL_OPERATOR",
    "sources in the checkpoint offsets",
    "Concurrent update to the log",
    "XXKST",
    "Wrong basePath",
)
# In messages that name a file of the checkpoint; they may be about others too.
UNREADABLE = ("Checksum error", "inconsistent state", "doesn't exist")
SCHEMAS = "tocsin-schemas.json"
NEW_ONE = (
    "start with a new checkpoint directory; matches that began before are then not found. "
    "A copy of this one from before the damage works too."
)


def check_checkpoint(path: str, out: str | None, inputs: Collection[str]) -> None:
    """Refuse a checkpoint that cannot be written, or an output that belongs to another one, before Spark starts."""
    try:
        files.check_output(path, "append", inputs)
    except OutputNotWritableError as error:
        raise OutputNotWritableError(
            f"The checkpoint cannot be kept there. {error.message}", hint="choose a directory you may write to."
        ) from None
    if is_remote(path):
        return
    checkpoint = local(path)
    tidy(checkpoint)
    damage = damage_in(checkpoint)
    if damage is not None:
        raise unusable(path, damage)
    if out is None or is_remote(out):
        return
    where = local(out)
    if files.overlap(where, checkpoint):
        raise OutputNotWritableError(
            f"The output `{out}` and the checkpoint `{path}` lie in each other.", hint="choose separate directories."
        )
    is_new = not (checkpoint / "offsets").is_dir()
    if is_new and where.is_dir() and any(where.iterdir()):
        raise OutputNotWritableError(
            f"`{out}` holds something already, and the checkpoint `{path}` is new: it would replace it.",
            hint="choose another output, or give the checkpoint that it was written with.",
        )


def tidy(checkpoint: Path) -> None:
    """Remove what a query left that was killed before its first micro-batch was planned.

    Spark writes how far a micro-batch reads to a hidden file that it then renames. Where it could not rename the first,
    nothing has been read; but a restart finds the file and refuses the checkpoint, since it "should be empty".
    """
    offsets = checkpoint / "offsets"
    left = list(offsets.iterdir()) if offsets.is_dir() else []
    if left and all(file.name.startswith(".") and file.name.endswith((".tmp", ".crc")) for file in left):
        for file in left:
            file.unlink(missing_ok=True)


def damage_in(checkpoint: Path) -> str | None:
    """A sentence on the first file of a checkpoint that cannot be what Spark wrote; None where all seem whole.

    Spark itself stops at such a file too, often without its name: an empty line of JSON, a stream that ends.
    """
    missing = _missing_in(checkpoint)
    if missing is not None:
        return f"its file `{missing}` is missing."
    for place, read in READERS.items():
        for file in sorted(checkpoint.glob(place)):
            try:
                read(file)
            except OSError as problem:
                return f"its file `{file.relative_to(checkpoint)}` cannot be read ({problem.strerror})."
            except _DamageError as damage:
                return f"its file `{file.relative_to(checkpoint)}` {damage}."
    return None


def _missing_in(checkpoint: Path) -> str | None:
    """A file that must be there beside others: Spark removes what is old from both logs alike."""
    logs = {name: [file.name for file in checkpoint.glob(f"{name}/[0-9]*")] for name in ("offsets", "commits")}
    if any(logs.values()) and not (checkpoint / "metadata").exists():
        return "metadata"
    return next((f"offsets/{name}" for name in sorted(logs["commits"]) if name not in logs["offsets"]), None)


class _DamageError(Exception):
    """What is wrong with a file, as the end of a sentence."""


def _values(texts: Iterable[bytes]) -> list[Any]:
    """The values of JSON texts, of which there is one at least."""
    try:
        found = [json.loads(text) for text in texts]
    except ValueError:
        raise _DamageError("is not JSON: it was cut or overwritten") from None
    if not found:
        raise _DamageError("is empty")
    return found


def _read_metadata(file: Path) -> None:
    (metadata,) = _values(filter(None, [file.read_bytes()]))
    try:
        uuid.UUID(metadata["id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _DamageError("does not hold the id of a query") from None


def _read_log(file: Path) -> list[Any]:
    """A log has a version and lines of JSON; Spark writes `-` for a source without an offset."""
    version, *lines = file.read_bytes().split(b"\n")
    if version and not re.fullmatch(rb"v\d+", version.strip()):
        raise _DamageError("does not begin with a version, as Spark's logs do")
    return _values(line for line in lines if line.strip() not in (b"", b"-"))


def _read_source(file: Path) -> None:
    """The log of a folder names a file in each line; that of the heartbeats holds one number."""
    kinds = {"path": str, "timestamp": int, "batchId": int}
    named = [line for line in _read_log(file) if isinstance(line, dict)]
    if not all(isinstance(line.get(key), kind) for line in named for key, kind in kinds.items()):
        raise _DamageError("does not name the files that were read")


def _read_state(file: Path) -> None:
    if not file.stat().st_size:
        raise _DamageError("is empty")


def _read_schema(file: Path) -> None:
    """The second version has schemas as JSON: how many parts each has, and of each part its length and text."""
    _read_state(file)
    written = file.read_bytes()
    version = b"\0\2v2"
    if not written.startswith(version):
        return
    texts, at = [], len(version)
    try:
        while at < len(written):
            (parts,), at = struct.unpack_from(">i", written, at), at + 4
            text = b""
            for _ in range(parts):
                (size,), at = struct.unpack_from(">H", written, at), at + 2
                text, at = text + written[at : at + size], at + size
            texts.append(text)
    except struct.error:
        raise _DamageError("is no schema: it was cut or overwritten") from None
    _values(texts)


SOURCES, STATE_SCHEMAS = "sources/*/[0-9]*", "state/**/_metadata/schema"
READERS: dict[str, Callable[[Path], object]] = {
    "metadata": _read_metadata,
    "offsets/[0-9]*": _read_log,
    "commits/[0-9]*": _read_log,
    SOURCES: _read_source,
    **{f"state/**/*.{ending}": _read_state for ending in ("delta", "snapshot", "changelog", "zip")},
    STATE_SCHEMAS: _read_schema,
}
# What Spark says of a text that was overwritten, where it read the text, and how the text is written there.
REFUSED = (
    (r"Wrong basePath \S+ for the root path: (?:\w+:)?/*(\S+\w)", SOURCES, "{}"),
    (r'No FileSystem for scheme "([^"]+)"', SOURCES, '"path":"{}:'),
    (r"Unsupported data type (\{.+\})\[\d", STATE_SCHEMAS, "{}"),
)


def settings_of(path: str) -> dict[str, str]:
    """Settings that a checkpoint of this machine has fixed, and a restart cannot change; none when it is new."""
    logs = [] if is_remote(path) else list((local(path) / "offsets").glob("[0-9]*"))
    if not logs:
        return {}
    latest = max(logs, key=lambda each: int(each.name) if each.name.isdigit() else -1)
    try:
        found = json.loads(latest.read_text(encoding="utf-8").splitlines()[1])["conf"]
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        raise unusable(path, f"`{latest.relative_to(Path(local(path)))}` cannot be read.") from None
    return {name: str(found[name]) for name in (PARTITIONS, PROVIDER) if name in found}


def schemas_in(path: str) -> dict[str, str]:
    """The columns of the inputs that a checkpoint was made with, and a restart takes again; none when it is new."""
    if is_remote(path):
        return {}
    try:
        found = json.loads((local(path) / SCHEMAS).read_text(encoding="utf-8"))
        columns = found.get("columns")
        if isinstance(columns, dict):
            is_whole = found["sha256"] == _digest(columns)
        else:  # as older versions kept them
            columns, is_whole = found, all(isinstance(ddl, str) for ddl in found.values())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, KeyError):
        is_whole = False
    if not is_whole:
        raise unusable(path, f"its file `{SCHEMAS}` was cut or overwritten.")
    return dict(columns)


def _digest(columns: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()


def keep_schemas(path: str, schemas: Mapping[str, str]) -> None:
    """Keep the columns of the inputs, on this machine: what is found in files later may differ."""
    if is_remote(path):
        return
    where = local(path)
    where.mkdir(parents=True, exist_ok=True)
    made = where / f".{SCHEMAS}"
    kept = {"columns": dict(schemas), "sha256": _digest(dict(schemas))}
    made.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    made.replace(where / SCHEMAS)


@contextmanager
def using(path: str) -> Iterator[None]:
    """A fault of Spark that is the checkpoint's is reported as such."""
    try:
        yield
    except faults() as error:
        text = str(error)
        if f"[{StateMismatchError.condition}]" not in text and is_of(path, text):
            raise unusable(path, _named(sentence(error), text, path)) from error
        raise


def is_of(path: str, text: str) -> bool:
    """Whether a message of Spark is about a checkpoint that it cannot read."""
    about_files = absolute(path) in text and any(word in text for word in UNREADABLE)
    return (
        about_files
        or any(word in text for word in UNUSABLE)
        or re.search(r"batch \d+ doesn't exist", text) is not None
        or _holder_of(text, path) is not None
    )


def _named(line: str, text: str, path: str) -> str:
    """Spark's sentence, with the file of the checkpoint that its report names, if the sentence does not."""
    found = re.search(rf"{re.escape(absolute(path))}/([\w./-]*\w)", text)
    name = found[1] if found is not None else _holder_of(line, path)
    if name is None or name in line:
        return line
    return f"its file `{name}` cannot be read. Spark says: {line}"


def _holder_of(said: str, path: str) -> str | None:
    """The first file of a checkpoint that holds what Spark refuses: a path, its scheme, or a schema."""
    if is_remote(path):
        return None
    for refused, place, written in REFUSED:
        found = re.search(refused, said)
        if found is not None:
            wanted = written.format(found[1]).lower().encode()
            for file in sorted(local(path).glob(place)):
                if wanted in file.read_bytes().lower():
                    return str(file.relative_to(local(path)))
    return None


def unusable(path: str, why: str) -> StateMismatchError:
    """The error of a checkpoint that is damaged, or another query's."""
    return StateMismatchError(f"The checkpoint `{path}` cannot be used: {why}", hint=NEW_ONE)
