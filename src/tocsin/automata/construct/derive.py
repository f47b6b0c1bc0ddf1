"""`AGG Y[b <- f(X.a)]`: registers fold while the match grows, and its last step adds the derived event (R24)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.made import in_order
from tocsin.automata.draft import Draft, Scope, Tracked, refuse, track, value_of
from tocsin.automata.model import DerivedEvent, Emission
from tocsin.language import expressions as ex


def derive(node: alg.Derive, scope: Scope) -> Draft:
    """One register per fold; it starts at the identity whenever a match of the part begins."""
    draft = scope.part(node.part)
    if draft.may_be_empty:
        refuse("an aggregate of a part that may match nothing", node.where)
    functions = [scope.monoid(one.function, one.distinct, one.monoid, one.where) for one in node.folds]
    folds = [folded(draft, function, one, scope) for function, one in zip(functions, node.folds, strict=True)]
    number = scope.number()
    steps = []
    for place, step in enumerate(draft.steps):
        fields = tuple(
            (one.name, rx.Finish(function, fold.after[place]))
            for one, function, fold in zip(node.folds, functions, folds, strict=True)
        )
        derived = Emission(node.variable, DerivedEvent(fields, number))
        steps.append(replace(step, outputs=(*step.outputs, derived)) if step.ends else step)
    finished = replace(draft, steps=tuple(steps))
    for fold in folds:
        finished = fold.kept_by(finished)
    return in_order(finished)


def folded(draft: Draft, function: str, fold: alg.Fold, scope: Scope) -> Tracked:
    """The register of one fold: what each step gives to the variable is combined with what came before."""

    def change(place: int, old: ex.Expression) -> ex.Expression:
        for output in draft.steps[place].given_to(fold.variable):
            old = rx.Combine(function, old, rx.Lift(function, value_of(output, fold.path)))
        return old

    name = f"{function}({'.'.join((fold.variable, *fold.path))})"
    return track(scope, draft, name, rx.Zero(function), change)
