"""Queries go on from the checkpoints of releases before: what a user has on disk is worth something tomorrow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.streaming.kept import EVENTS, HERE, QUERIES, Kept, batches, files_in, rows, shown
from tests.streaming.queries import FAR, Folder, settings

import tocsin
from tocsin import errors
from tocsin.engines.stream.store import VERSION, Clocks, State

FORMATS = sorted(int(path.name.removeprefix("format-")) for path in HERE.iterdir())


def test_the_present_format_is_kept() -> None:
    assert list(range(1, VERSION + 1)) == FORMATS
    for one in QUERIES:
        assert (one.path(VERSION) / "given.json").exists()


@pytest.mark.spark
@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("kept", QUERIES, ids=lambda one: one.name)
def test_a_kept_checkpoint_goes_on(spark: SparkSession, tmp_path: Path, kept: Kept, version: int) -> None:
    """What was given before and what is given now are the matches of the batch, each once."""
    with settings(spark, store=kept.store, partitions=kept.partitions):
        folder = Folder(spark, tmp_path / "live")
        shutil.copytree(kept.path(version) / "checkpoint", folder.path / "checkpoint")
        for file in files_in(folder.path / "checkpoint" / "sources"):
            file.write_text(file.read_text().replace(EVENTS, str(folder.path / "in")))
        for batch in [*batches(), [{"type": "clock", "ts": FAR}]]:  # the first ones it knows already
            folder.add(batch)
        matches = kept.matches(folder.read())
        if version in kept.refused:
            with pytest.raises(StreamingQueryException, match="another query wrote it"):
                folder.run(matches)
            return
        folder.run(matches)
        # One by one: the sink's own list of them begins before this directory did.
        files = map(str, (folder.path / "out").glob("*.parquet"))
        written = spark.read.schema(matches.schema).parquet(*files).collect()
        found = sorted(shown([row.asDict(recursive=True) for row in written]))
        given = json.loads((kept.path(version) / "given.json").read_text())
        batch = spark.createDataFrame([tuple(row.values()) for row in rows()], folder.schema)
        asked = tocsin.rules(kept.text) if kept.is_program else tocsin.pattern(kept.text)
        expected = sorted(shown([row.asDict(recursive=True) for row in asked.match(batch).collect()]))
    assert found
    assert sorted(found + given) == expected


def test_a_format_of_the_future_is_refused() -> None:
    written = b"tocsin" + (VERSION + 1).to_bytes(2, "little") + bytes(4)
    with pytest.raises(errors.StateMismatchError, match=f"format {VERSION + 1}"):
        State.from_bytes(written, "plan")


STATE = State(
    Clocks((50, 70), 40, (7, 8)),
    pa.table({"x": [1, 2, 3], "k": ["a", None, "b"]}),
    {(0, 3): 2},
    b"what functions remember",
    "guard",
)


@given(st.data())
def test_a_damaged_state_is_refused_by_name(data: st.DataObject) -> None:
    """Cut anywhere, or with any byte changed: never another answer, and never an error of Arrow's or Python's."""
    written = STATE.to_bytes("plan")
    assert State.from_bytes(written, "plan") == STATE
    place = data.draw(st.integers(0, len(written) - 1))
    changed = bytes([written[place] ^ data.draw(st.integers(1, 255))])
    for damaged in (written[:place], written[:place] + changed + written[place + 1 :]):
        with pytest.raises(errors.StateMismatchError, match="The state in the checkpoint cannot be used"):
            State.from_bytes(damaged, "plan")


def test_a_state_without_a_checksum_goes_on() -> None:
    """As releases before wrote it."""
    written = STATE.to_bytes("plan")
    length = int.from_bytes(written[8:12], "little")
    said = json.loads(written[12 : 12 + length])
    del said["sum"]
    text = json.dumps(said).encode()
    before = written[:8] + len(text).to_bytes(4, "little") + text + written[12 + length :]
    assert State.from_bytes(before, "plan") == STATE
