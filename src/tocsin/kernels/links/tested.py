"""A search along links with conditions between events, which are tried on Python values while words grow.

A condition that no further event can repair ends a word. Under `next` an event blocks the later ones when it makes TRUE
what can be asked of it, given the word so far (R2); an event before it that does not may still be bound, where only the
whole match decides.

Where only the first match of each start can be kept, nearer events are tried first, and no word goes beyond the end of
one that was found: R5's order begins with the last position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from tocsin.expressions.interpret import Event, holds
from tocsin.kernels.model import Integers, Rows, reader
from tocsin.kernels.policies.selection import conditions_of_next, needs_whole_bags
from tocsin.kernels.search.helpers import TOO_LONG, TOO_MANY
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection, Skip

if TYPE_CHECKING:
    from tocsin.kernels.links.run import Linked, Walker, Words

# Events that may be tried from one start: some seconds of plain Python.
MOST_TRIED = 1_000_000
# Words that are given at a time.
PORTION = 10_000
Bags = dict[str, list[Event]]


@dataclass(frozen=True)
class _Condition:
    """A conjunct, ready to be tried when one more event is bound to a variable that it mentions."""

    test: Callable[[Mapping[str, Sequence[Event]]], bool]
    variables: frozenset[str]
    is_plain: bool  # every choice of events is asked by itself, so that only those with the new event are

    @classmethod
    def of(cls, conjunct: ex.Expression) -> _Condition:
        is_plain = not needs_whole_bags(conjunct) and all(
            reference.index is ex.Each.PLAIN for reference in ex.references_in(conjunct)
        )
        return cls(holds(conjunct), ex.variables_in(conjunct), is_plain)

    def passes(self, bags: Bags, variable: str, event: Event) -> bool:
        """Whether it holds with one more event, or speaks of a variable that is not bound yet."""
        if not all(name == variable or name in bags for name in self.variables):
            return True
        earlier = [] if self.is_plain else bags.get(variable, [])
        return self.test({**bags, variable: [*earlier, event]})


class TestedWalk:
    """A walk over the events of one task that tries the conjuncts of its walker."""

    def __init__(self, walker: Walker, events: Linked, rows: Rows) -> None:
        self.walker, self.events, self.read = walker, events, reader(rows)
        self.rows = events.merged.rows.tolist()
        self.machine, query = walker.machine, walker.reach.query
        self.is_next = query.selection is Selection.NEXT
        self.needs_first_only = walker.needs_first_only
        self.skips_past_last = query.after_match.skip is Skip.PAST_LAST and self.needs_first_only
        self.whole = [holds(conjunct) for conjunct in walker.conjuncts]
        variables = list(events.blocks)
        self.lasting = {
            name: [
                _Condition.of(conjunct)
                for conjunct in walker.conjuncts
                if name in ex.variables_in(conjunct) and not needs_whole_bags(conjunct)
            ]
            for name in variables
        }
        blocking = conditions_of_next(query, walker.reach.sources) if self.is_next else {}
        self.blocking = {name: list(map(_Condition.of, blocking.get(name, ()))) for name in variables}
        self.fits = [held.tolist() for held in events.fits]
        self.blocks = {name: held.tolist() for name, held in events.blocks.items()}
        self.candidates = {
            element: np.flatnonzero(events.candidates(element)).tolist() for element in set(self.machine.elements)
        }
        self.neighbours = [] if self.is_next else events.neighbours().tolist()
        self.after, self.limits = events.after.tolist(), events.limits.tolist()
        # state → the elements that may follow, each with its letters and where they lead
        self.moves: list[list[tuple[tuple[str, ...], list[tuple[int, int]]]]] = [[] for _ in self.machine.entered]
        by_element = sorted(self.machine.moves, key=lambda move: (move[0], self.machine.elements[move[1]]))
        for (state, element), moves in groupby(by_element, lambda move: (move[0], self.machine.elements[move[1]])):
            self.moves[state].append((element, [(letter, target) for _, letter, target in moves]))
        self.bags: Bags = {}
        self.tried = 0
        self.limit = -1  # the last place that a word from the current start may reach

    def words(self) -> Iterator[Words]:
        """The words of all starts that make every conjunct TRUE."""
        ends: list[int] = []
        states: list[int] = []
        places: list[int] = []
        owned = np.ones(len(self.events), np.bool_) if self.walker.reach.owns_by_end else self.events.owned
        frontier = 0
        for start in np.flatnonzero(owned).tolist():
            if start < frontier:
                continue
            for word in self._from(start):
                states += [state for state, _ in word]
                places += [place for _, place in word]
                ends.append(len(places))
                if self.skips_past_last:  # words that follow from this start end there or before
                    frontier = word[-1][1] + 1
            if len(ends) >= PORTION:
                yield _integers(ends), _integers(states), _integers(places)
                ends, states, places = [], [], []
        yield _integers(ends), _integers(states), _integers(places)

    def _from(self, start: int) -> Iterator[list[tuple[int, int]]]:
        """The words that begin with an event: a walk, one level per event."""
        self.tried = found = 0
        self.limit = self.limits[start]
        first = [move for _, moves in self.moves[0] for move in moves]
        levels = [self._taken(first, start)]
        word: list[tuple[int, int]] = []
        while levels:
            if not levels[-1]:
                levels.pop()
                if word:
                    variable = self._variable(word.pop()[0])
                    self.bags[variable].pop()
                    if not self.bags[variable]:
                        del self.bags[variable]
                continue
            state, place = levels[-1].pop()
            if place > self.limit:
                continue
            word.append((state, place))
            self.bags.setdefault(self._variable(state), []).append(self._event(place))
            if state in self.machine.finals and all(test(self.bags) for test in self.whole):
                found += 1
                if found > self.walker.limit:
                    raise self.walker.too_many(TOO_MANY, MOST_TRIED)
                yield word
                if self.needs_first_only:
                    self.limit = place
            links = self._onwards(state, place)
            levels.append(sorted(links, key=itemgetter(1), reverse=True) if self.needs_first_only else links)

    def _onwards(self, state: int, place: int) -> list[tuple[int, int]]:
        """The links that a word may take: the states they lead to, and the events they bind."""
        if not self.is_next:
            other = self.neighbours[place]
            moves = [move for _, moves in self.moves[state] for move in moves]
            return self._taken(moves, other) if 0 <= other <= self.limit else []
        found: list[tuple[int, int]] = []
        for element, moves in self.moves[state]:
            candidates = self.candidates[element]
            for number in range(bisect_left(candidates, self.after[place]), len(candidates)):
                other = candidates[number]
                if other > self.limit:
                    break
                found += self._taken(moves, other)
                if any(self._could_bind(name, other) for name in element):
                    break
        return found

    def _taken(self, moves: Sequence[tuple[int, int]], place: int) -> list[tuple[int, int]]:
        """The moves that may bind an event, as far as a word so short can say."""
        self.tried += 1
        if self.tried > MOST_TRIED:
            raise self.walker.too_many(TOO_LONG, MOST_TRIED)
        return [
            (target, place)
            for letter, target in moves
            if self.fits[letter][place] and self._pass(self.lasting, self.machine.symbols[letter][0], place)
        ]

    def _could_bind(self, variable: str, place: int) -> bool:
        """Whether an event could have been bound to a variable, given the word so far (R2)."""
        return self.blocks[variable][place] and self._pass(self.blocking, variable, place)

    def _pass(self, conditions: Mapping[str, list[_Condition]], variable: str, place: int) -> bool:
        event = self._event(place) if conditions[variable] else {}
        return all(condition.passes(self.bags, variable, event) for condition in conditions[variable])

    def _variable(self, state: int) -> str:
        return self.machine.symbols[self.machine.entered[state]][0]

    def _event(self, place: int) -> Event:
        return self.read(self.rows[place])


def _integers(values: list[int]) -> Integers:
    return np.array(values, np.int64)
