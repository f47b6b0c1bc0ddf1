"""`AS X`: X holds every event of the match once, those that were made included (R19).

Events that were made are compared by value (R24): equal ones of two variables are one, and X holds as many of them as
the variable that holds most.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.made import Arrangement, Kind, arrangements, kind_of
from tocsin.automata.draft import Draft, Scope, Step
from tocsin.automata.model import Emission


def bind(node: alg.Bind, scope: Scope) -> Draft:
    """No two positions share an event, so that each step can give X what its own event brought."""
    draft = scope.part(node.part)
    return replace(
        draft,
        steps=tuple(
            _bound(one, node.variable) for step in draft.steps for one in arrangements(step, _of_several(step))
        ),
    )


def _of_several(step: Step) -> set[Kind]:
    """The kinds of events of which the step makes several."""
    numbers = Counter(kind_of(output) for output in {one.output for one in step.outputs})
    return {kind for kind, number in numbers.items() if kind is not None and number > 1}


def _bound(arranged: Arrangement, variable: str) -> Step:
    step = arranged.ordered
    held = [one.output for one in step.outputs if kind_of(one.output) is None][:1]
    for block in arranged.blocks:
        numbers = Counter(one.variable for one in step.outputs if one.output in block)
        held += block[: max(numbers.values())]
    others = tuple(one for one in step.outputs if one.variable != variable)
    return replace(step, outputs=others + tuple(Emission(variable, output) for output in held))
