"""Expressions as Python functions of the event read and the registers: the interpreter's half of three-valued logic."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from tocsin import errors
from tocsin.automata import expressions as rx
from tocsin.automata import values
from tocsin.automata.monoids import TAKE_NULLS
from tocsin.language import expressions as ex
from tocsin.language.monoids import Monoid, Monoids


@dataclass(frozen=True)
class Reading:
    """An event as an automaton reads it. Its position is its place in the list that is read."""

    type: str | None
    ts: int  # microseconds
    row: Mapping[str, Any] = field(default_factory=dict)
    tie: int = 0  # rank by tie columns among events of one instant; equal ones tie


@dataclass(frozen=True)
class Now:
    """All a transition may look at: the event, whether it ties with the one before it, and the registers."""

    event: Reading
    is_later: bool
    registers: Mapping[str, Any]


Evaluate = Callable[[Now], Any]
NOTHING = Now(Reading(None, 0), is_later=True, registers={})


def constant(expression: ex.Expression, monoids: Monoids) -> Any:
    """The value of an expression that looks at no event and no register."""
    return compiled(expression, monoids)(NOTHING)


def compiled(node: ex.Expression, monoids: Monoids) -> Evaluate:
    """An expression as a function.

    Examples
    --------
    >>> above = compiled(ex.Comparison(">", rx.attribute(("x",)), rx.Register("r")), {})
    >>> above(Now(Reading("A", 0, {"x": 5}), True, {"r": 3})), above(Now(Reading("A", 0, {}), True, {"r": 3}))
    (True, None)
    """

    def of(child: ex.Expression) -> Evaluate:
        return compiled(child, monoids)

    match node:
        case ex.Literal() | ex.Date():
            return _always(node.value)
        case ex.Timestamp():
            return _always(node.value if node.value.tzinfo else node.value.replace(tzinfo=dt.UTC))
        case ex.Interval():
            return _always(dt.timedelta(microseconds=node.microseconds))
        case ex.Attribute(variable=rx.EVENT):
            path = node.path
            return lambda now: values.field(now.event.row, path)
        case rx.Register():
            name = node.name
            return lambda now: now.registers[name]
        case rx.TypeIs():
            wanted = node.type
            return lambda now: now.event.type == wanted
        case rx.EventTime():
            return lambda now: now.event.ts
        case rx.IsLater():
            return lambda now: now.is_later
        case rx.Zero() | rx.Lift() | rx.Combine() | rx.Finish():
            return _monoid(node, monoids[node.monoid], of)
        case rx.Identical():
            one, other = of(node.left), of(node.right)
            return lambda now: values.identity(one(now)) == values.identity(other(now))
        case rx.Precedes():
            one, other = of(node.left), of(node.right)
            return lambda now: values.text(one(now)) < values.text(other(now))
        case ex.Arithmetic() | ex.Comparison():
            op, left, right = node.op, of(node.left), of(node.right)
            apply = values.arithmetic if isinstance(node, ex.Arithmetic) else values.compare
            return lambda now: apply(op, left(now), right(now))
        case ex.Negative():
            operand = of(node.operand)
            return lambda now: None if (value := operand(now)) is None else values.fitting(-value)
        case ex.And() | ex.Or():
            return _junction([of(one) for one in node.operands], decisive=isinstance(node, ex.Or))
        case ex.Not():
            return _negated(of(node.operand), negated=True)
        case ex.IsNull():
            operand, negated = of(node.operand), node.negated
            return lambda now: (operand(now) is None) != negated
        case ex.In():
            equal = [of(ex.Comparison("=", node.operand, option)) for option in node.options]
            return _negated(_junction(equal, decisive=True), negated=node.negated)
        case ex.Between():
            ends = [of(ex.Comparison(">=", node.operand, node.low)), of(ex.Comparison("<=", node.operand, node.high))]
            return _negated(_junction(ends, decisive=False), negated=node.negated)
        case ex.Like():
            text, pattern = of(node.operand), node.pattern
            return _negated(lambda now: values.like(text(now), pattern), negated=node.negated)
        case ex.Case():
            otherwise = None if node.otherwise is None else of(node.otherwise)
            return _case([(of(when), of(then)) for when, then in node.branches], otherwise)
        case ex.Call():
            function, arguments = node.function, [of(argument) for argument in node.arguments]
            return lambda now: values.call(function, [argument(now) for argument in arguments])
        case _:
            raise errors.unknown_node(node, "The evaluator of automata")


def _always(value: Any) -> Evaluate:
    return lambda now: value


def _negated(operand: Evaluate, *, negated: bool) -> Evaluate:
    return (lambda now: None if (value := operand(now)) is None else not value) if negated else operand


def _junction(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    """OR when TRUE decides, AND when FALSE does; else UNKNOWN when any operand is."""

    def value(now: Now) -> bool | None:
        is_unknown = False
        for operand in operands:
            found = operand(now)
            if found is None:
                is_unknown = True
            elif found == decisive:
                return decisive
        return None if is_unknown else not decisive

    return value


def _case(branches: list[tuple[Evaluate, Evaluate]], otherwise: Evaluate | None) -> Evaluate:
    def value(now: Now) -> Any:
        for when, then in branches:
            if when(now) is True:
                return then(now)
        return otherwise(now) if otherwise else None

    return value


def _monoid(
    node: rx.Zero | rx.Lift | rx.Combine | rx.Finish, monoid: Monoid, of: Callable[[ex.Expression], Evaluate]
) -> Evaluate:
    """An element that one NULL has spoiled is None, and stays it."""
    match node:
        case rx.Zero():
            return _always(monoid.zero)
        case rx.Lift():
            operand, spoils = of(node.operand), node.monoid not in TAKE_NULLS
            return lambda now: None if (value := operand(now)) is None and spoils else monoid.lift(value)
        case rx.Combine():
            left, right = of(node.left), of(node.right)

            def combined(now: Now) -> Any:
                one, other = left(now), right(now)
                return None if one is None or other is None else monoid.combine(one, other)

            return combined
        case rx.Finish():
            element = of(node.operand)
            return lambda now: None if (value := element(now)) is None else monoid.finish(value)
        case _:
            assert_never(node)
