"""A query as a register automaton over columns: its compilation, and the search of a task's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.algebra.units import MICROSECONDS, Unit
from tocsin.analysis.attributes import Schema
from tocsin.analysis.schema import BoundQuery
from tocsin.automata import expressions as rx
from tocsin.kernels import reach
from tocsin.kernels.expressions.leaves import NotNumbers
from tocsin.kernels.instants import apart
from tocsin.kernels.lists import Merged, merged
from tocsin.kernels.matches import UNLIMITED, take
from tocsin.kernels.model import WORD_BITS, Flags, Integers, Matches, Rows, Source, has_any
from tocsin.kernels.reach import reach_of
from tocsin.kernels.runs.automaton_tables import Letter, Tables, folded, tables
from tocsin.kernels.runs.found import Compared, Derive, Graphs, bound, exact, matches_of
from tocsin.kernels.runs.functions import Replaying, Search, Task, in_order, replay_of, search_of, too_many_matches
from tocsin.kernels.runs.object_registers import EVALUATOR, Evaluator, Objects, Reading
from tocsin.kernels.runs.registers import Attributes, Registers
from tocsin.kernels.runs.texts import UNION
from tocsin.kernels.runs.writers import ReplayCode, SearchCode
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY

__all__ = ["RunKernel", "run_kernel", "tables_of"]


def tables_of(query: alg.Query) -> Tables:
    """The automaton of a query; what reads a graph must number its steps as what wrote it."""
    is_contiguous = query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)
    return tables(automata.automaton(query.pattern, contiguous=is_contiguous))


def run_kernel(bound: BoundQuery) -> RunKernel:
    """Compile a query to an automaton over columns."""
    query = bound.query
    found = tables_of(query)
    reach = reach_of(query)
    schemas = {name: bound.schemas[name] for name in sorted(alg.event_types(query.pattern))}
    sources: list[Source] = []
    letters = tuple(_bits(letter, schemas, sources) for letter in found.letters)
    has_times = any(step.timing for step in found.steps)
    is_inverted = any(letter.is_inverted for letter in letters)
    search, graphing, replaying, attributes = _compiled(found, schemas, has_window=query.window_us is not None)
    return RunKernel(
        **vars(
            replace(
                reach,
                needs_order=reach.needs_order or any(map(is_of_acel, query.pattern.walk())) or has_times,
                counts_every_event=reach.counts_every_event or found.counts_every_event or (has_times and is_inverted),
            )
        ),
        sources=tuple(sources),
        carried=attributes.carried(),
        types=tuple(schemas),
        wants=_wants(found, schemas, search, replaying),
        automaton=found.automaton,
        templates=found.templates,
        hides_events=any(isinstance(node, alg.Project | alg.NextOf) for node in query.pattern.walk()),
        tables=found,
        letters=letters,
        search=search,
        graphing=graphing,
        replaying=replaying,
    )


def _compiled(
    found: Tables, schemas: Mapping[str, Schema], *, has_window: bool
) -> tuple[Search, Search, Replaying, Attributes]:
    """The generated functions, and the attributes they read; where registers are not all numbers, they are objects."""
    # What is compiled reads the letters of an event from one word.
    has_numbers = (True, False) if len(found.letters) <= WORD_BITS else (False,)
    for of_search, of_replay in product(has_numbers, (True, False)):
        attributes = Attributes(schemas)
        search: Registers | Objects = Objects(found)
        replay: Registers | Objects = Objects(found)
        try:
            if of_search:
                search = Registers(*found.searched, attributes)
            if of_replay:
                replay = Registers(*found.derived, attributes)
            # Only now are all columns known.
            return (
                search_of(SearchCode(found, search, has_window)),
                search_of(SearchCode(found, search, has_window, as_graphs=True)),
                replay_of(ReplayCode(found, replay)),
                attributes,
            )
        except NotNumbers:
            continue
    raise AssertionError("objects hold every value")


def _bits(letter: Letter, schemas: Mapping[str, Schema], sources: list[Source]) -> Bits:
    """The sources of a letter: one for all types of which it asks the same."""

    def settled(name: str | None, attributes: Mapping[str, object]) -> ex.Expression:
        return rx.both(*(folded(test, name, attributes) for test in letter))

    is_inverted = settled(None, {}) == rx.TRUE
    asked: dict[ex.Expression, list[str]] = {}
    only = [test.type for test in letter if isinstance(test, rx.TypeIs)]  # of any other type it is FALSE
    for name in only or schemas:
        condition = settled(name, schemas[name].attributes)
        if is_inverted:
            condition = rx.simplified(ex.Or((ex.Not(condition), ex.IsNull(condition))))
        if condition not in (rx.FALSE, rx.NULL):
            asked.setdefault(condition, []).append(name)
    bits = 0
    for condition, names in asked.items():
        number = len(sources)
        variable = f"#{number}"
        named = ex.renamed(condition, {rx.EVENT: variable}.__getitem__)
        conditions = () if condition == rx.TRUE else ex.conjuncts(named)
        sources.append(Source(variable, tuple(names), False, number, conditions))
        bits |= 1 << number
    return Bits(bits, is_inverted)


def _wants(
    found: Tables, schemas: Mapping[str, Schema], search: Search, replaying: Replaying
) -> dict[str, tuple[str, ...]]:
    """The attributes that plain Python reads, and those that tell equal matches apart."""
    computed = [*([found.searched] if search.is_plain else ()), *([found.derived] if replaying.is_plain else ())]
    names = {
        node.path[0]
        for updates, others in computed
        for expression in (*(value for _, value in updates), *others)
        for node in expression.walk()
        if isinstance(node, ex.Attribute) and node.variable == rx.EVENT
    }
    if found.is_ambiguous:
        names |= {name for one in found.templates if not one.is_derived for name in one.attributes}
    wanted = {kind: tuple(sorted(names.intersection(schema.attributes))) for kind, schema in schemas.items()}
    return {kind: attributes for kind, attributes in wanted.items() if attributes}


@dataclass(frozen=True)
class Bits:
    """How a letter is read from the flags of a row: it is TRUE when one of the bits is set, or when none is."""

    bits: int
    is_inverted: bool


@dataclass(frozen=True, kw_only=True)
class RunKernel(reach.Search):
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
    def needs_kinds(self) -> bool:
        """Whether `Rows.kinds` is needed."""
        return len(self.types) > 1 and bool(self.wants)

    @cached_property
    def variables(self) -> dict[str, alg.Kind]:
        """The variables of the result."""
        return self.query.variables

    def find(
        self, rows: Rows, *, most: int = MOST_MATCHES_PER_START, memory: int = MOST_MEMORY, jit: bool | None = None
    ) -> Iterator[Matches]:
        """Find the matches; runs count as memory too."""
        events = self._events(rows)
        derive = self._derive(rows, events, jit)
        # Matches whose events were made may be equal by what they hold, and then they count once (R24).
        is_compared = self.tables.is_ambiguous and bool(self.tables.templates)
        paths = self.search.paths(self._task(rows, events, UNLIMITED if is_compared else most, memory, jit))
        compared = Compared(rows, self.templates, memory)
        counts = np.zeros(len(events.times), np.int64)
        for some in paths:
            matches = matches_of(
                some, self.tables, self.variables, events.rows, rows.ts, derive, with_edges=self.hides_events
            )
            kept = compared.distinct(matches, some) if is_compared else bound(matches)
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
            counts = [int(count) if count >= 0 else exact(some, number) for number, count in enumerate(some.counts)]
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

    def _task(self, rows: Rows, events: Merged, most: int, memory: int, jit: bool | None) -> Task:
        letters, objects = self._letters(rows.flags[events.rows]), self._evaluator(rows, events)
        window_us = self.query.window_us
        if rows.instants is not None:  # tie columns are part of the time
            events, window_us = apart(events, window_us, rows.instants)
        return Task(events, letters, rows.columns, objects, window_us, most, jit, memory)

    def as_graphs(self, attributes: Mapping[str, Sequence[str]]) -> RunKernel:
        """The search for graphs: slices own the matches that end in them, and events keep all their attributes."""
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
