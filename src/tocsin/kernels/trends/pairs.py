"""Conditions between neighbours: as a function of two events, and as an order of them where that says the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.kernels import compile
from tocsin.kernels.expressions.slots import SlotRef, Test
from tocsin.kernels.model import Held, Integers, Rows
from tocsin.kernels.search.conditions import Candidate, Checks, Columns, offset_of
from tocsin.kernels.search.state import Many
from tocsin.kernels.search.writer import Writer
from tocsin.language import expressions as ex

Tests = Mapping[str, tuple[Test, ...]]
Accepts = Callable[[str, int, int], bool]
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def accepts(tests: Tests, columns: Columns, rows: Rows, chosen: Integers) -> Accepts:
    """Whether two events, numbered as they were chosen, may be neighbours of each variable."""
    numbers = {variable: number for number, variable in enumerate(tests)}
    function = compile.plain(fits_text(tests, columns, name="search"))
    arrays = fits_arrays(tests, columns, rows, chosen)

    def accept(variable: str, one: int, other: int) -> bool:
        return bool(function(numbers[variable], one, other, *arrays))

    return accept


def fits_text(tests: Tests, columns: Columns, name: str = "fits") -> str:
    """The text of a function of the number of a variable and two events."""
    writer = Writer()
    checks = Checks(writer, columns)
    writer.line("@compiled")
    with writer.block(f"def {name}({', '.join(['variable', 'one', 'other', *_parameters(tests, columns)])}):"):
        writer.line("pair = (one,)")
        for number, (variable, some) in enumerate(tests.items()):
            with writer.block(f"if variable == {number}:"):
                held = {variable: Many("pair", "0", "1")}
                conditions = [checks.check(test, held, Candidate(variable, "other", "1")) for test in some]
                writer.line(f"return {' and '.join(filter(None, conditions)) or 'True'}")
        writer.line("return True")
    return writer.text


def fits_arrays(tests: Tests, columns: Columns, rows: Rows, chosen: Integers) -> list[NDArray[Any]]:
    """What that function is given beside them."""
    return [_array(name, rows, chosen) for name in _parameters(tests, columns)]


def _parameters(tests: Tests, columns: Columns) -> list[str]:
    return list(dict.fromkeys(name for some in tests.values() for test in some for name in columns.used_by(test)))


def _array(name: str, rows: Rows, chosen: Integers) -> NDArray[Any]:
    """The array that a parameter names: the values of a carried column, or which of them are NULL."""
    kind, _, column = name.rsplit("_", 2)
    values, nulls = rows.columns[int(column)]
    if kind == "c":
        return values[chosen]
    assert nulls is not None
    return nulls[chosen]


# --- as an order ----------------------------------------------------------------------------------


def orders(tests: Tests, columns: Columns, rows: Rows, chosen: Integers) -> tuple[Integers, Integers] | None:
    """What events ask and give, by variable: one may follow another where it gives a number below what that one asks.

    None where conditions are more than one comparison of two numbers. What gives −1 follows nobody.
    """
    found = []
    for variable, some in tests.items():
        comparison = _comparison(some)
        if comparison is None:
            return None
        op, later, earlier = comparison
        (values, nulls), (limits, no_limit) = (
            _column(rows.columns[columns.places[variable, each.slot.expression]], chosen) for each in (later, earlier)
        )
        known = np.unique(values)
        gives, asks = np.searchsorted(known, values), np.searchsorted(known, limits, "right" if "=" in op else "left")
        if op[0] == ">":
            asks = len(known) - np.searchsorted(known, limits, "left" if "=" in op else "right")
            gives = len(known) - 1 - gives
        found.append((np.where(no_limit, 0, asks), np.where(nulls, -1, gives)))
    asked, given = zip(*found, strict=True)
    return np.stack(asked).astype(np.int64), np.stack(given).astype(np.int64)


def _comparison(tests: Sequence[Test]) -> tuple[str, SlotRef, SlotRef] | None:
    """How the later event is compared with the one before it."""
    match [test.tree for test in tests]:
        case [ex.Comparison(op=op, left=SlotRef() as left, right=SlotRef() as right)] if op in MIRRORED:
            if left.slot.held is not right.slot.held or left.slot.held is Held.BOOLEAN:
                return None
            is_later = (offset_of(left) or 0) > (offset_of(right) or 0)
            return (op, left, right) if is_later else (MIRRORED[op], right, left)
        case _:
            return None


def _column(column: tuple[NDArray[Any], Any], chosen: Integers) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values, nulls = column
    return values[chosen], np.zeros(len(chosen), np.bool_) if nulls is None else nulls[chosen]
