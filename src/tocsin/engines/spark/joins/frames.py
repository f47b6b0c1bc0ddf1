"""A join plan and its inputs → one DataFrame of matches, by Spark's own joins and unions. Nothing runs here.

Inside, columns have positional names under the reserved prefix, so that no name of a user's column or variable can
clash, whatever the session's rules on case:

===================  ======================================================================
`__tocsin_3_us`      time of the third variable's event in microseconds
`__tocsin_3_d1`      the first of its digests, for `match_id`; `__tocsin_3_d2` the second
`__tocsin_3_7`       its seventh column
`__tocsin_3_near`    a time bucket that a row looks into when the third variable is joined
`__tocsin_3_bucket`  the one that a row of the other side lies in
`__tocsin_3_window`  the sliding window its event lies in
`__tocsin_out_2`     the second output column
===================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, ge, gt, le, lt, or_

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.bags import Bag, Binding, Copies
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.inputs import Inputs, Part, Stream, part_of
from tocsin.engines.spark.joins import times
from tocsin.engines.spark.slices import slice_of
from tocsin.engines.spark.spark_types import Shape, shape_of
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import join_on, select, union, where, with_columns
from tocsin.engines.spark.typed_columns import Value, compare, meet, null, value_of
from tocsin.language import expressions as ex
from tocsin.plan.joins.model import Anti, Branch, Join, Limit, Pair, Plan, Prefilter, Scan, Sliding, Span, Way

NEAR, BUCKET, WINDOW = "near", "bucket", "window"
START, END, OUT = "__tocsin_start", "__tocsin_end", "__tocsin_out_"
ABSENT = "not"  # the label of an absent event's columns: no two are ever in one row


@dataclass(frozen=True)
class Source:
    """The events of a variable under the names they have inside: `__tocsin_<label>_<number of the column>`."""

    stream: Stream
    part: Part
    binding: Binding

    def name(self, suffix: object) -> str:
        """The name of one of its columns."""
        return self.part.column_name(suffix)

    def column(self, suffix: object) -> Column:
        """One of its columns."""
        return F.col(self.name(suffix))

    @property
    def micros(self) -> Column:
        """The time of its event."""
        return self.column("us")

    @property
    def micros_of_time(self) -> Column:
        """The time of its event, before it is a column."""
        return self.part.micros

    def key(self, attribute: str) -> Value:
        """An attribute that partitions."""
        return value_of(*self.binding.attribute((attribute,)))

    def column_of(self, attribute: str) -> str:
        """The name of an attribute's column."""
        return self.name(self.stream.schema.names.index(attribute))


