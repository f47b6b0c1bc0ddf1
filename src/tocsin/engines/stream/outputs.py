"""Named outputs of a stream: rows and numbers that a step emits beside its result, one record each.

An output of rows (`Output`) adds a column to the result. Its rows are NULL in all other columns, and matches are NULL
in it. A metric is a number: Spark reports it with the progress of every micro-batch.

metric       of one micro-batch
------       ------------------
seen         rows that the inputs brought, heartbeats included
bad          of these, rows without a time
events       events that took part
late         events that came too late, and took none
matches      matches that were emitted, before HAVING
remembered   events in the state afterwards
growing      keys whose state grows with the number of events: of `tocsin.acer.rule_cer`, whose state is the user's
bytes        the size of the state afterwards
watermark    the watermark, in the unit of the time column; timestamps count microseconds
time_unit    the unit of integer times, where it is not microseconds
largest      events in the state of the largest shard
bound        the most events that may be in the state, by the declared rates; where they are known
over         for each type with a declared rate, events beyond it; where there are any
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T

from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.engines.stream.guard import Guard
from tocsin.engines.stream.step import Outcome
from tocsin.plan.manifest import EVENT

if TYPE_CHECKING:
    from tocsin.engines.stream.pipeline import StreamSettings

NAME = "tocsin"
FOUND = "found"  # the column of what shards emit: empty in the row that has the numbers of a step
LARGEST_NUMBER = 2**63 - 1
LARGEST, BOUND, OVER, TIME_UNIT = "largest", "bound", "over", "time_unit"
SUM = "coalesce(sum({0}), 0)"


@dataclass(frozen=True)
class Output:
    """A named output: one more column of the result, with rows of its own.

    Parameters
    ----------
    name
        The column that users see. Choose a name that no result has; only `late` is checked against other columns.
    column
        The column before it is renamed. Begin it with `__`, so that no column of a match has its name.
    type
        The Spark type of the column.
    is_wanted
        Whether a stream with these settings has the output. An output that users ask for needs an option:
        a field of `tocsin.options.Options`, handed on by `engines.spark.engine.stream_settings` to `StreamSettings`.
    rows
        Make the rows of one step: a table whose only column is `column`, or None if there are none. Spark calls it in
        the worker, once for each shard and micro-batch: a stream of 8 shards makes up to 8 rows where each step makes
        one. It reads the `Outcome` only; a number that users set does not reach it.
    """

    name: str
    column: str
    type: T.DataType
    is_wanted: Callable[[StreamSettings], bool]
    rows: Callable[[Outcome], pa.Table | None]


def _late_events(outcome: Outcome) -> pa.Table | None:
    late = outcome.late
    return late.select([EVENT]) if late is not None and EVENT in late.column_names else None


LATE = Output("late", EVENT, T.StringType(), attrgetter("with_late"), _late_events)  # as JSON
OUTPUTS = [LATE]


# --- metrics ----------------------------------------------------------------------------------------


# By name: the SQL aggregate over all shards of this number of a `Report`.
METRICS = {
    **dict.fromkeys(("seen", "bad", "events", "late", "matches", "remembered", "growing", "bytes"), SUM),
    # Rows that bring matches have zeros; all shards have the same watermark, which may lie before 1970.
    "watermark": f"max(CASE WHEN length({FOUND}) = 0 THEN {{0}} END)",
}


def numbers_of(guard: Guard | None) -> tuple[str, ...]:
    """The numbers that a step reports: with declared rates, one more for each type that has one."""
    over = (f"over_{number}" for number in range(len(guard.types) if guard is not None else 0))
    return (*METRICS, *over)


def observed(guard: Guard | None = None, bound: int | None = None, unit: Unit = MICROSECONDS) -> tuple[str, ...]:
    r"""The metrics of a stream, as SQL; with declared rates also what they bound.

    >>> observed(bound=7)[-1]
    '7L AS bound'
    >>> "bound" in observed(bound=2**63)[-1]
    False
    >>> print(observed(Guard(("Log'in",), (10,), (1,)))[-1])
    named_struct('Log\'in', coalesce(sum(over_0), 0)) AS over
    >>> observed(unit=Unit("ms"))[-1]
    "'ms' AS time_unit"
    """
    found = [f"{total.format(name)} AS {name}" for name, total in METRICS.items()]
    found.append(f"coalesce(max(remembered), 0) AS {LARGEST}")
    if unit.name != MICROSECONDS.name:
        found.append(f"{_quoted(unit.name)} AS {TIME_UNIT}")
    if bound is not None and bound <= LARGEST_NUMBER:  # else it bounds nothing: what rules emit multiplies
        found.append(f"{bound}L AS {BOUND}")
    if guard is not None:
        names = numbers_of(guard)[-len(guard.types) :]
        pairs = (f"{_quoted(kind)}, {SUM.format(name)}" for kind, name in zip(guard.types, names, strict=True))
        found.append(f"named_struct({', '.join(pairs)}) AS {OVER}")
    return tuple(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
