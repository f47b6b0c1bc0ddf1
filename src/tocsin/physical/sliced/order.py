"""The order of events (R16) in Python, as Spark has it. Knows neither Spark nor arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


def as_sorted(values: Iterable[Any]) -> tuple[Any, ...]:
    """What orders lists of values as Spark sorts them: NULL first and NaN last.

    Examples
    --------
    >>> sorted([(float("nan"),), (2.0,), (None,)], key=as_sorted)
    [(None,), (2.0,), (nan,)]
    """
    return tuple((0,) if value is None else (2,) if is_nan(value) else (1, value) for value in values)


def is_nan(value: Any) -> bool:
    """Whether a value is the number that is none."""
    return isinstance(value, float) and math.isnan(value)


def place_of(position: Mapping[str, Any] | int) -> Any:
    """What orders positions: those of `positions`; where one process has all events, they are numbered."""
    return position if isinstance(position, int) else as_sorted(position.values())


def end_of(names: Iterable[str], time: str) -> str:
    """What stands behind the last value of an event's text without its time.

    `1}` is greater than `10}`; where the time would come after the value, it is less.

    Examples
    --------
    >>> end_of(["k", "x"], "ts"), end_of(["k", "n"], "ts")
    ('}', ',')
    """
    return "," if time > max(names, default=time) else "}"
