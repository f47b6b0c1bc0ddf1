"""Operators on tables: rows of one key, or of some of its windows, meet in a task, in order; there a machine runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.acer.columns import BLOCK, FIRST_KEY, SECOND_KEY, Incoming, Outgoing, integers
from tocsin.acer.growth import ADVICE
from tocsin.acer.model import Arrival, Key, Machine
from tocsin.acer.windows import FOREVER, NEVER

log = logging.getLogger(__name__)
AT_ONCE = 20_000  # arrivals that are given to a machine together, and results that leave together


@dataclass(frozen=True)
class Task:
    """What a worker has to know."""

    machine: Machine
    incoming: Incoming
    outgoing: Outgoing
    per_block: int | None = None  # how many windows of a key are one group of rows; None: all

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of one task's rows, which come sorted."""
        run = _Run(self)
        for batch in batches:
            run.take(batch)
            if len(run.outgoing.rows) >= AT_ONCE:
                yield run.outgoing.batch()
        run.finish()
        if run.outgoing.rows:
            yield run.outgoing.batch()


@dataclass
class _Run:
    """One task: the group whose rows are being read."""

    task: Task
    group: tuple[int, ...] | None = None
    key: Key = ()
    memory: Any = None
    before: int = NEVER
    has_warned: bool = False
    arrivals: list[Arrival] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outgoing = self.task.outgoing.empty()

    def take(self, batch: pa.RecordBatch) -> None:
        """More rows: the rest of the group, and others."""
        if not batch.num_rows:
            return
        names = [FIRST_KEY, SECOND_KEY, *([BLOCK] if self.task.per_block is not None else [])]
        columns = [integers(batch, name) for name in names]
        changes = np.zeros(batch.num_rows - 1, np.bool_)
        for column in columns:
            changes |= column[1:] != column[:-1]
        begins = [0, *(np.flatnonzero(changes) + 1).tolist()]
        groups = zip(*(column[begins].tolist() for column in columns), strict=True)
        arrivals = self.task.incoming.arrivals(batch)
        for group, begin, end in zip(groups, begins, [*begins[1:], batch.num_rows], strict=True):
            if group != self.group:
                self.finish()
                self._begin(group, arrivals[begin])
            self.arrivals += arrivals[begin:end]
            if len(self.arrivals) >= AT_ONCE:
                self._run(self.arrivals[-1].time)

    def finish(self) -> None:
        """All rows of the group have come."""
        if self.group is not None:
            self._run(FOREVER)
        self.group = None

    def _begin(self, group: tuple[int, ...], first: Arrival) -> None:
        per_block = self.task.per_block
        numbers = None if per_block is None else range(group[-1] * per_block, (group[-1] + 1) * per_block)
        self.group, self.key, self.before = group, self.task.incoming.key_of(first), NEVER
        self.memory = self.task.machine.begin(numbers)

    def _run(self, now: int) -> None:
        new, self.arrivals = self.arrivals, []
        given = self.task.machine.run(self.key, self.memory, new, self.before, now)
        self.outgoing.add(self.key, given.results)
        self.before = now
        if given.grows and not self.has_warned:  # once in a task: others of its keys may be as many as there are
            log.warning("%s. Hint: %s", given.grows, ADVICE)
            self.has_warned = True
