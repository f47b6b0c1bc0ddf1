"""ACEL's atoms, step by step: what each event that a step gives to the variable must satisfy.

`X[P]` asks each event alone. `X[same(a)]`, `X[increasing(a)]`, `X[decreasing(a)]` ask each event and the one before it
in the bag: two registers, the value before and whether there is one (R27: one event alone is fine, NULL beside another
event is UNKNOWN, events of one position follow each other in the order of the bag).
"""

from __future__ import annotations

from itertools import pairwise

from tocsin.automata import expressions as rx
from tocsin.automata.draft import START, Draft, Scope, Tracked, reached, refuse, track, value_of
from tocsin.automata.model import Output
from tocsin.language import expressions as ex

Atom = ex.Every | ex.BagPredicate
COMPARED = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<", ex.BagOrder.DECREASING: ">"}


def atom_conditions(draft: Draft, atom: Atom, scope: Scope) -> tuple[Draft, list[ex.Expression]]:
    """The draft with the registers that the atom needs, and what it asks of each step."""
    if isinstance(atom, ex.Every):
        return draft, [
            rx.both(*(_of_event(atom, output) for output in step.given_to(atom.variable))) for step in draft.steps
        ]
    return _neighbours(draft, atom, scope)


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


def _neighbours(draft: Draft, atom: ex.BagPredicate, scope: Scope) -> tuple[Draft, list[ex.Expression]]:
    name = ".".join((atom.variable, *atom.path))
    given = [[value_of(output, atom.path) for output in step.given_to(atom.variable)] for step in draft.steps]
    last = track(scope, draft, f"last({name})", rx.NULL, lambda place, old: given[place][-1] if given[place] else old)
    is_there = holding(draft, atom.variable, scope)
    conditions = []
    for place, values in enumerate(given):
        compared = [_compared(atom, left, right) for left, right in pairwise(values)]
        if values:
            first = _compared(atom, last.before[place], values[0])
            compared.append(rx.unless(ex.Not(is_there.before[place]), first))
        conditions.append(rx.both(*compared))
    return is_there.kept_by(last.kept_by(draft)), conditions


def _compared(atom: ex.BagPredicate, left: ex.Expression, right: ex.Expression) -> ex.Expression:
    return ex.Comparison(COMPARED[atom.order], left, right)


def holding(draft: Draft, variable: str, scope: Scope) -> Tracked:
    """A register that says whether a variable holds an event yet."""
    return track(
        scope,
        draft,
        f"holds({variable})",
        rx.FALSE,
        lambda place, old: rx.TRUE if draft.steps[place].given_to(variable) else old,
    )


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
