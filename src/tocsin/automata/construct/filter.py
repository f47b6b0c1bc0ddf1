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

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.atoms import atom_conditions
from tocsin.automata.construct.conditions import keep_conjunct
from tocsin.automata.draft import Draft, Scope
from tocsin.language import expressions as ex


def filter_(node: alg.Filter, scope: Scope) -> Draft:
    """The matches of the part for which the condition is TRUE."""
    return keep(scope.part(node.part), node.condition, scope)


def keep(draft: Draft, condition: ex.Expression | None, scope: Scope) -> Draft:
    """The runs of a draft for which a condition is TRUE."""
    for conjunct in ex.conjuncts(condition):
        if isinstance(conjunct, ex.Every | ex.BagPredicate):
            draft, conditions = atom_conditions(draft, conjunct, scope)
            draft = draft.where(conditions)
        else:
            draft = keep_conjunct(draft, conjunct, scope)
    return draft
