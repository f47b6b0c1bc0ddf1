"""Patterns on Spark's streams: the rows of the sink are those of the batch, each once."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.streaming import texts
from tests.streaming.queries import FAR, Folder, observed, settings
from tests.streaming.support import arrivals

import tocsin
from tocsin import errors, reference
from tocsin.engines.stream.packing import labels
from tocsin.testing import assert_same_rows


def typed(rows: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [{"type": kind, **row} for kind, events in rows.items() for row in events]


def busy(chance: random.Random, size: int = 18) -> list[dict[str, Any]]:
    """Events of few times, keys and values, so that much happens at once and twice."""
    return [
        {
            "type": chance.choice("ABC"),
            "ts": chance.randint(0, 14),
            "k": chance.choice(["p", "q", None]),
            "x": chance.choice([0, 1, 2, None]),
            "v": 0.5,
        }
        for _ in range(size)
    ]


def by_type(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}


def ids(rows: list[Any]) -> list[str]:
    return sorted(row["match_id"] for row in rows)


def assert_as_the_batch(
    folder: Folder, pattern: tocsin.Pattern, rows: list[dict[str, Any]], **options: Any
) -> list[dict[str, Any]]:
    """What a stream gives of these rows, in any order and any cut and with a restart half way: all that a batch has."""
    chance = random.Random(pattern.text)
    order = arrivals([row["ts"] for row in rows], 3, chance)
    ends = sorted(chance.sample(range(1, len(rows)), 2))  # each is a micro-batch; steps without Spark are cut anywhere
    batches = [[rows[place] for place in order[begin:end]] for begin, end in pairwise([0, *ends, len(rows)])]
    half = len(batches) // 2
    for part in (batches[:half], [*batches[half:], [{"type": "clock", "ts": FAR}]]):
        for batch in part:
            folder.add(batch)
        folder.run(pattern.match(folder.read(), lateness="3 us", **options))
    found = folder.written()
    expected = reference.evaluate(pattern, by_type(rows))
    assert expected
    assert ids(found) == ids(expected)
    assert_same_rows(found, [{**row, "start": row["start"], "end": row["end"]} for row in expected])
    return found


@pytest.mark.parametrize(
    ("text", "store", "partitions"),
    [
        (texts.ANY[1], "default", 2),
        (texts.ABSENT[3], "rocksdb", 1),
        pytest.param(texts.SELECTED[2], "default", 2, marks=pytest.mark.slow),
        (texts.SKIPPING[4], "rocksdb", 2),
        pytest.param(texts.TIMED[1], "default", 2, marks=pytest.mark.slow),
        (texts.TIMED[3] + " RETURN a, b.x, COUNT(b) AS n", "rocksdb", 1),
    ],
)
def test_a_stream_gives_the_matches_of_the_batch(
    spark: SparkSession, tmp_path: Path, text: str, store: str, partitions: int
) -> None:
    rows = busy(random.Random(text), 40)
    pattern = tocsin.pattern(text)
    with settings(spark, store=store, partitions=partitions):
        found = assert_as_the_batch(Folder(spark, tmp_path), pattern, rows)
    if pattern.query.timeouts:
        assert "timeout" in {row["status"] for row in found}


def test_late_bad_and_strange_events_are_counted_and_harmless(spark: SparkSession, tmp_path: Path) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 100 us")
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 10, "k": "p", "x": 1}, {"type": "A", "ts": None, "k": "p"}])
        folder.add([{"type": "Z", "ts": 90}])  # a type that the pattern does not name moves time on
        folder.add([{"type": "B", "ts": 50, "k": "p", "x": 2}, {"type": "B", "ts": 85, "k": "p", "x": 3}])
        (folder.path / "in" / "00003.json").write_text('{"type": "B", "ts": "no\n')
        query = folder.run(pattern.match(folder.read(), lateness="10 us", late=True, emit="watermark"))
        folder.add([])
        rows = folder.written()
        told = observed(query)
    assert [row["late"] for row in rows if row["late"]] == ['{"type":"B","ts":50,"k":"p","x":2,"v":null}']
    assert sum(one["late"] for one in told) == 1
    assert sum(one["bad"] for one in told) == 2  # no time, and no JSON
    assert sum(one["seen"] for one in told) == 6
    assert sum(one["events"] for one in told) == 2
    assert [one["watermark"] for one in told][:3] == [0, 80, 80]


@pytest.mark.parametrize("is_program", [True, False])
def test_requirement_30_a_late_event_is_fatal_where_it_was_asked_to_be(
    spark: SparkSession, tmp_path: Path, is_program: bool
) -> None:
    """The micro-batch is not committed: without the option the same checkpoint goes on, and nothing is lost."""
    rule = "template A { x : Integer } template B { x : Integer } rule R where a : A b : B when b in a [0 us, 100 us]"
    query = tocsin.rules(rule) if is_program else tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 101 us")
    with settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 10, "x": 1}, {"type": "A", "ts": 60, "x": 2}])
        folder.add([{"type": "B", "ts": 50, "x": 3}, {"type": "B", "ts": 55, "x": 4}, {"type": "B", "ts": 58, "x": 5}])
        with pytest.raises(Exception, match=r"\[LATE_EVENTS\] 2 events came too late: .* the time before 57 µs"):
            folder.run(query.match(folder.read(), lateness="3 us", late="fail"))
        assert folder.written() == []
        folder.add([{"type": "Z", "ts": FAR}])
        told = observed(folder.run(query.match(folder.read(), lateness="3 us")))
    assert sum(one["late"] for one in told) == 2
    assert len(folder.written()) == 1
    with pytest.raises(errors.InvalidOptionError, match="`late='stop'` is not True, False or 'fail'"):
        query.match(folder.read(), late="stop")


def test_a_trailing_absence_fires_when_time_goes_on_without_events(spark: SparkSession, tmp_path: Path) -> None:
    """Vector 9.9: one request, no answer; the heartbeat tells, not an event a day later."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, NOT B b) WITHIN 5 SECONDS RETURN a.x")
    second = 1_000_000
    with settings(spark):
        requests, beats = Folder(spark, tmp_path / "a"), Folder(spark, tmp_path / "beats", "ts bigint")
        answers = Folder(spark, tmp_path / "b")
        requests.add([{"type": "A", "ts": 0, "x": 7}])
        answers.add([])

        def run() -> list[Any]:
            matches = pattern.match(
                {"A": requests.read(), "B": answers.read()}, lateness="0 seconds", heartbeats=beats.read()
            )
            requests.run(matches)
            return [row["x"] for row in requests.written()]

        beats.add([{"ts": 4 * second}])
        assert run() == []
        beats.add([{"ts": 5 * second - 1}])
        assert run() == []
        beats.add([{"ts": 5 * second}])
        assert run() == [7]
        beats.add([{"ts": 86_400 * second}])
        assert run() == [7]


