"""Compact output in workers: one row for each event that matches end at, with the graph of these matches.

A row holds the events of its matches once, by type and in order of time, however many matches they are in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tocsin.kernels.model import Integers, Rows
from tocsin.kernels.runs.compact import fingerprint, packed, packed_unit
from tocsin.kernels.runs.found import Graphs
from tocsin.kernels.runs.kernel import RunKernel
from tocsin.kernels.runs.texts import LEAF, UNION
from tocsin.physical.sliced.rows import array_of
from tocsin.physical.sliced.worker import Member
from tocsin.plan.layout import END, START, member, variable

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
