"""`+` and `{m,n}`: copies of a part in sequence.

Bounds are unrolled, one copy of the part for each repetition, and the last copy of an iteration without end follows
itself. Registers start anew in every copy because its first step sets them (see `draft`).
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.junction import Order, ending_at, following
from tocsin.automata.construct.sequence import chain
from tocsin.automata.draft import MOST_STEPS, Draft, Scope, Step, refuse

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
    return chain([*required, _optional(part, node.most - least, node.order, scope)], node.order, scope)


def _optional(part: Draft, number: int, order: Order, scope: Scope) -> Draft:
    """Up to so many copies, each followed by the rest or by nothing.

    The last copy comes first, and one before it takes over the steps that began the rest. Pairs of drafts would do the
    same, and copy all steps behind for every copy.
    """
    copies: list[tuple[Step, ...]] = []
    junctions: list[tuple[list[Step], list[Step]]] = []
    beginning: list[Step] = []
    for _ in range(number):
        copy = scope.renamed(part).steps
        between = scope.state()
        ending = ending_at(between, copy)
        copies.append(copy)
        junctions.append((ending, following(between, beginning, order, scope)))
        beginning = [step for step in (*copy, *ending) if step.begins]
    if not copies:
        return NOTHING
    steps = [*copies.pop(), *(step for copy in reversed(copies) for step in copy if not step.begins)]
    for ending, rest in junctions[:-1]:
        steps += [*(step for step in ending if not step.begins), *rest]
    steps += [*junctions[-1][0], *junctions[-1][1]]
    return Draft(tuple(dict.fromkeys(steps)), may_be_empty=True)


def looped(part: Draft, order: Order, scope: Scope) -> Draft:
    """One or more copies of a draft, all between the same states."""
    between = scope.state()
    steps = [*part.steps, *ending_at(between, part.steps)]
    return Draft(tuple(dict.fromkeys([*steps, *following(between, steps, order, scope)])))
