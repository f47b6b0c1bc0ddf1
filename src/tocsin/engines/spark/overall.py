"""Aggregation over all matches: `RETURN COUNT(*), SUM(b.x) … GROUP BY …` (SEMANTICS §9, R4, R40).

Matches are enumerated and added up by Spark (`enumerated`), or counted in workers without being built (`counted`).

Every match is one row, with the events of its variables. An aggregate over all (match, event) pairs takes a bag's
values one below the other: the arrays of all aggregates of a match stand side by side and are exploded once, shorter
ones filled up with NULL, which every aggregate passes over. Values that a match has once are on its first row only.

Integers are added exactly, and a sum beyond 64 bits is an error; doubles are added in no particular order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from tocsin.engines.spark.search import DEFAULTS, bindings_of, run, search
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import aggregate, select, where, with_columns
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


def enumerated(kernel: Search, inputs: Inputs, options: Options = DEFAULTS) -> DataFrame:
    """The RETURN rows of a query over all its matches, which are found one by one and added up by Spark."""
    found = search(kernel, inputs, options, with_digests=False)
    query = kernel.query
    return overall(query, found.frame, bindings_of(query, found.shapes), time=inputs.time_kind)


def overall(query: alg.Query, frame: DataFrame, bindings: Mapping[str, Binding | Bag], *, time: Kind) -> DataFrame:
    """The RETURN rows of a query over all its matches: one in all, or one per window and group.

    `frame` has its matches after all policies, one row each; their start in microseconds is `__tocsin_start`.
    `bindings` are columns of `frame` for each variable that outputs mention, with positions where FIRST and LAST need
    them (`sliced.positions`). `time` is the kind of the user's time columns.
    """
    made = split(query)
    found = _Overall(made.query, frame, bindings, time).rows()
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
    """The share of a match in an aggregate: a value of its own, or an array of those of a bag."""

    node: ex.Aggregate
    name: str
    column: Column
    each: Value  # a value, as far as its kind goes
    is_array: bool = False

    @property
    def of_integers(self) -> bool:
        """Whether sums are added exactly: Spark adds BIGINTs in 64 bits, and decimals of 19 digits in 29."""
        return self.each.kind not in (Kind.DOUBLE, Kind.DECIMAL)


@dataclass(frozen=True)
class _Overall:
    query: alg.Query
    frame: DataFrame
    bindings: Mapping[str, Binding | Bag]
    time: Kind

    def rows(self) -> DataFrame:
        keys, parts = self._keys, self._parts
        columns = [key.column.alias(key.name) for key in keys.values()]
        if self.query.every_us is not None:
            columns.append(window_of(self.query).alias(WINDOW))
        rows = select(self.frame, *columns, *(part.column.alias(part.name) for part in parts))
        rows = self._one_below_the_other(rows)
        groups = aggregate(
            rows,
            self._key_columns,
            F.count_if(F.col(PLACE) == 0).alias(MATCHES),
            *(column.alias(f"{part.name}_{number}") for part in parts for number, column in enumerate(_combined(part))),
        )
        known: dict[ex.Expression, Value] = {ex.Aggregate("count", None): Value(F.col(MATCHES), Kind.INTEGER)}
        for part in parts:
            first, second = (F.col(f"{part.name}_{number}") for number in (0, 1))
            known[part.node] = _result(part, first, second)
            if part.node.function == "sum" and not part.node.distinct and part.of_integers:
                # Also beyond 64 bits.
                known[ex.Call("digits", (part.node,))] = Value(_total(first, second).cast("string"), Kind.STRING)
        return returned(self.query, groups, keys, known, self.time)

    @cached_property
    def _keys(self) -> dict[ex.Expression, Key]:
        return group_keys({one.expression: one.expression for one in self.query.group_by}, self.bindings)

    @property
    def _key_columns(self) -> list[Column]:
        windows = [] if self.query.every_us is None else [F.col(WINDOW)]
        return [F.col(key.name) for key in self._keys.values()] + windows

    @cached_property
    def _parts(self) -> list[_Part]:
        wanted = [one.expression for one in self.query.returns]
        wanted += [self.query.having] if self.query.having is not None else []
        nodes = dict.fromkeys(node for expression in wanted for node in self._aggregates_in(expression))
        return [self._part(node, f"__tocsin_part_{number}") for number, node in enumerate(nodes)]

    def _aggregates_in(self, expression: ex.Expression) -> Iterator[ex.Aggregate]:
        """All but COUNT(*), which every group has."""
        if expression in self._keys:
            return
        if isinstance(expression, ex.Aggregate):
            if expression.argument is not None:
                yield expression
            return
        for child in expression.children():
            yield from self._aggregates_in(child)

    def _part(self, node: ex.Aggregate, name: str) -> _Part:
        argument = node.argument
        assert argument is not None
        (variable,) = ex.variables_in(argument)
        binding = self.bindings[variable]
        if isinstance(argument, ex.Variable):
            return _Part(node, name, binding.size, Value(binding.size, Kind.INTEGER))

        def compute(event: Binding) -> Value:
            value = Compiler({variable: event}).value(argument)
            if node.function not in ("first", "last"):
                return value
            at, _ = event.columns[names.POSITION]
            return value.held_in(F.struct(at.alias(AT), value.column.alias(VALUE)))

        if isinstance(binding, Bag):
            values = binding.values(compute)
            return _Part(node, name, values.array, values.each, is_array=True)
        value = binding.only_if_bound(compute(binding))
        return _Part(node, name, value.column, value)

    def _one_below_the_other(self, rows: DataFrame) -> DataFrame:
        arrays = [part.name for part in self._parts if part.is_array]
        if not arrays:
            return with_columns(rows, F.lit(0).alias(PLACE))
        keys = self._key_columns
        others = [F.col(part.name) for part in self._parts if not part.is_array]
        exploded = select(
            rows, *keys, *others, F.posexplode_outer(F.arrays_zip(*map(F.col, arrays))).alias(PLACE, ITEM)
        )
        place = F.coalesce(F.col(PLACE), F.lit(0))
        return select(
            exploded,
            *keys,
            place.alias(PLACE),
            *(F.when(place == 0, F.col(part.name)).alias(part.name) for part in self._parts if not part.is_array),
            *(F.col(ITEM).getField(name).alias(name) for name in arrays),
        )


def _combined(part: _Part) -> list[Column]:
    """The aggregates of Spark that a part needs; `_result` puts them together."""
    column, distinct = F.col(part.name), part.node.distinct
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
        case _ if part.each.kind is Kind.DOUBLE:
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
    element, distinct = part.each.held_in, part.node.distinct
    match part.node.function:
        case "count":
            return Value(F.coalesce(first, F.lit(0)).cast("bigint"), Kind.INTEGER)
        case "range":
            return range_of(element(first), element(second), too_large("range"))
        case "collect":
            folded = Values(first, part.each).fold("collect")
            return folded.held_in(F.when(F.col(MATCHES) > 0, folded.column))
        case "sum" | "avg" | "stddev" if distinct:
            return Values(first, part.each).fold(part.node.function)
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


def counted(trend: Trend, inputs: Inputs, options: Options = DEFAULTS) -> DataFrame:
    """The RETURN rows of a query over all its matches."""
    shipment, schema = ship(trend, inputs)
    return answers(trend, inputs, run(counting(trend, shipment.layout), shipment, schema, options))


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


def answers(trend: Trend, inputs: Inputs, counted: DataFrame) -> DataFrame:
    """The RETURN rows, from what tasks have counted."""
    written = keys_of(trend.kernel.query, trend.machine)
    fields = [(name, one) for name, attributes in needs_of(written).items() for one in attributes]
    bindings: dict[str, Binding] = {}
    for name in dict.fromkeys(name for name, _ in fields):
        own = {one: number for number, (of, one) in enumerate(fields) if of == name}
        dtypes = schema_of(counted)
        bindings[name] = Binding({one: (F.col(f"f{number}"), dtypes[number].dataType) for one, number in own.items()})
    return _answered(trend, counted, group_keys(written, bindings), inputs.time_kind)


def _answered(trend: Trend, counted: DataFrame, keys: dict[ex.Expression, Key], time: Kind) -> DataFrame:
    """Add up the totals of each group and answer what RETURN asks."""
    query = trend.kernel.query
    windows = [] if query.every_us is None else [F.col(WINDOW)]
    rows = select(counted, *(key.column.alias(key.name) for key in keys.values()), *windows, F.col(TOTALS))
    names = [*(F.col(key.name) for key in keys.values()), *windows]
    groups = aggregate(rows, names, F.collect_list(F.col(TOTALS)).alias(ALL_TOTALS))
    schema = T.StructType([field for field in groups.schema.fields if field.name != ALL_TOTALS])
    asked = requested_in(query)
    known: dict[ex.Expression, Value] = {}
    for number, (one, answer) in enumerate(zip(asked, trend.answers, strict=True)):
        dtype: T.DataType = T.DoubleType()
        if answer.is_integer:
            dtype = T.StringType() if answer.as_digits else T.LongType()
        name = f"__tocsin_answer_{number}"
        schema = schema.add(name, dtype)
        known[one.expression] = value_of(F.col(name), dtype)
    answered = groups.mapInArrow(Answers(trend), schema)
    return returned(query, answered, keys, known, time)
