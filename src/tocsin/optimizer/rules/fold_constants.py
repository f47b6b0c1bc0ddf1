"""Compute what conditions say of constants: `TRUE AND x`, `1 < 2`, `NOT NOT x`, `a.x = NULL`."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Facts
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import is_plain, map_nodes
from tocsin.optimizer.rules.rule import NO_FACTS
from tocsin.optimizer.truth import FALSE, TRUE, choice_of, folded, is_never_true


def fold_constants(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Fold each conjunct of WHERE and NOT by itself.

    Sound because a folded conjunct has the same value for every choice of events, and is used only where it makes the
    same choices (R1, R3), so that it is vacuous and, for `next`, testable (R2) exactly when the old one was. A conjunct
    that is always TRUE needs no choice. One that is never TRUE becomes FALSE where no choice can be missing; not with
    time-outs, which lack the later variables and with them what is said of these.
    """
    is_whole = is_plain(query) and not query.timeouts
    sure = frozenset(name for name, kind in query.variables.items() if not kind.optional) if is_whole else None

    def change(node: alg.Node) -> alg.Node:
        match node:
            case alg.Filter():
                kept = _conjuncts(node.condition, sure or frozenset())
                if kept == ex.conjuncts(node.condition):
                    return node
                return replace(node, condition=ex.all_of(*kept)) if kept else node.part
            case alg.Absent(condition=ex.Expression() as condition):
                kept = _conjuncts(condition, (sure or frozenset()) | {node.variable})
                if kept == ex.conjuncts(condition):
                    return node
                return replace(node, condition=ex.all_of(*kept) if kept else None)
            case _:
                return node

    pattern = map_nodes(query.pattern, change)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


def _conjuncts(condition: ex.Expression, sure: frozenset[str]) -> tuple[ex.Expression, ...]:
    return tuple(dict.fromkeys(part for conjunct in ex.conjuncts(condition) for part in _folded(conjunct, sure)))


def _folded(conjunct: ex.Expression, sure: frozenset[str]) -> tuple[ex.Expression, ...]:
    new = folded(conjunct)
    if new == TRUE:
        return ()
    if is_never_true(conjunct, sure):
        return (FALSE,)
    # A conjunct that falls apart must make the same choices in each part: they are quantified one by one (R21).
    parts = ex.conjuncts(new)
    return parts if all(choice_of(part) == choice_of(conjunct) for part in parts) else (conjunct,)
