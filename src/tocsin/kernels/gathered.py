"""How gatherings find their events: by equal values where conditions ask for that, and as stretches of a sorted list.

A gathering of which every condition is about one event, or an equality with one event of the match, takes neighbours
in a list that is sorted by these values and then by time. Where such a stretch begins and ends is looked up, and what
is asked of it is a difference of two prefix sums: no event is visited, however many there are (D50).

code        meaning
----        -------
Key         the equalities, and the event of the match that they are with
Stretch     a gathering that takes all events between two places of its list
Prefix      sums over all that comes before a place: of integers, or of doubles as four integers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tocsin.algebra import nodes as alg
from tocsin.kernels.conditions import Conditions
from tocsin.kernels.expressions.leaves import SlotRef, Test
from tocsin.kernels.expressions.prefixes import SUMMED, Prefix, to_limbs
from tocsin.kernels.lists import Lists
from tocsin.kernels.model import Held, Integers, Rows, Source, is_flagged, sums_before
from tocsin.language import expressions as ex

MOST_SUM = 2**62
Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Key:
    """Equalities between gathered events and one event of the match: the variable of that, pairs of columns."""

    other: str
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Look:
    """How a gathering looks for its events."""

    key: Key | None  # the equalities that its list is sorted by
    tests: tuple[Test, ...]  # the conditions that are left to test on each event; without any, it is a stretch
    # By carried column, the sums that are known; only where no test is left.
    prefixes: Mapping[int, Prefix] = field(default_factory=dict)


def looks_of(
    gatherings: Sequence[alg.Gather],
    found: Conditions,
    sources: Sequence[Source],
    singles: frozenset[str],
    rows: Rows,
) -> dict[str, Look]:
    """How each gathering looks; `singles` are the variables of which every match holds one event."""
    bits = {source.variable: source.bit for source in sources}
    looks: dict[str, Look] = {}
    for gather in gatherings:
        tests = found.around_tests[gather.variable]
        equalities = _equalities(gather.variable, tests, found, singles)
        other = max(equalities, key=lambda name: len(equalities[name]), default=None)
        own = {} if other is None else equalities[other]
        key = None if other is None else Key(other, tuple(own.values()))
        rest = tuple(test for test in tests if test not in own)
        chosen = np.flatnonzero(is_flagged(rows.flags, bits[gather.variable])) if not rest else None
        prefixes = {} if chosen is None else _prefixes(gather.variable, found, rows, chosen)
        looks[gather.variable] = Look(key, rest, prefixes)
    return looks


def _equalities(
    variable: str, tests: Sequence[Test], found: Conditions, singles: frozenset[str]
) -> dict[str, dict[Test, tuple[int, int]]]:
    """By the other variable, the tests that are equalities with its event, and their columns."""
    known: dict[str, dict[Test, tuple[int, int]]] = {}
    for test in tests:
        match test.tree:
            case ex.Comparison(op="=", left=SlotRef() as left, right=SlotRef() as right):
                own, other = (left, right) if left.variable == variable else (right, left)
                alike = (own.slot.held, own.kind) == (other.slot.held, other.kind)
                plain = own.index is ex.Each.PLAIN and other.index is ex.Each.PLAIN
                places = [found.places.get((each.variable, each.slot.expression)) for each in (own, other)]
                if own.variable == variable and other.variable in singles and alike and plain and None not in places:
                    known.setdefault(other.variable, {})[test] = (places[0] or 0, places[1] or 0)
            case _:
                continue
    return known


# --- prefix sums ----------------------------------------------------------------------------------


def _prefixes(variable: str, found: Conditions, rows: Rows, chosen: Integers) -> dict[int, Prefix]:
    wanted = {
        fold.slot
        for test in (*found.tests, *found.asked.values())
        for fold in test.folds
        if fold.variable == variable and fold.slot is not None and fold.function in SUMMED
    }
    known: dict[int, Prefix] = {}
    for slot in wanted:
        column = found.places[variable, slot.expression]
        values, nulls = rows.columns[column]
        own = values[chosen] if nulls is None else values[chosen][~nulls[chosen]]
        if slot.held is Held.INTEGER and _fits(own):
            known[column] = Prefix(is_double=False, is_nullable=nulls is not None)
        elif slot.held is Held.FLOAT and to_limbs(own) is not None:
            known[column] = Prefix(is_double=True, is_nullable=nulls is not None)
    return known


def _fits(values: NDArray[np.generic]) -> bool:
    """Whether no sum of some of the integers can leave 64 bits."""
    if not len(values):
        return True
    largest = max(abs(int(values.min())), abs(int(values.max())))
    return largest * len(values) < MOST_SUM


# --- lists ----------------------------------------------------------------------------------------


def arranged(made: Lists, looks: Mapping[str, Look], numbers: Mapping[str, str]) -> None:
    """Sort the lists of gatherings by their keys, and add what their code looks up."""
    for variable, look in looks.items():
        name = numbers[variable]
        if look.key is not None:
            _sort_by_key(made, variable, look.key, numbers)
        for column, prefix in look.prefixes.items():
            nulls = made.arrays.get(f"null_{name}_{column}")
            _add_prefixes(made.arrays, f"{name}_{column}", prefix, made.arrays[f"c_{name}_{column}"], nulls)


def _add_prefixes(
    arrays: Arrays, name: str, prefix: Prefix, values: NDArray[np.generic], nulls: NDArray[np.generic] | None
) -> None:
    if nulls is not None:
        arrays[f"known_{name}"] = sums_before(~nulls.astype(np.bool_))
        values = np.where(nulls, np.zeros(1, values.dtype), values)
    if not prefix.is_double:
        arrays[f"sum_{name}"] = sums_before(values)
        return
    arrays[f"odd_{name}"] = sums_before(~np.isfinite(values))
    found = to_limbs(values)
    assert found is not None  # as when it was asked whether there are any
    limbs, scale = found
    for place, limb in enumerate(limbs):
        arrays[f"limb{place}_{name}"] = sums_before(limb)
    arrays[f"scale_{name}"] = np.array([scale])


def _sort_by_key(made: Lists, variable: str, key: Key, numbers: Mapping[str, str]) -> None:
    own, other = numbers[variable], numbers[key.other]
    codes, asked = _groups(made, own), _groups(made, other)
    missing, lacking = np.zeros(len(codes), np.bool_), np.zeros(len(asked), np.bool_)
    for mine, theirs in key.columns:
        codes, asked = _joint(codes, asked, made.arrays[f"c_{own}_{mine}"], made.arrays[f"c_{other}_{theirs}"])
        missing |= made.arrays.get(f"null_{own}_{mine}", missing).astype(np.bool_)
        lacking |= made.arrays.get(f"null_{other}_{theirs}", lacking).astype(np.bool_)
    codes = np.where(missing, np.iinfo(np.int64).max, codes)  # NULL equals nothing
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    begin, end = (np.searchsorted(codes, asked, side=side).astype(np.int64) for side in ("left", "right"))
    made.rows[variable] = made.rows[variable][order]
    aligned = (f"ts_{own}", f"row_{own}", f"pos_{own}", f"kind_{own}")
    for name in list(made.arrays):
        if name in aligned or name.startswith((f"c_{own}_", f"null_{own}_")):
            made.arrays[name] = made.arrays[name][order]
    made.arrays[f"begin_{own}"] = np.where(lacking, 0, begin)
    made.arrays[f"end_{own}"] = np.where(lacking, 0, end)


def _groups(made: Lists, name: str) -> Integers:
    """The number of the group of each entry of a list."""
    sizes = made.arrays[f"to_{name}"] - made.arrays[f"from_{name}"]
    return np.repeat(np.arange(made.groups, dtype=np.int64), sizes)


def _joint(
    codes: Integers, asked: Integers, values: NDArray[np.generic], wanted: NDArray[np.generic]
) -> tuple[Integers, Integers]:
    """One number for a number and a value, the same on both sides."""
    _, ranks = np.unique(np.concatenate([values, wanted]), return_inverse=True)
    both = np.concatenate([codes, asked]) * (int(ranks.max(initial=0)) + 1) + ranks.reshape(-1)
    _, dense = np.unique(both, return_inverse=True)
    dense = dense.reshape(-1).astype(np.int64, copy=False)
    return dense[: len(codes)], dense[len(codes) :]
