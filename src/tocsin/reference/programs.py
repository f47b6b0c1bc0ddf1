r"""The denotation of programs of rules: every rule on all that lower strata emit (SEMANTICS R28 to R30).

A transcription of the event algebra of LRP by brute force: all combinations of events, those that satisfy every
condition, without those that an absence refutes.

code         theory
----         ------
matches      [[P1 ∧ P2 WHERE F]]; a gathering is a function of its match
settle       [[Pp \ Pn WHERE F]]
strata       a type's stratum is above those of all types that can cause it: a rule sees all or nothing of what one
             event causes (no glitches)
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program
from tocsin.reference import policies
from tocsin.reference.conditions import interpret
from tocsin.reference.matches import Candidate, Evaluation
from tocsin.reference.outputs import match_rows
from tocsin.reference.stream import Event, Row, Rows, ingest, typed

Typed = dict[str, list[dict[str, Any]]]


def run(
    program: Program,
    rows: Rows,
    *,
    time: str,
    tie: Sequence[str],
    type_column: str,
) -> tuple[Typed, Typed]:
    """The matches of every rule, and the events that the program emits, by template."""
    program = program.timed(time)
    known: dict[str, list[Row]] = {}
    for name, row in typed(rows, type_column):
        known.setdefault(name or "", []).append(row)
    matches: Typed = {rule.name: [] for rule in program.rules}
    emitted: Typed = {name: [] for name in program.emitters}
    for stratum in sorted({rule.stratum for rule in program.rules}):
        new: list[tuple[str, dict[str, Any]]] = []
        for rule in program.rules:
            if rule.stratum == stratum:
                read = {name: known.get(name, []) for name in rule.reads}
                events = ingest(read, time=time, tie=tie, type_column=type_column)
                found = matches_of(rule.query, events)
                matches[rule.name] += match_rows(rule.query, found, [{}] * len(found))
                new += [_event(emit, match, time) for match in found for emit in rule.emits]
        for name, row in new:
            known.setdefault(name, []).append(row)
            emitted[name].append(row)
    return matches, emitted


def matches_of(query: alg.Query, events: list[Event]) -> list[Candidate]:
    """The matches of a rule on the events it reads, in the order of R5."""
    evaluation = Evaluation(events, query.window_us, query.conjuncts)
    settled = evaluation.settle(evaluation.matches(query.pattern))
    for names in query.unordered:
        settled = _one_of_each_set(settled, names)
    return policies.apply(query, settled, events)


def _one_of_each_set(matches: list[Candidate], names: tuple[str, ...]) -> list[Candidate]:
    """Of matches that differ only in which of the variables holds which event, the first by position (D37)."""
    first: dict[Any, tuple[list[int], Candidate]] = {}
    for match in matches:
        held = [match.bags[name][0].position for name in names]
        others = sorted((slot.variable, slot.event.position) for slot in match.slots if slot.variable not in names)
        key = (tuple(sorted(held)), tuple(others))
        if key not in first or held < first[key][0]:
            first[key] = (held, match)
    return [match for _, match in first.values()]


def _event(emit: alg.Emit, match: Candidate, time: str) -> tuple[str, dict[str, Any]]:
    """The event that a rule emits of a match: a row like those that come from outside."""
    bags = match.bags
    at = interpret(emit.at, bags, {})
    if isinstance(at, float):
        at = math.floor(at)  # the mean of integer times, in whole microseconds
    zoned = next(iter(bags.values()))[0].time
    if isinstance(at, dt.datetime) and isinstance(zoned, dt.datetime) and zoned.tzinfo is None:
        at = at.replace(tzinfo=None)  # as the user gives times
    return emit.type, {time: at} | {name: interpret(value, bags, {}) for name, value in emit.values}
