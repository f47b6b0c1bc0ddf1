"""User-defined aggregates, functions and reference tables.

An aggregate is a commutative monoid, what goes into it and what comes out (SEMANTICS §3 note 5). Functions and tables
belong to programs of rules.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
import re
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from tocsin import errors
from tocsin.language.functions import AGGREGATES, FUNCTIONS


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Monoid:
    """An aggregate of your own: every value is lifted, all are combined, and the result is finished.

    Parameters
    ----------
    zero
        The result of nothing: `combine(zero, x)` is x.
    combine
        Joins two lifted values into a new one; in whatever order and grouping, so it must be commutative and
        associative, and change neither.
    lift
        What a value becomes first; itself when left out.
    finish
        What the combined value becomes last; itself when left out.
    gives
        Spark's name of the result's type, such as `"double"`; the type of the argument when left out.

    Examples
    --------
    >>> product = Monoid(zero=1, combine=lambda x, y: x * y)
    >>> product.fold([2, 3, 7]), product.fold([])
    (42, 1)
    >>> root_mean_square = Monoid(
    ...     zero=(0.0, 0),
    ...     lift=lambda x: (x * x, 1),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     finish=lambda total: (total[0] / total[1]) ** 0.5 if total[1] else None,
    ...     gives="double",
    ... )
    >>> root_mean_square.fold([3, 4, 5, 0])
    3.5355339059327378
    """

    zero: Any
    combine: Callable[[Any, Any], Any]
    lift: Callable[[Any], Any] = _itself
    finish: Callable[[Any], Any] = _itself
    gives: str | None = None
    _guarded: dict[str, Monoid] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.gives is not None and not isinstance(self.gives, str):
            raise errors.InvalidOptionError(
                f"`gives={errors.shown(self.gives)}` of a Monoid is not the name of a type.",
                hint="write `gives='double'` or another of Spark's names.",
            )
        for name in ("combine", "lift", "finish"):
            if not callable(getattr(self, name)):
                raise errors.InvalidOptionError(
                    f"`{name}` of a Monoid is not a function.",
                    hint="write `tocsin.Monoid(zero=1, combine=lambda x, y: x * y)`.",
                )

    def fold(self, values: Iterable[Any]) -> Any:
        """The aggregate of values that are not NULL."""
        total = self.zero
        for value in values:
            total = self.combine(total, self.lift(value))
        return self.finish(total)

    def guarded(self, name: str) -> Monoid:
        """The aggregate with functions that report faults as the user's; one for each name."""
        if name not in self._guarded:
            self._guarded[name] = Monoid(
                zero=self.zero,
                combine=_Guard(self.combine, f"`combine` of the aggregate `{name}`", keeps_arguments=True),
                lift=_Guard(self.lift, f"`lift` of the aggregate `{name}`"),
                finish=_Guard(self.finish, f"`finish` of the aggregate `{name}`"),
                gives=self.gives,
            )
        return self._guarded[name]

    def __reduce__(self) -> Any:
        """Without what was made of it."""
        return _made, (self.zero, self.combine, self.lift, self.finish, self.gives)


def _made(zero: Any, combine: Any, lift: Any, finish: Any, gives: str | None) -> Monoid:
    return Monoid(zero=zero, combine=combine, lift=lift, finish=finish, gives=gives)


# Nobody can change these, nor what they hold; tuples are looked into.
UNCHANGING = frozenset({bool, int, float, complex, str, bytes, frozenset, type(None)})


def _is_unchanging(value: Any) -> bool:
    return type(value) in UNCHANGING or (type(value) is tuple and all(map(_is_unchanging, value)))


