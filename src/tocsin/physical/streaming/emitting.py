"""What a shard emits: matches → events → rows like those that Spark ships, so that higher strata see no difference.

Values are computed row by row in Python: emitted events are few beside those they were found in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.algebra.programs import emitted_column
from tocsin.analysis.schema import BoundQuery
from tocsin.physical.arrow_scan import Events, scan
from tocsin.physical.results import Result
from tocsin.plan.layout import Gathered
from tocsin.plan.manifest import Manifest


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
class Insertion:
    """How emitted events become rows.

    Attributes
    ----------
    manifest
        What is shipped of events.
    schemas
        The columns of every event type that rules emit and read.
    times
        The time columns.
    """

    manifest: Manifest
    schemas: Mapping[str, pa.Schema]
    times: Mapping[str, str]

    def rows(self, events: Mapping[str, Sequence[pa.Table]], schema: pa.Schema) -> pa.Table:
        """The rows of events by type, with the columns that Spark ships: `schema` has their types."""
        groups = [
            Events(
                name,
                pa.concat_tables([table.cast(own) for table in events.get(name, ())] or [own.empty_table()]),
                self.times[name],
            )
            for name, own in self.schemas.items()
        ]
        return scan(self.manifest, groups, schema)
