"""The result of several searches in one schema: variables of the same type, of whichever search, share a column.

column              meaning
------              -------
__tocsin_rule       the number of the search
__tocsin_start …    interval and halves of `match_id`
__tocsin_v0 …       places; NULL where a search has no variable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from tocsin.plan.layout import END, FIRST_HALF, SECOND_HALF, START, variable

RULE = "__tocsin_rule"
HALVES = (START, END, FIRST_HALF, SECOND_HALF)
Placed = TypeVar("Placed")


def placed(kinds: Sequence[Placed], known: list[Placed]) -> tuple[int, ...]:
    """Choose places for the variables of a search by their types; `known` grows where it has none left for one.

    Examples
    --------
    >>> known = ["struct a"]
    >>> placed(["struct b", "struct a", "struct a"], known), known
    ((1, 0, 2), ['struct a', 'struct b', 'struct a'])
    """
    taken: list[int] = []
    for kind in kinds:
        free = [place for place, one in enumerate(known) if one == kind and place not in taken]
        if not free:
            free = [len(known)]
            known.append(kind)
        taken.append(free[0])
    return tuple(taken)


def schema_of(types: Sequence[pa.DataType]) -> pa.Schema:
    """The columns of matches whose places have these types."""
    fields = [pa.field(RULE, pa.int32()), *(pa.field(name, pa.int64()) for name in HALVES)]
    return pa.schema([*fields, *(pa.field(variable(place), dtype) for place, dtype in enumerate(types))])


def types_passed_on(matches: pa.DataType) -> list[pa.DataType]:
    """The types of the places of matches that are passed on as structs."""
    return [field.type for field in matches if field.name not in (RULE, *HALVES)]


def passed_on(matches: pa.StructArray, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Matches that were found before, as rows of the result."""
    columns = dict(zip((field.name for field in matches.type), matches.flatten(), strict=True))
    return _completed(columns, len(matches), types)


def rule_columns(found: pa.RecordBatch, number: int, places: Sequence[int]) -> dict[str, pa.Array]:
    """The matches of one search, its variables at their places."""
    columns = {RULE: pa.array(np.full(found.num_rows, number, np.int32))}
    columns |= {name: found.column(name) for name in HALVES}
    return columns | {variable(place): found.column(variable(at)) for at, place in enumerate(places)}


def in_places(
    found: pa.RecordBatch, number: int, places: Sequence[int], types: Sequence[pa.DataType]
) -> pa.RecordBatch:
    """The matches of one search as rows of the result, NULL at the places of others."""
    return _completed(rule_columns(found, number, places), found.num_rows, types)


def _completed(columns: Mapping[str, pa.Array], size: int, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    names = [RULE, *HALVES]
    found = [columns[name] for name in names]
    for place, dtype in enumerate(types):
        name = variable(place)
        found.append(columns[name] if name in columns else pa.nulls(size, dtype))
        names.append(name)
    return pa.RecordBatch.from_arrays(found, names=names)
