"""What a shard remembers between micro-batches, as bytes that know which release and which plan wrote them.

====  ===========================================================================
6     `tocsin`
2     the version of this format
4     the length of what follows
…     JSON: the plan that wrote it, the clocks, and the length of what follows
…     what machines of users' functions remember (`tocsin.acer`); nothing for patterns
…     the events that still matter, as an Arrow stream; nothing when there are none
====  ===========================================================================
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tocsin.errors import StateMismatchError
from tocsin.physical.streaming.clocks import Clocks

MAGIC = b"tocsin"
VERSION = 1
HEAD = struct.Struct("<6sHI")


@dataclass(frozen=True)
class State:
    """What a shard remembers.

    Attributes
    ----------
    clocks
        How far time had come.
    rows
        The events that still matter; None: none.
    arrived
        How many events there are in the stretches of time of the rate guard; of one shard only.
    memory
        What machines of users' functions remember, as bytes.
    rated
        The name of the guard that has counted what arrived.
    """

    clocks: Clocks
    rows: pa.Table | None = None
    arrived: Mapping[tuple[int, int], int] = field(default_factory=dict)
    memory: bytes = b""
    rated: str = ""

    def to_bytes(self, plan: str) -> bytes:
        """These, and the name of the plan."""
        said = {
            "plan": plan,
            "latest": self.clocks.latest,
            "watermark": self.clocks.watermark,
            "heard": self.clocks.heard_ms,
            "arrived": [[*stretch, events] for stretch, events in self.arrived.items()],
            "rated": self.rated,
            "memory": len(self.memory),
        }
        text = json.dumps(said, separators=(",", ":")).encode()
        return HEAD.pack(MAGIC, VERSION, len(text)) + text + self.memory + rows_to_bytes(self.rows)

    @staticmethod
    def from_bytes(written: bytes, plan: str) -> State:
        """What `to_bytes` wrote.

        Raises
        ------
        StateMismatchError
            When another release or another query wrote it, or it is damaged.
        """
        try:
            magic, version, length = HEAD.unpack_from(written)
            said = json.loads(written[HEAD.size : HEAD.size + length]) if magic == MAGIC and version == VERSION else {}
        except (struct.error, ValueError):
            raise _unusable("what it holds cannot be read") from None
        if magic != MAGIC:
            raise _unusable("it is not Tocsin's")
        if version != VERSION:
            raise _unusable(f"it has the format {version}, and this release writes and reads the format {VERSION}")
        if said["plan"] != plan:
            raise _unusable(
                "another query wrote it, or the same one with other columns, types, windows, keys, numbers of shards "
                "or `emit=`"
            )
        begin = HEAD.size + length
        end = begin + said.get("memory", 0)
        try:
            rows = rows_from_bytes(written[end:])
        except pa.ArrowException:
            raise _unusable("its events cannot be read") from None
        clocks = Clocks(tuple(said["latest"]), said["watermark"], tuple(said["heard"]))
        arrived = {(number, stretch): events for number, stretch, events in said.get("arrived", ())}
        return State(clocks, rows, arrived, written[begin:end], said.get("rated", ""))


def _unusable(why: str) -> StateMismatchError:
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
    """What `rows_to_bytes` wrote.

    Examples
    --------
    >>> rows_from_bytes(rows_to_bytes(pa.table({"x": [1, 2]}))).column("x").to_pylist(), rows_from_bytes(b"")
    ([1, 2], None)
    """
    if not written:
        return None
    with pa.ipc.open_stream(pa.py_buffer(written)) as stream:
        return stream.read_all()
