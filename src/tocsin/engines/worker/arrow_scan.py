"""Arrow tables → one table with the rows of a manifest, in this process.

Input    the events of every type as Arrow tables; a manifest, or the readers of one
Output   the rows of the manifest; digests of events are computed when matches ask for them

Values that conditions between events use are computed on columns where `vectors` covers them, and otherwise row by row
in Python. Only columns that something reads are touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.analysis.types import DataType
from tocsin.engines.worker.arrays import of_numbers, of_values
from tocsin.engines.worker.arrow_types import completed, schemas_of, to_arrow
from tocsin.engines.worker.event_order import as_json, as_sorted, text_of
from tocsin.engines.worker.event_tables import Candidates, Events, candidates
from tocsin.engines.worker.rows import codes, integers, plus_zero, ranks, ranks_with_nulls
from tocsin.kernels.conditions import anonymous
from tocsin.kernels.expressions.slots import slot_values
from tocsin.kernels.hashes import rows_alike
from tocsin.kernels.model import WORD_BITS, Held, Integers, Source, differs
from tocsin.kernels.reach import Search
from tocsin.language import expressions as ex
from tocsin.plan import manifest as names
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Digest, Manifest, Reader, Tie, TrimmedDigest, Value

FAR = 16  # rows apart, on average: then they are sorted, and not marked
HELD = {Held.INTEGER: pa.int64(), Held.FLOAT: pa.float64(), Held.BOOLEAN: pa.bool_()}
# The types of columns that hold such values already.
COLUMNS_OF: Mapping[Held, tuple[Callable[[pa.DataType], bool], ...]] = {
    Held.INTEGER: (pa.types.is_integer, pa.types.is_boolean),
    Held.FLOAT: (pa.types.is_floating, pa.types.is_integer),
    Held.BOOLEAN: (pa.types.is_boolean,),
    Held.RANK: (pa.types.is_string, pa.types.is_large_string),
}


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
    scanned = _Scan(manifest, candidates(events, manifest), None)
    digests = {
        name: Digests(content, scanned.groups)
        for name, content in manifest.columns.items()
        if isinstance(content, Digest | TrimmedDigest)
    }
    return Shipped(manifest, scanned.table(without=digests), digests)


def scan(manifest: Manifest, events: Sequence[Events], schema: pa.Schema) -> pa.Table:
    """The rows of a manifest in the columns and types of a schema, NULL where the manifest has none."""
    return completed(_Scan(manifest, candidates(events, manifest), schema).table(), schema, safe=False)


class Digests:
    """A digest of events, computed for those that are asked for."""

    def __init__(self, content: Digest | TrimmedDigest, groups: Sequence[Candidates]) -> None:
        self.content, self.groups = content, groups
        self.begins = np.cumsum([0, *(group.size for group in groups)])
        self.found = np.zeros(self.begins[-1], np.int64)
        self.is_known = np.zeros(self.begins[-1], np.bool_)

    def __getitem__(self, rows: Integers) -> Integers:
        """The digests of some rows of the table."""
        new = _distinct(rows[~self.is_known[rows]])
        owners = np.searchsorted(self.begins, new, side="right") - 1
        for number, part in zip(owners[differs(owners)].tolist(), _runs(new, owners), strict=True):
            self.found[part] = self.groups[number].digests(self.content, part - self.begins[number])
        self.is_known[new] = True
        return self.found[rows]


def _runs(values: Integers, of: Integers) -> list[Integers]:
    """Values in parts for which `of` is the same."""
    return np.split(values, np.flatnonzero(differs(of))[1:]) if len(of) else []


def _distinct(rows: Integers) -> Integers:
    """Different rows in their order; those of a portion of matches are mostly near each other."""
    if not len(rows) or (span := int(rows.max()) - (low := int(rows.min())) + 1) > FAR * len(rows):
        return np.unique(rows)
    marked = np.zeros(span, np.bool_)
    marked[rows - low] = True
    return np.flatnonzero(marked) + low


class _Scan:
    """Renders a manifest over the candidates of each table."""

    def __init__(self, manifest: Manifest, groups: Sequence[Candidates], schema: pa.Schema | None) -> None:
        self.manifest, self.groups, self.schema = manifest, groups, schema

    def table(self, without: Collection[str] = ()) -> pa.Table:
        """The columns of the manifest, and the bits."""
        columns = {
            name: self._column(name, content) for name, content in self.manifest.columns.items() if name not in without
        }
        return pa.table({**columns, names.BITS: self._joined(self._bits)})

    def _joined(self, of: Callable[[Candidates], Integers]) -> pa.Array:
        return of_numbers(np.concatenate([of(group) for group in self.groups]))

    def _bits(self, group: Candidates) -> Integers:
        """The flags of events, and the numbers of their types."""
        packing = self.manifest.packing
        found = np.full(group.size, names.OWN_COPY, np.int64)
        if packing.kinds:
            numbers = {kind: number for number, kind in enumerate(self.manifest.types)}
            of_types = np.array([numbers.get(name, 0) for name in group.types], np.int64)
            found |= of_types[group.kinds] << packing.kinds_at
        for bit, marked in () if packing.words else group.flags.items():
            found |= marked.astype(np.int64) << (names.FLAGS_AT + bit)
        return found

    def _word(self, group: Candidates, number: int) -> Integers:
        """Flags that have a column of their own."""
        found = np.zeros(group.size, np.int64)
        for bit, marked in group.flags.items():
            if bit // WORD_BITS == number:
                found |= marked.astype(np.int64) << (bit % WORD_BITS)
        return found

    def _column(self, name: str, content: names.Content) -> pa.Array:
        match content:
            case names.Attribute():
                return self._typed(content.name, content.type, name, content.types)
            case Value():
                return self._held(content)
            case names.Key():
                return plus_zero(self._typed(content.attribute, content.type, name))
            case names.Time():
                return pa.concat_arrays([group.times() for group in self.groups])
            case Tie():
                if content.type.is_null:
                    return self._numbered([content], is_whole=False)
                return self._typed(content.attribute, content.type, name)
            case names.TypeName():
                return pa.concat_arrays([group.type_names() for group in self.groups])
            case names.Text():
                return self._texts()
            case names.Position():
                return self._positions(content.ties)
            case Digest() | TrimmedDigest():
                return self._joined(lambda group: group.digests(content, np.arange(group.size)))
            case names.Word():
                return self._joined(lambda group: self._word(group, content.number))
            case _:
                assert_never(content)

    def _typed(
        self, attribute: str, dtype: DataType, name: str | None = None, types: frozenset[str] | None = None
    ) -> pa.Array:
        """An attribute of the events of these types, in the type of the column of this name; others hold anything."""
        wanted = to_arrow(dtype) if self.schema is None or name is None else self.schema.field(name).type
        has_it = [types is None or not types.isdisjoint(group.types) for group in self.groups]
        return pa.concat_arrays(
            [
                group.column(attribute, wanted) if has else pa.nulls(group.size, wanted)
                for group, has in zip(self.groups, has_it, strict=True)
            ]
        )

    def _held(self, content: Value) -> pa.Array:
        """A value as kernels hold it, computed on columns where they are covered for every type."""
        held = content.held
        found = [_value(group, content) for group in self.groups]
        if all(part is not None for part in found):
            return pa.concat_arrays(found)
        values = [value for group in self.groups for value in _values(group, content)]
        return _ranked(values) if held is Held.RANK else of_values(values, HELD[held])

    def _texts(self) -> pa.Array:
        """Events as texts: where all of them are here, of those that nothing else may order."""
        alike = np.arange(sum(group.size for group in self.groups))
        if self.schema is None:
            keys = [content for content in self.manifest.columns.values() if isinstance(content, names.Key)]
            arrays = [self._typed(key.attribute, key.type) for key in keys]
            times = integers(pa.concat_arrays([group.times() for group in self.groups]))
            alike = rows_alike([times, codes(arrays)] if arrays and not self.manifest.crosses_partitions else [times])
        texts = []
        for group, _, part in self._by_group(alike):
            own = np.full(group.size, -1)
            own[part] = np.arange(len(part))
            found = of_values([text_of(row, group.time) for row in group.rows(part)], pa.string())
            texts.append(found.take(of_numbers(own, own < 0)))
        return pa.concat_arrays(texts)

    def _positions(self, ties: Sequence[Tie]) -> pa.Array:
        """The number of each event in the order of times, ties, types and texts."""
        if any(tie.type.is_null for tie in ties):
            return self._numbered(ties, is_whole=True)
        kinds = pa.concat_arrays([group.type_names() for group in self.groups])
        keys = [integers(pa.concat_arrays([group.times() for group in self.groups]))]
        keys += [ranks_with_nulls(self._typed(tie.attribute, tie.type)) for tie in ties]
        keys += ranks([kinds])
        alike = rows_alike(keys)
        texts = dict[str, list[int]]()
        for group, begin, part in self._by_group(alike):
            for place, row in zip((part + begin).tolist(), group.rows(part), strict=True):
                texts.setdefault(as_json(row), []).append(place)
        by_text = np.zeros(len(keys[0]), np.int64)
        for number, text in enumerate(sorted(texts)):
            by_text[texts[text]] = number
        keys.append(by_text)
        order = np.lexsort(keys[::-1])
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.cumsum(differs(*(key[order] for key in keys))) - 1
        return of_numbers(numbers)

    def _by_group(self, rows: Integers) -> Iterator[tuple[Candidates, int, Integers]]:
        """Some rows of the table by group, with where the group begins: its rows count from there."""
        begins = np.cumsum([0, *(group.size for group in self.groups)])
        parts = np.split(rows, np.searchsorted(rows, begins[1:-1]))
        for group, begin, part in zip(self.groups, begins[:-1].tolist(), parts, strict=True):
            yield group, begin, part - begin

    def _numbered(self, ties: Sequence[Tie], *, is_whole: bool) -> pa.Array:
        """The number of each event where ties are of several types, of which only those that meet are compared."""
        places = [
            (
                time,
                as_sorted(row.get(tie.attribute) for tie in ties),
                (kind, as_json(row)) if is_whole else (),
            )
            for group in self.groups
            for time, kind, row in zip(
                group.times().to_pylist(),
                group.type_names().to_pylist(),
                group.rows(np.arange(group.size)),
                strict=True,
            )
        ]
        try:
            numbers = {place: number for number, place in enumerate(sorted(set(places)))}
        except TypeError as problem:
            raise errors.TypeMismatchError(
                f"The tie columns of events at one time cannot be compared: {problem}.",
                hint="`tie=` names columns that have one type in all inputs.",
            ) from None
        return of_values([numbers[place] for place in places], pa.int64())


def _value(group: Candidates, content: Value) -> pa.Array | None:
    """A value of every event; None where Python must compute it."""
    wanted = pa.string() if content.held is Held.RANK else HELD[content.held]
    expressions = {kind: content.values[kind].expression for kind in group.types if kind in content.values}
    found: dict[ex.Expression, pa.ChunkedArray] = {}
    for expression in map(anonymous, expressions.values()):
        column = found[expression] if expression in found else group.value(expression)
        if column is None or not any(holds(column.type) for holds in COLUMNS_OF[content.held]):
            return None
        found[expression] = column
    columns = [column.cast(wanted).combine_chunks() for column in found.values()]
    if len(columns) < 2:
        return columns[0] if columns else pa.nulls(group.size, wanted)
    value = pa.nulls(group.size, wanted)
    for kind, expression in expressions.items():
        column = columns[list(found).index(anonymous(expression))]
        value = pc.if_else(of_numbers(group.of_type(kind)), column, value)
    return value


def _values(group: Candidates, content: Value) -> list[Any]:
    """A value of every event, computed in Python."""
    values: list[Any] = [None] * group.size
    for kind in group.types:
        if kind in content.values:
            expression, places = content.values[kind].expression, np.flatnonzero(group.of_type(kind))
            found = slot_values(expression, group.rows_read_by(expression, places), content.held)
            for place, value in zip(places.tolist(), found, strict=True):
                values[place] = value
    return values


def _ranked(values: list[Any]) -> pa.Array:
    """Values that will be ranked; decimals and integers meet as decimals."""
    if any(isinstance(value, Decimal) for value in values):
        known = [None if value is None else Decimal(value) for value in values]
        scale = max((max(0, -int(value.as_tuple().exponent)) for value in known if value is not None), default=0)
        return pa.array(known, pa.decimal256(76, scale))
    return of_values(values) if any(value is not None for value in values) else pa.nulls(len(values), pa.string())
