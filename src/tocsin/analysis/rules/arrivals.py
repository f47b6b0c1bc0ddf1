"""Emitted events: the strata of rules, when what they emit comes, how many it is, and what a chain of joins would keep.

No event causes, directly or by other rules, one of its own type (S9). A rule waits for the latest of what it reads: its
watermark is that of the inputs, less the longest delay of a type it reads. An event is emitted when its match is
decided, which is up to `lifetime(x)` after the event of x. Emitted at the time of x, it comes that late; a rule that
reads it keeps its other events as much longer. Emitted at `x.timestamp + 1 hour` it may come before its time, and is
kept until its time has come, and its lifetime has passed. A match of events alone may be found as soon as the last of
them is there; one with absences or gatherings waits until the watermark has passed the ends of their windows.

code            theory
----            ------
Reads           r_j, as curves: how many events of a variable may come within a time, of all keys and of one
choices         Π_j α_j(len_j), len_j = the shortest window of j around those chosen before it
kept_matches    S_left of the digest (§3.7): a left match is dropped when no right event can join it any more

Each combination is counted once, whatever the order in which its events come. All events of a match share the rule's
key when it has one: then at most as many can join an event as its key has. Variables of which it does not matter which
holds which event (`unordered`) are chosen as a bag: C(n + k − 1, k) in place of nᵏ.

The matches, counted at the times of the events of a variable x, are as many copies of x's arrivals. An emitted event
lies at a known distance from x, which may vary by some spread: in a closed interval of length t there are at most as
many as in one of length t + spread of x's events. One at the first or last of several times lies at one of them: then
the sum of theirs bounds it too. All these bounds hold, and the least of them counts. Where several events are gathered
or absent the number of matches does not grow; where a variable repeats it may be exponential, and there is no bound.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.algebra.programs import TIMESTAMP, Program, Rule
from tocsin.analysis.closure import largest, smallest
from tocsin.analysis.keys import common_keys
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.rates import Arrivals, Curve, Rate, copies, least, together
from tocsin.analysis.temporal import Closure, network
from tocsin.language import expressions as ex
from tocsin.language import rule_expressions as rx
from tocsin.source import Place

Edge = tuple[str, str, Rule]  # an event of the first type can cause one of the second, by the rule

# Types through which the shortest cycle is sought: any cycle shows the mistake.
MOST_STARTS = 100


def stratified(rules: Sequence[Rule], problems: errors.Problems) -> tuple[Rule, ...]:
    """The rules with their strata; a cycle is reported once, with the rules that make it."""
    edges = [(read, emit.type, rule) for rule in rules for read in rule.reads for emit in rule.emits]
    causes: dict[str, list[Edge]] = {}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for edge in edges:
        causes.setdefault(edge[0], []).append(edge)
        sorter.add(edge[1], edge[0])
    with contextlib.suppress(CycleError):  # what lies on a cycle, or behind one, never becomes ready
        sorter.prepare()
    strata: dict[str, int] = {}
    while ready := sorter.get_ready():
        for name in ready:
            for _, emitted, _ in causes.pop(name, ()):
                strata[emitted] = max(strata.get(emitted, 0), strata.get(name, 0) + 1)
        sorter.done(*ready)
    if causes:
        problems.append(_unstratified(_shortest_cycle(causes)))
        return tuple(rules)
    return tuple(replace(rule, stratum=max(strata.get(read, 0) for read in rule.reads)) for rule in rules)


def _shortest_cycle(causes: dict[str, list[Edge]]) -> list[Edge]:
    """A shortest cycle of the graph of event types through one of the first `MOST_STARTS` types on a cycle."""
    best: list[Edge] = []
    starts = 0
    for start in causes:
        best = _cycle_through(start, causes, len(best)) or best
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
        case ex.Call("least" | "greatest", operands) | rx.Mean(operands):
            for each in operands:
                yield from instants(each, moved_us)
        case _:
            yield at, moved_us


def _ahead_of(name: str, closure: Closure, early_us: int) -> int:
    """The most by which an event is after the newest one when its match is decided.

    The match waits for its other events, and for what may still be around it.
    """
    others = [closure.distance(name, other)[0] or 0 for other in closure.variables if other != name]
    waits = [[_least(bound, name, closure) for bound in each.absence.upper] for each in closure.absent]
    return min([early_us - max([0, *others]), *(-min(each) for each in waits if each)])


def _least(bound: alg.Bound, name: str, closure: Closure) -> int:
    """The least time from an event to one end of a window."""
    if isinstance(bound.anchor, alg.Whole):
        return -NEVER_US
    gaps = [0 if each == name else closure.distance(name, each)[0] for each in bound.anchor.variables]
    return min(-NEVER_US if gap is None else gap for gap in gaps) + bound.offset_us


# --- arrivals -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reads:
    """The arrivals of a rule's variables, where known: of all events, and of those that one match can choose from."""

    of_all: Mapping[str, Arrivals]
    of_key: Mapping[str, Arrivals]


