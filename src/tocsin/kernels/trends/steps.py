"""What an instant does to the matrix of `sliding`, entry by entry, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tocsin.kernels.model import Integers
from tocsin.kernels.trends.sliding import ADD, ADD_ONE, DIVIDE, MULTIPLY, RESULT
from tocsin.kernels.trends.walks import Walk
from tocsin.language.ast import Selection

# More entries are a table that is walked too often: blocks need fewer numbers then.
MOST_ENTRIES = 128
DONE = -1
Step = tuple[int, int, int, int, int]  # letter, what, to, of, sign


@dataclass(frozen=True)
class Steps:
    """The steps of a walk.

    Attributes
    ----------
    walk
        How words grow, under `any`.
    order
        Its waitings as states, each before those it leads to.
    has_window
        Whether the beginning moves.
    """

    walk: Walk
    order: tuple[int, ...]
    has_window: bool

    @cached_property
    def _moves(self) -> list[tuple[int, int, int]]:
        return [(state, letter, target) for state, letter, target in self.walk.machine.moves if state]

    @cached_property
    def _loops(self) -> set[int]:
        return {state for state, _, target in self._moves if state == target}

    @cached_property
    def _reached(self) -> dict[int, list[int]]:
        """For every waiting the waitings that words can lead to, without the empty word, and DONE."""
        found: dict[int, set[int]] = {}
        for state in reversed(self.order):
            reached = {DONE}
            for source, _, target in self._moves:
                if source == state and target in self.order:
                    reached |= {target} | (found[target] if target != state else set())
            found[state] = reached
        return {state: sorted(reached) if self.has_window else [DONE] for state, reached in found.items()}

    @cached_property
    def entries(self) -> dict[tuple[int, int], int]:
        """The entries that can be other than those of the unit matrix."""
        pairs = [(state, target) for state in self.order for target in self._reached[state]]
        return {pair: number for number, pair in enumerate(pairs, start=1)}  # 0 is spare

    @property
    def ones(self) -> Integers:
        """The entries that are 1 at first."""
        return np.array([number for (state, target), number in self.entries.items() if state == target], np.int64)

    @property
    def starts(self) -> Integers:
        """What begins with an event."""
        found: list[Step] = []
        for state, letter, target in self.walk.machine.moves:
            if state == 0 and target in self.order:
                found.append((letter, ADD, RESULT, self.entries[target, DONE], 1))
            if state == 0 and target in self.walk.machine.finals:
                found.append((letter, ADD_ONE, RESULT, 0, 1))
        return _table(iter(found))

    @property
    def ahead(self) -> Integers:
        """An instant more at the end: columns, the last one first, so that each reads others as they were."""
        return _table(self._ahead())

    @property
    def behind(self) -> Integers:
        """An instant less at the beginning; without a window one more."""
        return _table(self._behind() if self.has_window else self._before())

    def _ahead(self) -> Iterator[Step]:
        if not self.has_window:
            return
        for column in (DONE, *reversed(self.order)):
            for state, letter, target in self._moves:
                if state == column == target:
                    yield from ((letter, MULTIPLY, to, to, 1) for _, to in self._column(column))
            for state, letter, target in self._moves:
                if target in self.walk.machine.finals if column == DONE else target == column != state:
                    yield from ((letter, ADD, self.entries[row, column], of, 1) for row, of in self._column(state))
                    if state not in self._loops:
                        yield letter, ADD_ONE, self.entries[state, column], 0, 1

    def _column(self, column: int) -> list[tuple[int, int]]:
        return [(row, number) for (row, target), number in self.entries.items() if target == column]

    def _behind(self) -> Iterator[Step]:
        for row in reversed(self.order):
            for letter, target in self._moves_of(row):
                yield from self._added(letter, row, target, -1)
            for letter, target in self._moves_of(row):
                if target == row:
                    for column in self._reached[row]:
                        number = self.entries[row, column]
                        yield letter, DIVIDE, number, number, -1

    def _before(self) -> Iterator[Step]:
        for row in self.order:
            for letter, target in self._moves_of(row):
                if target == row:
                    number = self.entries[row, DONE]
                    yield letter, MULTIPLY, number, number, 1
            for letter, target in self._moves_of(row):
                yield from self._added(letter, row, target, 1)

    def _moves_of(self, row: int) -> list[tuple[int, int]]:
        return [(letter, target) for state, letter, target in self._moves if state == row]

    def _added(self, letter: int, row: int, target: int, sign: int) -> Iterator[Step]:
        """To a row add, or from it take, what a letter leads to."""
        if target in self.walk.machine.finals:
            yield letter, ADD_ONE, self.entries[row, DONE], 0, sign
        if target == row or target not in self.order:
            return
        for column in self._reached[target]:
            yield letter, ADD, self.entries[row, column], self.entries[target, column], sign
        if self.has_window and target not in self._loops:
            yield letter, ADD_ONE, self.entries[row, target], 0, sign


def _table(steps: Iterator[Step]) -> Integers:
    return np.array(list(steps), np.int64).reshape(-1, 5)


def steps(walk: Walk, *, has_window: bool) -> Steps | None:
    """The steps of a walk; None where a matrix cannot be undone, or has very many entries."""
    if walk.selection is not Selection.ANY or walk.compared:
        return None
    left = {state for state, _ in walk.waitings}
    order: list[int] = []
    while left:
        targets = {target for state, _, target in walk.machine.moves if state in left and state != target}
        free = sorted(left - targets)
        if not free:
            return None  # some lead to each other
        order += free
        left -= set(free)
    found = Steps(walk, tuple(order), has_window)
    return found if len(found.entries) <= MOST_ENTRIES else None
