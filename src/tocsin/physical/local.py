"""`engine="local"`: the same kernels on Arrow tables, pandas or plain rows, in one process without a JVM.

The same search and the same results as on Spark; for samples, tests and files that fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.text import to_text
from tocsin.analysis.schema import BoundQuery, bind
from tocsin.analysis.temporal import Network, network
from tocsin.analysis.types import Kind
from tocsin.kernels.kernel import kernel
from tocsin.kernels.runs.kernel import run_kernel
from tocsin.kernels.trends.plan import trend
from tocsin.optimizer.choose import MOST_MATCHES_PER_START
from tocsin.optimizer.pipeline import optimize
from tocsin.physical.aggregates import aggregated
from tocsin.physical.bounded import window_from_distances
from tocsin.physical.claims import (
    check_strategy,
    refused_by_aggregates,
    refused_by_automata,
    refused_by_kernels,
    refused_by_trends,
    unsupported,
)
from tocsin.physical.compacted import compact_table, refused_compact
from tocsin.physical.counted import rows_over_all
from tocsin.physical.looks import Walk, attributes_of
from tocsin.physical.results import Result, grouped
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.arrow import ArrowTypes, normal
from tocsin.physical.sliced.arrow import attributes_of as attribute_types
from tocsin.physical.sliced.gather import types_of
from tocsin.physical.sliced.kernels import AnyKernel, asked_of, shown
from tocsin.physical.sliced.layout import Layout
from tocsin.physical.sliced.needs import needed
from tocsin.physical.sliced.plain import Events, shipped
from tocsin.physical.sliced.worker import Task
from tocsin.physical.wording import missing, unordered


def match(
    query: alg.Query,
    inputs: Any,
    *,
    time: str | Mapping[str, str] = "ts",
    tie: str | Iterable[str] | None = None,
    type: str = "type",
    id: str | None = None,
    max_matches_per_start: int = MOST_MATCHES_PER_START,
    strategy: str = "auto",
    is_compact: bool = False,
) -> pa.Table:
    """The matches of a query as an Arrow table, with the columns that Spark would give.

    Parameters
    ----------
    query
        The query.
    inputs
        Per event type, or once with a type column: an Arrow table, a pandas DataFrame or a list of dicts.
    time, tie, type, id
        As for `Pattern.match`.
    max_matches_per_start
        How many matches may have one start.
    strategy
        `"automaton"` or `"aggregate"` also where other kernels could; all others are left to choose.
    is_compact
        Whether to give a row with a graph for each end.
    """
    check_strategy(strategy)
    refused_by = {"automaton": refused_by_automata, "aggregate": refused_by_aggregates}.get(strategy)
    refusal = (refused_by_automata if strategy == "automaton" else unsupported)(query, "locally")
    if refusal is None and is_compact:
        refusal = refused_compact(query, "locally", strategy)
    if refusal is not None:
        raise refusal
    named = alg.event_types(query.pattern)
    events = events_of(named, inputs, time, type)
    by_type = {group.type: group for group in events}
    distances = _distances(query, [by_type[name] for name in named])
    if strategy == "aggregate":
        query = _within(query, distances)
    schemas = {name: by_type[name].table.schema for name in named}
    bound = bind(query, {name: attribute_types(schema) for name, schema in schemas.items()}, time=time)
    ties = (tie,) if isinstance(tie, str) else tuple(tie or ())
    _require_ties(ties, [by_type[name] for name in named])
    clock = by_type[named[0]].table.schema.field(by_type[named[0]].time).type
    if is_compact:
        return compact_table(bound, events, ties)
    if refused_by is None and refused_by_trends(query) is None and (counting := trend(bound)) is not None:
        return grouped(bound, rows_over_all(counting, events, ties), clock)
    search = _search(bound, strategy)
    looks = Walk(ArrowTypes(schemas)).looks(query.pattern)
    attributes = {name: attributes_of(looks[name]) for name in query.variables}
    needs = shown(search, needed(query, attributes))
    if query.over_all_matches:
        needs = {name: needs.get(name, ()) for name in query.variables}
    table, layout = shipped(search, events, needs, ties=ties, id=id)
    task = Task(search, layout, None, max_matches_per_start, to_text(query), id is not None)
    asked = asked_of(search)
    schema = _schema(table, layout, asked.values(), with_timeouts=query.timeouts)
    found = pa.Table.from_batches(list(task.matches(table)), schema)
    places = {one.name: (place, needs[one.name]) for place, one in enumerate(layout.gathered)}
    result = Result(bound, found, places, tuple(asked))
    return result.over_all(clock) if query.over_all_matches else result.table(clock)


def _distances(query: alg.Query, events: Sequence[Events]) -> Network:
    """How far the events of a match lie apart; distances that no events can keep are refused, as on Spark."""
    times = {str(group.type): group.time for group in events}
    is_integer = all(pa.types.is_integer(group.table.schema.field(group.time).type) for group in events)
    return network(query, times, integer_time=is_integer)


def _within(query: alg.Query, distances: Network) -> alg.Query:
    """The query with the window that follows from its distances, or the reason why it is no aggregate."""
    query = optimize(query, rules=(window_from_distances(distances),)).query
    refusal = refused_by_aggregates(query, "locally")
    if refusal is not None:
        raise refusal
    return query


def _require_ties(ties: Sequence[str], events: Iterable[Events]) -> None:
    """Refuse tie columns that are not there, or have no order."""
    for group in events:
        for name in ties:
            if name not in group.table.column_names:
                raise missing(name, group.table.column_names, f"the input of `{group.type}`", "tie=", "column")
            dtype = group.table.schema.field(name).type
            if pa.types.is_nested(dtype):
                raise unordered("tie", name, str(dtype))


def _search(bound: BoundQuery, strategy: str) -> AnyKernel:
    if strategy == "aggregate":
        return aggregated(bound)
    by_automaton = strategy == "automaton" or refused_by_kernels(bound.query) is not None
    return run_kernel(bound) if by_automaton else kernel(bound)


# --- inputs ---------------------------------------------------------------------------------------


def events_of(named: Sequence[str], inputs: Any, time: str | Mapping[str, str], type_column: str) -> list[Events]:
    """The events of every type; those the pattern does not name come last."""
    if isinstance(inputs, Mapping):
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
        tables = {name: table_of(given) for name, given in inputs.items()}
    else:
        tables = by_type(table_of(inputs), named, type_column)
    order = (*named, *(name for name in tables if name not in named))
    return [Events(name, tables[name], _time_of(name, time, tables[name])) for name in order]


def by_type(table: pa.Table, named: Sequence[str], type_column: str) -> dict[Any, pa.Table]:
    """The rows of one table by event type, also of types that have none."""
    if type_column not in table.column_names:
        raise errors.MissingColumnError(
            f"There is no type column `{type_column}` in the input.",
            hint=errors.did_you_mean(type_column, table.column_names, "its columns") + " Choose one with `type=`.",
        )
    kinds = table.column(type_column)
    present = [kind.as_py() for kind in pc.unique(kinds)]
    found = {kind: table.filter(pc.equal(kinds, kind)) for kind in present if kind is not None}
    if None in present:
        found[None] = table.filter(pc.is_null(kinds))
    return {name: found.get(name, table.slice(0, 0)) for name in (*named, *found)}


def table_of(given: Any) -> pa.Table:
    """An input as an Arrow table."""
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if isinstance(given, Sequence) and not isinstance(given, str):
        # Arrow takes the columns of the first row only; rows of different types have different ones.
        columns = dict.fromkeys(name for row in given for name in row)
        given = pa.table({name: [row.get(name) for row in given] for name in columns})
    elif not isinstance(given, pa.Table) and hasattr(given, "to_records"):
        given = pa.Table.from_pandas(given, preserve_index=False)
    if not isinstance(given, pa.Table):
        raise errors.InvalidInputError(
            f"An input is a {type(given).__name__}, neither an Arrow table, a pandas DataFrame nor a list of rows.",
            hint="pass `{'Login': table}`, or one table with a type column.",
        )
    return normal(given)


def _time_of(name: str | None, time: str | Mapping[str, str], table: pa.Table) -> str:
    column = time if isinstance(time, str) else time.get(name or "", "")
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
    numbers = [names.START, names.END, names.FIRST_HALF, names.SECOND_HALF, *([names.MISSING] if with_timeouts else ())]
    fields = [pa.field(name, pa.int64()) for name in numbers]
    held = types_of(table.schema, layout)
    fields += [pa.field(names.variable(number), dtype) for number, dtype in enumerate(held)]
    fields += [
        pa.field(names.value(number), pa.float64() if kind is Kind.DOUBLE else pa.int64())
        for number, kind in enumerate(asked)
    ]
    return pa.schema(fields)
