"""The operators on Spark: tables and streams, literal and fast, give what the definitions say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.acer.definitions import Row
from tests.acer.operators import OPERATORS, SCHEMA, Shape
from tests.engines.support import light_settings
from tests.streaming.queries import Folder, observed, settings

from tocsin import acer, errors

FAR = 500  # ends all windows; the literal R-CER gives something at every tick until then


def rows_of(seed: int, count: int = 40) -> list[Row]:
    """Events with ties, duplicates and a key that is NULL."""
    chance = random.Random(seed)
    return [Row(chance.randint(-10, 60), chance.choice(["p", "q", None]), chance.randint(0, 3)) for _ in range(count)]


class Life:
    """The events of a stream: late by no more than the watermark is behind, in micro-batches, with restarts."""

    def __init__(
        self, rows: list[Row], chance: random.Random, *, key: str | None, store: str = "default", unit: int = 1
    ) -> None:
        self.rows, self.key, self.store, self.unit = rows, key, store, unit
        self.delay = chance.choice([0, 4, 15]) * unit
        self.arriving = sorted(rows, key=lambda row: row.ts + chance.randint(0, self.delay))

    def check(self, spark: SparkSession, path: Path, operator: str, construction: str, shape: Shape) -> None:
        asked, far = OPERATORS[operator], FAR * self.unit
        with settings(spark, store=self.store, partitions=2):
            folder = Folder(spark, path, SCHEMA)
            for begin in range(0, len(self.arriving), 20):
                folder.add([row._asdict() for row in self.arriving[begin : begin + 20]])
                if begin + 20 >= len(self.arriving):  # an event that ends all windows, and a row without a time
                    folder.add([{"ts": far, "k": "end", "x": 0}, {"k": "p", "x": 0}])
                results = asked.run(folder.read(), self.key, shape, construction=construction, watermark=self.delay)
                query = folder.run(results)  # a new query each time, on the checkpoint of the last
            found = [row for row in folder.written() if row["ts"] < far - 100 * self.unit]
            last = observed(query)[-1]
        if construction == "fast":  # the last event, and where the user keeps one a state for each key
            assert last["remembered"] <= (5 if operator == "rule_cer" else 1)
        wanted = asked.wanted(self.rows, self.key, shape)
        assert Counter(asked.told(row, self.key) for row in found if row.get("k") != "end") == wanted
        assert last["bad"] == 1
        assert last["late"] == 0


EVERY = pytest.mark.parametrize("operator", OPERATORS)
CONSTRUCTIONS = pytest.mark.parametrize("construction", ["fast", "literal"])


@EVERY
@CONSTRUCTIONS
@pytest.mark.parametrize("key", [pytest.param(None, marks=pytest.mark.slow), "k"])
def test_tables(spark: SparkSession, operator: str, construction: str, key: str | None) -> None:
    asked, rows = OPERATORS[operator], rows_of(1)
    df = spark.createDataFrame([*rows, Row(None, "p", 9)], SCHEMA).repartition(3)  # type: ignore[arg-type]
    found = [row.asDict(recursive=True) for row in asked.run(df, key, Shape(), construction=construction).collect()]
    assert Counter(asked.told(row, key) for row in found) == asked.wanted(rows, key, Shape())
    if operator == "sort_and_preprocess":
        assert [row["ts"] for row in found] == sorted(row["ts"] for row in found)


@CONSTRUCTIONS
@pytest.mark.parametrize("key", [None, "k", ()])
def test_preprocessed_events_are_in_order_over_all_partitions(spark: SparkSession, construction: str, key: Any) -> None:
    rows = [Row(time * 7919 % 500, "pq"[time % 2], time % 3) for time in range(3000)]
    df = spark.createDataFrame(rows, SCHEMA).repartition(5)
    with light_settings(spark, partitions=7):
        result = acer.sort_and_preprocess(df, lambda events: events, key=key, construction=construction)
        found = [row.asDict() for row in result.collect()]
        assert result.rdd.getNumPartitions() == 7
    assert [row["ts"] for row in found] == sorted(row.ts for row in rows)
    assert Counter((row["ts"], row["k"], row["x"]) for row in found) == Counter(rows)


WAYS = (("fast", "default"), ("fast", "rocksdb"), ("literal", "default"))


def ways() -> Iterator[Any]:
    """Every operator in every way; `make test` runs each operator in one of them."""
    for number, operator in enumerate(OPERATORS):
        for place, way in enumerate(WAYS):
            yield pytest.param(operator, *way, marks=() if place == number % len(WAYS) else pytest.mark.slow)


@pytest.mark.parametrize(("operator", "construction", "store"), list(ways()))
def test_streams_that_stop_and_go_on(
    spark: SparkSession, tmp_path: Path, operator: str, construction: str, store: str
) -> None:
    chance = random.Random(f"{operator} {construction} {store}")
    life = Life(rows_of(chance.randrange(1000)), chance, key=chance.choice([None, "k"]), store=store)
    life.check(spark, tmp_path, operator, construction, Shape())


# --- random streams ---------------------------------------------------------------------------------


def run_random(spark: SparkSession, folder: Path, examples: int) -> Counter[str]:
    """Any operator with any legal windows over any events, as a table and as a stream."""
    ran: Counter[str] = Counter()

    # A failure is shown as it was found: every step of shrinking would be several Spark jobs.
    @hypothesis.settings(
        max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
    )
    @given(st.sampled_from(list(OPERATORS)), st.sampled_from(["fast", "literal"]), shapes(), st.integers(0, 2**32))
    def operators(operator: str, construction: str, shape: Shape, seed: int) -> None:
        chance, asked = random.Random(seed), OPERATORS[operator]
        key = chance.choice([None, "k"])
        rows = [row._replace(ts=row.ts * shape.unit) for row in rows_of(seed, chance.choice([0, 1, 12, 40]))]
        df = spark.createDataFrame(rows, SCHEMA).repartition(chance.choice([1, 3]))
        found = [row.asDict(recursive=True) for row in asked.run(df, key, shape, construction=construction).collect()]
        assert Counter(asked.told(row, key) for row in found) == asked.wanted(rows, key, shape)
        ran[f"{operator} {construction}"] += 1
        ran["results"] += len(found)
        if rows:
            store = chance.choice(["default", "rocksdb"])
            path = folder / str(ran.total())
            Life(rows, chance, key=key, store=store, unit=shape.unit).check(spark, path, operator, construction, shape)

    with light_settings(spark, partitions=3):
        operators()
    return ran


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """All that the inequalities of T-CER allow, in ticks of some length."""
    unit = draw(st.sampled_from([1, 1, 5]))
    within = draw(st.integers(1, 6))
    size = within + draw(st.integers(0, 12))
    return Shape(within * unit, draw(st.integers(1, size - within + 1)) * unit, size * unit, unit)


@pytest.mark.timeout(600)
def test_random_tables_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    ran = run_random(spark, tmp_path, 4)
    assert ran["results"] > 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_hundred_random_tables_and_streams(spark: SparkSession, tmp_path: Path) -> None:
    ran = run_random(spark, tmp_path, 100)
    assert {f"{operator} {how}" for operator in OPERATORS for how in ("fast", "literal")} <= set(ran)


# --- what results look like -------------------------------------------------------------------------


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


YEARS = ["+10000-01-01 04:59:59", "2026-01-01 00:00:00", "-0044-03-15 12:00:00"]
SHOWN = "CAST(ts AS STRING) AS ts, CAST(at AS STRING) AS at, CAST(day AS STRING) AS day"


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_times_of_any_year_take_part(spark: SparkSession, kind: str) -> None:
    """A time that stands for "never", 9999-12-31 in New York, lies in the year 10000 of UTC."""
    df = spark.sql(f"SELECT CAST(t AS {kind}) AS ts, to_date(t) AS day FROM VALUES {str(YEARS)[1:-1]} AS v(t)")
    expected = {(year, year, year.rpartition(" ")[0]) for year in YEARS}
    rows = acer.rule_cer(
        df, lambda state, event: (0, [(event.ts, event.day)]), schema=f"at {kind}, day date"
    ).selectExpr(*SHOWN.split(", "))
    assert set(rows.collect()) == expected
    found = acer.time_cer(
        df, lambda state, event: (0, [(event.ts, event.ts, event.day)]), within="1 day", schema="day date"
    ).selectExpr("CAST(start AS STRING)", "CAST(end AS STRING)", "CAST(day AS STRING)")
    assert set(found.collect()) == expected
    nested = df.selectExpr("ts", "struct(ts AS inner) AS s")
    with pytest.raises(PythonException, match="holds a time beyond the years 1 to 9999"):
        acer.rule_cer(nested, lambda state, event: (0, [])).collect()


def test_sequences_have_times_as_the_column_has_them(spark: SparkSession) -> None:
    def pairs(state: Any, event: Any) -> Any:
        return event, [(state.ts, event.ts)] if state is not None else []

    df = spark.sql("SELECT timestamp_seconds(id * 40) AS ts FROM range(4)")
    found = acer.time_cer(df, pairs, within="1 minute", schema="").orderBy("start").collect()
    assert [(row.start.second, row.end.second) for row in found] == [(0, 40), (40, 20), (20, 0)]
    assert found[0].ts == found[0].start.replace(minute=1, second=59, microsecond=999999)


@CONSTRUCTIONS
@pytest.mark.parametrize(("within", "wanted"), [(15, 30), (5, 0)])
def test_a_span_may_end_between_two_ticks(spark: SparkSession, construction: str, within: int, wanted: int) -> None:
    df = spark.range(0, 310, 10).selectExpr("id AS ts")
    found = acer.time_cer(
        df,
        lambda last, event: (event, [(last.ts, event.ts)] if last else []),
        within=within,
        granularity=10,
        size=40,
        advance=20,
        schema="",
        construction=construction,
    )
    assert found.count() == wanted


@pytest.mark.parametrize("names", [("a.b", "c`d", "x y"), ("X", "x", "Ts")])
def test_columns_may_be_called_anything(spark: SparkSession, names: tuple[str, ...]) -> None:
    df = spark.createDataFrame([(2, "q", 5, 1), (1, "q", 4, 2)], f"{SCHEMA}, ts2 bigint").toDF("the.time", *names)

    def tell(state: Any, event: Any) -> Any:
        return None, [(event[names[1]], event[names[2]])]

    options: dict[str, Any] = {"time": "the.time", "key": names[0], "ties": [names[1]]}
    found = acer.rule_cer(df, tell, schema="`a.c` bigint, d bigint", **options)
    assert found.columns == [names[0], "the.time", "a.c", "d"]
    assert sorted(map(tuple, found.collect())) == [("q", 1, 4, 2), ("q", 2, 5, 1)]
    first = acer.sort_and_preprocess(df, lambda events: events[0], time="the.time")
    assert [row[0] for row in first.collect()] == [1, 2]


def test_types_of_columns_that_workers_do_not_know_and_null_where_there_is_none(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "q", 4)], SCHEMA)
    texts = acer.rule_cer(df, lambda state, event: (state, [("abcd", ["e"])]), schema="n varchar(3), m array<char(1)>")
    assert [tuple(row) for row in texts.collect()] == [(1, "abcd", ["e"])]
    with pytest.raises(
        PythonException, match=r"key \(\) of all events at the event time 1 does not fit the schema.*NOT NULL"
    ):
        acer.rule_cer(df, lambda state, event: (state, [(None,)]), schema="n int not null").collect()
    with pytest.raises(PythonException, match=r"`n` is 1\.5, and the column holds int32: 1\.5 is not a whole number"):
        acer.rule_cer(df, lambda state, event: (state, [(1.5,)]), schema="n int").collect()
    whole = acer.rule_cer(df, lambda state, event: (state, [(2.0,)]), schema="n int")
    assert [row.n for row in whole.collect()] == [2]


def test_unkeyed_windows_run_in_several_tasks(spark: SparkSession) -> None:
    """Without a key a table is cut by time: windows of one block are one task's."""
    df = spark.range(0, 4000, 1, 4).selectExpr("id AS ts")
    counted = acer.aggregate(
        df, advance=5, size=10, update=lambda n, event: (n or 0) + 1, output=lambda n: (n,), schema="n bigint"
    )
    with light_settings(spark, partitions=2):  # adaptive plans would join tasks this small
        found = counted.withColumn("task", F.spark_partition_id()).collect()
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


