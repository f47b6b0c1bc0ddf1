"""The search with registers of any Python value: numbers, texts, decimals, the elements of a user's monoid.

For automata whose registers are all numbers `code` writes the same search as one compiled function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tocsin.automata.evaluate import Now, compiled
from tocsin.automata.model import DerivedEvent
from tocsin.kernels.layout import Merged
from tocsin.kernels.model import Integers
from tocsin.kernels.runs.found import Paths, Values
from tocsin.kernels.runs.stepping import Accepted, Progress, Read, Seen, Stepper
from tocsin.kernels.runs.tables import Tables


@dataclass
class PlainSearch:
    """The runs over the events of one task; `read` gives an event by its place in the list."""

    tables: Tables
    read: Read
    window_us: int | None
    owns_by_end: bool = False

    def accepted(self, events: Merged, letters: Integers) -> Iterator[Accepted]:
        """Where runs end, group by group, in order; events are given by their places in the list."""
        step = Stepper(self.tables, self.read, self.window_us)
        for group in range(len(events.group_from)):
            yield from self._group(step, events, letters, group)

    def _group(self, step: Stepper, events: Merged, letters: Integers, group: int) -> Iterator[Accepted]:
        begin, end = int(events.group_from[group]), int(events.group_to[group])
        low, high = int(events.own_low[group]), int(events.own_high[group])
        known: Progress | None = None
        times, words = events.times[begin:end].tolist(), letters[begin:end].tolist()
        for event in map(Seen, range(begin, end), times, words):
            is_owned = low <= event.ts <= high
            known, accepted = step(known, event, begins=is_owned or self.owns_by_end)
            if accepted is not None and (is_owned or not self.owns_by_end):
                yield accepted


class Replay:
    """Derived events of matches, told again from their steps."""

    def __init__(self, tables: Tables, read: Read) -> None:
        monoids = tables.automaton.monoids
        self.read = read
        self.updates = [[(name, compiled(value, monoids)) for name, value in step.replays] for step in tables.steps]
        self.fields = [
            [
                (template, [compiled(value, monoids) for _, value in output.fields])
                for template, output in step.made
                if isinstance(output, DerivedEvent)
            ]
            for step in tables.steps
        ]

    def values(self, paths: Paths, counts: Mapping[int, int]) -> Values:
        """The values of all derived events."""
        found: dict[tuple[int, int], list[Any]] = defaultdict(list)
        offsets, steps, events = (one.tolist() for one in (paths.offsets, paths.steps, paths.events))
        for begin, end in pairwise(offsets):
            path = list(zip(steps[begin:end], events[begin:end], strict=True))
            templates = (template for step, _ in path for template, _ in self.fields[step])
            for template, made in zip(templates, self.of_one(path), strict=True):
                for place, value in enumerate(made):
                    found[template, place].append(value)
        return found

    def of_one(self, path: Iterable[tuple[int, int]]) -> Iterator[list[Any]]:
        """The values of each derived event of one match, from its steps and the events they read."""
        registers: dict[str, Any] = {}
        for step, event in path:
            now = Now(self.read(event), True, registers)
            yield from ([value(now) for value in fields] for _, fields in self.fields[step])
            # All are computed from what was before.
            registers = {**registers, **{name: value(now) for name, value in self.updates[step]}}
