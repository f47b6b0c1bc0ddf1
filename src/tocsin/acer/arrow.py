"""The columns that workers of an operator read and return: names, types, and rows as typed columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.acer import listings
from tocsin.acer.clock import Clock, length
from tocsin.acer.events import events_of, order_of
from tocsin.acer.functions import shown, values_of_row
from tocsin.acer.model import Arrival, Key, Result
from tocsin.physical.arrow_scan import as_sorted

TIME, BLOCK = "__tocsin_time", "__tocsin_block"
FIRST_KEY, SECOND_KEY = "__tocsin_key1", "__tocsin_key2"
FIRST_TIE, SECOND_TIE = "__tocsin_tie1", "__tocsin_tie2"
LATEST = 2**63 - 1
Identity = tuple[int, int]


def column(place: int) -> str:
    """The name of the column at a place of an event on its way to workers."""
    return f"__tocsin_c{place}"


@dataclass(frozen=True)
class Incoming:
    """How rows are read."""

    names: tuple[str, ...]
    key: tuple[str, ...]  # those of them that are its key
    ties: tuple[str, ...] = ()  # those that order events of one time, before all others
    unit: int = 1  # δ: times are multiples of it
    clock: Clock = Clock.INTEGER

    def arrivals(self, table: pa.Table | pa.RecordBatch) -> list[Arrival]:
        """The events of rows, one for one."""
        times = table.column(TIME).to_pylist()
        digests = zip(table.column(FIRST_TIE).to_pylist(), table.column(SECOND_TIE).to_pylist(), strict=True)
        ties: Any = digests
        columns = tuple(column(place) for place in range(len(self.names)))
        if self.ties:
            places = map(self.names.index, self.ties)
            named = zip(*(order_of(table.column(columns[place])) for place in places), strict=True)
            ties = (as_sorted(values) + digest for values, digest in zip(named, digests, strict=True))
        found = list(map(Arrival, times, ties, events_of(table, self.names, columns)))
        self._check(table, found)
        return found

    def key_of(self, arrival: Arrival) -> Key:
        """The key of an event."""
        return tuple(arrival.event[name] for name in self.key)

    def _check(self, table: pa.Table | pa.RecordBatch, found: list[Arrival]) -> None:
        if self.unit == 1:
            return
        wrong = np.flatnonzero(integers(table, TIME) % self.unit)
        if len(wrong):
            one = found[int(wrong[0])]
            raise errors.InvalidInputError(
                f"The event of the key {shown(self.key_of(one))} at {self.clock.shown(one.time)} lies between two "
                f"ticks of the granularity {length(self.unit)}.",
                hint="round the time column, or choose a finer `granularity=`.",
            )


def _require_whole(values: list[Any]) -> None:
    """Arrow would cut a fraction off without a word."""
    for value in values:
        if isinstance(value, float | np.floating) and not float(value).is_integer():
            raise ValueError(f"{value!r} is not a whole number")


def integers(table: pa.Table | pa.RecordBatch, name: str) -> Any:
    """A column of integers as an array."""
    return np.asarray(table.column(name))


@dataclass
class Outgoing:
    """Results on their way back, as columns: the key, the time, perhaps the revision, and the payload."""

    keys: dict[str, pa.DataType]  # the types of key columns, by name
    payload: dict[str, pa.DataType]  # the types of payload columns, by name
    has_revision: bool = False  # whether results tell how often they have been given before
    clock: Clock = Clock.INTEGER
    never_null: frozenset[str] = frozenset()  # the payload columns that hold no NULL
    rows: list[tuple[Key, Result, tuple[Any, ...]]] = field(default_factory=list)

    def empty(self) -> Outgoing:
        """For the results of one task."""
        return Outgoing(self.keys, self.payload, self.has_revision, self.clock, self.never_null)

    def add(self, key: Key, results: Sequence[Result]) -> None:
        """More rows."""
        names = tuple(self.payload)
        for result in results:
            self.rows.append((key, result, self._values(key, result, names)))

    def batch(self) -> pa.RecordBatch:
        """The rows as columns; afterwards there are none."""
        rows, self.rows = self.rows, []
        columns = [self._column([row[0][place] for row in rows], kind) for place, kind in enumerate(self.keys.values())]
        columns.append(self._times(rows))
        if self.has_revision:
            columns.append(pa.array([row[1].revision for row in rows], pa.int32()))
        for place, (name, kind) in enumerate(self.payload.items()):
            try:
                columns.append(self._column([row[2][place] for row in rows], kind, name in self.never_null))
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                self._blame(rows, place, name, kind)
                raise
        # By place: what users call them may differ in nothing but case.
        return pa.RecordBatch.from_arrays(columns, names=[column(place) for place in range(len(columns))])

    @staticmethod
    def _times(rows: list[tuple[Key, Result, tuple[Any, ...]]]) -> pa.Array:
        late = next((row for row in rows if row[1].time > LATEST), None)
        if late is not None:
            raise errors.InvalidInputError(
                f"The key {shown(late[0])} has events so late that the time of a result is after the last one there "
                f"is: it would be {late[1].time} microseconds.",
                hint="leave out events whose time stands for none, such as the largest integer.",
            )
        return pa.array([row[1].time for row in rows], pa.int64())

    @staticmethod
    def _column(values: list[Any], kind: pa.DataType, never_null: bool = False) -> pa.Array:
        if never_null and None in values:
            raise ValueError("the schema says NOT NULL")
        if pa.types.is_integer(kind):
            _require_whole(values)
        return pa.array(values, kind)

    def _values(self, key: Key, result: Result, names: tuple[str, ...]) -> tuple[Any, ...]:
        if isinstance(result.payload, listings.Sequence):
            return result.payload.values
        try:
            return values_of_row(result.payload, names)
        except TypeError as problem:
            raise self._wrong(key, result.time, str(problem)) from None

    def _blame(self, rows: list[tuple[Key, Result, tuple[Any, ...]]], place: int, name: str, kind: pa.DataType) -> None:
        """Find the value that is not of its column's type."""
        for key, result, values in rows:
            try:
                self._column([values[place]], kind, name in self.never_null)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
                said = f"`{name}` is {values[place]!r}, and the column holds {kind}: {problem}"
                raise self._wrong(key, result.time, said) from None

    def _wrong(self, key: Key, time: int, why: str) -> errors.UserFunctionError:
        return errors.UserFunctionError(
            f"An output for the key {shown(key)} at the event time {self.clock.shown(time)} does not fit the schema: "
            f"{why}.",
            hint="let the function give the columns of `schema=`, in their order or by name.",
        )
