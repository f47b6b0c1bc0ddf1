"""The expressions of transitions: those of the language, and the few that a register automaton adds.

Guards, updates and outputs are trees of `tocsin.language.expressions`, three-valued as everywhere, so that whatever
compiles those compiles these. The event being read is the variable `EVENT`; all else here has no place in a query.

code                theory (003 §6)
----                ---------------
attribute(path)     **a**, an attribute of the event read
Register            **a**, an attribute of the configuration's ν
Zero, Lift,         the identity, f′, ⊕ and g of an aggregate f = g ∘ (⊕-fold) ∘ f′ (§4, Lemma 5); which monoid is
Combine, Finish     meant is said by its name, see `tocsin.expressions.monoids`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.language import expressions as ex

EVENT = ""  # no variable of a query has an empty name
TRUE, FALSE, NULL = ex.Literal(True), ex.Literal(False), ex.Literal(None)


@dataclass(frozen=True)
class TypeIs(ex.Expression):
    """The event read has this type."""

    type: str


@dataclass(frozen=True)
class EventTime(ex.Expression):
    """The time of the event read, in microseconds."""


@dataclass(frozen=True)
class IsLater(ex.Expression):
    """The event read is later than the one at the position before it: they do not tie.

    A run reads every position of its interval, so that "later than the last event of the part before" is "some event
    since then did not tie": SASE+'s order needs one bit per event and no register.
    """


@dataclass(frozen=True)
class Register(ex.Expression):
    """The value of a register before the event was read."""

    name: str


@dataclass(frozen=True)
class Identical(ex.Expression):
    """Two values are one and the same, NULL and NULL too: how matches are compared, not how conditions are."""

    left: ex.Expression
    right: ex.Expression


@dataclass(frozen=True)
class Precedes(ex.Expression):
    """A value comes before another as canonical text: how events that one step makes are ordered."""

    left: ex.Expression
    right: ex.Expression


@dataclass(frozen=True)
class Zero(ex.Expression):
    """The identity of a monoid."""

    monoid: str


@dataclass(frozen=True)
class Lift(ex.Expression):
    """One value as an element of a monoid."""

    monoid: str
    operand: ex.Expression


@dataclass(frozen=True)
class Combine(ex.Expression):
    """Two elements of a monoid joined, earlier events on the left."""

    monoid: str
    left: ex.Expression
    right: ex.Expression


@dataclass(frozen=True)
class Finish(ex.Expression):
    """The value an element of a monoid stands for."""

    monoid: str
    operand: ex.Expression


def attribute(path: tuple[str, ...]) -> ex.Attribute:
    """An attribute of the event read."""
    return ex.Attribute(EVENT, path)


def registers_in(expression: ex.Expression) -> frozenset[str]:
    """The registers an expression reads."""
    return frozenset(node.name for node in expression.walk() if isinstance(node, Register))


def substituted(expression: ex.Expression, values: Mapping[str, ex.Expression]) -> ex.Expression:
    """The expression with registers replaced."""
    return expression.transform(lambda node: values.get(node.name, node) if isinstance(node, Register) else node)


def simplified(expression: ex.Expression) -> ex.Expression:
    """The expression without the logic that is settled; equal in three-valued logic.

    Examples
    --------
    >>> x = ex.Comparison(">", attribute(("x",)), ex.Literal(1))
    >>> simplified(ex.Or((ex.Not(TRUE), x))) == x
    True
    """
    return expression.transform(_step)


def _step(node: ex.Expression) -> ex.Expression:
    match node:
        case ex.And():
            return _joined(node, neutral=TRUE, decisive=FALSE)
        case ex.Or():
            return _joined(node, neutral=FALSE, decisive=TRUE)
        case ex.Not(operand=ex.Literal(value=bool() as value)):
            return ex.Literal(not value)
        case ex.Not(operand=ex.Literal(value=None)):
            return NULL
        case ex.IsNull(operand=ex.Literal() as constant):
            return ex.Literal((constant.value is None) != node.negated)
        case Identical() if node.left == node.right:
            return TRUE
        case Precedes() if node.left == node.right:
            return FALSE
        case ex.Case(branches=((ex.Literal() as constant, value), *rest)):
            if constant == TRUE:
                return value
            return _step(ex.Case(tuple(rest), node.otherwise)) if rest else node.otherwise or NULL
        case ex.Comparison("=" | ">=" as op, ex.Literal(value=int() as left), ex.Literal(value=int() as right)):
            return ex.Literal(left == right if op == "=" else left >= right)
        case ex.Arithmetic(op="+", left=ex.Literal(value=int() as left), right=ex.Literal(value=int() as right)):
            return ex.Literal(left + right)
        case _:
            return node


def _joined(node: ex.And | ex.Or, *, neutral: ex.Expression, decisive: ex.Expression) -> ex.Expression:
    flat: dict[ex.Expression, None] = {}
    for operand in node.operands:
        if operand == decisive:
            return decisive
        flat |= dict.fromkeys(operand.operands if isinstance(operand, type(node)) else (operand,))
    kept = [operand for operand in flat if operand != neutral]
    if not kept:
        return neutral
    return (ex.all_of if isinstance(node, ex.And) else ex.any_of)(*kept)


def both(*conditions: ex.Expression) -> ex.Expression:
    """AND, simplified."""
    return simplified(ex.And(conditions)) if conditions else TRUE


def unless(exceptions: ex.Expression, condition: ex.Expression) -> ex.Expression:
    """`condition`, but TRUE where `exceptions` are."""
    return simplified(ex.Or((exceptions, condition)))