class BranchFrame:
    """Joins the variables of one signature."""

    def __init__(
        self,
        query: alg.Query,
        branch: Branch,
        inputs: Inputs,
        shapes: Mapping[str, Shape],
        unbound: Mapping[str, Binding | Bag],
        sliding: Sliding | None = None,
    ) -> None:
        self.query = query
        self.branch = branch
        self.inputs = inputs
        self.sliding = sliding if branch.joins else None
        stems = {copy: name for name, copies in branch.bags.items() for copy in copies}
        self.sources = {
            scan.variable: _source(inputs.streams[scan.type], str(number), shapes[stems[scan.variable]])
            for number, scan in enumerate(branch.scans)
        }
        self._first = self.sources[branch.scan.variable]
        self.bindings: dict[str, Binding | Bag] = {**unbound}
        self.bindings |= {name: source.binding for name, source in self.sources.items()}
        for name, copies in branch.bags.items():
            if query.variables[name].iterated:
                self.bindings[name] = _bag(shapes[name], tuple(self.sources[copy].binding for copy in copies))
        self.compiler = Compiler(self.bindings)

    def frame(self, returns: tuple[alg.Returned, ...]) -> DataFrame:
        """The matches of the branch: interval, hashes and output columns."""
        joined = self._scan(self.branch.scan)
        joined = self._without(joined, self.branch.absences)
        for join in self.branch.joins:
            joined = self._without(self._join(joined, join), join.absences)
        if self.branch.ways:
            joined = self._in_some_way(joined, self.branch.ways)
        start = F.least(*self._micros(self.branch.firsts))
        end = F.greatest(*self._micros(self.branch.lasts))
        if self.sliding is not None:
            # Every window that holds the match has found it: the one its start belongs to reports it.
            joined = where(joined, self._first.column(WINDOW) == slice_of(start, self.sliding.slide_us))
        if self.query.having is not None:
            joined = where(joined, self.compiler.condition(self.query.having))
        kind = self.inputs.time_kind
        return select(
            joined,
            Value(start, kind, in_micros=True).output.alias(START),
            Value(end, kind, in_micros=True).output.alias(END),
            *identity.hashes(start, end, self._digests()),
            *(
                self.compiler.output(returned.expression).alias(f"{OUT}{number}")
                for number, returned in enumerate(returns)
            ),
        )

    def _digests(self) -> dict[str, identity.Digests]:
        found = {}
        for name in self.query.variables:
            copies = [self.sources[copy] for copy in self.branch.bags.get(name, ())]
            found[name] = identity.copies(*([copy.column(digest) for copy in copies] for digest in ("d1", "d2")))
        return found

    # --- scans ------------------------------------------------------------------------------------

    def events(self, scan: Scan) -> DataFrame:
        """The events of a variable that pass the conditions on them alone."""
        return self._rows(self.sources[scan.variable], scan, self.compiler)

    def _scan(self, scan: Scan, *more: Column) -> DataFrame:
        source, id = self.sources[scan.variable], self.inputs.id
        columns = source.part.columns
        # The digests are made here, so that columns nobody asks for need not travel.
        first, second = identity.digests(identity.names_of(source.stream.type, columns, id=id), columns, id=id)
        digests = [first.alias(source.name("d1")), second.alias(source.name("d2"))]
        if scan.prefilter is None:
            rows = self._rows(source, scan, self.compiler, *digests, *more)
        else:
            rows = with_columns(self.events(scan), *digests, *more)
        if self.sliding is None:
            return rows
        return with_columns(rows, F.explode(times.windows(source.micros, self.sliding)).alias(source.name(WINDOW)))

    def _rows(self, source: Source, scan: Scan, compiler: Compiler, *more: Column) -> DataFrame:
        """The events that pass the conditions on them alone, with their time, and more columns before any prefilter."""
        time = F.col(source.column_of(source.stream.time))
        conditions = [*self._of_one_event(source, scan, compiler), time.isNotNull()]
        micros = source.micros_of_time.alias(source.name("us"))
        rows = with_columns(where(source.part.renamed, reduce(and_, conditions)), micros, *more)
        return rows if scan.prefilter is None else self._prefiltered(rows, source, scan.prefilter, compiler)

    def _of_one_event(self, source: Source, scan: Scan, compiler: Compiler) -> Iterable[Column]:
        """Conditions on the events of a variable alone."""
        if source.part.kind is not None:
            yield source.part.kind == F.lit(source.stream.type)
        yield from (source.key(name).column.isNotNull() for name in self.query.partition.same)
        yield from (compiler.condition(condition) for condition in scan.conditions)

    def _prefiltered(self, rows: DataFrame, source: Source, prefilter: Prefilter, compiler: Compiler) -> DataFrame:
        near = prefilter.near
        rare = self.sources[near.anchor]
        found = next(scan for scan in self.branch.scans if scan.variable == near.anchor)
        attributes = [*self.query.partition.attributes]
        for key in prefilter.keys:
            attributes += [one.path[0] for one in ex.references_in(key) if one.variable == near.anchor]
        events = select(
            self._rows(rare, replace(found, prefilter=None), self.compiler),
            F.explode(times.buckets(rare.micros, near.low_us, near.high_us, near.width_us)).alias(source.name(NEAR)),
            *(F.col(rare.column_of(name)) for name in dict.fromkeys(attributes)),
        ).distinct()
        conditions = [_meets(source), *self._same_partition(rare, source)]
        conditions += [compiler.condition(key) for key in prefilter.keys]
        placed = _placed(rows, source, times.bucket(source.micros, near.width_us))
        kept = join_on(placed, events.hint("broadcast"), reduce(and_, conditions), "left_semi")
        return kept.drop(source.name(BUCKET))

    # --- joins ------------------------------------------------------------------------------------

    def _join(self, joined: DataFrame, join: Join) -> DataFrame:
        source = self.sources[join.scan.variable]
        near, more = join.near, list[Column]()
        if near is not None:
            more.append(times.bucket(source.micros_of_time, near.width_us).alias(source.name(BUCKET)))
        other = self._scan(join.scan, *more)
        conditions: list[Column] = []
        if near is not None:
            anchor = self.sources[near.anchor]
            buckets = times.buckets(anchor.micros, near.low_us, near.high_us, near.width_us)
            joined = _looking(joined, source, buckets)
            conditions += [_meets(source), times.is_near(source.micros, anchor.micros, near)]
        if self.sliding is not None:
            conditions.append(self._first.column(WINDOW) == source.column(WINDOW))
        conditions += self._same_partition(self._first, source)
        conditions += [self.compiler.condition(condition) for condition in join.keys + join.conditions]
        conditions += map(self._before, join.before)
        if join.span is not None:
            conditions.append(self._is_within(join.span))
        if not conditions:
            return joined.crossJoin(other)
        return join_on(joined, other, reduce(and_, conditions), "inner")

    def _same_partition(self, one: Source, other: Source) -> Iterable[Column]:
        """PARTITION BY takes NULL for a key like any other, `[k]` does not (R11)."""
        for name in self.query.partition.keys:
            left, right = meet(one.key(name), other.key(name))[0]
            yield left.eqNullSafe(right)
        for name in self.query.partition.same:
            yield compare("=", one.key(name), other.key(name))

    # --- absences ---------------------------------------------------------------------------------

    def _without(self, joined: DataFrame, absences: tuple[Anti, ...]) -> DataFrame:
        return reduce(lambda rows, absence: self._by_absence(rows, absence, "left_anti"), absences, joined)

    def _by_absence(self, joined: DataFrame, absence: Anti, how: str) -> DataFrame:
        """The rows without a blocking event (`left_anti`), or those with one (`left_semi`).

        The blocking events are copied into the buckets they could block from, never the rows, which would then be there
        twice.
        """
        name = absence.scan.variable
        types = dict.fromkeys(each.type for each in alg.absences_in(self.query.pattern) if each.variable == name)
        shape = shape_of(name, [self.inputs.streams[kind].schema for kind in types])
        source = _source(self.inputs.streams[absence.scan.type], ABSENT, shape)
        compiler = Compiler({**self.bindings, name: source.binding})
        others = self._rows(source, absence.scan, compiler)
        conditions: list[Column] = []
        near = absence.near
        if near is not None:
            others = _looking(others, source, times.buckets(source.micros, -near.high_us, -near.low_us, near.width_us))
            joined = _placed(joined, source, times.bucket(self.sources[near.anchor].micros, near.width_us))
            conditions.append(_meets(source))
        conditions += self._same_partition(self._first, source)
        conditions += [compiler.condition(condition) for condition in absence.keys + absence.conditions]
        conditions += [self._compared(source.micros, limit, gt if limit.strict else ge) for limit in absence.lower]
        conditions += [self._compared(source.micros, limit, lt if limit.strict else le) for limit in absence.upper]
        return join_on(joined, others, reduce(and_, conditions, F.lit(True)), how).drop(source.name(BUCKET))

    def _compared(self, micros: Column, limit: Limit, over: Callable[..., Column]) -> Column:
        anchor = (F.greatest if limit.latest else F.least)(*self._micros(limit.variables))
        if limit.offset_us == 0:
            return over(micros, anchor)
        return over(F.try_subtract(micros, anchor), F.lit(limit.offset_us))

    def _in_some_way(self, joined: DataFrame, ways: tuple[Way, ...]) -> DataFrame:
        """Keep the rows that one derivation allows; where derivations differ in an absence, it is a column."""
        flags: dict[Anti, str] = {}
        for absence in dict.fromkeys(absence for way in ways for absence in way.absences):
            flag = flags[absence] = f"__tocsin_blocked_{len(flags)}"
            blocked = with_columns(self._by_absence(joined, absence, "left_semi"), F.lit(True).alias(flag))
            free = with_columns(self._by_absence(joined, absence, "left_anti"), F.lit(False).alias(flag))
            joined = blocked.unionByName(free)
        allowed = (
            reduce(and_, [*map(self._before, way.before), *(~F.col(flags[each]) for each in way.absences)])
            for way in ways
        )
        return where(joined, reduce(or_, allowed))

    # --- time -------------------------------------------------------------------------------------

    def _micros(self, variables: Iterable[str]) -> list[Column]:
        return [self.sources[name].micros for name in variables]

    def _before(self, pair: Pair) -> Column:
        one, other = self._micros(pair)
        return one < other

    def _is_within(self, span: Span) -> Column:
        start, end = F.least(*self._micros(span.firsts)), F.greatest(*self._micros(span.lasts))
        # A distance beyond 64 bits is NULL, and beyond any window.
        return F.try_subtract(end, start) < F.lit(min(span.window_us, 2**63 - 1))


