"""RETURN, HAVING and GROUP BY in one process: matches that tasks found, as the table that Spark would give.

For `engine="local"`, and for streams of Spark that decide in a worker.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tocsin.algebra import nodes as alg
from tocsin.analysis.names import MISSING, STATUS
from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.types import DataType, Kind
from tocsin.engines.worker.arrays import of_values
from tocsin.engines.worker.arrow_types import ARROW, renamed
from tocsin.engines.worker.event_order import place_of
from tocsin.engines.worker.gather import OF_MONOIDS, as_array
from tocsin.engines.worker.vectors import column_of
from tocsin.errors import NumberTooLargeError, TypeMismatchError, message_of
from tocsin.expressions import interpret
from tocsin.kernels.beginnings import missing_variables
from tocsin.language import expressions as ex
from tocsin.language.sase.printer import print_expression
from tocsin.plan import manifest as names

if TYPE_CHECKING:  # what counts matches is imported where it runs
    from tocsin.kernels.trends.totals import Totals
    from tocsin.kernels.trends.trend_count import Trend

Bags = dict[str, list[dict[str, Any]]]
Known = dict[ex.Expression, Any]
Member = TypeVar("Member")  # of a group: a match, or totals of several
ASKED = "__tocsin_asked"  # what stands for a variable that holds what was asked of bags


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
        return self._table(time) if self.query.having is None else self._that_have()._table(time)

    def _that_have(self) -> Result:
        """The matches that HAVING keeps."""
        assert self.query.having is not None
        condition = self._known(self.query.having)
        kept = self._computed(condition)
        if kept is None:
            wanted = interpret.value(condition)
            kept = pa.chunked_array([[wanted(one) is True for one in self._bags]], pa.bool_())
        return Result(self.bound, self.found.filter(kept), self.variables, tuple(self.asked))

    def _table(self, time: pa.DataType) -> pa.Table:
        query, found = self.query, self.found
        columns = {
            "match_id": found.column(names.MATCH_ID),
            "start": found.column(names.START).cast(time),
            "end": found.column(names.END).cast(time),
        }
        if query.returns:
            for returned, (_, dtype) in zip(query.returns, self.bound.columns, strict=True):
                columns[returned.name] = self._column(returned.expression, dtype, time)
        else:
            columns |= {name: self._whole(name) for name in query.variables}
        if query.timeouts:
            numbers = found.column(names.MISSING).to_pylist()
            late = missing_variables(query)
            columns[STATUS] = of_values(["timeout" if number else "match" for number in numbers], pa.string())
            columns[MISSING] = of_values([late[number - 1] if number else None for number in numbers], pa.string())
        return pa.table(columns)

    def over_all(self, time: pa.DataType) -> pa.Table:
        """One row per window and group, or one in all."""
        query, every_us = self.query, self.query.every_us

        from tocsin.kernels.trends.request import requested_in

        def fold(members: list[Bags]) -> Known:
            return {one.node: _aggregated(one.node, members) for one in requested_in(query)}

        starts = self.found.column(names.START).to_pylist()
        windows = [start - start % every_us if every_us else None for start in starts]
        keys = {one.expression: one.expression for one in query.group_by}
        bags = self._bags
        return grouped(self.bound, _rows_of_groups(query, keys, zip(windows, bags, bags, strict=True), fold), time)

    @cached_property
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

    def _column(self, expression: ex.Expression, dtype: DataType, time: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if isinstance(expression, ex.Variable):
            return self._whole(expression.name)
        attribute = self._attribute(expression) if isinstance(expression, ex.Attribute) else None
        if attribute is not None:
            return attribute
        zone = time.tz if pa.types.is_timestamp(time) else "UTC"
        wanted, known = _arrow(dtype, zone), self._known(expression)
        computed = self._computed(known)
        if computed is not None and computed.type == wanted:
            return computed
        if isinstance(expression, ex.Attribute) and expression.index is ex.Each.PLAIN:
            name, first = expression.variable, interpret.value(expression)
            if self.query.variables[name].iterated:
                held = (bag.get(name) for bag in self._bags)
                return pa.array([None if bag is None else [first({name: [one]}) for one in bag] for bag in held])
        return _array(list(map(interpret.value(known), self._bags)), wanted, expression)

    def _attribute(self, node: ex.Attribute) -> pa.Array | pa.ChunkedArray | None:
        """An attribute of a variable in its own type: of its event, of an event that an index chooses, or of each."""
        if len(node.path) > 1:
            return None
        place, attributes = self.variables[node.variable]
        number = list(attributes).index(node.path[0])
        column = self.found.column(names.variable(place))
        if not pa.types.is_list(column.type):
            dtype = column.type.field(number).type
            if ex.offset_of(node.index) == 0:
                return pa.chunked_array([chunk.flatten()[number] for chunk in column.chunks], dtype)
            return of_values(map(interpret.value(node), self._bags), dtype)
        dtype = column.type.value_type.field(number).type
        if node.index is not ex.Each.PLAIN:
            return of_values(map(interpret.value(node), self._bags), dtype)
        return pa.chunked_array([_of_each(chunk, number) for chunk in column.chunks], pa.list_(dtype))

    def _computed(self, expression: ex.Expression) -> pa.ChunkedArray | None:
        """An expression over the single events of matches, computed on columns; None where Python must."""
        columns: dict[tuple[str, str], pa.ChunkedArray] = {}
        for node in expression.walk():
            if not isinstance(node, ex.Attribute):
                continue
            name, attribute = node.variable, node.path[0]
            if name == ASKED:
                columns[name, attribute] = self.found.column(attribute)
            elif not self.query.variables[name].iterated:
                found = self._attribute(ex.Attribute(name, (attribute,)))
                assert found is not None
                columns[name, attribute] = found
            else:
                return None
        return column_of(expression, lambda node: columns[node.variable, node.path[0]], self.found.num_rows)

    def _known(self, expression: ex.Expression) -> ex.Expression:
        """An expression that reads the aggregates which the search has computed."""
        return expression.transform(lambda node: self.asked.get(node, node))

    def _whole(self, name: str) -> pa.ChunkedArray:
        """A variable's events under the names of their attributes."""
        place, attributes = self.variables[name]
        column = self.found.column(names.variable(place))
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        named = pa.struct([pa.field(attribute, kind.field(number).type) for number, attribute in enumerate(attributes)])
        wanted = pa.list_(named) if pa.types.is_list(column.type) else named
        return pa.chunked_array([renamed(chunk, wanted) for chunk in column.chunks], wanted)


