"""The memory of machines between micro-batches, as bytes: a pickle that holds data and no code.

A pickle may name any function of any module, and loading it calls them: whoever can write the checkpoint would run code
in the workers. So the names that a pickle may hold are those below, and the classes that the user's functions are
written with. Others are refused when the state is stored, and again when it is loaded.

A pickle may also set attributes of whatever it can name. So it names nothing that can be changed: classes of Python are
called by a text, and functions stand behind a `_Door`. Arrays are shapes and bytes, for numpy's own form takes a type
at its word: one that calls bytes objects makes pointers of them.
"""

from __future__ import annotations

import enum
import io
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from datetime import tzinfo
from functools import partial
from types import CodeType
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo

import numpy as np

# Classes whose objects are stored, in addition to the user's.
KINDS = {
    f"{module}.{name}": (module, name)
    for module, names in (
        ("tocsin.acer.clock", ("Clock",)),
        ("tocsin.acer.fast", ("Cut", "Folded", "Kept", "Memory", "Waiting")),
        ("tocsin.acer.growth", ("Growth",)),
        ("tocsin.acer.listings", ("Looped", "Sequence", "Share")),
        ("tocsin.acer.literal", ("Instance", "Memory")),
        ("tocsin.acer.model", ("Arrival",)),
        ("tocsin.acer.stream", ("Remembered",)),
        ("tocsin.acer.windows", ("Window",)),
        ("collections", ("Counter",)),
        ("fractions", ("Fraction",)),
        ("uuid", ("UUID",)),
        ("zoneinfo", ("ZoneInfo",)),
    )
    for name in names
}
BUILTINS = (bool, bytearray, bytes, complex, dict, float, frozenset, int, list, range, set, slice, str, tuple)
# What a pickle may name: built-in types, of which nothing can be set, and functions.
NAMES = frozenset(
    (module, name)
    for module, names in (
        ("builtins", tuple(one.__name__ for one in BUILTINS)),
        ("collections", ("OrderedDict", "defaultdict", "deque")),
        ("datetime", ("date", "datetime", "time", "timedelta", "timezone")),
        ("decimal", ("Decimal",)),
        ("pytz", ("_UTC", "_p")),
        ("tocsin.acer.events", ("_made",)),
        ("tocsin.acer.stored", ("array", "called", "objects", "remade", "scalar")),
    )
    for name in names
)
NUMBERS = "biufcmMSUV"  # the kinds of numpy's types whose values are their bytes
SHARED = (enum.Enum, tzinfo)  # of these there is one object for each value
DEEP = 20  # functions that call functions that call functions


class NotPlainError(Exception):
    """A state holds something that is neither plain data nor of a class of the user's functions."""


def called(name: str, *given: Any) -> Any:
    """Stand in a pickle for a call of a class; a loader reads the class off its own list."""
    raise NotPlainError(f"`{name}` is read without the functions it belongs to")


