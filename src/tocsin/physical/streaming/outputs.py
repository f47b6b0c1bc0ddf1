"""Named outputs of a stream: rows that a step emits beside its result, one record each.

An output adds a column to the result. Its rows are NULL in all other columns, and rows of the result are NULL in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tocsin.physical.sliced.layout import EVENT
from tocsin.physical.streaming.step import Outcome

if TYPE_CHECKING:
    from tocsin.physical.streaming.frames import StreamSettings


@dataclass(frozen=True)
class Output:
    """A named output.

    Attributes
    ----------
    name
        The column that users see.
    column
        The column of its rows before they are named.
    type
        The Spark type of the column.
    is_wanted
        Whether the settings of a stream ask for it.
    rows
        Its rows of one step, in one column of this name; None: there are none.
    """

    name: str
    column: str
    type: str
    is_wanted: Callable[[StreamSettings], bool]
    rows: Callable[[Outcome], pa.Table | None]


def _wants_late(settings: StreamSettings) -> bool:
    return settings.with_late


def _late_events(outcome: Outcome) -> pa.Table | None:
    """Late events as JSON, where whole events are shipped."""
    late = outcome.late
    return late.select([EVENT]) if late is not None and EVENT in late.column_names else None


LATE = Output("late", EVENT, "string", _wants_late, _late_events)
OUTPUTS = [LATE]
