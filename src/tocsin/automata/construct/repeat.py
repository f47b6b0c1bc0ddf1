"""`+` and `{m,n}`: copies of a part in sequence.

Bounds are unrolled, one copy of the part for each repetition, and the last copy of an iteration without end follows
itself. Registers start anew in every copy because its first step sets them (see `draft`).
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.junction import Order, ending_at, following
from tocsin.automata.construct.sequence import chain, pair
from tocsin.automata.draft import MOST_STEPS, Draft, Scope, refuse

NOTHING = Draft((), may_be_empty=True)


def repeat(node: alg.Repeat, scope: Scope) -> Draft:
    """`least` to `most` copies, by time or by position."""
    part = scope.part(node.part)
    copies = node.least if node.most is None else node.most
    if copies * (len(part.steps) + 1) > MOST_STEPS:
        refuse(f"{copies} copies of a part: more than {MOST_STEPS} transitions", node.where)
    # An empty copy may stand for any that are missing.
    least = 0 if part.may_be_empty else node.least
    part = replace(part, may_be_empty=False)
    required = [scope.renamed(part) for _ in range(least if node.most is not None else least - 1)]
    if node.most is None:
        endless = looped(scope.renamed(part), node.order, scope)
        return chain([*required, replace(endless, may_be_empty=least == 0)], node.order, scope)
    optional = NOTHING
    for _ in range(node.most - least):
        optional = replace(pair(scope.renamed(part), optional, node.order, scope), may_be_empty=True)
    return chain([*required, optional], node.order, scope)


def looped(part: Draft, order: Order, scope: Scope) -> Draft:
    """One or more copies of a draft, all between the same states."""
    between = scope.state()
    steps = [*part.steps, *ending_at(between, part.steps)]
    return Draft(tuple(dict.fromkeys([*steps, *following(between, steps, order, scope)])))
