"""Matches that are equal: two runs of an ambiguous automaton may find the same one (R8, R24)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tocsin.automata import values
from tocsin.kernels.model import Bag, Integers, Made, Matches, Rows, Template
from tocsin.kernels.runs.found import Paths


def bound(matches: Matches) -> Integers:
    """The matches that bind something at all."""
    is_bound = np.zeros(len(matches), np.bool_)
    for held in matches.events.values():
        is_bound |= np.diff(held.offsets) > 0 if isinstance(held, Bag) else held >= 0
    return np.flatnonzero(is_bound)


def distinct(matches: Matches, paths: Paths, rows: Rows, templates: tuple[Template, ...]) -> Integers:
    """The first of those that are equal: interval, and bags by variable in no order (R8, R24)."""
    base = len(rows.ts) if matches.made is None else matches.made.base

    def key_of(number: int) -> Any:
        return number if number < base or matches.made is None else _made_key(matches.made, number, rows, templates)

    seen: set[Any] = set()
    kept = []
    something = set(bound(matches).tolist())
    held = [
        (one.offsets.tolist(), one.rows.tolist()) if isinstance(one, Bag) else (None, one.tolist())
        for one in matches.events.values()
    ]
    for match in range(len(matches)):
        bags = [
            values[offsets[match] : offsets[match + 1]] if offsets is not None else values[match : match + 1]
            for offsets, values in held
        ]
        key = (
            int(paths.starts[match]),
            int(paths.ends[match]),
            *(tuple(sorted(map(repr, map(key_of, bag)))) for bag in bags),
        )
        if match in something and key not in seen:
            seen.add(key)
            kept.append(match)
    return np.array(kept, np.int64)


def _made_key(made: Made, number: int, rows: Rows, templates: tuple[Template, ...]) -> Any:
    """An event that was made is what its values are."""
    number -= made.base
    row, template = int(made.rows[number]), templates[int(made.templates[number])]
    if template.is_derived:
        held = [column[int(made.places[number])] for column in made.columns[int(made.templates[number])]]
    else:
        event = rows.event(row) if rows.event is not None else {}
        held = [event.get(name) if name in template.kept else None for name in template.attributes]
    return (row, template.is_derived, sorted(zip(template.attributes, map(values.identity, held), strict=True)))
