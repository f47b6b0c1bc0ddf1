"""What Spark does before the search, in one process: Arrow tables → one table of the events that can take part.

Conditions on one event and the values that conditions between events use are evaluated row by row in Python: this is
for samples, tests and small files.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tocsin import errors
from tocsin.analysis import types
from tocsin.analysis.types import DataType
from tocsin.kernels import hashes
from tocsin.kernels.expressions import interpret
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Held
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.layout import Gathered, Layout, Packing

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Events:
    """The events of one type: their rows, and the types of their columns."""

    type: str | None
    table: pa.Table
    time: str

    @property
    def times(self) -> pa.Array:
        """Their times in microseconds."""
        column = self.table.column(self.time).combine_chunks()
        return column.cast(pa.int64())


def attributes_of(schema: pa.Schema) -> dict[str, DataType]:
    """The attributes of an event type, in the terms of the analysis.

    Examples
    --------
    >>> attributes_of(pa.schema({"ts": pa.timestamp("us"), "x": pa.int32()}))["x"].kind.value
    'an integer'
    """
    return {field.name: type_of(field.type) for field in schema}


def type_of(dtype: pa.DataType) -> DataType:
    """A type."""
    is_a = pa.types
    if is_a.is_dictionary(dtype):
        return type_of(dtype.value_type)
    if is_a.is_struct(dtype):
        return types.struct_of((field.name, type_of(field.type)) for field in dtype.fields)
    if is_a.is_list(dtype) or is_a.is_large_list(dtype):
        return types.array_of(type_of(dtype.value_type))
    simple = [
        (is_a.is_boolean, types.BOOLEAN),
        (is_a.is_integer, types.INTEGER),
        (is_a.is_floating, types.DOUBLE),
        (is_a.is_decimal, types.DECIMAL),
        (is_a.is_string, types.STRING),
        (is_a.is_large_string, types.STRING),
        (is_a.is_timestamp, types.TIMESTAMP),
        (is_a.is_date, types.DATE),
        (is_a.is_duration, types.INTERVAL),
        (is_a.is_binary, types.BINARY),
        (is_a.is_large_binary, types.BINARY),
        (is_a.is_null, types.NULL),
    ]
    for test, found in simple:
        if test(dtype):
            return found
    return DataType(types.Kind.OTHER, text=str(dtype), width_bytes=64)


def normal(table: pa.Table) -> pa.Table:
    """A table whose time stamps count microseconds and whose dictionaries are values."""
    fields = []
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_timestamp(kind) and kind.unit != "us":
            kind = pa.timestamp("us", kind.tz)
        if pa.types.is_duration(kind) and kind.unit != "us":
            kind = pa.duration("us")
        fields.append(pa.field(field.name, kind))
    return table.cast(pa.schema(fields))


def common_type(found: Iterable[pa.DataType]) -> pa.DataType:
    """A type for the same attribute of several event types."""
    kinds = list(dict.fromkeys(kind for kind in found if not pa.types.is_null(kind)))
    if len(kinds) < 2:
        return kinds[0] if kinds else pa.null()
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in kinds):
        return pa.float64()
    raise errors.TypeMismatchError(
        f"Two event types of one variable have an attribute of the same name that is {kinds[0]} in one and "
        f"{kinds[1]} in the other.",
        hint="convert one of them, or use two variables.",
    )


# --- the table of all events ----------------------------------------------------------------------


def shipped(
    kernel: Kernel, events: Sequence[Events], needs: Mapping[str, Sequence[str]], *, ties: Sequence[str], id: str | None
) -> tuple[pa.Table, Layout]:
    """One table of the events that can take part, and what its columns mean."""
    rows = [group.table.to_pylist() for group in events]
    kept = [_kept(kernel, group, own) for group, own in zip(events, rows, strict=True)]
    bits = [_bits(kernel, group, own) for group, own in zip(events, rows, strict=True)]
    if not kernel.counts_every_event:
        kept = [
            [row for row in keep if found[row] >> names.FLAGS_AT & ((1 << len(kernel.sources)) - 1)]
            for keep, found in zip(kept, bits, strict=True)
        ]
    picked = [group.table.take(pa.array(keep, pa.int64())) for group, keep in zip(events, kept, strict=True)]
    chosen = [[own[row] for row in keep] for own, keep in zip(rows, kept, strict=True)]
    columns: dict[str, pa.Array] = {
        names.BITS: pa.array([found[row] for found, keep in zip(bits, kept, strict=True) for row in keep], pa.int64()),
        names.TIME: pa.concat_arrays(
            [Events(group.type, table, group.time).times for group, table in zip(events, picked, strict=True)]
        ),
    }
    builder = _Columns(kernel, events, picked, chosen, columns)
    layout = Layout(
        _packing(kernel),
        names.TIME,
        builder.keys(),
        tuple(builder.carried(number) for number in range(len(kernel.carried))),
        tuple(builder.gathered(name, wanted) for name, wanted in needs.items()),
        builder.digests(id),
        tuple(builder.tie(name) for name in ties) if kernel.needs_order else (),
        builder.type_names() if kernel.needs_order else None,
        builder.texts() if kernel.needs_order else None,
        {
            kind: tuple((name, builder.attribute(name, [kind])) for name in wanted)
            for kind, wanted in kernel.wants.items()
        },
    )
    return pa.table(columns), layout


def _packing(kernel: Kernel) -> Packing:
    return Packing(len(kernel.sources), max(len(kernel.types) - 1, 1).bit_length())


def _kept(kernel: Kernel, group: Events, rows: Sequence[Row]) -> list[int]:
    """The rows with a time and, unless positions count over all partitions, with a partition."""
    partition = kernel.query.partition
    if kernel.crosses_partitions:
        return [number for number, row in enumerate(rows) if row[group.time] is not None]
    if any(name not in group.table.column_names for name in partition.attributes):
        return []
    return [
        number
        for number, row in enumerate(rows)
        if row[group.time] is not None and all(row[name] is not None for name in partition.same)
    ]


def _bits(kernel: Kernel, group: Events, rows: Sequence[Row]) -> list[int]:
    partition = kernel.query.partition
    has_key = all(name in group.table.column_names for name in partition.attributes)
    number = kernel.types.index(group.type) if group.type in kernel.types else 0
    base = names.OWN_COPY | number << _packing(kernel).kinds_at
    tests = [
        (source.variable, 1 << (names.FLAGS_AT + source.bit), [interpret.holds(one) for one in source.conditions])
        for source in kernel.sources
        if group.type in source.types and has_key
    ]
    found = []
    for row in rows:
        bits = base
        if all(row[name] is not None for name in partition.same if has_key):
            for variable, bit, conditions in tests:
                if all(condition({variable: (row,)}) for condition in conditions):
                    bits |= bit
        found.append(bits)
    return found


@dataclass
class _Columns:
    """Adds columns of all events, type by type."""

    kernel: Kernel
    events: Sequence[Events]
    tables: Sequence[pa.Table]
    rows: Sequence[Sequence[Row]]
    columns: dict[str, pa.Array]

    def _add(self, array: pa.Array, name: str | None = None) -> str:
        name = name or names.column(len(self.columns))
        self.columns[name] = array
        return name

    def attribute(self, attribute: str, types: Iterable[str]) -> str:
        """A column with an attribute of these types, NULL elsewhere."""
        wanted = frozenset(types)
        pairs = list(zip(self.events, self.tables, strict=True))
        has_it = [group.type in wanted and attribute in table.column_names for group, table in pairs]
        kind = common_type(
            table.schema.field(attribute).type for (_, table), has in zip(pairs, has_it, strict=True) if has
        )
        parts = [
            table.column(attribute).combine_chunks().cast(kind, safe=False) if has else pa.nulls(len(table), kind)
            for (_, table), has in zip(pairs, has_it, strict=True)
        ]
        return self._add(pa.concat_arrays(parts))

    def gathered(self, variable: str, attributes: Sequence[str]) -> Gathered:
        """The columns of a variable."""
        kind = self.kernel.query.variables[variable]
        types = [name for name in kind.types if name is not None]
        columns = tuple(self.attribute(name, types) for name in attributes) or (names.TIME,)
        return Gathered(variable, columns, kind.iterated)

    def keys(self) -> tuple[str, ...]:
        """A number per partition: two keys are equal as Python's values are, NaN included."""
        attributes = self.kernel.query.partition.attributes
        if not attributes:
            return ()
        known: dict[tuple[Any, ...], int] = {}
        found = [
            known.setdefault(tuple(_group_key(row.get(name)) for name in attributes), len(known))
            for rows in self.rows
            for row in rows
        ]
        return (self._add(pa.array(found, pa.int64())),)

    def carried(self, number: int) -> str:
        """A column of the kernel's `carried`."""
        carried = self.kernel.carried[number]
        values: list[Any] = []
        for group, rows in zip(self.events, self.rows, strict=True):
            expression = carried.expressions.get(group.type or "")
            if expression is None:
                values += [None] * len(rows)
            else:
                values += interpret.slot_values(expression, rows, carried.held)
        kinds = {Held.INTEGER: pa.int64(), Held.FLOAT: pa.float64(), Held.BOOLEAN: pa.bool_()}
        if carried.held is not Held.RANK:
            return self._add(pa.array(values, kinds[carried.held]))
        return self._add(_ranked(values))

    def digests(self, id: str | None) -> tuple[str, ...]:
        """The two digests of every event, as `tocsin.physical.identity` defines them."""
        both: list[list[int]] = [[], []]
        for group, table, rows in zip(self.events, self.tables, self.rows, strict=True):
            attributes = sorted(table.column_names) if id is None or id not in table.column_names else [id]
            for salt, found in enumerate(both, start=1):
                found += [_digest(salt, [group.type or ""], attributes, row) for row in rows]
        return tuple(self._add(pa.array(found, pa.int64())) for found in both)

    def tie(self, name: str) -> str:
        """A column that orders events of one instant."""
        return self._add(pa.array([row.get(name) for rows in self.rows for row in rows]))

    def type_names(self) -> str:
        """The names of the types."""
        found = [group.type or "" for group, rows in zip(self.events, self.rows, strict=True) for _ in rows]
        return self._add(pa.array(found, pa.string()), names.TYPE)

    def texts(self) -> str:
        """The events as canonical text (R16)."""
        found = [
            json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_as_json)
            for rows in self.rows
            for row in rows
        ]
        return self._add(pa.array(found, pa.string()), names.TEXT)


