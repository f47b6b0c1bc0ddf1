"""The rewrite rules, one file each, in the order they are tried, again and again until none changes the query."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.analysis.temporal import Facts
from tocsin.optimizer.rules.drop_idle_absences import drop_idle_absences
from tocsin.optimizer.rules.fold_constants import fold_constants
from tocsin.optimizer.rules.infer_window import infer_window
from tocsin.optimizer.rules.partition_by_keys import partition_by_keys
from tocsin.optimizer.rules.rule import NO_FACTS, Rule
from tocsin.optimizer.rules.share_keys import share_keys

__all__ = ["NO_FACTS", "RULES", "Facts", "Optimized", "Rule", "optimize"]

RULES: tuple[Rule, ...] = (
    Rule("fold_constants", "constants in conditions are computed once", fold_constants),
    Rule("drop_idle_absences", "absences that no event can break are left out", drop_idle_absences),
    Rule("partition_by_keys", "an attribute that all events of a match share splits the stream", partition_by_keys),
    Rule("share_keys", "equalities that follow from others are tested as early as they can be", share_keys),
    Rule("infer_window", "distances between all events of a match make a window", infer_window),
)
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
