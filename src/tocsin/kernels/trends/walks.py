"""How words grow under each selection policy, one instant after the other, in both directions.

A word that is not complete stands in a *waiting*:

any         a state; it takes any later event, and keeps waiting beside the words it becomes
next        a state and the letter it waits for; the first event of that letter takes it away (R2)
contiguous  a state; the very next event takes it away, or ends it (R17)

`back` says what waitings before an instant lead to, from what they lead to after it; `ahead` moves words over it.
Events of one instant never follow each other: all of them see the waitings from before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tocsin.kernels.trends.machine import Machine
from tocsin.kernels.trends.sums import Sum, after, plus
from tocsin.language.ast import Selection


@dataclass(frozen=True)
class Group:
    """The events of a group in order of position.

    Attributes
    ----------
    ts
        Their times.
    letters
        Which letters each can be.
    weights
        For each event and letter of its `letters`, what it adds to every total.
    keys
        Likewise, its key for every extreme.
    follows
        Where contiguity counts: whether each event is the very next after the one before it in this list, and later.
    accepts
        Whether two events may be neighbours in the iteration of a variable; None where nothing compares them.
    """

    ts: Sequence[int]
    letters: Sequence[tuple[int, ...]]
    weights: Sequence[Sequence[tuple[int, ...]]]
    keys: Sequence[Sequence[tuple[int, ...]]]
    follows: Sequence[bool] = ()
    accepts: Callable[[str, int, int], bool] | None = None

    def with_event(self, event: int, letter: int, words: Sum | None) -> Sum | None:
        """Words with an event more, as this letter."""
        if words is None:
            return None
        number = self.letters[event].index(letter)
        return after(self.weights[event][number], self.keys[event][number], words)


Row = list[Sum | None]
Rows = list[Row]


@dataclass(frozen=True)
class Walk:
    """A policy. `Row` is a vector over whatever the caller counts; `Rows` has one for every waiting."""

    machine: Machine
    selection: Selection
    compared: frozenset[str] = frozenset()  # the variables with conditions between neighbours
    moves: dict[tuple[int, int], int] = field(init=False)  # (state, letter) → next state

    def __post_init__(self) -> None:
        object.__setattr__(self, "moves", {(state, letter): target for state, letter, target in self.machine.moves})

    def compares(self, state: int) -> bool:
        """Whether the last event of a word in a state is compared with the next one of its variable."""
        return self.machine.variable(state) in self.compared

    def are_neighbours(self, state: int, letter: int) -> bool:
        """Whether a letter takes one more event of an iteration that compares neighbours."""
        return self.compares(state) and self.machine.letters[letter][0] == self.machine.variable(state)

    @cached_property
    def waitings(self) -> list[tuple[int, int]]:
        """(state, letter it waits for); the letter is −1 where a state waits for all at once."""
        if self.selection is Selection.NEXT:
            return [(state, letter) for state, letter, _ in self.machine.moves if state]
        return [(state, -1) for state in sorted({state for state, _, _ in self.machine.moves} - {0})]

    @cached_property
    def of_state(self) -> list[list[int]]:
        """The waitings of every state."""
        numbers: list[list[int]] = [[] for _ in self.machine.entered]
        for number, (state, _) in enumerate(self.waitings):
            numbers[state].append(number)
        return numbers

    def instants(self, group: Group, first: int, last: int) -> list[range]:
        """The events from `first` to `last` − 1 by instant; one by one where the very next event counts."""
        found: list[range] = []
        while first < last:
            end = first + 1
            while not group.follows and end < last and group.ts[end] == group.ts[first]:
                end += 1
            found.append(range(first, end))
            first = end
        return found

    # --- backwards --------------------------------------------------------------------------------

    def arrived(self, state: int, rows: Rows, complete: Sum) -> Row:
        """What a word leads to that has just come to a state; entry 0 of a row counts complete words."""
        found: Row = [None] * len(rows[0]) if rows else [None]
        for number in self.of_state[state]:
            found = [plus(one, other) for one, other in zip(found, rows[number], strict=True)]
        if state in self.machine.finals:
            found[0] = plus(found[0], complete)
        return found

    def taken(self, group: Group, event: int, state: int, rows: Rows, complete: Sum) -> Row | None:
        """What a word in a state leads to that takes this event; None when it cannot."""
        found: Row | None = None
        for letter in group.letters[event]:
            target = self.moves.get((state, letter))
            if target is not None and self._may_take(group, event, state, letter):
                arrived = self.arrived(target, rows, complete)
                row = [group.with_event(event, letter, words) for words in arrived]
                found = row if found is None else [plus(one, other) for one, other in zip(found, row, strict=True)]
        return found

    def _may_take(self, group: Group, event: int, state: int, letter: int) -> bool:
        """Whether the event fits to the one before it: asked where contiguity says which one that is."""
        return not self.are_neighbours(state, letter) or self.fits(group, state, event - 1, event)

    def fits(self, group: Group, state: int, one: int, other: int) -> bool:
        """Whether the conditions between neighbours accept one more event after the last one of a word in a state."""
        variable = self.machine.variable(state)
        assert group.accepts is not None
        assert variable is not None
        return group.accepts(variable, one, other)

    def back(self, group: Group, instant: range, rows: Rows, complete: Sum) -> Rows:
        """What waitings before an instant lead to."""
        if self.selection is Selection.ANY:
            return [self._any(group, instant, state, rows, complete) for state, _ in self.waitings]
        if self.selection is Selection.NEXT:
            return [
                self._next(group, instant, state, letter, rows, complete) or rows[number]
                for number, (state, letter) in enumerate(self.waitings)
            ]
        (event,) = instant
        nothing: Row = [None] * len(rows[0]) if rows else [None]
        if not group.follows[event]:
            return [nothing for _ in self.waitings]
        return [self.taken(group, event, state, rows, complete) or nothing for state, _ in self.waitings]

    def _any(self, group: Group, instant: range, state: int, rows: Rows, complete: Sum) -> Row:
        found = rows[self.of_state[state][0]]
        for event in instant:
            row = self.taken(group, event, state, rows, complete)
            if row is not None:
                found = [plus(one, other) for one, other in zip(found, row, strict=True)]
        return found

    def _next(self, group: Group, instant: range, state: int, letter: int, rows: Rows, complete: Sum) -> Row | None:
        for event in instant:
            if letter in group.letters[event]:
                arrived = self.arrived(self.moves[state, letter], rows, complete)
                return [group.with_event(event, letter, words) for words in arrived]
        return None

    # --- forwards ---------------------------------------------------------------------------------

    def ahead(self, group: Group, instant: range, words: Row) -> tuple[Row, Sum | None]:
        """Words by waiting, moved over an instant; and those that it completes."""
        kept: Row = list(words) if self.selection is Selection.ANY else [None] * len(words)
        completed: Sum | None = None
        for number, (state, awaited) in enumerate(self.waitings):
            if words[number] is None:
                continue
            taken = False
            for event, letter in self._takers(group, instant, state, awaited):
                taken = True
                grown = group.with_event(event, letter, words[number])
                target = self.moves[state, letter]
                for reached in self.of_state[target]:
                    kept[reached] = plus(kept[reached], grown)
                if target in self.machine.finals:
                    completed = plus(completed, grown)
            if self.selection is Selection.NEXT and not taken:
                kept[number] = plus(kept[number], words[number])
        return kept, completed

    def _takers(self, group: Group, instant: range, state: int, awaited: int) -> list[tuple[int, int]]:
        """The events of an instant that take a word, and as which letters."""
        if group.follows and not group.follows[instant.start]:
            return []
        pairs = [
            (event, letter)
            for event in instant
            for letter in group.letters[event]
            if (state, letter) in self.moves and awaited in (-1, letter) and self._may_take(group, event, state, letter)
        ]
        return pairs[:1] if self.selection is Selection.NEXT else pairs
