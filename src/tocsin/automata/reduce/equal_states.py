"""States that cannot be told apart are one, seen from either side.

`merge_states` looks ahead: steps out of two states agree when guard, updates and outputs are the same and they lead to
states of one class; then what runs may do from either is equal word by word, registers included. `merge_twins` looks
back in the same way at the steps into two states; then the same runs lead to both, so that one state may do what either
did. It is what makes `B+ ; C` wait in one state for another B or the C, instead of guessing which comes next.

Both find the coarsest partition that all steps respect. START and END stay alone, which keeps the normal form.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tocsin.automata.draft import END, START, Draft


def merge_states(draft: Draft) -> Draft:
    """One state for those from which the same can happen."""
    return _merged(draft, looks_ahead=True)


def merge_twins(draft: Draft) -> Draft:
    """One state for those to which the same runs lead."""
    return _merged(draft, looks_ahead=False)


def _merged(draft: Draft, *, looks_ahead: bool) -> Draft:
    states = sorted({state for step in draft.steps for state in (step.source, step.target)} | {START, END})
    class_of: dict[int, int] = {state: min(state, END + 1) for state in states}
    number_of_classes = 0
    while number_of_classes < len(set(class_of.values())):
        number_of_classes = len(set(class_of.values()))
        around: dict[int, set[Hashable]] = {state: set() for state in states}
        for step in draft.steps:
            here, there = (step.source, step.target) if looks_ahead else (step.target, step.source)
            around[here].add((step.guard, step.updates, step.outputs, class_of[there]))
        numbers: dict[Hashable, int] = {}
        class_of = {
            state: numbers.setdefault((class_of[state], frozenset(around[state])), len(numbers)) for state in states
        }
    names: dict[int, int] = {}
    for state in states:  # the first state of a class stands for it
        names.setdefault(class_of[state], state)
    merged = (
        replace(step, source=names[class_of[step.source]], target=names[class_of[step.target]]) for step in draft.steps
    )
    return replace(draft, steps=tuple(dict.fromkeys(merged)))
