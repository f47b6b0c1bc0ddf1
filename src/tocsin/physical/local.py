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
from tocsin.analysis.temporal import network
from tocsin.analysis.types import DataType, Kind
from tocsin.analysis.variables import MISSING, STATUS
from tocsin.kernels.beginnings import missing_variables
from tocsin.kernels.expressions import interpret
from tocsin.kernels.kernel import kernel
from tocsin.kernels.runs.kernel import run_kernel
from tocsin.kernels.trends.answers import too_large
from tocsin.kernels.trends.plan import trend
from tocsin.language import expressions as ex
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
from tocsin.physical.counted import group_name, rows_over_all
from tocsin.physical.looks import Walk, attributes_of
from tocsin.physical.sliced import layout as names
from tocsin.physical.sliced.arrow import ArrowTypes, normal
from tocsin.physical.sliced.arrow import attributes_of as attribute_types
from tocsin.physical.sliced.gather import types_of
from tocsin.physical.sliced.kernels import AnyKernel, asked_of, shown
from tocsin.physical.sliced.layout import Layout
from tocsin.physical.sliced.needs import needed
from tocsin.physical.sliced.plain import Events, shipped
from tocsin.physical.sliced.positions import place_of
from tocsin.physical.sliced.worker import Task

Bags = dict[str, list[dict[str, Any]]]
ASKED = "__tocsin_asked"  # what stands for a variable that holds what was asked of bags


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
    if strategy == "aggregate":
        query = _within_distances(query, [by_type[name] for name in named])
    schemas = {name: by_type[name].table.schema for name in named}
    bound = bind(query, {name: attribute_types(schema) for name, schema in schemas.items()}, time=time)
    ties = (tie,) if isinstance(tie, str) else tuple(tie or ())
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


def _within_distances(query: alg.Query, events: Sequence[Events]) -> alg.Query:
    """The query with the window that follows from its distances, or the reason why it is no aggregate."""
    times = {str(group.type): group.time for group in events}
    is_integer = all(pa.types.is_integer(group.table.schema.field(group.time).type) for group in events)
    distances = network(query, times, integer_time=is_integer)
    query = optimize(query, rules=(window_from_distances(distances),)).query
    refusal = refused_by_aggregates(query, "locally")
    if refusal is not None:
        raise refusal
    return query


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
        raise errors.MissingColumnError(
            f"There is no time column `{column}` in the input of `{name}`.",
            hint=errors.did_you_mean(column, table.column_names, "its columns") + " Choose one with `time=`.",
        )
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


# --- outputs --------------------------------------------------------------------------------------


