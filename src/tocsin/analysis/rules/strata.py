"""Strata: no event causes, directly or by other rules, one of its own type (S9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tocsin import errors
from tocsin.algebra.programs import Rule
from tocsin.analysis.rules.restrictions import violation

Edge = tuple[str, str, Rule]  # an event of the first type can cause one of the second, by the rule


def stratified(rules: Sequence[Rule], problems: list[errors.TocsinError]) -> tuple[Rule, ...]:
    """The rules with their strata; a cycle is reported once, with the rules that make it."""
    edges = [(read, emit.type, rule) for rule in rules for read in rule.reads for emit in rule.emits]
    cycle = find_cycle(edges)
    if cycle:
        problems.append(_unstratified(cycle))
        return tuple(rules)
    strata: dict[str, int] = {}
    for _ in rules:  # the longest path has at most one step for each rule
        for read, emitted, _rule in edges:
            strata[emitted] = max(strata.get(emitted, 0), strata.get(read, 0) + 1)
    return tuple(replace(rule, stratum=max(strata.get(read, 0) for read in rule.reads)) for rule in rules)


def find_cycle(edges: list[Edge]) -> list[Edge]:
    """A shortest cycle of the graph of event types, or none."""
    best: list[Edge] = []
    for start in dict.fromkeys(read for read, _, _ in edges):
        paths: dict[str, list[Edge]] = {start: []}
        level = [start]
        while level and not (best and len(paths[level[0]]) + 1 >= len(best)):
            found: list[str] = []
            for name in level:
                for edge in edges:
                    if edge[0] != name:
                        continue
                    if edge[1] == start:
                        best = [*paths[name], edge]
                        found = []
                        break
                    if edge[1] not in paths:
                        paths[edge[1]] = [*paths[name], edge]
                        found.append(edge[1])
                else:
                    continue
                break
            level = found
    return best


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