def test_a_source_that_stalls_delays_and_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Vector 9.8: many events of one side before any of the other."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, NOT B b, C c) WHERE b.x = a.x WITHIN 10 us RETURN a.x")
    with settings(spark):
        left, middle, right = (Folder(spark, tmp_path / name) for name in "abc")
        left.add([{"type": "A", "ts": ts, "x": ts} for ts in range(100)])
        right.add([{"type": "C", "ts": ts + 3} for ts in range(100)])
        middle.add([])

        def run() -> list[int]:
            frames = {"A": left.read(), "B": middle.read(), "C": right.read()}
            left.run(pattern.match(frames, lateness="0 us", emit="watermark"))
            return sorted(row["x"] for row in left.written())

        assert run() == []  # nobody knows what B will tell
        middle.add([{"type": "B", "ts": 51, "x": 50}, {"type": "B", "ts": 1000, "x": -1}])
        left.add([{"type": "A", "ts": 2000, "x": -1}])
        right.add([{"type": "C", "ts": 2000}])
        found = run()
    expected = reference.evaluate(
        pattern,
        {
            "A": [{"ts": ts, "x": ts} for ts in range(100)],
            "B": [{"ts": 51, "x": 50}],
            "C": [{"ts": ts + 3} for ts in range(100)],
        },
    )
    assert found == sorted(row["x"] for row in expected)


def test_the_state_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 1, "k": "p"}])
        folder.run(tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 us").match(folder.read(), lateness="0 us"))
        folder.add([{"type": "B", "ts": 2, "k": "p"}])
        other = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 20 us").match(folder.read(), lateness="0 us")
        # Nobody would know which matches an eager query has given already.
        later = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 us")
        for changed in (other, later.match(folder.read(), lateness="0 us", emit="watermark")):
            with pytest.raises(Exception, match="STATE_MISMATCH"):
                folder.run(changed)
        # The old query goes on as if nothing had happened.
        folder.run(tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 us").match(folder.read(), lateness="0 us"))
        assert len(folder.written()) == 1


def test_the_state_of_events_with_other_types_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 us")
    with settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 1, "x": 1}])
        folder.run(pattern.match(folder.read(), lateness="0 us"))
        folder.add([{"type": "B", "ts": 2, "x": 1}])
        folder.schema = folder.schema.replace("x bigint", "x string")
        with pytest.raises(Exception, match="STATE_MISMATCH"):
            folder.run(pattern.match(folder.read(), lateness="0 us"))


def test_shards_lie_in_partitions_of_their_own(spark: SparkSession) -> None:
    for partitions in (1, 2, 5, 8):
        called = labels(partitions)
        frame = spark.createDataFrame([(label,) for label in called], "label int")
        rows = frame.selectExpr("label", f"pmod(hash(label), {partitions}) AS place").collect()
        assert {row.label: row.place for row in rows} == {label: number for number, label in enumerate(called)}


