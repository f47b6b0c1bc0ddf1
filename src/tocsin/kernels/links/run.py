"""Run the loops over links: the events of a task and what may follow each, and the words that are found as matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.algebra import nodes as alg
from tocsin.errors import TocsinError
from tocsin.kernels import compile
from tocsin.kernels.links.steps import FIRST, NEVER, TABLE, WALK
from tocsin.kernels.links.tested import TestedWalk
from tocsin.kernels.lists import Merged, merged
from tocsin.kernels.matches import UNLIMITED, Limits, take
from tocsin.kernels.model import Bag, Integers, Mask, Matches, Rows, differs, is_flagged, sums_before
from tocsin.kernels.reach import Search
from tocsin.kernels.run import ROOM
from tocsin.kernels.search.helpers import DONE, FULL, TOO_LONG, TOO_MANY
from tocsin.kernels.trends.machine import Machine
from tocsin.language import expressions as ex
from tocsin.language.ast import PER_START, Output, Selection, Skip

# Entries that the table of earliest ends may have, at four bytes each; without it a walk may run into dead ends.
MOST_ENTRIES = 1 << 26
# Steps of plain Python between two looks at whether the compiled function pays, and words that it has room for.
FEW_STEPS, LITTLE_ROOM = 50_000, 1 << 12
Words = tuple[Integers, Integers, Integers]  # where each word ends in the lists; the states and the places of all


@dataclass(frozen=True)
class Walker:
    """A search along links over the rows of one task."""

    reach: Search  # the query, its sources, and what the task owns
    machine: Machine  # its words
    limits: Limits
    jit: bool | None  # whether to compile; None: when there are many rows
    decides: bool  # whether every word is a match: no absence is left
    conjuncts: tuple[ex.Expression, ...]  # what words must make TRUE beyond what flags decide

    def matches(self, rows: Rows) -> Iterator[Matches]:
        """The matches of all groups, some at a time; none twice unless a letter has several elements."""
        events = linked(rows, self.reach, self.machine)
        if len(events):
            for words in self.words(events, rows):
                matches = self._as_matches(events, rows, *words)
                if len(matches):
                    yield matches

    @property
    def counts(self) -> bool:
        """Whether words count for `most`; otherwise whoever drops some of them counts the rest."""
        return self.decides and not self.reach.query.ranks_matches and self.is_distinct

    @property
    def limit(self) -> int:
        """How many words one start may have."""
        return self.limits.most if self.counts else UNLIMITED

    @property
    def is_distinct(self) -> bool:
        """Whether no match is found twice: a variable of several elements may take an event as part of each."""
        return len(set(self.machine.symbols)) == len(self.machine.symbols)

    def words(self, events: Linked, rows: Rows) -> Iterator[Words]:
        """The words of all starts."""
        if self.conjuncts:
            return TestedWalk(self, events, rows).words()
        size, states = len(events), len(self.machine.entered)
        after, lists = following(events, self.machine, self.reach.query.selection)
        moves = sorted(self.machine.moves)
        links: tuple[NDArray[Any], ...] = (
            np.concatenate(after).astype(np.int32),
            np.concatenate(events.fits),
            np.searchsorted([state for state, _, _ in moves], np.arange(states + 1)).astype(np.int32),
            np.array([lists[letter] for _, letter, _ in moves], np.int32),
            np.array([letter for _, letter, _ in moves], np.int32),
            np.array([target for _, _, target in moves], np.int32),
            np.array([state in self.machine.finals for state in range(states)], np.bool_),
        )
        earliest = self._earliest(size, states, links)
        owned = np.ones(size, np.bool_) if self.reach.owns_by_end else events.owned
        if len(earliest) and self.needs_first_only:
            ends = self._first_ends(events, earliest)
            goals = np.where(ends <= events.limits, ends, -1)
            names = sorted(name for name, _ in self.machine.symbols)
            ranks = [names.index(self.machine.variable(state) or names[0]) for state in range(states)]
            skips = self.reach.query.after_match.skip is Skip.PAST_LAST
            given = (owned, goals, (*links, np.array(ranks, np.int32)), earliest)
            return self._calls(FIRST, size, int(skips), given, (states, size + 3, states * size + 1, size + 2))
        return self._calls(WALK, size, self.limit, (owned, events.limits, links, earliest), (size + 2,) * 3)

    def _earliest(self, size: int, states: int, links: tuple[NDArray[Any], ...]) -> NDArray[np.int32]:
        """The table of earliest ends; empty when it would be too large."""
        found = np.full(states * size if states * size <= MOST_ENTRIES else 0, NEVER, np.int32)
        if not len(found):
            return found
        call = compile.Call(TABLE, size, self.jit)
        given = (links, found) if not call.is_plain else compile.as_lists((links, found))
        call(size, *given)
        return np.asarray(given[1], np.int32)

    @property
    def needs_first_only(self) -> bool:
        """Whether only the first match of each start, in the order of R5, can be kept."""
        query = self.reach.query
        skips = query.after_match.skip in (Skip.PAST_LAST, Skip.TO_NEXT) and query.output not in PER_START
        return self.decides and (skips or query.output is Output.FIRST_PER_START)

    def _first_ends(self, events: Linked, earliest: NDArray[np.int32]) -> Integers:
        """The place where the first match of each start ends."""
        size = len(events)
        found = np.full(size, NEVER, np.int64)
        for state, letter, target in self.machine.moves:
            if state == 0:
                ends = earliest[target * size : (target + 1) * size]
                found = np.where(events.fits[letter], np.minimum(found, ends), found)
        return found

    def _calls(
        self, text: str, size: int, option: int, given: tuple[Any, ...], stacks: tuple[int, ...]
    ) -> Iterator[Words]:
        """Call a function until it has visited every start."""
        most_steps = self.limits.most_steps
        call, room, begin, status = compile.Call(text, size, self.jit), LITTLE_ROOM, 0, FULL
        arrays = compile.as_lists(given) if call.is_plain else given
        while status != DONE:
            allowed = min(FEW_STEPS, most_steps) if call.rents else most_steps
            lengths = (*stacks, room, 8 * room, 8 * room)
            work: Any = tuple([0] * length if call.is_plain else np.zeros(length, np.int64) for length in lengths)
            before = begin
            status, begin, count, _ = call(size, begin, option, allowed, *arrays, work)
            if status == TOO_MANY or (status == TOO_LONG and allowed == most_steps):
                raise self.too_many(status, most_steps)
            if call.buys(is_long=status == TOO_LONG):
                arrays, room = given, ROOM
            elif status == FULL and begin == before:
                room *= 2
                self.limits.check_memory(8 * 17 * room)
            ends, states, places = (np.asarray(each, np.int64) for each in work[-3:])
            total = int(ends[count - 1]) if count else 0
            yield ends[:count], states[:total], places[:total]

    def too_many(self, status: int, steps: int) -> TocsinError:
        """The error for a start with too many matches, or one that takes too many steps."""
        return self.limits.too_many_matches() if status == TOO_MANY else self.limits.too_many_steps(steps)

    def _as_matches(self, events: Linked, rows: Rows, ends: Integers, states: Integers, places: Integers) -> Matches:
        begins = np.concatenate(([0], ends))[:-1].astype(np.int64, copy=False)
        sizes = ends - begins
        held = events.merged.rows[places]
        letters = np.array(self.machine.entered, np.int64)[states]
        word = np.repeat(np.arange(len(ends), dtype=np.int64), sizes)
        bound: dict[str, Integers | Bag] = {}
        for variable, kind in alg.variables_of(self.reach.query.core).items():
            own = [number for number, (name, _) in enumerate(self.machine.symbols) if name == variable]
            slots = np.flatnonzero(np.isin(letters, own))
            if kind.iterated:
                counts = np.bincount(word[slots], minlength=len(ends))
                bound[variable] = Bag(sums_before(counts), held[slots])
            else:
                found = np.full(len(ends), -1, np.int64)
                found[word[slots]] = held[slots]
                bound[variable] = found
        matches = Matches(rows.ts[held[begins]], rows.ts[held[ends - 1]], bound)
        return take(matches, events.owned[places[ends - 1]]) if self.reach.owns_by_end else matches


@dataclass(frozen=True)
class Linked:
    """The candidates of all variables in one list, by group and position."""

    merged: Merged
    fits: list[Mask]  # for every letter, whether each event may be bound as it
    blocks: Mapping[str, Mask]  # for every variable, whether each event may be bound to it, as whatever type
    limits: Integers  # the last place that a match may reach that starts with each event
    owned: Mask  # whether a match that starts (or ends) there is this task's
    after: Integers  # the first place of the group at a later instant; the end of the group when there is none
    ends: Integers  # where the group of each event ends

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.merged.rows)

    def candidates(self, element: Sequence[str]) -> Mask:
        """Which events may be bound to one of an element's variables."""
        found: Mask = np.logical_or.reduce([self.blocks[name] for name in element])
        return found

    def neighbours(self) -> Integers:
        """For each event the place of the very next one, where that is a candidate at a later instant; −1 for none."""
        places = self.merged.places
        assert places is not None
        here = np.arange(len(self), dtype=np.int64)
        found = np.full(len(self), -1, dtype=np.int64)
        inside = here + 1 < self.ends
        then = here[inside] + 1
        is_next = (places[then] == places[inside] + 1) & (self.after[inside] == then)
        found[inside] = np.where(is_next, then, -1)
        return found

    def next_of(self, is_candidate: Mask) -> Integers:
        """For each event the place of the first candidate at a later instant of its group; −1 for none."""
        candidates = np.append(np.flatnonzero(is_candidate), len(self))
        found = candidates[np.searchsorted(candidates, self.after)]
        return np.where(found < self.ends, found, -1).astype(np.int64, copy=False)


