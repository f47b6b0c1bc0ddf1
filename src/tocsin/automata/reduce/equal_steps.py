"""Steps that do the same between the same states are one."""

from __future__ import annotations

from dataclasses import replace

from tocsin.automata.draft import Draft, Step
from tocsin.automata.model import Emission, Output, TheEvent


def merge_steps(draft: Draft) -> Draft:
    """Each step once, whatever numbers its constructions gave to events it makes."""
    return replace(draft, steps=tuple(dict.fromkeys(map(_renumbered, draft.steps))))


def _renumbered(step: Step) -> Step:
    """Numbers tell the outputs of one step apart and nothing else, so that they may count from 0 in each."""
    places: dict[Output, int] = {}
    emissions = []
    for one in step.outputs:
        number = places.setdefault(one.output, len(places))
        output: Output = one.output
        if not isinstance(output, TheEvent):
            output = replace(output, number=number)
        elif output.attributes is not None:
            output = replace(output, copy=number)
        emissions.append(Emission(one.variable, output))
    return replace(
        step,
        guard=tuple(sorted(step.guard, key=repr)),
        updates=tuple(sorted(step.updates, key=lambda update: update[0])),
        outputs=tuple(emissions),
    )
