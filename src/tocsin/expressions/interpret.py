"""Expressions as closures over the events of a match: for what numbers cannot decide, and for single events.

An expression is compiled once and evaluated for many matches. Events are mappings from attributes to Python values, as
Arrow gives them; a time stamp without a zone is UTC.

code        theory
----        ------
Bags        μ, a match's function from variables to bags of events, each in order of time
Choice      one running index per variable that has one, counted from 1
"""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from tocsin import errors
from tocsin.expressions import objects, rule_functions
from tocsin.expressions.monoids import fold
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx

Event = Mapping[str, Any]
Bags = Mapping[str, Sequence[Event]]
Choice = Mapping[str, int]
Evaluate = Callable[[Bags, Choice], Any]
FIRST_ALWAYS: Choice = {}
OF_KNOWN: dict[str, Callable[[list[Any]], Any]] = {
    "coalesce": operator.itemgetter(0),
    "greatest": objects.largest,
    "least": objects.smallest,
}
BAG_ORDERS = {ex.BagOrder.SAME: "=", ex.BagOrder.INCREASING: "<", ex.BagOrder.DECREASING: ">"}


def value(expression: ex.Expression) -> Callable[[Bags], Any]:
    """The value of an expression in a match; without an index a variable's first event is meant.

    >>> twice = value(ex.Arithmetic("*", ex.Attribute("a", ("x",)), ex.Literal(2)))
    >>> twice({"a": [{"x": 3}]}), twice({"a": []})
    (6, None)
    """
    evaluate = _compiled(expression)
    return lambda bags: evaluate(bags, FIRST_ALWAYS)


def holds(conjunct: ex.Expression) -> Callable[[Bags], bool]:
    """Whether a conjunct is TRUE for every choice of events that exist; it is when there is none (R1, R3, R15, R21).

    >>> rising = ex.Comparison(">", ex.Attribute("b", ("x",)), ex.Attribute("b", ("x",), ex.Running("i", -1)))
    >>> check = holds(rising)
    >>> check({"b": [{"x": 1}, {"x": 2}]}), check({"b": [{"x": 2}, {"x": 1}]}), check({"b": []})
    (True, False, True)
    """
    references = list(ex.references_in(conjunct))
    evaluate = _compiled(conjunct)
    finders = [_finder(reference) for reference in dict.fromkeys((each.variable, each.index) for each in references)]
    classes = index_classes(references)

    def check(bags: Bags) -> bool:
        return all(
            evaluate(bags, choice) is True
            for choice in _choices(classes, bags)
            if all(find(bags, choice) is not None for find in finders)
        )

    return check


# --- which events ---------------------------------------------------------------------------------


def _finder(reference: tuple[str, ex.Index]) -> Callable[[Bags, Choice], Event | None]:
    variable, index = reference
    offset = ex.offset_of(index)
    if index is ex.Edge.LAST:
        return lambda bags, choice: bag[-1] if (bag := bags.get(variable)) else None
    fixed = index.number if isinstance(index, ex.Fixed) else 1

    def find(bags: Bags, choice: Choice) -> Event | None:
        bag = bags.get(variable, ())
        place = fixed if offset is None else choice.get(variable, 1) + offset
        return bag[place - 1] if 0 < place <= len(bag) else None

    return find


def index_classes(references: Iterable[Any]) -> list[set[str]]:
    """The variables that share a running index: those indexed by one letter somewhere (R3)."""
    classes: list[tuple[set[str], set[str]]] = []  # variables and letters
    for reference in references:
        if ex.offset_of(reference.index) is None:
            continue
        variables = {reference.variable}
        letters = {reference.index.letter} if isinstance(reference.index, ex.Running) else set()
        apart = []
        for others, their_letters in classes:
            if variables & others or letters & their_letters:
                variables, letters = variables | others, letters | their_letters
            else:
                apart.append((others, their_letters))
        classes = [*apart, (variables, letters)]
    return [variables for variables, _ in classes]


