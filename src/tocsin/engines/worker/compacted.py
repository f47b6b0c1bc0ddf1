"""Compact rows: which queries have them, how one is enumerated, and how they are made without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.units import Unit
from tocsin.analysis.schema import BoundQuery
from tocsin.engines.worker.arrow_scan import ship
from tocsin.engines.worker.arrow_types import renamed
from tocsin.engines.worker.event_tables import Events
from tocsin.engines.worker.summaries import COUNT, GRAPH, STARTS, Compacting
from tocsin.engines.worker.tasks import task_of
from tocsin.expressions import interpret
from tocsin.kernels.runs.packed import matches_in, of_another_pattern, unpacked
from tocsin.kernels.runs.register_automaton import run_kernel, tables_of
from tocsin.language import expressions as ex
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Reader
from tocsin.plan.strategies import AUTOMATON

COLUMNS = ("start", "end", "matches", "starts", "events", "graph")
HINT = 'leave out `form="compact"`.'


def refused_compact(
    query: alg.Query, engine: str = "on Spark", strategy: str = "auto"
) -> errors.UnsupportedError | None:
    """Why a query has no compact rows, or None."""
    if strategy not in ("auto", "automaton"):
        return errors.OptionRefusedError(
            f"Compact rows are made by an automaton, and not by the strategy `{strategy}`.",
            hint=f"leave out `strategy=`; or {HINT}",
        )
    refusal = AUTOMATON.refuses(query, engine=engine)
    if refusal is not None:
        return errors.OptionRefusedError(refusal.message, where=refusal.where, hint=HINT)
    if query.over_all_matches or query.having is not None:
        clause = "Aggregation over all matches" if query.over_all_matches else "HAVING"
        return errors.OptionRefusedError(f"{clause} has no compact form: it looks at every match.", hint=HINT)
    found = tables_of(query)
    if found.may_bind_nothing:
        return errors.OptionRefusedError(
            "A way through this pattern may bind no event at all, and would be counted as a match.",
            where=query.pattern.where,
            hint=f"bind an event in every branch; or {HINT}",
        )
    if found.is_ambiguous:
        return errors.OptionRefusedError(
            "Two ways through this pattern may bind the same events, so that its ways cannot be counted as matches.",
            where=query.pattern.where,
            hint=f"bind what PROJECT leaves out, or make the branches of OR and AND different; or {HINT}",
        )
    return None


def enumerated(query: alg.Query, row: Any) -> Iterator[dict[str, Any]]:
    """The matches of a compact row of this query, a mapping or Spark's `Row`, one by one."""
    if not isinstance(row, Mapping) and not hasattr(row, "asDict"):
        raise errors.InvalidInputError(
            f"This is no compact row but a {type(row).__name__}.", hint='give a row of `match(…, form="compact")`.'
        )
    given: Mapping[str, Any] = row if isinstance(row, Mapping) else row.asDict(recursive=True)
    missing = [name for name in COLUMNS if name not in given]
    if missing:
        raise errors.InvalidInputError(
            f"This is no compact row: it has no column `{missing[0]}`.",
            hint='give a row of `match(…, form="compact")` with all its columns.',
        )
    graph = unpacked(given["graph"])
    try:
        query = graph.unit.query(query)
    except errors.TocsinError:  # its durations are no whole numbers of the unit of the graph's times
        raise of_another_pattern() from None
    found = tables_of(query)
    graph.require(found)
    events = [(kind, event) for kind in sorted(given["events"]) for event in given["events"][kind] or ()]
    for start, bags in matches_in(graph, found, given["starts"], events):
        yield _row(query, start, given["end"], bags)


def _row(query: alg.Query, start: Any, end: Any, bags: Mapping[str, list[Mapping[str, Any]]]) -> dict[str, Any]:
    returns = query.returns or tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)
    held: dict[str, Any] = {"start": start, "end": end}
    return held | {one.name: _value(query, one.expression, bags) for one in returns}


def _value(query: alg.Query, node: ex.Expression, bags: Mapping[str, list[Mapping[str, Any]]]) -> Any:
    match node:
        case ex.Variable():
            events = bags.get(node.name)
            if events is None:
                return None
            return [dict(event) for event in events] if query.variables[node.name].iterated else dict(events[0])
        case ex.Attribute(index=ex.Each.PLAIN) if query.variables[node.variable].iterated:
            each = interpret.value(node)
            events = bags.get(node.variable)
            return None if events is None else [each({node.variable: [event]}) for event in events]
        case _:
            return interpret.value(node)(bags)


def compact_table(bound: BoundQuery, events: Sequence[Events], ties: Sequence[str], unit: Unit) -> pa.Table:
    """The compact rows of events in this process, with the columns that Spark would give."""
    by_type = {group.type: group for group in events}
    kernel = replace(run_kernel(bound), unit=unit)
    schemas = {name: by_type[name].table.schema for name in kernel.types}
    kernel = kernel.as_graphs({name: schema.names for name, schema in schemas.items()})
    reader = Reader(kernel, {}, ties=tuple(ties), with_digests=False)
    shipped = ship([reader], events, named=alg.event_types(kernel.query.pattern))
    (layout,) = shipped.manifest.layouts
    first = by_type[kernel.types[0]]
    time = first.table.schema.field(first.time).type
    found = task_of(Compacting(kernel, layout)).run(shipped.table) if shipped.table.num_rows else iter(())
    return named(found, schemas, time)


def named(found: Iterable[pa.RecordBatch], schemas: Mapping[str, pa.Schema], time: pa.DataType) -> pa.Table:
    """Batches of `Compacting` under the names that users know."""
    bags = {name: pa.list_(pa.struct(list(schema))) for name, schema in schemas.items()}
    types = (time, time, pa.string(), pa.list_(time), pa.struct(list(bags.items())), pa.binary())
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    batches = []
    for batch in found:
        start, end, starts = (batch.column(name) for name in (names.START, names.END, STARTS))
        events = [renamed(batch.column(names.variable(number)), one) for number, one in enumerate(bags.values())]
        columns = [
            start.cast(time),
            end.cast(time),
            batch.column(COUNT),
            starts.cast(pa.list_(time)),
            pa.StructArray.from_arrays(events, names=list(bags)),
            batch.column(GRAPH),
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)
