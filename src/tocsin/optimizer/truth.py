"""Facts that conditions imply: constants, conditions that are never TRUE, attributes that are never NULL.

`folded` computes what an expression says of constants. It is exact in three-valued logic, but a reference that falls
away takes its choice of events along: a conjunct on an unbound variable holds vacuously (R1), a constant does not. So
callers compare `choice_of` before and after, or know that every choice exists.

An event whose attribute is NULL makes a conjunct UNKNOWN that needs it, for at least one choice of the other events;
so it is bound to that variable in no match, and kernels need no NULL mask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.analysis.keys import Member
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import is_plain, is_plain_choice

TRUE, FALSE, NULL = ex.Literal(True), ex.Literal(False), ex.Literal(None)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
COMPUTE: dict[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}


def choice_of(expression: ex.Expression) -> frozenset[tuple[str, object]]:
    """The references and aggregates that decide which events a conjunct speaks of, and when `next` may test it.

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
    """An expression that has the same value for every choice of events."""
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
    # An operand may have become one of the same kind, as when a double NOT fell away.
    is_nested = any(type(operand) is type(flat) for operand in operands)
    return None if len(kept) == len(operands) and not is_nested else flat


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


def is_never_true(conjunct: ex.Expression, bound: frozenset[str]) -> bool:
    """Whether a conjunct fails in every match that binds these variables."""
    if folded(conjunct) not in (FALSE, NULL):
        return False
    mentioned = ex.variables_in(conjunct)
    return not mentioned or (is_plain_choice(conjunct) and mentioned <= bound)


# --- NULLs ----------------------------------------------------------------------------------------

# Functions that have a value although an argument is NULL (`language.functions`).
LENIENT = frozenset({"coalesce", "nullif", "greatest", "least"})


def never_null(query: alg.Query) -> frozenset[Member]:
    """The attributes `(variable, path)` such that an event with NULL there is bound to the variable in no match.

    Empty under `next`, where such an event may still stand in the way of another (R2).
    """
    if query.selection is Selection.NEXT or not is_plain(query):
        return frozenset()
    kinds = query.variables
    found: set[Member] = set()
    for conjunct in query.conjuncts:
        if not is_plain_choice(conjunct):
            continue
        mentioned = ex.variables_in(conjunct)
        # A time-out lacks the later variables, and with them the conjuncts that speak of them.
        if query.timeouts and len(mentioned) > 1:
            continue
        for variable, path in rejected_nulls(conjunct):
            if not any(kinds[other].optional for other in mentioned - {variable}):
                found.add((variable, path))
    return frozenset(found)


def rejected_nulls(condition: ex.Expression) -> frozenset[Member]:
    """The attributes that must not be NULL for a condition to be TRUE."""
    match condition:
        case ex.And():
            return frozenset[Member]().union(*map(rejected_nulls, condition.operands))
        case ex.Or():
            return frozenset.intersection(*map(rejected_nulls, condition.operands))
        case ex.IsNull():
            return spoiled_by(condition.operand) if condition.negated else frozenset()
        case ex.Between(negated=False):
            return spoiled_by(condition.operand) | spoiled_by(condition.low) | spoiled_by(condition.high)
        case _:
            return spoiled_by(condition)


def spoiled_by(value: ex.Expression) -> frozenset[Member]:
    """The attributes whose NULL makes the value NULL."""
    match value:
        case ex.Attribute():
            return frozenset({(value.variable, value.path)})
        case ex.Arithmetic() | ex.Comparison():
            return spoiled_by(value.left) | spoiled_by(value.right)
        case ex.Negative() | ex.Not() | ex.Like():
            return spoiled_by(value.operand)
        case ex.Between():
            return spoiled_by(value.operand)  # x NOT BETWEEN low AND NULL is TRUE below low
        case ex.In() if value.options:
            return spoiled_by(value.operand)
        case ex.Call() if value.function not in LENIENT:
            return frozenset[Member]().union(*map(spoiled_by, value.arguments))
        case _:
            return frozenset()