def _choices(classes: list[set[str]], bags: Bags) -> Iterator[Choice]:
    """Every value of the running indices, each up to the size of the largest bag it runs over."""
    if not classes:
        yield FIRST_ALWAYS
        return
    sizes = [max(len(bags.get(variable, ())) for variable in variables) for variables in classes]
    for indices in product(*(range(1, size + 1) for size in sizes)):
        yield {variable: index for variables, index in zip(classes, indices, strict=True) for variable in variables}


# --- closures -------------------------------------------------------------------------------------


def _compiled(node: ex.Expression) -> Evaluate:
    match node:
        case ex.Literal() | ex.Date():
            return _constant(node.value)
        case ex.Timestamp():
            return _constant(objects.zoned(node.value))
        case ex.Interval():
            return _constant(dt.timedelta(microseconds=node.microseconds))
        case ex.Attribute():
            return _attribute(node)
        case ex.Aggregate():
            return _aggregate(node)
        case ex.Arithmetic():
            return _strict(objects.arithmetic(node.op), node.left, node.right)
        case ex.Negative():
            return _strict(objects.opposite, node.operand)
        case ex.Comparison():
            return _strict(objects.COMPARE[node.op], node.left, node.right)
        case ex.And():
            return _all([_compiled(operand) for operand in node.operands])
        case ex.Or():
            return _opposite(_all([_opposite(_compiled(operand)) for operand in node.operands]))
        case ex.Not():
            return _opposite(_compiled(node.operand))
        case ex.IsNull():
            operand, negated = _compiled(node.operand), node.negated
            return lambda bags, choice: (operand(bags, choice) is None) != negated
        case ex.In():
            differs = [_strict(objects.COMPARE["!="], node.operand, option) for option in node.options]
            return _all(differs) if node.negated else _opposite(_all(differs))
        case ex.Between():
            low = _strict(objects.COMPARE[">="], node.operand, node.low)
            high = _strict(objects.COMPARE["<="], node.operand, node.high)
            return _opposite(_all([low, high])) if node.negated else _all([low, high])
        case ex.Like():
            matched = _strict(objects.like(node.pattern), node.operand)
            return _opposite(matched) if node.negated else matched
        case ex.Case():
            return _case(node)
        case ex.Call():
            return _call(node)
        case ex.Every():
            return _every(node)
        case ex.BagPredicate():
            return _bag_predicate(node)
        case rx.Apply():
            return _strict(node.function.call, *node.arguments)
        case rx.InTable() if node.table.rows is not None:
            return _strict(rule_functions.asked(node.table.rows), *node.arguments)
        case rx.CalendarField():
            return _strict(rule_functions.calendar(node.field, node.zone), node.operand)
        case rx.Mean():
            return _strict(rule_functions.mean, *node.operands)
        case rx.ListOf():
            items = [_compiled(item) for item in node.items]
            return lambda bags, choice: [item(bags, choice) for item in items]
        case rx.SameEvent():
            # One row is one object: who asks keeps the events it has made.
            left, right = node.left.name, node.right.name
            return lambda bags, choice: any(one is other for one in bags.get(left, ()) for other in bags.get(right, ()))
        case _:
            raise errors.unknown_node(node, "The evaluator in Python")


def _constant(given: Any) -> Evaluate:
    return lambda bags, choice: given


def _attribute(node: ex.Attribute) -> Evaluate:
    find, path = _finder((node.variable, node.index)), node.path

    def evaluate(bags: Bags, choice: Choice) -> Any:
        event = find(bags, choice)
        return None if event is None else _field(event, path)

    return evaluate


def _field(event: Event, path: tuple[str, ...]) -> Any:
    found: Any = event
    for name in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return objects.zoned(found)


