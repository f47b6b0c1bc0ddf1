"""Events as users' functions see them: tuples with names, equal when all their values are."""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tocsin import errors
from tocsin.acer.clock import Clock


class Event(tuple[Any, ...]):
    """A row: `event.amount`, `event["amount"]`, or by place. It can be pickled, compared and kept in a set.

    >>> Login = event_class(("ts", "user"))
    >>> event = Login((5, "ann"))
    >>> event.user, event["ts"], event[0], event == Login((5, "ann"))
    ('ann', 5, 5, True)
    >>> event
    Event(ts=5, user='ann')
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[dict[str, int]] = {}
    has_lists: ClassVar[bool] = False  # or anything else that a function could change

    def __getitem__(self, name: Any) -> Any:
        """The value of a column, by its name or its place."""
        if isinstance(name, str):
            try:
                return super().__getitem__(self.places[name])
            except KeyError:
                raise KeyError(f"{name!r}: the event has {', '.join(self.fields)}") from None
        return super().__getitem__(name)

    def asdict(self) -> dict[str, Any]:
        """The values by name."""
        return dict(zip(self.fields, self, strict=True))

    def __repr__(self) -> str:
        """Names and values."""
        return f"Event({', '.join(f'{name}={value!r}' for name, value in zip(self.fields, self, strict=True))})"

    def __reduce__(self) -> Any:
        """Pickled as names and values: the class of a row is made anew from them."""
        return _made, (self.fields, tuple(self), self.has_lists)

    def fresh(self) -> Event:
        """The event for one more function: lists in it are its own, so that nobody sees what another did to them."""
        return type(self)(copy.deepcopy(tuple(self))) if self.has_lists else self


@lru_cache(maxsize=64)
def event_class(fields: tuple[str, ...], has_lists: bool = False) -> type[Event]:
    """The class of events with these columns; a column hides what tuples have of its name."""
    places = {name: place for place, name in enumerate(fields)}
    members: dict[str, Any] = {"fields": fields, "places": places, "has_lists": has_lists, "__slots__": ()}
    own = {"fields", "places", "has_lists", "asdict", "fresh"}
    # Those of a namedtuple read any tuple without a call of `__getitem__`; its names say nothing here. The class must
    # be held while its members are taken: the garbage collector empties one that nobody refers to.
    named = namedtuple("named", [f"place{place}" for place in range(len(fields))])  # type: ignore[misc]
    for name, place in places.items():
        is_special = name.startswith("__") and name.endswith("__")
        if name.isidentifier() and name not in own and not is_special:
            members[name] = vars(named)[f"place{place}"]
    return type("Event", (Event,), members)


def values_in(event: Event, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of some columns, in this order; a KeyError when one is not there."""
    plain, places = tuple(event), type(event).places
    return tuple([plain[places[name]] for name in names])


def _made(fields: tuple[str, ...], values: tuple[Any, ...], has_lists: bool) -> Event:
    return event_class(fields, has_lists)(values)


def events_of(names: tuple[str, ...], columns: Sequence[pa.Array | pa.ChunkedArray]) -> Iterator[Event]:
    """The rows of columns as events with values of these names."""
    made = event_class(names, any(pa.types.is_nested(column.type) for column in columns))
    return map(made, zip(*map(values_of, columns), strict=True))


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Python values; instants in UTC, whatever zone the session shows them in.

    What lies beyond the years of Python's datetimes, 1 to 9999, is a number: of microseconds, or of days for a date.
    """
    if pa.types.is_timestamp(column.type):
        return _datetimes(column)
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if pa.types.is_nested(column.type):
            raise errors.InvalidInputError(
                "A list, map or struct of an event holds a time beyond the years 1 to 9999, which Python lacks.",
                hint="leave the column out, or cast such times to numbers or texts.",
            ) from None
        if not pa.types.is_temporal(column.type):
            raise
        return [_value(one) for one in column]


def _value(one: pa.Scalar) -> Any:
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return one.value


def _datetimes(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Time stamps as `Clock` shows them; Arrow takes many times as long."""
    clock = Clock.LOCAL if column.type.tz is None else Clock.INSTANT
    micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    since_epoch = np.asarray(micros.fill_null(0)).astype("timedelta64[us]").astype(object).tolist()
    epoch = clock.epoch
    try:
        found = [epoch + one for one in since_epoch]
    except OverflowError:
        found = list(map(clock.shown, micros.fill_null(0).to_pylist()))
    for place in np.flatnonzero(micros.is_null()).tolist() if micros.null_count else ():
        found[place] = None
    return found


def order_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values that order events as those of the column do: times of any year as numbers."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())
