"""The events of Arrow tables that can take part in a search: which rows, what they may be bound to, and their columns.

Input    the events of some types, which may be rows of one table; the sources of a search
Output   `Candidates`, one for each table: row numbers, flags, and columns that are taken when they are asked for

Conditions on one event are evaluated on columns where `vectors` covers them, and otherwise row by row in Python. Long
tables are looked through in slices, by as many threads as there are cores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.engines.worker.arrays import nulls_of, numbers_of, of_numbers, of_values
from tocsin.engines.worker.digests import digests
from tocsin.engines.worker.lazy_tables import LazySlice, LazyTable
from tocsin.engines.worker.threads import in_threads
from tocsin.engines.worker.vectors import column_of
from tocsin.expressions import interpret
from tocsin.kernels.model import Integers, Mask, Source
from tocsin.language import expressions as ex
from tocsin.plan.manifest import Digest, Manifest, TrimmedDigest

Row = Mapping[str, Any]
Codes = NDArray[np.int32]
SLICE = 1 << 20  # rows


def taken(table: pa.Table | LazyTable, name: str, rows: Integers) -> pa.ChunkedArray:
    """Some rows of a column."""
    if isinstance(table, LazyTable):
        return table.taken(name, rows)
    column = table.column(name)
    if len(rows):  # Arrow joins all chunks that it takes from
        low = int(rows.min())
        column, rows = column.slice(low, int(rows.max()) + 1 - low), rows - low
    return column.take(of_numbers(rows))


class OfOneType:
    """The rows of a table whose type column has one value, with the attributes of a table that are asked for."""

    def __init__(self, table: pa.Table | LazyTable, codes: Codes, code: int) -> None:
        self.table, self._codes, self._code = table, codes, code
        self.schema = table.schema

    def marked(self, begin: int, end: int) -> Mask:
        """Which of some rows of the table are of the type."""
        found: Mask = self._codes[begin:end] == self._code
        return found

    @cached_property
    def _rows(self) -> Integers:
        return np.flatnonzero(self.marked(0, len(self._codes)))

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of these rows."""
        return taken(self.table, name, self._rows)


@dataclass(frozen=True)
class Events:
    """The events of one type: their rows, and the types of their columns."""

    type: str | None
    table: pa.Table | LazyTable | OfOneType
    time: str

    @property
    def whole(self) -> pa.Table | LazyTable:
        """The table that the rows are of."""
        return self.table.table if isinstance(self.table, OfOneType) else self.table

    def marked(self, begin: int, end: int) -> Mask:
        """Which of some rows of that table are events of this type."""
        if isinstance(self.table, OfOneType):
            return self.table.marked(begin, end)
        return np.ones(end - begin, np.bool_)


class _Chosen(NamedTuple):
    """The candidates among some rows of a table."""

    rows: Integers
    kinds: Integers
    flags: dict[int, Mask]


def candidates(events: Iterable[Events], manifest: Manifest) -> list[Candidates]:
    """The events that can take part, by table and name of the time column."""
    groups: dict[tuple[int, str], list[Events]] = {}
    for each in events:
        groups.setdefault((id(each.whole), each.time), []).append(each)
    sources: dict[str | None, list[Source]] = {}
    for source in manifest.sources:
        for kind in dict.fromkeys(source.types):
            sources.setdefault(kind, []).append(source)
    return [_candidates(group, [sources.get(each.type, []) for each in group], manifest) for group in groups.values()]


def _candidates(events: Sequence[Events], sources: Sequence[Sequence[Source]], manifest: Manifest) -> Candidates:
    table = events[0].whole
    begins = range(0, max(table.num_rows, 1), SLICE)

    def chosen(begin: int) -> _Chosen:
        return _chosen(events, sources, manifest, begin, min(begin + SLICE, table.num_rows))

    conditions = [condition for own in sources for source in own for condition in source.conditions]
    parts = list(in_threads(chosen, begins, conditions))
    flags = {bit: np.concatenate([part.flags[bit] for part in parts]) for bit in parts[0].flags}
    rows, kinds = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "kinds"))
    return Candidates(events, rows, kinds, flags)


def _chosen(
    events: Sequence[Events], sources: Sequence[Sequence[Source]], manifest: Manifest, begin: int, end: int
) -> _Chosen:
    """The rows from `begin` to `end` that can take part; every one with a time and a key where all of them count."""
    table = events[0].whole.slice(begin, end - begin)
    if not manifest.counts_every_event and isinstance(table, LazySlice) and not table.may_pass(chain(*sources)):
        bits = {source.bit for own in sources for source in own}
        return _Chosen(np.empty(0, np.int64), np.empty(0, np.int64), {bit: np.empty(0, np.bool_) for bit in bits})
    has_time = truths_of(table.column(events[0].time).is_valid())
    has_key = has_time & all(name in table.schema.names for name in manifest.partition.attributes)
    for name in manifest.partition.same if has_key.any() else ():
        has_key &= truths_of(table.column(name).is_valid())
    counts, kinds = np.zeros(end - begin, np.bool_), np.zeros(end - begin, np.int64)
    flags = {source.bit: np.zeros(end - begin, np.bool_) for own in sources for source in own}
    for number, (each, own) in enumerate(zip(events, sources, strict=True)):
        if not own and not manifest.counts_every_event:
            continue
        marked = each.marked(begin, end)
        kinds[marked] = number
        if manifest.counts_every_event:
            counts |= marked & (has_time if manifest.crosses_partitions else has_key)
        for source in own:
            passed = _passed(source, table, marked & has_key)
            flags[source.bit] |= passed
            counts |= passed
    rows = np.flatnonzero(counts)
    return _Chosen(rows + begin, kinds[rows], {bit: found[rows] for bit, found in flags.items()})


