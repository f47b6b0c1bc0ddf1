"""What users bring to a program of rules: functions of their own, and reference tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin import errors
from tocsin.language.functions import AGGREGATES, FUNCTIONS

NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the user's own; made by `tocsin.function`.

    Attributes
    ----------
    call
        What computes it.
    gives
        Spark's name of the result's type.
    pure
        Whether the same arguments always give the same result, in constant time and without any effect.
    least, most
        How many arguments it takes; None is no limit.
    """

    call: Callable[..., Any]
    gives: str
    pure: bool
    least: int = 0
    most: int | None = None


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
            f"`gives={gives!r}` is not the name of a type.", hint="write `gives='boolean'` or another of Spark's names."
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
    """A reference table: rows that do not come in time, asked for by their values.

    Attributes
    ----------
    columns
        Their names, in the order of the arguments; None when rows are plain tuples.
    rows
        The rows as tuples; None when the table is a DataFrame, which only an engine can look into.
    frame
        The DataFrame.
    """

    columns: tuple[str, ...] | None
    rows: frozenset[tuple[Any, ...]] | None
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
    """A user's functions by name.

    Raises
    ------
    InvalidOptionError
        When a name is taken or no plain word, or what it names was not made by `tocsin.function`.
    """
    for name, each in (given or {}).items():
        check_name(name, "function")
        if not isinstance(each, Function):
            raise errors.InvalidOptionError(
                f"The function `{name}` is a {type(each).__name__} without a declared type.",
                hint=f"write `functions={{'{name}': tocsin.function(…, gives='boolean', pure=True)}}`.",
            )
    return dict(given or {})


def tables_of(given: Mapping[str, Any] | None) -> dict[str, Table]:
    """A user's reference tables by name: rows as tuples or dicts, single values, an Arrow table, or a DataFrame.

    Examples
    --------
    >>> tables_of({"registered": [{"owner": "A", "recipient": "B"}]})["registered"].columns
    ('owner', 'recipient')
    """
    found = {}
    for name, rows in (given or {}).items():
        check_name(name, "table")
        found[name] = _table(name, rows)
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


def check_name(name: Any, what: str) -> None:
    """Refuse a name that a text could not call, or that is taken.

    Raises
    ------
    InvalidOptionError
        With the reason.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise errors.InvalidOptionError(
            f"A {what} cannot be called {name!r}.", hint="a name has letters, digits and underscores."
        )
    if name.lower() in (*AGGREGATES, *FUNCTIONS):
        raise errors.InvalidOptionError(
            f"There is a function `{name.lower()}` already.", hint=f"give the {what} another name."
        )
