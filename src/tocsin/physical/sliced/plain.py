"""What Spark does before the search, in one process: Arrow tables → one table of the events that can take part.

Conditions on one event and the values that conditions between events use are evaluated row by row in Python: this is
for samples, tests and small files.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa

from tocsin import errors
from tocsin.analysis.attributes import Schema, column_types, types_with
from tocsin.analysis.variable_schemas import variable_schemas
from tocsin.expressions import interpret
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import WORD_BITS, Held, Source
from tocsin.kernels.searches import Search
from tocsin.physical.arrow_types import schemas_of, to_arrow
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.digests import MICROSECOND, digest, micros
from tocsin.physical.sliced.layout import Gathered, Layout, Packing
from tocsin.physical.sliced.needs import Needs
from tocsin.physical.sliced.order import as_sorted, end_of

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


# --- the table of all events ----------------------------------------------------------------------


def shipped(
    kernel: Search,
    events: Sequence[Events],
    needs: Mapping[str, Sequence[str]],
    *,
    ties: Sequence[str],
    id: str | None,
) -> tuple[pa.Table, Layout]:
    """One table of the events that can take part, and what its columns mean."""
    builder = replace(_candidates(kernel, events), ordered_by=tuple(ties))
    layout = Layout(
        _packing(kernel),
        names.TIME,
        builder.keys(),
        tuple(builder.carried(number) for number in range(len(kernel.carried))),
        tuple(builder.gathered(name, wanted) for name, wanted in needs.items()),
        builder.digests(id),
        tuple(builder.tie(name) for name in ties) if kernel.needs_order or kernel.compares_ties else (),
        builder.type_names() if kernel.needs_order else None,
        builder.texts() if kernel.needs_order else None,
        {
            kind: tuple((name, builder.attribute(name, [kind])) for name in wanted)
            for kind, wanted in kernel.wants.items()
        },
        kernel.templates,
        builder.trimmed_digests(),
    )
    return builder.table(), layout


def shipped_together(
    flags: Kernel,
    kernels: Sequence[Kernel],
    events: Sequence[Events],
    needs: Sequence[Needs],
    ids: Sequence[str | None],
    *,
    by_values: bool = False,
) -> tuple[pa.Table, list[Layout]]:
    """One table of the events that can take part in a match of any kernel, and what its columns mean to each.

    `flags` has the sources of all (`tocsin.kernels.shared.flagging`); `ids` are the columns that identify events.
    `by_values` writes keys and texts as Spark does, for rows that are put beside Spark's.
    """
    every = _candidates(flags, events)
    digests = {id: every.digests(id) for id in dict.fromkeys(ids)}
    layouts = []
    for kernel, own, id in zip(kernels, needs, ids, strict=True):
        builder = replace(every, kernel=kernel)
        layouts.append(
            Layout(
                _packing(flags),
                names.TIME,
                builder.key_values() if by_values else builder.keys(),
                tuple(builder.carried(number) for number in range(len(kernel.carried))),
                tuple(builder.gathered(name, wanted) for name, wanted in own.items()),
                digests[id],
                text=builder.order_texts() if by_values and kernel.needs_order else None,
                wants={
                    kind: tuple((name, builder.attribute(name, [kind])) for name in wanted)
                    for kind, wanted in kernel.wants.items()
                },
            )
        )
    return every.table(), layouts


def _candidates(kernel: Search, events: Sequence[Events]) -> _Columns:
    """The events that can take part, with their bits and times."""
    rows = [group.table.to_pylist() for group in events]
    kept = [_kept(kernel, group, own) for group, own in zip(events, rows, strict=True)]
    sources: dict[str | None, list[Source]] = {}
    for source in kernel.sources:
        for kind in dict.fromkeys(source.types):
            sources.setdefault(kind, []).append(source)
    flags = [_flags(kernel, group, own, sources.get(group.type, ())) for group, own in zip(events, rows, strict=True)]
    if not kernel.counts_every_event:
        kept = [[row for row in keep if found[row]] for keep, found in zip(kept, flags, strict=True)]
    picked = [group.table.take(pa.array(keep, pa.int64())) for group, keep in zip(events, kept, strict=True)]
    chosen = [[own[row] for row in keep] for own, keep in zip(rows, kept, strict=True)]
    columns: dict[str, pa.Array] = {
        **_bits(
            kernel,
            [group.type for group in events],
            [[found[row] for row in keep] for found, keep in zip(flags, kept, strict=True)],
        ),
        names.TIME: pa.concat_arrays(
            [Events(group.type, table, group.time).times for group, table in zip(events, picked, strict=True)]
        ),
    }
    return _Columns(kernel, events, picked, chosen, columns)


def _packing(kernel: Search) -> Packing:
    return Packing(len(kernel.sources), max(len(kernel.types) - 1, 1).bit_length())


def _kept(kernel: Search, group: Events, rows: Sequence[Row]) -> list[int]:
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


def _bits(kernel: Search, types: Sequence[str | None], flags: Sequence[Sequence[int]]) -> dict[str, pa.Array]:
    """The columns with the flags of events of each type, and the number of the type."""
    packing = _packing(kernel)
    bits: list[int] = []
    numbers: dict[str | None, int] = {kind: number for number, kind in enumerate(kernel.types)}
    for kind, own in zip(types, flags, strict=True):
        number = numbers.get(kind, 0)
        base = names.OWN_COPY | number << packing.kinds_at
        bits += [base] * len(own) if packing.words else [base | found << names.FLAGS_AT for found in own]
    columns = {names.BITS: pa.array(bits, pa.int64())}
    mask = (1 << WORD_BITS) - 1
    for place, name in enumerate(packing.words):
        columns[name] = pa.array([found >> (place * WORD_BITS) & mask for own in flags for found in own], pa.int64())
    return columns


def _flags(kernel: Search, group: Events, rows: Sequence[Row], sources: Iterable[Source]) -> list[int]:
    """What each event may be bound to, as bits."""
    partition = kernel.query.partition
    has_key = all(name in group.table.column_names for name in partition.attributes)
    tests = [
        (source.variable, 1 << source.bit, [interpret.holds(one) for one in source.conditions])
        for source in sources
        if has_key
    ]
    found = []
    for row in rows:
        bits = 0
        if all(row[name] is not None for name in partition.same if has_key):
            for variable, bit, conditions in tests:
                if all(condition({variable: (row,)}) for condition in conditions):
                    bits |= bit
        found.append(bits)
    return found


@dataclass
class _Columns:
    """Adds columns of all events, type by type."""

    kernel: Search
    events: Sequence[Events]
    tables: Sequence[pa.Table]
    rows: Sequence[Sequence[Row]]
    columns: dict[str, pa.Array]
    ordered_by: tuple[str, ...] = ()
    attributes: dict[tuple[str, pa.DataType], tuple[str, set[str]]] = field(default_factory=dict)
    schemas: dict[str, Schema] = field(default_factory=dict)
    places: dict[str | None, int] = field(default_factory=dict)

    def _add(self, array: pa.Array, name: str | None = None) -> str:
        name = name or names.column(len(self.columns))
        self.columns[name] = array
        return name

    def __post_init__(self) -> None:
        if not self.schemas:  # else it is a copy, for another kernel
            self.schemas = schemas_of({group.type: group.table.schema for group in self.events if group.type})
            self.places = {group.type: place for place, group in enumerate(self.events)}
        self.held = variable_schemas(self.kernel.query.pattern, self.schemas)

    def attribute(self, attribute: str, types: Iterable[str], dtype: pa.DataType | None = None) -> str:
        """A column with an attribute of these types; one column serves all variables that ask for the same."""
        wanted = [name for name in types if name in self.schemas and attribute in self.schemas[name].attributes]
        known_kinds = (self.schemas[name] for name in wanted)
        kind = dtype or to_arrow(column_types(attribute, known_kinds, [attribute])[attribute])
        known = self.attributes.get((attribute, kind))
        if known is None:
            known = self.attributes[attribute, kind] = (self._add(pa.nulls(0)), set())
        known[1].update(wanted)
        return known[0]

    def table(self) -> pa.Table:
        """All columns, once it is known which types of events each of them is for."""
        pairs = list(zip(self.events, self.tables, strict=True))
        for (attribute, kind), (column, types) in self.attributes.items():
            parts = [
                table.column(attribute).combine_chunks().cast(kind, safe=False)
                if group.type in types
                else pa.nulls(len(table), kind)
                for group, table in pairs
            ]
            self.columns[column] = pa.concat_arrays(parts)
        return pa.table(self.columns)

    def gathered(self, variable: str, attributes: Sequence[str]) -> Gathered:
        """The columns of a variable."""
        held = self.held[variable]
        known = column_types(variable, held, (name for name in attributes if name != names.POSITION))
        shape = {name: to_arrow(found) for name, found in known.items()}
        columns: list[str | None] = []
        for name in attributes:
            if name == names.POSITION:
                columns.append(self.positions())
                continue
            types = types_with(held, name)
            columns.append(self.attribute(name, types, shape[name]) if types else None)
        is_iterated = self.kernel.query.variables[variable].iterated
        if not columns:
            return Gathered(variable, (names.TIME,), is_iterated, ("",), (None,))
        own = (shape[name] if column is None else None for name, column in zip(attributes, columns, strict=True))
        return Gathered(variable, tuple(columns), is_iterated, tuple(attributes), tuple(own))

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

    def key_values(self) -> tuple[str, ...]:
        """The partition's attributes themselves."""
        types = [group.type for group in self.events if group.type is not None]
        return tuple(self.attribute(name, types) for name in self.kernel.query.partition.attributes)

    def carried(self, number: int) -> str:
        """A column of the kernel's `carried`."""
        carried = self.kernel.carried[number]
        begins = [0, *accumulate(map(len, self.rows))]
        values: list[Any] = [None] * begins[-1]
        for kind, expression in carried.expressions.items():
            place = self.places.get(kind)
            if place is not None:
                own = slot_values(expression, self.rows[place], carried.held)
                values[begins[place] : begins[place + 1]] = own
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
                found += [digest(salt, [group.type or ""], attributes, row) for row in rows]
        return tuple(self._add(pa.array(found, pa.int64())) for found in both)

    def trimmed_digests(self) -> dict[int, tuple[str, str]]:
        """The same of what PROJECT leaves of them, for each way it does."""
        found: dict[int, tuple[str, str]] = {}
        for number, template in enumerate(self.kernel.templates):
            if template.is_derived:
                continue
            attributes = sorted(template.attributes)
            first, second = (
                self._add(
                    pa.array(
                        [
                            digest(
                                salt,
                                [group.type or ""],
                                attributes,
                                {name: row.get(name) if name in template.kept else None for name in attributes},
                            )
                            for group, rows in zip(self.events, self.rows, strict=True)
                            for row in rows
                        ],
                        pa.int64(),
                    )
                )
                for salt in (1, 2)
            )
            found[number] = (first, second)
        return found

    def tie(self, name: str) -> str:
        """A column that orders events of one instant; numbers stand for values of several types."""
        values = [row.get(name) for rows in self.rows for row in rows]
        try:
            return self._add(pa.array(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            times = self.columns[names.TIME].to_pylist()
            places = [(time, as_sorted([value])) for time, value in zip(times, values, strict=True)]
            return self._add(pa.array(_numbered(places), pa.int64()))

    def type_names(self) -> str:
        """The names of the types."""
        found = [group.type or "" for group, rows in zip(self.events, self.rows, strict=True) for _ in rows]
        return self._add(pa.array(found, pa.string()), names.TYPE)

    def texts(self) -> str:
        """The events as canonical text (R16)."""
        found = [_json(row) for rows in self.rows for row in rows]
        return self._add(pa.array(found, pa.string()), names.TEXT)

    def positions(self) -> str:
        """Where events stand among all others."""
        if names.POSITION not in self.columns:
            times = self.columns[names.TIME].to_pylist()
            every = [
                (group.type or "", row) for group, rows in zip(self.events, self.rows, strict=True) for row in rows
            ]
            places = [
                (time, as_sorted(row.get(name) for name in self.ordered_by), kind, _json(row))
                for time, (kind, row) in zip(times, every, strict=True)
            ]
            self._add(pa.array(_numbered(places), pa.int64()), names.POSITION)
        return names.POSITION

    def order_texts(self) -> str:
        """The same as `tocsin.physical.sliced.text` writes it: the values by name, without names and time."""
        found = [
            ",".join(_json(row[name]) for name in sorted(row) if name != group.time)
            + end_of((name for name in row if name != group.time), group.time)
            for group, rows in zip(self.events, self.rows, strict=True)
            for row in rows
        ]
        return self._add(pa.array(found, pa.string()))


def _numbered(places: list[Any]) -> list[int]:
    """The number of each place in their order, the same for equal ones."""
    try:
        numbers = {place: number for number, place in enumerate(sorted(set(places)))}
    except TypeError as problem:
        raise errors.TypeMismatchError(
            f"The tie columns of events at one time cannot be compared: {problem}.",
            hint="`tie=` names columns that have one type in all inputs.",
        ) from None
    return [numbers[place] for place in places]


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_as_json)


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


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime():
            return micros(value)
        case dt.timedelta():
            return value // MICROSECOND
        case bytes():
            return value.hex()
        case _:
            return str(value)
