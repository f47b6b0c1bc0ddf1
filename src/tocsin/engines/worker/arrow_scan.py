"""Arrow tables → one table with the rows of a manifest, in this process.

Conditions on one event and the values that conditions between events use are evaluated row by row in Python: this is
for samples, tests, small files, and the events that rules emit on streams.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.analysis.types import DataType
from tocsin.engines.worker.arrow_types import completed, schemas_of, to_arrow
from tocsin.engines.worker.digests import digests
from tocsin.expressions import interpret
from tocsin.expressions.objects import microseconds
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.model import WORD_BITS, Held, Integers, Source
from tocsin.kernels.reach import Search
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Digest, Manifest, Reader, Tie, TrimmedDigest, Value

Row = Mapping[str, Any]
HELD = {Held.INTEGER: pa.int64(), Held.FLOAT: pa.float64(), Held.BOOLEAN: pa.bool_()}


@dataclass(frozen=True)
class Events:
    """The events of one type: their rows, and the types of their columns."""

    type: str | None
    table: pa.Table
    time: str


def ship(
    readers: Sequence[Reader[Search]],
    events: Sequence[Events],
    *,
    named: Iterable[str],
    sources: Sequence[Source] | None = None,
) -> tuple[Manifest, pa.Table]:
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
    return manifest, scan(manifest, events)


def scan(manifest: Manifest, events: Sequence[Events], schema: pa.Schema | None = None) -> pa.Table:
    """The rows of a manifest; with a `schema`, in its columns and types, NULL where the manifest has none."""
    return _Scan(manifest, events, schema).table()


@dataclass(frozen=True)
class _Group:
    """The events of one type that can take part: as columns, as rows, and their flags."""

    type: str | None
    time: str
    columns: Mapping[str, pa.ChunkedArray]  # of a table they would be listed anew for each column
    rows: Sequence[Row]
    flags: Sequence[int]

    def column(self, attribute: str, dtype: pa.DataType) -> pa.Array:
        """An attribute in a type, times as integers in microseconds; NULL where there is none."""
        if attribute not in self.columns or not self.rows:  # a type that nobody reads may be any
            return pa.nulls(len(self.rows), dtype)
        column = self.columns[attribute].combine_chunks()
        if pa.types.is_date(column.type) and pa.types.is_integer(dtype):
            column = column.cast(pa.timestamp("us"))
        return column if column.type == dtype else column.cast(dtype, safe=False)

    def times(self) -> pa.Array:
        """The times in microseconds."""
        return self.column(self.time, pa.int64())

    def digests(self, content: Digest | TrimmedDigest) -> Integers:
        """A digest of every event, as `tocsin.engines.spark.match_ids` defines it."""
        size = len(self.rows)
        if content.types is not None and self.type not in content.types:
            return np.zeros(size, np.int64)
        attributes: Sequence[str] = list(self.columns)
        if isinstance(content, TrimmedDigest):
            attributes = content.attributes
        elif content.id is not None and content.id in attributes:
            attributes = [content.id]
        kept = content.kept if isinstance(content, TrimmedDigest) else attributes
        nothing = [None] * size
        columns = {name: [row.get(name) for row in self.rows] if name in kept else nothing for name in attributes}
        return digests(content.half + 1, [self.type or ""], columns, size)


class _Scan:
    """Renders a manifest over Arrow tables, type by type."""

    def __init__(self, manifest: Manifest, events: Sequence[Events], schema: pa.Schema | None) -> None:
        self.manifest, self.schema = manifest, schema
        self.sources: dict[str | None, list[Source]] = {}
        for source in manifest.sources:
            for kind in dict.fromkeys(source.types):
                self.sources.setdefault(kind, []).append(source)
        self.groups = [self._candidates(group) for group in events]

    def table(self) -> pa.Table:
        """The columns of the manifest, and the bits."""
        columns = {name: self._column(name, content) for name, content in self.manifest.columns.items()}
        table = pa.table({**columns, names.BITS: pa.array(self._bits(), pa.int64())})
        return table if self.schema is None else completed(table, self.schema, safe=False)

    def _candidates(self, events: Events) -> _Group:
        """The events that can take part; every one with a time and a key where all of them count."""
        manifest, table = self.manifest, events.table
        has_key = all(name in table.column_names for name in manifest.partition.attributes)
        tests = [
            (source.variable, 1 << source.bit, [interpret.holds(one) for one in source.conditions])
            for source in self.sources.get(events.type, ())
        ]
        kept, rows, flags = [], [], []
        for number, row in enumerate(table.to_pylist()):
            is_in_partition = has_key and all(row[name] is not None for name in manifest.partition.same)
            bits = 0
            for variable, bit, conditions in tests if is_in_partition else ():
                if all(condition({variable: (row,)}) for condition in conditions):
                    bits |= bit
            counts = (manifest.crosses_partitions or is_in_partition) and (manifest.counts_every_event or bits)
            if counts and row[events.time] is not None:
                kept.append(number)
                rows.append(row)
                flags.append(bits)
        taken = table.take(pa.array(kept, pa.int64()))
        columns = dict(zip(taken.column_names, taken.columns, strict=True))
        return _Group(events.type, events.time, columns, rows, flags)

    def _bits(self) -> list[int]:
        """The flags of events, and the numbers of their types."""
        packing = self.manifest.packing
        numbers: dict[str | None, int] = {kind: number for number, kind in enumerate(self.manifest.types)}
        bits: list[int] = []
        for group in self.groups:
            base = names.OWN_COPY
            if packing.kinds:
                base |= numbers.get(group.type, 0) << packing.kinds_at
            bits += [base if packing.words else base | found << names.FLAGS_AT for found in group.flags]
        return bits

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
                return pa.array([group.type or "" for group in self.groups for _ in group.rows], pa.string())
            case names.Text():
                return pa.array([_text(row, group.time) for group in self.groups for row in group.rows], pa.string())
            case names.Position():
                return self._numbered(content.ties, is_whole=True)
            case Digest() | TrimmedDigest():
                return pa.concat_arrays([pa.array(group.digests(content)) for group in self.groups])
            case names.Word():
                at, mask = content.number * WORD_BITS, (1 << WORD_BITS) - 1
                return pa.array([found >> at & mask for group in self.groups for found in group.flags], pa.int64())
            case _:
                assert_never(content)

    def _typed(self, name: str, attribute: str, dtype: DataType, types: frozenset[str] | None = None) -> pa.Array:
        """An attribute of the events of these types in the type of its column."""
        wanted = to_arrow(dtype) if self.schema is None else self.schema.field(name).type
        return pa.concat_arrays(
            [
                group.column(attribute, wanted)
                if types is None or group.type in types
                else pa.nulls(len(group.rows), wanted)
                for group in self.groups
            ]
        )

    def _held(self, content: Value) -> pa.Array:
        values: list[Any] = []
        for group in self.groups:
            one = content.values.get(group.type or "")
            own = [None] * len(group.rows) if one is None else slot_values(one.expression, group.rows, content.held)
            values += own
        return _ranked(values) if content.held is Held.RANK else pa.array(values, HELD[content.held])

    def _numbered(self, ties: Sequence[Tie], *, is_whole: bool) -> pa.Array:
        """The number of each event in the order of times and ties, of whole events also of types and texts."""
        places = [
            (
                time,
                as_sorted(row.get(tie.attribute) for tie in ties),
                (group.type or "", _json(row)) if is_whole else (),
            )
            for group in self.groups
            for time, row in zip(group.times().to_pylist(), group.rows, strict=True)
        ]
        try:
            numbers = {place: number for number, place in enumerate(sorted(set(places)))}
        except TypeError as problem:
            raise errors.TypeMismatchError(
                f"The tie columns of events at one time cannot be compared: {problem}.",
                hint="`tie=` names columns that have one type in all inputs.",
            ) from None
        return pa.array([numbers[place] for place in places], pa.int64())


def _text(row: Row, time: str) -> str:
    """An event as text: its values by name, without names and time, as `tocsin.engines.spark.match_ids` has it."""
    others = [name for name in sorted(row) if name != time]
    return ",".join(_json(row[name]) for name in others) + end_of(others, time)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_as_json)


def _ranked(values: list[Any]) -> pa.Array:
    """Values that will be ranked; decimals and integers meet as decimals."""
    if any(isinstance(value, Decimal) for value in values):
        known = [None if value is None else Decimal(value) for value in values]
        scale = max((max(0, -int(value.as_tuple().exponent)) for value in known if value is not None), default=0)
        return pa.array(known, pa.decimal256(76, scale))
    return pa.array(values) if any(value is not None for value in values) else pa.nulls(len(values), pa.string())


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime() | dt.timedelta():
            return microseconds(value)
        case bytes():
            return value.hex()
        case _:
            return str(value)


# --- the order of events (R16), as Spark has it ---------------------------------------------------


def as_sorted(values: Iterable[Any]) -> tuple[Any, ...]:
    """Order lists of values as Spark sorts them: NULL first and NaN last.

    >>> sorted([(float("nan"),), (2.0,), (None,)], key=as_sorted)
    [(None,), (2.0,), (nan,)]
    """
    return tuple((0,) if value is None else (2,) if _is_nan(value) else (1, value) for value in values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def place_of(position: Mapping[str, Any] | int) -> Any:
    """Order positions: structs of Spark, or numbers where one process has all events."""
    return position if isinstance(position, int) else as_sorted(position.values())


def end_of(names: Iterable[str], time: str) -> str:
    """The character behind the last value of an event's text without its time.

    `1}` is greater than `10}`; where the time would come after the value, it is less.

    >>> end_of(["k", "x"], "ts"), end_of(["k", "n"], "ts")
    ('}', ',')
    """
    return "," if time > max(names, default=time) else "}"
