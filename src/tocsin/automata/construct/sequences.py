"""Parts in a row: `;` and SEQ, `:`, `+`, `{m,n}` and `@+`.

What stands between two parts:

order       waiting
-----       -------
adjacent    none: the next part begins with the very next event
position    any number of events (ACEL)
time, ties  any number, and the next part may not begin while events tie with the last one (SASE+, R7, R41)

Bounds of an iteration are unrolled, one copy of the part for each repetition, and the last copy of an iteration without
end follows itself. Registers start anew in every copy because its first step sets them (see `draft`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.draft import MOST_STEPS, Draft, Scope, Step, refuse
from tocsin.language import expressions as ex

Order = alg.Order | None  # None is adjacency
LONGEST_FOLD = 16
NOTHING = Draft((), may_be_empty=True)


def sequence(node: alg.Sequence, scope: Scope) -> Draft:
    """The parts one after the other, by time or by position."""
    return chain([scope.part(part) for part in node.parts], node.order, scope)


def adjacent(node: alg.Adjacent, scope: Scope) -> Draft:
    """The parts one after the other, with nothing between."""
    return chain([scope.part(part) for part in node.parts], None, scope)


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


def ending_at(between: int, steps: Iterable[Step]) -> list[Step]:
    """The steps that end a part, ending at the state between it and the next."""
    return [replace(step, target=between) for step in steps if step.ends]


def following(between: int, steps: Iterable[Step], order: Order, scope: Scope) -> list[Step]:
    """What may be read at the state between two parts: events that are skipped, and those that begin the next part."""
    beginning = [replace(step, source=between) for step in steps if step.begins]
    if order is None or order is alg.Order.POSITION:
        waits = [] if order is None or scope.contiguous else [Step(between, between)]
        return [*waits, *beginning]
    at_once = [new for step in beginning if (new := step.needing(rx.IsLater())) is not None]
    if scope.contiguous:
        return at_once
    # Once an event did not tie with its neighbour, all that come are later than the part's last one.
    later = scope.state()
    return [
        Step(between, between, (ex.Not(rx.IsLater()),)),
        Step(between, later, (rx.IsLater(),)),
        Step(later, later),
        *at_once,
        *(replace(step, source=later) for step in beginning),
    ]


# --- iterations -----------------------------------------------------------------------------------


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


def repeat_adjacent(node: alg.RepeatAdjacent, scope: Scope) -> Draft:
    """One or more copies with nothing between; an empty copy stands for none."""
    part = scope.part(node.part)
    return replace(looped(part, None, scope), may_be_empty=part.may_be_empty)
