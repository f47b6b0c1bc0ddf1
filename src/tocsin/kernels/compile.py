"""Generated text, and the function that it becomes: compiled by numba where that pays, otherwise plain Python.

numba needs seconds for a new function, so that it must be worth it. A text becomes a module named by its hash, and
what is compiled is kept on disk under that name (`kept_functions`): every process of this user that needs the same
function again finds it compiled.

Small tasks begin in plain Python. A worker that gets many of them rents until it has paid the price, and then buys:
once plain Python has taken as long as the compiled function would cost, it is compiled.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import linecache
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.errors import NumberTooLargeError
from tocsin.expressions import numeric
from tocsin.kernels import kept_functions
from tocsin.kernels.expressions import prefixes
from tocsin.kernels.links import steps
from tocsin.kernels.search import helpers

log = logging.getLogger(__name__)
# Seconds of plain Python that importing numba, reading a compiled function from disk and compiling a new one are worth,
# and plain Python's time for one row. The first and third take some times as long, but every later task has them, and
# what is compiled every later process on this machine.
IMPORTING, READING, COMPILING, PER_ROW = 0.2, 0.1, 0.5, 1e-5
# How much worse a second of NumPy is than one of plain Python: it has done so much more, which numba does faster too.
OF_NUMPY = 4
# A task of so many rows is compiled at once.
FEW_ROWS = 20_000
_spent: dict[str, float] = {}  # text → seconds that this process has run it as plain Python
_ready: set[str] = set()  # texts that this process has compiled
_warming: list[threading.Thread] = []  # the thread that loads numba ahead of time, once there is one
CONSTANTS = {"np": np, **{name: value for name, value in vars(helpers).items() if isinstance(value, int)}}
HELPERS = {**numeric.HELPERS, **prefixes.HELPERS, **helpers.HELPERS, **steps.HELPERS}
Search = Callable[..., tuple[int, int, int, int]]


class Writer:
    """Indented lines of generated code; blocks indent."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, *texts: str) -> None:
        """Lines at the current depth; their own indentation is kept."""
        self.lines += [f"{'    ' * self.depth}{text}" for text in texts]

    def when(self, test: str, *texts: str) -> None:
        """Lines under an `if`."""
        with self.block(f"if {test}:"):
            self.line(*texts)

    def open(self, header: str) -> None:
        """A header: what follows stands one step deeper, until the block or nest around it ends."""
        self.line(header)
        self.depth += 1

    @contextmanager
    def nest(self) -> Iterator[None]:
        """Closes what is opened inside; `pass` where the last header has nothing below it."""
        depth = self.depth
        yield
        if self.lines[-1].endswith(":"):
            self.line("pass")
        self.depth = depth

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A header, and what is written inside one step deeper."""
        with self.nest():
            self.open(header)
            yield

    @contextmanager
    def condition(self, *tests: str) -> Iterator[None]:
        """An `if` over all tests, or nothing when there is none."""
        with self.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
            yield

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"


@cache
def plain(text: str) -> Search:
    """The function as Python runs it."""
    namespace: dict[str, Any] = {**CONSTANTS, **HELPERS, "compiled": lambda function: function}
    exec(compile(text, "<kernel>", "exec"), namespace)
    return namespace["search"]  # type: ignore[no-any-return]


def as_lists(given: Any) -> Any:
    """Arrays, in tuples too, as lists: plain Python reads these several times as fast."""
    if isinstance(given, tuple):
        return tuple(map(as_lists, given))
    return given.tolist() if isinstance(given, np.ndarray) else given


class Call:
    """Calls of a generated function over the rows of one task, each where the one before stopped.

    Plain Python runs the first ones where that is cheaper; with `jit` None, a compiled function takes over when it
    pays. While it may (`rents`), a caller bounds the work of a plain call, and calls `buys` after each.
    """

    def __init__(self, text: str, rows: int, jit: bool | None) -> None:
        self.text = text
        is_large = rows >= FEW_ROWS or is_worth_compiling(text, rows)
        self.is_plain = jit is False or (jit is None and not is_large)
        self.rents = self.is_plain and jit is None

    def __call__(self, *arguments: Any) -> tuple[int, int, int, int]:
        """A status and three numbers; stops the query when an aggregate of a match is beyond 64 bits (D24)."""
        search = plain(self.text) if self.is_plain else fast(self.text)
        began = time.perf_counter()
        try:
            status, one, two, three = map(int, search(*arguments))
        except OverflowError as problem:
            if str(problem) not in ("SUM", "RANGE"):
                raise
            raise NumberTooLargeError.of_match(str(problem)) from None
        if self.is_plain:
            note_plain(self.text, time.perf_counter() - began)
        return status, one, two, three

    def buys(self, *, is_long: bool = False) -> bool:
        """Whether the compiled function takes over now: because that pays, or because a plain call was too long."""
        if not self.rents or not (is_long or is_worth_compiling(self.text, 0)):
            return False
        self.is_plain = self.rents = False
        return True


class ArrayFunction:
    """A function over arrays that NumPy computes too: compiled once NumPy has taken as long as numba would cost."""

    def __init__(self, text: str, plain: Callable[..., None]) -> None:
        self.text, self.plain = text, plain
        self.price = IMPORTING  # what compiling cost when it was last asked
        self.compiled: Callable[..., Any] | None = None

    def __call__(self, *arrays: NDArray[Any]) -> None:
        """Change the first array in place."""
        if self.compiled is not None:
            # One kind of array, so that one form is compiled.
            self.compiled(*(np.require(array, requirements=["C", "W"]) for array in arrays))
            return
        began = time.perf_counter()
        self.plain(*arrays)
        note_plain(self.text, OF_NUMPY * (time.perf_counter() - began))
        if _spent[self.text] >= self.price:
            self.price = _price(self.text)
            if _spent[self.text] >= self.price and has_numba():
                self.compiled = _loaded(self.text).search


def is_worth_compiling(text: str, rows: int) -> bool:
    """Whether plain Python, with a task of so many rows, will have cost as much as the compiled function does."""
    seconds = _spent.get(text, 0.0) + rows * PER_ROW
    return text in _ready or (seconds >= READING and seconds >= _price(text))


def note_plain(text: str, seconds: float) -> None:
    """Plain Python has run a function for so long."""
    _spent[text] = _spent.get(text, 0.0) + seconds


def _price(text: str) -> float:
    if not _version():
        return math.inf
    return (READING if kept_functions.has(_name(text)) else COMPILING) + (0.0 if "numba" in sys.modules else IMPORTING)


def _name(text: str) -> str:
    return f"tocsin_kernel_{hashlib.sha256((_recipe() + text).encode()).hexdigest()[:32]}"


@cache
def fast(text: str, library: str = "") -> Search:
    """The function as numba compiles it, or as Python runs it where there is no numba.

    `library` is the text of functions that it calls: compiled once for all that have the same.
    """
    if not has_numba():
        return plain(library + text)
    _ready.add(text)
    return _loaded(text, library).search  # type: ignore[no-any-return]


@cache
def _loaded(text: str, library: str = "") -> Any:
    """A text as a module of its own."""
    for thread in _warming:
        thread.join()
    if library:
        text = f"from {_loaded(library).__name__} import *  # noqa: F403\n\n\n{text}"
    name = _name(text)
    module = ModuleType(name)
    sys.modules[name] = module  # what is kept refers to its module by name
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    vars(module).update(_jitted())
    exec(compile(text, file, "exec"), vars(module))
    return module


@cache
def _jitted() -> dict[str, Any]:
    """All that generated modules refer to, compiled by numba."""
    import numba
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # reads all that numba knows: half a second, and needed by the first function

    def compiled(function: Callable[..., Any]) -> Any:
        """A function that numba compiles, and whose compiled forms are kept."""
        dispatcher: Any = numba.njit(nogil=True)(function)
        dispatcher._cache = kept_functions.KeptFunction(function)
        return dispatcher

    return {**CONSTANTS, **{name: numba.njit(each) for name, each in HELPERS.items()}, "compiled": compiled}


def warm(rows: int) -> None:
    """Begin to load numba while the rows of a large task are still read: once in a process, and in another thread."""
    if rows >= FEW_ROWS and not _warming and _version():
        _warming.append(threading.Thread(target=_jitted, name="tocsin-numba"))
        _warming[0].start()


@cache
def has_numba() -> bool:
    """Whether functions can be compiled here; `TOCSIN_JIT=0` says that they shall not be."""
    if os.environ.get("TOCSIN_JIT", "1") == "0":
        return False
    try:
        import numba  # noqa: F401
    except ImportError:
        log.warning("numba is not installed, kernels run as plain Python: pip install 'tocsin[jit]'")
        return False
    return True


@cache
def _recipe() -> str:
    """All that compiled functions depend on beside their texts: numba does not look at the files of helpers."""
    texts = [Path(str(module.__file__)).read_bytes() for module in (numeric, prefixes, helpers, steps)]
    helpers_of_all = hashlib.sha256(b"".join(texts)).hexdigest()
    return f"2 {sys.implementation.cache_tag} {_version()} {np.__version__} {helpers_of_all}\n"


def _version() -> str:
    """numba's, without importing it; nothing where it is not installed or not wanted."""
    try:
        return importlib.metadata.version("numba") if os.environ.get("TOCSIN_JIT", "1") != "0" else ""
    except importlib.metadata.PackageNotFoundError:
        return ""
