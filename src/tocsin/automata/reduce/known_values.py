"""Registers whose value in a state is the same on every way there.

Whether a variable holds an event yet is mostly known from the state; then the guard that asks becomes simpler, often
one that speaks of the event alone, and the register is not read any more.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.automata import expressions as rx
from tocsin.automata.draft import START, Draft, Step, conjunction
from tocsin.automata.model import DerivedEvent, Emission
from tocsin.language import expressions as ex

Known = dict[str, ex.Expression]


def replace_known(draft: Draft) -> Draft:
    """Put known values where registers were read."""
    known = _known_values(draft)
    # A state that no run reaches knows nothing; `drop_useless` has its steps.
    return draft.mapped(lambda step: _rewritten(step, known.get(step.source, {})))


def _known_values(draft: Draft) -> dict[int, Known]:
    """The constants of each state: those that all ways to it agree on."""
    known: dict[int, Known] = {START: {}}
    waiting = [START]
    leaving: dict[int, list[Step]] = {}
    for step in draft.steps:
        leaving.setdefault(step.source, []).append(step)
    while waiting:
        state = waiting.pop()
        for step in leaving.get(state, ()):
            after = _after(step, known[state])
            if step.target in known:
                old = known[step.target]
                after = {name: value for name, value in old.items() if after.get(name) == value}
                if after == old:
                    continue
            known[step.target] = after
            waiting.append(step.target)
    return known


def _after(step: Step, known: Known) -> Known:
    new = {name: rx.simplified(rx.substituted(value, known)) for name, value in step.updates}
    return {name: value for name, value in (known | new).items() if isinstance(value, ex.Literal | rx.Zero)}


def _rewritten(step: Step, known: Known) -> Step | None:
    if not known:
        return step

    def value(expression: ex.Expression) -> ex.Expression:
        return rx.simplified(rx.substituted(expression, known)) if rx.registers_in(expression) else expression

    guard = conjunction(map(value, step.guard))
    if guard is None:
        return None
    return replace(
        step,
        guard=guard,
        updates=tuple((name, value(new)) for name, new in step.updates),
        outputs=tuple(
            Emission(
                one.variable,
                replace(one.output, fields=tuple((name, value(field)) for name, field in one.output.fields))
                if isinstance(one.output, DerivedEvent)
                else one.output,
            )
            for one in step.outputs
        ),
    )
