"""From a query and the user's DataFrames to the DataFrame of matches: check, choose, build. Nothing runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, assert_never

from pyspark.sql import DataFrame

from tocsin.algebra import nodes as alg
from tocsin.analysis.lifetimes import lifetimes, span_of_words
from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.sizes import size_report
from tocsin.analysis.temporal import Network
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

    @property
    def query(self) -> alg.Query:
        """The rewritten query."""
        return self.plan.query

    @property
    def bound(self) -> BoundQuery:
        """The rewritten query and its types."""
        return self.plan.rule.bound

    @property
    def distances(self) -> Network:
        """The distances between its events."""
        return self.plan.rule.network

    @property
    def options(self) -> Options:
        """The options, in the unit of the times."""
        return self.plan.options

    def matches(self) -> DataFrame:
        """The matches."""
        if self.inputs.is_streaming:
            return streams.require_one_late(self._stream(), self.options.with_late)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("plan of %s:\n%s", ", ".join(self.query.variables), self.plan.describe())
        form, asked = self.plan.strategy.form, replace(self.options, slice_us=self.plan.slice_us)
        match form:
            case Form.SEARCH:
                run = overall.enumerated if self.query.over_all_matches else sliced.matches
                routes = self.plan.routes
                inputs = self.inputs if routes is None else routed(self.inputs, routes)
                return run(self.plan.routed.search, inputs, asked)
            case Form.CLUSTERED:
                return clustered.matches(self.plan.loops, self.inputs, asked)
            case Form.TREND:
                return overall.counted(self.plan.counted, self.inputs, asked)
            case Form.COUNTS:
                self.plan.strategy.requires(self.query)
                return counts.counted(self.query, self.inputs)
            case Form.JOINS:
                return joins.matches(self.query, self.plan.joins, self.inputs)
            case _:
                assert_never(form)

    def compact(self) -> DataFrame:
        """The matches as graphs."""
        refusal = refused_compact(self.plan.rule.written, strategy=self.options.strategy)
        if refusal is not None:
            raise refusal
        kernel = replace(run_kernel(self.plan.written), unit=self.options.unit)
        if self.inputs.is_streaming:
            self.distances.require_bounded()
            return streams.compact(kernel, self.inputs, self.distances, self._asked_of_stream(kept_alike=True))
        return compact.compact(kernel, self.inputs, replace(self.options, slice_us=self.plan.slice_us))

    @property
    def _stream_settings(self) -> streams.StreamSettings:
        return stream_settings(self.options, self.inputs)

    def _stream(self) -> DataFrame:
        """The matches of streams."""
        if not self._is_bounded_by_events:
            self.distances.require_bounded()
        refusal = refused_on_streams(self.query, self.options.strategy)
        if refusal is not None:
            raise refusal
        if self.plan.strategy.form is Form.JOINS:
            return joined.matches(self.query, self.plan.joins, self.inputs, self._stream_settings)
        asked = self._asked_of_stream(kept_alike=self.plan.is_counted or not self.plan.search.has_variables)
        if self.plan.is_counted:
            return windows.counted(self.plan.counted, self.inputs, self.distances, asked, self.bound)
        if self.query.over_all_matches:
            return windows.found(self.plan.search, self.inputs, self.distances, asked, self.bound)
        return streams.matches(self.plan.search, self.inputs, self.distances, asked)

    def _asked_of_stream(self, *, kept_alike: bool) -> streams.StreamSettings:
        """The settings of a stream; with declared rates, their guard and the bound.

        `kept_alike`: all events are kept as long as any, and not each as long as its variable requires.
        """
        asked = self._stream_settings
        if not self.options.declared:
            return asked
        late_us = max(asked.lateness_us.values())
        bound = None if self._is_bounded_by_events else self._most_events(late_us, kept_alike=kept_alike)
        return replace(asked, guard=guard_of(self.options.declared, late_us), bound=bound)

    @property
    def _is_bounded_by_events(self) -> bool:
        """Whether the state of a stream is bounded by how many events a match has, where no time bounds it."""
        return self.plan.strategy is AGGREGATE and windows_of(self.plan.search) is None

    def _most_events(self, lateness_us: int, *, kept_alike: bool) -> int | None:
        """The most events that a stream remembers by the declared rates; None: not known."""
        known = lifetimes(self.query, self.distances)
        least_us = span_of_words(self.query, known) + (self.query.every_us or 0) if kept_alike else 0
        return size_report(
            self.query,
            known,
            self.options.declared,
            lateness_us=lateness_us,
            least_us=least_us,
        ).events


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
