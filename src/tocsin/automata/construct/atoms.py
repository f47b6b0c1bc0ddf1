"""ACEL's atoms, step by step: what each event that a step gives to the variable must satisfy.

`X[P]` asks each event alone. `X[same(a)]`, `X[increasing(a)]`, `X[decreasing(a)]` ask each event and the one before it
in the bag: two registers, the value before and whether there is one (R27: one event alone is fine, NULL beside another
event is UNKNOWN, events of one position follow each other in the order of the bag).
"""

from __future__ import annotations

from itertools import pairwise

from tocsin.automata import expressions as rx
from tocsin.automata.draft import START, Draft, Tracking, reached, refuse, value_of
from tocsin.automata.model import Output
from tocsin.language import expressions as ex

Atom = ex.Every | ex.BagPredicate
COMPARED = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<", ex.BagOrder.DECREASING: ">"}


def atom_conditions(tracking: Tracking, atom: Atom) -> list[ex.Expression]:
    """What the atom asks of each step of a draft, which gains the registers that it needs."""
    if isinstance(atom, ex.BagPredicate):
        return _neighbours(tracking, atom)
    return [
        rx.both(*(_of_event(atom, output) for output in step.given_to(atom.variable))) for step in tracking.draft.steps
    ]


def _of_event(atom: ex.Every, output: Output) -> ex.Expression:
    speaks_of_more = any(
        isinstance(node, ex.Aggregate | ex.Every | ex.BagPredicate | ex.Variable)
        or (isinstance(node, ex.Attribute) and (node.variable, node.index) != (atom.variable, ex.Each.PLAIN))
        for node in atom.condition.walk()
    )
    if speaks_of_more:
        refuse(f"a filter on `{atom.variable}` that speaks of more than one of its events", atom.where)
    return rx.simplified(
        atom.condition.transform(lambda node: value_of(output, node.path) if isinstance(node, ex.Attribute) else node)
    )


def _neighbours(tracking: Tracking, atom: ex.BagPredicate) -> list[ex.Expression]:
    given = tracking.given(atom.variable, atom.path)
    last = tracking.latest(f"last({'.'.join((atom.variable, *atom.path))})", given)
    is_there = tracking.holding(atom.variable)
    conditions = []
    for place, values in enumerate(given):
        pairs = pairwise([last.before[place], *values])
        compared: list[ex.Expression] = [ex.Comparison(COMPARED[atom.order], *pair) for pair in pairs]
        if compared:
            compared[0] = rx.unless(ex.Not(is_there.before[place]), compared[0])
        conditions.append(rx.both(*compared))
    return conditions


# --- when variables are given events, as far as steps alone can tell --------------------------------


def is_given(draft: Draft, variable: str) -> bool:
    """Whether any run gives the variable an event."""
    return any(step.given_to(variable) for step in draft.steps)


def holds_several(draft: Draft, variable: str) -> bool:
    """Whether a run may give the variable more than one event."""
    giving = [step for step in draft.steps if step.given_to(variable)]
    after = reached({step.target for step in giving}, draft.edges)
    return any(len(step.given_to(variable)) > 1 or step.source in after for step in giving)


def may_come_late(draft: Draft, variable: str, running: str) -> bool:
    """Whether `running` may be given an event before `variable` is given its first one."""
    without = reached({START}, ((step.source, step.target) for step in draft.steps if not step.given_to(variable)))
    early = {
        step.target
        for step in draft.steps
        if step.source in without and step.given_to(running) and not step.given_to(variable)
    }
    after = reached(early, draft.edges)
    return any(step.source in after and step.given_to(variable) for step in draft.steps)
