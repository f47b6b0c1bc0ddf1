"""An automaton in the form of the model, without what makes no difference.

Each rule keeps the set of complex events, and is tried until none applies. `finished` then numbers states and registers
anew and separates tests of the event alone.

Registers. One whose value in a state is the same on every way there is replaced by the value: whether a variable holds
an event yet is mostly known from the state, and the guard that asks becomes one of the event alone. A register is alive
in a state when some run from there reads it before it is set again; an update that only keeps a dead register going
reads nothing, so that whole chains of them go at once.

States that cannot be told apart are one, seen from either side. Looking ahead, steps out of two states
agree when guard, updates and outputs are the same and they lead to states of one class; then what runs may do from
either is equal word by word, registers included. Looking back, it is the same for steps into two states;
then the same runs lead to both, so that one state may do what either did. It is what makes `B+ ; C` wait in one state
for another B or the C, instead of guessing which comes next. Both find the coarsest partition that all steps respect.
START and END stay alone, which keeps the normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial

from tocsin.automata import expressions as rx
from tocsin.automata.draft import END, START, Draft, Step, reached
from tocsin.automata.model import Automaton, Emission, Output, Transition
from tocsin.language import expressions as ex
from tocsin.language.user_defined import Monoids

Known = dict[str, ex.Expression]


def drop_useless(draft: Draft) -> Draft:
    """Keep the steps that lie on a way from START to END."""
    forward = reached({START}, draft.edges)
    backward = reached({END}, ((target, source) for source, target in draft.edges))
    return draft.mapped(lambda step: step if step.source in forward and step.target in backward else None)


def merge_steps(draft: Draft) -> Draft:
    """Each step once, whatever numbers its constructions gave to events it makes."""
    return replace(draft, steps=tuple(dict.fromkeys(map(_renumbered, draft.steps))))


def _renumbered(step: Step) -> Step:
    """Numbers tell the outputs of one step apart and nothing else, so that they may count from 0 in each."""
    places: dict[Output, int] = {}
    emissions = []
    for one in step.outputs:
        number = places.setdefault(one.output, len(places))
        output = one.output if one.output.fields is None else replace(one.output, number=number)
        emissions.append(Emission(one.variable, output))
    return replace(
        step,
        guard=tuple(sorted(step.guard, key=repr)),
        updates=tuple(sorted(step.updates, key=lambda update: update[0])),
        outputs=tuple(emissions),
    )


# --- registers -----------------------------------------------------------------------------------


def replace_known(draft: Draft) -> Draft:
    """Put known values where registers were read."""
    known = _known_values(draft)
    # A state that no run reaches knows nothing; `drop_useless` has its steps.
    return draft.mapped(lambda step: _rewritten(step, known.get(step.source, {})))


def _known_values(draft: Draft) -> dict[int, Known]:
    """The constants of each state: those that all ways to it agree on."""
    known: dict[int, Known] = {START: {}}
    waiting = [START]
    while waiting:
        state = waiting.pop()
        for step in draft.leaving.get(state, ()):
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
    new = step.rewritten(lambda each: rx.simplified(rx.substituted(each, known)) if rx.registers_in(each) else each)
    return replace(new, guard=()).needing(*new.guard)


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
    read += [value for one in step.outputs for _, value in one.output.fields or ()]
    kept = afterwards - updates.keys()
    return kept.union(*(rx.registers_in(expression) for expression in read))


# --- states --------------------------------------------------------------------------------------


def _merged(draft: Draft, *, looks_ahead: bool) -> Draft:
    """One state for those from which the same can happen, or for those to which the same runs lead."""
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


# --- all rules -----------------------------------------------------------------------------------


# Twins before registers are dropped: what is dropped on the way to one of them may be needed in the other.
RULES: tuple[Callable[[Draft], Draft], ...] = (
    drop_useless,
    merge_steps,
    replace_known,
    partial(_merged, looks_ahead=False),
    drop_unread,
    partial(_merged, looks_ahead=True),
)


def reduced(draft: Draft) -> Draft:
    """The draft after every rule, over and over; each makes it smaller or simpler, so that this ends."""
    while True:
        before = draft
        for rule in RULES:
            draft = rule(draft)
        if draft == before:
            return draft


# --- the form of the model -----------------------------------------------------------------------


def finished(draft: Draft, monoids: Monoids) -> Automaton:
    """The automaton of a draft, equal for equal patterns, however their parts were numbered on the way."""
    draft = _with_short_names(merge_steps(drop_useless(draft)))
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
    order, waiting = {START: 0}, [START]
    for state in waiting:  # grows while it is walked
        for step in draft.leaving.get(state, ()):
            if step.target != END and step.target not in order:
                order[step.target] = len(order)
                waiting.append(step.target)
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
        new = step.rewritten(lambda each: rx.substituted(each, renamed))
        return replace(new, updates=tuple(sorted((short[name], value) for name, value in new.updates)))

    return draft.mapped(change)
