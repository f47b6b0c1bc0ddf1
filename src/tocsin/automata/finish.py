"""A draft in the form of the model: states and registers named anew, tests of the event alone told apart."""

from __future__ import annotations

from dataclasses import replace

from tocsin.automata import expressions as rx
from tocsin.automata.draft import END, START, Draft, Step
from tocsin.automata.model import Automaton, DerivedEvent, Emission, Transition
from tocsin.automata.reduce.equal_steps import merge_steps
from tocsin.automata.reduce.unread_registers import alive_registers
from tocsin.language import expressions as ex
from tocsin.language.monoids import Monoids


def finished(draft: Draft, monoids: Monoids) -> Automaton:
    """The same automaton for the same pattern, however its parts were numbered on the way."""
    draft = _with_short_names(merge_steps(draft))
    number_of = _numbers(draft)
    tests: dict[ex.Expression, int] = {}
    transitions = []
    for step in sorted(
        draft.steps, key=lambda step: (number_of[step.source], number_of[step.target], repr(step.guard))
    ):
        alone = [one for one in step.guard if not rx.registers_in(one)]
        rest = [one for one in step.guard if rx.registers_in(one)]
        transitions.append(
            Transition(
                number_of[step.source],
                number_of[step.target],
                tuple(sorted(tests.setdefault(one, len(tests)) for one in alone)),
                ex.all_of(*rest) if rest else None,
                step.updates,
                step.outputs,
            )
        )
    alive = alive_registers(draft)
    states = sorted(number_of, key=number_of.__getitem__)
    return Automaton(
        tuple(transitions),
        frozenset({number_of[END]} if END in number_of else ()),
        tuple(tests),
        tuple(tuple(sorted(alive.get(state, ()))) for state in states),
        dict(monoids),
    )


def _numbers(draft: Draft) -> dict[int, int]:
    """States in the order in which steps reach them, END last."""
    leaving: dict[int, list[Step]] = {}
    for step in draft.steps:
        leaving.setdefault(step.source, []).append(step)
    order, waiting = {START: 0}, [START]
    while waiting:
        for step in leaving.get(waiting.pop(0), ()):
            if step.target != END and step.target not in order:
                order[step.target] = len(order)
                waiting.append(step.target)
    for step in draft.steps:  # only when nothing was reduced: states that no run reaches
        for state in (step.source, step.target):
            if state != END:
                order.setdefault(state, len(order))
    if any(step.ends for step in draft.steps):
        order[END] = len(order)
    return order


def _with_short_names(draft: Draft) -> Draft:
    """Registers are called after what they hold, with a number only where two would be called the same."""
    taken: set[str] = set()
    short: dict[str, str] = {}
    for step in draft.steps:
        for name, _ in step.updates:
            if name in short:
                continue
            plain = new = name.rpartition("#")[0]
            number = 2
            while new in taken:
                new, number = f"{plain}#{number}", number + 1
            taken.add(new)
            short[name] = new
    renamed = {name: rx.Register(new) for name, new in short.items()}

    def change(step: Step) -> Step:
        return replace(
            step,
            guard=tuple(rx.substituted(one, renamed) for one in step.guard),
            updates=tuple(sorted((short[name], rx.substituted(value, renamed)) for name, value in step.updates)),
            outputs=tuple(
                Emission(
                    one.variable,
                    replace(
                        one.output,
                        fields=tuple((name, rx.substituted(value, renamed)) for name, value in one.output.fields),
                    )
                    if isinstance(one.output, DerivedEvent)
                    else one.output,
                )
                for one in step.outputs
            ),
        )

    return draft.mapped(change)
