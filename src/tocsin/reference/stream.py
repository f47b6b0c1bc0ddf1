"""The input of the reference: plain rows become events with a time, a position and a partition (SEMANTICS §1, §5)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from tocsin import errors
from tocsin.algebra.nodes import Partition
from tocsin.reference.values import microseconds, normal

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MOST_NESTED = 100  # levels of lists and mappings
Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Event:
    """An event; two are equal only when they are the same one."""

    type: str | None
    ts: int  # microseconds
    time: Any  # as the user gave it
    row: Row = field(repr=False)
    position: int = -1  # rank in the merged input of the query
    local: int = -1  # rank in the partition
    instant: int = -1  # rank by time and tie columns, the same for events that are equal in both (R41)

    def value(self, path: tuple[str, ...]) -> Any:
        """An attribute, or NULL when the event has none of that name."""
        found: Any = self.row
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return normal(found)


def check_columns(
    rows: Mapping[str, Sequence[Row]] | Sequence[Row], *, time: str, tie: Sequence[str], type_column: str
) -> None:
    """Refuse names of columns that are no names, or that no row has."""
    by_type = isinstance(rows, Mapping)
    unnamed = [kind for kind in rows if not isinstance(kind, str)] if isinstance(rows, Mapping) else []
    if unnamed:
        raise errors.InvalidInputError(
            f"`rows` has the key {unnamed[0]!r}, which is not the name of an event type.",
            hint="pass `{'Login': [{'ts': 0}]}`.",
        )
    groups = list(rows.values()) if isinstance(rows, Mapping) else [rows]
    for group in groups:
        if not isinstance(group, Iterable) or isinstance(group, str | bytes):
            raise errors.InvalidInputError(
                f"Rows are given as a {type(group).__name__}, not as a list.",
                hint="pass `{'Login': [{'ts': 0}]}`, or one list of rows with a type column.",
            )
    every = [row for group in rows.values() for row in group] if isinstance(rows, Mapping) else list(rows)
    for row in every:
        if not isinstance(row, Mapping):
            raise errors.InvalidInputError(
                f"A row is a {type(row).__name__}, not a mapping from column to value.",
                hint="write rows as `{'ts': 0, 'user': 'ada'}`.",
            )
        wrong = [column for column in row if not isinstance(column, str)]
        if wrong:
            raise errors.InvalidInputError(
                f"A column is called {wrong[0]!r}, which is not a text.", hint="call columns by texts."
            )
        deep = [column for column, value in row.items() if _is_deep(value)]
        if deep:
            raise errors.InvalidInputError(
                f"The column `{deep[0]}` holds a value that is nested more than {MOST_NESTED} levels deep.",
                hint="write it as a JSON text, or keep only the part that you need.",
            )
    named = [("time", time), *(("tie", name) for name in tie), *([] if by_type else [("type", type_column)])]
    for option, name in named:
        if not isinstance(name, str) or not name:
            raise errors.InvalidOptionError(
                f"`{option}={name!r}` is not the name of a column.", hint=f"write `{option}='seq'`."
            )
        if every and not any(name in row for row in every):
            known = dict.fromkeys(column for row in every for column in row)
            raise errors.MissingColumnError(
                f"There is no column `{name}` in the rows, and `{option}=` names it.",
                hint=errors.did_you_mean(name, known, "their columns"),
            )


def _is_deep(value: Any) -> bool:
    """Whether values nest in each other too deeply, as those of a list that contains itself do."""
    level = [value]
    for _ in range(MOST_NESTED + 1):
        # Each once: a list that contains itself twice would double with every level.
        held = {id(each): each for each in level if isinstance(each, Mapping | list | tuple | set | frozenset)}
        if not held:
            return False
        level = [inner for each in held.values() for inner in (each.values() if isinstance(each, Mapping) else each)]
    return True


def ingest(
    rows: Mapping[str, Sequence[Row]] | Sequence[Row], *, time: str, tie: Sequence[str], type_column: str
) -> list[Event]:
    """All events with a time, in order of position; an event whose time is NULL is never matched (R39)."""
    typed: list[tuple[str | None, Row]]
    if isinstance(rows, Mapping):
        typed = [(name, row) for name, group in rows.items() for row in group]
    else:
        typed = [(row.get(type_column), row) for row in rows]
    events = [Event(name, _ts(row.get(time)), row.get(time), row) for name, row in typed if row.get(time) is not None]
    events.sort(key=lambda event: (event.ts, _tie_key(event, tie), event.type or "", canonical(event.row)))
    found: list[Event] = []
    instant, before = -1, None
    for position, event in enumerate(events):
        key = (event.ts, _tie_key(event, tie))
        instant, before = instant + (key != before), key
        found.append(replace(event, position=position, local=position, instant=instant))
    return found


def _ts(time: Any) -> int:
    if isinstance(time, dt.datetime):
        return microseconds(normal(time) - EPOCH)
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    raise errors.TimeTypeError(
        f"An event's time is {time!r}: neither a timestamp nor an integer of microseconds.",
        hint="give datetime objects or integers in the time column.",
    )


def _tie_key(event: Event, tie: Sequence[str]) -> list[Any]:
    # NULLs first and NaN last; the marker keeps them from being compared with values.
    keys = [group_key(event.row.get(name)) for name in tie]
    return [(0,) if key[-1] is None else (2,) if key == ("NaN",) else (1, key[-1]) for key in keys]


def canonical(row: Row) -> str:
    """An event's attributes as canonical text: JSON with sorted keys (R16).

    Examples
    --------
    >>> canonical({"x": 1, "b": None, "a": "é"})
    '{"a":"é","b":null,"x":1}'
    """
    return json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_as_json)


def _as_json(value: Any) -> Any:
    match value:
        case dt.datetime():
            return microseconds(normal(value) - EPOCH)
        case dt.timedelta():
            return microseconds(value)
        case dt.date() | Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            return dict(value) if isinstance(value, Mapping) else str(value)


def partitions(events: list[Event], partition: Partition) -> list[list[Event]]:
    """The events of each key, with their rank in it; one list of all when nothing partitions.

    PARTITION BY takes NULL for a key like any other, `[k]` leaves such events out (R11). An event whose type has no
    such attribute at all belongs to no partition.
    """
    if not partition.attributes:
        return [events]
    carried: dict[str | None, set[str]] = {}
    for event in events:
        carried.setdefault(event.type, set()).update(event.row)
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        if not carried[event.type].issuperset(partition.attributes):
            continue
        if any(event.row.get(name) is None for name in partition.same):
            continue
        key = tuple(group_key(event.value((name,))) for name in partition.attributes)
        groups.setdefault(key, []).append(event)
    return [[replace(event, local=local) for local, event in enumerate(group)] for group in groups.values()]


def group_key(value: Any) -> Any:
    """A value that equals another exactly when SQL's grouping does: NaN is one group, 1 and 1.0 too."""
    if isinstance(value, float) and math.isnan(value):
        return ("NaN",)
    return (type(value) is bool, value)
