"""A plan and its inputs → one DataFrame of matches, by Spark's own joins and unions. Nothing runs here.

Inside, columns have positional names under the reserved prefix, so that no name of a user's column or variable can
clash, whatever the session's rules on case:

=================  ======================================================================
`__tocsin_3_us`    time of the third variable's event in microseconds
`__tocsin_3_7`     its seventh column
`__tocsin_near`    the time buckets an event looks into; `__tocsin_bucket` the one it lies in
`__tocsin_out_2`   the second output column
=================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.physical import identity, instants
from tocsin.physical.columns import Binding, Compiler, compare
from tocsin.physical.inputs import Inputs, Stream
from tocsin.physical.plan import Branch, Join, Nearness, Pair, Plan, Scan, Span
from tocsin.physical.shapes import Shape, shape_of
from tocsin.physical.values import Kind, Value, meet, value_of

NEAR, BUCKET = "__tocsin_near", "__tocsin_bucket"
START, END = "__tocsin_start", "__tocsin_end"


def matches(query: alg.Query, plan: Plan, inputs: Inputs) -> DataFrame:
    """The matches of a planned query.

    The columns are `match_id`, `start`, `end`, then those of RETURN, or one struct per variable.
    """
    shapes = {
        name: shape_of(name, [inputs.streams[kind or ""].schema for kind in what.types])
        for name, what in query.variables.items()
    }
    returns = query.returns or tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)
    # Made once for all branches: every call to Spark takes a while, and most variables of a long OR are unbound.
    unbound = {
        name: Binding({attribute: (F.lit(None), dtype) for attribute, dtype in shape.items()}, is_bound=False)
        for name, shape in shapes.items()
        if any(all(scan.variable != name for scan in branch.scans) for branch in plan.branches)
    }
    absent = {name: identity.absent(name) for name in unbound}
    frames = [_Branch(query, branch, inputs, shapes, unbound, absent).frame(returns) for branch in plan.branches]
    if not frames:
        raise errors.InternalError("A plan without branches.", where=query.pattern.where)
    united = reduce(lambda one, other: one.unionByName(other), frames)
    named = identity.with_match_id(united, id=inputs.id)
    return named.select(
        F.col(identity.MATCH_ID).alias("match_id"),
        F.col(START).alias("start"),
        F.col(END).alias("end"),
        *(F.col(_out(number)).alias(returned.name) for number, returned in enumerate(returns)),
    )


def _out(number: int) -> str:
    return f"__tocsin_out_{number}"


class _Branch:
    """Joins the variables of one signature."""

    def __init__(
        self,
        query: alg.Query,
        branch: Branch,
        inputs: Inputs,
        shapes: Mapping[str, Shape],
        unbound: Mapping[str, Binding],
        absent: Mapping[str, list[Column]],
    ) -> None:
        self.query = query
        self.branch = branch
        self.inputs = inputs
        self.shapes = shapes
        self.unbound = unbound
        self.absent = absent
        self.numbers = {scan.variable: number for number, scan in enumerate(branch.scans)}
        self.streams = {scan.variable: inputs.streams[scan.type] for scan in branch.scans}
        self.bindings = {name: self._binding(name, shape) for name, shape in shapes.items()}
        self.compiler = Compiler(self.bindings)

    def frame(self, returns: tuple[alg.Returned, ...]) -> DataFrame:
        """The matches of the branch: interval, hashes and output columns."""
        joined = self._scan(self.branch.scan)
        done = [self.branch.scan.variable]
        for join in self.branch.joins:
            joined = self._join(joined, done, join)
            done.append(join.scan.variable)
        if self.branch.orders:
            joined = joined.filter(
                reduce(or_, (reduce(and_, map(self._before, order)) for order in self.branch.orders))
            )
        if self.query.having is not None:
            joined = joined.filter(self.compiler.condition(self.query.having))
        start = _least([self._micros(name) for name in self.branch.firsts])
        end = _greatest([self._micros(name) for name in self.branch.lasts])
        kind = self.inputs.time_kind
        return joined.select(
            Value(start, kind, in_micros=True).output.alias(START),
            Value(end, kind, in_micros=True).output.alias(END),
            *identity.hashes(start, end, self._events(), id=self.inputs.id),
            *(self.compiler.output(returned.expression).alias(_out(number)) for number, returned in enumerate(returns)),
        )

    # --- columns ----------------------------------------------------------------------------------

    def _name(self, variable: str, suffix: object) -> str:
        return f"__tocsin_{self.numbers[variable]}_{suffix}"

    def _micros(self, variable: str) -> Column:
        return F.col(self._name(variable, "us"))

    def _binding(self, variable: str, shape: Shape) -> Binding:
        stream = self.streams.get(variable)
        if stream is None:
            return self.unbound[variable]
        own = {name: number for number, name in enumerate(stream.schema.names)}
        columns = {}
        for name, dtype in shape.items():
            column = F.col(self._name(variable, own[name])) if name in own else F.lit(None)
            exact = name in own and stream.schema[name].dataType == dtype
            columns[name] = (column if exact else column.cast(dtype), dtype)
        return Binding(columns)

    def _events(self) -> dict[str, identity.Event | list[Column]]:
        events: dict[str, identity.Event | list[Column]] = {
            name: self.absent[name] for name in self.shapes if name not in self.streams
        }
        for variable, stream in self.streams.items():
            columns = {
                field.name: (F.col(self._name(variable, number)), field.dataType)
                for number, field in enumerate(stream.schema.fields)
            }
            events[variable] = identity.Event(stream.type, columns)
        return events

    # --- scan and join ----------------------------------------------------------------------------

    def _scan(self, scan: Scan) -> DataFrame:
        stream = self.streams[scan.variable]
        names = stream.schema.names
        frame = stream.frame.toDF(*(self._name(scan.variable, number) for number in range(len(names))))
        time = F.col(self._name(scan.variable, names.index(stream.time)))
        conditions = [time.isNotNull()]
        if stream.type_column is not None:
            type_name = F.col(self._name(scan.variable, names.index(stream.type_column)))
            conditions.insert(0, type_name == F.lit(stream.type))
        conditions += [self._key(scan.variable, name).column.isNotNull() for name in self.query.partition.same]
        conditions += [self.compiler.condition(condition) for condition in scan.conditions]
        micros = _micros_of(time, stream)
        return frame.filter(reduce(and_, conditions)).withColumn(self._name(scan.variable, "us"), micros)

    def _key(self, variable: str, attribute: str) -> Value:
        return value_of(*self.bindings[variable].attribute((attribute,)))

    def _join(self, joined: DataFrame, done: list[str], join: Join) -> DataFrame:
        variable = join.scan.variable
        other = self._scan(join.scan)
        conditions: list[Column] = []
        if join.near is not None:
            joined, other = self._in_buckets(joined, other, variable, join.near)
            conditions += [F.col(NEAR) == F.col(BUCKET), self._is_near(variable, join.near)]
        partition = self.query.partition
        for name in partition.keys:
            one, two = meet(self._key(done[0], name), self._key(variable, name))[0]
            conditions.append(one.eqNullSafe(two))
        conditions += [compare("=", self._key(done[0], name), self._key(variable, name)) for name in partition.same]
        conditions += [self.compiler.condition(condition) for condition in join.keys + join.conditions]
        conditions += map(self._before, join.before)
        if join.span is not None:
            conditions.append(self._is_within(join.span))
        if not conditions:
            return joined.crossJoin(other)
        return joined.join(other, reduce(and_, conditions), "inner").drop(NEAR, BUCKET)

    def _in_buckets(
        self, joined: DataFrame, other: DataFrame, variable: str, near: Nearness
    ) -> tuple[DataFrame, DataFrame]:
        """Time buckets as wide as the distance: an event looks into at most two, and lies in exactly one."""
        width = near.high_us - near.low_us + 1
        anchor = self._micros(near.anchor)
        looks_into = F.sequence(
            _bucket(self._plus(anchor, near.low_us), width), _bucket(self._plus(anchor, near.high_us), width)
        )
        return (
            joined.withColumn(NEAR, F.explode(looks_into)),
            other.withColumn(BUCKET, _bucket(self._micros(variable), width)),
        )

    def _plus(self, micros: Column, offset_us: int) -> Column:
        """A sum that stops at the ends of BIGINT."""
        edge = 2**63 - 1 if offset_us >= 0 else -(2**63)
        return F.coalesce(F.try_add(micros, F.lit(offset_us)), F.lit(edge))

    def _minus(self, later: Column, earlier: Column) -> Column:
        # A difference beyond 64 bits is beyond any window: NULL drops it.
        return F.try_subtract(later, earlier)

    def _is_near(self, variable: str, near: Nearness) -> Column:
        return self._minus(self._micros(variable), self._micros(near.anchor)).between(near.low_us, near.high_us)

    def _before(self, pair: Pair) -> Column:
        return self._micros(pair[0]) < self._micros(pair[1])

    def _is_within(self, span: Span) -> Column:
        start = _least([self._micros(name) for name in span.firsts])
        end = _greatest([self._micros(name) for name in span.lasts])
        return self._minus(end, start) < F.lit(min(span.window_us, 2**63 - 1))


def _micros_of(time: Column, stream: Stream) -> Column:
    match stream.time_kind:
        case Kind.INSTANT:
            return instants.micros_of_instant(time)
        case Kind.LOCAL:
            return instants.micros_of_local(time)
    return time.cast("bigint")


def _bucket(micros: Column, width_us: int) -> Column:
    # Integer division rounds towards zero, which makes the bucket around zero wider and no match less: it is monotonic.
    return F.call_function("div", micros, F.lit(width_us))


def _least(columns: list[Column]) -> Column:
    return columns[0] if len(columns) == 1 else F.least(*columns)


def _greatest(columns: list[Column]) -> Column:
    return columns[0] if len(columns) == 1 else F.greatest(*columns)
