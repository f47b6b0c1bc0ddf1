"""The streams of the benchmarks: the same for the same seed, of the shape their names promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.streams import MINUTE, SEGMENTS, Events, Stream, files_of, generate, segments_for

KINDS = ("uniform", "traffic", "air", "merged")


def fresh(kind: str, rows: int, seed: int, keys: int | None = None) -> Events:
    return generate.__wrapped__(Stream(kind, keys), rows, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_events_and_another_seed_gives_others(kind: str) -> None:
    one, again, other = fresh(kind, 5_000, 1), fresh(kind, 5_000, 1), fresh(kind, 5_000, 2)
    for column in ("ts", "codes", "keys", "values"):
        assert np.array_equal(getattr(one, column), getattr(again, column))
    assert not np.array_equal(one.values, other.values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keys", [None, 1, 7])
def test_a_stream_has_the_rows_asked_for_in_order_of_time(kind: str, keys: int | None) -> None:
    events = fresh(kind, 3_001, 1, keys)
    assert len(events) == 3_001
    assert (np.diff(events.ts) >= 0).all()
    assert set(np.unique(events.codes)) == set(range(len(events.types)))
    assert events.keys.min() >= 0 and events.keys.max() < Stream(kind, keys).keys_at(3_001)


def test_every_segment_reports_cars_and_speed_once_a_minute() -> None:
    events = fresh("traffic", 10 * 2 * 5, 1, keys=5)
    for type in ("Q", "V"):
        for segment in range(5):
            times = events.ts[events.of(type) & (events.keys == segment)]
            assert len(times) == 10
            assert (np.diff(times) == MINUTE).all()


def test_every_air_sensor_reports_every_three_to_five_minutes() -> None:
    events = fresh("air", 2_000, 1, keys=4)
    for type in events.types:
        gaps = np.diff(events.ts[events.of(type) & (events.keys == 2)])
        assert len(gaps) > 50
        assert gaps.min() >= 3 * MINUTE and gaps.max() < 5 * MINUTE


def test_ten_million_rows_come_from_2500_segments_and_fewer_rows_span_as_long() -> None:
    assert segments_for(10_000_000) == SEGMENTS == 2_500
    spans = [fresh("traffic", rows, 1).span_us / MINUTE for rows in (40_000, 400_000)]
    assert spans[0] == pytest.approx(spans[1], rel=0.01)


@pytest.mark.parametrize("layout", ["ordered", "shuffled"])
def test_the_files_hold_the_stream_and_are_made_once(tmp_path: Path, layout: str) -> None:
    folder = files_of(Stream("merged"), 5_000, root=tmp_path, layout=layout)
    files = sorted(folder.iterdir())
    made = [file.stat().st_mtime_ns for file in files]
    assert len(files) > 1
    ids = np.concatenate([pq.read_table(file)["id"].to_numpy() for file in files])
    assert np.array_equal(np.sort(ids), np.arange(5_000))
    assert bool((np.diff(ids) > 0).all()) is (layout == "ordered")
    assert files_of(Stream("merged"), 5_000, root=tmp_path, layout=layout) == folder
    assert [file.stat().st_mtime_ns for file in files] == made
