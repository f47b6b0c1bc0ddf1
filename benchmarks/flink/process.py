"""Flink in a process of its own, with the Python of an environment of its own.

apache-flink pins other packages than Tocsin's, so it is installed in `build/flink`, the first time that it is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from benchmarks.flink.sql import FILES, FOUND, GIVEN, NOWHERE, views
from benchmarks.shapes import Shape

VERSION = "2.3.0"
MATCHES = {"start": pa.int64(), "end": pa.int64(), "e1_id": pa.int64(), "e2_id": pa.int64(), "value": pa.float64()}


@dataclass(frozen=True)
class Insert:
    """The query whose rows Flink inserts into a table."""

    select: str


class Flink:
    """A process that runs SQL on Flink, one statement after the other."""

    def __init__(self, python: Path, shape: Shape, events: Path, scratch: Path, cores: int) -> None:
        self.scratch = scratch
        self.number = 0
        self.log = (scratch / "flink.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(python), "-P", str(Path(__file__).with_name("job.py")), str(cores)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        tables = [GIVEN.format(folder=events), FOUND.format(name="nowhere", options=NOWHERE)]
        self._ask([*tables, *views(shape)])

    def seconds(self, insert: Insert) -> float:
        """How long it takes when nothing is kept."""
        return self._ask(f"INSERT INTO nowhere {insert.select}")["net_s"]

    def rows(self, insert: Insert) -> pa.Table:
        """The rows, by way of files."""
        self.number += 1
        name, folder = f"found{self.number}", self.scratch / f"found{self.number}"
        self._ask([FOUND.format(name=name, options=FILES.format(folder=folder))])
        self._ask(f"INSERT INTO {name} {insert.select}")
        return read_csv(folder, MATCHES)

    def _ask(self, asked: list[str] | str) -> dict[str, float]:
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        # Flink's own words may go to the same stream.
        answer = next((line for line in self.process.stdout if line.startswith("{")), None)
        if answer is None:
            self.close()
            raise RuntimeError(f"Flink has ended; {self.log.name} says why")
        return json.loads(answer)

    def close(self) -> None:
        # Leaving the process's block closes its streams, which ends it, and waits for that.
        with contextlib.suppress(BrokenPipeError), self.process:
            pass
        self.log.close()


def python_of(home: Path) -> Path | str:
    """The Python of an environment with apache-flink, which is made when it is not there yet; or why there is none."""
    python, ready = home / "bin" / "python", home / ".ready"
    if ready.exists():
        return python
    print(f"Making an environment for apache-flink {VERSION} in {home}; this takes a minute.", flush=True)
    install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", f"apache-flink=={VERSION}"]
    for command in ([sys.executable, "-m", "venv", str(home)], [str(python), *install]):
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if ended.returncode:
            words = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
            return f"apache-flink {VERSION} cannot be installed: {''.join(words)}"
    ready.touch()
    return python


def read_csv(folder: Path, columns: dict[str, pa.DataType]) -> pa.Table:
    """The rows of all CSV files of a folder, which have no header."""
    names, types = csv.ReadOptions(column_names=list(columns)), csv.ConvertOptions(column_types=columns)
    written = [file for file in sorted(folder.iterdir()) if file.is_file() and file.stat().st_size]
    return pa.concat_tables(csv.read_csv(file, read_options=names, convert_options=types) for file in written)
