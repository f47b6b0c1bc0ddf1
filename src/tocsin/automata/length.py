"""How many events a match can have, where an automaton tells: then nothing before the last of them matters (000 §5)."""

from __future__ import annotations

from functools import cache

from tocsin.automata.model import START, Automaton


def most_events(machine: Automaton) -> int | None:
    """The number of events that the longest run reads; None when there is no such number.

    A run reads every event from its first to its last. So where no state can be reached again, it is over after as many
    events as the longest way has steps, and what is known at any time depends on no more events than that: the state of
    f_C is bounded though nothing bounds the time that a match takes.

    Examples
    --------
    >>> from tocsin.algebra import nodes as alg
    >>> from tocsin.automata import automaton
    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> most_events(automaton(alg.Adjacent((a, b))))
    2
    >>> most_events(automaton(alg.Sequence((a, b)))) is None  # any number of others may lie between the two
    True
    """
    under_way: set[int] = set()

    @cache
    def longest_from(state: int) -> int:
        if state in under_way:
            raise _Again
        under_way.add(state)
        found = max((1 + longest_from(one.target) for one in machine.leaving[state]), default=0)
        under_way.remove(state)
        return found

    try:
        return longest_from(START)
    except _Again:
        return None


class _Again(Exception):
    """A state that leads to itself."""
