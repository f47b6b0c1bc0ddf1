"""The paths of a pattern: a deterministic automaton over symbols, each a variable and an event type.

A match of a pattern without AND is a sequence of events in strictly increasing time, each bound to one variable. Its
bindings are its path through the automaton: so matches are counted by counting paths, and every path is counted once,
in however many ways the pattern derives it (R34).

code        theory
----        ------
Rest        a partial derivative of the pattern (Antimirov): parts in a row that are still to come
Machine     the subset automaton of these; state 0 is the start, where nothing is bound
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

from tocsin.algebra import nodes as alg

# A bounded iteration has a state per copy, and sets of derivatives may be many more.
MOST_STATES = 2048
MOST_SYMBOLS = 62  # the symbols that an event can be are the bits of one number
Symbol = tuple[str, str]  # a variable and the type of the event it takes
Element = tuple[str, ...]
Rest = tuple[alg.Node, ...]


@dataclass(frozen=True)
class Machine:
    """A deterministic automaton over symbols."""

    symbols: tuple[Symbol, ...]  # variables with the event types they take
    moves: tuple[tuple[int, int, int], ...]  # (state, symbol number, next state)
    finals: frozenset[int]  # the states in which a match is complete
    entered: tuple[int, ...]  # for every state the number of the symbol that leads to it; none leads to the start
    # For every symbol the variables of the element that it belongs to: under `next` an OR of single events is one
    # element (R45).
    elements: tuple[Element, ...]

    def variable(self, state: int) -> str | None:
        """The variable that took the last event."""
        return None if state == 0 else self.symbols[self.entered[state]][0]

    @property
    def first_symbols(self) -> int:
        """The symbols that paths begin with, as bits."""
        return sum({1 << symbol for state, symbol, _ in self.moves if state == 0})

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
    moves: list[tuple[int, int, int]] = []
    labels: dict[tuple[Symbol, Element], int] = {}
    known: dict[tuple[int, frozenset[Rest]], int] = {(-1, frozenset([(core,)])): 0}
    waiting: list[Iterable[Rest]] = [[(core,)]]
    for state, rests in enumerate(waiting):  # grows while it is walked
        reached: dict[int, dict[Rest, None]] = {}  # by symbol, what may come behind it
        for symbol, element, behind in (step for rest in rests for step in _beginnings(rest)):
            label = (symbol, element if by_element else symbol[:1])
            reached.setdefault(labels.setdefault(label, len(labels)), {})[behind] = None
        for number, behinds in reached.items():
            target = known.setdefault((number, frozenset(behinds)), len(known))
            if target == len(waiting):
                waiting.append(behinds)
            moves.append((state, number, target))
        if len(known) > MOST_STATES:
            raise NotAPathError.of(core)
    return Machine(
        tuple(symbol for symbol, _ in labels),
        tuple(moves),
        frozenset(state for state, rests in enumerate(waiting) if state and any(map(_can_be_empty, rests))),
        tuple(number for number, _ in known),
        tuple(element for _, element in labels),
    )


def _can_be_empty(rest: Rest) -> bool:
    return all(map(alg.can_match_empty, rest))


def _beginnings(rest: Rest) -> Iterator[tuple[Symbol, Element, Rest]]:
    """The events that parts in a row can begin with, each with its element and with what may come behind it."""
    while rest:
        node, behind = rest[0], rest[1:]
        match node:
            case alg.Event(type=str() as type):
                yield (node.variable, type), (node.variable,), behind
            case alg.Sequence(order=alg.Order.TIME | alg.Order.TIES):
                rest = (*node.parts, *behind)
                continue
            case alg.Any():
                together = tuple(sorted(alg.variables_of(node))) if node.is_one_element else None
                for symbol, element, after in (step for part in node.parts for step in _beginnings((part,))):
                    yield symbol, together or element, (*after, *behind)
            case alg.Repeat(order=alg.Order.TIME | alg.Order.TIES, most=most) if most != 0:
                again = replace(node, least=max(node.least - 1, 0), most=None if most is None else most - 1)
                following = behind if most == 1 else (again, *behind)
                for symbol, element, after in _beginnings((node.part,)):
                    yield symbol, element, (*after, *following)
            case _:
                raise NotAPathError.of(node)
        if not alg.can_match_empty(node):
            return
        rest = behind
