"""FILTER and WHERE: conjunct by conjunct, each as early as what it speaks of is known (R21, R26).

A conjunct is decided in one of three ways:

- one atom `X[P]`, or one bag predicate: every step that gives X an event must satisfy it, and registers remember the
  value before for `increasing` and its like;
- a conjunct of references without any that run over a bag of several events: when the last event it speaks of is
  read, or with the match's last event where it speaks of aggregates, of `b[last]` or of whole atoms (an OR of atoms is
  of this kind: each atom is a register with a truth value);
- a conjunct with one running reference: at every event of its bag, provided that all else is known by then.

The last two are in `conditions`, the atoms in `atoms`.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.atoms import atom_conditions
from tocsin.automata.construct.conditions import keep_conjunct
from tocsin.automata.draft import Draft, Scope
from tocsin.language import expressions as ex


def filter_(node: alg.Filter, scope: Scope) -> Draft:
    """The matches of the part for which the condition is TRUE."""
    if isinstance(node.part, alg.Any):
        return _of_branches(node.part, node.condition, scope)
    return keep(scope.part(node.part), node.condition, scope)


def _of_branches(part: alg.Any, condition: ex.Expression, scope: Scope) -> Draft:
    """A choice, with the conditions on one branch inside that branch: they hold for all others (R1).

    So that n conditions on n branches are not each carried through all n of them.
    """
    named = [frozenset(alg.variables_of(branch)) for branch in part.parts]
    branches: dict[str, list[int]] = {}
    for number, names in enumerate(named):
        for name in names:
            branches.setdefault(name, []).append(number)
    own: dict[int, list[ex.Expression]] = {}
    rest: list[ex.Expression] = []
    for conjunct in ex.conjuncts(condition):
        places = [branches.get(name, []) for name in ex.variables_in(conjunct)]
        if (
            len(places) > 0
            and all(each == places[0] for each in places)
            and len(places[0]) == 1
            and _is_vacuous(conjunct)
        ):
            own.setdefault(places[0][0], []).append(conjunct)
        else:
            rest.append(conjunct)
    filtered = [
        alg.Filter(branch, ex.all_of(*own[number])) if number in own else branch
        for number, branch in enumerate(part.parts)
    ]
    draft = scope.part(replace(part, parts=tuple(filtered)))
    return keep(draft, ex.all_of(*rest), scope) if rest else draft


def _is_vacuous(conjunct: ex.Expression) -> bool:
    """Whether a conjunct holds of a match without its variables: aggregates have a value on the empty bag (R18)."""
    whole = ex.Aggregate | ex.Every | ex.BagPredicate
    return not any(isinstance(node, whole) for node in conjunct.walk() if node is not conjunct) and not isinstance(
        conjunct, ex.Aggregate
    )


def keep(draft: Draft, condition: ex.Expression | None, scope: Scope) -> Draft:
    """The runs of a draft for which a condition is TRUE."""
    for conjunct in ex.conjuncts(condition):
        if isinstance(conjunct, ex.Every | ex.BagPredicate):
            draft, conditions = atom_conditions(draft, conjunct, scope)
            draft = draft.where(conditions)
        else:
            draft = keep_conjunct(draft, conjunct, scope)
    return draft
