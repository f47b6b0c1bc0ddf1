"""The parts of a query that rules and estimates ask for, and what its conditions always or never say."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from typing import Any

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import OF_ACEL, is_of_acel
from tocsin.analysis.keys import Member
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.language.ast import Selection

PLAIN_NODES = (alg.Event, alg.Sequence, alg.All, alg.Any, alg.Repeat, alg.Absent, alg.Filter, alg.Within)
# What only rules write.
OF_RULES = (rx.Apply, rx.InTable, rx.CalendarField, rx.ListOf, rx.Mean, rx.SameEvent)
# Tables of more rows are asked in Python, where that is a look into a set.
MOST_LISTED = 256
LISTED = (bool, int, float, str, Decimal, dt.date, type(None))


def is_plain(query: alg.Query) -> bool:
    """Whether a pattern is made of SASE+'s operators only, whose variables hold just what their events bind."""
    return all(isinstance(node, PLAIN_NODES) and not is_of_acel(node) for node in query.pattern.walk())


def is_free(query: alg.Query) -> bool:
    """Whether a match depends on its own events only: no policy compares it with others, and none is a time-out."""
    return not query.compares_matches and not query.timeouts


def is_filter(query: alg.Query) -> bool:
    """Whether a match is one event that nothing else decides about."""
    of_one_event = alg.Event | alg.Any | alg.Within | alg.Filter
    return is_free(query) and all(isinstance(node, of_one_event) for node in query.pattern.walk())


def map_nodes(node: alg.Node, change: Callable[[alg.Node], alg.Node]) -> alg.Node:
    """The pattern with `change` applied to every node, children first; nodes that it does not know are refused."""
    for inner in node.walk():
        if not isinstance(inner, (*PLAIN_NODES, *OF_ACEL, alg.Gather, alg.Emit)):
            raise errors.unknown_node(inner, "The optimizer")
    return node.transform(change)


def with_conjuncts(node: alg.Filter | alg.Absent, kept: Sequence[ex.Expression]) -> alg.Node:
    """The node under other conjuncts; itself if they are its own, and what a FILTER filters if there are none."""
    if tuple(kept) == ex.conjuncts(node.condition):
        return node
    if isinstance(node, alg.Filter):
        return replace(node, condition=ex.all_of(*kept)) if kept else node.part
    return replace(node, condition=ex.all_of(*kept) if kept else None)


def with_where(query: alg.Query, *added: ex.Expression) -> alg.Query:
    """The query with further conjuncts in WHERE, which stands in one FILTER below the window."""
    pattern = query.pattern
    inner = pattern.part if isinstance(pattern, alg.Within) else pattern
    if isinstance(inner, alg.Filter):
        inner = replace(inner, condition=ex.all_of(inner.condition, *added))
    else:
        inner = alg.Filter(inner, ex.all_of(*added), where=inner.where)
    return replace(query, pattern=replace(pattern, part=inner) if isinstance(pattern, alg.Within) else inner)


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
    nodes = list(query.pattern.walk())
    events = [node for node in nodes if isinstance(node, alg.Event)]
    of_name = Counter(event.variable for event in events)
    conditions: list[tuple[str | None, tuple[ex.Expression, ...]]] = [(None, query.conjuncts)]
    conditions += [(node.variable, ex.conjuncts(node.condition)) for node in nodes if isinstance(node, alg.Absent)]
    conditions += [(one.variable, ex.conjuncts(one.condition)) for one in events if of_name[one.variable] == 1]
    own: dict[str, dict[ex.Expression, None]] = {}
    for owner, conjuncts in conditions:
        for conjunct in filter(is_plain_choice, conjuncts):
            mentioned = ex.variables_in(conjunct)
            if len(mentioned) == 1 and owner in (None, *mentioned):
                own.setdefault(next(iter(mentioned)), {})[conjunct] = None
    return {name: tuple(conjuncts) for name, conjuncts in own.items()}


# --- what conditions always or never say ----------------------------------------------------------

# `folded` computes what an expression says of constants. It is exact in three-valued logic, but a reference that falls
# away takes its choice of events along: a conjunct on an unbound variable holds vacuously (R1), a constant does not. So
# callers compare `choice_of` before and after, or know that every choice exists.
#
# An event whose attribute is NULL makes a conjunct UNKNOWN that needs it, for at least one choice of the other events;
# so it is bound to that variable in no match, and kernels need no NULL mask for it.


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


# --- what only Python computes ---------------------------------------------------------------------


def only_in_python(node: ex.Expression) -> bool:
    """Whether Python computes it for matches that have passed everything else, and neither loops nor Columns."""
    match node:
        case rx.Apply() | rx.ListOf() | rx.SameEvent():
            return True
        case ex.Aggregate():
            return node.monoid is not None
        case ex.Call(function="round", arguments=(_, digits)):
            return constant_integer(digits) is None
        case rx.InTable(table=table) if table.rows is not None:
            values = (value for row in table.rows for value in row)
            return len(table.rows) > MOST_LISTED or not all(isinstance(value, LISTED) for value in values)
        case _:
            return False


def constant_integer(node: ex.Expression) -> int | None:
    """The value of an integer that is written as a constant; None for any other expression."""
    match node:
        case ex.Literal(value=int() as value):
            return value
        case ex.Negative(operand=ex.Literal(value=int() as value)):
            return -value
        case _:
            return None


def alone(conjunct: ex.Expression) -> str | None:
    """The variable of a conjunct that every event of it decides by itself, without calling what only Python knows."""
    names = ex.variables_in(conjunct)
    if len(names) != 1 or not is_plain_choice(conjunct) or any(map(only_in_python, conjunct.walk())):
        return None
    return next(iter(names))


def is_pythons(node: ex.Expression) -> bool:
    """Whether only Python computes it as a value: a list of values is Spark's too."""
    return only_in_python(node) and not isinstance(node, rx.ListOf)
