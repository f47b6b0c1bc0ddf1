"""A program on Spark as one plan: per stratum one reading of the inputs, one shuffle, one search for all of its rules.

Matches of a stratum are passed on as rows: to the next stratum they are events, as far as its rules read what they
emit, and to the result they are themselves. So nothing is found twice, however many rules read it, and nothing is
cached. Rules that cannot share a search (policies, positions) are planned by themselves and added at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra.programs import Rule, emitting
from tocsin.analysis.attributes import attributes_by_variable
from tocsin.engines.rule_run import RESULT, Run
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.compat import schema_of
from tocsin.engines.spark.inputs import Inputs, Part, Stream, common_kind, part_of, parts_of, resolve
from tocsin.engines.spark.joint import Places, search, shown
from tocsin.engines.spark.scan import Mixed, event_types
from tocsin.engines.spark.spark_types import in_type
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select, union, where, with_columns
from tocsin.engines.spark.typed_columns import Kind, null
from tocsin.engines.worker.tasks import OF_MATCH, RULE
from tocsin.kernels.nested_loops import Kernel
from tocsin.plan import manifest as names
from tocsin.plan.manifest import Reader, needed
from tocsin.plan.rule_plan import RulePlan, Stratum

if TYPE_CHECKING:
    from tocsin.engines.spark.rule_engine import Spark

WHICH = "__tocsin_which"
ITSELF = -1


@dataclass(frozen=True)
class _Emitted:
    """The events of one `emit`, read from the matches of its rule: the values of its columns."""

    rule: int
    template: str
    values: Mapping[str, Column]


class Strata:
    """Renders the strata of a program; `wanted` are the rules whose matches are the result."""

    def __init__(self, engine: Spark, run: Run[DataFrame], wanted: Sequence[Rule]) -> None:
        self.engine, self.run, self.wanted = engine, run, wanted
        self.plan, self.options = run.plan, run.plan.options
        self.rules = run.plan.needed(wanted)
        self.joint: dict[str, RulePlan] = {}  # the rules that shared searches find, by name
        self.places = Places()
        self.found: DataFrame | None = None  # the matches of shared searches, each in its row
        self.time_kind = Kind.INTEGER

    def frame(self) -> DataFrame:
        """The matches of all rules that are wanted."""
        for stratum in self.plan.strata(self.wanted):
            if stratum.shared:
                self._search(stratum)
        frames = [] if self.found is None else [self._shown(self.found)]
        return union([*frames, *(self._alone(rule) for rule in self.wanted if rule.name not in self.joint)])

    # --- one stratum ------------------------------------------------------------------------------

    def _search(self, stratum: Stratum) -> None:
        """Search for the matches of the rules of a stratum that share a search."""
        reads = list(dict.fromkeys(name for one in stratum.shared for name in one.rule.reads))
        emitted = self._emitted([name for name in reads if name in self.plan.program.emitters])
        inputs, parts, mixed = self._inputs(reads, emitted)
        self.time_kind = inputs.time_kind
        if self.found is not None:
            own = [self._part(inputs, one) for one in emitted]
            mixed.append(self._passed_on(self.found, own, emitted, stratum.number))
        readers = {one.number: self._reader(one, inputs) for one in stratum.shared}
        self.found = search(readers, inputs, parts, mixed, self.places, self.options)
        self.joint |= {one.rule.name: one for one in stratum.shared}

    def _reader(self, one: RulePlan, inputs: Inputs) -> Reader[Kernel]:
        query = one.plan.loops.query
        attributes = attributes_by_variable(query, event_types(inputs).schemas)
        if one.rule not in self.wanted:
            query = replace(query, returns=tuple(chain(*(emitting(one.rule, emit).returns for emit in one.rule.emits))))
        return Reader(one.plan.loops, needed(query, attributes), one.plan.options.id)

    # --- inputs -----------------------------------------------------------------------------------

    def _inputs(self, reads: Sequence[str], emitted: Sequence[_Emitted]) -> tuple[Inputs, list[Part], list[Mixed]]:
        """The event types that rules read, and the DataFrames to read beside matches that are passed on."""
        options = self.options
        outside = [name for name in reads if name not in self.plan.program.emitters]
        streams: dict[str, Stream] = {}
        parts: list[Part] = []
        if outside:
            given = self.engine.inputs
            id = options.id if any(not self.plan.reads_derived(rule) for rule in self.rules) else None
            found = resolve(given, outside, time=options.times, tie=options.ties, type=options.type, id=id)
            streams |= found.streams
            parts += parts_of(found, others=False)
        derived = [name for name in reads if name not in streams]
        for name in derived:
            origins = self._alone_emit(name)
            given = self.engine.given_events(self.plan.program.templates[name], self.plan.columns_of(name))
            if given is not None and self.engine.whole is None:
                origins.append(given)
            streams[name] = self.engine.derived(self.run, name)
            parts += [part_of(replace(streams[name], frame=in_types(one, streams[name].schema))) for one in origins]
        inputs = Inputs({name: streams[name] for name in reads}, common_kind(streams), False, options.id)
        if self.engine.whole is None or not derived:
            return inputs, parts, []
        of_whole = [part for part in parts if part.type_column is not None]
        mixed = mixed_whole(
            self.engine.whole, of_whole, [streams[name] for name in derived], options.type, self.time_kind
        )
        return inputs, [part for part in parts if part.type_column is None], [mixed]

    def _alone_emit(self, template: str) -> list[DataFrame]:
        """The events of a template that come from rules which are planned by themselves."""
        alone = (pair for pair in self.plan.emits(template) if pair[0].name not in self.joint)
        return [self.run.emitted_by(rule, emit) for rule, emit in alone]

    # --- matches that are passed on ---------------------------------------------------------------------------------

    def _emitted(self, templates: Sequence[str]) -> list[_Emitted]:
        """What matches that are passed on emit of some templates."""
        found = []
        for one in self.joint.values():
            compiler = Compiler(self.places.bindings(one.number, one.rule))
            for emit in (emit for emit in one.rule.emits if emit.type in templates):
                types = self.plan.types_of(emit.type)
                names_of = [self.plan.times[emit.type], *(name for name, _ in emit.values)]
                values = {
                    name: in_type(compiler.output(each.expression), types[name])
                    for name, each in zip(names_of, emitting(one.rule, emit).returns, strict=True)
                }
                found.append(_Emitted(one.number, emit.type, values))
        return found

    def _part(self, inputs: Inputs, one: _Emitted) -> Part:
        stream = inputs.streams[one.template]
        values = {field.name: (one.values[field.name], field.dataType) for field in stream.schema.fields}
        return replace(part_of(stream), computed=values)

    def _passed_on(self, found: DataFrame, parts: Sequence[Part], emitted: Sequence[_Emitted], stratum: int) -> Mixed:
        """The matches so far, each as often as it is an event of this stratum, and as itself where it is asked for."""
        rows = []
        later = {name for rule in self.rules if rule.stratum > stratum for name in rule.reads}
        for member in self.joint.values():
            goes_on = member.rule in self.wanted or any(emit.type in later for emit in member.rule.emits)
            own = [place for place, one in enumerate(emitted) if one.rule == member.number]
            which = ([ITSELF] if goes_on else []) + own
            if which:
                rows.append((F.col(RULE) == member.number, F.array(*map(F.lit, which))))
        spread = with_columns(found, F.explode(F.cases(rows)).alias(WHICH))
        columns = (RULE, *OF_MATCH, *(names.variable(place) for place in range(len(self.places.kinds))))
        owned = tuple((F.col(WHICH) == place, part) for place, part in enumerate(parts))
        return Mixed(spread, owned, F.col(WHICH) == ITSELF, columns)

    # --- the result -------------------------------------------------------------------------------

    def _shown(self, found: DataFrame) -> DataFrame:
        """The matches with the columns that users see."""
        wanted = {one.number: one.rule for one in self.joint.values() if one.rule in self.wanted}
        if len(wanted) < len(self.joint):
            found = where(found, F.col(RULE).isin(list(wanted)))
        return shown(found, self.places, wanted, self.wanted, self.time_kind)

    def _alone(self, rule: Rule) -> DataFrame:
        """The matches of a rule that is planned by itself."""
        found = self.run.matched(rule, rule.query)
        whole = F.struct(*(F.col(name).alias(name) for name in rule.query.variables))
        return select(
            found,
            F.lit(rule.name).alias("rule"),
            *(F.col(name).alias(name) for name in RESULT[1:]),
            *((whole if other == rule else F.lit(None)).alias(other.name) for other in self.wanted),
        )


def mixed_whole(
    whole: DataFrame, parts: Sequence[Part], derived: Sequence[Stream], type_column: str, time_kind: Kind
) -> Mixed:
    """The one DataFrame with a type column, read once: also for events of types that rules emit too."""
    base = Part("", whole, schema_of(whole), "", time_kind, type_column, has_others=True)
    kind = base.columns[type_column][0]
    found = [(kind.isin([F.lit(name) for name in part.types]), part) for part in parts]
    for stream in derived:
        values = {
            field.name: (
                _cast(*base.columns[field.name], field.dataType)
                if field.name in base.columns
                else null().cast(field.dataType),
                field.dataType,
            )
            for field in stream.schema.fields
        }
        found.append((kind == F.lit(stream.type), replace(part_of(stream), computed=values)))
    return Mixed(base.renamed, tuple(found))


def in_types(frame: DataFrame, schema: T.StructType) -> DataFrame:
    """The columns of a frame in these types."""
    return select(frame, *(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema.fields))


def _cast(value: Column, own: T.DataType, wanted: T.DataType) -> Column:
    return value if own == wanted else value.cast(wanted)
