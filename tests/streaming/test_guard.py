"""The rate guard: it never reports a stream that keeps its rate, whatever the order and the cut, and drops nothing."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.streaming.queries import Folder, observed, settings
from tests.streaming.support import arrivals, cut

import tocsin
from tocsin.analysis.rates import parse_rates
from tocsin.engines.stream.guard import Arrived, Guard, guard_of
from tocsin.engines.stream.store import NEVER, Clocks, State

times_of_events = st.lists(st.integers(-40, 60), max_size=60)


def reported(guard: Guard, times: list[int], lateness: int, chance: random.Random) -> int:
    """What the guard says of events that arrive in any order that the lateness allows, in any cut."""
    order = [times[place] for place in arrivals(times, lateness, chance)]
    arrived: Arrived = {}
    watermark, found = NEVER, 0
    for batch in cut(order, chance):
        tasks = [[time for time in batch if chance.random() < 0.5], []]
        tasks[1] = list(batch)
        for time in tasks[0]:
            tasks[1].remove(time)
        parcels = [guard.counted(np.array(task, np.int64), np.ones(len(task), np.int64)) for task in tasks]
        arrived, over = guard.added(arrived, parcels)
        watermark = max([watermark, *(time - lateness for time in batch)])
        arrived = guard.open(arrived, watermark)
        found += over[0]
    return found


def most_within(times: list[int], length: int) -> int:
    return max((sum(start <= time < start + length for time in times) for start in times), default=0)


@given(times_of_events, st.sampled_from([1, 3, 10]), st.sampled_from([0, 1, 7]), st.integers(0, 2**32))
def test_a_stream_at_its_rate_is_never_reported(times: list[int], stretch: int, lateness: int, seed: int) -> None:
    guard = guard_of(parse_rates({"A": f"{most_within(times, stretch)} per {stretch} us"}), lateness)
    assert guard is not None
    assert reported(guard, times, lateness, random.Random(seed)) == 0


@given(times_of_events, st.integers(1, 3), st.sampled_from([1, 3, 10]), st.sampled_from([0, 7]), st.integers(0, 2**32))
def test_more_than_twice_the_rate_is_always_reported(
    times: list[int], rate: int, stretch: int, lateness: int, seed: int
) -> None:
    guard = guard_of(parse_rates({"A": f"{rate} per {stretch} us"}), lateness)
    assert guard is not None
    stretches = [time // stretch for time in times]
    beyond = sum(max(stretches.count(one) - rate, 0) for one in set(stretches))
    assert reported(guard, times, lateness, random.Random(seed)) == beyond
    if most_within(times, stretch) > 2 * rate:
        assert beyond > 0


@given(st.lists(st.integers(4, 20), max_size=40), st.integers(0, 2**32))
def test_spaced_events_that_keep_their_distance_are_never_reported(distances: list[int], seed: int) -> None:
    times = np.cumsum(distances, dtype=np.int64).tolist()
    guard = guard_of(parse_rates({"A": "250_000/s spaced"}), 0)  # at least 4 µs apart
    assert guard is not None
    assert reported(guard, times, 0, random.Random(seed)) == 0


@pytest.mark.parametrize("by_type", [True, False], ids=["an input per type", "one input"])
def test_a_source_beyond_its_rate_is_told_and_nothing_is_dropped(
    spark: SparkSession, tmp_path: Path, by_type: bool
) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WHERE a.x > 5 WITHIN 10 us")
    second = 1_000_000
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        # Three events that no condition lets take part, in two micro-batches: they are events of `A` all the same.
        folder.add([{"type": "A", "ts": 1, "k": "p", "x": 1}, {"type": "A", "ts": 2, "k": "p", "x": 9}])
        folder.add([{"type": "A", "ts": 3, "k": "p", "x": 1}, {"type": "B", "ts": 4, "k": "p", "x": 0}])
        folder.add([{"type": "A", "ts": second, "k": "p", "x": 9}, {"type": "A", "ts": None, "k": "p", "x": 9}])
        frame = folder.read()
        inputs = {name: frame.where(f"type = '{name}'") for name in "AB"} if by_type else frame
        query = folder.run(pattern.match(inputs, lateness="1 second", rates={"A": "2/s", "B": "2/s"}))
        told = observed(query)
    assert [one["over"] for one in told] == [{"A": 0, "B": 0}, {"A": 1, "B": 0}, {"A": 0, "B": 0}]
    assert sum(one["matches"] for one in told) == 1


@pytest.mark.parametrize(
    "text", ["PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 us", "PATTERN SEQ(A a, NOT B b) WITHIN 10 us"]
)
def test_an_adversarial_trace_at_its_rates_stays_within_the_bound_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    """All events of a stretch at one instant, and late ones among them: the most that the rates allow."""
    pattern = tocsin.pattern(text)
    rates = {"A": "3 per 5 us", "B": "2 per 5 us"}
    rows = [
        {"type": kind, "ts": at, "k": "p", "x": number}
        for at in range(0, 40, 5)
        for kind, burst in (("A", 3), ("B", 2))
        for number in range(burst)
    ]
    lateness = 3
    order = arrivals([row["ts"] for row in rows], lateness, random.Random(text))
    with settings(spark, partitions=2):
        folder = Folder(spark, tmp_path)
        for batch in range(0, len(order), 8):
            folder.add([rows[place] for place in order[batch : batch + 8]])
        folder.add([{"type": "clock", "ts": 10**6}])
        told = observed(folder.run(pattern.match(folder.read(), lateness="3 us", rates=rates)))
    schema = {"ts": "bigint", "k": "string", "x": "bigint"}
    known = pattern.check({"A": schema, "B": schema}, rates, lateness="3 us", streaming=True).sizes
    assert known is not None
    assert {one["bound"] for one in told} == {known.events}
    assert max(one["remembered"] for one in told) <= known.events
    assert all(one["largest"] <= one["remembered"] for one in told)
    assert max(one["remembered"] for one in told) > 0
    assert {kind for one in told for kind, events in one["over"].items() if events} == set()
    assert told[-1]["remembered"] == 0


def test_counts_of_other_rates_are_begun_anew() -> None:
    one, other = guard_of(parse_rates({"A": "9/h", "B": "9/h"}), 0), guard_of(parse_rates({"B": "1/h", "A": "9/h"}), 0)
    assert one is not None and other is not None
    assert one.name != other.name
    state = State(Clocks.begin(1), None, {(0, 0): 2}, rated=one.name)
    assert State.from_bytes(state.to_bytes("plan"), "plan") == state


def test_another_number_of_partitions_is_refused_and_one_of_shards_is_not(spark: SparkSession, tmp_path: Path) -> None:
    """Spark fixes the number of shuffle partitions with the checkpoint, whatever the session says later."""
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 us")
    fixed, free = Folder(spark, tmp_path / "fixed"), Folder(spark, tmp_path / "free")
    with settings(spark, partitions=2):
        for folder, shards in ((fixed, 3), (free, None)):
            folder.add([{"type": "A", "ts": 1, "k": key} for key in "pqrst"])
            folder.run(pattern.match(folder.read(), lateness="0 us", shards=shards))
            folder.add([{"type": "B", "ts": 2, "k": key} for key in "pqrst"])
    with settings(spark, partitions=5):
        fixed.run(pattern.match(fixed.read(), lateness="0 us", shards=3))
        assert len(fixed.written()) == 5
        with pytest.raises(Exception, match="STATE_MISMATCH"):
            free.run(pattern.match(free.read(), lateness="0 us"))
