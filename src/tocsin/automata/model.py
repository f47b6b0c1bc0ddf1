"""Register automata that recognise complex events, immutable and ready to be compiled.

code            theory (003 §6)
----            ---------------
Automaton       (Q, Δ, q0, F); a state is a number, START is q0
Transition      (p, σ, P, λ, q) ∈ Δ
updates         σ; a register that is not named keeps its value
needs, guard    P, in two halves: tests of the event alone, and the rest
outputs         λ, as pairs: λ(X) is the bag of events paired with X
configuration   (q, ν): a state, and the values of the registers that are alive in it

Two departures, both for the sake of a kernel. The paper first computes σ and then tests P on the new values; here a
transition looks at the event and at the registers as they were, and guard, updates and outputs are computed side by
side. And what a test says of the event alone is said once, in `Automaton.tests`: a batch of events becomes a matrix
of bits, and a transition is possible where the bits it needs are set.

No transition enters START, none leaves a final state. A run reads every position of its interval, so that a match's
start and end are those of its run, whatever its outputs are (R8).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from tocsin.language import expressions as ex
from tocsin.language.user_defined import Monoids

START = 0
Update = tuple[str, ex.Expression]


@dataclass(frozen=True)
class Output:
    """The event read, or an event that is made at its position (R19, R24).

    `number` tells apart events that one transition makes, for two with equal values are two.
    """

    # The values of an event that is made; None: the event read as it is. Of an event that PROJECT leaves they are
    # attributes of the event read, or NULL where an inner projection took one away.
    fields: tuple[tuple[str, ex.Expression], ...] | None = None
    is_derived: bool = False  # whether AGG made it: then it has no type
    number: int = 0


@dataclass(frozen=True)
class Emission:
    """A variable is given an event; equal outputs of one transition are one event."""

    variable: str
    output: Output


@dataclass(frozen=True)
class Transition:
    """A step that an event allows."""

    source: int
    target: int
    needs: tuple[int, ...] = ()  # places in `Automaton.tests`: tests of the event alone, all of which must be TRUE
    # What must be TRUE of the event and the registers besides; None when there is nothing.
    guard: ex.Expression | None = None
    # Registers and their new values, computed from the event and the old values; in the order of their names.
    updates: tuple[Update, ...] = ()
    # What the match gains, in the order in which events of one position stand in a bag.
    outputs: tuple[Emission, ...] = ()


@dataclass(frozen=True)
class Automaton:
    """States are numbered from START."""

    transitions: tuple[Transition, ...]
    finals: frozenset[int]
    tests: tuple[ex.Expression, ...]  # what transitions need of the event alone
    alive: tuple[tuple[str, ...], ...]  # for each state the registers that matter in it; all others may be forgotten
    # What the names of aggregates in expressions mean.
    monoids: Monoids = field(default_factory=dict, compare=False, repr=False)

    @property
    def number_of_states(self) -> int:
        """How many states there are, START and final ones included."""
        return len(self.alive)

    @cached_property
    def registers(self) -> tuple[str, ...]:
        """All registers, by name."""
        return tuple(sorted({name for names in self.alive for name in names}))

    @cached_property
    def leaving(self) -> tuple[tuple[Transition, ...], ...]:
        """The transitions out of each state."""
        return tuple(
            tuple(one for one in self.transitions if one.source == state) for state in range(self.number_of_states)
        )


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
    following = {state: [one.target for one in steps] for state, steps in enumerate(machine.leaving)}
    longest: dict[int, int] = {}
    try:
        for state in TopologicalSorter(following).static_order():
            longest[state] = max((1 + longest[target] for target in following[state]), default=0)
    except CycleError:
        return None
    return longest[START]
