"""Which attributes are never NULL in a match: what kernels need not keep a NULL mask for.

An event whose attribute is NULL makes a conjunct UNKNOWN that needs it, for at least one choice of the other events;
so it is bound to that variable in no match.
"""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.spine import is_plain, is_plain_choice, where_of

Path = tuple[str, ...]
Member = tuple[str, Path]

# Functions that have a value although an argument is NULL (`language.functions`).
LENIENT = frozenset({"coalesce", "nullif", "greatest", "least"})


def never_null(query: alg.Query) -> frozenset[Member]:
    """The attributes `(variable, path)` such that an event with NULL there is bound to the variable in no match.

    Empty under `next`, where such an event may still stand in the way of another (R2).

    >>> less = ex.Comparison("<", ex.Attribute("a", ("x",)), ex.Attribute("b", ("x",)))
    >>> both = alg.Sequence((alg.Event("A", "a"), alg.Event("B", "b")))
    >>> sorted(never_null(alg.Query(alg.Filter(both, less))))
    [('a', ('x',)), ('b', ('x',))]
    >>> maybe = alg.Sequence((alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 0, 1)))
    >>> sorted(never_null(alg.Query(alg.Filter(maybe, less))))
    [('b', ('x',))]
    """
    if query.selection is Selection.NEXT or not is_plain(query):
        return frozenset()
    kinds = query.variables
    found: set[Member] = set()
    for conjunct in where_of(query):
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
