"""When the events of each emitted type come, measured against their own time: how late, and how early.

A rule waits for the latest of what it reads: its watermark is that of the inputs, less the longest delay of a type it
reads. An event is emitted when its match is decided, which is up to `lifetime(x)` after the event of x. Emitted at the
time of x, it comes that late; a rule that reads it keeps its other events as much longer. Emitted at `x.timestamp + 1
hour` it may come before its time, and is kept until its time has come, and its lifetime has passed.

A match of events alone may be found as soon as the last of them is there; one with absences or gatherings waits until
the watermark has passed the ends of their windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program
from tocsin.analysis.lifetimes import Lifetimes, lifetimes
from tocsin.analysis.temporal import Closure, network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx

NEVER_US = 1 << 62  # longer than any distance


@dataclass(frozen=True)
class Delay:
    """The longest time by which an event comes after its own time, and before it, in microseconds."""

    late_us: int = 0
    early_us: int = 0


def delays(program: Program) -> dict[str, Delay]:
    """When events of each emitted type may come."""
    found: dict[str, Delay] = {}
    for rule in program.in_order:
        read = [found.get(name, Delay()) for name in rule.reads]
        distances = network(rule.query, TIMESTAMP)
        lives = lifetimes(rule.query, distances)
        for emit in rule.emits:
            late = max(each.late_us for each in read) + max(0, _until_decided(emit.at, lives))
            early = max(0, _ahead(emit.at, distances.alternatives[0], max(each.early_us for each in read)))
            known = found.get(emit.type, Delay())
            found[emit.type] = Delay(max(late, known.late_us), max(early, known.early_us))
    return found


def _until_decided(at: ex.Expression, lives: Lifetimes) -> int:
    """The longest time from the instant that an expression gives to the decision of its match."""
    match at:
        case ex.Arithmetic("+", left, ex.Interval(moved)) | ex.Arithmetic("+", ex.Interval(moved), left):
            return _until_decided(left, lives) - moved
        case ex.Arithmetic("-", left, ex.Interval(moved)):
            return _until_decided(left, lives) + moved
        case ex.Call(_, operands) | rx.Mean(operands):
            return max(_until_decided(each, lives) for each in operands)
        case _:
            return max((lives[name] or 0 for name in ex.variables_in(at)), default=0)


def _ahead(at: ex.Expression, closure: Closure, early_us: int) -> int:
    """The most by which the instant that an expression gives is after the newest event when its match is decided."""
    match at:
        case ex.Arithmetic("+", left, ex.Interval(moved)) | ex.Arithmetic("+", ex.Interval(moved), left):
            return _ahead(left, closure, early_us) + moved
        case ex.Arithmetic("-", left, ex.Interval(moved)):
            return _ahead(left, closure, early_us) - moved
        case ex.Call(_, operands) | rx.Mean(operands):
            return max(_ahead(each, closure, early_us) for each in operands)
        case _:
            return max((_ahead_of(name, closure, early_us) for name in ex.variables_in(at)), default=0)


def _ahead_of(name: str, closure: Closure, early_us: int) -> int:
    """The same for the time of an event: its match waits for its other events, and for what may still be around it."""
    others = [closure.distance(name, other)[0] or 0 for other in closure.variables if other != name]
    waits = [
        min(least, default=None)
        for each in closure.absent
        for least in [[_least(bound, name, closure) for bound in each.absence.upper]]
    ]
    known = [-wait for wait in waits if wait is not None]
    return min([early_us - max([0, *others]), *known])


def _least(bound: alg.Bound, name: str, closure: Closure) -> int:
    """The least time from an event to one end of a window."""
    if isinstance(bound.anchor, alg.Whole):
        return -NEVER_US
    gaps = [0 if each == name else closure.distance(name, each)[0] for each in bound.anchor.variables]
    return min(-NEVER_US if gap is None else gap for gap in gaps) + bound.offset_us
