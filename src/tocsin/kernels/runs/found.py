"""Matches of an automaton as the steps of their runs, or graphs of them, and the events that variables hold.

A graph has all matches that end at one event, however many they are. It is a list of nodes, children first: as in the
arena (`texts`), a node is a leaf, a kept step or a union. What has left the window is not part of it, so that every way
from its root to a leaf is a match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.matches import check_memory
from tocsin.kernels.model import Bag, Integers, Made, Matches, Rows, Template
from tocsin.kernels.runs.automaton_tables import WHOLE, Tables
from tocsin.kernels.runs.object_registers import identity
from tocsin.kernels.runs.texts import LEAF, UNION

BYTES_PER_KEY = 200  # of a match that is compared with others, about
# The values of derived events by (template, field), in the order of matches, of their steps and of what each makes; the
# numbers of events by template are given.
Values = Mapping[tuple[int, int], Sequence[Any]]
Derive = Callable[["Paths", Mapping[int, int]], Values]


@dataclass(frozen=True)
class Paths:
    """Matches as the steps of their runs: columns, since there may be many. Events are places in the list read."""

    # The first and the last event of each.
    starts: Integers
    ends: Integers
    offsets: Integers  # the kept steps of match i are those from `offsets[i]` to `offsets[i + 1]`, in the order of time
    # Their numbers, and the events they read.
    steps: Integers
    events: Integers

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True)
class Graphs:
    """Several graphs as columns; events are places in the list that was read."""

    # The earliest start and the end of the matches of each.
    starts: Integers
    ends: Integers
    offsets: Integers  # the nodes of graph i are those from `offsets[i]` to `offsets[i + 1]`
    # As in the arena; nodes are counted from the graph's first.
    steps: Integers
    events: Integers
    before: Integers
    roots: Integers  # the root of each, counted from its first node
    counts: Sequence[int] | Integers  # how many matches each has; -1 where 62 bits are not enough

    def __len__(self) -> int:
        return len(self.starts)


def exact(graphs: Graphs, number: int) -> int:
    """How many matches one of several graphs has, in however many digits: the ways from its root to a leaf."""
    part = slice(int(graphs.offsets[number]), int(graphs.offsets[number + 1]))
    columns = (column[part].tolist() for column in (graphs.steps, graphs.events, graphs.before))
    found: list[int] = []
    for step, event, node in zip(*columns, strict=True):
        if step == LEAF:
            found.append(1)
        else:
            found.append(found[node] + found[event] if step == UNION else found[node])
    return found[int(graphs.roots[number])]


def matches_of(
    paths: Paths,
    tables: Tables,
    variables: Mapping[str, alg.Kind],
    rows: Integers,
    ts: Integers,
    derive: Derive,
    *,
    with_edges: bool = False,
) -> Matches:
    """Matches of rows. `rows` has the row of each event read, `ts` the time of each row."""
    held = rows[paths.events]
    made, made_from = _made(paths, tables, rows, ts, derive) if tables.templates else (None, held)
    events: dict[str, Integers | Bag] = {}
    gives: dict[str, dict[int, list[int]]] = {}
    for place, step in enumerate(tables.steps):
        for name, _, number in step.gives:
            gives.setdefault(name, {}).setdefault(place, []).append(number)
    for name, kind in variables.items():
        taken, numbers, before = _expanded(gives.get(name, {}), len(tables.steps), paths.steps)
        offsets = np.append(before, len(taken))[paths.offsets]
        found = held[taken]
        if made is not None and (numbers != WHOLE).any():
            found = np.where(numbers == WHOLE, found, made.base + made_from[taken] + numbers)
        events[name] = Bag(offsets, found) if kind.iterated else _only(offsets, found)
    first, last = rows[paths.starts], rows[paths.ends]
    return Matches(ts[first], ts[last], events, made=made, edges=(first, last) if with_edges else None)


def _expanded(lists: Mapping[int, Sequence[int]], size: int, steps: Integers) -> tuple[Integers, Integers, Integers]:
    """Each step's list, one behind the other: which step each entry is of, the entries, and how many are before each.

    `lists` are by number, in order, of those of `size` steps that have any.

    Examples
    --------
    >>> [found.tolist() for found in _expanded({0: [7], 2: [8, 9]}, 3, np.array([2, 1, 0]))]
    [[0, 0, 2], [8, 9, 7], [0, 2, 2]]
    """
    counts = np.zeros(size, np.int64)
    for number, one in lists.items():
        counts[number] = len(one)
    flat = np.array([entry for one in lists.values() for entry in one], np.int64)
    begins = np.cumsum(counts) - counts
    sizes = counts[steps]
    before = np.cumsum(sizes) - sizes
    if counts.max(initial=0) <= 1:
        taken = np.flatnonzero(sizes)
        return taken, flat[begins[steps[taken]]], before
    taken = np.repeat(np.arange(len(sizes)), sizes)
    return taken, flat[begins[steps[taken]] + np.arange(len(taken)) - before[taken]], before


def _only(offsets: Integers, found: Integers) -> Integers:
    """The one event of a variable that holds at most one, or -1."""
    if len(found) == len(offsets) - 1:
        return found
    held = np.full(len(offsets) - 1, -1, np.int64)
    held[np.diff(offsets) > 0] = found
    return held


def _made(paths: Paths, tables: Tables, rows: Integers, ts: Integers, derive: Derive) -> tuple[Made, Integers]:
    """The events that matches make, step by step, and where those of each step begin."""
    makes = {place: [number for number, _ in step.made] for place, step in enumerate(tables.steps)}
    taken, template, first = _expanded(makes, len(tables.steps), paths.steps)
    counts = np.bincount(template, minlength=len(tables.templates))
    places = np.empty(len(template), np.int64)
    for number, count in enumerate(counts):
        places[template == number] = np.arange(count)
    made: Values = derive(paths, dict(enumerate(counts.tolist()))) if tables.has_derived else {}
    columns = [
        tuple(made[number, field] for field in range(len(one.attributes))) if one.is_derived else ()
        for number, one in enumerate(tables.templates)
    ]
    return Made(len(ts), rows[paths.events[taken]], template, places, tuple(columns)), first


# --- matches that are equal: two runs of an ambiguous automaton may find the same one (R8, R24) --------------------


def bound(matches: Matches) -> Integers:
    """The matches that bind something at all."""
    is_bound = np.zeros(len(matches), np.bool_)
    for held in matches.events.values():
        is_bound |= np.diff(held.offsets) > 0 if isinstance(held, Bag) else held >= 0
    return np.flatnonzero(is_bound)


class Compared:
    """The matches of a task as they come, of which only the first of those that are equal are kept (R8, R24)."""

    def __init__(self, rows: Rows, templates: tuple[Template, ...], memory: int) -> None:
        self.rows, self.templates, self.memory = rows, templates, memory
        self._seen: set[tuple[int, int, Any]] = set()

    def distinct(self, matches: Matches, paths: Paths) -> Integers:
        """The first of those that agree in their interval and, in whatever order, in the bags of all variables."""
        made = matches.made

        def key_of(number: int) -> Any:
            return number if made is None or number < made.base else self._made_key(made, number)

        # Matches come by their ends, so that equal ones may come in several parts only at the last.
        self._seen = {key for key in self._seen if key[1] == paths.ends[0]}
        kept = []
        held = [
            (one.offsets.tolist(), one.rows.tolist()) if isinstance(one, Bag) else (None, one.tolist())
            for one in matches.events.values()
        ]
        for match in bound(matches).tolist():
            bags = [
                own[offsets[match] : offsets[match + 1]] if offsets is not None else own[match : match + 1]
                for offsets, own in held
            ]
            values = tuple(tuple(sorted(map(repr, map(key_of, bag)))) for bag in bags)
            key = (int(paths.starts[match]), int(paths.ends[match]), values)
            if key not in self._seen:
                self._seen.add(key)
                kept.append(match)
        check_memory(BYTES_PER_KEY * len(self._seen), self.memory)
        return np.array(kept, np.int64)

    def _made_key(self, made: Made, number: int) -> Any:
        """An event that was made is what its values are."""
        number -= made.base
        row, kind = int(made.rows[number]), int(made.templates[number])
        template = self.templates[kind]
        if template.is_derived:
            held = [column[int(made.places[number])] for column in made.columns[kind]]
        else:
            event = self.rows.event(row) if self.rows.event is not None else {}
            held = [event.get(name) if name in template.kept else None for name in template.attributes]
        return (row, template.is_derived, sorted(zip(template.attributes, map(identity, held), strict=True)))
