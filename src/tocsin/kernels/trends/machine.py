"""The words of a pattern: a deterministic automaton whose letters are variables.

A match of a pattern without AND is a sequence of events in strictly increasing time, each bound to one variable. Its
bindings say which: so matches are counted by counting such words, and every word must be counted once, in however many
ways the pattern derives it (R34). Places of events in the pattern are the states of Glushkov's automaton; sets of them
are those of a deterministic one.

code        theory
----        ------
Place       a position of the pattern: one occurrence of an event element, or one copy of a bounded iteration
Machine     the subset automaton; state 0 is the start, where nothing is bound
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tocsin.algebra import nodes as alg

# A bounded iteration has a place per copy.
MOST_PLACES = 256
Letter = tuple[str, str]  # a variable and the type of the event it takes


@dataclass(frozen=True)
class Machine:
    """A deterministic automaton over letters.

    Attributes
    ----------
    letters
        Variables with the event types they take.
    moves
        (state, letter number, next state).
    finals
        The states in which a match is complete.
    entered
        For every state the number of the letter that leads to it; none leads to the start.
    """

    letters: tuple[Letter, ...]
    moves: tuple[tuple[int, int, int], ...]
    finals: frozenset[int]
    entered: tuple[int, ...]

    def variable(self, state: int) -> str | None:
        """The variable that took the last event."""
        return None if state == 0 else self.letters[self.entered[state]][0]

    def stays_together(self, variable: str) -> bool:
        """Whether the events of a variable follow each other without an event of another one in between."""
        left = [
            target
            for source, letter, target in self.moves
            if self.variable(source) == variable != self.letters[letter][0]
        ]
        return all(self.letters[letter][0] != variable for letter in self._letters_from(left))

    def _letters_from(self, states: list[int]) -> set[int]:
        """The letters of all moves that can still be made."""
        seen, waiting, found = set(states), list(states), set[int]()
        for state in waiting:  # grows while it is walked
            for source, letter, target in self.moves:
                if source == state:
                    found.add(letter)
                    if target not in seen:
                        seen.add(target)
                        waiting.append(target)
        return found


class NotAWordError(Exception):
    """The pattern is no sequence of single events; `node` is the part that is not."""

    def __init__(self, node: alg.Node) -> None:
        super().__init__(type(node).__name__)
        self.node = node


def machine(core: alg.Node) -> Machine:
    """The words of a pattern.

    Raises
    ------
    NotAWordError
        When its matches are no sequences of single events, or of more of them than can be told apart.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 1, None)
    >>> machine(alg.Sequence((a, b))).moves
    ((0, 0, 1), (1, 1, 2), (2, 1, 2))
    """
    places = _Places()
    part = places.of(core)
    letters = tuple(dict.fromkeys(places.letters))
    numbers = {letter: number for number, letter in enumerate(letters)}
    known: dict[frozenset[int], int] = {frozenset(): 0}
    moves: list[tuple[int, int, int]] = []
    entered = [-1]
    waiting = [frozenset[int]()]
    for state in waiting:  # grows while it is walked
        reached = {place for one in state for place in places.follows[one]} if state else set(part.first)
        for letter in letters:
            target = frozenset(place for place in reached if places.letters[place] == letter)
            if not target:
                continue
            if target not in known:
                known[target] = len(known)
                waiting.append(target)
                entered.append(numbers[letter])
            moves.append((known[state], numbers[letter], known[target]))
    finals = frozenset(number for state, number in known.items() if state & part.last)
    return Machine(letters, tuple(moves), finals, tuple(entered))


@dataclass(frozen=True)
class _Part:
    """The places a part can begin with and end with, and whether it can bind nothing."""

    first: frozenset[int]
    last: frozenset[int]
    is_empty: bool


class _Places:
    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.follows: list[set[int]] = []

    def of(self, node: alg.Node) -> _Part:
        match node:
            case alg.Event(type=str()):
                place = self._place(node)
                return _Part(frozenset({place}), frozenset({place}), is_empty=False)
            case alg.Sequence(order=alg.Order.TIME):
                found = _Part(frozenset(), frozenset(), is_empty=True)
                for part in node.parts:
                    found = self._joined(found, self.of(part))
                return found
            case alg.Any():
                parts = [self.of(part) for part in node.parts]
                first = frozenset[int]().union(*(part.first for part in parts))
                last = frozenset[int]().union(*(part.last for part in parts))
                return _Part(first, last, any(part.is_empty for part in parts))
            case alg.Repeat(order=alg.Order.TIME, part=alg.Event(type=str()) as event):
                return self._copies(node, event)
            case alg.Repeat(order=alg.Order.TIME, least=0 | 1, most=None | 1):
                copy = self.of(node.part)
                if node.most is None:
                    self._join(copy.last, copy.first)
                return _Part(copy.first, copy.last, copy.is_empty or node.least == 0)
        raise NotAWordError(node)

    def _place(self, event: alg.Event) -> int:
        assert event.type is not None
        if len(self.letters) == MOST_PLACES:
            raise NotAWordError(event)
        self.letters.append((event.variable, event.type))
        self.follows.append(set())
        return len(self.letters) - 1

    def _copies(self, node: alg.Repeat, event: alg.Event) -> _Part:
        """A place per copy that is counted; the last one of an endless iteration follows itself."""
        number = max(1, node.least) if node.most is None else node.most
        if number > MOST_PLACES:
            raise NotAWordError(node)
        copies = [self._place(event) for _ in range(number)]
        for one, other in pairwise(copies):
            self.follows[one].add(other)
        if node.most is None:
            self.follows[copies[-1]].add(copies[-1])
        last = copies[-1:] if node.most is None else copies[max(1, node.least) - 1 :]
        return _Part(frozenset(copies[:1]), frozenset(last), is_empty=node.least == 0)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._join(left.last, right.first)
        return _Part(
            left.first | right.first if left.is_empty else left.first,
            left.last | right.last if right.is_empty else right.last,
            left.is_empty and right.is_empty,
        )

    def _join(self, lefts: frozenset[int], rights: frozenset[int]) -> None:
        for one in lefts:
            self.follows[one] |= rights
