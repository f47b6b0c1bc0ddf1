"""`AS X`: X holds every event of the match once, derived ones included (R19).

An event is the one it was made as: what two aggregates made is two events, also when their values are equal.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.draft import Draft, Scope, Step
from tocsin.automata.model import Emission


def bind(node: alg.Bind, scope: Scope) -> Draft:
    """No two positions share an event, so that each step can give X what its own event brought."""

    def bound(step: Step) -> Step:
        others = tuple(one for one in step.outputs if one.variable != node.variable)
        held = dict.fromkeys(one.output for one in step.outputs)
        return replace(step, outputs=others + tuple(Emission(node.variable, output) for output in held))

    return scope.part(node.part).mapped(bound)
