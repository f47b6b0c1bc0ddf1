"""Streams without Spark: the rows of a query in any order of arrival and any cut, given to the steps of one shard."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.analysis.attributes import attributes_of
from tocsin.analysis.schema import bind
from tocsin.analysis.temporal import network
from tocsin.engines.stream.shard_rules import LiveRule, alone, live_rule
from tocsin.engines.stream.step import Step
from tocsin.engines.stream.store import RowRetention, RowStore, State
from tocsin.engines.worker.arrow_scan import Shipped, ship
from tocsin.engines.worker.arrow_types import types_in
from tocsin.engines.worker.compacted import named
from tocsin.engines.worker.event_tables import Events
from tocsin.engines.worker.results import Result, answered, grouped
from tocsin.engines.worker.rows import array_of, integers
from tocsin.engines.worker.summaries import WINDOW, Compacting, counting
from tocsin.kernels.nested_loops import kernel
from tocsin.kernels.reach import Search
from tocsin.kernels.runs.register_automaton import run_kernel
from tocsin.kernels.trends.request import keys_of, needs_of
from tocsin.kernels.trends.trend_count import trend
from tocsin.optimizer.rules import Facts, optimize
from tocsin.plan import manifest as names
from tocsin.plan.due import due_of
from tocsin.plan.manifest import Reader, needed
from tocsin.plan.strategies import AGGREGATE, KERNEL, TREND

LAST = 2**62
PLAN = "plan"
OPENED: list[Callable[[State, RowRetention], Any]] = [RowStore]  # the store that steps run on is the last of these


def with_digests_of(shipped: Shipped) -> pa.Table:
    """The rows with all digests, as Spark ships them."""
    every = np.arange(shipped.table.num_rows)
    table = shipped.table
    for name, digest in shipped.digests.items():
        table = table.append_column(name, pa.array(digest[every]))
    return table


class Live:
    """One shard of a query, fed by hand."""

    def __init__(
        self,
        asked: tocsin.Pattern | alg.Query,
        tables: Mapping[str, pa.Table],
        *,
        lateness_us: int,
        eager: bool,
        strategy: str = "auto",
        ties: Sequence[str] = (),
    ) -> None:
        query = asked if isinstance(asked, alg.Query) else asked.query
        query = ordered_by_ties(query) if ties else query
        named = alg.event_types(query.pattern)
        order = (*named, *(name for name in tables if name not in named))
        events = [Events(name, tables[name], "ts") for name in order]
        schemas = {name: tables[name].schema for name in named}
        distances = network(query, integer_time=True)
        self.bound = bind(query, {name: types_in(schema) for name, schema in schemas.items()})
        if strategy != "compact":  # a row is enumerated by the query as it was written
            query = optimize(query, Facts(self.bound.schemas, "ts", integer_time=True)).query
            self.bound = replace(self.bound, query=query)
        is_counted = strategy == "trend" and TREND.refuses(query) is None
        self.trend = trend(self.bound) if is_counted else None
        self.schemas = {name: schemas[name] for name in sorted(schemas)}
        compacting = strategy == "compact"
        graphs = None
        if compacting:
            graphs = run_kernel(self.bound).as_graphs({name: schemas[name].names for name in schemas})
            self.kernel: Search = graphs
            self.needs: dict[str, Any] = {}
        elif self.trend is not None:
            self.kernel = self.trend.kernel
            self.needs = needs_of(keys_of(self.kernel.query, self.trend.machine))
        else:
            by_automaton = strategy == "automaton" or KERNEL.refuses(query) is not None
            self.kernel = run_kernel(self.bound) if by_automaton else kernel(self.bound)
            if strategy == "aggregate":
                self.kernel = AGGREGATE.search(self.bound)
            self.needs = needed(query, {name: attributes_of(self.bound.held[name]) for name in query.variables})
            if query.over_all_matches:
                self.needs = {name: self.needs.get(name, ()) for name in query.variables}
        with_digests = not query.over_all_matches and not compacting
        reader = Reader(self.kernel, self.needs, ties=tuple(ties), with_digests=with_digests)
        shipped = ship([reader], events, named=named)
        self.table = with_digests_of(shipped)
        (layout,) = shipped.manifest.layouts
        due = due_of(self.kernel, distances, eager=eager and not compacting, counts=self.trend is not None)
        rule = live_rule(self.kernel, layout, due)
        if self.trend is not None:
            rule = LiveRule(counting(self.trend, layout), due)
        elif graphs is not None:
            rule = LiveRule(Compacting(graphs, layout), due)
        self.step, self.lateness_us = Step(alone(rule)), lateness_us
        self.is_compact = compacting
        self.graphs: list[pa.RecordBatch] = []
        self.told: list[pa.Table] = []
        self.ts = integers(array_of(self.table, layout.time))
        self.state = State.begin(1)
        self.ids: list[str] = []
        self.late = 0
        self.most_remembered = 0

    def take(self, rows: Sequence[int], latest: int | None = None) -> None:
        """A micro-batch: the state goes through bytes, as it does in a checkpoint."""
        arrived = self.table.take(pa.array(rows, pa.int64())) if len(rows) else None
        told = [int(self.ts[row]) for row in rows] + ([] if latest is None else [latest])
        store = OPENED[-1](State.from_bytes(self.state.to_bytes(PLAN), PLAN), self.step.retention)
        clocks = store.clocks.advanced([(max(told),)] if told else [], [self.lateness_us])
        outcome = self.step.run(store, clocks, [arrived] if arrived is not None else [])
        self.state = store.commit()
        self.late += outcome.report.late
        self.most_remembered = max(self.most_remembered, outcome.report.remembered)
        if self.is_compact:
            self.graphs += outcome.batches
            return
        if not self.step.layout.identifies:
            self._tell(outcome.batches)
            return
        for batch in outcome.batches:
            self.ids += batch.column(names.MATCH_ID).to_pylist()

    def _tell(self, batches: Sequence[pa.RecordBatch]) -> None:
        every_us = self.kernel.query.every_us
        if batches and every_us is not None:
            table = pa.Table.from_batches(batches)
            if WINDOW not in table.column_names:
                starts = integers(array_of(table, names.START))
                table = table.append_column(WINDOW, pa.array(starts - starts % every_us))
            self.told.append(table)

    def end(self) -> None:
        """Time goes on until everything is decided."""
        self.take([], LAST)

    def rows(self) -> list[dict[str, Any]]:
        """What windows tell, each from one micro-batch, as it is on Spark."""
        found: list[dict[str, Any]] = []
        windows: set[int] = set()
        for table in self.told:
            for window in sorted(set(table.column(WINDOW).to_pylist())):
                assert window not in windows, "a window is told twice"
                windows.add(window)
                own = table.filter(pc.equal(table.column(WINDOW), window))
                found += self._closed(own).to_pylist()
        return found

    def compact(self) -> list[dict[str, Any]]:
        """The compact rows."""
        return named(self.graphs, self.schemas, pa.int64()).to_pylist()

    def _closed(self, table: pa.Table) -> pa.Table:
        if self.trend is not None:
            return grouped(self.bound, answered(self.trend, table), pa.int64())
        places = {one.name: (place, self.needs[one.name]) for place, one in enumerate(self.step.layout.gathered)}
        return Result(self.bound, table, places).over_all(pa.int64())


def arrivals(ts: Sequence[int], lateness_us: int, chance: random.Random) -> list[int]:
    """An order of arrival in which no event comes later than it may."""
    return sorted(range(len(ts)), key=lambda row: (int(ts[row]) + chance.randint(0, lateness_us), chance.random()))


def cut(rows: Sequence[Any], chance: random.Random) -> list[list[Any]]:
    """Micro-batches of any size, empty ones too."""
    found: list[list[Any]] = [[]]
    for row in rows:
        while chance.random() < 0.4:
            found.append([])
        found[-1].append(row)
    return found
