"""`engine="local"`: the same kernels on files, Arrow tables or plain rows, in one process without a JVM.

The same search and the same results as on Spark; for samples, tests and files that fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import attributes_of
from tocsin.analysis.schema import BoundQuery, rebound
from tocsin.analysis.types import Kind
from tocsin.engines.local.arrow_inputs import of_each_type, require_type_names, table_of, tables_of
from tocsin.engines.local.shards import OfShard, Shard, shards_of
from tocsin.engines.wording import missing, unordered
from tocsin.engines.worker.arrow_scan import Shipped, ship
from tocsin.engines.worker.arrow_types import types_in
from tocsin.engines.worker.event_tables import Events
from tocsin.engines.worker.gather import Gatherer
from tocsin.engines.worker.results import Result, answered, grouped
from tocsin.engines.worker.tasks import OF_MATCH, RULE, Member, Task, placed, schema_of, search_groups, task_of
from tocsin.engines.worker.threads import in_threads
from tocsin.kernels.compile import warm
from tocsin.kernels.hashes import Gatherable
from tocsin.kernels.matches import check_memory
from tocsin.kernels.reach import Search
from tocsin.kernels.shared import common
from tocsin.optimizer.choose import MOST_MEMORY
from tocsin.options import Options, untimed
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Layout, Reader, brought, needed
from tocsin.plan.plan import Plan, plan_of
from tocsin.plan.strategies import STRATEGIES, TREND, unsupported
from tocsin.plan.strategy import LOCALLY

if TYPE_CHECKING:  # what counts and packs matches is imported where it runs
    from tocsin.kernels.trends.trend_count import Trend
    from tocsin.plan.rule_plan import RulePlan


def match(query: alg.Query, inputs: Any, options: Options | None = None, *, warns: bool = False) -> pa.Table:
    """Match a query; the result is an Arrow table with the columns that Spark would give.

    An input, per event type or once with a type column, is whatever `table_of` takes. With `warns`, integer times
    without a unit are warned of.
    """
    options = options or Options()
    strategy = options.strategy
    is_compact = options.form == "compact"
    # What depends on the window that distances imply is refused once the query is rewritten.
    is_alone = strategy in ("automaton", "kernel", "trend")
    refusal = STRATEGIES[strategy].refuses(query, engine=LOCALLY) if is_alone else unsupported(query, LOCALLY)
    if refusal is None and is_compact:
        from tocsin.engines.worker.compacted import refused_compact

        refusal = refused_compact(query, LOCALLY, strategy)
    if refusal is not None:
        raise refusal
    named = alg.event_types(query.pattern)
    events = events_of(named, inputs, options.time, options.type)
    by_type = {group.type: group for group in events if group.type in named}
    types = {name: types_in(by_type[name].table.schema) for name in named}
    times = {name: by_type[name].time for name in named}
    return run(plan_of(query, types, times, options, warns=warns, engine=LOCALLY), events)


def run(plan: Plan, events: Sequence[Events]) -> pa.Table:
    """Run a plan on the events of every type."""
    options, bound, query = plan.options, plan.rule.bound, plan.query
    ties, id = options.ties, options.id
    is_compact = options.form == "compact"
    is_counted = not is_compact and (plan.is_counted or options.strategy == TREND.name)
    search = None if is_compact or is_counted else plan.search
    named = alg.event_types(plan.rule.written.pattern)
    tables = {group.type: group.table for group in events if group.type in named}
    require_columns(tables, ties, id)
    clock = tables[named[0]].schema.field(plan.times[named[0]]).type
    if is_compact:
        from tocsin.engines.worker.compacted import compact_table

        return compact_table(plan.written, events, ties, options.unit)
    if search is None:
        return grouped(bound, rows_over_all(plan.counted, events, ties), clock)
    warm(sum(events_of_type.table.num_rows for events_of_type in events))
    needs = brought(search, _needs(bound, query))
    if query.over_all_matches:
        needs = {name: needs.get(name, ()) for name in query.variables}
    shipped = ship([Reader(search, needs, id, ties)], events, named=named)
    (layout,) = shipped.manifest.layouts
    asked = search.aggregates
    schema = _schema(shipped.table, layout, asked.values(), with_timeouts=query.timeouts)

    def task(width_us: int | None, shard: Shard) -> Task:
        member = Member(search, layout, id is not None, computed=_computed(shipped, shard))
        return task_of(member, width_us, most=options.max_matches_per_start, memory=options.task_bytes)

    found = pa.Table.from_batches(_found(shipped, [search], task, options.task_bytes), schema)
    places = {one.name: (place, needs[one.name]) for place, one in enumerate(layout.gathered)}
    result = Result(bound, found, places, tuple(asked))
    return result.over_all(clock) if query.over_all_matches else result.table(clock)


@dataclass(frozen=True)
class Matched:
    """The matches of one rule."""

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


def run_shared(rules: Sequence[RulePlan], events: Sequence[Events]) -> dict[str, Matched]:
    """Run rules that share a search on the events of every type; the matches of each, by name."""
    options = rules[0].plan.options
    sources, kernels = common([one.plan.loops for one in rules])
    needs = [_needs(one.plan.rule.bound, one.plan.query) for one in rules]
    ids = [one.plan.options.id for one in rules]
    readers = [Reader(search, own, id) for search, own, id in zip(kernels, needs, ids, strict=True)]
    shipped = ship(readers, events, named=[one.type for one in events if one.type is not None], sources=sources)
    layouts = shipped.manifest.layouts
    held: list[pa.DataType] = []
    places = [placed(Gatherer(shipped.table, layout).types(), held) for layout in layouts]

    def task(width_us: int | None, shard: Shard) -> Task:
        members = [
            Member(search, layout, id is not None, number, own, _computed(shipped, shard))
            for number, (search, layout, id, own) in enumerate(zip(kernels, layouts, ids, places, strict=True))
        ]
        groups = search_groups(sources, kernels, members, [width_us] * len(members))
        return Task(groups, options.max_matches_per_start, options.task_bytes)

    found = pa.Table.from_batches(_found(shipped, kernels, task, options.task_bytes), schema_of(held))
    clock = events[0].table.schema.field(events[0].time).type
    matched: dict[str, Matched] = {}
    for number, one in enumerate(rules):
        own = found.filter(pc.equal(found.column(RULE), number))
        pairs = zip(needs[number].items(), places[number], strict=True)
        variables = {variable: (place, attributes) for (variable, attributes), place in pairs}
        matched[one.rule.name] = Matched(one.plan.rule.bound, own, variables, clock)
    return matched


def _needs(bound: BoundQuery, query: alg.Query) -> dict[str, tuple[str, ...]]:
    return needed(query, {name: attributes_of(bound.held[name]) for name in query.variables})


def _computed(shipped: Shipped, shard: Shard) -> dict[str, Gatherable]:
    return {name: OfShard(digests, shard) for name, digests in shipped.digests.items()}


def _found(
    shipped: Shipped, searches: Sequence[Search], task: Callable[[int | None, Shard], Task], memory: int
) -> Iterator[pa.RecordBatch]:
    """What searches find in all shards of a table, as far as it may be held in memory."""
    width_us, shards = shards_of(shipped.table, searches, shipped.manifest.layouts)
    expressions = [expression for search in searches for expression in search.query.expressions()]
    size = 0

    def batches_of(shard: Shard) -> list[pa.RecordBatch]:
        return kept_batches(task(width_us, shard).run(shard.table), memory)

    for batches in in_threads(batches_of, shards, expressions):
        size += sum(batch.nbytes for batch in batches)
        check_memory(size, memory, copies=1)
        yield from batches


def rows_over_all(trend: Trend, events: Sequence[Events], ties: Sequence[str]) -> list[list[Any]]:
    """The window if there are windows, and the values of RETURN, for every group or for all."""
    from tocsin.engines.worker.summaries import counting
    from tocsin.kernels.trends.request import keys_of, needs_of

    needs = needs_of(keys_of(trend.kernel.query, trend.machine))
    reader = Reader(trend.kernel, needs, ties=tuple(ties), with_digests=False)
    shipped = ship([reader], events, named=alg.event_types(trend.kernel.query.pattern))
    (layout,) = shipped.manifest.layouts

    def task(width_us: int | None, _: Shard) -> Task:
        return task_of(counting(trend, layout), width_us)

    counted = list(_found(shipped, [trend.kernel], task, MOST_MEMORY)) if shipped.table.num_rows else []
    return answered(trend, pa.Table.from_batches(counted) if counted else None)


def kept_batches(batches: Iterable[pa.RecordBatch], memory: int) -> list[pa.RecordBatch]:
    """All batches: the result of the local engine is held in memory, as far as that may be."""
    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        check_memory(size, memory, copies=1)
    return found


def require_columns(tables: Mapping[str, pa.Table], ties: Sequence[str], id: str | None) -> None:
    """Refuse columns that the tables of event types do not have, and tie columns without an order."""
    for kind, table in tables.items():
        for option, name in (*(("tie=", name) for name in ties), *((("id=", id),) if id is not None else ())):
            if name not in table.column_names:
                raise missing(name, table.column_names, f"the input of `{kind}`", option, "column")
        for name in ties:
            dtype = table.schema.field(name).type
            if pa.types.is_nested(dtype):
                raise unordered("tie", name, str(dtype))


# --- inputs ---------------------------------------------------------------------------------------


def events_of(named: Sequence[str], inputs: Any, time: str | Mapping[str, str], type_column: str) -> list[Events]:
    """The events of every type; those the pattern does not name come last."""
    if isinstance(inputs, Mapping):
        require_type_names(inputs)
        missing = [name for name in named if name not in inputs]
        errors.raise_all(
            [
                errors.UnknownEventTypeError(
                    f"The pattern names the event type `{name}`, and no input has it.",
                    hint=errors.did_you_mean(name, inputs, "inputs"),
                )
                for name in missing
            ]
        )
        tables: Mapping[Any, Any] = tables_of(inputs)
    else:
        tables = of_each_type(table_of(inputs), named, type_column)
    order = dict.fromkeys((*named, *tables))
    return [Events(name, tables[name], _time_of(name, time, tables[name])) for name in order]


def _time_of(name: str | None, time: str | Mapping[str, str], table: pa.Table) -> str:
    if not isinstance(time, str) and (name or "") not in time:
        raise untimed(name or "")
    column = time if isinstance(time, str) else time[name or ""]
    if column not in table.column_names:
        raise missing(column, table.column_names, f"the input of `{name}`", "time=", "time column")
    dtype = table.schema.field(column).type
    if not (pa.types.is_timestamp(dtype) or pa.types.is_integer(dtype) or pa.types.is_null(dtype)):
        raise errors.TimeTypeError(
            f"The time column `{column}` of the input of `{name}` is {dtype}, neither a timestamp nor an integer.",
            hint="choose a column that says when each event happened.",
        )
    return column


def _schema(table: pa.Table, layout: Layout, asked: Iterable[Kind], *, with_timeouts: bool) -> pa.Schema:
    """What the search gives, also when it finds nothing."""
    fields = [pa.field(name, dtype) for name, dtype in OF_MATCH.items()]
    fields += [pa.field(names.MISSING, pa.int64())] if with_timeouts else []
    held = Gatherer(table, layout).types()
    fields += [pa.field(names.variable(number), dtype) for number, dtype in enumerate(held)]
    fields += [
        pa.field(names.value(number), pa.float64() if kind is Kind.DOUBLE else pa.int64())
        for number, kind in enumerate(asked)
    ]
    return pa.schema(fields)
