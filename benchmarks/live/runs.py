"""One run of a plan over a folder of files, a fixed number of them in each micro-batch: what Spark tells of it."""

from __future__ import annotations

import math
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.live.plans import PLANS, STORES
from benchmarks.processes import cpu_seconds
from benchmarks.streams import Stream, generate, table_of

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@dataclass(frozen=True)
class Load:
    """The stream: `rows` events in micro-batches of `per_batch`, in `files` files each, so that all cores read."""

    rows: int
    per_batch: int
    window_s: int
    files: int = 2

    @property
    def batches(self) -> int:
        return self.rows // self.per_batch

    def folder(self, root: Path) -> Path:
        """The files, written when they are not there yet."""
        folder = root / f"live-{self.rows}rows-{self.per_batch}each-{self.files}files"
        if not folder.exists():
            table = table_of(generate(Stream("uniform"), self.rows, 1))
            unfinished = folder.with_name(folder.name + ".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            each = self.per_batch // self.files
            for number in range(self.rows // each):
                write(table.slice(number * each, each), unfinished / f"{number:05}.parquet")
            unfinished.rename(folder)
        return folder


def write(table: pa.Table, file: Path) -> None:
    """A file that a source sees when it is whole: it does not look at names that begin with a dot."""
    hidden = file.with_name(f".{file.name}")
    pq.write_table(table, hidden, row_group_size=1 << 20)
    hidden.rename(file)


def run(spark: SparkSession, plan: str, store: str, load: Load, folder: Path) -> dict[str, Any]:
    """The record of one run, and a sum over its matches by which runs are compared."""
    spark.conf.set(PROVIDER, STORES[store])
    source = spark.readStream.schema(spark.read.parquet(str(folder)).schema)
    events = source.option("maxFilesPerTrigger", load.files).parquet(str(folder))
    with tempfile.TemporaryDirectory(prefix="tocsin-live-") as scratch:
        cpu = cpu_seconds()
        query = (
            PLANS[plan](events, load.window_s)
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{scratch}/checkpoint")
            .option("path", f"{scratch}/out")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        cpu = cpu_seconds() - cpu
        found = result_of(spark.read.parquet(f"{scratch}/out"))
        checkpoint = sum(file.stat().st_size for file in Path(scratch, "checkpoint").rglob("*") if file.is_file())
        progress = [one for one in query.recentProgress if one["numInputRows"]]
    return {
        "plan": plan,
        "store": store,
        **found,
        **steady([one["durationMs"]["triggerExecution"] for one in progress], load.per_batch),
        "state_rows": max(sum(one["numRowsTotal"] for one in each["stateOperators"]) for each in progress),
        "state_mb": max(sum(one["memoryUsedBytes"] for one in each["stateOperators"]) for each in progress) / 1e6,
        "checkpoint_mb": checkpoint / 1e6,
        "cpu_s_per_million": cpu / load.rows * 1e6,
        "told": [told(one) for one in progress],
    }


def steady(times_ms: Sequence[int], per_batch: int) -> dict[str, Any]:
    """What micro-batches took; the first third, in which everything is compiled and loaded, does not count."""
    counted = times_ms[max(1, len(times_ms) // 3) :]
    median = statistics.median(counted)
    return {
        "median_ms": median,
        "p99_ms": percentile(counted, 0.99),
        "events_per_s": per_batch / median * 1000,
        "counted": len(counted),
        "times_ms": list(times_ms),
    }


def percentile(numbers: Sequence[float], share: float) -> float:
    """The least number that is not below so many of them."""
    return sorted(numbers)[math.ceil(share * len(numbers)) - 1]


def told(progress: Any) -> dict[str, int]:
    """What Tocsin said of a micro-batch; nothing for other plans."""
    metrics = progress["observedMetrics"].get("tocsin")
    return {} if metrics is None else metrics.asDict()


def result_of(matches: DataFrame) -> dict[str, int]:
    """How many matches there are, and a sum over them."""
    count, checksum = matches.agg(F.count("*"), F.sum(F.xxhash64("a", "b", "c").cast("decimal(38,0)"))).first() or ()
    return {"matches": int(count), "checksum": int(checksum or 0)}
