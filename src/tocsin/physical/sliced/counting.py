"""Count in workers: the totals of a task's rows, then answers from the totals of a group. No Spark here."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tocsin.kernels.model import Rows
from tocsin.kernels.trends.totals import Totals, nothing, together
from tocsin.kernels.trends.trend import Trend
from tocsin.physical.sliced.rows import array_of, codes, integers, key_of
from tocsin.physical.sliced.worker import Member
from tocsin.plan.layout import KEY, Layout

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
            key_of(table, self.layout.packing.key_bits) if name == KEY else array_of(table, name)
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
        labels = codes(columns) if columns else None
        some = np.zeros(1, np.int64)
        if labels is not None:
            # Codes of several columns may be far apart: as small numbers, each with a row that has it.
            _, some, labels = np.unique(labels, return_index=True, return_inverse=True)
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
            lists = batch.column(batch.schema.get_field_index(ALL_TOTALS)).to_pylist()
            summed = [added_up(map(pickle.loads, totals), kinds) for totals in lists]
            arrays = [batch.column(place) for place, name in enumerate(batch.schema.names) if name != ALL_TOTALS]
            names = [name for name in batch.schema.names if name != ALL_TOTALS]
            for number, answer in enumerate(self.trend.answers):
                dtype = pa.float64()
                if answer.is_integer:
                    dtype = pa.string() if answer.as_digits else pa.int64()
                arrays.append(pa.array([answer.of(one) for one in summed], dtype))
                names.append(f"__tocsin_answer_{number}")
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def added_up(totals: Iterable[Totals], kinds: tuple[str, ...]) -> Totals:
    """The totals of all."""
    return reduce(lambda one, other: together(one, other, kinds), totals, nothing(kinds))
