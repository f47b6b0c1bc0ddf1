"""A graph as bytes, and back: what a compact row holds beside its events, and the matches that come out of it.

Bytes, little-endian: `TCG2`, a fingerprint of the automaton (8 bytes), the number of nodes, the root and the length of
the unit (4 each), then three columns of 4-byte integers: steps, events and the nodes before, as in `Graphs`. A leaf's
event is the place of its start in the row's list of starts; a kept step's is the place of its event among the row's
events. Last comes the unit that durations were converted to, with the attributes that are times, as JSON; it is empty
for microseconds.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.automata import expressions as rx
from tocsin.automata.format import to_text
from tocsin.automata.model import Output
from tocsin.errors import InvalidInputError
from tocsin.kernels.model import Integers
from tocsin.kernels.runs.automaton_tables import WHOLE, Tables
from tocsin.kernels.runs.found import Paths
from tocsin.kernels.runs.functions import replay_of
from tocsin.kernels.runs.object_registers import EVALUATOR, Evaluator, Objects, Reading
from tocsin.kernels.runs.texts import LEAF, UNION
from tocsin.kernels.runs.writers import ReplayCode

MAGIC = b"TCG2"
HEADER = struct.Struct("<4s8siii")
Row = Mapping[str, Any]
Event = tuple[str, Row]  # its type and its attributes
Path = list[tuple[int, int]]  # kept steps and the events they read
Derived = Mapping[tuple[int, int], Iterator[Any]]


def fingerprint(tables: Tables) -> bytes:
    """A digest that tells automata apart."""
    return hashlib.sha256(to_text(tables.automaton).encode()).digest()[:8]


def packed_unit(unit: Unit) -> bytes:
    """A unit as bytes."""
    return b"" if unit.name == MICROSECONDS.name else json.dumps([unit.name, *sorted(unit.times)]).encode()


def _unit(data: bytes) -> Unit:
    name, *times = json.loads(data) if data else (MICROSECONDS.name,)
    return Unit(name, frozenset(times))


def packed(mark: bytes, unit: bytes, steps: Integers, events: Integers, before: Integers, root: int) -> bytes:
    """A graph as bytes."""
    columns = (np.ascontiguousarray(column, np.dtype("<i4")).tobytes() for column in (steps, events, before))
    return HEADER.pack(MAGIC, mark, len(steps), root, len(unit)) + b"".join(columns) + unit


@dataclass(frozen=True)
class Graph:
    """A graph that was bytes."""

    steps: list[int]
    events: list[int]
    before: list[int]
    root: int
    mark: bytes
    unit: Unit

    def require(self, tables: Tables) -> None:
        """Refuse the automaton of another pattern."""
        if self.mark != fingerprint(tables):
            raise of_another_pattern()


def of_another_pattern() -> InvalidInputError:
    """The error for a row that another pattern made."""
    return InvalidInputError(
        "The row is of another pattern than this one, or of another version of it.",
        hint="enumerate a compact row with the pattern that made it.",
    )


def unpacked(data: bytes) -> Graph:
    """A graph from its bytes; refuses bytes that hold none."""
    data = bytes(data)
    if len(data) < HEADER.size or data[:4] != MAGIC:
        raise InvalidInputError(
            "The column `graph` holds no graph of matches.",
            hint='give a row of `match(…, form="compact")` as it came out.',
        )
    _, mark, size, root, length = HEADER.unpack_from(data)
    flat = np.frombuffer(data, np.dtype("<i4"), 3 * size, HEADER.size).reshape(3, size).tolist()
    return Graph(flat[0], flat[1], flat[2], root, mark, _unit(data[len(data) - length :]))


def matches_in(
    graph: Graph, tables: Tables, starts: Sequence[Any], events: Sequence[Event]
) -> Iterator[tuple[Any, dict[str, list[Row]]]]:
    """The matches of a graph, one by one: the start of each, and what its variables hold."""
    derive = _deriving(tables, events)
    for start, path in ways(graph.steps, graph.events, graph.before, graph.root):
        bags: dict[str, list[Row]] = {}
        derived = derive(path)
        for number, event in path:
            step, row = tables.steps[number], events[event][1]
            made = [_made(template, output, row, derived) for template, output in step.made]
            for variable, template, place in step.gives:
                bags.setdefault(variable, []).append(row if template == WHOLE else made[place])
        if bags:
            yield starts[start], bags


def _deriving(tables: Tables, events: Sequence[Event]) -> Callable[[Path], Derived]:
    """A function from one match to the values of its derived events, in order, by template and field."""
    if not tables.has_derived:
        return lambda path: {}
    replaying = replay_of(ReplayCode(tables, Objects(tables)))
    given = {EVALUATOR: Evaluator(tables, lambda event: Reading(events[event][0], 0, events[event][1]))}

    def derive(path: Path) -> Derived:
        counts = Counter(template for step, _ in path for template, _ in tables.steps[step].made)
        steps, read = np.array(path, np.int64).reshape(-1, 2).T
        zero = np.zeros(1, np.int64)
        found = replaying.values(Paths(zero, zero, np.array([0, len(path)]), steps, read), given, counts)
        return {field: iter(values) for field, values in found.items()}

    return derive


def _made(template: int, output: Output, row: Row, derived: Derived) -> Row:
    fields = output.fields or ()
    if output.is_derived:
        return {name: next(derived[template, place]) for place, (name, _) in enumerate(fields)}
    return {name: None if value == rx.NULL else row.get(name) for name, value in fields}


def ways(steps: Sequence[int], events: Sequence[int], before: Sequence[int], root: int) -> Iterator[tuple[int, Path]]:
    """Every match of a graph, lazily: the event it starts with, and its kept steps with their events, in order.

    k matches take time proportional to their lengths plus twice k: an amortized constant for each.
    """
    path: Path = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        step = steps[node]
        if step == UNION:
            waiting += [(events[node], depth), (before[node], depth)]
            continue
        del path[depth:]
        if step == LEAF:
            yield events[node], path[::-1]
            continue
        path.append((step, events[node]))
        waiting.append((before[node], depth + 1))
