"""The strata of rules, and when emitted events come, measured against their own time: how late, and how early.

No event causes, directly or by other rules, one of its own type (S9). A rule waits for the latest of what it reads: its
watermark is that of the inputs, less the longest delay of a type it reads. An event is emitted when its match is
decided, which is up to `lifetime(x)` after the event of x. Emitted at the time of x, it comes that late; a rule that
reads it keeps its other events as much longer. Emitted at `x.timestamp + 1 hour` it may come before its time, and is
kept until its time has come, and its lifetime has passed.

A match of events alone may be found as soon as the last of them is there; one with absences or gatherings waits until
the watermark has passed the ends of their windows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.temporal import Closure, network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx

Edge = tuple[str, str, Rule]  # an event of the first type can cause one of the second, by the rule

# Types through which the shortest cycle is sought: any cycle shows the mistake.
MOST_STARTS = 100


def stratified(rules: Sequence[Rule], problems: errors.Problems) -> tuple[Rule, ...]:
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
    return errors.UnstratifiedError(
        f"Events cause events of their own type: {steps}.",
        where=emit.where,
        also=None if len(cycle) == 1 else ("closed", closing.where),
        hint="emit another template, which no rule before it reads.",
        violates="S9",
    )


# --- delays ---------------------------------------------------------------------------------------

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
            times = [(name, us) for each, us in instants(emit.at) for name in ex.variables_in(each)]
            until_decided = max([0, *((lives[name] or 0) - us for name, us in times)])
            late = max(each.late_us for each in read) + until_decided
            read_early = max(each.early_us for each in read)
            early = max([0, *(_ahead_of(name, distances.alternatives[0], read_early) + us for name, us in times)])
            known = found.get(emit.type, Delay())
            found[emit.type] = Delay(max(late, known.late_us), max(early, known.early_us))
    return found


def instants(at: ex.Expression, moved_us: int = 0) -> Iterator[tuple[ex.Expression, int]]:
    """The times that an instant is the first, last or mean of, each with the constant that is added to it."""
    match at:
        case ex.Arithmetic("+", left, ex.Interval(by_us)) | ex.Arithmetic("+", ex.Interval(by_us), left):
            yield from instants(left, moved_us + by_us)
        case ex.Arithmetic("-", left, ex.Interval(by_us)):
            yield from instants(left, moved_us - by_us)
        case ex.Call(_, operands) | rx.Mean(operands):
            for each in operands:
                yield from instants(each, moved_us)
        case _:
            yield at, moved_us


def _ahead_of(name: str, closure: Closure, early_us: int) -> int:
    """The most by which an event is after the newest one when its match is decided.

    The match waits for its other events, and for what may still be around it.
    """
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