def remade(name: str, given: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
    """Stand in a pickle for an object of a class before its state is set."""
    raise NotPlainError(f"`{name}` is read without the functions it belongs to")


def array(kind: Any, shape: tuple[int, ...], content: bytes) -> np.ndarray[Any, Any]:
    """An array of numbers, times or texts of fixed size."""
    return np.ndarray(shape, _of_numbers(np.lib.format.descr_to_dtype(kind)), content).copy()


def scalar(kind: Any, content: bytes) -> Any:
    """A value of one of numpy's types."""
    return array(kind, (), content)[()]


def objects(shape: tuple[int, ...], values: list[Any]) -> np.ndarray[Any, Any]:
    """An array of any values."""
    made = np.empty(len(values), object)
    for place, value in enumerate(values):
        made[place] = value
    return made.reshape(shape)


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
    reader = _Unpickler(io.BytesIO(written), {_called(one): one for one in classes})
    try:
        return reader.load()
    finally:
        reader.require_unchanged()


class _Pickler(pickle.Pickler):
    def __init__(self, sink: io.BytesIO, names: dict[type, str]) -> None:
        super().__init__(sink, pickle.HIGHEST_PROTOCOL)
        self._names: dict[type, str | None] = {**names}

    def reducer_override(self, value: Any) -> Any:
        """Called for all but plain values of built-in types: what a pickle would name."""
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            if (value.__module__, value.__qualname__) not in NAMES:
                raise NotPlainError(f"`{_called(value)}` is not plain data")
            return NotImplemented
        kind = type(value)
        if kind not in self._names:  # one text for each class, which the pickle holds once
            self._names[kind] = _called(kind) if _called(kind) in KINDS else None
        name = self._names[kind]
        if name is not None:
            return _reduced(value, name)
        if isinstance(value, np.generic):
            return scalar, (_described(value.dtype), value.tobytes())
        if kind is np.ndarray:
            if value.dtype == object:
                return objects, (value.shape, list(value.flat))
            return array, (_described(value.dtype), value.shape, value.tobytes())
        return NotImplemented  # its class is asked about next


def _reduced(value: Any, name: str) -> Any:
    """An object as a pickle holds it, with the name of its class in the place of the class."""
    if isinstance(value, ZoneInfo) and value.key is not None:
        return called, (name, value.key)
    if isinstance(value, enum.Enum):
        return called, (name, value.value)
    made = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if not isinstance(made, tuple):
        raise NotPlainError(f"`{name}` is not plain data")
    maker, given, *state = made
    if maker is type(value):
        return called, (name, *given), *state
    if given and given[0] is type(value):  # of `copyreg`, which makes an object without a call of its constructor
        if maker.__name__ == "__newobj__":
            return remade, (name, given[1:]), *state
        if maker.__name__ == "__newobj_ex__":
            return remade, (name, *given[1:]), *state
    return made


class _Door:
    """A function that a pickle may call and not change."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Callable[..., Any]) -> None:
        self._inner = inner

    def __call__(self, *given: Any) -> Any:
        return self._inner(*given)

    def __setstate__(self, state: Any) -> None:
        """Called in the place of setting attributes."""
        raise NotPlainError("the attributes of a function are not plain data")


class _Unpickler(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, classes: dict[str, type]) -> None:
        super().__init__(source)
        self._classes = {**classes}
        self._shared: list[tuple[Any, dict[str, Any]]] = []

    def find_class(self, module: str, name: str) -> Any:
        """The types and functions that a pickle may name."""
        if (module, name) not in NAMES:
            raise NotPlainError(f"`{module}.{name}` is not plain data")
        if (module, name) == (__name__, called.__name__):
            return _Door(lambda name, *given: self._kept(self._class(name)(*given)))
        if (module, name) == (__name__, remade.__name__):
            return _Door(self._remade)
        found = super().find_class(module, name)
        return found if isinstance(found, type) else _Door(lambda *given: self._kept(found(*given)))

    def require_unchanged(self) -> None:
        """Put back what the pickle set of objects that others share, and raise if there was anything."""
        changed = [one for one, attributes in self._shared if vars(one) != attributes]
        for one, attributes in self._shared:
            vars(one).clear()
            vars(one).update(attributes)
        if changed:
            raise NotPlainError(f"the attributes of `{changed[0]!r}` are not plain data")

    def _remade(self, name: str, given: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
        kind = self._class(name)
        if issubclass(kind, SHARED):
            raise NotPlainError(f"another `{name}` is not plain data")
        return kind.__new__(kind, *given, **(named or {}))

    def _kept(self, made: Any) -> Any:
        """Remember the attributes of an object that there is once: of an enum, or a time zone."""
        if isinstance(made, SHARED) and hasattr(made, "__dict__"):
            self._shared.append((made, dict(vars(made))))
        return made

    def _class(self, name: str) -> type:
        if name not in self._classes:
            if name not in KINDS:
                raise NotPlainError(f"no function of the query is written with `{name}`")
            self._classes[name] = super().find_class(*KINDS[name])
        return self._classes[name]


def _described(kind: np.dtype[Any]) -> Any:
    return np.lib.format.dtype_to_descr(_of_numbers(kind))


def _of_numbers(kind: np.dtype[Any]) -> np.dtype[Any]:
    """Refuse a type whose values are more than their bytes."""
    if kind.names is not None and kind.fields is not None:
        for name in kind.names:
            _of_numbers(kind.fields[name][0])
    elif kind.subdtype is not None:
        _of_numbers(kind.subdtype[0])
    elif kind.kind not in NUMBERS:
        raise NotPlainError(f"values of numpy's `{kind}` are not plain data")
    return kind


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