@dataclass(frozen=True, eq=False)
class _Guard:
    """A function of the user's: its faults name it, and where asked it must leave its arguments as they are."""

    call: Callable[..., Any]
    name: str
    keeps_arguments: bool = False
    gives: str = ""  # the type that its results are said to have

    def __call__(self, *arguments: Any) -> Any:
        before = self._before(arguments) if self.keeps_arguments else None
        try:
            result = self.call(*arguments)
        except errors.TocsinError:
            raise
        except Exception as problem:
            raise self._failed(arguments, problem) from problem
        if not _may_be(result, self.gives):
            raise errors.TypeMismatchError(
                f"{self.name} gave {errors.shown(result)} for {_cut(arguments)}, "
                f"which is not of the type {self.gives}.",
                hint='declare the type of its result: `tocsin.function(…, gives="double", pure=True)`.',
            )
        if before is not None and not _is_same(before, arguments):
            raise errors.UserFunctionError(
                f"{self.name} changed its arguments {_cut(before)} in place; they are now {_cut(arguments)}.",
                hint="return a new value and leave both arguments as they are: other matches share them.",
            )
        return result

    def _before(self, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A copy of arguments that could change."""
        if all(map(_is_unchanging, arguments)):
            return None
        try:
            copied = copy.deepcopy(arguments)
        except Exception:  # what cannot be copied cannot be compared
            return None
        return copied if _is_same(copied, arguments) else None  # equality that is identity tells nothing

    def _failed(self, arguments: tuple[Any, ...], problem: Exception) -> errors.UserFunctionError:
        own = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename != __file__]
        at = f"\n  at line {own[-1].lineno} of {own[-1].name}: {own[-1].line}" if own and own[-1].line else ""
        return errors.UserFunctionError(
            f"{self.name} failed for {_cut(arguments)}: {errors.fault(problem)}{at}",
            hint="call it with these arguments in plain Python to see why.",
        )


INTEGERS = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
DOUBLES = ("float", "real", "double")


def _may_be(value: Any, gives: str) -> bool:
    """Whether a value may be of a type, by its class: a text is no truth. Types with parts are read elsewhere."""
    wanted = gives.strip().lower()
    if value is None:
        return True
    is_truth = type(value).__name__ in ("bool", "bool_")  # Python's and NumPy's
    if wanted == "boolean":
        return is_truth
    if wanted == "string":
        return isinstance(value, str)
    if wanted in INTEGERS:
        return isinstance(value, Integral) and not is_truth
    if wanted in DOUBLES:
        return isinstance(value, Real | Decimal) and not is_truth
    return True


def _is_same(one: Any, other: Any) -> bool:
    """Whether values are equal, also where `==` gives no answer, as of arrays."""
    try:
        return bool(one == other)
    except Exception:  # of a class of the user's
        with contextlib.suppress(Exception):
            return pickle.dumps(one) == pickle.dumps(other)
        return False


def _cut(arguments: tuple[Any, ...]) -> str:
    text = ", ".join(map(errors.shown, arguments))
    return text if len(text) <= 200 else f"{text[:200]}…"


Monoids = Mapping[str, Monoid]


def registered(aggregates: Mapping[str, Monoid] | None) -> dict[str, Monoid]:
    """A user's aggregates by name in lower case, as texts are read; refuses bad names, and what is no Monoid."""
    example = "write `aggregates={'product': tocsin.Monoid(zero=1, combine=lambda x, y: x * y)}`."
    known: dict[str, Monoid] = {}
    for name, monoid in _entries("aggregates", aggregates, "names to Monoids", example):
        check_name(name, "aggregate", known)
        if not isinstance(monoid, Monoid):
            raise errors.InvalidOptionError(
                f"The aggregate `{name}` is a {type(monoid).__name__}, not a Monoid.", hint=example
            )
        known[name.lower()] = monoid.guarded(name.lower())
    return known


def _entries(option: str, given: Any, what: str, example: str) -> Iterable[tuple[str, Any]]:
    """The names and values of an option; refuses what is no mapping."""
    if given is None or isinstance(given, Mapping):
        return (given or {}).items()
    raise errors.InvalidOptionError(
        f"`{option}=` is a {type(given).__name__}, not a mapping from {what}.", hint=example
    )


# --- functions and tables -------------------------------------------------------------------------

NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the user's own; made by `tocsin.function`."""

    call: Callable[..., Any]
    gives: str  # Spark's name of the result's type
    pure: bool  # the same arguments always give the same result, in constant time and without any effect
    least: int = 0  # how many arguments it takes
    most: int | None = None  # None is no limit


def function(call: Callable[..., Any], *, gives: str, pure: bool = False) -> Function:
    """Declare a function or predicate that the text of a program calls.

    Parameters
    ----------
    call
        A Python function of the values; it is never called with NULL (`None`), which gives NULL.
    gives
        Spark's name of the type it gives, such as `"boolean"`.
    pure
        That it has no effect, takes a time that does not depend on history, and gives the same for the same
        arguments. Rules refuse a function that does not promise this.

    Examples
    --------
    >>> known = {("A", "B")}
    >>> uncommon_route = function(lambda a, b: (a, b) not in known, gives="boolean", pure=True)
    >>> uncommon_route.most
    2
    """
    if not callable(call):
        raise errors.InvalidOptionError(
            f"A function is something that can be called, not a {type(call).__name__}.",
            hint="write `tocsin.function(lambda a, b: a != b, gives='boolean', pure=True)`.",
        )
    if not isinstance(gives, str):
        raise errors.InvalidOptionError(
            f"`gives={errors.shown(gives)}` is not the name of a type.",
            hint="write `gives='boolean'` or another of Spark's names.",
        )
    least, most = _arity(call)
    return Function(call, gives, pure, least, most)


def _arity(call: Callable[..., Any]) -> tuple[int, int | None]:
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):  # a function of C that does not tell
        return 0, None
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    is_open = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return sum(each.default is each.empty for each in places), None if is_open else len(places)


