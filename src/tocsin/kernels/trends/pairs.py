"""Conditions between neighbours as a function of two events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tocsin.kernels import compile
from tocsin.kernels.expressions.slots import Test
from tocsin.kernels.model import Integers, Rows
from tocsin.kernels.search.conditions import Candidate, Checks, Columns
from tocsin.kernels.search.state import Many
from tocsin.kernels.search.writer import Writer


def accepts(tests: Mapping[str, tuple[Test, ...]], columns: Columns, rows: Rows, chosen: Integers) -> Accepts:
    """Whether two events, numbered as they were chosen, may be neighbours of each variable."""
    functions = {}
    for variable, some in tests.items():
        text, parameters = _text(variable, some, columns)
        functions[variable] = compile.plain(text), [_array(name, rows, chosen) for name in parameters]

    def accept(variable: str, one: int, other: int) -> bool:
        function, arrays = functions[variable]
        return bool(function(one, other, *arrays)[0])

    return accept


Accepts = Callable[[str, int, int], bool]


def _text(variable: str, tests: tuple[Test, ...], columns: Columns) -> tuple[str, list[str]]:
    writer = Writer()
    checks = Checks(writer, columns)
    parameters = list(dict.fromkeys(name for test in tests for name in columns.used_by(test)))
    writer.line("@compiled")
    with writer.block(f"def search(one, other, {', '.join(parameters)}):"):
        writer.line("pair = (one,)")
        held = {variable: Many("pair", "0", "1")}
        conditions = [checks.check(test, held, Candidate(variable, "other", "1")) for test in tests]
        writer.line(f"holds = {' and '.join(filter(None, conditions)) or 'True'}")
        writer.line("return (1 if holds else 0), 0, 0, 0")
    return writer.text, parameters


def _array(name: str, rows: Rows, chosen: Integers) -> np.ndarray:
    """The array that a parameter names: the values of a carried column, or which of them are NULL."""
    kind, _, column = name.rsplit("_", 2)
    values, nulls = rows.columns[int(column)]
    if kind == "c":
        return values[chosen]
    assert nulls is not None
    return nulls[chosen]
