"""The order of events (R16), as Spark has it, over Python values: positions, and texts of events."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from tocsin.expressions.objects import microseconds


def as_sorted(values: Iterable[Any]) -> tuple[Any, ...]:
    """Order lists of values as Spark sorts them: NULL first and NaN last.

    >>> sorted([(float("nan"),), (2.0,), (None,)], key=as_sorted)
    [(None,), (2.0,), (nan,)]
    """
    return tuple((0,) if value is None else (2,) if _is_nan(value) else (1, value) for value in values)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def place_of(position: Mapping[str, Any] | int) -> Any:
    """Order positions: structs of Spark, or numbers where one process has all events."""
    return position if isinstance(position, int) else as_sorted(position.values())


def end_of(names: Iterable[str], time: str) -> str:
    """The character behind the last value of an event's text without its time.

    `1}` is greater than `10}`; where the time would come after the value, it is less.

    >>> end_of(["k", "x"], "ts"), end_of(["k", "n"], "ts")
    ('}', ',')
    """
    return "," if time > max(names, default=time) else "}"


def text_of(row: Mapping[str, Any], time: str) -> str:
    """An event as text: its values by name, without names and time, as `tocsin.engines.spark.match_ids` has it."""
    others = [name for name in sorted(row) if name != time]
    return ",".join(as_json(row[name]) for name in others) + end_of(others, time)


def as_json(value: Any) -> str:
    """A value as canonical text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime() | dt.timedelta():
            return microseconds(value)
        case bytes():
            return value.hex()
        case _:
            return str(value)