def _looking(frame: DataFrame, source: Source, buckets: Column) -> DataFrame:
    """Each row once for every time bucket it looks into, when `source` is joined."""
    return with_columns(frame, F.explode(buckets).alias(source.name(NEAR)))


def _placed(frame: DataFrame, source: Source, bucket: Column) -> DataFrame:
    """Each row with the time bucket it lies in, when `source` is joined."""
    return with_columns(frame, bucket.alias(source.name(BUCKET)))


def _meets(source: Source) -> Column:
    """Whether one row looks into the time bucket in which the other lies."""
    return source.column(NEAR) == source.column(BUCKET)


def _source(stream: Stream, label: str, shape: Shape) -> Source:
    part = replace(part_of(stream), label=label)
    return Source(stream, part, Binding({name: (part.cast(name, dtype), dtype) for name, dtype in shape.items()}))


def matches(
    query: alg.Query, plan: Plan, inputs: Inputs, branch_frame: Callable[..., BranchFrame] = BranchFrame
) -> DataFrame:
    """The matches of a planned query; `branch_frame` joins the variables of one branch.

    The columns are `match_id`, `start`, `end`, then those of RETURN, or one per variable: a struct, or an array of
    structs in order of time.
    """
    shapes = shapes_of(query, inputs)
    returns = query.returns or tuple(alg.Returned(name, ex.Variable(name)) for name in query.variables)
    # Made once for all branches: every call to Spark takes a while, and most variables of a long OR are unbound.
    unbound = {
        name: _bag(shape, ()) if query.variables[name].iterated else _unbound(shape)
        for name, shape in shapes.items()
        if any(name not in branch.bags for branch in plan.branches)
    }
    if not plan.branches:
        raise errors.InternalError("A plan without branches.", where=query.pattern.where)
    made = (branch_frame(query, branch, inputs, shapes, unbound, plan.sliding) for branch in plan.branches)
    united = union([each.frame(returns) for each in made], by_name=True)
    return select(
        identity.numbered(united, id=inputs.id),
        identity.match_id(id=inputs.id).alias("match_id"),
        F.col(START).alias("start"),
        F.col(END).alias("end"),
        *(F.col(f"{OUT}{number}").alias(returned.name) for number, returned in enumerate(returns)),
    )


def _bag(shape: Shape, events: tuple[Binding, ...]) -> Bag:
    fields = {name: (name, dtype) for name, dtype in shape.items()}
    if events:
        return Copies(F.array(*(event.event for event in events)), fields, events)
    struct = T.StructType([T.StructField(name, dtype) for name, dtype in shape.items()])
    return Bag(null(T.ArrayType(struct)), fields)


def _unbound(shape: Shape) -> Binding:
    return Binding({attribute: (F.lit(None), dtype) for attribute, dtype in shape.items()}, is_bound=False)


def shapes_of(query: alg.Query, inputs: Inputs) -> Mapping[str, Shape]:
    """The attributes of every positive variable."""
    return {
        name: shape_of(name, [inputs.streams[kind or ""].schema for kind in what.types])
        for name, what in query.variables.items()
    }
