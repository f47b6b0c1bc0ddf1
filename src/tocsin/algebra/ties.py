"""A pattern whose events of one instant are ordered by tie columns (SEMANTICS R41)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg


def ordered_by_ties(query: alg.Query) -> alg.Query:
    """Compare tie columns wherever a query compares the times of two events to see which comes first.

    Windows and distances stay as they are: they measure time alone.
    """
    return replace(query, pattern=_ordered(query.pattern))


def compares_ties(node: alg.Node) -> bool:
    """Whether a pattern compares tie columns to see which of two events comes first."""
    ordered: list[alg.Sequence | alg.Repeat | alg.Bound] = []
    for each in node.walk():
        match each:
            case alg.Sequence() | alg.Repeat():
                ordered.append(each)
            case alg.Around():
                ordered += [*each.lower, *each.upper]
            case _:
                continue
    return any(each.order is alg.Order.TIES for each in ordered)


def _ordered(node: alg.Node) -> alg.Node:
    node = node.rebuilt(_ordered)
    match node:
        case alg.Sequence(order=alg.Order.TIME) | alg.Repeat(order=alg.Order.TIME):
            return replace(node, order=alg.Order.TIES)
        case alg.Around():
            return replace(node, lower=tuple(map(_bound, node.lower)), upper=tuple(map(_bound, node.upper)))
        case _:
            return node


def _bound(bound: alg.Bound) -> alg.Bound:
    """A neighbour's bound compares the order of events, every other one a distance."""
    is_neighbour = bound.strict and bound.offset_us == 0 and not isinstance(bound.anchor, alg.Whole)
    return replace(bound, order=alg.Order.TIES) if is_neighbour else bound
