"""Aggregation over all matches: `RETURN COUNT(*), SUM(b.x) … GROUP BY …` (SEMANTICS §9, R4, R40).

Matches are enumerated and added up by Spark (`enumerated`), or counted in workers without being built (`counted`).

Every match is one row, with the events of its variables. An aggregate over all (match, event) pairs takes a bag's
values one below the other: the arrays of all aggregates of a match stand side by side and are exploded once, shorter
ones filled up with NULL, which every aggregate passes over. A value that a match has once is an array of one.

Integers are added exactly, and a sum beyond 64 bits is an error; doubles are added in no particular order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra import nodes as alg
from tocsin.engines.spark import scan
from tocsin.engines.spark.bags import Bag, Binding, Values, decimal_sum, fitting, range_of
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.compat import schema_of
from tocsin.engines.spark.computed import computed
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.scan import Shipment
from tocsin.engines.spark.search import bindings_of, run, search
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import aggregate, select, where
from tocsin.engines.spark.typed_columns import Kind, Value, value_of
from tocsin.engines.worker.summaries import ALL_TOTALS, TOTALS, WINDOW, Answers, counting
from tocsin.kernels.reach import Search
from tocsin.kernels.trends.request import keys_of, needs_of, requested_in
from tocsin.kernels.trends.totals import too_large
from tocsin.kernels.trends.trend_count import Trend
from tocsin.language import expressions as ex
from tocsin.options import Options
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Reader
from tocsin.plan.prepare import split

PLACE, ITEM, MATCHES = "__tocsin_place", "__tocsin_item", "__tocsin_matches"
AT, VALUE = "at", "value"
LONGEST_INTEGER = "decimal(19,0)"


def enumerated(kernel: Search, inputs: Inputs, options: Options) -> DataFrame:
    """The RETURN rows of a query over all its matches, which are found one by one and added up by Spark."""
    found = search(kernel, inputs, options, with_digests=False)
    query = kernel.query
    return overall(query, found.frame, bindings_of(query, found.shapes), time=inputs.time_kind)


def overall(query: alg.Query, frame: DataFrame, bindings: Mapping[str, Binding | Bag], *, time: Kind) -> DataFrame:
    """The RETURN rows of a query over all its matches: one in all, or one per window and group.

    `frame` has its matches after all policies, one row each; their start in microseconds is `__tocsin_start`.
    `bindings` are columns of `frame` for each variable that outputs mention, with positions where FIRST and LAST need
    them. `time` is the kind of the user's time columns.
    """
    made = split(query)
    found = _rows(made.query, frame, bindings, time)
    windows = [name for column in window_columns(query, time) for name in column.names]
    return found if made.is_native else computed(found, made, before=windows)


@dataclass(frozen=True)
class Key:
    """A group key: the column of a match, and then its name, its value and its output as columns of the groups."""

    name: str
    column: Column
    value: Value
    output: Column


def group_keys(
    expressions: Mapping[ex.Expression, ex.Expression], bindings: Mapping[str, Binding | Bag]
) -> dict[ex.Expression, Key]:
    """The keys of GROUP BY: for each as the query writes it, how it is computed from what variables hold."""
    compiler, found = Compiler(bindings), dict[ex.Expression, Key]()
    for written, expression in expressions.items():
        name = f"__tocsin_key_{len(found)}"
        after = F.col(name)
        if isinstance(expression, ex.Attribute):
            column, dtype = compiler.typed(expression)
            found[written] = Key(name, column, value_of(after, dtype), after)
        else:
            before = compiler.value(expression)
            value = before.held_in(after)
            found[written] = Key(name, before.column, value, value.output)
    return found


def returned(
    query: alg.Query,
    groups: DataFrame,
    keys: Mapping[ex.Expression, Key],
    known: Mapping[ex.Expression, Value],
    time: Kind,
) -> DataFrame:
    """The window and the columns of RETURN, for the groups that HAVING keeps; `known` are the values of aggregates."""
    compiler = Compiler({}, {expression: key.value for expression, key in keys.items()} | dict(known))
    if query.having is not None:
        groups = where(groups, compiler.condition(query.having))
    return select(
        groups,
        *window_columns(query, time),
        *(
            (keys[one.expression].output if one.expression in keys else compiler.output(one.expression)).alias(one.name)
            for one in query.returns
        ),
    )


def window_of(query: alg.Query) -> Column:
    """When the window begins in which a match starts."""
    start = F.col(names.START)
    return start - F.pmod(start, F.lit(query.every_us))


def window_columns(query: alg.Query, time: Kind) -> list[Column]:
    """When the window of a group begins and when it is over."""
    if query.every_us is None:
        return []
    bounds = {"window_start": F.col(WINDOW), "window_end": F.col(WINDOW) + query.every_us}
    return [Value(bound, time, in_micros=True).output.alias(name) for name, bound in bounds.items()]


@dataclass(frozen=True)
class _Part:
    """What a match brings to an aggregate: some values of a bag, or one."""

    node: ex.Aggregate
    name: str
    values: Values
    is_of_bag: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return self.values.each.kind

    @property
    def of_integers(self) -> bool:
        """Whether sums are added exactly: Spark adds BIGINTs in 64 bits, and decimals of 19 digits in 29."""
        return self.kind not in (Kind.DOUBLE, Kind.DECIMAL)


def _rows(query: alg.Query, frame: DataFrame, bindings: Mapping[str, Binding | Bag], time: Kind) -> DataFrame:
    """The RETURN rows of a query whose values are native."""
    keys = group_keys({one.expression: one.expression for one in query.group_by}, bindings)
    outputs = [one.expression for one in query.returns] + ([] if query.having is None else [query.having])
    nodes = dict.fromkeys(node for output in outputs for node in _aggregates_in(output, keys))
    parts = [_part(node, f"__tocsin_part_{number}", bindings) for number, node in enumerate(nodes)]
    by = [key.column.alias(key.name) for key in keys.values()]
    by += [] if query.every_us is None else [window_of(query).alias(WINDOW)]
    group = [F.col(name) for column in by for name in column.names]
    if any(part.is_of_bag for part in parts):
        rows = select(frame, *by, *(part.values.array.alias(part.name) for part in parts))
        rows = select(
            rows, *group, F.posexplode_outer(F.arrays_zip(*(F.col(part.name) for part in parts))).alias(PLACE, ITEM)
        )
        columns = [F.col(ITEM).getField(part.name) for part in parts]
        matches = F.count_if(F.coalesce(F.col(PLACE), F.lit(0)) == 0)
    else:
        rows = select(frame, *by, *(F.get(part.values.array, F.lit(0)).alias(part.name) for part in parts))
        columns = [F.col(part.name) for part in parts]
        matches = F.count(F.lit(1))
    combined = (
        one.alias(f"{part.name}_{number}")
        for part, column in zip(parts, columns, strict=True)
        for number, one in enumerate(_combined(part, column))
    )
    groups = aggregate(rows, group, matches.alias(MATCHES), *combined)
    known: dict[ex.Expression, Value] = {ex.Aggregate("count", None): Value(F.col(MATCHES), Kind.INTEGER)}
    for part in parts:
        first, second = (F.col(f"{part.name}_{number}") for number in (0, 1))
        known[part.node] = _result(part, first, second)
        if part.node.function == "sum" and not part.node.distinct and part.of_integers:
            # Also beyond 64 bits.
            known[ex.Call("digits", (part.node,))] = Value(_total(first, second).cast("string"), Kind.STRING)
    return returned(query, groups, keys, known, time)


def _aggregates_in(expression: ex.Expression, keys: Mapping[ex.Expression, Key]) -> Iterator[ex.Aggregate]:
    """All but COUNT(*), which every group has."""
    if expression in keys:
        return
    if isinstance(expression, ex.Aggregate):
        if expression.argument is not None:
            yield expression
        return
    for child in expression.children():
        yield from _aggregates_in(child, keys)


def _part(node: ex.Aggregate, name: str, bindings: Mapping[str, Binding | Bag]) -> _Part:
    argument = node.argument
    assert argument is not None
    (variable,) = ex.variables_in(argument)
    binding = bindings[variable]
    if isinstance(argument, ex.Variable):
        size = Value(binding.size, Kind.INTEGER)
        return _Part(node, name, Values(F.array(size.column), size))

    def compute(event: Binding) -> Value:
        value = Compiler({variable: event}).value(argument)
        if node.function not in ("first", "last"):
            return value
        at, _ = event.columns[names.POSITION]
        return value.held_in(F.struct(at.alias(AT), value.column.alias(VALUE)))

    return _Part(node, name, binding.values(compute), isinstance(binding, Bag))


def _combined(part: _Part, column: Column) -> list[Column]:
    """The aggregates of Spark that a part needs; `_result` puts them together."""
    distinct = part.node.distinct
    match part.node.function:
        case _ if isinstance(part.node.argument, ex.Variable):
            return [F.try_sum(column)]
        case "first":
            return [F.min_by(column.getField(VALUE), column.getField(AT))]
        case "last":
            return [F.max_by(column.getField(VALUE), column.getField(AT))]
        case "min":
            return [F.min(column)]
        case "max":
            return [F.max(column)]
        case "range":
            return [F.min(column), F.max(column)]
        case _ if part.kind is Kind.DOUBLE:
            column = column + 0.0  # −0.0 and 0.0 are one value
        case _:
            pass
    match part.node.function:
        case "count":
            return [F.count_distinct(column) if distinct else F.count(column)]
        case _ if distinct:
            return [F.collect_set(column)]
        case "collect":
            return [F.collect_list(column)]
        case "stddev":
            return [F.stddev_pop(column.cast("double"))]
        case _:
            addend = column.cast("bigint").cast(LONGEST_INTEGER) if part.of_integers else column
            return [F.try_sum(addend), F.count(column)]


def _result(part: _Part, first: Column, second: Column) -> Value:
    """The value of an aggregate from the columns of `_combined` (R18, R40)."""
    each, distinct = part.values.each, part.node.distinct
    element = each.held_in
    match part.node.function:
        case "count":
            return Value(F.coalesce(first, F.lit(0)).cast("bigint"), Kind.INTEGER)
        case "range":
            return range_of(element(first), element(second), too_large("range"))
        case "collect":
            folded = Values(first, each).fold("collect")
            return folded.held_in(F.when(F.col(MATCHES) > 0, folded.column))
        case "sum" | "avg" | "stddev" if distinct:
            return Values(first, each).fold(part.node.function)
        case "stddev":
            return Value(first, Kind.DOUBLE)
        case "avg":
            return Value(F.try_divide(first.cast("double"), second.cast("double")), Kind.DOUBLE)
        case "sum" if part.of_integers:
            # The number is right or the job fails: a NULL here would be an overflow that nobody sees (SEMANTICS §9).
            return Value(fitting(_total(first, second).try_cast("bigint"), too_large("sum")), Kind.INTEGER)
        case "sum":
            return decimal_sum(element(_total(first, second)))
        case _:
            return element(first)


def _total(total: Column, count: Column) -> Column:
    """A sum, 0 of no values."""
    return F.when(count > 0, total).otherwise(0)


# --- counted, without building a match ------------------------------------------------------------

# What a task sends is one row per group, however many matches there are; sums of any length travel as bytes. The second
# step is a Spark aggregation that collects these rows, and Python's integers.


def counted(trend: Trend, inputs: Inputs, options: Options) -> DataFrame:
    """The RETURN rows of a query over all its matches: the totals of tasks, added up and answered by group."""
    query = trend.kernel.query
    shipment, schema = ship(trend, inputs)
    totals = run(counting(trend, shipment.layout), shipment, schema, options)
    written = keys_of(query, trend.machine)
    fields = ((name, attribute) for name, attributes in needs_of(written).items() for attribute in attributes)
    events: dict[str, dict[str, tuple[Column, T.DataType]]] = {}
    for field, (name, attribute) in zip(schema.fields, fields, strict=False):
        events.setdefault(name, {})[attribute] = (F.col(field.name), field.dataType)
    keys = group_keys(written, {name: Binding(columns) for name, columns in events.items()})
    by = [key.column.alias(key.name) for key in keys.values()]
    by += [] if query.every_us is None else [F.col(WINDOW)]
    groups = aggregate(totals, by, F.collect_list(F.col(TOTALS)).alias(ALL_TOTALS))
    schema = T.StructType([field for field in schema_of(groups).fields if field.name != ALL_TOTALS])
    known: dict[ex.Expression, Value] = {}
    for number, (asked, answer) in enumerate(zip(requested_in(query), trend.answers, strict=True)):
        dtype: T.DataType = T.DoubleType()
        if answer.is_integer:
            dtype = T.StringType() if answer.as_digits else T.LongType()
        name = f"__tocsin_answer_{number}"
        schema = schema.add(name, dtype)
        known[asked.expression] = value_of(F.col(name), dtype)
    return returned(query, groups.mapInArrow(Answers(trend), schema), keys, known, inputs.time_kind)


def ship(trend: Trend, inputs: Inputs, *, stream: int = 0, rated: Sequence[str] = ()) -> tuple[Shipment, T.StructType]:
    """What travels, and the columns of what is counted: those of group keys, the window, and the totals."""
    query = trend.kernel.query
    needs = needs_of(keys_of(query, trend.machine))
    reader = Reader(trend.kernel, needs, ties=inputs.ties, with_digests=False)
    shipment, shapes = scan.ship(reader, inputs, stream=stream, rated=rated)
    dtypes = [shapes[name][one] for name, attributes in needs.items() for one in attributes]
    schema = T.StructType([T.StructField(f"f{number}", dtype) for number, dtype in enumerate(dtypes)])
    if query.every_us is not None:
        schema = schema.add(WINDOW, T.LongType())
    return shipment, schema.add(TOTALS, T.BinaryType())
