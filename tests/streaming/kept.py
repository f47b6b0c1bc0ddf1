"""Checkpoints that a release has written, kept for those that come after it.

`python -m tests.streaming.kept` writes those of the present release into `tests/streaming/checkpoints/format-N`, where
N is the format of the state. They are written once for every format and never again: what is kept is what users have.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tests.streaming.queries import Folder, settings

import tocsin
from tocsin.engines.stream.store import VERSION

HERE = Path(__file__).parent / "checkpoints"
LATENESS = "5 us"
EVENTS = "/events"  # stands in a checkpoint for where they were
PROGRAM = """
template A { k : String, x : Long }
template B { k : String, x : Long }
template Pair { k : String, x : Long }
rule Paired where a : A  b : B { k = a.k }
  when b in a [1 microsecond, 9 microseconds]
  then emit Pair at b.timestamp with { k = a.k, x = a.x + b.x }
rule Alone where p : Pair  no q : Pair { k = p.k } when no q in p [1 microsecond, 9 microseconds]
"""


@dataclass(frozen=True)
class Kept:
    """A query, and how it ran when its checkpoint was written."""

    name: str
    text: str
    store: str = "default"
    partitions: int = 1
    is_program: bool = False
    refused: tuple[int, ...] = ()  # the formats whose checkpoints hold ids that are made otherwise now

    def matches(self, events: DataFrame) -> DataFrame:
        """The query on a stream."""
        asked: Any = tocsin.rules(self.text) if self.is_program else tocsin.pattern(self.text)
        return asked.match(events, lateness=LATENESS)

    def path(self, version: int) -> Path:
        """Where its checkpoint is kept."""
        return HERE / f"format-{version}" / self.name


QUERIES = [
    Kept("keyed", "PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 20 us", partitions=2, refused=(1,)),
    Kept("absence", "PATTERN SEQ(B b, NOT C c, A a) WITHIN 12 us", "rocksdb"),
    Kept("skipping", "PATTERN SEQ(A a, B b) WITHIN 9 us AFTER MATCH SKIP PAST LAST EVENT"),
    Kept("counted", "PATTERN SEQ(A a, B+ b) WITHIN 9 us RETURN COUNT(*) AS n, SUM(b.x) AS s EVERY 10 us"),
    Kept("program", PROGRAM, is_program=True),
]


def rows() -> list[dict[str, Any]]:
    """The events of all of them, in order of time."""
    return [{"type": "ABCAB"[ts * 7 % 5], "ts": ts, "k": "pq"[ts % 2], "x": ts % 4, "v": 0.5} for ts in range(60)]


def batches() -> list[list[dict[str, Any]]]:
    """Micro-batches: three of them were written before the query stopped."""
    return [rows()[begin : begin + 10] for begin in range(0, 60, 10)]


BEFORE = 3


def write(spark: SparkSession, one: Kept) -> None:
    """Run the first micro-batches, and keep the checkpoint and what was given."""
    with tempfile.TemporaryDirectory() as scratch, settings(spark, store=one.store, partitions=one.partitions):
        folder = Folder(spark, Path(scratch) / "live")
        for batch in batches()[:BEFORE]:
            folder.add(batch)
        folder.run(one.matches(folder.read()))
        path = one.path(VERSION)
        shutil.copytree(folder.path / "checkpoint", path / "checkpoint")
        (path / "given.json").write_text(json.dumps(sorted(shown(folder.written())), indent=1) + "\n")
    for file in files_in(path / "checkpoint"):
        if file.name.endswith(".crc"):
            file.unlink()
        elif "sources" in file.parts:
            file.write_text(file.read_text().replace(str(Path(scratch) / "live" / "in"), EVENTS))


def shown(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Rows as text: by their ids, where they have some."""
    return (row.get("match_id") or json.dumps(row, sort_keys=True) for row in found)


def files_in(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for kept in QUERIES:
        if kept.path(VERSION).exists():
            sys.exit(f"{kept.path(VERSION)} is there already: what is kept is not written again.")
        write(session, kept)
