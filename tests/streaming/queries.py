"""Streams on Spark: micro-batches as files, a real checkpoint, and the rows that a sink has got."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery
from pyspark.sql.types import StructType

STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
SCHEMA = "type string, ts bigint, k string, x bigint, v double"
FAR = 10**15  # a time that decides everything


class Folder:
    """A directory that a file source reads, one file per micro-batch, and a sink beside it."""

    def __init__(self, spark: SparkSession, path: Path, schema: str = SCHEMA) -> None:
        self.spark, self.path, self.schema = spark, path, schema
        self.count = 0
        self.columns: StructType | None = None
        (path / "in").mkdir(parents=True)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """One more micro-batch."""
        text = "".join(json.dumps(row) + "\n" for row in rows)
        # Spark reads the oldest file first, by the time of its last change; names break ties.
        file = self.path / "in" / f"{self.count:05}.json"
        file.write_text(text)
        self.count += 1
        os.utime(file, (self.count, self.count))

    def read(self) -> DataFrame:
        """The stream."""
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.path / "in"))

    def run(self, matches: DataFrame) -> StreamingQuery:
        """Take everything that is there, and stop."""
        query = self._sink(matches).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    def start(self, matches: DataFrame) -> StreamingQuery:
        """Go on until somebody stops it."""
        return self._sink(matches).start()

    def _sink(self, matches: DataFrame) -> DataStreamWriter:
        self.columns = matches.schema
        return (
            matches.writeStream.format("parquet")
            .option("checkpointLocation", str(self.path / "checkpoint"))
            .option("path", str(self.path / "out"))
        )

    def written(self) -> list[dict[str, Any]]:
        """What the sink holds."""
        if self.columns is None or not (self.path / "out" / "_spark_metadata").exists():
            return []
        rows = self.spark.read.schema(self.columns).parquet(str(self.path / "out")).collect()
        return [row.asDict(recursive=True) for row in rows]


def session_settings(*, store: str = "default", partitions: int = 1) -> dict[str, str]:
    """What a session of small streams needs."""
    return {
        "spark.sql.streaming.stateStore.providerClass": STORES[store],
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


@contextmanager
def settings(spark: SparkSession, *, store: str = "default", partitions: int = 1) -> Iterator[SparkSession]:
    """The session for small streams, with one of the state stores."""
    wanted = session_settings(store=store, partitions=partitions)
    before = {name: spark.conf.get(name) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def observed(query: StreamingQuery) -> list[dict[str, Any]]:
    """What each micro-batch told of itself."""
    return [
        dict(progress["observedMetrics"]["tocsin"].asDict())
        for progress in query.recentProgress
        if "tocsin" in progress["observedMetrics"]
    ]
