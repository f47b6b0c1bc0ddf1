"""How long the events of each variable can still matter (SEMANTICS §7): what a stream must remember.

**Definition.** Let m be a match of an alternative, with events v of its positive variables, and D(m) the time
at which it is decided: the largest of the time stamps of its events and of the deadlines of the absences that
guard it, where a deadline is the smallest `anchor + offset` among the upper bounds of the absence (SEMANTICS
§3 note 1: a trailing absence is decided at `start + W`). Then

    lifetime(v) = the largest D(m) − v.ts, over all matches m that bind v, at least 0
    lifetime(n) = the largest D(m) − n.ts, over all matches m that an event of the absent n would block

computed from the closed network of each alternative; the lifetime of a variable is the largest over the
alternatives. It is None, unbounded, when one of the distances is.

**Dropping never loses a match.** An event e is dropped when the watermark has passed `e.ts + lifetime`, after
the matches due at that watermark have been decided. Every event that arrives later has a time stamp not below
the watermark, so for a match m that binds e, or would be blocked by it:

- no event of m comes after e was dropped, because its time stamp is at most D(m) ≤ e.ts + lifetime;
- no blocker of m does, because it lies before or at its deadline, which is at most D(m);
- so m was decided before e was dropped, with all its events and all its blockers known.

A bound of the closure that is not attained makes a lifetime longer than needed, never shorter.

**Policies.** `next`, `contiguous`, the after-match skips and the outputs per start or end compare matches
with each other. Whatever decides about m has a time stamp from m's start on; every match it is compared with
in the order of R5 starts no later than m, and is decided at most L after its own start, where L is the
longest lifetime of a positive variable. So m is decided by `start + L`, and every positive variable gets
lifetime L. The outputs per end compare matches of different starts, up to m's end, so that where a match is not
decided at its end (absences, skips) all of them wait until `end + L`, at most 2 L after the start.

**Windows of aggregates** (EVERY) are reported when all matches that start in them are decided, at most L after the last
instant of the window: their events are kept for the length of the window longer. With an output per end a match is
compared with others that start up to L before its window, and their events are kept for L more.

**Time-outs** come out at `start + W` for whatever prefix of the pattern matched: WITH TIMEOUTS keeps every
positive variable for W at least. An absence that guards the prefix sees only the prefix, so its bounds are
taken without the rest of the network: n lies after `anchor + offset` of an anchor that is not before the
start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tocsin.algebra import nodes as alg
from tocsin.algebra.tree_text import table
from tocsin.algebra.units import format_bound
from tocsin.analysis.bounds import to_side
from tocsin.analysis.closure import largest, plus
from tocsin.analysis.temporal import Network
from tocsin.language.ast import PER_END, Skip


@dataclass(frozen=True)
class Lifetimes:
    """The lifetime of every variable, positive ones first."""

    us: Mapping[str, int | None]  # variable → microseconds; None when there is no bound
    negated: frozenset[str] = frozenset()  # the variables under NOT

    def __getitem__(self, variable: str) -> int | None:
        return self.us[variable]

    @property
    def is_bounded(self) -> bool:
        """Whether finite state suffices."""
        return None not in self.us.values()

    def to_dict(self) -> dict[str, int | None]:
        """For tools: variable → microseconds."""
        return dict(self.us)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            (f"NOT {name}" if name in self.negated else name, format_bound(us)) for name, us in self.us.items()
        ]
        return table(("variable", "lifetime"), rows)


def lifetimes(query: alg.Query, network: Network) -> Lifetimes:
    """The longest time an event bound to each variable can still matter.

    >>> from tocsin.analysis.temporal import network
    >>> a, b, c = (alg.Event(name.upper(), name) for name in "abc")
    >>> query = alg.Query(alg.Within(alg.Sequence((a, b, c)), 10_000_000))
    >>> print(lifetimes(query, network(query)))
    variable  lifetime
    a         9.999999 s
    b         9.999998 s
    c         0 s
    """
    query = replace(query, pattern=alg.exposed(query.pattern))
    negated = alg.negated_variables(query.pattern)
    found: dict[str, list[int | None]] = {name: [0] for name in (*query.variables, *negated)}
    for closure in network.alternatives:
        for name in closure.variables:
            waits_for = [
                closure.closed.furthest(name),
                *(closure.deadline(each.absence, name) for each in closure.absent),
            ]
            found.setdefault(name, [0]).extend(waits_for)
        for blocker in closure.absent:
            name = blocker.absence.variable
            if blocker.is_possible and name in found:  # a rewritten query may have less to be absent
                found[name] += map(blocker.reach.get, closure.variables)
                found[name] += [closure.deadline(each.absence, blocker) for each in closure.absent]
    longest = {name: largest(bounds) for name, bounds in found.items()}
    if query.compares_matches or query.every_us is not None:
        span = largest(longest[name] for name in query.variables)
        span = None if span is None else times_kept(query) * span
        _keep_from_start(query, network, longest, plus(span, query.every_us or 0))
    if query.timeouts and query.window_us is not None:
        _keep_for_timeouts(query, query.window_us, longest)
    return Lifetimes(MappingProxyType(longest), frozenset(negated))


def span_us(query: alg.Query, known: Lifetimes) -> int:
    """L of a bounded query, without what windows and outputs add to it."""
    lives = [life for name, life in known.us.items() if life is not None and name not in known.negated]
    return (max(lives, default=0) - (query.every_us or 0)) // times_kept(query)


def span_of_words(query: alg.Query, known: Lifetimes) -> int:
    """L where matches are words of an automaton, which keeps all events alike: for the window, if there is one."""
    return span_us(query, known) if query.window_us is None else query.window_us - 1


def times_kept(query: alg.Query) -> int:
    """For how many times L the events of a query are kept that compares matches, without the length of a window."""
    return 1 + (waits_after_end(query) + (query.every_us is not None) if query.output in PER_END else 0)


def waits_after_end(query: alg.Query) -> bool:
    """Whether what is reported per end is known only L after the end, since not all matches are decided there."""
    skips = query.after_match.skip is not Skip.REUSE
    return query.output in PER_END and (skips or next(alg.around_in(query.pattern), None) is not None)


def _keep_from_start(query: alg.Query, network: Network, longest: dict[str, int | None], span: int | None) -> None:
    """Lengthen the lifetimes for matches that are decided `span` after their start."""
    for name in query.variables:
        longest[name] = largest([longest[name], span])
    for closure in network.alternatives:
        for blocker in closure.absent:
            name = blocker.absence.variable
            if blocker.is_possible and name in longest:
                to_start = to_side([alg.Bound(alg.Whole.START)], closure.closed, blocker)
                longest[name] = largest([longest[name], None if span is None else plus(to_start, span)])


def _keep_for_timeouts(query: alg.Query, window_us: int, longest: dict[str, int | None]) -> None:
    for name in query.variables:
        longest[name] = largest([longest[name], window_us])
    for absence in alg.absences_in(query.pattern):
        to_start = max((-bound.offset_us - bound.step_us for bound in absence.lower), default=0)
        name = absence.variable
        longest[name] = largest([longest[name], window_us + max(0, to_start)])
