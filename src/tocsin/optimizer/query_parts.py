"""The parts of a query that rules and estimates ask for again and again."""

from __future__ import annotations

from collections.abc import Callable
from operator import is_

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.analysis.keys import Member
from tocsin.language import expressions as ex

PLAIN_NODES = (alg.Event, alg.Sequence, alg.All, alg.Any, alg.Repeat, alg.Absent, alg.Filter, alg.Within)
OF_ACEL = (alg.NextOf, alg.Adjacent, alg.RepeatAdjacent, alg.Both, alg.Bind, alg.Project, alg.Derive)


def is_plain(query: alg.Query) -> bool:
    """Whether a pattern is made of SASE+'s operators only, whose variables hold just what their events bind."""
    return all(isinstance(node, PLAIN_NODES) and not is_of_acel(node) for node in query.pattern.walk())


def is_free(query: alg.Query) -> bool:
    """Whether a match depends on its own events only: no policy compares it with others, and none is a time-out."""
    return not query.compares_matches and not query.timeouts


def is_filter(query: alg.Query) -> bool:
    """Whether a match is one event that nothing else decides about."""
    has_absence = any(True for _ in alg.absences_in(query.pattern))
    return is_free(query) and not has_absence and _is_one_event(query.pattern)


def _is_one_event(node: alg.Node) -> bool:
    match node:
        case alg.Event():
            return True
        case alg.Any():
            return all(map(_is_one_event, node.parts))
        case alg.Within() | alg.Filter():
            return _is_one_event(node.part)
        case _:
            return False


def map_nodes(node: alg.Node, change: Callable[[alg.Node], alg.Node]) -> alg.Node:
    """The pattern with `change` applied to every node, children first; what does not change is the same object."""
    if not isinstance(node, (*PLAIN_NODES, *OF_ACEL, alg.Gather, alg.Emit)):
        raise errors.unknown_node(node, "The optimizer")
    changed = node.rebuilt(lambda part: map_nodes(part, change))
    return change(node if all(map(is_, changed.children(), node.children())) else changed)


def plain_equality(conjunct: ex.Expression) -> frozenset[Member] | None:
    """The two attributes that a conjunct equates, of every event of their variables; None when it is not that."""
    match conjunct:
        case ex.Comparison(op="=", left=ex.Attribute() as left, right=ex.Attribute() as right):
            are_plain = left.index is ex.Each.PLAIN and right.index is ex.Each.PLAIN
            return frozenset({(left.variable, left.path), (right.variable, right.path)}) if are_plain else None
        case _:
            return None


def is_plain_choice(conjunct: ex.Expression) -> bool:
    """Whether a conjunct speaks of events only by references without an index, and of at least one."""
    references = list(ex.references_in(conjunct))
    only = all(reference.index is ex.Each.PLAIN for reference in references)
    whole = any(isinstance(node, ex.Aggregate | ex.Variable | ex.Every | ex.BagPredicate) for node in conjunct.walk())
    return bool(references) and only and not whole


def is_between_neighbours(conjunct: ex.Expression) -> bool:
    """Whether a conjunct over one variable speaks of every two neighbours: `b[i].x > b[i-1].x`, `NEXT(b).x >= b.x`."""
    letters = set()
    offsets = set()
    for reference in ex.references_in(conjunct):
        match reference.index:
            case ex.Each.PLAIN:
                offsets.add(0)
            case ex.Each.NEXT:
                offsets.add(1)
            case ex.Running(letter, offset):
                letters.add(letter)
                offsets.add(offset)
            case _:
                return False
    return len(letters) <= 1 and offsets in ({-1, 0}, {0, 1})


def own_conditions(query: alg.Query) -> dict[str, tuple[ex.Expression, ...]]:
    """By variable, the conjuncts that mention it alone and hold for each of its events by itself.

    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> small = ex.Comparison("<", ex.Attribute("a", ("x",)), ex.Literal(3))
    >>> own_conditions(alg.Query(alg.Filter(alg.Sequence((a, b)), small))) == {"a": (small,)}
    True
    """
    own: dict[str, dict[ex.Expression, None]] = {}
    events: dict[str, list[alg.Event]] = {}
    for conjunct in query.conjuncts:
        mentioned = ex.variables_in(conjunct)
        if len(mentioned) == 1 and is_plain_choice(conjunct):
            own.setdefault(next(iter(mentioned)), {})[conjunct] = None
    for node in query.pattern.walk():
        if isinstance(node, alg.Absent):
            for conjunct in ex.conjuncts(node.condition):
                if ex.variables_in(conjunct) == {node.variable} and is_plain_choice(conjunct):
                    own.setdefault(node.variable, {})[conjunct] = None
        elif isinstance(node, alg.Event):
            events.setdefault(node.variable, []).append(node)
    for name, found in events.items():
        if len(found) == 1:
            for conjunct in filter(is_plain_choice, ex.conjuncts(found[0].condition)):
                own.setdefault(name, {})[conjunct] = None
    return {name: tuple(conjuncts) for name, conjuncts in own.items()}
