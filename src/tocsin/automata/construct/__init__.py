"""Patterns become automata, one construction per operator (003, Theorem 12).

Each construction makes a draft of its own from the drafts of its parts; `automaton` reduces the whole and puts it into
the form of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.automata import expressions as rx
from tocsin.automata.construct.conditions import filter_, keep
from tocsin.automata.construct.outputs import bind, both, derive, project
from tocsin.automata.construct.sequences import adjacent, repeat, repeat_adjacent, sequence
from tocsin.automata.draft import END, START, Draft, Scope, Step, refuse
from tocsin.automata.model import Automaton, Emission, TheEvent
from tocsin.automata.reduce import finished, reduced
from tocsin.language import expressions as ex


def event(node: alg.Event, scope: Scope) -> Draft:
    """One event of a type: START reads it, gives it to the variable and ends."""
    guard = () if node.type is None else (rx.TypeIs(node.type),)
    draft = Draft((Step(START, END, guard, outputs=(Emission(node.variable, TheEvent()),)),))
    return keep(draft, node.condition, scope)


def next_of(node: alg.NextOf, scope: Scope) -> Draft:
    """The first event of a type from here on (R22): a run of other events, read without output, then it.

    The skipped events belong to the interval, so that they are read by steps of the automaton's own.
    """
    found, other = (rx.TypeIs(node.type),), (ex.Not(rx.TypeIs(node.type)),)
    outputs = (Emission(node.variable, TheEvent()),)
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


CONSTRUCTIONS: Mapping[type[alg.Node], Callable[[Any, Scope], Draft]] = {
    alg.Event: event,
    alg.Sequence: sequence,
    alg.Adjacent: adjacent,
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
    """Why a pattern has no automaton, or None when it has one.

    Examples
    --------
    >>> refusal(alg.All((alg.Event("A", "a"), alg.Event("B", "b"))))
    'A register automaton cannot recognise AND of parts in any order.'
    """
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
