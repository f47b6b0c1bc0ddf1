"""Selection, after-match and output policies: filters over the any-match result of one partition (SEMANTICS §4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, assert_never

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.language.ast import PER_END, AfterMatch, Output, Selection, Skip
from tocsin.reference.conditions import holds
from tocsin.reference.matches import Candidate, Slot
from tocsin.reference.stream import Event


def apply(query: alg.Query, found: list[Candidate], events: list[Event]) -> list[Candidate]:
    """Selection, output per start, after-match, output per end (R32, R44); the result is in the order of R5."""
    kept = [match for match in found if _is_selected(query, match, events)]
    ordered = sorted({match.key: match for match in kept}.values(), key=rank)
    if query.output in PER_END:
        return _reported(query.output, _after_match(query.after_match, ordered))
    return _after_match(query.after_match, _reported(query.output, ordered))


def rank(match: Candidate) -> tuple[Any, ...]:
    """The order of R5: first position, last position, all positions, variable names."""
    bound = sorted((slot.event.local, slot.variable) for slot in match.slots)
    positions = _positions(match)
    return (positions[0], positions[-1], positions, bound)


def _positions(match: Candidate) -> list[int]:
    """Where the match's events lie in their partition, each once."""
    return sorted({slot.event.local for slot in match.slots})


# --- selection ------------------------------------------------------------------------------------


def _is_selected(query: alg.Query, match: Candidate, events: list[Event]) -> bool:
    match query.selection:
        case Selection.ANY:
            return True
        case Selection.CONTIGUOUS:
            return _is_consecutive(match, lambda event: event.position)
        case Selection.PARTITION_CONTIGUOUS:
            return _is_consecutive(match, lambda event: event.local)
        case Selection.NEXT:
            return _takes_the_next(query, match, events)
        case _:
            assert_never(query.selection)


def _is_consecutive(match: Candidate, position: Callable[[Event], int]) -> bool:
    positions = sorted({position(slot.event) for slot in match.slots})
    return all(right == left + 1 for left, right in pairwise(positions))


def _takes_the_next(query: alg.Query, match: Candidate, events: list[Event]) -> bool:
    """R2, R45: between two events of the match, none that could have been bound in the second's place."""
    filters = (node for node in query.pattern.walk() if isinstance(node, alg.Filter))
    conditions = [conjunct for node in filters for conjunct in ex.conjuncts(node.condition)]
    walk = sorted(match.slots, key=lambda slot: (slot.event.local, slot.variable))
    for index in range(1, len(walk)):
        previous, slot = walk[index - 1], walk[index]
        between = events[previous.event.local + 1 : slot.event.local]
        for variable in slot.alternatives or (slot.variable,):
            types, other = query.variables[variable].types, replace(slot, variable=variable)
            if any(event.type in types and _could_bind(event, other, walk[:index], conditions) for event in between):
                return False
    return True


def _could_bind(event: Event, slot: Slot, before: list[Slot], conditions: list[ex.Expression]) -> bool:
    if slot.floor is not None and event.instant <= slot.floor:
        return False
    bags: dict[str, tuple[Event, ...]] = {}
    for earlier in [*before, Slot(slot.variable, event)]:
        bags[earlier.variable] = (*bags.get(earlier.variable, ()), earlier.event)
    return all(
        holds(conjunct, bags)
        for conjunct in conditions
        if ex.variables_in(conjunct) <= bags.keys() and not _is_final(conjunct, slot.variable)
    )


def _is_final(conjunct: ex.Expression, variable: str) -> bool:
    """Whether only the whole bag decides a conjunct: an aggregate, `v[last]`, NEXT(v) or `v[i+1]` over v itself."""
    return any(
        (isinstance(node, ex.Aggregate) and variable in ex.variables_in(node))
        or (isinstance(node, ex.Attribute) and node.variable == variable and _looks_ahead(node.index))
        for node in conjunct.walk()
    )


def _looks_ahead(index: ex.Index) -> bool:
    return index in (ex.Edge.LAST, ex.Each.NEXT) or (isinstance(index, ex.Running) and index.offset > 0)


# --- after match ----------------------------------------------------------------------------------


def _after_match(policy: AfterMatch, ordered: list[Candidate]) -> list[Candidate]:
    if policy.skip is Skip.REUSE:
        return ordered
    kept: list[Candidate] = []
    frontier = 0
    for match in ordered:
        positions = _positions(match)
        if positions[0] >= frontier:
            kept.append(match)
            frontier = _frontier(policy, match, positions)
    return kept


def _frontier(policy: AfterMatch, match: Candidate, positions: list[int]) -> int:
    if policy.skip is Skip.PAST_LAST:
        return positions[-1] + 1
    target = match.bags.get(policy.variable or "")
    if policy.skip is Skip.TO_NEXT or not target:
        return positions[0] + 1
    return target[0 if policy.skip is Skip.TO_FIRST else -1].local


# --- output ---------------------------------------------------------------------------------------


def _reported(output: Output, ordered: list[Candidate]) -> list[Candidate]:
    """R31; `ordered` is in the order of R5, so that the first best of a group wins a tie."""

    def first_position(match: Candidate) -> int:
        return _positions(match)[0]

    def last_position(match: Candidate) -> int:
        return _positions(match)[-1]

    match output:
        case Output.FIRST_PER_START:
            return _best_of(ordered, first_position, lambda match: 0)
        case Output.FIRST_PER_END:
            return _best_of(ordered, last_position, lambda match: 0)
        case Output.LAST_PER_START:
            return _best_of(ordered, first_position, lambda match: max(slot.event.ts for slot in match.slots))
        case Output.LAST_PER_END:
            return _best_of(ordered, last_position, lambda match: min(slot.event.ts for slot in match.slots))
        case Output.LONGEST:
            return _best_of(ordered, first_position, lambda match: len(_positions(match)))
        case Output.ALL | Output.COUNT:
            return ordered
        case _:
            assert_never(output)


def _best_of(
    ordered: list[Candidate], group: Callable[[Candidate], int], measure: Callable[[Candidate], int]
) -> list[Candidate]:
    best: dict[int, Candidate] = {}
    for match in ordered:
        known = best.get(group(match))
        if known is None or measure(match) > measure(known):
            best[group(match)] = match
    return sorted(best.values(), key=rank)
