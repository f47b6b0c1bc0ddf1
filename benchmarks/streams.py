"""The streams that are measured on: made from a seed, kept as Parquet files.

==========  =========================================================================================================
uniform     one event per millisecond, five types A..E, values in [0, 1)
traffic     road segments that tell the number of cars (Q) and their mean speed (V) once a minute
air         stations that tell PM10 and PM25 (one sensor), Temp and Hum (another) every three to five minutes
merged      traffic and air together: every segment has a station
==========  =========================================================================================================

Columns: `id bigint, ts timestamp (or bigint in microseconds), type string, key int, value double`.
"""

from __future__ import annotations

import shutil
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
BEGIN = 1_767_225_600 * SECOND  # 2026-01-01 00:00 UTC
SEGMENTS = 2_500
FILES = 8
VERSION = 1  # of the recipes below: files of another version are not taken for these


@dataclass(frozen=True)
class Events:
    """A stream in order of time; `codes` are places in `types`. The id of an event is its place."""

    ts: NDArray[np.int64]
    types: tuple[str, ...]
    codes: NDArray[np.int8]
    keys: NDArray[np.int32]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ts)

    @property
    def span_us(self) -> int:
        return int(self.ts[-1] - self.ts[0]) + 1

    def of(self, type: str) -> NDArray[np.bool_]:
        return self.codes == self.types.index(type)

    def first(self, rows: int) -> Events:
        return Events(self.ts[:rows], self.types, self.codes[:rows], self.keys[:rows], self.values[:rows])


@dataclass(frozen=True)
class Stream:
    """Which stream: `keys` of None lets the number of segments grow with the rows (see `segments_for`)."""

    kind: str
    keys: int | None = None

    def keys_at(self, rows: int) -> int:
        if self.keys is not None:
            return self.keys
        return 1_000 if self.kind == "uniform" else segments_for(rows)

    def name_at(self, rows: int, seed: int) -> str:
        return f"{self.kind}-{self.keys_at(rows)}keys-{rows}rows-seed{seed}-v{VERSION}"


