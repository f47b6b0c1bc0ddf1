"""When variables are given events along the runs of a draft, as far as its steps alone can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tocsin.automata.draft import START, Draft, Step


def reached(draft: Draft, sources: Iterable[int], through: Callable[[Step], bool]) -> set[int]:
    """The states that steps of a kind lead to, the sources included."""
    following: dict[int, set[int]] = {}
    for step in draft.steps:
        if through(step):
            following.setdefault(step.source, set()).add(step.target)
    found = set(sources)
    waiting = list(found)
    while waiting:
        new = following.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def is_given(draft: Draft, variable: str) -> bool:
    """Whether any run gives the variable an event."""
    return any(step.given_to(variable) for step in draft.steps)


def holds_several(draft: Draft, variable: str) -> bool:
    """Whether a run may give the variable more than one event."""
    giving = [step for step in draft.steps if step.given_to(variable)]
    after = reached(draft, {step.target for step in giving}, lambda step: True)
    return any(len(step.given_to(variable)) > 1 or step.source in after for step in giving)


def may_come_late(draft: Draft, variable: str, running: str) -> bool:
    """Whether `running` may be given an event before `variable` is given its first one."""
    without = reached(draft, {START}, lambda step: not step.given_to(variable))
    early = {
        step.target
        for step in draft.steps
        if step.source in without and step.given_to(running) and not step.given_to(variable)
    }
    after = reached(draft, early, lambda step: True)
    return any(step.source in after and step.given_to(variable) for step in draft.steps)