def _strict(function: Callable[..., Any], *operands: ex.Expression) -> Evaluate:
    """A function that is NULL when an argument is."""
    if len(operands) == 2:
        left, right = map(_compiled, operands)

        def of_two(bags: Bags, choice: Choice) -> Any:
            one, other = left(bags, choice), right(bags, choice)
            return None if one is None or other is None else function(one, other)

        return of_two
    compiled = [_compiled(operand) for operand in operands]

    def evaluate(bags: Bags, choice: Choice) -> Any:
        arguments = [each(bags, choice) for each in compiled]
        return None if any(argument is None for argument in arguments) else function(*arguments)

    return evaluate


def _all(operands: list[Evaluate]) -> Evaluate:
    """Three-valued AND."""

    def evaluate(bags: Bags, choice: Choice) -> bool | None:
        found: bool | None = True
        for operand in operands:
            truth = operand(bags, choice)
            if truth is False:
                return False
            found = found if truth else None
        return found

    return evaluate


def _opposite(operand: Evaluate) -> Evaluate:
    def evaluate(bags: Bags, choice: Choice) -> bool | None:
        truth = operand(bags, choice)
        return None if truth is None else not truth

    return evaluate


def _case(node: ex.Case) -> Evaluate:
    branches = [(_compiled(test), _compiled(result)) for test, result in node.branches]
    otherwise = _constant(None) if node.otherwise is None else _compiled(node.otherwise)

    def evaluate(bags: Bags, choice: Choice) -> Any:
        for test, result in branches:
            if test(bags, choice) is True:
                return result(bags, choice)
        return otherwise(bags, choice)

    return evaluate


def _call(node: ex.Call) -> Evaluate:
    match node.function:
        case "coalesce" | "greatest" | "least":
            arguments = [_compiled(argument) for argument in node.arguments]
            return _of_known(OF_KNOWN[node.function], arguments)
        case "nullif":
            first = _compiled(node.arguments[0])
            equal = _strict(objects.is_equal, *node.arguments)
            return lambda bags, choice: None if equal(bags, choice) else first(bags, choice)
        case _:
            function = objects.FUNCTIONS[node.function]
            return _strict(lambda *arguments: objects.within_64_bits(function(*arguments)), *node.arguments)


def _of_known(function: Callable[[list[Any]], Any], arguments: list[Evaluate]) -> Evaluate:
    """A function of the arguments that are not NULL; NULL when all are."""

    def evaluate(bags: Bags, choice: Choice) -> Any:
        known = [found for argument in arguments if (found := argument(bags, choice)) is not None]
        return function(known) if known else None

    return evaluate


def _aggregate(node: ex.Aggregate) -> Evaluate:
    if node.argument is None:
        return _constant(1)
    (variable,) = ex.variables_in(node.argument)
    if isinstance(node.argument, ex.Variable):
        return lambda bags, choice: len(bags.get(variable, ()))
    argument, function, distinct = _compiled(node.argument), node.monoid or node.function, node.distinct

    def evaluate(bags: Bags, choice: Choice) -> Any:
        values = [argument({variable: (event,)}, FIRST_ALWAYS) for event in bags.get(variable, ())]
        return fold(function, values, distinct=distinct)

    return evaluate


def _every(node: ex.Every) -> Evaluate:
    condition, variable = _compiled(node.condition), node.variable

    def evaluate(bags: Bags, choice: Choice) -> bool | None:
        truths = [condition({**bags, variable: (event,)}, choice) for event in bags.get(variable, ())]
        return False if False in truths else None if None in truths else True

    return evaluate


def _bag_predicate(node: ex.BagPredicate) -> Evaluate:
    compare = objects.COMPARE[BAG_ORDERS[node.order]]
    variable, path = node.variable, node.path

    def evaluate(bags: Bags, choice: Choice) -> bool | None:
        values = [_field(event, path) for event in bags.get(variable, ())]
        unknown = False
        for left, right in pairwise(values):
            if left is None or right is None:
                unknown = True
            elif not compare(left, right):
                return False
        return None if unknown else True

    return evaluate
