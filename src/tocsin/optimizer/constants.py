"""Conditions without what is constant in them, and what the quantification of a conjunct depends on.

`folded` computes what an expression says of constants. It is exact in three-valued logic, but a reference that falls
away takes its choice of events along: a conjunct on an unbound variable holds vacuously (R1), a constant does not. So
callers compare `choice_of` before and after, or know that every choice exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from tocsin.language import expressions as ex

TRUE, FALSE, NULL = ex.Literal(True), ex.Literal(False), ex.Literal(None)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
COMPUTE: dict[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


def choice_of(expression: ex.Expression) -> frozenset[tuple[str, object]]:
    """What decides which events a conjunct speaks of, and when `next` may test it: references and aggregates.

    >>> choice_of(ex.Comparison("<", ex.Attribute("a", ("x",)), ex.Attribute("a", ("y",))))
    frozenset({('a', <Each.PLAIN: ''>)})
    """
    outside = {(reference.variable, reference.index) for reference in ex.references_in(expression)}
    whole = {
        (name, type(node).__name__)
        for node in expression.walk()
        if isinstance(node, ex.Aggregate | ex.Variable | ex.Every | ex.BagPredicate)
        for name in ex.variables_in(node)
    }
    return frozenset(outside | whole)


def folded(expression: ex.Expression) -> ex.Expression:
    """An expression that has the same value for every choice of events.

    >>> x = ex.Comparison(">", ex.Attribute("a", ("x",)), ex.Literal(1))
    >>> folded(ex.And((x, ex.Comparison("<", ex.Literal(1), ex.Literal(2))))) == x
    True
    >>> folded(ex.Comparison("=", ex.Attribute("a", ("x",)), ex.Literal(None)))
    Literal(value=None)
    """
    return expression.transform(_step)


def _step(node: ex.Expression) -> ex.Expression:
    match node:
        case ex.And():
            return _logical(node.operands, neutral=TRUE, decisive=FALSE, join=ex.all_of) or node
        case ex.Or():
            return _logical(node.operands, neutral=FALSE, decisive=TRUE, join=ex.any_of) or node
        case ex.Not(operand=ex.Not(operand=inner)):
            return inner
        case ex.Not(operand=ex.Literal(value=bool() as value)):
            return ex.Literal(not value, where=node.where)
        case ex.Not(operand=ex.Literal(value=None) as unknown):
            return unknown
        case ex.IsNull(operand=ex.Literal(value=value)):
            return ex.Literal((value is None) != node.negated, where=node.where)
        case ex.Comparison():
            return _compared(node)
        case ex.Arithmetic(left=ex.Literal() as left, right=ex.Literal() as right):
            return _computed(node, left.value, right.value)
        case ex.Negative(operand=ex.Literal(value=int() as value)) if not isinstance(value, bool) and _fits(-value):
            return ex.Literal(-value, where=node.where)
        case _:
            return node


def _logical(
    operands: tuple[ex.Expression, ...],
    *,
    neutral: ex.Literal,
    decisive: ex.Literal,
    join: Callable[..., ex.Expression],
) -> ex.Expression | None:
    """AND and OR without their neutral operands; the decisive one decides. None when there is nothing to do."""
    if decisive in operands:
        return decisive
    kept = [operand for operand in operands if operand != neutral]
    if not kept:
        return neutral
    flat = join(*kept)
    return None if len(kept) == len(operands) and not _is_nested(flat, operands) else flat


def _is_nested(flat: ex.Expression, operands: Iterable[ex.Expression]) -> bool:
    """Whether an operand became one of the same kind, as when a double NOT fell away."""
    return any(type(operand) is type(flat) for operand in operands)


def _compared(node: ex.Comparison) -> ex.Expression:
    left, right = node.left, node.right
    if NULL in (left, right):
        return ex.Literal(None, where=node.where)
    if isinstance(left, ex.Literal) and isinstance(right, ex.Literal):
        # Of other types engines have rules of their own: NaN, text beside numbers.
        if type(left.value) is type(right.value) and type(left.value) in (int, str):
            return ex.Literal(COMPARE[node.op](left.value, right.value), where=node.where)
    return node


def _computed(node: ex.Arithmetic, left: object, right: object) -> ex.Expression:
    if left is None or right is None:
        return ex.Literal(None, where=node.where)
    if type(left) is int and type(right) is int and node.op in COMPUTE and _fits(left) and _fits(right):
        value = COMPUTE[node.op](left, right)
        if _fits(value):  # beyond 64 bits it is NULL, and engines see to that
            return ex.Literal(value, where=node.where)
    return node


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63
