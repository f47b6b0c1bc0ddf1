"""All rules over a query, again and again until none changes it."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.optimizer.rules import NO_FACTS, RULES, Facts, Rule

MOST_ROUNDS = 10  # rules only take away, or add what follows once: two rounds are enough for all we know


class Optimized(NamedTuple):
    """A query that means the same, and the rules that changed it, one entry for each time."""

    query: alg.Query
    fired: tuple[Rule, ...]


def optimize(query: alg.Query, facts: Facts = NO_FACTS, rules: tuple[Rule, ...] = RULES) -> Optimized:
    """Rewrite a query. ACEL's stay as they are: their automata are reduced instead."""
    if is_formula(query):  # variables may share events, and conditions speak of each of them: rules count on neither
        return Optimized(query, ())
    fired: list[Rule] = []
    for _ in range(MOST_ROUNDS):
        before = query
        for rule in rules:
            changed = rule.apply(query, facts)
            if changed != query:
                fired.append(rule)
                query = changed
        if query == before:
            break
    return Optimized(query, tuple(fired))
