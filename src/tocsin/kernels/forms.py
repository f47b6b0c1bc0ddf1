"""How the form of a pattern decides its search: by loops, or link by link. Known without arrays."""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.algebra import nodes as alg
from tocsin.errors import UnsupportedError, unknown_node
from tocsin.gaps import Gaps
from tocsin.kernels.trends.machine import Machine, NotAPathError, machine
from tocsin.language.ast import Selection

# Python nests at most 20 loops; a longer sequence is cut into a table and the rest.
MOST_LOOPS = 12


def walks_links(query: alg.Query) -> bool:
    """Whether the form of a pattern makes its search walk along links, whatever its conditions are.

    Examples
    --------
    >>> import tocsin
    >>> def walks(pattern):
    ...     return walks_links(tocsin.pattern(f"PATTERN {pattern} WITHIN 1 HOUR SEMANTICS next").query)
    >>> walks("SEQ(A a, B+ b)"), walks("SEQ(OR(A a, B b)+, C c)")
    (False, True)
    """
    if query.selection is Selection.ANY or query.unordered or is_plain_sequence(query.core):
        return False
    return words_of(query) is not None


def is_plain_sequence(core: alg.Node) -> bool:
    """Whether loops can apply a selection policy: in a plain sequence events are bound in the order they happen."""
    node = core
    while isinstance(node, alg.Around):
        node = node.part
    parts = node.parts if isinstance(node, alg.Sequence) else (node,)
    events = [part.part if isinstance(part, alg.Repeat) else part for part in parts]
    is_flat = all(isinstance(event, alg.Event) for event in events)
    return is_flat and not may_be_empty(parts[0]) and len(parts) <= MOST_LOOPS


def words_of(query: alg.Query) -> Machine | None:
    """The words of a pattern whose matches a walk along links finds; None for others."""
    if any(alg.gatherings_in(query.core)) or any(isinstance(e, alg.Event) and e.condition for e in query.core.walk()):
        return None
    try:
        core = without(query.core, tuple(alg.absences_in(query.core)))
        return machine(core, by_element=query.selection is Selection.NEXT)
    except (UnsupportedError, NotAPathError):
        return None


def without(node: alg.Node, around: Sequence[alg.Around]) -> alg.Node:
    """The pattern without absences and gatherings that are decided afterwards."""
    match node:
        case alg.Around():
            inner = node.rebuilt(lambda part: without(part, around))
            return inner.part if node in around else inner
        case alg.Sequence() | alg.All():
            return node.rebuilt(lambda part: without(part, around))
        case alg.Event() | alg.Any() | alg.Repeat():
            for absence in around:
                if absence in alg.around_in(node):
                    raise UnsupportedError(
                        f"The absence of `{absence.variable}` in an OR branch or an iteration has a condition that "
                        "kernels cannot compute on numbers.",
                        gap=Gaps.COMPUTED_ABSENCE,
                        where=absence.where,
                    )
            return node
        case _:
            raise unknown_node(node, "The search by loops")


def may_be_empty(node: alg.Node) -> bool:
    """Whether a pattern can match without binding an event (R13)."""
    match node:
        case alg.Sequence() | alg.All():
            return all(map(may_be_empty, node.parts))
        case alg.Any():
            return any(map(may_be_empty, node.parts))
        case alg.Repeat():
            return node.least == 0 or may_be_empty(node.part)
        case alg.Around():
            return may_be_empty(node.part)
        case _ if not node.children():
            return False  # an event, or a row of a table
        case _:
            raise unknown_node(node, "The search by loops")