def segments_for(rows: int) -> int:
    """2,500 at ten million rows; fewer for smaller streams, so that all span more than a day and long windows fit."""
    return max(1, min(SEGMENTS, rows // 4_000))


@lru_cache(maxsize=1)
def generate(stream: Stream, rows: int, seed: int) -> Events:
    """The events of a stream; the same for the same arguments."""
    keys = stream.keys_at(rows)
    rng = np.random.default_rng([seed, rows, keys, zlib.crc32(stream.kind.encode())])
    match stream.kind:
        case "uniform":
            return _uniform(rng, rows, keys)
        case "traffic":
            return _traffic(rng, -(-rows // (2 * keys)), keys).first(rows)
        case "air":
            # One reading of two values from each of two sensors every four minutes.
            return _air(rng, -(-rows // keys) + 30, keys).first(rows)
        case "merged":
            minutes = -(-rows // (3 * keys))
            minutes += 30 + minutes // 100
            return _merge(_traffic(rng, minutes, keys), _air(rng, minutes, keys)).first(rows)
    raise ValueError(f"there is no stream {stream.kind!r}")


def _uniform(rng: np.random.Generator, rows: int, keys: int) -> Events:
    return Events(
        BEGIN + np.arange(rows, dtype=np.int64) * MILLISECOND,
        tuple("ABCDE"),
        rng.integers(0, 5, rows, dtype=np.int8),
        rng.integers(0, keys, rows, dtype=np.int32),
        rng.random(rows),
    )


def _traffic(rng: np.random.Generator, minutes: int, segments: int) -> Events:
    readings = minutes * segments
    # A segment reports at its own second of the minute, both values at once.
    seconds = np.sort(rng.integers(0, MINUTE, segments))
    ts = (BEGIN + np.arange(minutes, dtype=np.int64)[:, None] * MINUTE + seconds[None, :]).ravel()
    # Segments differ less than minutes do, so that what a filter keeps comes from all of them.
    busy = rng.gamma(30.0, 0.4, segments)
    cars = np.tile(busy, minutes) * rng.lognormal(0.0, 0.5, readings)
    speed = np.tile(rng.normal(95.0, 3.0, segments), minutes) - 0.4 * cars + rng.normal(0.0, 9.0, readings)
    values = np.empty(2 * readings)
    values[0::2], values[1::2] = cars, speed
    codes = np.tile(np.array([0, 1], dtype=np.int8), readings)
    keys = np.repeat(np.tile(np.arange(segments, dtype=np.int32), minutes), 2)
    return Events(np.repeat(ts, 2), ("Q", "V"), codes, keys, values)


def _air(rng: np.random.Generator, minutes: int, stations: int) -> Events:
    parts = [_sensor(rng, minutes, stations, pair) for pair in ((0, 1), (2, 3))]
    ts, codes, keys = (np.concatenate([part[column] for part in parts]) for column in range(3))
    level = np.stack(
        [
            rng.gamma(40.0, 0.5, stations),  # PM10
            rng.gamma(30.0, 0.4, stations),  # PM25
            rng.normal(14.0, 1.0, stations),  # Temp
            rng.normal(60.0, 2.0, stations),  # Hum
        ]
    )
    spread = np.array([7.0, 5.0, 4.0, 9.0])
    values = level[codes, keys] + spread[codes] * rng.standard_normal(len(ts))
    order = np.argsort(ts, kind="stable")
    return Events(ts[order], ("PM10", "PM25", "Temp", "Hum"), codes[order], keys[order], values[order])


def _sensor(rng: np.random.Generator, minutes: int, stations: int, pair: tuple[int, int]) -> tuple[NDArray, ...]:
    """Times, types and stations of all readings of one kind of sensor; each reading is two events."""
    most = minutes // 3 + 2  # no interval is shorter than three minutes
    steps = rng.integers(3 * MINUTE, 5 * MINUTE, (stations, most))
    steps[:, 0] = rng.integers(0, 4 * MINUTE, stations)
    ts = np.cumsum(steps, axis=1)
    station, reading = np.nonzero(ts < minutes * MINUTE)
    times = BEGIN + ts[station, reading]
    codes = np.tile(np.array(pair, dtype=np.int8), len(times))
    return np.repeat(times, 2), codes, np.repeat(station.astype(np.int32), 2)


def _merge(one: Events, other: Events) -> Events:
    ts = np.concatenate([one.ts, other.ts])
    order = np.argsort(ts, kind="stable")
    codes = np.concatenate([one.codes, other.codes + len(one.types)]).astype(np.int8)[order]
    keys = np.concatenate([one.keys, other.keys])[order]
    return Events(ts[order], one.types + other.types, codes, keys, np.concatenate([one.values, other.values])[order])


def table_of(events: Events, *, time: str = "timestamp") -> pa.Table:
    ts = pa.array(events.ts)
    names = pa.array(list(events.types))
    return pa.table(
        {
            "id": pa.array(np.arange(len(events), dtype=np.int64)),
            "ts": ts.cast(pa.timestamp("us", tz="UTC")) if time == "timestamp" else ts,
            "type": pa.DictionaryArray.from_arrays(pa.array(events.codes), names).cast(pa.string()),
            "key": pa.array(events.keys),
            "value": pa.array(events.values),
        }
    )


def files_of(
    stream: Stream, rows: int, *, root: Path, seed: int = 1, layout: str = "ordered", time: str = "timestamp"
) -> Path:
    """The folder with the Parquet files of a stream, written when it is not there yet.

    `ordered` files follow each other in time, as those of a table that grows by arrival; `shuffled` rows have no order.
    """
    folder = root / f"{stream.name_at(rows, seed)}-{layout}-{time}"
    if folder.exists():
        return folder
    table = table_of(generate(stream, rows, seed), time=time)
    if layout == "shuffled":
        table = table.take(pa.array(np.random.default_rng([seed, rows]).permutation(rows)))
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    per_file = -(-rows // FILES)
    for number in range(FILES):
        part = table.slice(number * per_file, per_file)
        if part.num_rows:
            pq.write_table(part, unfinished / f"part-{number:04d}.parquet", row_group_size=1 << 20)
    unfinished.rename(folder)
    return folder
