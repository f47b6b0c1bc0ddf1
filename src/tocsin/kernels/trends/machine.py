"""The paths of a pattern: a deterministic automaton over symbols, each a variable and an event type.

A match of a pattern without AND is a sequence of events in strictly increasing time, each bound to one variable. Its
bindings are its path through the automaton: so matches are counted by counting paths, and every path is counted once,
in however many ways the pattern derives it (R34). Places of events in the pattern are the states of Glushkov's
automaton; sets of them are those of a deterministic one.

code        theory
----        ------
Place       a position of the pattern: one occurrence of an event element, or one copy of a bounded iteration
Machine     the subset automaton; state 0 is the start, where nothing is bound
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import or_

from tocsin.algebra import nodes as alg

# A bounded iteration has a place per copy; sets of places may be many more.
MOST_PLACES, MOST_STATES = 256, 2048
MOST_SYMBOLS = 62  # the symbols that an event can be are the bits of one number
Symbol = tuple[str, str]  # a variable and the type of the event it takes


@dataclass(frozen=True)
class Machine:
    """A deterministic automaton over symbols."""

    symbols: tuple[Symbol, ...]  # variables with the event types they take
    moves: tuple[tuple[int, int, int], ...]  # (state, symbol number, next state)
    finals: frozenset[int]  # the states in which a match is complete
    entered: tuple[int, ...]  # for every state the number of the symbol that leads to it; none leads to the start
    # For every symbol the variables of the element that it belongs to: under `next` an OR of single events is one
    # element (R45).
    elements: tuple[tuple[str, ...], ...]

    def variable(self, state: int) -> str | None:
        """The variable that took the last event."""
        return None if state == 0 else self.symbols[self.entered[state]][0]

    @cached_property
    def reach(self) -> list[int]:
        """For every state the states that moves lead to, as bits."""
        reach = [0] * len(self.entered)
        is_changed = True
        while is_changed:
            is_changed = False
            for source, _, target in reversed(self.moves):
                found = reach[source] | 1 << target | reach[target]
                is_changed = is_changed or found != reach[source]
                reach[source] = found
        return reach

    def stays_together(self, variable: str) -> bool:
        """Whether the events of a variable follow each other without an event of another one in between."""
        left = [
            target
            for source, symbol, target in self.moves
            if self.variable(source) == variable != self.symbols[symbol][0]
        ]
        behind = reduce(or_, (self.reach[state] | 1 << state for state in left), 0)
        return all(self.symbols[symbol][0] != variable for state, symbol, _ in self.moves if behind >> state & 1)


class NotAPathError(Exception):
    """The matches of a pattern are no paths of an automaton; the message is the reason."""

    @classmethod
    def of(cls, node: alg.Node) -> NotAPathError:
        """A part of a pattern is no sequence of single events."""
        return cls(f"its matches are no sequences of single events: {type(node).__name__}")


def machine(core: alg.Node, *, by_element: bool = False) -> Machine:
    """The paths of a pattern; with `by_element`, a variable that belongs to several elements has a symbol for each.

    Raises `NotAPathError` when matches are no sequences of single events, or of more of them than can be told apart.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 1, None)
    >>> machine(alg.Sequence((a, b))).moves
    ((0, 0, 1), (1, 1, 2), (2, 1, 2))
    """
    places = _Places()
    part = places.of(core)
    own = places.elements if by_element else [(variable,) for variable, _ in places.symbols]
    labels = list(zip(places.symbols, own, strict=True))
    symbols = tuple(dict.fromkeys(labels))
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    known: dict[frozenset[int], int] = {frozenset(): 0}
    moves: list[tuple[int, int, int]] = []
    entered = [-1]
    waiting = [frozenset[int]()]
    for state in waiting:  # grows while it is walked
        reached = {place for one in state for place in places.follows[one]} if state else set(part.first)
        for symbol in symbols:
            target = frozenset(place for place in reached if labels[place] == symbol)
            if not target:
                continue
            if target not in known:
                if len(known) == MOST_STATES:
                    raise NotAPathError.of(core)
                known[target] = len(known)
                waiting.append(target)
                entered.append(numbers[symbol])
            moves.append((known[state], numbers[symbol], known[target]))
    finals = frozenset(number for state, number in known.items() if state & part.last)
    return Machine(
        tuple(symbol for symbol, _ in symbols),
        tuple(moves),
        finals,
        tuple(entered),
        tuple(element for _, element in symbols),
    )


@dataclass(frozen=True)
class _Part:
    """The places a part can begin with and end with, and whether it can bind nothing."""

    first: frozenset[int]
    last: frozenset[int]
    is_empty: bool


class _Places:
    def __init__(self) -> None:
        self.symbols: list[Symbol] = []
        self.elements: list[tuple[str, ...]] = []
        self.follows: list[set[int]] = []

    def of(self, node: alg.Node) -> _Part:
        match node:
            case alg.Event(type=str()):
                place = self._place(node)
                return _Part(frozenset({place}), frozenset({place}), is_empty=False)
            case alg.Sequence(order=alg.Order.TIME | alg.Order.TIES):
                found = _Part(frozenset(), frozenset(), is_empty=True)
                for part in node.parts:
                    found = self._joined(found, self.of(part))
                return found
            case alg.Any():
                begun = len(self.symbols)
                parts = [self.of(part) for part in node.parts]
                if node.is_one_element:
                    names = tuple(sorted({variable for variable, _ in self.symbols[begun:]}))
                    self.elements[begun:] = [names] * len(parts)
                first = frozenset[int]().union(*(part.first for part in parts))
                last = frozenset[int]().union(*(part.last for part in parts))
                return _Part(first, last, any(part.is_empty for part in parts))
            case alg.Repeat(order=alg.Order.TIME | alg.Order.TIES):
                return self._copies(node)
            case _:
                raise NotAPathError.of(node)

    def _place(self, event: alg.Event) -> int:
        assert event.type is not None
        if len(self.symbols) == MOST_PLACES:
            raise NotAPathError.of(event)
        self.symbols.append((event.variable, event.type))
        self.elements.append((event.variable,))
        self.follows.append(set())
        return len(self.symbols) - 1

    def _copies(self, node: alg.Repeat) -> _Part:
        """A place per copy that is counted; the last copy of an endless iteration follows itself."""
        number = max(1, node.least) if node.most is None else node.most
        if not 0 < number <= MOST_PLACES:
            raise NotAPathError.of(node)
        copies = [self.of(node.part) for _ in range(number)]
        for one, other in pairwise(copies):
            self._join(one.last, other.first)
        if node.most is None:
            self._join(copies[-1].last, copies[-1].first)
        # An empty copy may stand for any that are missing.
        is_empty = node.least == 0 or copies[0].is_empty
        least = 1 if is_empty else node.least
        last = frozenset[int]().union(*(copy.last for copy in copies[least - 1 :]))
        return _Part(copies[0].first, last, is_empty)

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
