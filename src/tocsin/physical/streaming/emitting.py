"""What a shard emits: matches → events → rows like those that Spark ships, so that higher strata see no difference.

Values are computed row by row in Python: emitted events are few beside those they were found in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.algebra.programs import emitted_column
from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.model import Source
from tocsin.kernels.shared import flagging
from tocsin.physical.results import Result
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.layout import Gathered, Layout, Packing
from tocsin.physical.sliced.needs import Needs
from tocsin.physical.sliced.plain import Events, shipped_together
from tocsin.physical.sliced.rows import array_of, integers


@dataclass(frozen=True)
class Emission:
    """One `emit` of a rule.

    Attributes
    ----------
    type
        The template of its events.
    bound
        The rule's query, which returns the time and the values as `tocsin.algebra.programs.emitting` says.
    attributes
        The names of these values.
    schema
        The columns of the template's events; the first is their time.
    """

    type: str
    bound: BoundQuery
    attributes: tuple[str, ...]
    schema: pa.Schema

    def events(self, matches: pa.RecordBatch, gathered: Sequence[Gathered]) -> pa.Table:
        """The events of some matches."""
        variables = {one.name: (place, one.attributes) for place, one in enumerate(gathered)}
        time = self.schema.field(0)
        found = Result(self.bound, pa.Table.from_batches([matches]), variables).table(time.type)
        values = {name: found.column(emitted_column(place)) for place, name in enumerate(self.attributes)}
        if pa.types.is_floating(values[time.name].type):  # the mean of integer times
            values[time.name] = pc.floor(values[time.name])
        return pa.Table.from_arrays(
            [values[field.name].cast(field.type, safe=False) for field in self.schema], schema=self.schema
        )


@dataclass(frozen=True)
class Reader:
    """A rule that reads emitted events: its kernel, what it needs of them, and what the columns of rows mean to it."""

    kernel: Kernel
    needs: Needs
    layout: Layout


@dataclass(frozen=True)
class Insertion:
    """How emitted events become rows.

    Attributes
    ----------
    sources
        The candidates of all rules, as `tocsin.kernels.shared.common` numbers them.
    readers
        The rules that read emitted events.
    schemas
        The columns of every event type that they read.
    times
        The time columns.
    """

    sources: tuple[Source, ...]
    readers: tuple[Reader, ...]
    schemas: Mapping[str, pa.Schema]
    times: Mapping[str, str]

    def rows(self, events: Mapping[str, Sequence[pa.Table]], schema: pa.Schema) -> pa.Table:
        """The rows of events by type, with the columns that Spark ships: `schema` has their types."""
        tables = {
            name: pa.concat_tables([table.cast(own) for table in events.get(name, ())] or [own.empty_table()])
            for name, own in self.schemas.items()
        }
        kernels = [reader.kernel for reader in self.readers]
        groups = [Events(name, table, self.times[name]) for name, table in tables.items()]
        table, layouts = shipped_together(
            flagging(self.sources, kernels),
            kernels,
            groups,
            [reader.needs for reader in self.readers],
            [None] * len(kernels),
            by_values=True,
        )
        found: dict[str, list[pa.Array]] = {}
        for reader, own in zip(self.readers, layouts, strict=True):
            for wanted, given in _pairs(reader.layout, own):
                found.setdefault(wanted, []).append(array_of(table, given))
        packing = self.readers[0].layout.packing
        found[names.BITS] = [pa.array(_packed(integers(array_of(table, names.BITS)), layouts[0].packing, packing))]
        return pa.Table.from_arrays(
            [_column(found.get(field.name, ()), field, len(table)) for field in schema], schema=schema
        )


def _pairs(wanted: Layout, given: Layout) -> Iterator[tuple[str, str]]:
    """The columns of one layout beside those of another that mean the same."""
    yield wanted.time, given.time
    yield from zip(wanted.keys, given.keys, strict=True)
    yield from zip(wanted.carried, given.carried, strict=True)
    yield from zip(wanted.digests, given.digests, strict=True)
    yield from zip(wanted.packing.words, given.packing.words, strict=True)
    for each, own in zip(wanted.gathered, given.gathered, strict=True):
        for name, other in zip(each.columns, own.columns, strict=True):
            if name is not None and other is not None:
                yield name, other
    for kind, attributes in wanted.wants.items():
        known = dict(given.wants[kind])
        yield from ((name, known[attribute]) for attribute, name in attributes)
    if wanted.text is not None and given.text is not None:
        yield wanted.text, given.text


def _column(arrays: Sequence[pa.Array], field: pa.Field, size: int) -> pa.Array:
    """One column of what several rules ask of it: an event has its value in one way only, and elsewhere NULL."""
    if not arrays:
        return pa.nulls(size, field.type)
    cast = [array.cast(field.type, safe=False) for array in arrays]
    return cast[0] if len(cast) == 1 else pc.coalesce(*cast)


def _packed(bits: Any, given: Packing, wanted: Packing) -> Any:
    """Bits laid out in another way."""
    flags = bits & ((1 << given.kinds_at) - 1)  # none where they are in columns of their own
    kinds = (bits >> given.kinds_at) & ((1 << given.kinds) - 1)
    return flags | np.left_shift(kinds, wanted.kinds_at) if wanted.kinds else flags
