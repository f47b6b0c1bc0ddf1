"""Conditions between neighbours: as a function of two events, and as an order of them where that is equivalent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.expressions.interpret import offset_of
from tocsin.kernels.compile import Writer
from tocsin.kernels.expressions.slots import SlotRef, Test
from tocsin.kernels.model import Held, Integers, Rows
from tocsin.kernels.search.conditions import Candidate, Checks, Columns
from tocsin.kernels.search.state import Many
from tocsin.language import expressions as ex

Tests = Mapping[str, tuple[Test, ...]]
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Conditions:
    """The conditions between neighbours, by variable, and the events they compare."""

    tests: Tests
    columns: Columns  # where the values they compare are
    # The rows of a task, and the row of each event.
    rows: Rows
    chosen: Integers

    def compiled(self) -> tuple[str, list[NDArray[Any]]]:
        """The text of a function of the number of a variable and two events, and the arrays it needs beside them."""
        writer = Writer()
        checks = Checks(writer, self.columns)
        names = dict.fromkeys(
            name for some in self.tests.values() for test in some for name in self.columns.used_by(test)
        )
        writer.line("@compiled")
        with writer.block(f"def fits({', '.join(['variable', 'one', 'other', *names])}):"):
            writer.line("pair = (one,)")
            for number, (variable, some) in enumerate(self.tests.items()):
                with writer.block(f"if variable == {number}:"):
                    held = {variable: Many("pair", "0", "1")}
                    conditions = [checks.check(test, held, Candidate(variable, "other", "1")) for test in some]
                    writer.line(f"return {' and '.join(filter(None, conditions)) or 'True'}")
            writer.line("return True")
        return writer.text, [self._array(name) for name in names]

    def _array(self, name: str) -> NDArray[Any]:
        """The array that a parameter names: the values of a carried column, or which of them are NULL."""
        kind, _, column = name.rsplit("_", 2)
        values, nulls = self.rows.columns[int(column)]
        if kind == "c":
            return values[self.chosen]
        assert nulls is not None
        return nulls[self.chosen]

    def orders(self) -> tuple[Integers, Integers] | None:
        """The numbers that events ask and give, by variable: one may follow another that asks for more than it gives.

        None where conditions are more than one comparison of two numbers. What gives −1 follows nobody.
        """
        found = []
        for variable, some in self.tests.items():
            comparison = _comparison(some)
            if comparison is None:
                return None
            op, later, earlier = comparison
            (values, nulls), (limits, no_limit) = (
                _column(self.rows.columns[self.columns.places[variable, each.slot.expression]], self.chosen)
                for each in (later, earlier)
            )
            known = np.unique(values)
            gives = np.searchsorted(known, values)
            asks = np.searchsorted(known, limits, "right" if "=" in op else "left")
            if op[0] == ">":
                asks = len(known) - np.searchsorted(known, limits, "left" if "=" in op else "right")
                gives = len(known) - 1 - gives
            found.append((np.where(no_limit, 0, asks), np.where(nulls, -1, gives)))
        asked, given = zip(*found, strict=True)
        return np.concatenate(asked).astype(np.int64), np.concatenate(given).astype(np.int64)


def _comparison(tests: Sequence[Test]) -> tuple[str, SlotRef, SlotRef] | None:
    """How the later event is compared with the one before it."""
    match [test.tree for test in tests]:
        case [ex.Comparison(op=op, left=SlotRef() as left, right=SlotRef() as right)] if op in MIRRORED:
            if left.slot.held is not right.slot.held or left.slot.held is Held.BOOLEAN:
                return None
            is_later = (offset_of(left.index) or 0) > (offset_of(right.index) or 0)
            return (op, left, right) if is_later else (MIRRORED[op], right, left)
        case _:
            return None


def _column(column: tuple[NDArray[Any], Any], chosen: Integers) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    values, nulls = column
    return values[chosen], np.zeros(len(chosen), np.bool_) if nulls is None else nulls[chosen]


def fits(variable: int, one: int, other: int, *columns: Any) -> bool:
    """Whether two events may be neighbours; written anew for each query (`fits_text`)."""
    raise NotImplementedError
