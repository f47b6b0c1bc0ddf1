"""The memory of a shard: events are appended, searched, marked and evicted, and written as bytes between micro-batches.

A step requires only a `Store`, which decides how events are kept and which of them a search needs. `RowStore` keeps all
rows in one table and returns all of them. Its bytes record which release and which plan wrote them:

====  ===========================================================================
6     `tocsin`
2     the version of this format
4     the length of what follows
…     JSON: the plan that wrote it, the clocks, the length of what follows, and a checksum of all of it
…     the memory of users' functions (`tocsin.acer`); nothing for patterns
…     the events that still matter, as an Arrow stream; nothing when there are none
====  ===========================================================================
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tocsin.engines.worker.rows import array_of, flags_of, integers, partition_of, with_flags
from tocsin.errors import StateMismatchError
from tocsin.kernels.model import Mask
from tocsin.plan.due import Due, Retention
from tocsin.plan.manifest import BITS, SPENT, Layout

# --- watermarks -----------------------------------------------------------------------------------

# A source is one DataFrame. Its events may be up to its lateness older than the latest one, and no older. So everything
# before `min over the sources of (latest − lateness)` has arrived: that is the watermark. It is exclusive, since an
# event at this very time may still come, and it never goes back.
#
# A silent source holds back the watermark. With an idle time-out, a source that has been silent for so long by the wall
# clock is left out of the minimum until it sends again; its events before the watermark are then late. When all sources
# are idle, the watermark follows the most advanced one.
#
# Spark's own watermark is not used: it comes one micro-batch later, and a filter that Spark moves below it holds it
# back. Every shard batch carries ours, so that all shards agree on it within the same micro-batch.


NEVER = -(2**63)  # the latest time of a source that has sent nothing


@dataclass(frozen=True)
class Clocks:
    """The latest times and the watermark: all events before it have arrived."""

    latest: tuple[int, ...]  # by source, in microseconds
    watermark: int = NEVER
    heard_ms: tuple[int, ...] = ()  # when each source has sent last, by the wall clock; empty before the first step

    @staticmethod
    def begin(sources: int) -> Clocks:
        """Clocks of sources that have sent nothing.

        >>> clocks = Clocks.begin(2).advanced([(50, NEVER)], [10, 0])
        >>> clocks.watermark == NEVER, clocks.advanced([(NEVER, 30)], [10, 0]).watermark
        (True, 30)
        """
        return Clocks((NEVER,) * sources)

    def advanced(
        self,
        latest: Iterable[Sequence[int]],
        lateness_us: Sequence[int],
        *,
        now_ms: int = 0,
        idle_ms: int | None = None,
    ) -> Clocks:
        """The clocks after a micro-batch, from the latest times that each of its tasks has seen.

        >>> clocks = Clocks.begin(2).advanced([(50, NEVER)], [0, 0], now_ms=0, idle_ms=9)
        >>> [clocks.advanced([], [0, 0], now_ms=now, idle_ms=9).watermark for now in (8, 9)] == [NEVER, 50]
        True
        >>> clocks.advanced([(60, NEVER)], [0, 0], now_ms=9, idle_ms=9).watermark
        60
        """
        before = self.heard_ms or (now_ms,) * len(self.latest)
        tasks = list(latest)
        found = tuple(max(times) for times in zip(self.latest, *tasks, strict=True))
        speaks = [any(times[source] != NEVER for times in tasks) for source in range(len(found))]
        heard = tuple(now_ms if is_heard else at for is_heard, at in zip(speaks, before, strict=True))
        known = [NEVER if time == NEVER else time - late for time, late in zip(found, lateness_us, strict=True)]
        active = [time for time, at in zip(known, heard, strict=True) if idle_ms is None or now_ms - at < idle_ms]
        return Clocks(found, max(self.watermark, min(active, default=max(known))), heard)

    def heard_since(self, start_ms: int) -> Clocks:
        """The clocks of a query that starts now: no source could send while it did not run."""
        return replace(self, heard_ms=tuple(max(at, start_ms) for at in self.heard_ms))


def to_bytes(latest: Sequence[int]) -> bytes:
    """Write the latest times that a task has seen."""
    return np.array(latest, "<i8").tobytes()


def from_bytes(written: bytes) -> tuple[int, ...]:
    """Read what `to_bytes` wrote.

    >>> from_bytes(to_bytes([5, NEVER])) == (5, NEVER)
    True
    """
    return tuple(np.frombuffer(written, "<i8").tolist())


# --- events ---------------------------------------------------------------------------------------


class Affected(NamedTuple):
    """Events that a search must see, and which of them came in this step."""

    rows: pa.Table
    is_new: Mask


class Store(Protocol):
    """The memory of a shard during one step."""

    clocks: Clocks

    def append(self, rows: pa.Table) -> None:
        """Add events: those that have arrived, and those that rules emit."""

    def affected(self, due: Sequence[Due], before: int, now: int) -> Affected | None:
        """Return the events of matches that may be emitted in this step, or more; None when there are none.

        `due` has an entry for each rule that searches them; `before` and `now` are the watermarks of the inputs around
        the step.
        """

    def mark(self, spent: Mask) -> None:
        """Mark events that no match may start with any more; the mask is for the rows that `affected` returned last."""

    def expire(self, watermark: int) -> None:
        """Evict the events that no match can need."""

    @property
    def size(self) -> int:
        """How many events there are."""


@dataclass(frozen=True)
class RowRetention:
    """Which rows a shard retains: a `Retention` for rows of this layout."""

    retention: Retention
    layout: Layout

    def __call__(self, rows: pa.Table, watermark: int) -> pa.Table:
        """The rows that are retained, each with the flags for which it is."""
        flags = flags_of(rows, self.layout.packing)
        by_number = self.retention.last_events is not None
        live, left = self.retention.live(
            integers(array_of(rows, self.layout.time)),
            flags,
            watermark,
            partition_of(rows, self.layout) if by_number else None,
        )
        if left is not flags:
            rows = with_flags(rows, self.layout.packing, left)
        return rows if live.all() else rows.filter(pa.array(live))


MAGIC = b"tocsin"
VERSION = 1
HEAD = struct.Struct("<6sHI")
SUM = "sum"
KNOWN = frozenset({"plan", "latest", "watermark", "heard", "arrived", "rated", "memory", SUM})
DAMAGED = "what it holds is damaged: a file under `state` was cut or overwritten"


@dataclass(frozen=True)
class State:
    """The memory of a shard between micro-batches."""

    clocks: Clocks
    rows: pa.Table | None = None  # events that still matter
    # Events in the stretches of the rate guard; of one shard only.
    arrived: Mapping[tuple[int, int], int] = field(default_factory=dict)
    memory: bytes = b""  # of users' functions
    rated: str = ""  # the name of the guard that has counted what arrived

    def to_bytes(self, plan: str) -> bytes:
        """Write the state and the name of the plan."""
        said = {
            "plan": plan,
            "latest": self.clocks.latest,
            "watermark": self.clocks.watermark,
            "heard": self.clocks.heard_ms,
            "arrived": [[*stretch, events] for stretch, events in self.arrived.items()],
            "rated": self.rated,
            "memory": len(self.memory),
        }
        rows = rows_to_bytes(self.rows)
        text = _text({**said, SUM: _sum(said, self.memory, rows)})
        return HEAD.pack(MAGIC, VERSION, len(text)) + text + self.memory + rows

    @staticmethod
    def from_bytes(written: bytes, plan: str) -> State:
        """Read what `to_bytes` wrote.

        Raises `StateMismatchError` when another release or another query wrote it, or it is damaged.
        """
        try:
            magic, version, length = HEAD.unpack_from(written)
            said = json.loads(written[HEAD.size : HEAD.size + length]) if magic == MAGIC and version == VERSION else {}
        except (struct.error, ValueError):
            raise unusable(DAMAGED) from None
        if magic != MAGIC:
            raise unusable("it is not Tocsin's")
        if version != VERSION:
            raise unusable(f"it has the format {version}, and this release writes and reads the format {VERSION}")
        if not isinstance(said, dict) or "plan" not in said or not KNOWN.issuperset(said):
            raise unusable(DAMAGED)
        if said["plan"] != plan:
            raise unusable(
                "another query wrote it, or the same one with other columns, types, windows, keys, numbers of shards "
                "or `emit=`"
            )
        begin = HEAD.size + length
        end = begin + said.get("memory", 0)
        memory = written[begin:end]
        # States of before have no checksum.
        if SUM in said and said.pop(SUM) != _sum(said, memory, written[end:]):
            raise unusable(DAMAGED)
        try:
            rows = rows_from_bytes(written[end:])
            clocks = Clocks(tuple(said["latest"]), said["watermark"], tuple(said["heard"]))
            arrived = {(number, stretch): events for number, stretch, events in said.get("arrived", ())}
        except (pa.ArrowException, KeyError, TypeError, ValueError):
            raise unusable(DAMAGED) from None
        return State(clocks, rows, arrived, memory, said.get("rated", ""))

    @staticmethod
    def begin(sources: int) -> State:
        """The state of a shard that has seen nothing."""
        return State(Clocks.begin(sources))


class RowStore:
    """A store that keeps all rows in one table, which is read and written as a whole."""

    def __init__(self, state: State, retention: RowRetention | None = None) -> None:
        self.state, self.retention = state, retention
        self.clocks, self.memory, self.rows = state.clocks, state.memory, state.rows
        self.old = self.size

    @property
    def size(self) -> int:
        """How many events there are."""
        return 0 if self.rows is None else self.rows.num_rows

    def append(self, rows: pa.Table) -> None:
        """Add events."""
        self.rows = pa.concat_tables([rows] if not self.size else [self.rows, rows]).combine_chunks()

    def affected(self, due: Sequence[Due], before: int, now: int) -> Affected | None:
        """Return all events, old ones first."""
        return Affected(self.rows, np.arange(self.size) >= self.old) if self.size else None

    def mark(self, spent: Mask) -> None:
        """Mark events that no match may start with any more."""
        assert self.rows is not None
        bits = integers(array_of(self.rows, BITS))
        place = self.rows.column_names.index(BITS)
        self.rows = self.rows.set_column(place, BITS, pa.array(np.where(spent, bits & ~3 | SPENT, bits)))

    def expire(self, watermark: int) -> None:
        """Evict the events that no match can need."""
        if self.size and self.retention is not None:
            self.rows = self.retention(self.rows, watermark)

    def commit(self) -> State:
        """The state after the step."""
        return replace(self.state, clocks=self.clocks, rows=self.rows, memory=self.memory)


def _text(said: Mapping[str, object]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def _sum(said: Mapping[str, object], memory: bytes, rows: bytes) -> int:
    return zlib.crc32(rows, zlib.crc32(memory, zlib.crc32(_text(said))))


def unusable(why: str) -> StateMismatchError:
    """A state that cannot be read, or must not be."""
    return StateMismatchError(
        f"The state in the checkpoint cannot be used: {why}.",
        hint="start with a new checkpoint directory, or go back to the query and release that wrote this one.",
    )


def rows_to_bytes(rows: pa.Table | None) -> bytes:
    """Rows as an Arrow stream; none are no bytes."""
    if rows is None or not rows.num_rows:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def rows_from_bytes(written: bytes) -> pa.Table | None:
    """Read what `rows_to_bytes` wrote.

    >>> rows_from_bytes(rows_to_bytes(pa.table({"x": [1, 2]}))).column("x").to_pylist(), rows_from_bytes(b"")
    ([1, 2], None)
    """
    if not written:
        return None
    with pa.ipc.open_stream(pa.py_buffer(written)) as stream:
        return stream.read_all()
