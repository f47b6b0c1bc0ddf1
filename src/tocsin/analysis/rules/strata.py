"""Strata: no event causes, directly or by other rules, one of its own type (S9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tocsin import errors
from tocsin.algebra.programs import Rule
from tocsin.analysis.rules.restrictions import violation

Edge = tuple[str, str, Rule]  # an event of the first type can cause one of the second, by the rule

# Types through which the shortest cycle is sought: any cycle shows the mistake.
MOST_STARTS = 100


def stratified(rules: Sequence[Rule], problems: list[errors.TocsinError]) -> tuple[Rule, ...]:
    """The rules with their strata; a cycle is reported once, with the rules that make it."""
    edges = [(read, emit.type, rule) for rule in rules for read in rule.reads for emit in rule.emits]
    strata, left = _longest_paths(edges)
    if left:
        problems.append(_unstratified(find_cycle(left)))
        return tuple(rules)
    return tuple(replace(rule, stratum=max(strata.get(read, 0) for read in rule.reads)) for rule in rules)


def _longest_paths(edges: list[Edge]) -> tuple[dict[str, int], list[Edge]]:
    """How many steps lead to a type of events at most, and the edges that lie on a cycle or behind one."""
    causes = _by_cause(edges)
    missing = Counter(emitted for _, emitted, _ in edges)
    strata: dict[str, int] = {}
    ready = [name for name in causes if not missing[name]]
    while ready:
        name = ready.pop()
        for _, emitted, _ in causes.pop(name, ()):
            strata[emitted] = max(strata.get(emitted, 0), strata.get(name, 0) + 1)
            missing[emitted] -= 1
            if not missing[emitted]:
                ready.append(emitted)
    return strata, [edge for edge in edges if edge[0] in causes]


def _by_cause(edges: list[Edge]) -> dict[str, list[Edge]]:
    causes: dict[str, list[Edge]] = {}
    for edge in edges:
        causes.setdefault(edge[0], []).append(edge)
    return causes


def find_cycle(edges: list[Edge]) -> list[Edge]:
    """A shortest cycle of the graph of event types through one of the first `MOST_STARTS` types on a cycle, or none."""
    best: list[Edge] = []
    causes, starts = _by_cause(edges), 0
    for start in causes:
        found = _cycle_through(start, causes, len(best))
        best = found or best
        starts += bool(best)
        if starts == MOST_STARTS:
            break
    return best


def _cycle_through(start: str, causes: dict[str, list[Edge]], shorter_than: int) -> list[Edge]:
    """A shortest cycle through a type; empty when there is none, or none shorter than one that is known."""
    reached_by: dict[str, Edge] = {}
    level, steps = [start], 1
    while level and (not shorter_than or steps < shorter_than):
        found: list[str] = []
        for name in level:
            for edge in causes.get(name, ()):
                if edge[1] == start:
                    path = [edge]
                    while path[-1][0] != start:
                        path.append(reached_by[path[-1][0]])
                    return path[::-1]
                if edge[1] not in reached_by:
                    reached_by[edge[1]] = edge
                    found.append(edge[1])
        level, steps = found, steps + 1
    return []


def _unstratified(cycle: list[Edge]) -> errors.TocsinError:
    steps = " → ".join([f"`{cycle[0][0]}`", *(f"`{emitted}` (rule `{rule.name}`)" for _, emitted, rule in cycle)])
    first, last = cycle[0][2], cycle[-1][2]
    emit = next(each for each in first.emits if each.type == cycle[0][1])
    closing = next(each for each in last.emits if each.type == cycle[-1][1])
    return violation(
        errors.UnstratifiedError,
        "S9",
        f"Events cause events of their own type: {steps}.",
        where=emit.where,
        also=None if len(cycle) == 1 else ("closed", closing.where),
        hint="emit another template, which no rule before it reads.",
    )