def _of_each(lists: pa.ListArray, number: int) -> pa.ListArray:
    """A field of all structs in lists."""
    return pa.ListArray.from_arrays(lists.offsets, lists.values.field(number), mask=lists.is_null())


def grouped(bound: BoundQuery, rows: list[list[Any]], time: pa.DataType) -> pa.Table:
    """Rows over all matches as a table; the first value of each is its window, where there are windows."""
    returns, every_us = bound.query.returns, bound.query.every_us
    windows: dict[str, pa.Array] = {}
    if every_us is not None:
        starts = [row[0] for row in rows]
        windows["window_start"] = of_values(starts, pa.int64()).cast(time)
        windows["window_end"] = of_values([start + every_us for start in starts], pa.int64()).cast(time)
        rows = [row[1:] for row in rows]
    columns = zip(*rows, strict=True) if rows else ([] for _ in returns)
    return pa.table(
        windows
        | {
            returned.name: _array(list(column), _arrow(dtype), returned.expression)
            for returned, column, (_, dtype) in zip(returns, columns, bound.columns, strict=True)
        }
    )


def _array(values: list[Any], dtype: pa.DataType | None, expression: ex.Expression) -> pa.Array:
    """Computed values; without a type Arrow infers one."""
    if dtype is not None:
        return as_array(values, dtype, print_expression(expression))
    try:
        return of_values(values)
    except Exception as problem:  # Arrow's own, and whatever the classes of values raise
        raise TypeMismatchError(
            f"The values of `{print_expression(expression)}` are of no type: {message_of(problem)}.",
            hint=OF_MONOIDS,
        ) from None


