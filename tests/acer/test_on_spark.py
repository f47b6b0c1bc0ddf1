"""The operators on Spark: tables and streams, literal and fast, give what the definitions say."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.acer import definitions
from tests.acer.definitions import Row
from tests.streaming.queries import Folder, observed, settings

from tocsin import acer

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SCHEMA = "ts bigint, k string, x bigint"
FAR = 500  # ends all windows; the literal R-CER gives something at every tick until then
Run = Callable[..., DataFrame]


def rows_of(seed: int, count: int = 40) -> list[Row]:
    """Events with ties, duplicates and a key that is NULL."""
    chance = random.Random(seed)
    return [Row(chance.randint(-10, 60), chance.choice(["p", "q", None]), chance.randint(0, 3)) for _ in range(count)]


# --- the operators, and what they are defined to give -------------------------------------------------
# Functions are made inside others, so that workers get them by value.


def aggregate(df: DataFrame, key: str | None, **options: Any) -> DataFrame:
    def add(state: Any, event: Any) -> Any:
        return [*(state or []), event.x]

    def tell(state: Any, window: Any) -> Any:
        return {"n": len(state), "values": sorted(state), "begin": window.start}

    return acer.aggregate(
        df,
        key=key,
        advance=4,
        size=10,
        update=add,
        output=tell,
        schema="n int, values array<bigint>, begin bigint",
        **options,
    )


def aggregate_wanted(rows: list[Row], key: str | None) -> Counter[Any]:
    return definitions.aggregated(rows, key, 4, 10, 1, lambda held: tuple(sorted(row.x for row in held)))


def aggregate_told(row: Any, key: str | None) -> Any:
    assert row["n"] == len(row["values"])
    assert row["begin"] == row["ts"] + 1 - 10
    return row["k"] if key else None, row["ts"], tuple(row["values"])


def preprocess(df: DataFrame, key: str | None, **options: Any) -> DataFrame:
    return acer.sort_and_preprocess(df, lambda events: [events[0]], key=key, **options)


def preprocess_wanted(rows: list[Row], key: str | None) -> Counter[Any]:
    if key is None:
        return Counter((row.k, row.ts, row.x) for row in set(rows))
    groups = definitions.by_key(rows, key)
    found: dict[Any, set[int]] = {}
    for own in groups.values():
        for row in own:
            found.setdefault((row.k, row.ts), set()).add(row.x)
    return Counter({one: 1 for one in found})


def preprocess_told(row: Any, key: str | None) -> Any:
    return (row["k"], row["ts"], row["x"]) if key is None else (row["k"], row["ts"])


def find(df: DataFrame, key: str | None, **options: Any) -> DataFrame:
    def rising(state: Any, event: Any) -> Any:
        seen = state or []
        return [*seen, event], [(one.ts, event.ts, one.x, event.x) for one in seen if one.x < event.x]

    return acer.time_cer(
        df, rising, within=5, key=key, advance=3, size=9, ties="x", schema="low bigint, high bigint", **options
    )


def find_wanted(rows: list[Row], key: str | None) -> Counter[Any]:
    return definitions.sequences(rows, key, 5, 2, 3, 9, 1)


def find_told(row: Any, key: str | None) -> Any:
    return row["k"] if key else None, row["ts"], row["start"], row["end"], (row["low"], row["high"])


def number(df: DataFrame, key: str | None, **options: Any) -> DataFrame:
    def count(state: Any, event: Any) -> Any:
        seen, last = state or (0, -1)
        return (seen + 1, event.x), [{"seen": seen, "last": last, "x": event.x}] if event.x else None

    return acer.rule_cer(df, count, key=key, ties=["x"], schema="seen bigint, last bigint, x bigint", **options)


def number_wanted(rows: list[Row], key: str | None) -> Counter[Any]:
    def count(state: Any, row: Row) -> Any:
        seen, last = state or (0, -1)
        return (seen + 1, row.x), [(seen, last, row.x)] if row.x else []

    return definitions.folded(rows, key, count)


def number_told(row: Any, key: str | None) -> Any:
    return row["k"] if key else None, row["ts"], (row["seen"], row["last"], row["x"])


OPERATORS: dict[str, tuple[Run, Callable[..., Counter[Any]], Callable[..., Any]]] = {
    "aggregate": (aggregate, aggregate_wanted, aggregate_told),
    "sort_and_preprocess": (preprocess, preprocess_wanted, preprocess_told),
    "time_cer": (find, find_wanted, find_told),
    "rule_cer": (number, number_wanted, number_told),
}
EVERY = pytest.mark.parametrize("operator", OPERATORS)
CONSTRUCTIONS = pytest.mark.parametrize("construction", ["fast", "literal"])


@EVERY
@CONSTRUCTIONS
@pytest.mark.parametrize("key", [None, "k"])
def test_tables(spark: SparkSession, operator: str, construction: str, key: str | None) -> None:
    run, wanted, told = OPERATORS[operator]
    rows = rows_of(1)
    df = spark.createDataFrame([*rows, Row(None, "p", 9)], SCHEMA).repartition(3)  # type: ignore[arg-type]
    found = [row.asDict(recursive=True) for row in run(df, key, construction=construction).collect()]
    assert Counter(told(row, key) for row in found) == wanted(rows, key)
    if operator == "sort_and_preprocess":
        assert [row["ts"] for row in found] == sorted(row["ts"] for row in found)


@EVERY
@pytest.mark.parametrize(("construction", "store"), [("fast", "default"), ("fast", "rocksdb"), ("literal", "default")])
def test_streams_that_stop_and_go_on(
    spark: SparkSession, tmp_path: Path, operator: str, construction: str, store: str
) -> None:
    run, wanted, told = OPERATORS[operator]
    chance = random.Random(f"{operator} {construction} {store}")
    delay, key = chance.choice([0, 4, 15]), chance.choice([None, "k"])
    rows = rows_of(chance.randrange(1000))
    arriving = sorted(rows, key=lambda row: row.ts + chance.randint(0, delay))
    with settings(spark, store=store, partitions=2):
        folder = Folder(spark, tmp_path, SCHEMA)
        ended = False
        for begin in range(0, len(arriving), 15):
            ended = begin + 15 >= len(arriving)
            folder.add([row._asdict() for row in arriving[begin : begin + 15]])
            if ended:  # an event that ends all windows, and a row without a time
                folder.add([{"ts": FAR, "k": "end", "x": 0}, {"k": "p", "x": 0}])
            results = run(folder.read(), key, construction=construction, watermark=delay)
            query = folder.run(results)  # a new query each time, on the checkpoint of the last
        found = [row for row in folder.written() if row["ts"] < FAR - 100]
        last = observed(query)[-1]
    if construction == "fast":  # the last event, and where the user keeps one a state for each key
        assert last["remembered"] <= (5 if operator == "rule_cer" else 1)
    assert Counter(told(row, key) for row in found if row.get("k") != "end") == wanted(rows, key)
    assert last["bad"] == 1
    assert last["late"] == 0


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_times_are_shown_as_the_column_has_them(spark: SparkSession, kind: str) -> None:
    def describe(state: Any, event: Any) -> Any:
        return (state or 0) + 1, [(event.ts.isoformat(), str(event.day), event.note)]

    df = spark.sql(
        f"SELECT * FROM VALUES ({kind} '2026-03-29 01:30:00', DATE '2026-03-29', 'a'), "
        f"({kind} '2026-03-29 03:30:00.000001', DATE '2026-03-29', NULL) AS t(ts, day, note)"
    )
    rows = acer.rule_cer(df, describe, schema="text string, day string, note string").orderBy("ts").collect()
    zone = "+00:00" if kind == "timestamp" else ""
    assert [row.text for row in rows] == [f"2026-03-29T01:30:00{zone}", f"2026-03-29T03:30:00.000001{zone}"]
    assert [row.note for row in rows] == ["a", None]
    assert [row.ts for row in rows] == [row.ts for row in df.orderBy("ts").collect()]


def test_sequences_have_times_as_the_column_has_them(spark: SparkSession) -> None:
    def pairs(state: Any, event: Any) -> Any:
        return event, [(state.ts, event.ts)] if state is not None else []

    df = spark.sql("SELECT timestamp_seconds(id * 40) AS ts FROM range(4)")
    found = acer.time_cer(df, pairs, within="1 minute", schema="").orderBy("start").collect()
    assert [(row.start.second, row.end.second) for row in found] == [(0, 40), (40, 20), (20, 0)]
    assert found[0].ts == found[0].start.replace(minute=1, second=59, microsecond=999999)


def test_unkeyed_windows_run_in_several_tasks(spark: SparkSession) -> None:
    """Without a key a table is cut by time: windows of one block are one task's."""
    df = spark.range(0, 4000, 1, 4).selectExpr("id AS ts")
    counted = acer.aggregate(
        df, advance=5, size=10, update=lambda n, event: (n or 0) + 1, output=lambda n: (n,), schema="n bigint"
    )
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # it would join tasks this small
    try:
        found = counted.withColumn("task", F.spark_partition_id()).collect()
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    assert Counter(row.n for row in found) == {10: 799, 5: 2}
    assert len({row.task for row in found}) == 2


def test_late_events_give_results_again(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark):
        folder = Folder(spark, tmp_path, SCHEMA)
        for rows in ([(1, 5), (12, 1)], [(2, 7)], [(40, 0)], [(3, 9)], [(100, 0)]):
            folder.add([{"ts": ts, "k": "p", "x": x} for ts, x in rows])
        summed = acer.aggregate(
            folder.read(),
            key="k",
            advance=10,
            size=10,
            lateness=20,
            watermark=0,
            update=lambda total, event: (total or 0) + event.x,
            output=lambda total: (total,),
            schema="total bigint",
        )
        query = folder.run(summed)
        found = sorted((row["ts"], row["revision"], row["total"]) for row in folder.written())
        assert sum(one["late"] for one in observed(query)) == 1  # at 3, when time was at 40
    assert found == [(9, 0, 5), (9, 1, 12), (19, 0, 1), (49, 0, 0)]
