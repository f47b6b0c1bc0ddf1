"""What engines run of a program, and what they refuse: asked before any DataFrame is touched, and without Spark."""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import Program, Rule
from tocsin.errors import UnsupportedError
from tocsin.physical.claims import unsupported

ON = {"spark": "on Spark", "local": "locally"}
HINT = "give the table as rows: `tables={'known': [('A', 'B'), …]}`; every engine runs that."


def refusals(program: Program, engine: str) -> dict[str, UnsupportedError]:
    """By name, the rules that an engine does not run, each with the first reason."""
    return {rule.name: reason for rule in program.rules if (reason := refused(rule, engine)) is not None}


def refused(rule: Rule, engine: str) -> UnsupportedError | None:
    """The first construct of a rule that an engine does not run, or None."""
    reason = unsupported(rule.query, ON[engine])
    if reason is not None:
        return UnsupportedError(reason.message, where=reason.where, hint=HINT)
    for emit in rule.emits:
        reason = unsupported(emitting(rule, emit), ON[engine])
        if reason is not None:
            return UnsupportedError(reason.message, where=reason.where, hint=HINT)
    return None


def emitting(rule: Rule, emit: alg.Emit) -> alg.Query:
    """The matches of a rule, each as the event that it emits: its time, then its attributes, under names of our own."""
    values = (emit.at, *(value for _, value in emit.values))
    returns = tuple(alg.Returned(column(place), value) for place, value in enumerate(values))
    return replace(rule.query, returns=returns)


def column(place: int) -> str:
    """What `emitting` calls the time (0) and the attributes of an event: none of them meets `start` or `end`."""
    return f"__tocsin_e{place}"
