"""Time-outs as rows (SEMANTICS §6): matches of the first parts of a SEQ that nothing extends within the window."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.reference.matches import Candidate, Evaluation, Guard, Limit
from tocsin.reference.stream import Event


def timeouts(query: alg.Query, events: list[Event]) -> list[tuple[Candidate, str]]:
    """Every time-out with the variable that is missing: the first of the part that did not come."""
    sequence = next(node for node in query.pattern.walk() if isinstance(node, alg.Sequence))
    evaluation = Evaluation(events, query.window_us)
    found: list[tuple[Candidate, str]] = []
    for number in range(1, len(sequence.parts)):
        reached = _reaching(evaluation, query, sequence, number)
        names = set(alg.variables_of(alg.Sequence(sequence.parts[:number])))
        extended = {_only(longer, names).key for longer in _reaching(evaluation, query, sequence, number + 1)}
        missing = next(iter(alg.variables_of(sequence.parts[number])))
        # The same bindings are reported once, however they were derived (SEMANTICS §2).
        distinct = {match.key: match for match in reached if _only(match, names).key not in extended}
        found += [(match, missing) for match in distinct.values()]
    return found


def _reaching(evaluation: Evaluation, query: alg.Query, sequence: alg.Sequence, number: int) -> list[Candidate]:
    """The matches of the first parts, as far as absences that these parts decide let them live."""
    names = set(alg.variables_of(alg.Sequence(sequence.parts[:number])))
    inside = {node.variable for part in sequence.parts for node in alg.absences_in(part)}
    may_grow = number < len(sequence.parts)

    def is_decided(guard: Guard) -> bool:
        absent = guard.absent
        if absent.condition is not None and not ex.variables_in(absent.condition) <= names | {absent.variable}:
            return False
        # An absence that begins a part looks back from the end of the whole match, which a later part still moves.
        is_begun = _has_an_event(guard.lower) or not (may_grow and absent.variable in inside)
        return is_begun and _has_an_event(guard.upper)

    return evaluation.settle(
        replace(found, guards=tuple(filter(is_decided, found.guards)))
        for found in evaluation.matches(prefix(query, sequence, number))
    )


def _has_an_event(bounds: tuple[Limit, ...]) -> bool:
    """Whether the event is there that bounds a gap on this side; otherwise the window does, or a part to come."""
    return any(not isinstance(anchor, alg.Whole) for anchor, _, _ in bounds)


def prefix(query: alg.Query, sequence: alg.Sequence, number: int) -> alg.Node:
    """The query of the first parts: all absences, and the conditions on nothing but them."""
    names = set(alg.variables_of(alg.Sequence(sequence.parts[:number])))
    node: alg.Node = replace(sequence, parts=sequence.parts[:number])
    for outer in query.pattern.walk():
        if outer is sequence:
            break
        if isinstance(outer, alg.Absent):
            node = replace(outer, part=node)
    condition = next((outer.condition for outer in query.pattern.walk() if isinstance(outer, alg.Filter)), None)
    known = [conjunct for conjunct in ex.conjuncts(condition) if ex.variables_in(conjunct) <= names]
    node = alg.Filter(node, ex.all_of(*known)) if known else node
    return alg.Within(node, query.window_us) if query.window_us is not None else node


def _only(match: Candidate, names: set[str]) -> Candidate:
    slots = tuple(slot for slot in match.slots if slot.variable in names)
    by_place = sorted((slot.event for slot in slots), key=lambda event: event.local)
    return Candidate(by_place[0] if by_place else None, by_place[-1] if by_place else None, slots)