def _ranked(values: list[Any]) -> pa.Array:
    """Values that will be ranked; decimals and integers meet as decimals."""
    if any(isinstance(value, Decimal) for value in values):
        known = [None if value is None else Decimal(value) for value in values]
        scale = max((max(0, -int(value.as_tuple().exponent)) for value in known if value is not None), default=0)
        return pa.array(known, pa.decimal256(76, scale))
    return pa.array(values) if any(value is not None for value in values) else pa.nulls(len(values), pa.string())


def _group_key(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return ("NaN",)
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (isinstance(value, bool), value)


def _micros(value: dt.datetime) -> int:
    return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - EPOCH) // MICROSECOND


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime():
            return _micros(value)
        case dt.timedelta():
            return value // MICROSECOND
        case bytes():
            return value.hex()
    return str(value)


# --- digests --------------------------------------------------------------------------------------


def _digest(salt: int, prefix: list[str], attributes: Sequence[str], row: Row) -> int:
    listed = json.dumps([*prefix, *attributes], ensure_ascii=False, separators=(",", ":"))
    values = [row[name] for name in attributes]
    nulls = [
        sum(1 << place for place, value in enumerate(values[begin : begin + 63]) if value is None)
        for begin in range(0, len(values), 63)
    ]
    written = [_written(value, salt) for value in values if value is not None]
    found = hashes.constant(salt, listed, *nulls, *written)
    return found - (1 << 64) if found >> 63 else found


def _written(value: Any, salt: int) -> int | str:
    match value:
        case bool() | int():
            return int(value)
        case float():
            (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
            return int(bits)
        case dt.datetime():
            return _micros(value)
        case dt.timedelta():
            return value // MICROSECOND
        case bytes():
            return value.hex().upper()
        case Mapping():
            return _digest(salt, [], sorted(value), value)
        case list():
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_in_list)
    return str(value)


def _in_list(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        return str(value)
    if value.tzinfo is None:
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}"
    return f"{value.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
