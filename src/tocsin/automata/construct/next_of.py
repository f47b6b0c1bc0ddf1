"""The first event of a type from here on (R22): a run of other events, read without output, then it."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.draft import END, START, Draft, Scope, Step
from tocsin.automata.model import Emission, TheEvent
from tocsin.language import expressions as ex


def next_of(node: alg.NextOf, scope: Scope) -> Draft:
    """The skipped events belong to the interval, so that they are read by steps of the automaton's own."""
    found, other = (rx.TypeIs(node.type),), (ex.Not(rx.TypeIs(node.type)),)
    outputs = (Emission(node.variable, TheEvent()),)
    skipping = scope.state()
    return Draft(
        (
            Step(START, END, found, outputs=outputs),
            Step(START, skipping, other),
            Step(skipping, skipping, other),
            Step(skipping, END, found, outputs=outputs),
        )
    )
