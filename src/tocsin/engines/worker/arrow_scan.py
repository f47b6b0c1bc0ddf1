"""Arrow tables → one table with the rows of a manifest, in this process.

Input    the events of every type as Arrow tables; a manifest, or the readers of one
Output   the rows of the manifest; digests of events are computed when matches ask for them

Conditions on one event and the values that conditions between events use are evaluated on columns where `vectors`
covers them, and otherwise row by row in Python. Only columns that something reads are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.analysis.types import DataType
from tocsin.engines.worker.arrow_types import completed, schemas_of, to_arrow
from tocsin.engines.worker.digests import digests
from tocsin.engines.worker.event_order import as_json, as_sorted, text_of
from tocsin.engines.worker.vectors import column_of
from tocsin.expressions import interpret
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.model import WORD_BITS, Held, Integers, Mask, Source
from tocsin.kernels.reach import Search
from tocsin.language import expressions as ex
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Digest, Manifest, Reader, Tie, TrimmedDigest, Value

Row = Mapping[str, Any]
HELD = {Held.INTEGER: pa.int64(), Held.FLOAT: pa.float64(), Held.BOOLEAN: pa.bool_()}
# The types of columns that hold such values already.
COLUMNS_OF: Mapping[Held, tuple[Callable[[pa.DataType], bool], ...]] = {
    Held.INTEGER: (pa.types.is_integer, pa.types.is_boolean),
    Held.FLOAT: (pa.types.is_floating, pa.types.is_integer),
    Held.BOOLEAN: (pa.types.is_boolean,),
    Held.RANK: (pa.types.is_string, pa.types.is_large_string),
}


@dataclass(frozen=True)
class Events:
    """The events of one type: their rows, and the types of their columns."""

    type: str | None
    table: pa.Table
    time: str


@dataclass(frozen=True)
class Shipped:
    """The events that can take part, as rows, and what their columns mean."""

    manifest: Manifest
    table: pa.Table
    digests: Mapping[str, Digests]  # the columns that are computed for the rows of matches only


def ship(
    readers: Sequence[Reader[Search]],
    events: Sequence[Events],
    *,
    named: Iterable[str],
    sources: Sequence[Source] | None = None,
) -> Shipped:
    """One table of the events that can take part, and what its columns mean to each reader.

    `named` are the event types that patterns name; `sources` are given where several searches share rows.
    """
    wanted = set(named)
    schemas = schemas_of({group.type: group.table.schema for group in events if group.type is not None})
    known = names.EventTypes(
        {name: one for name, one in schemas.items() if name in wanted},
        {group.type: group.time for group in events if group.type is not None},
        {name: one for name, one in schemas.items() if name not in wanted},
        numbers_ties=True,
    )
    manifest = manifest_of(readers, known, to_arrow, sources=sources, packs_key=False)
    scanned = _Scan(manifest, events, None)
    digests = {
        name: Digests(content, scanned.groups)
        for name, content in manifest.columns.items()
        if isinstance(content, Digest | TrimmedDigest)
    }
    return Shipped(manifest, scanned.table(without=digests), digests)


def scan(manifest: Manifest, events: Sequence[Events], schema: pa.Schema) -> pa.Table:
    """The rows of a manifest in the columns and types of a schema, NULL where the manifest has none."""
    return completed(_Scan(manifest, events, schema).table(), schema, safe=False)


# --- the events of one type -----------------------------------------------------------------------


class _Group:
    """The events of one type that can take part; a column is filtered when it is asked for."""

    def __init__(self, events: Events, flags: Mapping[int, Mask], kept: Mask) -> None:
        self.type, self.time = events.type, events.time
        self.size = int(np.count_nonzero(kept))
        self.flags = {bit: marked[kept] for bit, marked in flags.items()}  # by bit, which events have it
        self.table, self._kept = events.table, pa.array(kept)
        self.names = dict.fromkeys(events.table.column_names)
        self._columns: dict[str, pa.ChunkedArray] = {}

    def values(self, attribute: str) -> pa.ChunkedArray:
        """An attribute as it is."""
        if attribute not in self._columns:
            column = self.table.column(attribute)
            self._columns[attribute] = column if self.size == len(column) else column.filter(self._kept)
        return self._columns[attribute]

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

    def rows(self, expressions: Sequence[ex.Expression] | None = None) -> Sequence[Row]:
        """The events as Python values: with the attributes that expressions read, or with all."""
        attributes = self.names if expressions is None else _read_by(expressions, self.names)
        return _as_rows({name: self.values(name) for name in attributes}, self.size)

    def value(self, expression: ex.Expression, held: Held) -> pa.Array | None:
        """A value of every event as a kernel holds it; None where Python must compute it."""
        columns = {name: self.values(name) for name in _read_by([expression], self.names)}
        found = column_of(expression, lambda node: columns.get(node.path[0]), self.size)
        wanted = pa.string() if held is Held.RANK else HELD[held]
        if found is None or not any(holds(found.type) for holds in COLUMNS_OF[held]):
            return None
        return found.cast(wanted).combine_chunks()

    def digests(self, content: Digest | TrimmedDigest, rows: Integers) -> Integers:
        """A digest of some events, as `tocsin.engines.spark.match_ids` defines it."""
        if content.types is not None and self.type not in content.types:
            return np.zeros(len(rows), np.int64)
        attributes: Collection[str] = self.names
        if isinstance(content, TrimmedDigest):
            attributes = content.attributes
        elif content.id is not None and content.id in attributes:
            attributes = [content.id]
        kept = content.kept if isinstance(content, TrimmedDigest) else attributes
        places, nothing = pa.array(rows), pa.nulls(len(rows))
        columns = {
            name: self.values(name).take(places).combine_chunks() if name in kept else nothing for name in attributes
        }
        return digests(content.half + 1, [self.type or ""], columns, len(rows))


def _read_by(expressions: Iterable[ex.Expression], names: Collection[str]) -> list[str]:
    """Those of some columns that expressions read."""
    nodes = (node for each in expressions for node in each.walk())
    read = dict.fromkeys(node.path[0] for node in nodes if isinstance(node, ex.Attribute | ex.BagPredicate))
    return [name for name in read if name in names]


def _as_rows(columns: Mapping[str, pa.ChunkedArray], size: int) -> Sequence[Row]:
    return pa.table(columns).to_pylist() if columns else [{}] * size


class Digests:
    """A digest of events, computed for those that are asked for."""

    def __init__(self, content: Digest | TrimmedDigest, groups: Sequence[_Group]) -> None:
        self.content, self.groups = content, groups
        self.begins = np.cumsum([0, *(group.size for group in groups)])
        self.found = np.zeros(self.begins[-1], np.int64)
        self.is_known = np.zeros(self.begins[-1], np.bool_)

    def __getitem__(self, rows: Integers) -> Integers:
        """The digests of some rows of the table."""
        new = np.unique(rows[~self.is_known[rows]])
        parts = np.split(new, np.searchsorted(new, self.begins[1:-1]))
        for group, begin, part in zip(self.groups, self.begins, parts, strict=False):
            if len(part):
                self.found[part] = group.digests(self.content, part - begin)
        self.is_known[new] = True
        return self.found[rows]


# --- all events -----------------------------------------------------------------------------------


class _Scan:
    """Renders a manifest over Arrow tables, type by type."""

    def __init__(self, manifest: Manifest, events: Sequence[Events], schema: pa.Schema | None) -> None:
        self.manifest, self.schema = manifest, schema
        self.sources: dict[str | None, list[Source]] = {}
        for source in manifest.sources:
            for kind in dict.fromkeys(source.types):
                self.sources.setdefault(kind, []).append(source)
        self.groups = [self._candidates(group) for group in events]

    def table(self, without: Collection[str] = ()) -> pa.Table:
        """The columns of the manifest, and the bits."""
        columns = {
            name: self._column(name, content) for name, content in self.manifest.columns.items() if name not in without
        }
        return pa.table({**columns, names.BITS: self._bits()})

    def _candidates(self, events: Events) -> _Group:
        """The events that can take part; every one with a time and a key where all of them count."""
        manifest, table = self.manifest, events.table
        has_time = _mask(table.column(events.time).is_valid())
        is_in_partition = has_time & all(name in table.column_names for name in manifest.partition.attributes)
        for name in manifest.partition.same if is_in_partition.any() else ():
            is_in_partition &= _mask(table.column(name).is_valid())
        flags: dict[int, Mask] = {}
        for source in self.sources.get(events.type, ()):
            passed = _passed(source, table, is_in_partition)
            flags[source.bit] = flags[source.bit] | passed if source.bit in flags else passed
        counts = is_in_partition
        if not manifest.counts_every_event:
            counts = reduce(or_, flags.values(), np.zeros(len(counts), np.bool_))
        elif manifest.crosses_partitions:
            counts = has_time
        return _Group(events, flags, counts)

    def _bits(self) -> pa.Array:
        """The flags of events, and the numbers of their types."""
        packing = self.manifest.packing
        numbers: dict[str | None, int] = {kind: number for number, kind in enumerate(self.manifest.types)}
        bits = []
        for group in self.groups:
            base = names.OWN_COPY | (numbers.get(group.type, 0) << packing.kinds_at if packing.kinds else 0)
            own = np.full(group.size, base, np.int64)
            for bit, marked in () if packing.words else group.flags.items():
                own |= marked.astype(np.int64) << (names.FLAGS_AT + bit)
            bits.append(own)
        return pa.array(np.concatenate(bits))

    def _word(self, number: int) -> pa.Array:
        """Flags that have a column of their own."""
        words = []
        for group in self.groups:
            own = np.zeros(group.size, np.int64)
            for bit, marked in group.flags.items():
                if bit // WORD_BITS == number:
                    own |= marked.astype(np.int64) << (bit % WORD_BITS)
            words.append(own)
        return pa.array(np.concatenate(words))

    def _column(self, name: str, content: names.Content) -> pa.Array:
        match content:
            case names.Attribute():
                return self._typed(name, content.name, content.type, content.types)
            case Value():
                return self._held(content)
            case names.Key():
                found = self._typed(name, content.attribute, content.type)
                return pc.add(found, 0.0) if pa.types.is_floating(found.type) else found  # −0.0 is 0.0
            case names.Time():
                return pa.concat_arrays([group.times() for group in self.groups])
            case Tie():
                if content.type.is_null:
                    return self._numbered([content], is_whole=False)
                return self._typed(name, content.attribute, content.type)
            case names.TypeName():
                return pa.concat_arrays([pa.repeat(pa.scalar(group.type or ""), group.size) for group in self.groups])
            case names.Text():
                return pa.array(
                    [text_of(row, group.time) for group in self.groups for row in group.rows()], pa.string()
                )
            case names.Position():
                return self._numbered(content.ties, is_whole=True)
            case Digest() | TrimmedDigest():
                return pa.array(
                    np.concatenate([group.digests(content, np.arange(group.size)) for group in self.groups])
                )
            case names.Word():
                return self._word(content.number)
            case _:
                assert_never(content)

    def _typed(self, name: str, attribute: str, dtype: DataType, types: frozenset[str] | None = None) -> pa.Array:
        """An attribute of the events of these types in the type of its column."""
        wanted = to_arrow(dtype) if self.schema is None else self.schema.field(name).type
        return pa.concat_arrays(
            [
                group.column(attribute, wanted)
                if types is None or group.type in types
                else pa.nulls(group.size, wanted)
                for group in self.groups
            ]
        )

    def _held(self, content: Value) -> pa.Array:
        """A value as kernels hold it, computed on columns where they are covered for every type."""
        held = content.held
        known = [(group, content.values.get(group.type or "")) for group in self.groups]
        nothing = pa.string() if held is Held.RANK else HELD[held]
        found = [
            pa.nulls(group.size, nothing) if one is None else group.value(one.expression, held) for group, one in known
        ]
        if all(part is not None for part in found):
            return pa.concat_arrays(found)
        values: list[Any] = []
        for group, one in known:
            if one is None:
                values += [None] * group.size
            else:
                values += slot_values(one.expression, group.rows([one.expression]), held)
        return _ranked(values) if held is Held.RANK else pa.array(values, HELD[held])

    def _numbered(self, ties: Sequence[Tie], *, is_whole: bool) -> pa.Array:
        """The number of each event in the order of times and ties, of whole events also of types and texts."""
        places = [
            (
                time,
                as_sorted(row.get(tie.attribute) for tie in ties),
                (group.type or "", as_json(row)) if is_whole else (),
            )
            for group in self.groups
            for time, row in zip(group.times().to_pylist(), group.rows(), strict=True)
        ]
        try:
            numbers = {place: number for number, place in enumerate(sorted(set(places)))}
        except TypeError as problem:
            raise errors.TypeMismatchError(
                f"The tie columns of events at one time cannot be compared: {problem}.",
                hint="`tie=` names columns that have one type in all inputs.",
            ) from None
        return pa.array([numbers[place] for place in places], pa.int64())


def _mask(column: pa.ChunkedArray) -> Mask:
    """Which values are TRUE, as an array that may be written."""
    return np.array(column.fill_null(False).to_numpy(), np.bool_)


def _passed(source: Source, table: pa.Table, candidates: Mask) -> Mask:
    """Which of the candidates make all conditions of a source TRUE; Python computes what columns do not cover."""
    columns = {name: table.column(name) for name in _read_by(source.conditions, table.schema.names)}
    passed, left = candidates.copy(), []
    for condition in source.conditions:
        found = column_of(condition, lambda node: columns.get(node.path[0]), len(passed))
        if found is None:
            left.append(condition)
        else:
            passed &= _mask(found)
    if left:
        holds = [interpret.holds(condition) for condition in left]
        kept = {name: table.column(name).filter(pa.array(passed)) for name in _read_by(left, table.schema.names)}
        rows = _as_rows(kept, int(np.count_nonzero(passed)))
        passed[passed] = [all(each({source.variable: (row,)}) for each in holds) for row in rows]
    return passed


def _ranked(values: list[Any]) -> pa.Array:
    """Values that will be ranked; decimals and integers meet as decimals."""
    if any(isinstance(value, Decimal) for value in values):
        known = [None if value is None else Decimal(value) for value in values]
        scale = max((max(0, -int(value.as_tuple().exponent)) for value in known if value is not None), default=0)
        return pa.array(known, pa.decimal256(76, scale))
    return pa.array(values) if any(value is not None for value in values) else pa.nulls(len(values), pa.string())