def _arrow(dtype: DataType, zone: str | None = "UTC") -> pa.DataType | None:
    """The Arrow type of a computed column; None lets Arrow see for itself."""
    if dtype.kind is Kind.TIMESTAMP:
        return pa.timestamp("us", zone)
    if dtype.kind is Kind.ARRAY and dtype.element is not None:
        element = _arrow(dtype.element, zone)
        return None if element is None else pa.list_(element)
    return None if dtype.kind is Kind.NULL else ARROW.get(dtype.kind)


# --- over all matches -----------------------------------------------------------------------------


def _rows_of_groups(
    query: alg.Query,
    keys: Mapping[ex.Expression, ex.Expression],
    found: Iterable[tuple[int | None, Bags, Member]],
    fold: Callable[[list[Member]], Known],
) -> list[list[Any]]:
    """Group what was found; a row for each window and group that HAVING keeps, or one in all.

    `keys` are those of GROUP BY, each with its meaning for a match; `found` are the window, the events that keys read,
    and what is added up by `fold` to the aggregates of a group.
    """
    evaluated = [interpret.value(meaning) for meaning in keys.values()]
    groups: dict[tuple[Any, ...], tuple[list[Any], list[Member]]] = {}
    if not keys and query.every_us is None:
        groups[None,] = [], []
    for window, bags, member in found:
        values = [value(bags) for value in evaluated]
        groups.setdefault((window, *map(_group_name, values)), (values, []))[1].append(member)
    rows = []
    for key, (values, members) in groups.items():
        # Keys and aggregates become constants (R4, R40).
        known = fold(members) | dict(zip(keys, values, strict=True))
        if query.having is None or _settled(query.having, known) is True:
            windows = [] if query.every_us is None else [key[0]]
            rows.append([*windows, *(_settled(one.expression, known) for one in query.returns)])
    return rows


def _group_name(value: Any) -> Any:
    """A value as a key of a dict: NaN is one value, and TRUE is not 1."""
    return "NaN" if value != value else (isinstance(value, bool), value)  # noqa: PLR0124


def _settled(expression: ex.Expression, known: Known) -> Any:
    """The value of an expression of which some parts are known."""

    def settle(node: ex.Expression) -> ex.Expression:
        return ex.Literal(known[node]) if node in known else node.map_children(settle)

    return interpret.value(settle(expression))({})


def _aggregated(node: ex.Aggregate, members: list[Bags]) -> Any:
    """An aggregate over the events of all matches of a group."""
    if node.argument is None:
        return len(members)
    if not members and node.monoid is None and node.function not in ("count", "sum"):
        return None
    (variable,) = ex.variables_in(node.argument)
    together = [event for bags in members for event in bags.get(variable, ())]
    if together and node.function in ("first", "last"):  # of all events, whatever matches they are in
        choose = min if node.function == "first" else max
        together = [choose(together, key=lambda event: place_of(event[names.POSITION]))]
    try:
        return interpret.value(node)({variable: together})
    except NumberTooLargeError:
        from tocsin.kernels.trends.totals import too_large

        raise too_large(node.function) from None


def answered(trend: Trend, counted: pa.Table | None) -> list[list[Any]]:
    """The rows over all matches, from what tasks have counted."""
    from tocsin.engines.worker.summaries import TOTALS, WINDOW, added_up
    from tocsin.kernels.trends.request import keys_of, needs_of, requested_in

    query = trend.kernel.query
    keys = keys_of(query, trend.machine)
    needs = needs_of(keys)
    attributes = [attribute for wanted in needs.values() for attribute in wanted]

    def fold(totals: list[Totals]) -> Known:
        summed = added_up(totals, trend.kinds)
        asked = zip(requested_in(query), trend.answers, strict=True)
        return {one.expression: answer.of(summed) for one, answer in asked}

    def found() -> Iterator[tuple[int | None, Bags, Totals]]:
        for row in counted.to_pylist() if counted is not None else []:
            totals = pickle.loads(row.pop(TOTALS))
            window = row.pop(WINDOW, None)
            event = dict(zip(attributes, row.values(), strict=True))
            yield window, {name: [event] for name in needs}, totals

    return _rows_of_groups(query, keys, found(), fold)
