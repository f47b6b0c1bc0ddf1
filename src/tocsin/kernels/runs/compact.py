"""A graph as bytes, and back: what a compact row holds beside its events, and the matches that come out of it.

Bytes, little-endian: `TCG2`, a fingerprint of the automaton (8 bytes), the number of nodes, the root and the length of
the unit (4 each), then three columns of 4-byte integers: steps, events and the nodes before, as in `graphs`. A leaf's
event is the place of its start in the row's list of starts; a kept step's is the place of its event among the row's
events. Last comes the unit that durations were converted to, with the attributes that are times, as JSON; it is empty
for microseconds.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.automata.evaluate import Reading
from tocsin.automata.format import to_text
from tocsin.automata.model import DerivedEvent, TheEvent
from tocsin.errors import InvalidInputError
from tocsin.kernels.model import Integers
from tocsin.kernels.runs.graphs import ways
from tocsin.kernels.runs.plain import Replay
from tocsin.kernels.runs.tables import WHOLE, Tables

MAGIC = b"TCG2"
HEADER = struct.Struct("<4s8siii")
Row = Mapping[str, Any]
Event = tuple[str, Row]  # its type and its attributes


def fingerprint(tables: Tables) -> bytes:
    """What tells automata apart."""
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
    """A graph from its bytes.

    Raises
    ------
    InvalidInputError
        When they hold none.
    """
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
    replay = Replay(tables, lambda event: Reading(events[event][0], 0, events[event][1]))
    for start, path in ways(graph.steps, graph.events, graph.before, graph.root):
        bags = _bags(tables, path, events, replay)
        if bags:
            yield starts[start], bags


def _bags(
    tables: Tables, path: Sequence[tuple[int, int]], events: Sequence[Event], replay: Replay
) -> dict[str, list[Row]]:
    derived = replay.of_one(path) if tables.has_derived else iter(())
    bags: dict[str, list[Row]] = {}
    for number, event in path:
        step, row = tables.steps[number], events[event][1]
        made = [_made(output, row, derived) for _, output in step.made]
        for variable, template, place in step.gives:
            bags.setdefault(variable, []).append(row if template == WHOLE else made[place])
    return bags


def _made(output: TheEvent | DerivedEvent, row: Row, derived: Iterator[Sequence[Any]]) -> Row:
    if isinstance(output, DerivedEvent):
        return dict(zip((name for name, _ in output.fields), next(derived), strict=True))
    return {name: None if name in output.absent else row.get(name) for name in output.attributes or ()}
