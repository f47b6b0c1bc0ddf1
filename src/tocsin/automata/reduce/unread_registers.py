"""Registers that nothing reads, state by state.

A register is alive in a state when some run from there reads it before it is set again. An update that only keeps a
dead register going reads nothing, so that whole chains of them go at once.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.automata import expressions as rx
from tocsin.automata.draft import Draft, Step
from tocsin.automata.model import DerivedEvent


def drop_unread(draft: Draft) -> Draft:
    """Leave out the updates of registers that are not alive afterwards."""
    alive = alive_registers(draft)
    return draft.mapped(
        lambda step: replace(
            step, updates=tuple(one for one in step.updates if one[0] in alive.get(step.target, frozenset()))
        )
    )


def alive_registers(draft: Draft) -> dict[int, frozenset[str]]:
    """The registers that matter in each state."""
    alive: dict[int, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for step in draft.steps:
            old = alive.get(step.source, frozenset())
            new = old | _needed(step, alive.get(step.target, frozenset()))
            if new != old:
                alive[step.source] = new
                changed = True
    return alive


def _needed(step: Step, afterwards: frozenset[str]) -> frozenset[str]:
    updates = dict(step.updates)
    read = [*step.guard, *(updates[name] for name in afterwards if name in updates)]
    for one in step.outputs:
        if isinstance(one.output, DerivedEvent):
            read += [value for _, value in one.output.fields]
    kept = afterwards - updates.keys()
    return kept.union(*(rx.registers_in(expression) for expression in read))