def choices(
    closure: Closure, reference: str, others: Iterable[str], reads: Reads, unordered: Iterable[tuple[str, ...]] = ()
) -> int | None:
    """How many combinations of events of the others one event of the reference can be together with, at most."""
    order = [reference, *(name for name in others if name != reference)]
    best = _one_by_one(closure, order, reads)
    for group in unordered:
        if reference in group or not set(group) <= set(order):
            continue
        as_bag = _as_bag(closure, reference, group, reads)
        rest = _one_by_one(closure, [name for name in order if name not in group], reads)
        if as_bag is not None and rest is not None:
            best = as_bag * rest if best is None else min(best, as_bag * rest)
    return best


def _one_by_one(closure: Closure, order: Sequence[str], reads: Reads) -> int | None:
    total = 1
    for place, name in enumerate(order[1:], 1):
        window_us = shortest_window_us(closure, order[:place], name)
        if window_us is None or name not in reads.of_key:
            return None
        total *= reads.of_key[name].within(window_us)
    return total


def shortest_window_us(closure: Closure, known: Iterable[str], name: str) -> int | None:
    """The length of the shortest window in which an event of a variable lies, seen from events of known ones."""
    distances = [closure.distance(each, name) for each in known]
    return min((most - least for least, most in distances if least is not None and most is not None), default=None)


def _as_bag(closure: Closure, reference: str, group: tuple[str, ...], reads: Reads) -> int | None:
    types = dict(closure.alternative.types)
    ahead = largest(closure.upper(reference, name) for name in group)
    back = largest(closure.upper(name, reference) for name in group)
    if len({types[name] for name in group}) > 1 or ahead is None or back is None or group[0] not in reads.of_key:
        return None
    candidates = reads.of_key[group[0]].within(ahead + back)
    return math.comb(candidates + len(group) - 1, len(group))


@dataclass(frozen=True)
class JoinStores:
    """The stores of one join of a chain, in the order of the text: matches so far, and events to join them with."""

    variable: str
    left: int
    right: int


def join_stores(
    closure: Closure, order: Sequence[str], reads: Reads, lateness_us: int, unordered: Iterable[tuple[str, ...]] = ()
) -> tuple[JoinStores, ...] | None:
    """The stores of a chain of joins that nothing holds back; None where a bound does not follow.

    Our engine keeps no partial matches; this is what an engine that does would have to keep.
    """
    groups = tuple(unordered)

    def kept(name: str, until_us: int | None) -> int | None:
        """The most events of a variable that are kept until so long after their time."""
        if until_us is None or name not in reads.of_all:
            return None
        return reads.of_all[name].within(max(0, until_us) + lateness_us)

    found: list[JoinStores] = []
    for place, name in enumerate(order[1:], 1):
        left = [before for before in order[:place] if before in closure.variables]
        sizes = [
            (kept(reference, closure.upper(reference, name)), choices(closure, reference, left, reads, groups))
            for reference in left
        ]
        matches = smallest(None if events is None or times is None else events * times for events, times in sizes)
        events = kept(name, largest(closure.upper(name, before) for before in left))
        if matches is None or events is None:
            return None
        found.append(JoinStores(name, matches, events))
    return tuple(found)