@pytest.mark.parametrize("speaks", [True, False], ids=["others speak", "all are silent"])
def test_a_silent_source_is_left_behind_when_the_user_says_so(
    spark: SparkSession, tmp_path: Path, speaks: bool
) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, NOT B b) WITHIN 5 us RETURN a.x")
    with settings(spark):
        left, right = Folder(spark, tmp_path / "a"), Folder(spark, tmp_path / "b")
        left.add([{"type": "A", "ts": 0, "x": 7}, {"type": "A", "ts": 100, "x": 8}])
        right.add([])
        frames = {"A": left.read(), "B": right.read()}
        # The time-out makes micro-batches also where nothing comes.
        query = left.start(pattern.match(frames, lateness="0 us", idle_timeout="1 second"))
        try:
            patience = time.monotonic() + 120
            while not left.written() and time.monotonic() < patience:
                if speaks:
                    left.add([{"type": "A", "ts": 100, "x": 8}])
                time.sleep(0.5)
        finally:
            query.stop()
        assert [row["x"] for row in left.written()] == [7]


def test_a_late_event_is_told_whole(spark: SparkSession, tmp_path: Path) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 1 SECOND")
    with settings(spark):
        folder = Folder(spark, tmp_path, "type string, ts timestamp, at struct<t: timestamp_ntz>")
        folder.add([{"type": "A", "ts": "2026-01-01T00:01:00Z"}])
        folder.add([{"type": "A", "ts": "2026-01-01T00:00:00.123456Z", "at": {"t": "2026-01-01T00:00:00.654321"}}])
        folder.add([{"type": "A", "ts": "2026-01-01T00:00:01Z"}])
        folder.run(pattern.match(folder.read(), lateness="0 seconds", late=True))
        found = sorted(row["late"] for row in folder.written())
    assert found == [
        '{"type":"A","ts":"2026-01-01T00:00:00.123456Z","at":{"t":"2026-01-01T00:00:00.654321"}}',
        '{"type":"A","ts":"2026-01-01T00:00:01.000000Z","at":null}',
    ]


def test_another_identity_of_events_is_another_state(spark: SparkSession, tmp_path: Path) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 100 us")
    with settings(spark):
        folder = Folder(spark, tmp_path)
        folder.add([{"type": "A", "ts": 1, "k": "p", "x": 1}])
        folder.run(pattern.match(folder.read(), lateness="10 us"))
        folder.add([{"type": "B", "ts": 5, "k": "p", "x": 9}])
        with pytest.raises(StreamingQueryException, match="STATE_MISMATCH"):
            folder.run(pattern.match(folder.read(), lateness="10 us", id="x"))
        assert folder.written() == []
        folder.run(pattern.match(folder.read(), lateness="10 us"))
        assert len(folder.written()) == 1


@pytest.mark.parametrize("name", ["late", "Late"])
def test_no_other_column_is_called_as_that_of_late_events(spark: SparkSession, tmp_path: Path, name: str) -> None:
    pattern = tocsin.pattern(f"PATTERN SEQ(A a, B b) WITHIN 1 SECOND RETURN a.x AS {name}")
    stream = Folder(spark, tmp_path).read()
    assert pattern.match(stream, lateness="1 us").columns[-1] == name
    with pytest.raises(errors.InvalidOptionError, match="late events are in a column `late`"):
        pattern.match(stream, lateness="1 us", late=True)


def test_explain_tells_how_a_stream_runs(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    events = rate.selectExpr("'A' AS type", "timestamp AS ts", "value AS id", "'p' AS k", "value AS x")

    def told(text: str, **options: Any) -> str:
        report = tocsin.pattern(text).explain(events, lateness="1 second", **options)
        return str(report).partition("== Stream ==\n")[2].partition("\n\n== Spark plan ==\n")[0]

    assert told("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 5 SECONDS") == (
        "one operator with state, which searches what still matters and what is new\n"
        "  shards by k\n"
        "  gives a match with its last event\n"
        "  remembers events for: a 4.999999 s, b 0 s; and as long as others may be late"
    )
    assert "all that could still block it" in told("PATTERN SEQ(A a, NOT B b) WITHIN 5 SECONDS")
    assert "  link by link: the policy" in told("PATTERN SEQ(OR(A a, B b)+, C c) WITHIN 5 SECONDS SEMANTICS next")
    assert "one shard, since nothing splits" in told("PATTERN SEQ(A a, B b) WITHIN 5 SECONDS", emit="watermark")
    counted = told("PATTERN SEQ(A a, B+ b) PARTITION BY k WITHIN 5 SECONDS RETURN COUNT(*) AS n EVERY 1 MINUTE")
    assert "counts matches without building them" in counted
    assert "tells a window" in counted
    assert told("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 5 SECONDS", strategy="join", id="id").startswith(
        "joins of streams"
    )
