"""Variables that nothing is ever bound to, because a condition on them is never TRUE: `b.x = NULL`.

A planner leaves out the alternatives that bind one. It is no rewrite of the pattern, because the columns and the ids of
the result name every variable, also those of a branch that never matches.
"""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.optimizer.constants import FALSE, NULL, folded
from tocsin.optimizer.spine import is_plain, is_plain_choice, where_of


def dead_variables(query: alg.Query) -> frozenset[str]:
    """The variables that no match binds; all of them when nothing can match.

    >>> unknown = ex.Comparison("=", ex.Attribute("b", ("x",)), ex.Literal(None))
    >>> either = alg.Any((alg.Event("A", "a"), alg.Event("B", "b")))
    >>> dead_variables(alg.Query(alg.Filter(either, unknown)))
    frozenset({'b'})
    """
    if not is_plain(query):
        return frozenset()
    sure = frozenset(name for name, kind in query.variables.items() if not kind.optional)
    dead: set[str] = set()
    for conjunct in where_of(query):
        perhaps = ex.variables_in(conjunct) - sure
        if len(perhaps) > 1 or not is_never_true(conjunct, sure | perhaps):
            continue  # of two optional variables, each may be bound without the other
        if not perhaps:
            return frozenset(query.variables)
        dead |= perhaps
    return frozenset(dead)


def is_never_true(conjunct: ex.Expression, bound: frozenset[str]) -> bool:
    """Whether a conjunct fails in every match that binds these variables."""
    if folded(conjunct) not in (FALSE, NULL):
        return False
    mentioned = ex.variables_in(conjunct)
    return not mentioned or (is_plain_choice(conjunct) and mentioned <= bound)