def in_text_order(query: alg.Query) -> tuple[str, ...]:
    """All variables of a rule in the order in which its text has them, absent and gathered ones too."""
    places = {
        node.variable: node.where.start if isinstance(node.where, Place) else 0
        for node in query.pattern.walk()
        if isinstance(node, alg.Event | alg.Around)
    }
    return tuple(sorted(places, key=lambda name: places[name]))


# --- emitted events -------------------------------------------------------------------------------


def with_derived(program: Program, rates: Mapping[str, Rate], live_keys: int | None = None) -> dict[str, Arrivals]:
    """The arrivals of all types, as far as they follow; a type from inside and outside has the sum of both."""
    known: dict[str, Arrivals | None] = dict(rates)
    for rule in program.in_order:
        for emit in rule.emits:
            inside = _emitted(rule, emit, known, live_keys)
            if emit.type in known:
                before = known[emit.type]
                outside = None if before is None else before.of_all(live_keys)
                inside = None if inside is None or outside is None else together((outside, inside))
            known[emit.type] = inside
    return {name: arrivals for name, arrivals in known.items() if arrivals is not None}


def _emitted(
    rule: Rule, emit: alg.Emit, known: Mapping[str, Arrivals | None], live_keys: int | None
) -> Arrivals | None:
    """The arrivals of an emission; None when they do not follow from what is known."""
    closure = network(rule.query, TIMESTAMP).alternatives[0]
    if closure.alternative.iterated:
        return None
    reads = reads_of(rule, known, live_keys)

    def at(name: str, spread_us: int | None) -> list[Curve]:
        times = choices(closure, name, closure.variables, reads, rule.query.unordered)
        if spread_us is None or times is None or name not in reads.of_all:
            return []
        return [copies(reads.of_all[name], times, spread_us)]

    found = [curve for name in closure.variables for curve in at(name, _spread_us(emit.at, name, closure))]
    names = _at_one_of(emit.at)
    exact = [curve for name in names for curve in at(name, 0)]
    if exact and len(exact) == len(names):
        found.append(together(exact))
    return least(found) if found else None


def reads_of(rule: Rule, known: Mapping[str, Arrivals | None], live_keys: int | None = None) -> Reads:
    """The arrivals of each variable of a rule, as far as they are known."""
    of_all: dict[str, Arrivals] = {}
    of_key: dict[str, Arrivals] = {}
    has_key = common_keys(rule.query) != ()
    for name, kind in rule.types.items():
        arrivals = known.get(kind)
        if arrivals is None:
            continue
        whole = arrivals.of_all(live_keys)
        single = arrivals.of_key if has_key else whole
        of_all |= {} if whole is None else {name: whole}
        of_key |= {} if single is None else {name: single}
    return Reads(of_all, of_key)


def _at_one_of(at: ex.Expression) -> list[str]:
    """The variables at one of whose times, moved by a constant, an event is emitted; none for a mean of times."""
    if any(not isinstance(node, ex.Attribute | ex.Call | ex.Interval | ex.Arithmetic) for node in at.walk()):
        return []
    return list(dict.fromkeys(node.variable for node in at.walk() if isinstance(node, ex.Attribute)))


def _spread_us(at: ex.Expression, name: str, closure: Closure) -> int | None:
    """By how much the time from an event of a variable to the instant that an expression gives may vary."""
    first, last = [], []
    for times, moved_us in instants(at):
        if not isinstance(times, ex.Attribute):
            return None
        least, most = (0, 0) if times.variable == name else closure.distance(name, times.variable)
        if least is None or most is None:
            return None
        first.append(least + moved_us)
        last.append(most + moved_us)
    return max(last) - min(first)