def truths_of(column: pa.ChunkedArray) -> Mask:
    """Which values are TRUE, as an array that may be written."""
    found: Mask = numbers_of(column)
    return found & ~nulls_of(column) if column.null_count else found.copy()


def _passed(source: Source, table: pa.Table, passed: Mask) -> Mask:
    """Which of some rows make all conditions of a source TRUE; Python computes what columns do not cover."""
    left = []
    for condition in source.conditions:
        found = _computed(condition, columns_of([condition], table), len(passed))
        if found is None:
            left.append(condition)
        else:
            passed &= truths_of(found)
    if left:
        holds = [interpret.holds(condition) for condition in left]
        rows = as_rows(columns_of(left, table), np.flatnonzero(passed))
        passed[passed] = [all(each({source.variable: (row,)}) for each in holds) for row in rows]
    return passed


def _computed(expression: ex.Expression, columns: Mapping[str, pa.ChunkedArray], size: int) -> pa.ChunkedArray | None:
    """An expression over events with these columns; None where Python must compute it."""
    return column_of(expression, lambda node: columns.get(node.path[0]), size)


def columns_of(expressions: Iterable[ex.Expression], table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns of a table that expressions read."""
    nodes = (node for each in expressions for node in each.walk())
    read = dict.fromkeys(node.path[0] for node in nodes if isinstance(node, ex.Attribute | ex.BagPredicate))
    return {name: table.column(name) for name in read if name in table.schema.names}


def as_rows(columns: Mapping[str, pa.ChunkedArray], places: Integers) -> Sequence[Row]:
    """Some rows as Python values."""
    if not columns:
        return [{}] * len(places)
    return pa.table(columns).take(of_numbers(places)).to_pylist()  # type: ignore[no-any-return]


class Candidates:
    """The rows of one table that can take part; a column is taken when it is asked for."""

    def __init__(self, events: Sequence[Events], rows: Integers, kinds: Integers, flags: Mapping[int, Mask]) -> None:
        self.table, self.time = events[0].whole, events[0].time
        self.types = [each.type or "" for each in events]
        self.kinds = kinds  # of each row, the number of its type
        self.flags = flags  # by bit, which rows have it
        self.size = len(rows)
        self.names = dict.fromkeys(self.table.column_names)
        self._rows, self._are_all = rows, self.size == self.table.num_rows
        self._columns: dict[str, pa.ChunkedArray] = {}

    def values(self, attribute: str) -> pa.ChunkedArray:
        """An attribute as it is."""
        if attribute not in self._columns:
            column = self.table.column(attribute) if self._are_all else taken(self.table, attribute, self._rows)
            self._columns[attribute] = column
        return self._columns[attribute]

    def values_at(self, attribute: str, places: Integers) -> pa.ChunkedArray:
        """An attribute of some events."""
        if attribute in self._columns:
            return self._columns[attribute].take(of_numbers(places))
        return taken(self.table, attribute, self._rows[places])

    def column(self, attribute: str, dtype: pa.DataType) -> pa.Array:
        """An attribute in a type, times as integers in microseconds; NULL where there is none."""
        if attribute not in self.names or not self.size:  # a type that nobody reads may be any
            return pa.nulls(self.size, dtype)
        column = self.values(attribute).combine_chunks()
        if pa.types.is_date(column.type) and pa.types.is_integer(dtype):
            column = column.cast(pa.timestamp("us"))
        return column if column.type == dtype else column.cast(dtype, safe=False)

    def times(self) -> pa.Array:
        """The times in microseconds."""
        return self.column(self.time, pa.int64())

    def type_names(self) -> pa.Array:
        """The type of each event."""
        return of_values(self.types, pa.string()).take(of_numbers(self.kinds))

    def rows(self, places: Integers) -> Sequence[Row]:
        """Some events as Python values."""
        return as_rows({name: self.values(name) for name in self.names}, places)

    def of_type(self, kind: str) -> Mask:
        """Which events are of a type."""
        found: Mask = self.kinds == self.types.index(kind)
        return found

    def value(self, expression: ex.Expression) -> pa.ChunkedArray | None:
        """An expression over each event; None where Python must compute it."""
        read = {name: self.values(name) for name in columns_of([expression], self.table)}
        return _computed(expression, read, self.size)

    def rows_read_by(self, expression: ex.Expression, places: Integers) -> Sequence[Row]:
        """Some events as Python values, with the attributes that an expression reads."""
        return as_rows({name: self.values(name) for name in columns_of([expression], self.table)}, places)

    def digests(self, content: Digest | TrimmedDigest, rows: Integers) -> Integers:
        """A digest of some events, as `tocsin.engines.spark.match_ids` defines it."""
        attributes: Collection[str] = self.names
        if isinstance(content, TrimmedDigest):
            attributes = content.attributes
        elif content.id is not None and content.id in attributes:
            attributes = [content.id]
        kept = content.kept if isinstance(content, TrimmedDigest) else attributes
        found = np.zeros(len(rows), np.int64)
        for number, name in enumerate(self.types):
            own = np.flatnonzero(self.kinds[rows] == number)
            if not len(own) or (content.types is not None and name not in content.types):
                continue
            nothing = pa.nulls(len(own))
            columns = {
                each: self.values_at(each, rows[own]).combine_chunks() if each in kept else nothing
                for each in attributes
            }
            found[own] = digests(content.half + 1, [name], columns, len(own))
        return found
