"""The restrictions that make a program of rules run in bounded memory, by the numbers of `docs/reference/rules.md`."""

from __future__ import annotations

from typing import Any, TypeVar

from tocsin import errors

RESTRICTIONS = {
    "S1": "whatever a program names is declared, and declared once.",
    "S2": "the first pattern of a rule asks for an event, not for an absence.",
    "S3": "an absent event is known in its own pattern and its own distances, and nowhere else.",
    "S4": "a condition stands in the pattern of the last variable that it speaks of.",
    "S5": "an absence and a gathering have a closed window around an event of the match.",
    "S6": "a distance has the prefix of its variable: `no`, `all` or none.",
    "S7": "any two events of a match lie within a known distance of each other.",
    "S8": "a distance has two finite ends, with units.",
    "S9": "no event causes, directly or by other rules, an event of its own type.",
    "S10": "functions are pure: same arguments, same result, in constant time, without any effect.",
    "S11": "the attributes of an event are values, or arrays of a fixed length, never events.",
    "S12": "an emitted event has every attribute of its template, of the right type.",
    "S13": "as time goes on, the time of emitted events never goes back.",
    "S14": "every type of events that comes from outside has a largest rate.",
    "S15": "values are compared and computed with values of their kind.",
    "S16": "some events can keep all distances of a rule.",
    "S17": "every type of events that a rule reads comes from an input or from another rule.",
}

E = TypeVar("E", bound=errors.TocsinError)


def violation(kind: type[E], number: str, message: str, **rest: Any) -> E:
    """An error that names the restriction it is about."""
    return kind(message, restriction=f"{number}: {RESTRICTIONS[number]}", **rest)


def name_restriction(problem: errors.TocsinError, number: str) -> errors.TocsinError:
    """Name the restriction on an error found by what all languages share."""
    if problem.restriction is None:
        problem.restriction = f"{number}: {RESTRICTIONS[number]}"
    return problem
