"""Members of a task that summarize matches: totals that are added up to answers, and compact rows. No Spark here."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tocsin.engines.worker.rows import array_of, codes, column_of, integers
from tocsin.engines.worker.tasks import Member
from tocsin.kernels.model import Integers, Rows
from tocsin.kernels.runs.found import Graphs
from tocsin.kernels.runs.packed import fingerprint, packed, packed_unit
from tocsin.kernels.runs.register_automaton import RunKernel
from tocsin.kernels.runs.texts import LEAF, UNION
from tocsin.kernels.trends.totals import Totals, nothing, together
from tocsin.kernels.trends.trend_count import Trend
from tocsin.plan.manifest import END, START, Layout, member, variable

TOTALS, ALL_TOTALS = "__tocsin_totals", "__tocsin_all_totals"
WINDOW = "__tocsin_window"


@dataclass(frozen=True)
class Counting(Member):
    """A search that counts its matches: one row for every window and group of starts, with its totals."""

    summarizes: ClassVar[bool] = True

    trend: Trend = field(kw_only=True)

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Count the matches of rows by group."""
        columns = [
            column_of(table, name, self.layout.packing)
            for gathered in self.layout.gathered
            for name in gathered.columns
            if name is not None
        ]
        names = [f"f{number}" for number in range(len(columns))]
        every_us = self.trend.kernel.query.every_us
        if every_us is not None:
            starts = integers(array_of(table, self.layout.time))
            columns.append(pa.array(starts - starts % every_us))
            names.append(WINDOW)
        some, labels = np.zeros(1, np.int64), None
        if columns:
            # Codes of several columns may be far apart: as small numbers, each with a row that has it.
            _, some, labels = np.unique(codes(columns), return_index=True, return_inverse=True)
            labels = labels.reshape(-1)
        found = self.trend.totals(rows, labels)
        if not found:
            return
        taken = pa.array([int(some[label]) for label in found])
        totals = pa.array([pickle.dumps(one) for one in found.values()], pa.binary())
        arrays = [*(column.take(taken) for column in columns), totals]
        yield pa.RecordBatch.from_arrays(arrays, names=[*names, TOTALS])


def counting(trend: Trend, layout: Layout) -> Counting:
    """The member of a task that counts."""
    return Counting(trend.kernel, layout, trend=trend)


@dataclass(frozen=True)
class Answers:
    """The function that adds up the totals of a group, and answers."""

    trend: Trend

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add them up, and answer."""
        kinds = self.trend.kinds
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            lists = columns.pop(ALL_TOTALS).to_pylist()
            summed = [added_up(map(pickle.loads, totals), kinds) for totals in lists]
            for number, answer in enumerate(self.trend.answers):
                dtype = pa.float64()
                if answer.is_integer:
                    dtype = pa.string() if answer.as_digits else pa.int64()
                columns[f"__tocsin_answer_{number}"] = pa.array([answer.of(one) for one in summed], dtype)
            yield pa.RecordBatch.from_pydict(columns)


def added_up(totals: Iterable[Totals], kinds: tuple[str, ...]) -> Totals:
    """The totals of all."""
    return reduce(lambda one, other: together(one, other, kinds), totals, nothing(kinds))


# --- compact rows: one for each event that matches end at -----------------------------------------

# A row holds the graph of its matches, and their events once, by type and in order of time.


COUNT, STARTS, GRAPH = "__tocsin_count", "__tocsin_starts", "__tocsin_graph"


@dataclass(frozen=True)
class Compacting(Member):
    """A search that writes graphs; it wants every attribute of every type."""

    summarizes: ClassVar[bool] = True

    search: RunKernel

    def run(self, table: pa.Table, rows: Rows, *, most: int, memory: int) -> Iterator[pa.RecordBatch]:
        """Write the matches of rows as graphs."""
        kinds = np.zeros(len(rows.ts), np.int64) if rows.kinds is None else rows.kinds
        # By type and then in order: a row's place in the events of every graph it is part of.
        rank = np.empty(len(rows.ts), np.int64)
        rank[np.lexsort((rows.ts if rows.order is None else rows.order, kinds))] = np.arange(len(rows.ts))
        for some in self.search.graphs(rows):
            yield self._batch(some, table, rows, kinds, rank)

    def _batch(self, some: Graphs, table: pa.Table, rows: Rows, kinds: Integers, rank: Integers) -> pa.RecordBatch:
        graph_of = np.repeat(np.arange(len(some)), np.diff(some.offsets))
        is_kept, is_leaf = some.steps >= 0, some.steps == LEAF
        kept, event_of, _ = _local(graph_of[is_kept], some.events[is_kept], rank, len(some))
        leaves, start_of, offsets = _local(graph_of[is_leaf], some.events[is_leaf], rank, len(some))
        events = some.events.copy()
        events[is_kept], events[is_leaf] = event_of, start_of
        assert UNION < LEAF < 0
        mark, unit = fingerprint(self.search.tables), packed_unit(self.search.unit)
        graphs = [
            packed(mark, unit, some.steps[begin:end], events[begin:end], some.before[begin:end], root)
            for begin, end, root in zip(
                some.offsets[:-1].tolist(), some.offsets[1:].tolist(), some.roots.tolist(), strict=True
            )
        ]
        columns = {
            START: pa.array(rows.ts[some.starts]),
            END: pa.array(rows.ts[some.ends]),
            COUNT: pa.array([str(count) for count in some.counts], pa.string()),
            STARTS: pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(rows.ts[leaves[1]])),
        }
        for number, name in enumerate(self.search.types):
            own = np.flatnonzero(kinds[kept[1]] == number)
            counts = np.bincount(kept[0][own], minlength=len(some))
            ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
            columns[variable(number)] = pa.ListArray.from_arrays(
                pa.array(ends), self._events(name, kept[1][own], table)
            )
        columns[GRAPH] = pa.array(graphs, pa.binary())
        return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])

    def _events(self, kind: str, rows: Integers, table: pa.Table) -> pa.StructArray:
        taken = pa.array(rows)
        fields = [array_of(table, column).take(taken) for _, column in self.layout.wants.get(kind, ())]
        return pa.StructArray.from_arrays(fields, names=[member(place) for place in range(len(fields))])


def _local(
    graph_of: Integers, rows: Integers, rank: Integers, graphs: int
) -> tuple[tuple[Integers, Integers], Integers, Integers]:
    """The different rows of each graph by rank, as (graph, row) pairs; the place of each entry; where graphs begin."""
    keys = graph_of * len(rank) + rank[rows]
    different, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    owner = different // max(len(rank), 1)
    begins = np.searchsorted(owner, np.arange(graphs + 1))
    return (owner, rows[first]), inverse.reshape(-1) - begins[graph_of], begins
