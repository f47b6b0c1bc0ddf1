"""From a query and the user's DataFrames to the DataFrame of matches: check, choose, build. Nothing runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame

from tocsin.algebra import nodes as alg
from tocsin.algebra.ties import ordered_by_ties
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.analysis.clocks import unit_of
from tocsin.analysis.durations import counting
from tocsin.analysis.lifetimes import lifetimes, span_of_words
from tocsin.analysis.schema import BoundQuery
from tocsin.analysis.sizes import size_report
from tocsin.analysis.temporal import Network
from tocsin.kernels.aggregates.folded import FoldedRuns
from tocsin.kernels.aggregates.searched import WindowSearch
from tocsin.kernels.kernel import Kernel, kernel
from tocsin.kernels.runs.kernel import RunKernel, run_kernel
from tocsin.kernels.trends.trend import Trend, trend
from tocsin.optimizer.choose import Choice, choose
from tocsin.optimizer.crossed import is_connected
from tocsin.optimizer.rules import Rule
from tocsin.options import Options
from tocsin.physical.aggregates import aggregated
from tocsin.physical.claims import (
    ADDS_OTHERS,
    cannot_count,
    claims,
    counts_other_types,
    refused_by_automata,
    refused_by_clustered,
    refused_by_counts,
    refused_by_kernels,
    refused_by_trends,
)
from tocsin.physical.compacted import refused_compact
from tocsin.physical.crossed import by_crossed_keys, named_keys
from tocsin.physical.inputs import Inputs, resolve
from tocsin.physical.joins import counts
from tocsin.physical.joins import frames as joins
from tocsin.physical.joins.claims import unsupported
from tocsin.physical.joins.describe import describe
from tocsin.physical.joins.model import Plan
from tocsin.physical.joins.plan import common_clock, plan
from tocsin.physical.schemas import attributes_of
from tocsin.physical.sliced import clustered, compact, trends
from tocsin.physical.sliced import matches as sliced
from tocsin.physical.sliced.describe import describe as describe_kernel
from tocsin.physical.sliced.describe import describe_aggregate, describe_clustered, describe_runs, describe_trend
from tocsin.physical.streaming import frames as streams
from tocsin.physical.streaming import joined, windows
from tocsin.physical.streaming.claims import refused_on_streams
from tocsin.physical.streaming.decisions import decisions
from tocsin.physical.streaming.describe import describe as describe_stream
from tocsin.physical.streaming.guard import guard_of
from tocsin.physical.streaming.heartbeats import heartbeats_of
from tocsin.plan.prepare import prepare as prepared_rule

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
    """A query that fits its inputs."""

    bound: BoundQuery
    inputs: Inputs
    distances: Network
    options: Options = field(default_factory=Options)
    fired: tuple[Rule, ...] = ()
    unit: Unit = MICROSECONDS

    @property
    def query(self) -> alg.Query:
        """The query."""
        return self.bound.query

    @cached_property
    def choice(self) -> Choice:
        """What runs, and why."""
        wanted = self.options.strategy
        streams = list(self.inputs.streams.values())
        known = claims(self.query, wanted, one_input=self._has_one_input)
        if self.trend is None:
            known = [claim for claim in known if claim[0] != "trend"]
        return choose(
            self.query,
            self.distances,
            known,
            self.options.known,
            strategy=wanted,
            shared_input=streams[0].type_column is not None,
            time=common_clock(stream.time for stream in streams),
            most_matches_per_start=self.options.max_matches_per_start,
        )

    @property
    def strategy(self) -> str:
        """The strategy that runs: the one asked for, or what "auto" chooses."""
        if self.options.strategy != "auto":
            return self.options.strategy
        return self.choice.strategy or "kernel"

    @cached_property
    def trend(self) -> Trend | None:
        """The query compiled for counting without building matches; None when it cannot be."""
        return None if refused_by_trends(self.query) is not None else trend(self.bound)

    @cached_property
    def keyed(self) -> tuple[BoundQuery, Inputs]:
        """The query and its inputs as a kernel takes them: split by keys, also those of different names."""
        # A stream is read once, and every row of it tells the time.
        is_split = self.strategy == "kernel" and not self.inputs.is_streaming
        return by_crossed_keys(self.bound, self.inputs) if is_split else (self.bound, self.inputs)

    @property
    def is_only_joined_by_keys(self) -> bool:
        """Whether no key splits the events for a kernel, and equalities connect all variables, as joins need them."""
        split = self.keyed[0].query.partition.attributes
        return not split and unsupported(self.query) is None and is_connected(self.query, self.bound.schemas)

    @cached_property
    def kernel(self) -> Kernel:
        """The query compiled for kernels, or the reason why it is not."""
        refusal = refused_by_kernels(self.query)
        if not self.inputs.is_streaming and self.strategy == "clustered":
            refusal = refused_by_clustered(self.query, one_input=self._has_one_input)
        if refusal is not None:
            raise refusal
        return kernel(self.keyed[0])

    @cached_property
    def runs(self) -> RunKernel:
        """The query compiled to an automaton, or the reason why it is not."""
        refusal = refused_by_automata(self.query)
        if refusal is not None:
            raise refusal
        return run_kernel(self.bound)

    @cached_property
    def aggregate(self) -> FoldedRuns | WindowSearch:
        """The query compiled to an aggregate, or the reason why it is not."""
        return aggregated(self.bound)

    def matches(self) -> DataFrame:
        """The matches."""
        if self.inputs.is_streaming:
            return streams.require_one_late(self._stream(), self.options.with_late)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("plan of %s:\n%s", ", ".join(self.query.variables), self.describe())
        if self.strategy in ("kernel", "automaton", "aggregate"):
            asked = self._sliced
            run = sliced.over_all if self.query.over_all_matches else sliced.matches
            if self.strategy == "kernel":
                return run(self.kernel, self.keyed[1], asked)
            return run(self.runs if self.strategy == "automaton" else self.aggregate, self.inputs, asked)
        if self.strategy == "count":
            refusal = refused_by_counts(self.query)
            if refusal is not None:
                raise refusal
            return counts.counted(self.query, self.inputs)
        if self.strategy == "trend":
            return trends.over_all(self._counted(), self.inputs, self._sliced)
        if self.strategy == "clustered":
            asked = self._sliced
            return clustered.matches(self.kernel, self.inputs, asked)
        return joins.matches(self.query, self._joins(), self.inputs)

    def compact(self, query: alg.Query) -> DataFrame:
        """The matches as graphs; `query` as it was written, for that is what enumerates them."""
        refusal = refused_compact(query, strategy=self.options.strategy)
        if refusal is not None:
            raise refusal
        ordered = self.unit.query(ordered_by_ties(query) if self.inputs.ties else query)
        kernel = replace(run_kernel(replace(self.bound, query=ordered)), unit=self.unit)
        if self.inputs.is_streaming:
            self.distances.require_bounded()
            return streams.compact(kernel, self.inputs, self.distances, self._asked_of_stream(kept_alike=True))
        return compact.compact(kernel, self.inputs, self._sliced)

    def _stream(self) -> DataFrame:
        """The matches of streams: always by a kernel, whose state is in Spark's."""
        if not self._is_bounded_by_events:
            self.distances.require_bounded()
        refusal = refused_on_streams(self.query, self.options.strategy)
        if refusal is not None:
            raise refusal
        if self.options.strategy == "join":
            return joined.matches(self.query, self._joins(), self.inputs, stream_settings(self.options, self.inputs))
        asked = self._asked_of_stream(kept_alike=self._is_counted or isinstance(self.stream_kernel, RunKernel))
        if not self.query.over_all_matches:
            return streams.matches(self.stream_kernel, self.inputs, self.distances, asked)
        if self._is_counted:
            assert self.trend is not None
            return windows.counted(self.trend, self.inputs, self.distances, asked, self.bound)
        return windows.found(self.stream_kernel, self.inputs, self.distances, asked, self.bound)

    def _asked_of_stream(self, *, kept_alike: bool) -> streams.StreamSettings:
        """What is asked of a stream; with declared rates, their guard and the bound.

        `kept_alike`: all events are kept as long as any, and not each as long as its variable needs.
        """
        asked = stream_settings(self.options, self.inputs)
        if not self.options.declared:
            return asked
        late_us = max(asked.lateness_us.values())
        bound = None if self._is_bounded_by_events else self._most_events(late_us, kept_alike=kept_alike)
        return replace(asked, guard=guard_of(self.options.declared, late_us), bound=bound)

    @property
    def _is_bounded_by_events(self) -> bool:
        """Whether what a stream remembers is bounded by how many events a match has, where no time bounds it."""
        return self.options.strategy == "aggregate" and self.aggregate.windows is None

    @property
    def _is_counted(self) -> bool:
        """Whether the aggregates of a stream are counted, without finding a match."""
        return self.query.over_all_matches and self.options.strategy in ("auto", "trend") and self.trend is not None

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

    def describe_stream(self) -> str:
        """The plan of a stream in words."""
        if self.options.strategy == "join":
            times = {name: stream.time for name, stream in self.inputs.streams.items()}
            return f"joins of streams, whose state is Spark's\n{describe(self._joins(), self.query.partition, times)}"
        search = self.trend.kernel if self._is_counted and self.trend is not None else self.stream_kernel
        made = decisions(search, self.distances, eager=self.options.emit == "auto", counts=self._is_counted)
        keys = search.query.partition.attributes
        return describe_stream(search, made, keys, counts=self._is_counted)

    @property
    def stream_kernel(self) -> Kernel | RunKernel:
        """What searches a stream."""
        if self.options.strategy == "aggregate":
            return self.aggregate
        by_automaton = self.options.strategy == "automaton" or refused_by_kernels(self.query) is not None
        return self.runs if by_automaton else self.kernel

    def describe(self) -> str:
        """The plan in words."""
        times = {name: stream.time for name, stream in self.inputs.streams.items()}
        if self.strategy == "kernel":
            return named_keys(self.query, self.bound.schemas, describe_kernel(self.kernel, self._slice_us))
        if self.strategy == "automaton":
            return describe_runs(self.runs, self._slice_us)
        if self.strategy == "aggregate":
            return describe_aggregate(self.aggregate)
        if self.strategy == "count":
            return counts.describe(self.query)
        if self.strategy == "trend":
            return describe_trend(self._counted(), self._slice_us)
        if self.strategy == "clustered":
            return describe_clustered(self.kernel, self._slice_us)
        return describe(self._joins(), self.query.partition, times)

    def _counted(self) -> Trend:
        """The query compiled for counting, or the reason why it is not."""
        refusal = refused_by_trends(self.query)
        if self.trend is None:
            raise refusal or cannot_count(self.query, ADDS_OTHERS)
        return self.trend

    @property
    def _has_one_input(self) -> bool:
        streams = list(self.inputs.streams.values())
        return len(streams) == 1 or streams[0].type_column is not None

    @property
    def _slice_us(self) -> int | None:
        """The width of slices: as asked for, or as the data suggest; aggregates have windows of their own."""
        if self.strategy == "aggregate":
            windows = self.aggregate.windows
            return None if windows is None else windows.advance_us
        if self.options.slice_us is not None or self.options.known is None:
            return self.options.slice_us
        return self.choice.slice_us

    @property
    def _sliced(self) -> Options:
        """The options with the width of slices."""
        return replace(self.options, slice_us=self._slice_us)

    def _joins(self) -> Plan:
        """The joins of the query, in the order that statistics suggest; raises the reason where there are none."""
        is_sliding = self.strategy == "sliding-window"
        refusal = unsupported(self.query, sliding=is_sliding)
        if refusal is not None:
            raise refusal
        orders = None if self.options.known is None else self.choice.join_orders
        return plan(
            self.query,
            self.distances.closure,
            order=None if orders is None else lambda names: orders.get(frozenset(names), ()),
            prefilter=None if orders is None or is_sliding else self.choice.prefilter,
            sliding=is_sliding,
        )


def prepare(query: alg.Query, inputs: Any, options: Options | None = None, *, warns: bool = False) -> Prepared:
    """Check a query against its inputs; all that is wrong with either is raised here.

    The query and the options are converted to the unit of integer times (R42); with `warns`, integer times without one
    are warned of.
    """
    options = options or Options()
    # Contiguity counts the events of every input, named by the pattern or not (R17).
    found = resolve(
        inputs,
        alg.event_types(query.pattern),
        time=options.time,
        tie=options.ties,
        type=options.type,
        id=options.id,
        others=counts_other_types(query),
    )
    query = ordered_by_ties(query) if found.ties else query
    types = {name: attributes_of(stream.schema) for name, stream in found.streams.items()}
    columns = {name: stream.time for name, stream in found.streams.items()}
    unit = unit_of(options.time_unit, types, columns, (query,), warns=warns)
    query, options = unit.query(query), options.counting(unit)
    with counting(unit.microseconds):
        rule = prepared_rule(query, types, options.time)
        return Prepared(rule.bound, found, rule.network, options, rule.rewrites, unit)
