"""A damaged checkpoint is refused before Spark starts, with the file that is damaged and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.cli.checkpoints import SCHEMAS, _named, check_checkpoint, damage_in, is_of, keep_schemas, schemas_in
from tocsin.errors import StateMismatchError

KEPT = Path(__file__).parents[1] / "streaming" / "checkpoints" / "format-1"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda written: b"",
    "cut": lambda written: written[: len(written) // 2],
    "overwritten": lambda written: b"\0" * len(written),
    "garbage": lambda written: b"garbage",
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT / "keyed" / "checkpoint", tmp_path / "checkpoint"))


@pytest.mark.parametrize("kept", sorted(KEPT.iterdir()), ids=lambda folder: folder.name)
def test_a_checkpoint_that_is_whole_is_not_refused(kept: Path) -> None:
    assert damage_in(kept / "checkpoint") is None


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["metadata", "offsets/2", "commits/1", "sources/0/1"])
def test_a_damaged_file_is_named(checkpoint: Path, name: str, damage: str) -> None:
    file = checkpoint / name
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(StateMismatchError) as caught:
        check_checkpoint(str(checkpoint), None, {})
    assert f"The checkpoint `{checkpoint}` cannot be used: its file `{name}` " in str(caught.value)
    assert "Hint: start with a new checkpoint directory" in str(caught.value)


def test_an_empty_file_of_the_state_is_named(checkpoint: Path) -> None:
    (checkpoint / "state/0/1/2.delta").write_bytes(b"")
    with pytest.raises(StateMismatchError, match=r"its file `state/0/1/2\.delta` is empty\."):
        check_checkpoint(str(checkpoint), None, {})


@pytest.mark.parametrize("name", ["metadata", "offsets/1", "offsets/2"])
def test_a_missing_file_is_named(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()
    assert damage_in(checkpoint) == f"its file `{name}` is missing."


def test_an_id_that_is_none_is_named(checkpoint: Path) -> None:
    (checkpoint / "metadata").write_text('{"id":"4 10"}')
    assert damage_in(checkpoint) == "its file `metadata` does not hold the id of a query."


def test_an_empty_schema_of_the_state_is_named(checkpoint: Path) -> None:
    files = list(checkpoint.glob("state/**/_metadata/schema"))
    for file in files:
        file.write_bytes(b"")
    assert files
    assert "schema` is empty" in str(damage_in(checkpoint))


@pytest.mark.parametrize(
    "damage", [lambda written: written[:-20], lambda written: written.replace(b'"type":', b'"type"z')]
)
def test_a_damaged_schema_of_the_state_is_named(checkpoint: Path, damage: Callable[[bytes], bytes]) -> None:
    name = "state/0/0/_metadata/schema"
    (checkpoint / name).write_bytes(damage((checkpoint / name).read_bytes()))
    assert damage_in(checkpoint) == f"its file `{name}` is not JSON: it was cut or overwritten."


@pytest.mark.parametrize("key", ["path", "timestamp", "batchId"])
def test_a_damaged_name_of_a_file_that_was_read_is_named(checkpoint: Path, key: str) -> None:
    file = checkpoint / "sources/0/1"
    file.write_text(file.read_text().replace(f'"{key}"', f'"{key[:-1]}~"'))
    assert damage_in(checkpoint) == "its file `sources/0/1` does not name the files that were read."


def test_a_log_of_heartbeats_is_a_number(checkpoint: Path) -> None:
    (checkpoint / "sources/1").mkdir()
    (checkpoint / "sources/1/0").write_text("v1\n1763503200000")
    assert damage_in(checkpoint) is None


def test_every_changed_bit_of_the_kept_columns_is_noticed(tmp_path: Path) -> None:
    columns = {"Login": "`ts` TIMESTAMP, `user` STRING", "columns": "`ts` TIMESTAMP"}
    keep_schemas(str(tmp_path), columns)
    file = tmp_path / SCHEMAS
    written = file.read_bytes()
    assert schemas_in(str(tmp_path)) == columns
    for place in range(8 * len(written)):
        changed = bytearray(written)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        if _same_json(bytes(changed), written):
            continue
        with pytest.raises(StateMismatchError, match=rf"its file `{SCHEMAS}` was cut or overwritten"):
            schemas_in(str(tmp_path))


def _same_json(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_columns_that_an_older_version_kept_are_read(tmp_path: Path) -> None:
    columns = {"Login": "`ts` TIMESTAMP", "columns": "`ts` TIMESTAMP"}
    (tmp_path / SCHEMAS).write_text(json.dumps(columns))
    assert schemas_in(str(tmp_path)) == columns
    (tmp_path / SCHEMAS).write_text('{"Login": 5}')
    with pytest.raises(StateMismatchError):
        schemas_in(str(tmp_path))


def test_the_file_that_holds_what_spark_refuses_is_named(checkpoint: Path) -> None:
    schema = checkpoint / "state/0/0/_metadata/schema"
    schema.write_bytes(schema.read_bytes().replace(b'"binary"', b'"cinary"'))
    source = checkpoint / "sources/0/1"
    source.write_text(source.read_text().replace("///events", "///eventr"))
    other = checkpoint / "sources/0/2"
    other.write_text(other.read_text().replace("file:", "fild:"))
    written = '{"type":"struct","fields":[{"name":"state","type":"cinary","nullable":true,"metadata":{}}]}'
    overwritten = schema.read_bytes()[
        schema.read_bytes().index(b'{"type":"struct","fields":[{"name":"groupState"') :
    ].decode()
    assert written in overwritten
    refused = f"Unsupported data type {overwritten}[1.1] failure: 'TimestampType' expected but '{{' found."
    for said, name in (
        (refused, "state/0/0/_metadata/schema"),
        ("Wrong basePath /events for the root path: file:/eventr/00001.json.", "sources/0/1"),
        ('No FileSystem for scheme "fild".', "sources/0/2"),
    ):
        assert is_of(str(checkpoint), said)
        assert _named(said, said, str(checkpoint)) == f"its file `{name}` cannot be read. Spark says: {said}"


def test_messages_about_the_checkpoint_are_known(checkpoint: Path) -> None:
    """As Spark gave them for files that were deleted, cut or had a bit flipped."""
    own = f"file:{checkpoint}"
    for text in (
        f"Checksum error: {own}/commits/1 at 0 exp: -215302179 got: -1220009838.",
        f"Checkpoint location {own} is in an inconsistent state: the metadata file is missing.",
        f"{own}/sources/0/0 doesn't exist (latestId: 1, compactInterval: 10).",
        "batch 0 doesn't exist.",
        "Concurrent update to the log. Multiple streaming jobs detected for 0.",
        " SQLSTATE: XXKST (no cause message).",
    ):
        assert is_of(str(checkpoint), text), text
    for text in (
        "Checksum error: file:/in/1.json at 0",
        "Path does not exist: file:/in",
        "no space left on device",
        'No FileSystem for scheme "s3"',
    ):
        assert not is_of(str(checkpoint), text), text


def test_a_new_checkpoint_is_fine(tmp_path: Path) -> None:
    check_checkpoint(str(tmp_path / "new"), None, {})


def test_a_file_that_spark_names_further_down_is_told(checkpoint: Path) -> None:
    said = "Error reading a delta."
    text = f"{said}\nCaused by: java.io.EOFException\n  while reading file:{checkpoint}/state/0/1/2.delta of a store"
    named = _named(said, text, str(checkpoint))
    assert named == "its file `state/0/1/2.delta` cannot be read. Spark says: Error reading a delta."
    assert _named("A fault.", "A fault.", str(checkpoint)) == "A fault."