def linked(rows: Rows, search: Search, machine: Machine) -> Linked:
    """Sort the candidates of a task."""
    sources = {source.variable: source for source in search.sources}
    variables = dict.fromkeys(variable for variable, _ in machine.symbols)
    is_held = {name: is_flagged(rows.flags, sources[name].bit) for name in variables}
    events = merged(rows, np.flatnonzero(np.logical_or.reduce(list(is_held.values()))).astype(np.int64, copy=False))
    blocks = {name: held[events.rows] for name, held in is_held.items()}
    fits = [
        blocks[name] & (rows.kinds[events.rows] == search.types.index(kind))
        if rows.kinds is not None and len(sources[name].types) > 1
        else blocks[name]
        for name, kind in machine.symbols
    ]
    sizes = events.group_to - events.group_from
    ends = np.repeat(events.group_to, sizes)
    low, high = (np.repeat(each, sizes) for each in (events.own_low, events.own_high))
    owned = (low <= events.times) & (events.times <= high)
    limits = events.window_ends(search.span_us) - 1
    return Linked(events, fits, blocks, limits, owned, _after_instants(events, ends), ends)


def following(events: Linked, machine: Machine, selection: Selection) -> tuple[list[Integers], list[int]]:
    """For each element the events that may follow, and which of these lists each letter reads."""
    if selection is not Selection.NEXT:
        return [events.neighbours()], [0] * len(machine.symbols)
    elements = list(dict.fromkeys(machine.elements))
    return [events.next_of(events.candidates(each)) for each in elements], [*map(elements.index, machine.elements)]


def _after_instants(events: Merged, ends: Integers) -> Integers:
    """Where the next instant of the group begins, or the group ends."""
    is_new = np.append(differs(events.times), True)
    is_new[events.group_from] = True
    starts = np.flatnonzero(is_new)
    found = starts[np.searchsorted(starts, np.arange(len(ends)), side="right")]
    return np.minimum(found, ends).astype(np.int64, copy=False)
