"""Several queries on Arrow tables in one process: one table of events, and one search for what patterns share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import attributes_of
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.kernels.kernel import kernel
from tocsin.kernels.shared import common
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY
from tocsin.physical.arrow_scan import ship
from tocsin.physical.arrow_types import types_in
from tocsin.physical.local import events_of, kept_batches
from tocsin.physical.results import Result
from tocsin.physical.sliced.gather import types_of
from tocsin.physical.sliced.places import RULE, placed, schema_of
from tocsin.physical.sliced.worker import Member, Task, search_groups
from tocsin.plan.manifest import Reader
from tocsin.plan.needs import needed
from tocsin.plan.prepare import prepare


@dataclass(frozen=True)
class Matched:
    """The matches of one query."""

    bound: BoundQuery
    found: pa.Table
    variables: Mapping[str, tuple[int, tuple[str, ...]]]
    time: pa.DataType

    def table(self, returns: tuple[alg.Returned, ...] = ()) -> pa.Table:
        """A row per match, with other columns than its variables where they are asked for."""
        bound = self.bound
        if returns:
            bound = rebound(bound, replace(bound.query, returns=returns))
        return Result(bound, self.found, self.variables).table(self.time)


def match_together(
    queries: Mapping[str, alg.Query],
    inputs: Mapping[str, pa.Table],
    *,
    time: Mapping[str, str],
    ids: Mapping[str, str | None],
    max_matches_per_start: int = MOST_MATCHES_PER_START,
    max_task_memory: int = MOST_MEMORY,
) -> dict[str, Matched]:
    """The matches of queries that can be searched together (`tocsin.plan.groups.is_joint`), by name.

    `ids` are the columns that identify the events of each.
    """
    types = tuple(dict.fromkeys(name for query in queries.values() for name in alg.event_types(query.pattern)))
    events = events_of(types, {name: inputs[name] for name in types}, time, "")
    attributes = {group.type: types_in(group.table.schema) for group in events if group.type is not None}
    bounds = []
    for query in queries.values():
        own = {name: attributes[name] for name in alg.event_types(query.pattern)}
        bounds.append(prepare(query, own, time).bound)
    sources, kernels = common([kernel(bound) for bound in bounds])
    needs = [
        needed(bound.query, {name: attributes_of(bound.held[name]) for name in bound.query.variables})
        for bound in bounds
    ]
    readers = [Reader(search, own, id) for search, own, id in zip(kernels, needs, ids.values(), strict=True)]
    manifest, table = ship(readers, events, named=types, sources=sources)
    layouts = manifest.layouts
    held: list[pa.DataType] = []
    places = [placed(types_of(table.schema, layout), held) for layout in layouts]
    members = [
        Member(search, layout, id is not None, number, own)
        for number, (search, layout, id, own) in enumerate(zip(kernels, layouts, ids.values(), places, strict=True))
    ]
    task = Task(search_groups(sources, kernels, members, [None] * len(members)), max_matches_per_start, max_task_memory)
    found = pa.Table.from_batches(kept_batches(task.run(table), max_task_memory), schema_of(held))
    clock = events[0].table.schema.field(events[0].time).type
    matched: dict[str, Matched] = {}
    for number, name in enumerate(queries):
        own = found.filter(pc.equal(found.column(RULE), number))
        pairs = zip(needs[number].items(), places[number], strict=True)
        variables = {variable: (place, attributes) for (variable, attributes), place in pairs}
        matched[name] = Matched(bounds[number], own, variables, clock)
    return matched
