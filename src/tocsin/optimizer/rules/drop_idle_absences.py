"""Leave out an absence whose condition is never TRUE: no event can block a match (R10)."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Facts
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.optimizer.query_parts import is_plain, map_nodes
from tocsin.optimizer.rules.rule import NO_FACTS
from tocsin.optimizer.truth import is_never_true

CONTIGUOUS = (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)


def drop_idle_absences(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Drop absences that block nothing.

    Not under contiguity: every event of every type that is read counts for positions there (R17), so that no type may
    go.
    """
    if query.selection in CONTIGUOUS or not is_plain(query):
        return query
    sure = frozenset(name for name, kind in query.variables.items() if not kind.optional)

    def change(node: alg.Node) -> alg.Node:
        if isinstance(node, alg.Absent) and any(
            is_never_true(conjunct, sure | {node.variable}) for conjunct in ex.conjuncts(node.condition)
        ):
            return node.part
        return node

    pattern = map_nodes(query.pattern, change)
    return query if pattern is query.pattern else replace(query, pattern=pattern)