def test_operators_of_one_streaming_query_are_refused_and_those_of_two_compose(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The second reads what the first has written, with a watermark of 0: what comes of tables comes of streams."""

    def pairs(last: Any, event: Any) -> Any:
        return event, [(last.ts, event.ts, last.x + event.x)] if last else []

    def count(seen: Any, event: Any) -> Any:
        return (seen or 0) + 1, [(seen or 0, event.total)]

    def first(df: Any, **live: Any) -> Any:
        return acer.time_cer(df, pairs, within=20, advance=5, size=60, schema="total bigint", **live)

    def second(df: Any, **live: Any) -> Any:
        return acer.rule_cer(df, count, ties=["start", "end"], schema="seen int, total bigint", **live)

    rows = sorted((Row(time * 7 % 300, "p", time % 4) for time in range(40)), key=lambda row: row.ts)
    df = spark.createDataFrame(rows, SCHEMA)
    wanted = sorted(tuple(row) for row in second(first(df)).collect())
    with settings(spark, partitions=1):
        events = Folder(spark, tmp_path / "events", SCHEMA)
        found = first(events.read(), watermark=0)
        with pytest.raises(
            errors.InvalidInputError, match="results of another operator with a state in the same query"
        ):
            second(found.where("total > 0").selectExpr("ts", "start", "end", "total + 0 AS total"), watermark=0)
        results = Folder(spark, tmp_path / "results", "ts bigint, start bigint, end bigint, total bigint")
        given = 0
        for batch in (rows[:20], rows[20:], [Row(900, "p", 0)]):
            events.add([row._asdict() for row in batch])
            events.run(first(events.read(), watermark=0))
            new = sorted(events.written(), key=lambda row: row["ts"])[given:]
            given += len(new)
            results.add(new)
            query = results.run(second(results.read(), watermark=0))
            assert observed(query)[-1]["late"] == 0
        told = sorted((row["ts"], row["seen"], row["total"]) for row in results.written())
    assert [row for row in told if row[0] < 300] == [row for row in wanted if row[0] < 300]
