"""Variables of which it does not matter who holds which event: matches are then found in one order only (D37).

A group of `unordered` is interchangeable when every condition, absence and gathering says the same after two of its
variables have changed names. Then each set of events is found in every order, and asking for increasing positions
keeps the first. Otherwise all are found, and a filter keeps the first of each set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.types import Kind
from tocsin.kernels.expressions.leaves import PlaceOf, SlotRef, Test
from tocsin.kernels.model import Held, Slot
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx

MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def interchangeable(query: alg.Query) -> tuple[tuple[str, ...], ...]:
    """The groups that can be found in order; none where groups share a variable, because the first one goes first.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Event("A", "b")
    >>> near = ex.Between(ex.Arithmetic("-", ex.Attribute("b", ("ts",)), ex.Attribute("a", ("ts",))),
    ...     ex.Interval(-9), ex.Interval(9))
    >>> interchangeable(alg.Query(alg.Filter(alg.All((a, b)), near), unordered=(("a", "b"),)))
    (('a', 'b'),)
    >>> after = replace(near, low=ex.Interval(0))
    >>> interchangeable(alg.Query(alg.Filter(alg.All((a, b)), after), unordered=(("a", "b"),)))
    ()
    """
    names = [name for group in query.unordered for name in group]
    if len(set(names)) < len(names):
        return ()
    return tuple(group for group in query.unordered if _is_symmetric(query.pattern, group))


def in_order(group: tuple[str, ...]) -> Iterator[Test]:
    """That the events of a group's variables have increasing places; one event may be in two of them (R29)."""
    for names in pairwise(group):
        events = [PlaceOf(ex.Variable(name)) for name in names]
        slots = [Slot(name, event, Held.INTEGER) for name, event in zip(names, events, strict=True)]
        references = tuple(SlotRef(slot, slot.variable, ex.Each.PLAIN, Kind.INTEGER) for slot in slots)
        yield Test(ex.Comparison("<=", *events), ex.Comparison("<=", *references), tuple(slots), references, ())


def _is_symmetric(pattern: alg.Node, group: tuple[str, ...]) -> bool:
    """Whether exchanging any two neighbours changes nothing; these exchanges make all orders."""
    said = _said(pattern, {})
    return all(_said(pattern, {one: other, other: one}) == said for one, other in pairwise(group))


def _said(pattern: alg.Node, names: dict[str, str]) -> set[object]:
    """All that a pattern says of its variables, under other names."""

    def name_of(name: str) -> str:
        return names.get(name, name)

    def conjuncts(condition: ex.Expression | None) -> frozenset[str]:
        return frozenset(repr(_normal(ex.renamed(each, name_of))) for each in ex.conjuncts(condition))

    def bound(each: alg.Bound) -> alg.Bound:
        if isinstance(each.anchor, alg.Whole):
            return each
        renamed = tuple(sorted(map(name_of, each.anchor.variables)))
        return replace(each, anchor=replace(each.anchor, variables=renamed))

    found: set[object] = set()
    for node in pattern.walk():
        match node:
            case alg.Filter():
                found |= conjuncts(node.condition)
            case alg.Around():
                sides = frozenset(map(bound, node.lower)), frozenset(map(bound, node.upper))
                found.add((type(node).__name__, node.variable, node.type, conjuncts(node.condition), *sides))
            case alg.Event():
                found.add((name_of(node.variable), node.type, conjuncts(node.condition)))
            case alg.All() | alg.Sequence() | alg.Any() | alg.Repeat() | alg.Within():
                continue
            case _:
                raise errors.unknown_node(node, "The search of unordered variables")
    return found


def _normal(expression: ex.Expression) -> ex.Expression:
    """One of the ways to write the same, so that texts can be compared; what it does not know stays as it is."""

    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.Comparison() if repr(node.right) < repr(node.left):
                return replace(node, op=MIRRORED[node.op], left=node.right, right=node.left)
            case ex.Arithmetic(op="+" | "*") if repr(node.right) < repr(node.left):
                return replace(node, left=node.right, right=node.left)
            case ex.Between(
                operand=ex.Arithmetic(op="-") as difference, low=ex.Interval() as low, high=ex.Interval() as high
            ) if repr(difference.right) < repr(difference.left):
                turned = replace(difference, left=difference.right, right=difference.left)
                ends = ex.Interval(-high.microseconds), ex.Interval(-low.microseconds)
                return replace(node, operand=turned, low=ends[0], high=ends[1])
            case ex.And() | ex.Or():
                return replace(node, operands=tuple(sorted(node.operands, key=repr)))
            case rx.SameEvent() if repr(node.right) < repr(node.left):
                return replace(node, left=node.right, right=node.left)
            case _:
                return node

    return expression.transform(change)
