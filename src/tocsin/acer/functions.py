"""Users' functions, and what to say when they fail: which one, for which key, at which event time."""

from __future__ import annotations

import copy
import datetime as dt
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from decimal import Decimal
from typing import Any

from tocsin import errors
from tocsin.acer.clock import Clock
from tocsin.acer.events import Event, values_in
from tocsin.acer.model import Key

UNCHANGING = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, dt.datetime, dt.date, dt.timedelta},
)


@dataclass(frozen=True)
class Function:
    """A user's function under the name of the option that it came by."""

    call: Callable[..., Any]
    option: str
    clock: Clock
    takes_window: bool = False  # whether it wants to know the window

    @property
    def name(self) -> str:
        """Its name in messages."""
        own = getattr(self.call, "__name__", type(self.call).__name__)
        return f"`{self.option}` ({own})"

    def failed(self, key: Key, time: int, problem: Exception) -> errors.MatchError:
        """The error for an exception that it raised."""
        if isinstance(problem, errors.UserFunctionError | errors.StateGrowsError):
            return problem
        own = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename != __file__][1:]
        at = f"\n  at line {own[-1].lineno} of {own[-1].name}: {own[-1].line}" if own and own[-1].line else ""
        return errors.UserFunctionError(
            f"{self.name} failed for the key {shown(key)} at the event time {self.clock.shown(time)}: "
            f"{errors.fault(problem)}{at}",
            hint="the events before it were fine; call the function with this event in plain Python to see why.",
        )

    def pair(self, given: Any) -> tuple[Any, Any]:
        """The state and the outputs that it gave."""
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(f"it must return a pair (state, outputs), not {errors.shown(given)}")
        return given


def shown(key: Key) -> str:
    """A key in a message."""
    return ", ".join(map(repr, key)) if key else "() of all events"


def function(call: Any, option: str, clock: Clock, arguments: tuple[str, ...], *, window: bool = False) -> Function:
    """A function that takes these arguments, with `window` perhaps one more; refuses any other."""
    wanted = f"({', '.join(arguments)})"
    if not callable(call):
        raise errors.InvalidOptionError(
            f"`{option}={errors.shown(call)}` is not a function.", hint=f"pass a Python function of {wanted}."
        )
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # some built-in functions do not tell
        return Function(call, option, clock)
    for more in ((), ("window",)) if window else ((),):
        try:
            signature.bind(*arguments, *more)
        except TypeError:
            continue
        return Function(call, option, clock, bool(more))
    also = f", or of ({', '.join((*arguments, 'window'))})" if window else ""
    raise errors.InvalidOptionError(
        f"`{option}` is a function of {signature}.", hint=f"it must be one of {wanted}{also}."
    )


def as_given(row: Any) -> Any:
    """A row as it is now, whatever becomes of the objects in it: a function may go on with them as its state.

    >>> state = [1]
    >>> row = as_given(("seen", state))
    >>> state.append(2)
    >>> row
    ('seen', [1])
    """
    if isinstance(row, tuple):
        return row if UNCHANGING.issuperset(map(type, row)) else copy.deepcopy(row)
    return row if type(row) in UNCHANGING else copy.deepcopy(row)


def rows_in(given: Any) -> list[Any]:
    """The rows of what a function gave: none, one, or some; as they were when it gave them.

    >>> rows_in(None), rows_in({"n": 1}), rows_in([(1,), (2,)])
    ([], [{'n': 1}], [(1,), (2,)])
    """
    if given is None:
        return []
    if type(given) is list:  # as most are; the tests below take longer than many a function
        return [as_given(row) for row in given]
    if isinstance(given, Mapping | tuple) or is_dataclass(given):
        return [as_given(given)]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return [as_given(row) for row in given]
    raise TypeError(f"outputs are a list of rows, or one row as a tuple or mapping, not {errors.shown(given)}")


def values_of_row(row: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of a row in the order of columns: by name where it has names, otherwise by place.

    >>> values_of_row({"b": 2, "a": 1}, ("a", "b")), values_of_row((1, 2), ("a", "b"))
    ((1, 2), (1, 2))
    """
    if type(row) is tuple and len(row) == len(names):
        return row
    named: Any = row
    if isinstance(row, Event):
        try:
            return values_in(row, names)
        except KeyError:
            named = row.asdict()
    elif hasattr(row, "__fields__"):  # a Row of Spark's
        named = row.asDict()
    elif is_dataclass(row):
        named = vars(row)
    if isinstance(named, Mapping):
        missing = [name for name in names if name not in named]
        if missing:
            raise TypeError(f"an output has no {errors.shown(missing[0])}: {errors.shown(row)}")
        return tuple(named[name] for name in names)
    if isinstance(named, tuple | list):
        if len(named) != len(names):
            raise TypeError(
                f"an output has {len(named)} values for the columns {', '.join(names) or '()'}: {errors.shown(row)}"
            )
        return tuple(named)
    if len(names) == 1:
        return (named,)
    raise TypeError(f"an output is neither a tuple nor a mapping: {errors.shown(row)}")
