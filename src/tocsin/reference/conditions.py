"""Conditions over the bags of a match: the interpreter, and the "for all" around a conjunct (R1, R3, R15, R21).

code        theory
----        ------
Bags        μ, a match's function from variables to bags of events, each in order of position
choice      one running index per class of references that share it
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any, assert_never

from tocsin import errors
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.reference.aggregates import fold, in_64_bits
from tocsin.reference.of_rules import applied, calendar, in_table, mean
from tocsin.reference.stream import Event
from tocsin.reference.values import all_true, any_true, arithmetic, call, compare, fitting, like, negate

Bags = Mapping[str, tuple[Event, ...]]
Choice = Mapping[str, int]


def holds(conjunct: ex.Expression, bags: Bags) -> bool:
    """Whether a conjunct is TRUE for every choice of events it can make; vacuously when it can make none."""
    references = list(ex.references_in(conjunct))
    return all(
        interpret(conjunct, bags, choice) is True
        for choice in choices(references, bags)
        if all(chosen(reference, bags, choice) is not None for reference in references)
    )


def choices(references: list[ex.Attribute], bags: Bags) -> Iterator[Choice]:
    """Every value of the running indices; references that share an index share a class (R3).

    An index counts the events of a bag, so it runs from 1 to the size of the largest bag of its class, whatever is
    added to it in the text: `NEXT(b)` never means the first event, nor `b[i-1]` the last (R15).
    """
    class_of = _classes(references)
    sizes: dict[str, int] = {}
    for variable, name in class_of.items():
        sizes[name] = max(sizes.get(name, 0), len(bags.get(variable, ())))
    for indices in product(*(range(1, size + 1) for size in sizes.values())):
        by_class = dict(zip(sizes, indices, strict=True))
        yield {variable: by_class[name] for variable, name in class_of.items()}


def _classes(references: list[ex.Attribute]) -> dict[str, str]:
    """Variables with a running index → a name of their class; `a[i]` and `b[i]` are in one class."""
    class_of: dict[str, str] = {}
    by_letter: dict[str, str] = {}
    for reference in references:
        if _offset(reference) is None:
            continue
        own = class_of.setdefault(reference.variable, reference.variable)
        if isinstance(reference.index, ex.Running):
            other = by_letter.setdefault(reference.index.letter, own)
            for names in (class_of, by_letter):
                names.update({name: own for name, known in names.items() if known == other})
    return class_of


def _offset(reference: ex.Attribute) -> int | None:
    """How far a reference is from the running index; None when its index is fixed."""
    match reference.index:
        case ex.Each.PLAIN:
            return 0
        case ex.Each.NEXT:
            return 1
        case ex.Running():
            return reference.index.offset
        case ex.Fixed() | ex.Edge():
            return None
        case _:
            assert_never(reference.index)


def chosen(reference: ex.Attribute, bags: Bags, choice: Choice) -> Event | None:
    """The event a reference means, or None when there is none."""
    bag = bags.get(reference.variable, ())
    offset = _offset(reference)
    match reference.index:
        case ex.Fixed():
            index = reference.index.number
        case ex.Edge.FIRST:
            index = 1
        case ex.Edge.LAST:
            index = len(bag)
        case _:
            index = choice.get(reference.variable, 1) + (offset or 0)
    return bag[index - 1] if 1 <= index <= len(bag) else None


def interpret(node: ex.Expression, bags: Bags, choice: Choice) -> Any:
    """The value of an expression; NULL for an attribute of an event that does not exist."""

    def value(child: ex.Expression) -> Any:
        return interpret(child, bags, choice)

    match node:
        case ex.Literal() | ex.Date():
            return node.value
        case ex.Timestamp():
            return node.value if node.value.tzinfo else node.value.replace(tzinfo=dt.UTC)
        case ex.Interval():
            return dt.timedelta(microseconds=node.microseconds)
        case ex.Attribute():
            event = chosen(node, bags, choice)
            return None if event is None else in_64_bits("sum", event.value(node.path))
        case ex.Aggregate():
            return aggregate(node, [bags])
        case ex.Arithmetic():
            return arithmetic(node.op, value(node.left), value(node.right))
        case ex.Negative():
            operand = value(node.operand)
            return None if operand is None else fitting(-operand)
        case ex.Comparison():
            return compare(node.op, value(node.left), value(node.right))
        case ex.And():
            return all_true([value(operand) for operand in node.operands])
        case ex.Or():
            return any_true([value(operand) for operand in node.operands])
        case ex.Not():
            return negate(value(node.operand))
        case ex.IsNull():
            return (value(node.operand) is None) != node.negated
        case ex.In():
            subject = value(node.operand)
            found = any_true([compare("=", subject, value(option)) for option in node.options])
            return negate(found) if node.negated else found
        case ex.Between():
            subject = value(node.operand)
            inside = all_true([compare(">=", subject, value(node.low)), compare("<=", subject, value(node.high))])
            return negate(inside) if node.negated else inside
        case ex.Like():
            matched = like(value(node.operand), node.pattern)
            return negate(matched) if node.negated else matched
        case ex.Case():
            for condition, result in node.branches:
                if value(condition) is True:
                    return value(result)
            return None if node.otherwise is None else value(node.otherwise)
        case ex.Call():
            return call(node.function, [value(argument) for argument in node.arguments])
        case ex.Every():
            return _every(node, bags, choice)
        case ex.BagPredicate():
            return _bag_predicate(node, bags)
        case rx.Apply():
            return applied(node.function, [value(argument) for argument in node.arguments])
        case rx.InTable():
            return in_table(node, [value(argument) for argument in node.arguments])
        case rx.CalendarField():
            return calendar(node.field, value(node.operand), node.zone)
        case rx.ListOf():
            return [value(item) for item in node.items]
        case rx.Mean():
            return mean([value(operand) for operand in node.operands])
        case rx.SameEvent():
            left, right = bags.get(node.left.name, ()), bags.get(node.right.name, ())
            return any(one is other for one in left for other in right)
        case _:
            raise errors.unknown_node(node, "The reference")


def aggregate(node: ex.Aggregate, matches: list[Bags], *, unbounded: bool = False) -> Any:
    """An aggregate over one match, or over all (match, event) pairs of several (R4), where sums know no bound (§9)."""
    if node.argument is None:
        return len(matches)
    if not matches:  # only over all matches: R40
        if node.monoid is not None:
            return node.monoid.fold([])
        return 0 if node.function in ("count", "sum") else None
    (variable,) = ex.variables_in(node.argument)
    pairs = [(bags, event) for bags in matches for event in bags.get(variable, ())]
    if isinstance(node.argument, ex.Variable):
        return len(pairs)
    if node.function in ("first", "last"):
        pairs.sort(key=lambda pair: pair[1].position)
    values = [interpret(node.argument, {variable: (event,)}, {}) for _, event in pairs]
    return fold(node.monoid or node.function, values, distinct=node.distinct, unbounded=unbounded)


def _every(node: ex.Every, bags: Bags, choice: Choice) -> bool | None:
    events = bags.get(node.variable, ())
    return all_true([interpret(node.condition, {**bags, node.variable: (event,)}, choice) for event in events])


def _bag_predicate(node: ex.BagPredicate, bags: Bags) -> bool | None:
    values = [event.value(node.path) for event in bags.get(node.variable, ())]
    op = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<", ex.BagOrder.DECREASING: ">"}[node.order]
    return all_true([compare(op, left, right) for left, right in pairwise(values)])