@dataclass(frozen=True, eq=False)
class Table:
    """A reference table: rows that do not come in time, asked for by their values."""

    columns: tuple[str, ...] | None  # their names, in the order of the arguments; None when rows are plain tuples
    rows: frozenset[tuple[Any, ...]] | None  # None when the table is a DataFrame, which only an engine can look into
    frame: Any = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the DataFrame: what runs elsewhere does not ask it, and it cannot leave the driver."""
        return Table, (self.columns, self.rows)

    @property
    def width(self) -> int | None:
        """The number of its columns; None when it has no rows to tell."""
        if self.columns is not None:
            return len(self.columns)
        return next((len(row) for row in self.rows or ()), None)


def functions_of(given: Mapping[str, Function] | None) -> dict[str, Function]:
    """A user's functions by name; refuses bad names, and what `tocsin.function` has not made."""
    example = "write `functions={'known': tocsin.function(…, gives='boolean', pure=True)}`."
    found = {}
    for name, each in _entries("functions", given, "names", example):
        check_name(name, "function")
        if not isinstance(each, Function):
            raise errors.InvalidOptionError(
                f"The function `{name}` is a {type(each).__name__} without a declared type.",
                hint=example.replace("known", name),
            )
        found[name] = replace(each, call=_Guard(each.call, f"The function `{name}`", gives=each.gives))
    return found


def tables_of(given: Mapping[str, Any] | None) -> dict[str, Table]:
    """A user's reference tables by name: rows as tuples or dicts, single values, an Arrow table, or a DataFrame.

    >>> tables_of({"registered": [{"owner": "A", "recipient": "B"}]})["registered"].columns
    ('owner', 'recipient')
    """
    found = {}
    for name, rows in _entries("tables", given, "names", "write `tables={'known': [('A', 'B')]}`."):
        check_name(name, "table")
        try:
            found[name] = _table(name, rows)
        except TypeError as problem:
            raise errors.InvalidOptionError(
                f"The table `{name}` holds a value that cannot be looked up: {errors.fault(problem)}.",
                hint="give rows of plain values: numbers, texts, times.",
            ) from None
    return found


def _table(name: str, rows: Any) -> Table:
    if hasattr(rows, "column_names") and hasattr(rows, "to_pylist"):  # of Arrow
        names = tuple(rows.column_names)
        return Table(names, frozenset(tuple(row[name] for name in names) for row in rows.to_pylist()))
    if hasattr(rows, "columns") and hasattr(rows, "itertuples"):  # of pandas
        plain = rows.itertuples(index=False, name=None)
        found = frozenset(tuple(None if _is_missing(value) else value for value in row) for row in plain)
        return Table(tuple(rows.columns), found)
    if hasattr(rows, "columns") and hasattr(rows, "schema"):
        return Table(tuple(rows.columns), None, rows)
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise errors.InvalidOptionError(
            f"The table `{name}` is a {type(rows).__name__}, not rows.",
            hint=f"write `tables={{'{name}': [('A', 'B'), ('A', 'C')]}}`, or give a DataFrame.",
        )
    listed = list(rows)
    columns = tuple(listed[0]) if listed and isinstance(listed[0], Mapping) else None
    tuples = [_row(row, columns) for row in listed]
    if None in tuples or len({len(row) for row in tuples if row is not None}) > 1:
        raise errors.InvalidOptionError(
            f"The rows of the table `{name}` do not have the same columns.", hint="give every row the same columns."
        )
    return Table(columns, frozenset(row for row in tuples if row is not None))


def _is_missing(value: Any) -> bool:
    """Whether pandas means that there is no value: NaN, NaT, NA."""
    try:
        return bool(value != value)  # noqa: PLR0124 (that is what tells NaN and NaT)
    except TypeError:  # NA is neither equal to itself nor not
        return True


def _row(row: Any, columns: tuple[str, ...] | None) -> tuple[Any, ...] | None:
    if columns is not None:
        return tuple(row[name] for name in columns) if isinstance(row, Mapping) and set(row) == set(columns) else None
    return tuple(row) if isinstance(row, tuple | list) else (row,)


def check_name(name: Any, what: str, known: Collection[str] = ()) -> None:
    """Refuse a name that a text could not call, or that a function or one of `known` has."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise errors.InvalidOptionError(
            f"A{'n' * (what == 'aggregate')} {what} cannot be called {errors.shown(name)}.",
            hint="a name has letters, digits and underscores.",
        )
    if name.lower() in (*known, *AGGREGATES, *FUNCTIONS):
        raise errors.InvalidOptionError(
            f"There is a function `{name.lower()}` already.", hint=f"give the {what} another name."
        )
