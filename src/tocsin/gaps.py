"""The documented gaps: valid queries that an engine refuses with NOT_YET_SUPPORTED.

Every `UnsupportedError` names its gap, and `docs/reference/gaps.md` is this table, written by `tools/gaps.py`. A query
that runs, but not with the strategy or form that was asked for, is no gap: that is `OptionRefusedError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Gap:
    """One thing that does not run."""

    what: str  # the construct, as the docs name it
    engines: tuple[str, ...]  # the engines that refuse it
    instead: str  # what to do

    @property
    def hint(self) -> str:
        """The advice as a hint of an error."""
        return self.instead[0].lower() + self.instead[1:]


EVERYWHERE = ("Spark", "local", "stream")


class Gaps(Enum):
    """All gaps, by the name that `UnsupportedError.gap` has."""

    TABLE_OF_SEVERAL_EVENTS = Gap(
        "A reference table that is a Spark DataFrame, asked about values of several events or in an emitted value",
        ("Spark", "stream"),
        "Give the table as rows: `tables={'known': [('A', 'B'), …]}`.",
    )
    TABLE_OF_SPARK = Gap(
        "A reference table that is a Spark DataFrame",
        ("local",),
        "Give the table as rows, `tables={'known': [('A', 'B'), …]}`, as an Arrow table or as a pandas DataFrame.",
    )
    TABLE_OF_EMITTED_EVENTS = Gap(
        "A reference table that is a Spark DataFrame, asked about events that rules emit",
        ("stream",),
        "Give the table as rows, or use it in the rule that emits.",
    )
    EDGES_OF_MADE_EVENTS = Gap(
        "`FIRST` and `LAST` over all matches, of events that `PROJECT` or `AGG` has made",
        EVERYWHERE,
        "Return the value per match, and take the first or last row of the result.",
    )
    STREAM_TOTALS = Gap(
        "Aggregates over all matches (`COUNT(*)`, `GROUP BY`) of a stream, without windows of time",
        ("stream",),
        "Add `EVERY 10 MINUTES`: a stream has no end.",
    )
    ALTERNATIVE_AND_ELEMENT = Gap(
        "`SEMANTICS next` beside `AND`, or `NOT` in a group, where a variable is an alternative in one `OR` branch and "
        "stands by itself in another",
        EVERYWHERE,
        "Give the variable another name in one of the branches.",
    )
    COMPUTED_ABSENCE = Gap(
        "`NOT` in an `OR` branch or in an iteration, compared with other events by text, decimals or user-defined "
        "functions that are computed from both",
        EVERYWHERE,
        "Compute the value as a column first and compare columns.",
    )
    NESTED_ABSENCE = Gap(
        "`NOT` in an iteration inside another iteration or `OR` branch, with a condition on the other events",
        EVERYWHERE,
        "Omit the condition, or one of the iterations.",
    )
    TIES_OF_EMITTED_EVENTS = Gap(
        "`tie=` for a rule that repeats or selects emitted events, which have no tie columns",
        EVERYWHERE,
        "Omit `tie=`.",
    )
    MADE_VALUES = Gap(
        "User-defined aggregates and functions whose values are maps or other types without a plain form",
        ("Spark", "stream"),
        "Return a plain value, an array or a struct.",
    )
    CALENDAR_OF_NANOSECONDS = Gap(
        'Fields of the calendar (`hour`, `weekday`, …) of integer times with `time_unit="ns"`',
        EVERYWHERE,
        "Convert the time column to a timestamp.",
    )
    ENDS_OF_TIME = Gap(
        "Integer times at both ends of 64 bits, −2⁶³ and 2⁶³ − 1, in one search",
        EVERYWHERE,
        "Correct or filter out these events.",
    )
    CROWDED_INSTANT = Gap(
        "So many events of one instant, over so long a time, that 64 bits cannot order them all",
        EVERYWHERE,
        "Give the events distinct times, or split them with `PARTITION BY`.",
    )
