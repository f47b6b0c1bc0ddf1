"""Comparing what two engines report, as bags of rows: order never matters, equal rows count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

OWN_COLUMNS = frozenset({"match_id"})


def assert_same_rows(reported: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> None:
    """Fail, showing what is too much and what is missing, unless both hold the same rows equally often.

    Examples
    --------
    >>> assert_same_rows([{"n": 1.0, "match_id": "ab"}], [{"n": 1.0}])
    """
    found, wanted = Counter(map(frozen, reported)), Counter(map(frozen, expected))
    if found != wanted:
        lines = [f"  too much:  {_show(row)}" for row in (found - wanted).elements()]
        lines += [f"  missing:   {_show(row)}" for row in (wanted - found).elements()]
        raise AssertionError("the rows differ:\n" + "\n".join(lines))


def frozen(value: Any) -> Any:
    """A hashable image of a row, a list or a value; floats to twelve digits, NaN equal to itself."""
    if isinstance(value, Mapping):
        return frozenset((name, frozen(one)) for name, one in value.items() if name not in OWN_COLUMNS)
    if isinstance(value, list | tuple):
        return tuple(frozen(one) for one in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    return value


def _show(row: Any) -> str:
    if isinstance(row, frozenset):
        return "{" + ", ".join(f"{name}: {_show(value)}" for name, value in sorted(row, key=str)) + "}"
    return repr(row)
