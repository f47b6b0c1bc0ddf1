"""The memory of machines between micro-batches, as bytes: a pickle that holds data and no code.

A pickle may name any function of any module, and loading it calls them: whoever can write the checkpoint would run code
in the workers. So the names that a pickle may hold are those below, and the classes that the user's functions are
written with. Others are refused when the state is stored, and again when it is loaded.
"""

from __future__ import annotations

import enum
import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from functools import partial
from types import CodeType
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo

OURS = (
    ("tocsin.acer.clock", ("Clock",)),
    ("tocsin.acer.events", ("_made",)),
    ("tocsin.acer.fast", ("Cut", "Folded", "Kept", "Memory", "Waiting")),
    ("tocsin.acer.growth", ("Growth",)),
    ("tocsin.acer.listings", ("Looped", "Sequence", "Share")),
    ("tocsin.acer.literal", ("Instance", "Memory")),
    ("tocsin.acer.model", ("Arrival",)),
    ("tocsin.acer.stored", ("class_called",)),
    ("tocsin.acer.stream", ("Remembered",)),
    ("tocsin.acer.windows", ("Window",)),
)
BUILTINS = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, range, set, slice, str, tuple)
PLAIN = (
    ("builtins", tuple(one.__name__ for one in BUILTINS)),
    ("collections", ("Counter", "OrderedDict", "defaultdict", "deque")),
    ("datetime", ("date", "datetime", "time", "timedelta", "timezone")),
    ("decimal", ("Decimal",)),
    ("fractions", ("Fraction",)),
    ("uuid", ("UUID",)),
    ("zoneinfo", ("ZoneInfo",)),
    ("pytz", ("_UTC", "_p")),
    ("numpy", ("dtype", "ndarray")),
    ("numpy.core.multiarray", ("_reconstruct", "scalar")),
    ("numpy._core.multiarray", ("_reconstruct", "scalar")),
    ("numpy.core.numeric", ("_frombuffer",)),
    ("numpy._core.numeric", ("_frombuffer",)),
)
NAMES = frozenset((module, name) for module, names in (*OURS, *PLAIN) for name in names)
DEEP = 20  # functions that call functions that call functions


class NotPlainError(Exception):
    """A state holds something that is neither plain data nor of a class of the user's functions."""


def class_called(name: str) -> type:
    """Stand for a class of the user's in a pickle; a loader reads the class off its own list."""
    raise NotPlainError(f"`{name}` is read without the functions it belongs to")


def dumped(value: Any, classes: Iterable[type] = ()) -> bytes:
    """A value as bytes; raises `NotPlainError` when it holds an object of another class.

    >>> loaded(dumped({"seen": [1, 2.5, None]}))
    {'seen': [1, 2.5, None]}
    >>> dumped(print)
    Traceback (most recent call last):
    ...
    tocsin.acer.stored.NotPlainError: `builtins.print` is not plain data
    """
    sink = io.BytesIO()
    _Pickler(sink, {one: _called(one) for one in classes}).dump(value)
    return sink.getvalue()


def loaded(written: bytes, classes: Iterable[type] = ()) -> Any:
    """The value that `dumped` wrote; raises `NotPlainError` when the bytes name anything else than data."""
    return _Unpickler(io.BytesIO(written), {_called(one): one for one in classes}).load()


class _Pickler(pickle.Pickler):
    def __init__(self, sink: io.BytesIO, names: dict[type, str]) -> None:
        super().__init__(sink, pickle.HIGHEST_PROTOCOL)
        self._names = names

    def reducer_override(self, value: Any) -> Any:
        """Called for all but plain values of built-in types: what a pickle would name."""
        if isinstance(value, type):
            if value in self._names:
                return class_called, (self._names[value],)
        elif isinstance(value, ZoneInfo) and value.key is not None:
            return ZoneInfo, (value.key,)
        elif not (callable(value) and hasattr(value, "__qualname__")):
            return NotImplemented  # its class is asked about next
        if (value.__module__, value.__qualname__) not in NAMES:
            raise NotPlainError(f"`{value.__module__}.{value.__qualname__}` is not plain data")
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, classes: dict[str, type]) -> None:
        super().__init__(source)
        self._classes = classes

    def find_class(self, module: str, name: str) -> Any:
        """The objects that a pickle may name."""
        if (module, name) not in NAMES:
            raise NotPlainError(f"`{module}.{name}` is not plain data")
        if (module, name) == (__name__, class_called.__name__):
            return self._class
        return super().find_class(module, name)

    def _class(self, name: str) -> type:
        if name not in self._classes:
            raise NotPlainError(f"no function of the query is written with `{name}`")
        return self._classes[name]


def classes_of(*functions: Callable[..., Any]) -> tuple[type, ...]:
    """The classes that functions are written with, of which their states may be.

    Those are the classes that the functions, and functions that they call, name or are annotated with, if they are
    dataclasses, NamedTuples or enums, or stand in the same module as the function.

    >>> from typing import NamedTuple
    >>> Seen = NamedTuple("Seen", [("count", int)])
    >>> def count(state, event):
    ...     return Seen(state.count + 1), []
    >>> classes_of(count)
    (<class 'tocsin.acer.stored.Seen'>,)
    """
    found: dict[type, None] = {}
    seen: set[int] = set()
    for function in functions:
        _look(function, found, seen, DEEP)
    return tuple(found)


def _look(function: Any, found: dict[type, None], seen: set[int], deep: int) -> None:
    while isinstance(function, partial):
        function = function.func
    if id(function) in seen or deep == 0:
        return
    seen.add(id(function))
    if not hasattr(function, "__code__"):
        method = vars(type(function)).get("__call__")
        if not hasattr(method, "__code__"):
            return
        _add(type(function), getattr(method, "__module__", None), found, seen, deep)
        function = method
    function = getattr(function, "__func__", function)
    for value in _named_in(function):
        if isinstance(value, type):
            _add(value, function.__module__, found, seen, deep)
        elif hasattr(value, "__code__"):
            _look(value, found, seen, deep - 1)


def _add(one: type, module: str | None, found: dict[type, None], seen: set[int], deep: int) -> None:
    is_tuple = issubclass(one, tuple) and hasattr(one, "_fields")
    is_own = one.__module__ == module or is_tuple or is_dataclass(one) or issubclass(one, enum.Enum)
    if not is_own or one in found:
        return
    found[one] = None
    for annotated in _hints(one):
        if isinstance(annotated, type):
            _add(annotated, module, found, seen, deep)
    for member in vars(one).values():
        method = getattr(member, "__func__", member)
        if hasattr(method, "__code__") and method.__module__ == one.__module__:
            _look(method, found, seen, deep - 1)


def _named_in(function: Any) -> Iterator[Any]:
    """The objects that a function names: in its code and in code inside it, its closure, and its annotations."""
    names = set(_names(function.__code__))
    yield from (value for name, value in function.__globals__.items() if name in names)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet set
            continue
    yield from function.__defaults__ or ()
    yield from _hints(function)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _hints(annotated: Any) -> Iterator[Any]:
    try:
        waiting = list(get_type_hints(annotated).values())
    except Exception:  # names that mean nothing here
        return
    while waiting:
        one = waiting.pop()
        yield one
        waiting += get_args(one)


def _called(one: type) -> str:
    return f"{one.__module__}.{one.__qualname__}"
