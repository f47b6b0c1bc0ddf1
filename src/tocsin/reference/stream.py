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
Rows = Mapping[str, Sequence[Row]] | Sequence[Row]


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


def typed(rows: Rows, type_column: str) -> list[tuple[str | None, Row]]:
    """Every row with its event type."""
    if isinstance(rows, Mapping):
        return [(name, row) for name, group in rows.items() for row in group]
    return [(row.get(type_column), row) for row in rows]


class Made(dict[str, Any]):
    """The row of an event that no input holds: derived by an aggregate or a rule, or what a projection leaves."""

    origin: Any = None  # of an emitted event: the rule and the match it comes from (R30)
    read: Event | None = None  # of a derived or projected event: the event at whose position it was made


def check_columns(rows: Rows, *, time: str, tie: Sequence[str], type_column: str) -> None:
    """Refuse names of columns that are no names, or that no row has."""
    by_type = isinstance(rows, Mapping)
    unnamed = [kind for kind in rows if not isinstance(kind, str)] if isinstance(rows, Mapping) else []
    if unnamed:
        raise errors.InvalidInputError(
            f"`rows` has the key {errors.shown(unnamed[0])}, which is not the name of an event type.",
            hint="pass `{'Login': [{'ts': 0}]}`.",
        )
    groups = [*rows.values()] if isinstance(rows, Mapping) else [rows]
    for group in groups:
        if not isinstance(group, Iterable) or isinstance(group, str | bytes):
            raise errors.InvalidInputError(
                f"Rows are given as a {type(group).__name__}, not as a list.",
                hint="pass `{'Login': [{'ts': 0}]}`, or one list of rows with a type column.",
            )
    every = [row for group in groups for row in group]
    for row in every:
        if not isinstance(row, Mapping):
            raise errors.InvalidInputError(
                f"A row is a {type(row).__name__}, not a mapping from column to value.",
                hint="write rows as `{'ts': 0, 'user': 'ada'}`.",
            )
        wrong = [column for column in row if not isinstance(column, str)]
        if wrong:
            raise errors.InvalidInputError(
                f"A column is called {errors.shown(wrong[0])}, which is not a text.", hint="call columns by texts."
            )
        for column, value in row.items():
            _check_value(column, value)
        kind = None if by_type else row.get(type_column)
        if kind is not None and not isinstance(kind, str):
            raise errors.InvalidInputError(
                f"The type column `{type_column}` holds {errors.shown(kind)}, which is not a text.",
                hint="it must hold the names of event types.",
            )
    named = [("time", time), *(("tie", name) for name in tie), *([] if by_type else [("type", type_column)])]
    for option, name in named:
        if not isinstance(name, str) or not name:
            raise errors.InvalidOptionError(
                f"`{option}={errors.shown(name)}` is not the name of a column.", hint=f"write `{option}='seq'`."
            )
        if every and not any(name in row for row in every):
            known = dict.fromkeys(column for row in every for column in row)
            raise errors.MissingColumnError(
                f"There is no column `{name}` in the rows, and `{option}=` names it.",
                hint=errors.did_you_mean(name, known, "their columns"),
            )


def _check_value(column: str, value: Any) -> None:
    """Refuse values that no column holds: too deep, as a list that contains itself is, or decimals without a number."""
    level = [value]
    for _ in range(MOST_NESTED + 1):
        if any(isinstance(each, Decimal) and not each.is_finite() for each in level):
            raise errors.InvalidInputError(
                f"The column `{column}` holds {errors.shown(value)}, and decimals are numbers in every engine.",
                hint="give None or a float instead.",
            )
        # Each once: a list that contains itself twice would double with every level.
        held = {id(each): each for each in level if isinstance(each, Mapping | list | tuple | set | frozenset)}
        if not held:
            return
        level = [inner for each in held.values() for inner in (each.values() if isinstance(each, Mapping) else each)]
    raise errors.InvalidInputError(
        f"The column `{column}` holds a value that is nested more than {MOST_NESTED} levels deep.",
        hint="write it as a JSON text, or keep only the part that you need.",
    )


def ingest(rows: Rows, *, time: str, tie: Sequence[str], type_column: str) -> list[Event]:
    """All events with a time, in order of position; an event whose time is NULL is never matched (R39)."""
    timed = [(name, row[time], row) for name, row in typed(rows, type_column) if row.get(time) is not None]
    events = [Event(name, _ts(at), at, row) for name, at, row in timed]
    try:
        events.sort(key=lambda event: (event.ts, _tie_key(event, tie), event.type or "", canonical(event.row)))
    except Exception as problem:  # whatever the classes of the user's values do
        raise errors.InvalidInputError(
            f"The rows cannot be put in order, by their tie columns and then their values: {errors.fault(problem)}.",
            hint="rows of one column must hold plain values of one type.",
        ) from None
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
        f"An event's time is {errors.shown(time)}: neither a timestamp nor an integer of microseconds.",
        hint="give datetime objects or integers in the time column.",
    )


def _tie_key(event: Event, tie: Sequence[str]) -> list[Any]:
    # NULLs first and NaN last; the marker keeps them from being compared with values.
    keys = [group_key(event.row.get(name)) for name in tie]
    return [(0,) if key[-1] is None else (2,) if key == ("NaN",) else (1, key[-1]) for key in keys]


def canonical(row: Row) -> str:
    """An event's attributes as canonical text: JSON with sorted keys (R16).

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


def identity(event: Event) -> tuple[Any, ...]:
    """What makes an event itself: its place in the stream, and when it is made its type, names and values (R24).

    Events of one place compare in this order: the one that was read comes first.
    """
    if not isinstance(event.row, Made):
        return (event.position,)
    names = tuple(sorted(event.row))
    values = tuple((canonical(_zeros_alike(event.row[name])), type(event.row[name]).__name__) for name in names)
    return (event.position, repr(event.row.origin), event.type or "", names, values)


def _zeros_alike(value: Any) -> Any:
    """A value in which −0.0 is 0.0, as it is where values are compared."""
    if isinstance(value, list):
        return [_zeros_alike(one) for one in value]
    return value + 0.0 if isinstance(value, float) else value


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
        try:
            groups.setdefault(key, []).append(event)
        except TypeError as problem:
            raise errors.TypeMismatchError(
                f"Values of {', '.join(f'`{name}`' for name in partition.attributes)} cannot be keys: "
                f"{errors.fault(problem)}.",
                hint="partition by plain values: numbers, texts, times.",
            ) from None
    return [[replace(event, local=local) for local, event in enumerate(group)] for group in groups.values()]


def group_key(value: Any) -> Any:
    """A value that equals another exactly when SQL's grouping does: NaN is one group, 1 and 1.0 too."""
    if isinstance(value, float) and math.isnan(value):
        return ("NaN",)
    return (type(value) is bool, value)
