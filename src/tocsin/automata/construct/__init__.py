"""Patterns become automata, one construction per operator (003, Theorem 12).

Each construction makes a draft of its own from the drafts of its parts; `automaton` reduces the whole and puts it into
the form of the model. Parts in a row are `;` and SEQ, `:`, `+`, `{m,n}` and `@+`; between two of them stands:

order       waiting
-----       -------
adjacent    none: the next part begins with the very next event
position    any number of events (ACEL)
time, ties  any number, and the next part may not begin while events tie with the last one (SASE+, R7, R41)

Bounds of an iteration are unrolled, one copy of the part for each repetition, and the last copy of an iteration without
end follows itself. Registers start anew in every copy because its first step sets them (see `draft`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.conditions import filter_, keep
from tocsin.automata.construct.outputs import bind, both, derive, project
from tocsin.automata.draft import END, MOST_STEPS, START, Draft, Scope, Step, refuse
from tocsin.automata.model import Automaton, Emission, Output
from tocsin.automata.reduce import finished, reduced
from tocsin.language import expressions as ex

Order = alg.Order | None  # None is adjacency
LONGEST_FOLD = 16
NOTHING = Draft((), may_be_empty=True)


def event(node: alg.Event, scope: Scope) -> Draft:
    """One event of a type: START reads it, gives it to the variable and ends."""
    guard = () if node.type is None else (rx.TypeIs(node.type),)
    draft = Draft((Step(START, END, guard, outputs=(Emission(node.variable, Output()),)),))
    return keep(draft, node.condition, scope)


def next_of(node: alg.NextOf, scope: Scope) -> Draft:
    """The first event of a type from here on (R22): a run of other events, read without output, then it.

    The skipped events belong to the interval, so that they are read by steps of the automaton's own.
    """
    found, other = (rx.TypeIs(node.type),), (ex.Not(rx.TypeIs(node.type)),)
    outputs = (Emission(node.variable, Output()),)
    skipping = scope.state()
    return Draft(
        (
            Step(START, END, found, outputs=outputs),
            Step(START, skipping, other),
            Step(skipping, skipping, other),
            Step(skipping, END, found, outputs=outputs),
        )
    )


def any_of(node: alg.Any, scope: Scope) -> Draft:
    """OR: the steps of all parts, which share START and END and nothing between."""
    parts = [scope.part(part) for part in node.parts]
    return Draft(
        tuple(dict.fromkeys(step for part in parts for step in part.steps)),
        may_be_empty=any(part.may_be_empty for part in parts),
    )


def in_a_row(node: alg.Sequence | alg.Adjacent, scope: Scope) -> Draft:
    """The parts one after the other: by time, by position, or with nothing between."""
    order = node.order if isinstance(node, alg.Sequence) else None
    return chain([scope.part(part) for part in node.parts], order, scope)


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
    """The steps at the state between two parts: they skip events, or begin the next part."""
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


# --- automata --------------------------------------------------------------------------------------


CONSTRUCTIONS: Mapping[type[alg.Node], Callable[[Any, Scope], Draft]] = {
    alg.Event: event,
    alg.Sequence: in_a_row,
    alg.Adjacent: in_a_row,
    alg.Any: any_of,
    alg.Both: both,
    alg.Repeat: repeat,
    alg.RepeatAdjacent: repeat_adjacent,
    alg.Filter: filter_,
    alg.Bind: bind,
    alg.Project: project,
    alg.Derive: derive,
    alg.NextOf: next_of,
}
REFUSED: Mapping[type[alg.Node], str] = {
    alg.All: "AND of parts in any order",
    alg.Absent: "an absence",
    alg.Within: "a window inside a pattern",
    alg.Emit: "a rule that emits",
}


def automaton(node: alg.Node, *, contiguous: bool = False, reduce: bool = True) -> Automaton:
    """The automaton whose complex events are the matches of a pattern; `refusal` returns why there is none.

    A window around the whole pattern is not part of the automaton: give it to the runner. Under the selection policy
    `contiguous` nothing is skipped between the parts of a sequence. `reduce` leaves out what makes no difference.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> automaton(alg.Sequence((a, b), alg.Order.POSITION)).number_of_states
    3
    """
    pattern = node.part if isinstance(node, alg.Within) else node
    scope = Scope(_build, contiguous=contiguous)
    draft = scope.part(pattern)
    return finished(reduced(draft) if reduce else draft, scope.monoids)


def refusal(node: alg.Node) -> str | None:
    """Why a pattern has no automaton, or None when it has one."""
    try:
        automaton(node, reduce=False)
    except errors.UnsupportedError as error:
        return error.message
    return None


def _build(node: alg.Node, scope: Scope) -> Draft:
    construct = CONSTRUCTIONS.get(type(node))
    if construct is None:
        refuse(REFUSED.get(type(node), type(node).__name__), node.where)
    return construct(node, scope)
