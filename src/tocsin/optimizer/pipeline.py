"""All rules over a query, again and again until none changes it."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_of_acel
from tocsin.language import expressions as ex
from tocsin.optimizer.rules import RULES, Rule, Schemas

MOST_ROUNDS = 10  # rules only take away, or add what follows once: two rounds are enough for all we know


class Optimized(NamedTuple):
    """A query that means the same, and the rules that changed it, one entry for each time."""

    query: alg.Query
    fired: tuple[Rule, ...]


def optimize(query: alg.Query, schemas: Schemas = None, rules: tuple[Rule, ...] = RULES) -> Optimized:
    """Rewrite a query. ACEL's stay as they are: their automata are reduced instead.

    Parameters
    ----------
    query
        The query.
    schemas
        The schemas of its event types; some rules need them.
    rules
        The rules to try.

    Examples
    --------
    >>> from tocsin.language import expressions as ex
    >>> x = ex.Comparison(">", ex.Attribute("a", ("x",)), ex.Literal(1))
    >>> done = optimize(alg.Query(alg.Filter(alg.Event("A", "a"), ex.Not(ex.Not(x)))))
    >>> [rule.name for rule in done.fired]
    ['fold_constants']
    """
    if _is_acel(query):
        return Optimized(query, ())
    fired: list[Rule] = []
    for _ in range(MOST_ROUNDS):
        before = query
        for rule in rules:
            changed = rule.apply(query, schemas)
            if changed != query:
                fired.append(rule)
                query = changed
        if query == before:
            break
    return Optimized(query, tuple(fired))


def _is_acel(query: alg.Query) -> bool:
    """Whether variables may share events, or conditions speak of each event of a variable: rules count on neither."""
    return any(
        is_of_acel(node)
        or (
            isinstance(node, alg.Filter)
            and any(isinstance(inner, ex.Every | ex.BagPredicate) for inner in node.condition.walk())
        )
        for node in query.pattern.walk()
    )
