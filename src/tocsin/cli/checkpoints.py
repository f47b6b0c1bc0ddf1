"""The checkpoint of a live stream: refuse a damaged one, and restart with the settings and columns that it has."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tocsin.cli import files
from tocsin.cli.session import faults, sentence
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
    if files.is_remote(path):
        return
    checkpoint = files.local(path)
    tidy(checkpoint)
    damage = damage_in(checkpoint)
    if damage is not None:
        raise unusable(path, damage)
    if out is None or files.is_remote(out):
        return
    where = files.local(out)
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
    for place, fault_in in {"metadata": _fault_in_metadata, **LOGS, **STATES}.items():
        for file in sorted(checkpoint.glob(place)):
            try:
                fault = fault_in(file)
            except OSError as problem:
                fault = f"cannot be read ({problem.strerror})"
            if fault is not None:
                return f"its file `{file.relative_to(checkpoint)}` {fault}."
    return None


def _missing_in(checkpoint: Path) -> str | None:
    """A file that must be there beside others: Spark removes what is old from both logs alike."""
    logs = {name: [file.name for file in checkpoint.glob(f"{name}/[0-9]*")] for name in ("offsets", "commits")}
    if any(logs.values()) and not (checkpoint / "metadata").exists():
        return "metadata"
    return next((f"offsets/{name}" for name in sorted(logs["commits"]) if name not in logs["offsets"]), None)


def _fault_in_metadata(file: Path) -> str | None:
    fault = _fault_in_json(file)
    if fault is not None:
        return fault
    try:
        uuid.UUID(json.loads(file.read_bytes())["id"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return "does not hold the id of a query"
    return None


def _fault_in_state(file: Path) -> str | None:
    return None if file.stat().st_size else "is empty"


def _fault_in_log(file: Path) -> str | None:
    """A log has a version and lines of JSON; Spark writes `-` for a source without an offset."""
    version, *lines = file.read_bytes().split(b"\n")
    if version and not re.fullmatch(rb"v\d+", version.strip()):
        return "does not begin with a version, as Spark's logs do"
    return _fault_in(line for line in lines if line.strip() not in (b"", b"-"))


def _fault_in_json(file: Path) -> str | None:
    return _fault_in(filter(None, [file.read_bytes()]))


def _fault_in(texts: Iterable[bytes]) -> str | None:
    found = list(texts)
    try:
        for text in found:
            json.loads(text)
    except ValueError:
        return "is not JSON: it was cut or overwritten"
    return None if found else "is empty"


LOGS = dict.fromkeys(("offsets/[0-9]*", "commits/[0-9]*", "sources/*/[0-9]*"), _fault_in_log)
STATES = dict.fromkeys(
    (*(f"state/**/*.{ending}" for ending in ("delta", "snapshot", "changelog", "zip")), "state/**/_metadata/schema"),
    _fault_in_state,
)


def settings_of(path: str) -> dict[str, str]:
    """Settings that a checkpoint of this machine has fixed, and a restart cannot change; none when it is new."""
    logs = [] if files.is_remote(path) else list((files.local(path) / "offsets").glob("[0-9]*"))
    if not logs:
        return {}
    latest = max(logs, key=lambda each: int(each.name) if each.name.isdigit() else -1)
    try:
        found = json.loads(latest.read_text(encoding="utf-8").splitlines()[1])["conf"]
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        raise unusable(path, f"`{latest.relative_to(Path(files.local(path)))}` cannot be read.") from None
    return {name: str(found[name]) for name in (PARTITIONS, PROVIDER) if name in found}


def schemas_in(path: str) -> dict[str, str]:
    """The columns of the inputs that a checkpoint was made with, and a restart takes again; none when it is new."""
    if files.is_remote(path):
        return {}
    try:
        found = json.loads((files.local(path) / SCHEMAS).read_text(encoding="utf-8"))
        return {str(name): str(ddl) for name, ddl in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError):
        raise unusable(path, f"`{SCHEMAS}` cannot be read.") from None


def keep_schemas(path: str, schemas: Mapping[str, str]) -> None:
    """Keep the columns of the inputs, on this machine: what is found in files later may differ."""
    if files.is_remote(path):
        return
    where = files.local(path)
    where.mkdir(parents=True, exist_ok=True)
    made = where / f".{SCHEMAS}"
    made.write_text(json.dumps(dict(schemas), indent=2) + "\n", encoding="utf-8")
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
    about_files = files.absolute(path) in text and any(word in text for word in UNREADABLE)
    return (
        about_files or any(word in text for word in UNUSABLE) or re.search(r"batch \d+ doesn't exist", text) is not None
    )


def _named(line: str, text: str, path: str) -> str:
    """Spark's sentence, with the file of the checkpoint that its report names, if the sentence does not."""
    found = re.search(rf"{re.escape(files.absolute(path))}/([\w./-]*\w)", text)
    if found is None or found[1] in line:
        return line
    return f"its file `{found[1]}` cannot be read. Spark says: {line}"


def unusable(path: str, why: str) -> StateMismatchError:
    """A checkpoint that is damaged, or another query's."""
    return StateMismatchError(f"The checkpoint `{path}` cannot be used: {why}", hint=NEW_ONE)
