"""A query as an automaton over columns: how its matches are found among the rows of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.automata.model import Automaton
from tocsin.kernels import searches
from tocsin.kernels.instants import apart
from tocsin.kernels.layout import Merged, merged
from tocsin.kernels.matches import take
from tocsin.kernels.model import WORD_BITS, Flags, Integers, Matches, Rows, Template, has_any
from tocsin.kernels.runs.found import Derive, Graphs, Paths, bound, distinct, exact, matches_of, whole_ends
from tocsin.kernels.runs.functions import Replaying, Search, Task, in_order, too_many_matches
from tocsin.kernels.runs.objects import EVALUATOR, Evaluator, Reading
from tocsin.kernels.runs.tables import Tables
from tocsin.kernels.runs.texts import UNION
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY

UNLIMITED = 1 << 62


@dataclass(frozen=True)
class Bits:
    """How a letter is read from the flags of a row: it is TRUE when one of the bits is set, or when none is."""

    bits: int
    is_inverted: bool


@dataclass(frozen=True, kw_only=True)
class RunKernel(searches.Search):
    """A query as a register automaton; its sources are conditions on events, under names that are no variables."""

    tables: Tables
    letters: tuple[Bits, ...]  # how its letters are read
    # The generated functions: matches one by one, as graphs, and derived events.
    search: Search
    graphing: Search
    replaying: Replaying
    # The unit that the query has been converted to; a graph keeps it, for what enumerates its matches.
    unit: Unit = MICROSECONDS

    @property
    def automaton(self) -> Automaton:
        """The automaton that reads the events."""
        return self.tables.automaton

    @property
    def templates(self) -> tuple[Template, ...]:
        """The kinds of events that matches make."""
        return self.tables.templates

    @property
    def needs_kinds(self) -> bool:
        """Whether `Rows.kinds` is needed."""
        return len(self.types) > 1 and bool(self.wants)

    @cached_property
    def hides_events(self) -> bool:
        """Whether no variable need hold the first and the last event of a match (R8, R22)."""
        return any(isinstance(node, alg.Project | alg.NextOf) for node in self.query.pattern.walk())

    @cached_property
    def variables(self) -> dict[str, alg.Kind]:
        """What is asked for."""
        return self.query.variables

    def find(
        self,
        rows: Rows,
        *,
        most: int = MOST_MATCHES_PER_START,
        memory: int = MOST_MEMORY,
        jit: bool | None = None,
    ) -> Iterator[Matches]:
        """Find the matches as `Search.find` describes; runs count as memory too."""
        events = self._events(rows)
        derive = self._derive(rows, events, jit)
        # Matches whose events were made may be equal by what they hold, and then they count once (R24).
        is_compared = self.tables.is_ambiguous and bool(self.tables.templates)
        paths = self._paths(rows, events, UNLIMITED if is_compared else most, memory, jit)
        counts = np.zeros(len(events.times) if is_compared else 0, np.int64)
        for some in whole_ends(paths, memory) if is_compared else paths:
            matches = matches_of(
                some, self.tables, self.variables, events.rows, rows.ts, derive, with_edges=self.hides_events
            )
            kept = distinct(matches, some, rows, self.templates) if is_compared else bound(matches)
            if is_compared:
                np.add.at(counts, some.starts[kept], 1)
                if counts[some.starts[kept]].max(initial=0) > most:
                    raise too_many_matches(most)
            yield matches if len(kept) == len(matches) else take(matches, kept)

    def graphs(self, rows: Rows, *, jit: bool | None = None) -> Iterator[Graphs]:
        """The matches of a task's rows as graphs, one for each event that matches end at; events are rows.

        Every match is one way; ask only where the automaton is not ambiguous. A slice owns the matches that end in it.
        """
        events = self._events(rows)
        for some in self.graphing.graphs(self._task(rows, events, MOST_MATCHES_PER_START, UNLIMITED, jit)):
            is_event = some.steps != UNION
            counts = [exact(some, number) if count < 0 else count for number, count in enumerate(some.counts)]
            yield replace(
                some,
                counts=counts,
                starts=events.rows[some.starts],
                ends=events.rows[some.ends],
                events=np.where(is_event, events.rows[np.where(is_event, some.events, 0)], some.events),
            )

    def _events(self, rows: Rows) -> Merged:
        chosen = np.arange(len(rows.ts)) if self.counts_every_event else np.flatnonzero(has_any(rows.flags))
        return merged(rows, chosen.astype(np.int64, copy=False))

    def _paths(self, rows: Rows, events: Merged, most: int, memory: int, jit: bool | None) -> Iterator[Paths]:
        """The runs that have ended, those that are owned."""
        return self.search.paths(self._task(rows, events, most, memory, jit))

    def _task(self, rows: Rows, events: Merged, most: int, memory: int, jit: bool | None) -> Task:
        letters, objects = self._letters(rows.flags[events.rows]), self._evaluator(rows, events)
        events, window_us = self._moved(rows, events)
        return Task(events, letters, rows.columns, objects, window_us, most, jit, memory)

    def _moved(self, rows: Rows, events: Merged) -> tuple[Merged, int | None]:
        """The events and the window as the search compares them: tie columns are part of the time."""
        window_us = self.query.window_us
        return (events, window_us) if rows.instants is None else apart(events, window_us, rows.instants)

    def as_graphs(self, attributes: Mapping[str, Sequence[str]]) -> RunKernel:
        """The same for graphs: slices own the matches that end in them, and events keep all their attributes."""
        wants = {name: tuple(attributes[name]) for name in self.types}
        return replace(self, owns_by_end=True, back_us=self.ahead_us, ahead_us=0, wants=wants)

    def _derive(self, rows: Rows, events: Merged, jit: bool | None) -> Derive:
        given = {**in_order(rows.columns, events.rows), EVALUATOR: self._evaluator(rows, events)}
        return lambda paths, counts: self.replaying.values(paths, given, counts, jit)

    def _letters(self, flags: Flags) -> Integers:
        # Numbers of Python where 64 bits are too few: then nothing is compiled.
        kind = np.int64 if len(self.letters) <= WORD_BITS else object
        words = np.zeros(len(flags), kind)
        for place, letter in enumerate(self.letters):
            is_true = has_any(flags, letter.bits) if letter.bits else np.zeros(len(flags), np.bool_)
            words |= (is_true ^ letter.is_inverted).astype(np.int64).astype(kind) << place
        return words

    def _evaluator(self, rows: Rows, events: Merged) -> Evaluator:
        def read(event: int) -> Reading:
            row = int(events.rows[event])
            kind = self.types[int(rows.kinds[row])] if rows.kinds is not None else self.types[0]
            values = rows.event(row) if rows.event is not None and rows.flags[row].any() else {}
            return Reading(kind, int(rows.ts[row]), values)

        return Evaluator(self.tables, read)
