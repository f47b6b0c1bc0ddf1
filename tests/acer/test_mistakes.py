"""What users get wrong: options before anything runs, functions with the key and the event time of the failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException, SparkRuntimeException
from pyspark.sql import DataFrame, SparkSession
from tests.streaming.queries import Folder, observed, settings

from tocsin import Progress, TocsinListener, acer, errors
from tocsin.acer import arrow as names
from tocsin.acer.arrow import Incoming, Outgoing
from tocsin.acer.clock import Clock
from tocsin.acer.events import values_of
from tocsin.acer.fast import Fold
from tocsin.acer.functions import function
from tocsin.acer.model import in_order
from tocsin.acer.stream import Task
from tocsin.plan.manifest import column

SCHEMA = "ts bigint, k string, x bigint"


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(time, "ab"[time % 2], time) for time in range(20)], SCHEMA)


def counted(df: DataFrame, **options: Any) -> DataFrame:
    wanted: dict[str, Any] = {
        "advance": 5,
        "size": 10,
        "update": lambda state, event: (state or 0) + 1,
        "output": lambda state: (state,),
        "schema": "n bigint",
    }
    return acer.aggregate(df, **(wanted | options))


def paired(df: DataFrame, **options: Any) -> DataFrame:
    wanted = {"function": lambda state, event: (event, []), "within": 10, "schema": ""}
    return acer.time_cer(df, **(wanted | options))


def paired_with_itself(df: DataFrame, **options: Any) -> DataFrame:
    return paired(df, function=lambda state, event: (None, [(event.ts, event.ts)]), **options)


def ruled(df: DataFrame, **options: Any) -> DataFrame:
    return acer.rule_cer(df, lambda state, event: (event, []), **options)


Options = dict[str, Any]
REFUSED: list[tuple[Callable[..., DataFrame], Options, str]] = [
    (counted, {"advance": 0}, "`advance` is 0 microseconds, not a positive multiple of the granularity 1 microsecond"),
    (counted, {"advance": 4, "size": 7, "granularity": 2}, "`size` is 7 microseconds, not a positive multiple"),
    (counted, {"granularity": 0}, "`granularity` is no time at all"),
    (counted, {"advance": "soon"}, "`soon` is not a length of time"),
    (counted, {"advance": 1.5}, "`advance=1.5` is not a length of time"),
    (counted, {"key": "user"}, "There is no column `user`"),
    (counted, {"key": 3}, "`key=3` is neither the name of a column nor a list"),
    (counted, {"time": "at"}, "There is no time column `at`"),
    (counted, {"time": "k"}, "The time column `k` of the input of `events` is string"),
    (counted, {"update": 3}, "`update=3` is not a function"),
    (counted, {"update": lambda state: state}, "`update` is a function of \\(state\\)"),
    (counted, {"output": lambda: []}, "`output` is a function of \\(\\)"),
    (counted, {"schema": None}, "There is no `schema`, and the function is not annotated"),
    (counted, {"schema": "n nothing"}, "is not a list of columns and types"),
    (counted, {"schema": ["n"]}, "`schema` is list"),
    (counted, {"schema": "ts bigint"}, "`schema` has the column `ts`, which the result has already"),
    (counted, {"schema": "a int, a int"}, "`schema` has the column `a`, which the result has already"),
    (counted, {"schema": "revision int", "lateness": 5}, "`schema` has the column `revision`"),
    (counted, {"schema": "A int, a int"}, "`schema` has the column `a`, which the result has already"),
    (counted, {"schema": "Ts bigint"}, "`schema` has the column `Ts`, which the result has already"),
    (counted, {"schema": "__tocsin_time bigint"}, "`schema` has the column `__tocsin_time`, and names that start"),
    (counted, {"key": ["k", "k"]}, "Two columns of the result would be called `k`"),
    (counted, {"key": "ts"}, "Two columns of the result would be called `ts`"),
    (counted, {"size": 2**63}, "longer than any window can be"),
    (counted, {"construction": "slow"}, "There is no construction `slow`"),
    (counted, {"shards": 0}, "`shards=0` is not a positive integer"),
    (paired, {"within": 0}, "`within` is no time at all"),
    (paired, {"size": 9}, "WS ≥ D is broken"),
    (
        paired,
        {"size": 12, "advance": 4},
        "= 12 microseconds − 10 microseconds \\+ 1 microsecond = 3 micro",
    ),
    (paired, {"within": "1 hour", "size": "1 hour", "advance": 1, "construction": "literal"}, "3,600,000,000 windows"),
    (paired, {"schema": "start bigint"}, "`schema` has the column `start`"),
    (paired, {"schema": "END int"}, "`schema` has the column `END`"),
    (paired, {"granularity": 0}, "`granularity` is no time at all"),
    (paired, {"ties": "m"}, "There is no column `m`"),
    (ruled, {"max_state": "big"}, "is not a number of bytes"),
    (ruled, {"watermark_distance": 0}, "not a positive multiple"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_options(df: DataFrame, number: int) -> None:
    call, options, message = REFUSED[number]
    with pytest.raises(errors.TocsinError, match=message):
        call(df, **options)


def test_shards_of_a_stream_without_a_key_are_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS ts", "'p' AS k")
    assert counted(stream, watermark="1 second", key="k", shards=3).isStreaming
    assert counted(stream, watermark="1 second", key=None, shards=1).isStreaming
    with pytest.raises(errors.InvalidOptionError, match="`shards=3` has no effect on this stream: no key splits"):
        counted(stream, watermark="1 second", key=None, shards=3)


def test_what_is_no_dataframe() -> None:
    with pytest.raises(errors.InvalidInputError, match="The input is list, not a Spark DataFrame"):
        counted([])  # type: ignore[arg-type]


def test_columns_without_an_order_break_no_ties(spark: SparkSession) -> None:
    df = spark.sql("SELECT 1L AS ts, map('a', 1) AS m")
    with pytest.raises(errors.InvalidOptionError, match="`ties` names `m`, whose values have no order"):
        paired(df, ties="m")


def test_a_stream_without_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidOptionError, match="How late may events of `events` come") as raised:
        counted(Folder(spark, tmp_path, SCHEMA).read())
    assert 'write `watermark="10 seconds"`' in (raised.value.hint or "")


@pytest.mark.parametrize("own", ["start", "End"])
def test_columns_of_events_that_are_called_as_those_of_a_result(df: DataFrame, own: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=f"would be called `{own.lower()}`"):
        paired(df.withColumnRenamed("k", own), key=own)
    with pytest.raises(errors.InvalidOptionError, match=f"would be called `{own.lower()}`"):
        paired(df.withColumnRenamed("ts", own), time=own)
    with pytest.raises(errors.InvalidOptionError, match="would be called `revision`"):
        counted(df.withColumnRenamed("k", "revision"), key="revision", lateness=5)


def failing(at: int) -> Callable[..., Any]:
    def fails(state: Any, event: Any) -> Any:
        if event.ts == at:
            raise ValueError("no such thing")
        return event, []

    return fails


FAILING: list[tuple[str, Callable[[DataFrame], DataFrame]]] = [
    ("`update`", lambda df: counted(df, key="k", update=failing(13), output=lambda state: (1,))),
    ("`function`", lambda df: acer.time_cer(df, failing(13), within=4, key="k", schema="")),
    ("`function`", lambda df: acer.rule_cer(df, failing(13), key="k")),
]


@pytest.mark.parametrize(("name", "call"), FAILING)
def test_a_function_that_raises_names_the_key_and_the_time(
    df: DataFrame, name: str, call: Callable[[DataFrame], DataFrame]
) -> None:
    with pytest.raises(PythonException) as raised:
        call(df).collect()
    said = str(raised.value)
    assert (
        f"[USER_FUNCTION_FAILED] {name} (fails) failed for the key 'b' at the event time 13: ValueError: no such"
        in said
    )
    assert 'raise ValueError("no such thing")' in said


def test_others_that_raise(df: DataFrame) -> None:
    def preprocess(events: Any) -> Any:
        return events[3]

    with pytest.raises(PythonException, match=r"failed for the key '[ab]' at the event time \d+: IndexError"):
        acer.sort_and_preprocess(df, preprocess, key="k").collect()
    with pytest.raises(PythonException, match=r"`output` .* at the event time \d+: ZeroDivisionError"):
        counted(df, key="k", output=lambda state: 1 / 0).collect()


WRONG: list[tuple[Callable[[DataFrame], DataFrame], str]] = [
    (lambda df: counted(df, output=lambda n: ("many",)), "`n` is 'many', and the column holds int64"),
    (lambda df: counted(df, output=lambda n: (n, n)), "an output has 2 values for the columns n"),
    (lambda df: counted(df, output=lambda n: {"m": n}), "an output has no 'n'"),
    (lambda df: counted(df, output=lambda n: n), "outputs are a list of rows, or one row"),
    (lambda df: acer.rule_cer(df, lambda state, event: event), "it must return a pair \\(state, outputs\\)"),
    (
        lambda df: acer.time_cer(df, lambda s, event: (s, [(event.ts, event.ts + 99)]), within=20, schema=""),
        "no events of these times were given to it",
    ),
    (
        lambda df: acer.time_cer(df, lambda s, event: (s, [("now", event.ts)]), within=200, schema=""),
        "'now' is not an integer, as the time column is",
    ),
    (lambda df: counted(df, granularity=5), "at 1 lies between two ticks of the granularity 5 microseconds"),
    (lambda df: acer.rule_cer(df, lambda s, event: (s, [event["y"]])), "'y': the event has ts, k, x"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_functions_must_not_give(df: DataFrame, number: int) -> None:
    call, message = WRONG[number]
    with pytest.raises(PythonException, match=message):
        call(df).collect()


def test_a_state_that_grows_is_stopped(spark: SparkSession) -> None:
    df = spark.range(5000).selectExpr("id AS ts", "'p' AS k", "id AS x")

    def grows(state: Any, event: Any) -> Any:
        return [*(state or []), event.x], []

    with pytest.raises(PythonException) as raised:
        acer.rule_cer(df, grows, key="k", max_state="5 kB").collect()
    assert "[STATE_GROWS] The state of `function` (grows) grows with the number of events" in str(raised.value)
    assert "for the key 'p' at the event time 2047" in str(raised.value)
    assert acer.rule_cer(df, grows, key="k", max_state=None).collect() == []


def test_a_batch_warns_of_a_state_that_grows(caplog: pytest.LogCaptureFixture) -> None:
    def grows(state: Any, event: Any) -> Any:
        return [*(state or []), event.ts], []

    mapping = function(grows, "function", Clock.INTEGER, ("state", "event"))
    times, keys = range(3000), [time // 1000 for time in range(3000)]
    columns = [column(0), names.TIME, names.FIRST_TIE, names.SECOND_TIE]
    for key, expected in ([0] * 3000, 1), (keys, 0):
        held = {name: list(times) for name in columns} | {names.FIRST_KEY: key, names.SECOND_KEY: [0] * 3000}
        batch = pa.record_batch(held)
        task = Task(Fold(mapping), Incoming(("ts",), ()), Outgoing(pa.schema([("ts", pa.int64())])))
        caplog.clear()
        assert list(task([batch])) == []
        assert len(caplog.messages) == expected
        for message in caplog.messages:
            assert "`function` (grows) grows with the number of events: " in message
            assert "after 2,048, for the key () of all events. Hint: keep what later events need" in message


@pytest.mark.parametrize("construction", ["fast", "literal"])
def test_times_that_stand_for_none_are_told(spark: SparkSession, construction: str) -> None:
    late = spark.createDataFrame([(2**63 - 1, "p", 1), (5, "p", 1)], SCHEMA)
    early = spark.createDataFrame([(-(2**63), "p", 1), (5, "p", 1)], SCHEMA)
    for run in counted, paired_with_itself:
        with pytest.raises(PythonException, match="The key 'p' has events so late that the time of a result"):
            run(late, key="k", construction=construction).collect()
        with pytest.raises(SparkRuntimeException, match="An event is so early that windows which hold it begin"):
            run(early, key="k", construction=construction).collect()
    for df in late, early:
        alone = df.where("ts <> 5")  # the literal loop goes through every tick between two events
        rows = acer.rule_cer(alone, lambda state, event: (0, event), key="k", construction=construction).collect()
        assert rows == [(row.k, row.ts, row.x) for row in alone.collect()]


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_ties_of_any_year_order_events(kind: pa.DataType) -> None:
    late = 253_402_300_800_000_000 if pa.types.is_timestamp(kind) else 4_000_000
    columns = {column(0): [5, 5, 5], names.TIME: [5, 5, 5]}
    columns |= {name: [0, 0, 0] for name in (names.FIRST_TIE, names.SECOND_TIE, names.FIRST_KEY, names.SECOND_KEY)}
    ties = pa.array([late, None, 0], pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).cast(kind)
    batch = pa.record_batch({**columns, column(1): ties})
    found = sorted(Incoming(("ts", "u"), (), ("u",)).arrivals(batch), key=in_order)
    assert found[0].event.u is None
    assert found[2].event.u == late


def test_bytes_that_are_no_text_are_told_as_such() -> None:
    offsets = pa.array([0, 2], pa.int32()).buffers()[1]
    with pytest.raises(UnicodeDecodeError):
        values_of(pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")]))


def test_a_large_state_that_does_not_grow_is_not(spark: SparkSession) -> None:
    df = spark.range(5000).selectExpr("id AS ts")
    kept = acer.rule_cer(df, lambda state, event: ("x" * 10_000, []), max_state="5 kB", schema="")
    assert kept.collect() == []


def test_a_stream_tells_of_a_state_that_grows(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark):
        folder = Folder(spark, tmp_path, SCHEMA)
        folder.add([{"ts": place, "k": "p", "x": place} for place in range(3000)])
        folder.add([{"ts": place, "k": "q", "x": place} for place in range(3000, 3010)])

        def grows(state: Any, event: Any) -> Any:
            return [*(state or []), event.x], []

        query = folder.run(acer.rule_cer(folder.read(), grows, key="k", watermark=0))
    assert [told["growing"] for told in observed(query)] == [1, 1]


def test_the_listener_warns_once_of_a_state_that_grows() -> None:
    warnings: list[str] = []
    listener = TocsinListener(on_warning=warnings.append)
    told = Progress("q", 7, 1, 0, 1, 0, 0, 1, 1, 10, 5, 100, 10.0, growing=2)
    listener._warn(told)
    listener._warn(told)
    (warning,) = warnings
    assert warning.startswith("The state of 2 keys of q grows with the number of events")


def test_a_state_that_cannot_be_stored_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark):
        folder = Folder(spark, tmp_path, SCHEMA)
        folder.add([{"ts": 1, "k": "p", "x": 1}, {"ts": 5, "k": "p", "x": 1}])

        def generates(state: Any, event: Any) -> Any:
            return (one for one in ()), []

        with pytest.raises(Exception, match="The state for the key 'p' cannot be stored between micro-batches"):
            folder.run(acer.rule_cer(folder.read(), generates, key="k", watermark=0))


def test_other_windows_do_not_read_the_state(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark):
        folder = Folder(spark, tmp_path, SCHEMA)
        folder.add([{"ts": 1, "k": "p", "x": 1}])
        folder.run(counted(folder.read(), key="k", watermark=5))
        folder.add([{"ts": 2, "k": "p", "x": 1}])
        with pytest.raises(Exception, match="STATE_MISMATCH"):
            folder.run(counted(folder.read(), key="k", watermark=5, size=20))
