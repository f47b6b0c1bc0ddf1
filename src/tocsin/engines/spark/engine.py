"""From a query and the user's DataFrames to the DataFrame of matches: check, choose, build. Nothing runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, assert_never

from pyspark.sql import DataFrame

from tocsin.algebra import nodes as alg
from tocsin.analysis.lifetimes import lifetimes, span_of_words
from tocsin.analysis.sizes import size_report
from tocsin.engines.spark import compact, overall
from tocsin.engines.spark import in_place as clustered
from tocsin.engines.spark import search as sliced
from tocsin.engines.spark.inputs import Inputs, resolve, routed
from tocsin.engines.spark.joins import counts
from tocsin.engines.spark.joins import frames as joins
from tocsin.engines.spark.spark_types import types_in
from tocsin.engines.stream import every as windows
from tocsin.engines.stream import joined
from tocsin.engines.stream import pipeline as streams
from tocsin.engines.stream.guard import guard_of
from tocsin.engines.stream.pipeline import heartbeats_of
from tocsin.engines.worker.compacted import refused_compact
from tocsin.kernels.reach import windows_of
from tocsin.kernels.runs.register_automaton import run_kernel
from tocsin.options import Options
from tocsin.plan.plan import Plan, plan_of
from tocsin.plan.strategies import AGGREGATE, refused_on_streams
from tocsin.plan.strategy import Form, counts_other_types

log = logging.getLogger(__name__)


def stream_settings(options: Options, inputs: Inputs) -> streams.StreamSettings:
    """The options of a stream, checked against its inputs."""
    return streams.StreamSettings(
        streams.lateness_of(inputs, options.lateness_us),
        options.shards,
        options.emit == "auto",
        options.max_matches_per_start,
        heartbeats_of(options.heartbeats, inputs),
        options.with_late,
        options.is_strict,
        options.idle_ms,
        max_task_memory=options.task_bytes,
        unit=options.unit,
    )


@dataclass(frozen=True)
class Prepared:
    """A query that fits its inputs: its plan, and the DataFrames that the plan reads."""

    plan: Plan
    inputs: Inputs

    def matches(self) -> DataFrame:
        """The matches."""
        plan, inputs = self.plan, self.inputs
        if inputs.is_streaming:
            return streams.require_one_late(self._stream(), plan.options.with_late)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("plan of %s:\n%s", ", ".join(plan.query.variables), plan.describe())
        form, options = plan.strategy.form, replace(plan.options, slice_us=plan.slice_us)
        match form:
            case Form.SEARCH:
                run = overall.enumerated if plan.query.over_all_matches else sliced.matches
                return run(plan.routed.search, inputs if plan.routes is None else routed(inputs, plan.routes), options)
            case Form.CLUSTERED:
                return sliced.matches(plan.loops, inputs, options, find=clustered.search)
            case Form.TREND:
                return overall.counted(plan.counted, inputs, options)
            case Form.COUNTS:
                plan.strategy.requires(plan.query)
                return counts.counted(plan.query, inputs)
            case Form.JOINS:
                return joins.matches(plan.query, plan.joins, inputs)
            case _:
                assert_never(form)

    def compact(self) -> DataFrame:
        """The matches as graphs."""
        plan = self.plan
        refusal = refused_compact(plan.rule.written, strategy=plan.options.strategy)
        if refusal is not None:
            raise refusal
        kernel = replace(run_kernel(plan.written), unit=plan.options.unit)
        if self.inputs.is_streaming:
            plan.rule.network.require_bounded()
            return streams.compact(kernel, self.inputs, plan.rule.network, self._guarded(kept_alike=True))
        return compact.compact(kernel, self.inputs, replace(plan.options, slice_us=plan.slice_us))

    def _stream(self) -> DataFrame:
        """The matches of streams."""
        plan, inputs, distances = self.plan, self.inputs, self.plan.rule.network
        if not self._is_bounded_by_events:
            distances.require_bounded()
        refusal = refused_on_streams(plan.query, plan.options.strategy)
        if refusal is not None:
            raise refusal
        if plan.strategy.form is Form.JOINS:
            return joined.matches(plan.query, plan.joins, inputs, stream_settings(plan.options, inputs))
        settings = self._guarded(kept_alike=plan.is_counted or not plan.search.has_variables)
        if plan.is_counted:
            return windows.counted(plan.counted, inputs, distances, settings, plan.rule.bound)
        if plan.query.over_all_matches:
            return windows.found(plan.search, inputs, distances, settings, plan.rule.bound)
        return streams.matches(plan.search, inputs, distances, settings)

    def _guarded(self, *, kept_alike: bool) -> streams.StreamSettings:
        """The settings of a stream; with declared rates, their guard and the bound of its state.

        `kept_alike`: all events are kept as long as any, and not each as long as its variable requires.
        """
        query, options = self.plan.query, self.plan.options
        settings = stream_settings(options, self.inputs)
        if not options.declared:
            return settings
        late_us = max(settings.lateness_us.values())
        bound = None
        if not self._is_bounded_by_events:
            known = lifetimes(query, self.plan.rule.network)
            least_us = span_of_words(query, known) + (query.every_us or 0) if kept_alike else 0
            bound = size_report(query, known, options.declared, lateness_us=late_us, least_us=least_us).events
        return replace(settings, guard=guard_of(options.declared, late_us), bound=bound)

    @property
    def _is_bounded_by_events(self) -> bool:
        """Whether the state of a stream is bounded by how many events a match has, where no time bounds it."""
        return self.plan.strategy is AGGREGATE and windows_of(self.plan.search) is None


def prepare(query: alg.Query, inputs: Any, options: Options | None = None, *, warns: bool = False) -> Prepared:
    """Check a query against its inputs; all that is wrong with either is raised here.

    With `warns`, integer times without a unit are warned of.
    """
    options = options or Options()
    found = resolved(query, inputs, options)
    streams_of = list(found.streams.values())
    is_shared = streams_of[0].type_column is not None
    plan = plan_of(
        query,
        {stream.type: types_in(stream.schema) for stream in streams_of},
        {stream.type: stream.time for stream in streams_of},
        options,
        warns=warns,
        one_input=len(streams_of) == 1 or is_shared,
        shared_input=is_shared,
        is_streaming=found.is_streaming,
    )
    return Prepared(plan, found)


def resolved(query: alg.Query, inputs: Any, options: Options) -> Inputs:
    """The inputs of a query, checked; all of them where contiguity counts their events, named by it or not (R17)."""
    return resolve(
        inputs,
        alg.event_types(query.pattern),
        time=options.time,
        tie=options.ties,
        type=options.type,
        id=options.id,
        others=counts_other_types(query),
    )
