"""Programs of rules on streaming DataFrames: one stateful operator for all strata. Nothing runs until it starts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from tocsin.algebra.programs import Rule
from tocsin.analysis.attributes import Schema, attributes_by_variable
from tocsin.analysis.keys import Sharding, sharding
from tocsin.analysis.rates import parse_rate
from tocsin.analysis.rules.program_state import most_events
from tocsin.engines.rule_run import RESULT, Run
from tocsin.engines.spark.compat import make_ready_for_python
from tocsin.engines.spark.engine import stream_settings
from tocsin.engines.spark.inputs import Inputs, Part, common_kind, part_of, parts_of, resolve
from tocsin.engines.spark.joint import Places, shown
from tocsin.engines.spark.rule_engine import Spark
from tocsin.engines.spark.scan import (
    Mixed,
    Scan,
    Shipment,
    event_types,
    made_type,
    spark_shapes,
)
from tocsin.engines.spark.spark_types import arrow_schema, to_spark
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select
from tocsin.engines.spark.strata import in_types, mixed_whole
from tocsin.engines.stream import pipeline as frames
from tocsin.engines.stream.guard import guard_of
from tocsin.engines.stream.live_plan import LivePlan
from tocsin.plan.choose_columns import manifest_of
from tocsin.plan.manifest import Manifest, Reader


class LiveRun(Run[DataFrame]):
    """One program on streams."""

    def _matches(self, rule: Rule) -> DataFrame:
        live = self._live([rule])
        others = [F.col(output.name) for output in live.settings.outputs]
        variables = (F.col(rule.name).getField(variable).alias(variable) for variable in rule.query.variables)
        shown = select(live.matches(), *(F.col(each).alias(each) for each in RESULT[1:]), *variables, *others)
        return frames.require_one_late(shown, self.plan.options.with_late)

    def _together(self, wanted: Sequence[Rule]) -> DataFrame:
        return frames.require_one_late(self._live(wanted).matches(), self.plan.options.with_late)

    def _events(self, template: str, emitting: Sequence[Rule]) -> DataFrame:
        return frames.require_one_late(self._live(emitting, template).events(), self.plan.options.with_late)

    def _live(self, wanted: Sequence[Rule], template: str | None = None) -> _Live:
        # In the order of the text, so that a plan has one name whatever was asked first.
        needed = self.plan.needed(wanted)
        rules = tuple(rule for rule in self.program.rules if rule in needed)
        names_of = () if template is not None else tuple(rule.name for rule in wanted)
        return _Live(self, LivePlan(self.plan, rules, names_of, template), wanted)


class _Live:
    """The streaming DataFrame of some rules."""

    def __init__(self, run: LiveRun, plan: LivePlan, wanted: Sequence[Rule]) -> None:
        self.run, self.plan, self.wanted = run, plan, wanted
        self.program, self.options = run.plan, run.plan.options
        assert isinstance(run.engine, Spark)
        self.engine = run.engine
        self.outside = self._outside()
        self.settings = self._settings()
        self.derived = {name: self.engine.derived(run, name) for name in plan.reads if name in self.emitted}
        streams = {**self.outside.streams, **self.derived}
        known = {name: streams[name] for name in plan.reads}
        self.streams = Inputs(known, common_kind(known), True, self.options.id, self.options.ties)
        self.single, self.mixed = self._parts()

    @property
    def emitted(self) -> Collection[str]:
        """The event types that rules emit."""
        return self.program.program.emitters

    def _settings(self) -> frames.StreamSettings:
        found, rates = stream_settings(self.options, self.outside), self.options.declared
        if not rates:
            return found
        late_us = max(found.lateness_us.values())
        names_of = [rule.name for rule in self.plan.rules]
        emitted = [name for name in self.plan.reads if name in self.emitted and name not in rates]
        bound = None
        if not any(name in self.outside.streams for name in emitted):
            bound = most_events(self.program.written, names_of, rates, late_us)
        guarded = {name: rate for name, rate in rates.items() if name in self.plan.reads}
        if self.engine.whole is not None:  # events of these types among the others would not be in the bound
            guarded |= {name: parse_rate(0) for name in emitted}
        return replace(found, guard=guard_of(guarded, late_us), bound=bound)

    # --- inputs -----------------------------------------------------------------------------------

    def _outside(self) -> Inputs:
        """The events from outside, those of types that rules emit too included."""
        options, reads = self.options, self.plan.reads
        columns: dict[str, Any] = {"time": options.times, "type": options.type}
        id = options.id if any(self.plan.id_of(rule) is not None for rule in self.plan.rules) else None
        primitive = [name for name in reads if name not in self.emitted]
        found = resolve(self.engine.inputs, primitive, **columns, tie=options.ties, id=id)
        if self.engine.whole is not None:
            return found
        given = [name for name in reads if name in self.emitted and name in self.engine.inputs]
        if not given:
            return found
        others = resolve(self.engine.inputs, given, **columns)
        return replace(found, streams={**found.streams, **others.streams})

    def _parts(self) -> tuple[list[Part], list[Mixed]]:
        """The DataFrames to read, each once."""
        primitive = {name: stream for name, stream in self.outside.streams.items() if name not in self.emitted}
        parts = parts_of(replace(self.outside, streams=primitive), others=False) if primitive else []
        if self.engine.whole is not None:
            if not self.derived:
                return parts, []
            derived = [*self.derived.values()]
            kind = self.streams.time_kind
            return [], [mixed_whole(self.engine.whole, parts, derived, self.options.type, kind)]
        for name in (name for name in self.outside.streams if name in self.emitted):
            template = self.program.program.templates[name]
            given = self.engine.given_events(template, self.program.columns_of(name))
            assert given is not None
            stream = self.derived[name]
            parts.append(part_of(replace(stream, frame=in_types(given, stream.schema))))
        return parts, []

    @property
    def sources(self) -> list[tuple[str, ...]]:
        """The event types that come from each DataFrame, in the order of the parts."""
        if self.engine.whole is not None:
            return [tuple(self.outside.streams)]
        return [part.types for part in self.single]

    # --- the columns of events --------------------------------------------------------------------

    @cached_property
    def manifest(self) -> Manifest:
        """The columns of an event. Keys are columns, so that workers can write them."""
        events = event_types(self.streams)
        readers = []
        for number, (rule, kernel) in enumerate(zip(self.plan.rules, self.plan.kernels, strict=True)):
            needs = self.plan.needs(number, attributes_by_variable(kernel.query, events.schemas))
            options = self.program.rule(rule).plan.options
            readers.append(Reader(kernel, needs, options.id, options.ties))
        keys = self._sharding().key
        return manifest_of(readers, events, made_type, sources=self.plan.sources, packs_key=False, keys=keys)

    @cached_property
    def places(self) -> Places:
        """The columns of the variables of the rules that are the result."""
        found = Places()
        for number, (rule, layout) in enumerate(zip(self.plan.rules, self.manifest.layouts, strict=True)):
            if rule.name in self.plan.shown:
                found.add(number, self.streams, layout, spark_shapes(self.manifest.shapes[number]))
        return found

    def _found(self, result: T.StructType | None, schema: T.StructType) -> DataFrame:
        """What shards give, as rows with these columns; `result` are those of the events that are asked for."""
        options, manifest = self.settings, self.manifest
        scan = Scan(manifest, self.single, self.mixed)
        split = self._sharding()
        key = tuple(F.col(manifest.keys[name]) for name in split.key)
        stream = frames.what_travels(options)
        frame = scan.streamed(stream, frames.rated(options))
        make_ready_for_python(frame)
        shipment = Shipment(frame, scan.columns(stream), manifest.layouts[0], scan.micros, key)
        shards = frames.shards_of(options, frame, split.reason)
        step = self.plan.step(
            manifest,
            [self._columns_of(number) for number in range(len(self.plan.rules))],
            {name: arrow_schema(one.schema) for name, one in self.streams.streams.items()},
            None if result is None else arrow_schema(result),
        )
        queries = [rule.query for rule in self.plan.rules]
        identified = frames.ids_in(self.options.id, queries)
        plan = frames.named(self.plan.text(), [*manifest.layouts], frames.types_in(frame), shards, *identified)
        return frames.run_shards(step, plan, shipment, shards, self.sources, options, schema)

    def _columns_of(self, number: int) -> tuple[int, ...]:
        return tuple(place for place, _ in self.places.of.get(number, {}).values())

    def _sharding(self) -> Sharding:
        schemas = {name: Schema.of(name, self.program.types_of(name)) for name in self.plan.reads}
        return sharding(self.program.program, self.plan.rules, schemas)

    # --- the result -------------------------------------------------------------------------------

    def matches(self) -> DataFrame:
        """The matches, with the columns of a batch."""
        numbers = {rule.name: number for number, rule in enumerate(self.plan.rules)}
        return shown(
            self._found(None, self.places.schema),
            self.places,
            {numbers[rule.name]: rule for rule in self.wanted},
            self.wanted,
            self.streams.time_kind,
            *frames.output_columns(self.settings),
        )

    def events(self) -> DataFrame:
        """The events of the template that is asked for."""
        assert self.plan.template is not None
        types = self.program.emitted_types(self.plan.template)
        schema = T.StructType([T.StructField(name, to_spark(found)) for name, found in types.items()])
        found = self._found(schema, T.StructType(list(schema.fields)))
        others = frames.output_columns(self.settings)
        return select(found, *(F.col(name).alias(name) for name in schema.names), *others) if others else found
