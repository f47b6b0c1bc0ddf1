"""Patterns become automata, one construction per operator (003, Theorem 12).

Each construction makes a draft of its own from the drafts of its parts; `automaton` reduces the whole and puts it into
the form of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.automata.construct.adjacent import adjacent
from tocsin.automata.construct.any_of import any_of
from tocsin.automata.construct.bind import bind
from tocsin.automata.construct.both import both
from tocsin.automata.construct.derive import derive
from tocsin.automata.construct.event import event
from tocsin.automata.construct.filter import filter_
from tocsin.automata.construct.next_of import next_of
from tocsin.automata.construct.project import project
from tocsin.automata.construct.repeat import repeat
from tocsin.automata.construct.repeat_adjacent import repeat_adjacent
from tocsin.automata.construct.sequence import sequence
from tocsin.automata.draft import Draft, Scope, refuse
from tocsin.automata.finish import finished
from tocsin.automata.model import Automaton
from tocsin.automata.reduce import reduced

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
    """The automaton whose complex events are the matches of a pattern.

    Parameters
    ----------
    node
        The pattern. A window around the whole is not part of the automaton: give it to the runner.
    contiguous
        Whether a match's events stand at consecutive positions (the selection policy `contiguous`): nothing is
        skipped between the parts of a sequence.
    reduce
        Whether to leave out what makes no difference.

    Raises
    ------
    tocsin.errors.UnsupportedError
        When registers cannot decide the pattern; `refusal` says why without raising.

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