class Result:
    """RETURN, HAVING and GROUP BY over the matches that the search found."""

    def __init__(
        self,
        bound: BoundQuery,
        found: pa.Table,
        variables: Mapping[str, tuple[int, Sequence[str]]],
        asked: Sequence[ex.Expression] = (),
    ) -> None:
        self.bound = bound
        self.query = bound.query
        self.found = found
        self.variables = variables
        self.asked = {aggregate: ex.Attribute(ASKED, (names.value(number),)) for number, aggregate in enumerate(asked)}

    def table(self, time: pa.DataType) -> pa.Table:
        """A row per match."""
        query, found = self.query, self.found
        bags = self._bags() if query.returns or query.having is not None else []
        if query.having is not None:
            wanted = interpret.value(query.having)
            keep = [number for number, one in enumerate(bags) if wanted(one) is True]
            found, bags = found.take(pa.array(keep, pa.int64())), [bags[number] for number in keep]
        halves = (found.column(name).to_pylist() for name in (names.FIRST_HALF, names.SECOND_HALF))
        columns = {
            "match_id": pa.array(
                [f"{a % 2**64:016x}{b % 2**64:016x}" for a, b in zip(*halves, strict=True)], pa.string()
            ),
            "start": found.column(names.START).cast(time),
            "end": found.column(names.END).cast(time),
        }
        if query.returns:
            for returned, (_, dtype) in zip(query.returns, self.bound.columns, strict=True):
                columns[returned.name] = self._column(returned.expression, bags, dtype, time)
        else:
            columns |= {name: self._whole(found, name) for name in query.variables}
        return pa.table(columns | (_said_of_timeouts(query, found) if query.timeouts else {}))

    def over_all(self, time: pa.DataType) -> pa.Table:
        """One row per window and group, or one in all."""
        query, bags = self.query, self._bags()
        every_us = query.every_us
        starts = self.found.column(names.START).to_pylist()
        keys = [(one.expression, interpret.value(one.expression)) for one in query.group_by]
        groups: dict[tuple[Any, ...], list[Bags]] = {} if keys or every_us else {(): []}
        values: dict[tuple[Any, ...], list[Any]] = {(): []}
        for one, start in zip(bags, starts, strict=True):
            found = [key(one) for _, key in keys]
            window = (start - start % every_us,) if every_us else ()
            name = (*window, *map(group_name, found))
            groups.setdefault(name, []).append(one)
            values.setdefault(name, found)
        rows = []
        for name, members in groups.items():
            known = {expression: value for (expression, _), value in zip(keys, values[name], strict=True)}
            if query.having is None or _over(query.having, members, known) is True:
                window = name[:1] if every_us else ()
                rows.append([*window, *(_over(one.expression, members, known) for one in query.returns)])
        return grouped(self.bound, rows, time)

    def _bags(self) -> list[Bags]:
        """Per match, the events of each variable with the attributes that were asked for."""
        bags: list[Bags] = [{} for _ in range(self.found.num_rows)]
        for name, (place, attributes) in self.variables.items():
            is_iterated = self.query.variables[name].iterated
            for bag, held in zip(bags, self.found.column(names.variable(place)).to_pylist(), strict=True):
                events = held if is_iterated else [held]
                if held is not None:
                    bag[name] = [dict(zip(attributes, event.values(), strict=False)) for event in events]
        if self.asked:
            values = self.found.select([names.value(number) for number in range(len(self.asked))]).to_pylist()
            for bag, row in zip(bags, values, strict=True):
                bag[ASKED] = [row]
        return bags

    def _column(self, expression: ex.Expression, bags: list[Bags], dtype: DataType, time: pa.DataType) -> pa.Array:
        if isinstance(expression, ex.Variable):
            return self._whole(self.found, expression.name)
        if isinstance(expression, ex.Attribute) and len(expression.path) == 1:
            place, attributes = self.variables[expression.variable]
            kind = self.found.schema.field(names.variable(place)).type
            is_iterated = self.query.variables[expression.variable].iterated
            inner = (kind.value_type if is_iterated else kind).field(list(attributes).index(expression.path[0])).type
            if is_iterated and expression.index is ex.Each.PLAIN:
                values = [
                    None
                    if (held := bag.get(expression.variable)) is None
                    else [one[expression.path[0]] for one in held]
                    for bag in bags
                ]
                return pa.array(values, pa.list_(inner))
            return pa.array(map(interpret.value(expression), bags), inner)
        if (
            isinstance(expression, ex.Attribute)
            and expression.index is ex.Each.PLAIN
            and self.query.variables[expression.variable].iterated
        ):
            first = interpret.value(expression)
            return pa.array(
                [
                    None
                    if (held := bag.get(expression.variable)) is None
                    else [first({expression.variable: [one]}) for one in held]
                    for bag in bags
                ]
            )
        computed = expression.transform(lambda node: self.asked.get(node, node))
        values = list(map(interpret.value(computed), bags))
        zone = time.tz if pa.types.is_timestamp(time) else "UTC"
        return pa.array(values, _arrow(dtype, zone))

    def _whole(self, found: pa.Table, name: str) -> pa.ChunkedArray:
        """A variable's events under the names of their attributes."""
        place, attributes = self.variables[name]
        column = found.column(names.variable(place))
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        named = pa.struct([pa.field(attribute, kind.field(number).type) for number, attribute in enumerate(attributes)])
        wanted = pa.list_(named) if pa.types.is_list(column.type) else named
        return pa.chunked_array([_renamed(chunk, wanted) for chunk in column.chunks], wanted)


