"""`;` and SEQ: each part ends before the next begins."""

from __future__ import annotations

from functools import reduce

from tocsin.algebra import nodes as alg
from tocsin.automata.construct.junction import Order, ending_at, following
from tocsin.automata.draft import Draft, Scope

LONGEST_FOLD = 16


def sequence(node: alg.Sequence, scope: Scope) -> Draft:
    """The parts one after the other, by time or by position."""
    return chain([scope.part(part) for part in node.parts], node.order, scope)


def chain(parts: list[Draft], order: Order, scope: Scope) -> Draft:
    """Parts in a row; an empty one is as if it were not written (R13)."""
    if len(parts) > LONGEST_FOLD:  # by halves: each pair copies the steps of both sides
        middle = len(parts) // 2
        return pair(chain(parts[:middle], order, scope), chain(parts[middle:], order, scope), order, scope)
    return reduce(lambda left, right: pair(left, right, order, scope), parts)


def pair(left: Draft, right: Draft, order: Order, scope: Scope) -> Draft:
    """Two parts in a row."""
    between = scope.state()
    steps = [step for step in left.steps if not step.ends or right.may_be_empty]
    steps += [step for step in right.steps if not step.begins or left.may_be_empty]
    steps += ending_at(between, left.steps)
    steps += following(between, right.steps, order, scope)
    return Draft(tuple(dict.fromkeys(steps)), left.may_be_empty and right.may_be_empty)
