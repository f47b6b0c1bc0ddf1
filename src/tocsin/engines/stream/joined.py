"""Streams by Spark's own joins (`strategy="join"`): a chain of stream-stream joins, one for each variable.

For those who want no Python workers, or compare. Spark's joins of streams allow little: a key, single events without
absence, an `id` column that makes matches differ, and time as TIMESTAMP. State and watermark are Spark's: a match comes
with its last event, and Spark drops and counts late events.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.engines.spark.columns import Compiler
from tocsin.engines.spark.inputs import Inputs
from tocsin.engines.spark.joins import frames as joins
from tocsin.engines.spark.joins import times
from tocsin.engines.spark.joins.frames import BranchFrame, Source
from tocsin.engines.spark.sql import Column
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import join_on, select, where, with_columns
from tocsin.engines.spark.typed_columns import Kind
from tocsin.engines.stream.pipeline import WATERMARK_DELAY, StreamSettings
from tocsin.plan.joins.model import Join, Plan, Scan
from tocsin.plan.joins.refusals import unsupported

ANOTHER = "leave out `strategy=`: a kernel runs it."


def _require_joins(query: alg.Query, inputs: Inputs, options: StreamSettings) -> None:
    """Refuse all that joins of streams do not run."""
    refusal = unsupported(query)
    if refusal is not None:
        raise refusal
    absence = next(alg.absences_in(query.pattern), None)
    if absence is not None:
        raise errors.OptionRefusedError("Absence does not run as joins of streams.", where=absence.where, hint=ANOTHER)
    if inputs.id is None:
        raise errors.InvalidOptionError(
            "Joins of streams need a column that identifies events: Spark cannot number equal matches of a stream.",
            hint=f"name one with `id=`, or {ANOTHER}",
        )
    if inputs.time_kind is not Kind.INSTANT:
        raise errors.OptionRefusedError("Joins of streams need times of the type TIMESTAMP.", hint=ANOTHER)
    asked = {
        "late=": options.with_late or options.is_strict,
        "heartbeats=": bool(options.heartbeats),
        "idle_timeout=": options.idle_ms is not None,
        'emit="watermark"': not options.eager,
        "shards=": options.shards is not None,
    }
    name = next((name for name, is_asked in asked.items() if is_asked), None)
    if name is not None:
        raise errors.OptionRefusedError(f"Joins of streams know no `{name}`: time is Spark's there.", hint=ANOTHER)


def matches(query: alg.Query, plan: Plan, inputs: Inputs, options: StreamSettings) -> DataFrame:
    """The matches of a planned query on streams, with the columns of a batch."""
    _require_joins(query, inputs, options)
    has_key = bool(query.partition.attributes)
    for join in (join for branch in plan.branches for join in branch.joins if not has_key and not join.keys):
        raise errors.OptionRefusedError(
            f"Nothing that Spark can join streams by connects `{join.scan.variable}` with the others.",
            hint=f"write PARTITION BY or an equality, or {ANOTHER}",
        )
    return joins.matches(query, plan, inputs, partial(_StreamedBranch, lateness_us=options.lateness_us))


class _StreamedBranch(BranchFrame):
    """Joins the streams of the variables of one signature."""

    def __init__(self, *given: Any, lateness_us: dict[str, int]) -> None:
        super().__init__(*given)
        self.lateness_us = lateness_us

    def _rows(self, source: Source, scan: Scan, compiler: Compiler, *more: Column) -> DataFrame:
        stream = source.stream
        frame = stream.frame
        if WATERMARK_DELAY not in stream.schema[stream.time].metadata:
            frame = frame.withWatermark(stream.time, f"{math.ceil(self.lateness_us[stream.type] / 1000)} milliseconds")
        # A filter that does not name the time would be pushed below the watermark, which then saw nothing else: that on
        # the type, and those that Spark makes of conditions itself, `x IS NOT NULL`. So every column names it.
        time = F.col(stream.time)
        frame = select(
            frame,
            *(
                (time if name == stream.time else F.when(time.isNotNull(), F.col(name))).alias(source.name(number))
                for number, name in enumerate(stream.schema.names)
            ),
        )
        conditions = [F.col(source.column_of(stream.time)).isNotNull(), *self._of_one_event(source, scan, compiler)]
        micros = source.micros_of_time.alias(source.name("us"))
        return with_columns(where(frame, reduce(and_, conditions)), micros, *more)

    def _join(self, joined: DataFrame, join: Join) -> DataFrame:
        source, first = self.sources[join.scan.variable], self._first
        other = self._scan(join.scan)
        conditions = [*self._same_partition(first, source)]
        conditions += [self.compiler.condition(condition) for condition in join.keys + join.conditions]
        conditions += map(self._before, join.before)
        if join.span is not None:
            conditions.append(self._is_within(join.span))
        window = self.query.window_us
        assert window is not None
        low, high = 1 - window, window - 1
        if join.near is not None:
            anchor = self.sources[join.near.anchor]
            conditions.append(times.is_near(source.micros, anchor.micros, join.near))
            if anchor is first:
                low, high = join.near.low_us, join.near.high_us
        # Between columns with a watermark, so that Spark knows when to forget.
        of_first, own = (F.col(one.column_of(one.stream.time)) for one in (first, source))
        conditions += [own >= _later(of_first, low), own <= _later(of_first, high)]
        both = join_on(joined, other, reduce(and_, conditions), "inner")
        # One column with a watermark may leave a join: the time of the first variable, which bounds the next one.
        name = source.column_of(source.stream.time)
        plain = F.timestamp_micros(source.micros).alias(name)
        return select(both, *(plain if column == name else F.col(column) for column in both.columns))


def _later(time: Column, by_us: int) -> Column:
    return Column(f"({time.text} {'-' if by_us < 0 else '+'} INTERVAL '{abs(by_us) / 1e6:.6f}' SECOND)")