def _said_of_timeouts(query: alg.Query, found: pa.Table) -> dict[str, pa.Array]:
    """What tells time-outs from matches."""
    numbers = found.column(names.MISSING).to_pylist()
    late = missing_variables(query)
    return {
        STATUS: pa.array(["timeout" if number else "match" for number in numbers], pa.string()),
        MISSING: pa.array([late[number - 1] if number else None for number in numbers], pa.string()),
    }


def grouped(bound: BoundQuery, rows: list[list[Any]], time: pa.DataType) -> pa.Table:
    """Rows over all matches as a table; the first value of each is its window, where there are windows."""
    returns, every_us = bound.query.returns, bound.query.every_us
    windows: dict[str, pa.Array] = {}
    if every_us is not None:
        starts = [row[0] for row in rows]
        windows["window_start"] = pa.array(starts, pa.int64()).cast(time)
        windows["window_end"] = pa.array([start + every_us for start in starts], pa.int64()).cast(time)
        rows = [row[1:] for row in rows]
    columns = zip(*rows, strict=True) if rows else ([] for _ in returns)
    return pa.table(
        windows
        | {
            returned.name: pa.array(list(column), None if rows and dtype.kind is Kind.DECIMAL else _arrow(dtype))
            for returned, column, (_, dtype) in zip(returns, columns, bound.columns, strict=True)
        }
    )


def _renamed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values under other names of fields."""
    if pa.types.is_list(wanted):
        values = _renamed(array.values, wanted.value_type)
        # Offsets of a NULL list are equal, so that the mask tells all there is to know of it.
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null() if array.null_count else None)
    names_of = [field.name for field in wanted.fields]
    fields = [array.field(number) for number in range(len(names_of))]
    return pa.StructArray.from_arrays(fields, names=names_of, mask=array.is_null() if array.null_count else None)


def _arrow(dtype: DataType, zone: str | None = "UTC") -> pa.DataType | None:
    """The Arrow type of a computed column; None lets Arrow see for itself."""
    known = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.DOUBLE: pa.float64(),
        Kind.STRING: pa.string(),
        Kind.TIMESTAMP: pa.timestamp("us", zone),
        Kind.DATE: pa.date32(),
        Kind.INTERVAL: pa.duration("us"),
        Kind.BINARY: pa.binary(),
    }
    if dtype.kind is Kind.ARRAY and dtype.element is not None:
        element = _arrow(dtype.element, zone)
        return None if element is None else pa.list_(element)
    return known.get(dtype.kind)


def _over(expression: ex.Expression, members: list[Bags], keys: Mapping[ex.Expression, Any]) -> Any:
    """An expression of group keys and aggregates over all matches: both become constants (R4, R40)."""

    def settled(node: ex.Expression) -> ex.Expression:
        if node in keys:
            return ex.Literal(keys[node])
        if isinstance(node, ex.Aggregate):
            if node.argument is None:
                return ex.Literal(len(members))
            if not members and node.function not in ("count", "sum"):
                return ex.Literal(None)
            (variable,) = ex.variables_in(node.argument)
            together = [event for bags in members for event in bags.get(variable, ())]
            if node.function in ("first", "last"):  # events of several matches and partitions have their own order
                together.sort(key=lambda event: place_of(event[names.POSITION]))
            found = interpret.aggregate(node)({variable: together})
            if node.function == "sum" and found is None:
                raise too_large("sum")
            return ex.Literal(found)
        return node.map_children(settled)

    return interpret.value(settled(expression))({})
