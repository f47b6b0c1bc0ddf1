"""Operators on tables and on streams: where machines meet the rows of Arrow.

In a batch the rows of one key, or of some of its windows, meet in a task, in order; there a machine runs. On a stream a
shard holds the memories of its keys, and wakes those for which something is due.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.acer.arrow import BLOCK, FIRST_KEY, SECOND_KEY, Identity, Incoming, Outgoing
from tocsin.acer.functions import shown
from tocsin.acer.growth import ADVICE
from tocsin.acer.model import Arrival, Key, Machine
from tocsin.acer.stored import dumped, loaded
from tocsin.acer.windows import FOREVER, NEVER
from tocsin.engines.stream.step import Outcome, Report
from tocsin.engines.stream.store import Clocks, RowStore, unusable
from tocsin.kernels.model import differs
from tocsin.plan.manifest import BITS

log = logging.getLogger(__name__)
AT_ONCE = 20_000  # arrivals that are given to a machine together, and results that leave together


@dataclass(frozen=True)
class Task:
    """The task of a worker."""

    machine: Machine
    incoming: Incoming
    outgoing: Outgoing
    per_block: int | None = None  # how many windows of a key are one group of rows; None: all

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of one task's rows, which come sorted."""
        outgoing, has_warned = replace(self.outgoing, rows=[]), False
        for group, pieces in groupby(self._pieces(batches), key=itemgetter(0)):
            block, windows = group[-1], self.per_block
            numbers = None if windows is None else range(block * windows, (block + 1) * windows)
            key, memory, before = None, self.machine.begin(numbers), NEVER
            for new, now in _at_once(arrivals for _, arrivals in pieces):
                key = self.incoming.key_of(new[0]) if key is None else key
                given = self.machine.run(key, memory, new, before, now)
                before = now
                outgoing.add(key, given.results)
                if given.grows and not has_warned:  # once in a task: others of its keys may be as many as there are
                    log.warning("%s. Hint: %s", given.grows, ADVICE)
                    has_warned = True
                if len(outgoing.rows) >= AT_ONCE:
                    yield outgoing.batch()
        if outgoing.rows:
            yield outgoing.batch()

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[int, ...], list[Arrival]]]:
        """The rows of each batch by group: its key, and perhaps its block."""
        names = [FIRST_KEY, SECOND_KEY, *([BLOCK] if self.per_block is not None else [])]
        for batch in batches:
            columns = [np.asarray(batch.column(name)) for name in names]
            begins = np.flatnonzero(differs(*columns)).tolist()
            groups = zip(*(column[begins].tolist() for column in columns), strict=True)
            arrivals = self.incoming.arrivals(batch)
            for group, begin, end in zip(groups, begins, [*begins[1:], batch.num_rows], strict=False):
                yield group, arrivals[begin:end]


def _at_once(pieces: Iterable[list[Arrival]]) -> Iterator[tuple[list[Arrival], int]]:
    """The arrivals of a group, many together, each time with how far time has come."""
    new: list[Arrival] = []
    for piece in pieces:
        new += piece
        if len(new) >= AT_ONCE:
            yield new, new[-1].time
            new = []
    yield new, FOREVER


# --- streams --------------------------------------------------------------------------------------


class Remembered(NamedTuple):
    """The state of a key in a shard: when it has to be woken, how much there is, and the memory of its machine."""

    key: Key
    due: int
    kept: int
    grows: bool
    memory: bytes


@dataclass(frozen=True)
class OperatorStep:
    """The program of a shard that runs functions of users (`streaming.grouped.Steps`)."""

    machine: Machine
    incoming: Incoming
    outgoing: Outgoing
    # The classes that the user's functions are written with: objects of no others can be stored.
    classes: tuple[type, ...] = ()

    @property
    def retention(self) -> None:
        """No rows are retained: machines have a memory of their own."""
        return

    def run(self, store: RowStore, clocks: Clocks, new: Sequence[pa.Table]) -> Outcome:
        """Process a micro-batch."""
        # Events have times that are ticks: a watermark between two has passed all of the time before the second.
        before, now = (-(-one.watermark // self.incoming.unit) * self.incoming.unit for one in (store.clocks, clocks))
        known: dict[Identity, Remembered] = keys_in(store.memory)
        arrived = self._arrived(new)
        outgoing = replace(self.outgoing, rows=[])
        late = 0
        for identity in [*arrived, *(one for one, kept in known.items() if kept.due <= now and one not in arrived)]:
            new_ones, last = arrived.get(identity, []), known.get(identity)
            key = self.incoming.key_of(new_ones[0]) if last is None else last.key
            memory = self.machine.begin() if last is None else read(last.memory, self.classes)
            given = self.machine.run(key, memory, new_ones, before, now)
            outgoing.add(key, given.results)
            late += given.late
            if kept := self.machine.kept(memory):
                due, written = self.machine.due(memory), stored(key, memory, self.classes)
                known[identity] = Remembered(key, due, kept, bool(given.grows), written)
            else:
                known.pop(identity, None)
        batches = [outgoing.batch()] if outgoing.rows else []
        events = sum(map(len, arrived.values()))
        report = Report(
            events=events - late,
            late=late,
            matches=sum(batch.num_rows for batch in batches),
            remembered=sum(one.kept for one in known.values()),
            watermark=clocks.watermark,
            growing=sum(one.grows for one in known.values()),
        )
        store.clocks, store.memory = clocks, dumped(known) if known else b""
        return Outcome(batches, report)

    def _arrived(self, new: Sequence[pa.Table]) -> dict[Identity, list[Arrival]]:
        """The new events by key."""
        if not new:
            return {}
        table = pa.concat_tables(new).drop_columns([BITS]).combine_chunks()
        table = table.sort_by([(FIRST_KEY, "ascending"), (SECOND_KEY, "ascending")])
        found: dict[Identity, list[Arrival]] = {}
        identities = zip(*(table.column(name).to_pylist() for name in (FIRST_KEY, SECOND_KEY)), strict=True)
        for identity, arrival in zip(identities, self.incoming.arrivals(table), strict=True):
            found.setdefault(identity, []).append(arrival)
        return found


def stored(key: Key, memory: Any, classes: tuple[type, ...] = ()) -> bytes:
    """A memory as bytes; refuses the state of a user's function that cannot be stored."""
    try:
        return dumped(memory, classes)
    except Exception as problem:
        raise errors.UserFunctionError(
            f"The state for the key {shown(key)} cannot be stored between micro-batches: {errors.fault(problem)}",
            hint="keep plain values in it: numbers, texts, tuples, lists, dicts, events, and objects of classes that "
            "your function names or is annotated with.",
        ) from problem


def keys_in(written: bytes) -> dict[Identity, Remembered]:
    """The memories of a shard by key; refuses bytes that hold anything else."""
    known = read(written) if written else {}
    if not isinstance(known, dict) or not all(isinstance(one, Remembered) for one in known.values()):
        raise unusable("what your functions remember is something else")
    return known


def read(written: bytes, classes: tuple[type, ...] = ()) -> Any:
    """The value that `stored` wrote; refuses bytes that are damaged, or hold more than data."""
    try:
        return loaded(written, classes)
    except Exception as problem:
        raise unusable(f"what your functions remember cannot be read ({errors.fault(problem)})") from problem
