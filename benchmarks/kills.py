"""`python -m benchmarks.kills`: a stream that is killed again and again has the rows of the batch, each once.

Events lie in files, out of order within the lateness, some of them twice, some without a time. A driver takes a file
per micro-batch and writes matches; after every few micro-batches, at a random moment, it gets SIGKILL, and with it the
JVM and all Python workers: nothing can be tidied up. A new driver goes on from the checkpoint. At the end the sink is
compared with the batch result, as multisets of whole rows.

It runs with Spark's file sink and with `tocsin.sinks.once`, on both state stores. Only processes that were started here
are killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import processes, session
from benchmarks.settings import parse_size, size
from tocsin.cli.checkpoints import PROVIDER, STORES

PATTERN = """
    PATTERN SEQ(A a, B b, NOT C c) PARTITION BY k
    WHERE b.x > a.x AND c.x = a.x
    WITHIN 2 SECONDS RETURN a.k, a.n AS first, b.n AS second
"""
LATENESS_US = 500_000
EVERY_US = 1_000  # between two events, on average
SCHEMA = pa.schema([("type", pa.string()), ("ts", pa.int64()), ("k", pa.int32()), ("x", pa.int32()), ("n", pa.int64())])
FAR = 10**15  # a time that decides everything
SINKS = ("files", "once")
PATIENCE_S = 600.0


# --- the events -----------------------------------------------------------------------------------


def make(folder: Path, rows: int, files: int, seed: int) -> None:
    """The events in files, in order of arrival; the last one tells that all is over."""
    chance = np.random.default_rng(seed)
    ts = np.arange(rows, dtype=np.int64) * EVERY_US
    table = pa.table(
        {
            "type": np.array(["A", "B", "C"])[chance.integers(0, 3, rows)],
            "ts": pa.array(ts, mask=chance.random(rows) < 0.002),
            "k": chance.integers(0, 200, rows, dtype=np.int32),
            "x": chance.integers(0, 40, rows, dtype=np.int32),
            "n": np.arange(rows, dtype=np.int64),
        },
        schema=SCHEMA,
    )
    twice = np.concatenate([np.arange(rows), np.flatnonzero(chance.random(rows) < 0.002)])
    arrival = ts[twice] + chance.integers(0, LATENESS_US, len(twice))
    order = twice[np.argsort(arrival, kind="stable")]
    folder.mkdir(parents=True)
    parts = [table.take(pa.array(part)) for part in np.array_split(order, files)]
    parts.append(pa.table({"type": ["clock"], "ts": [FAR], "k": [0], "x": [0], "n": [-1]}, schema=SCHEMA))
    for number, part in enumerate(parts):
        file = folder / f"{number:05}.parquet"
        pq.write_table(part, file)
        os.utime(file, (number, number))  # Spark reads the oldest first


# --- what runs in a process of its own ------------------------------------------------------------


def child(spec: dict[str, Any]) -> None:
    """Run the stream to its end, or the batch, or compare the two."""
    import tocsin
    from tocsin import sinks

    home = Path(spec["home"])
    spark = session.start(cores=2, partitions=2, memory="2g", scratch=home / "scratch")
    pattern = tocsin.pattern(PATTERN)
    columns = spark.read.parquet(spec["data"]).schema
    if spec["what"] == "batch":
        pattern.match(spark.read.parquet(spec["data"])).write.mode("overwrite").parquet(spec["expected"])
        return
    if spec["what"] == "compare":
        expected = spark.read.parquet(spec["expected"])
        found = spark.read.parquet(str(home / "out")).select(expected.columns)
        told = {
            "matches": expected.count(),
            "rows": found.count(),
            "ids": found.select("match_id").distinct().count(),
            "lost": expected.exceptAll(found).count(),
            "surplus": found.exceptAll(expected).count(),
        }
        if spec["sink"] == "once":  # readers that know nothing of Spark must find the same
            told["rows"] = pq.read_table(home / "out").num_rows
        (home / "compared.json").write_text(json.dumps(told))
        return
    spark.conf.set(PROVIDER, STORES[spec["store"]])
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(spec["data"])
    matches = pattern.match(events, lateness=f"{LATENESS_US} us")
    writer = matches.writeStream.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True)
    if spec["sink"] == "once":
        query = writer.foreachBatch(sinks.once(str(home / "out"))).start()
    else:
        query = writer.format("parquet").option("path", str(home / "out")).start()
    query.awaitTermination()


def start(spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.kills", "--child", json.dumps(spec)]
    path = os.pathsep.join([str(session.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    log = (Path(spec["home"]) / "log").open("ab")
    with log:
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log, start_new_session=True
        )


def finish(spec: dict[str, Any]) -> None:
    process = start(spec)
    if process.wait():
        sys.exit(f"{spec['what']} failed; see {spec['home']}/log")


# --- killing --------------------------------------------------------------------------------------


def kill(process: subprocess.Popen[bytes]) -> int:
    """SIGKILL for a driver, its JVM and its workers; how many they were."""
    below = [one.pid for one in processes.descendants(process.pid)]
    for pid in (process.pid, *below):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.wait()
    return 1 + len(below)


def latest(folder: Path) -> int:
    """The number of the last micro-batch in a log of a checkpoint, or -1."""
    return max((int(file.name) for file in folder.glob("[0-9]*") if file.name.isdigit()), default=-1)


def killed_run(spec: dict[str, Any], batches: int, kills: int, chance: random.Random) -> list[dict[str, Any]]:
    """Run a stream to its end through so many kills; what each met."""
    checkpoint = Path(spec["home"]) / "checkpoint"
    met = []
    for number in range(kills):
        goal = (number + 1) * batches // (kills + 1)
        process = start(spec)
        until = time.monotonic() + PATIENCE_S
        while latest(checkpoint / "offsets") < goal and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        # Somewhere in the micro-batch that has just begun, or in the next.
        time.sleep(chance.uniform(0, 1.5))
        if process.poll() is not None:
            sys.exit(f"the stream ended by itself, with {process.returncode}; see {spec['home']}/log")
        count = kill(process)
        planned, done = latest(checkpoint / "offsets"), latest(checkpoint / "commits")
        met.append({"processes": count, "begun": planned, "committed": done})
    finish(spec)
    return met


def measure(data: Path, expected: Path, home: Path, store: str, sink: str, given: argparse.Namespace) -> dict[str, Any]:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    spec = {"home": str(home), "data": str(data), "expected": str(expected), "store": store, "sink": sink}
    began = time.perf_counter()
    met = killed_run(
        {**spec, "what": "stream"}, given.files + 1, given.kills, random.Random(f"{given.seed} {store} {sink}")
    )
    seconds = time.perf_counter() - began
    finish({**spec, "what": "compare"})
    compared = json.loads((home / "compared.json").read_text())
    return {"store": store, "sink": sink, "kills": met, "seconds": round(seconds, 1), **compared}


def is_exact(record: dict[str, Any]) -> bool:
    same = record["rows"] == record["ids"] == record["matches"] > 0
    return same and not record["lost"] and not record["surplus"]


def table(records: list[dict[str, Any]]) -> str:
    lines = [
        "| state store | sink | kills | in the middle of a micro-batch | matches | lost | surplus | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = {"files": "Spark's files", "once": "`sinks.once`"}
    for one in records:
        within = sum(kill["begun"] > kill["committed"] for kill in one["kills"])
        lines.append(
            f"| {one['store']} | {names[one['sink']]} | {len(one['kills'])} | {within} | {one['matches']:,} | "
            f"{one['lost']} | {one['surplus']} | {one['seconds']:,.0f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--rows", default="2M", help="number of events (2M)")
    made.add_argument("--files", type=int, default=40, help="files, and so micro-batches (40)")
    made.add_argument("--kills", type=int, default=10, help="kills of each run (10)")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--stores", nargs="+", choices=tuple(STORES), default=list(STORES))
    made.add_argument("--sinks", nargs="+", choices=SINKS, default=list(SINKS))
    made.add_argument("--home", type=Path, default=Path("build/kills"), help="where events and checkpoints go")
    made.add_argument("--out", type=Path, default=Path("build/bench/kills.json"), help="where the result goes")
    made.add_argument("--child", help=argparse.SUPPRESS)
    given = made.parse_args(arguments)
    if given.child:
        child(json.loads(given.child))
        return 0
    rows = parse_size(given.rows)
    home = given.home.resolve()
    shutil.rmtree(home, ignore_errors=True)
    data, expected = home / "data", home / "expected"
    make(data, rows, given.files, given.seed)
    finish({"what": "batch", "home": str(home), "data": str(data), "expected": str(expected)})
    records = []
    for store in given.stores:
        for sink in given.sinks:
            records.append(measure(data, expected, home / f"{store}-{sink}", store, sink, given))
            result = {"environment": session.environment(rows=rows, files=given.files), "records": records}
            given.out.parent.mkdir(parents=True, exist_ok=True)
            given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(f"{store}, {sink}: {'exact' if is_exact(records[-1]) else 'WRONG'}", flush=True)
    print(f"\n{size(rows)} events in {given.files} files\n\n{table(records)}\n\nWritten: {given.out}")
    return 0 if all(map(is_exact, records)) else 1


if __name__ == "__main__":
    sys.exit(main())
