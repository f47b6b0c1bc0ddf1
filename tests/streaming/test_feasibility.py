"""Whether declared rates can be carried: the report against streams that are simulated row by row."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.streaming.queries import Folder, settings
from tests.streaming.test_progress import listening, wait_for

import tocsin
from tocsin import errors

EMPTY = tocsin.Progress("q", 0, 0, 0, 0, 0, 0, 0, 0, 0, None, 0, 0.0)


def took(rows: int, ms: float) -> tocsin.Progress:
    return tocsin.Progress(**{**vars(EMPTY), "seen": rows, "duration_ms": ms})


def measured(per_batch_s: float, per_row_s: float, sizes: list[int]) -> list[tocsin.Progress]:
    return [took(rows, 1000 * (per_batch_s + per_row_s * rows)) for rows in sizes]


def settled(per_batch_s: float, per_row_s: float, rate: float) -> float:
    """How long micro-batches are when each takes what came during the last one."""
    length = per_batch_s
    for _ in range(2_000):
        length = per_batch_s + per_row_s * rate * length
        if length > 1e9:
            return math.inf
    return length


@given(
    per_batch=st.floats(0.01, 2),
    per_row=st.floats(1e-6, 1e-3),
    busy=st.floats(0.01, 3).filter(lambda busy: abs(busy - 1) > 0.05),
    sizes=st.lists(st.integers(1, 100_000), min_size=2, max_size=9, unique=True),
)
def test_requirement_41_what_is_foretold_is_what_a_stream_does(
    per_batch: float, per_row: float, busy: float, sizes: list[int]
) -> None:
    rate = busy / per_row
    found = tocsin.feasibility(measured(per_batch, per_row, sizes), {"A": rate})
    assert found.per_row_s == pytest.approx(per_row, rel=1e-3)
    assert found.load == pytest.approx(busy, rel=1e-3)
    length = settled(per_batch, per_row, rate)
    assert found.keeps_up == math.isfinite(length) == (busy < 1)
    if found.keeps_up:
        assert found.batch_s == pytest.approx(length, rel=0.1, abs=0.01)


@given(often=st.floats(1e-6, 0.02), away=st.floats(0, 60), busy=st.floats(0.1, 0.9), seed=st.integers(0, 2**32))
def test_requirement_46_failures_take_their_time(often: float, away: float, busy: float, seed: int) -> None:
    """A stream that fails so often falls behind without end, or does not."""
    found = tocsin.feasibility(
        measured(0.5, 1e-4, [100, 5_000]), {"A": busy / 1e-4}, failures=often, recovery=f"{away:.3f} seconds"
    )
    chance, now, done = random.Random(seed), 0.0, 0.0
    for _ in range(400):  # from failure to failure: the time between them, less what each costs
        between = chance.uniform(0.9, 1.1) / often
        done += max(between - away - found.batch_s, 0) / 1e-4
        now += between
    if abs(found.load - 1) > 0.25:
        assert found.keeps_up == (done > now * busy / 1e-4)


@given(
    often=st.floats(0, 0.1),
    away=st.floats(0, 60),
    per_batch=st.floats(0, 5),
    per_row=st.floats(1e-6, 1e-2),
    part=st.floats(0.5, 1.5).filter(lambda part: abs(part - 1) > 1e-6),
)
def test_the_largest_rate_is_where_a_stream_begins_to_fall_behind(
    often: float, away: float, per_batch: float, per_row: float, part: float
) -> None:
    most = tocsin.Feasibility(1.0, per_batch, per_row, often, away).most_rows_per_second
    found = tocsin.Feasibility(part * most, per_batch, per_row, often, away)
    assert found.most_rows_per_second == most >= 0
    assert found.keeps_up == (part < 1 and most > 0)
    if most:
        works = 1 - often * (away + found.batch_s) if math.isfinite(found.batch_s) else -math.inf
        assert found.keeps_up == (found.rows_per_second * per_row < works)
    assert "-" not in str(found).partition("load")[0]


def test_equal_micro_batches_count_as_work_of_their_rows() -> None:
    found = tocsin.feasibility([took(1_000, 100), took(1_000, 140)], {"A": "1000/s", "B": "1000/s"})
    assert (found.per_row_s, found.load, found.is_upper_bound) == (1e-4, 0.2, True)
    assert "load         at most 20.0%" in str(found) and "It keeps up." in str(found)
    assert "would tell" in str(tocsin.feasibility([took(1, 900)], {"A": 2}))
    assert tocsin.feasibility([took(10, 100), took(1_000, 90)], {"A": 1}).per_row_s == pytest.approx(9e-5)


@pytest.mark.parametrize(
    ("progress", "rates", "options", "message"),
    [
        ([EMPTY], {"A": 1}, {}, "No micro-batch had rows"),
        ([took(1, 1)], {}, {}, "No rate is declared"),
        ([took(1, 1)], {"A": "5/h per key"}, {}, "The rate of `A` is per key"),
        ([took(1, 1)], {"A": "often"}, {}, "is not a number of events in a time"),
        ([took(1, 1)], {"A": 1}, {"recovery": "soon"}, "is not a length of time"),
        ([took(1, 1)], {"A": 1}, {"failures": "never"}, "is not a number of events in a time"),
    ],
)
def test_what_cannot_be_told_is_refused(
    progress: list[tocsin.Progress], rates: dict[str, object], options: dict[str, str], message: str
) -> None:
    with pytest.raises(errors.InvalidOptionError, match=message):
        tocsin.feasibility(progress, rates, **options)


def test_what_a_stream_told_can_be_asked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    pattern, listener = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 100 us"), tocsin.TocsinListener()
    with settings(spark), listening(spark, listener):
        folder = Folder(spark, tmp_path_factory.mktemp("kept"))
        for batch, size in enumerate((1, 300, 40)):
            folder.add([{"type": "A", "ts": 10 * batch, "k": "p", "x": x} for x in range(size)])
        folder.run(pattern.match(folder.read(), lateness="0 s", rates={"A": "10/s"}))
        wait_for(listener, 3)
    found = tocsin.feasibility(listener.recent, {"A": "10/s"})
    assert found.rows_per_second == 10
    assert "10 rows/s" in str(found)
    assert found.keeps_up and "It keeps up." in str(found)
