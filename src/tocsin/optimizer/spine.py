"""The parts of a query that rules and estimates ask for again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.analysis.keys import Member
from tocsin.language import expressions as ex

PLAIN_NODES = (alg.Event, alg.Sequence, alg.All, alg.Any, alg.Repeat, alg.Absent, alg.Filter, alg.Within)


def is_plain(query: alg.Query) -> bool:
    """Whether a pattern is made of SASE+'s operators only, whose variables hold just what their events bind."""
    return all(isinstance(node, PLAIN_NODES) and not is_of_acel(node) for node in query.pattern.walk())


def is_free(query: alg.Query) -> bool:
    """Whether a match depends on its own events only: no policy compares it with others, and none is a time-out."""
    return not query.compares_matches and not query.timeouts


def where_of(query: alg.Query) -> tuple[ex.Expression, ...]:
    """The conjuncts of WHERE: those at the top, which hold for the whole match."""
    return tuple(conjunct for node in spine(query.pattern) if isinstance(node, alg.Filter) for conjunct in _split(node))


def _split(node: alg.Filter) -> tuple[ex.Expression, ...]:
    return ex.conjuncts(node.condition)


def spine(node: alg.Node) -> Iterator[alg.Node]:
    """The nodes at the top that only take matches away."""
    while isinstance(node, alg.Filter | alg.Within | alg.Absent):
        yield node
        node = node.part


def map_nodes(node: alg.Node, change: Callable[[alg.Node], alg.Node]) -> alg.Node:
    """The pattern with `change` applied to every node, children first; what does not change is the same object."""
    match node:
        case alg.Sequence() | alg.All() | alg.Any() | alg.Adjacent() | alg.Both():
            parts = tuple(map_nodes(part, change) for part in node.parts)
            same = all(new is old for new, old in zip(parts, node.parts, strict=True))
            return change(node if same else replace(node, parts=parts))
        case (
            alg.Repeat()
            | alg.RepeatAdjacent()
            | alg.Absent()
            | alg.Filter()
            | alg.Within()
            | alg.Bind()
            | alg.Project()
            | alg.Derive()
            | alg.Emit()
        ):
            part = map_nodes(node.part, change)
            return change(node if part is node.part else replace(node, part=part))
    return change(node)


def plain_equality(conjunct: ex.Expression) -> frozenset[Member] | None:
    """The two attributes that a conjunct equates, of every event of their variables; None when it is not that."""
    match conjunct:
        case ex.Comparison(op="=", left=ex.Attribute() as left, right=ex.Attribute() as right):
            if left.index is ex.Each.PLAIN and right.index is ex.Each.PLAIN:
                return frozenset({(left.variable, left.path), (right.variable, right.path)})
    return None


def is_plain_choice(conjunct: ex.Expression) -> bool:
    """Whether a conjunct speaks of events only by references without an index, and of at least one."""
    references = list(ex.references_in(conjunct))
    only = all(reference.index is ex.Each.PLAIN for reference in references)
    whole = any(isinstance(node, ex.Aggregate | ex.Variable | ex.Every | ex.BagPredicate) for node in conjunct.walk())
    return bool(references) and only and not whole


def own_conditions(query: alg.Query, variable: str) -> tuple[ex.Expression, ...]:
    """The conjuncts that speak of one variable alone and hold for each of its events by itself.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> small = ex.Comparison("<", ex.Attribute("a", ("x",)), ex.Literal(3))
    >>> own_conditions(alg.Query(alg.Filter(alg.Sequence((a, b)), small)), "a") == (small,)
    True
    """
    conditions = list(where_of(query))
    for node in query.pattern.walk():
        if isinstance(node, alg.Absent) and node.variable == variable:
            conditions += ex.conjuncts(node.condition)
    own = [each for each in conditions if ex.variables_in(each) == {variable} and is_plain_choice(each)]
    events = [node for node in query.pattern.walk() if isinstance(node, alg.Event) and node.variable == variable]
    if len(events) == 1:
        own += [each for each in ex.conjuncts(events[0].condition) if is_plain_choice(each)]
    return tuple(dict.fromkeys(own))
