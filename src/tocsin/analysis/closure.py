"""The closed temporal network of one alternative: exact distances between its events, in whole microseconds.

Every bound has the form `y.ts − x.ts ≤ w`, an edge from x to y of weight w; all of them together are a simple
temporal network, and all-pairs shortest paths give the tightest bound of every pair.

A window bounds every pair, which would be n² edges. It is one more node instead, the start of the match: from every
variable an edge of weight 0 leads to it, and one of weight W − 1 from it to every variable. A shortest path avoids this
node, or it is a path to it and one from it; so the distances that avoid it are searched per variable, by Dijkstra and
only when they are needed (the method of Johnson), and two numbers per variable add the window.

code               theory
----               ------
Edge               a constraint y − x ≤ w
upper.get(x, y)    the length of the shortest path from x to y: the largest y − x
upper.get(x, x)    0; for an iterated variable the largest distance between two of its events
sure               nodes a path may run through: variables that are bound whenever the alternative matches
contradiction      a cycle of negative length: no events can keep these bounds

An iterated variable is one node: each bound holds for all its events, so that events of one bag are twins
with the same edges. A shortest path from one twin to another runs through some other variable (a third twin
would only add a cycle of length ≥ 0), which gives `upper.get(x, x)`; and a negative cycle through twins is a
negative closed walk through the one node.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import islice

from tocsin import errors
from tocsin.algebra.alternatives import Alternative
from tocsin.algebra.units import format_us
from tocsin.source import Where


class Reason(Enum):
    """Where a bound comes from."""

    CONDITION = "condition"
    WINDOW = "window"
    ORDER = "order"


@dataclass(frozen=True)
class Edge:
    """`end.ts − start.ts ≤ most_us`."""

    start: str
    end: str
    most_us: int
    reason: Reason = Reason.CONDITION
    where: Where = None


class Upper:
    """The tightest bounds that follow from edges without a negative cycle.

    `iterated` variables hold several events; paths run through `sure` variables only; `most_us` is the largest distance
    that the window leaves between any two events.

    >>> upper = Upper("abc", [Edge("a", "b", 5), Edge("b", "c", 10), Edge("c", "a", -2)])
    >>> upper.get("a", "c"), upper.get("c", "b"), upper.get("b", "a")
    (15, 3, 8)
    >>> upper.furthest("a"), Upper("ab", [Edge("a", "b", 5)]).furthest("b") is None
    (15, True)
    """

    def __init__(
        self,
        variables: Sequence[str],
        edges: Iterable[Edge],
        *,
        iterated: frozenset[str] = frozenset(),
        sure: frozenset[str] | None = None,
        most_us: int | None = None,
    ) -> None:
        self.variables = tuple(variables)
        self.names = frozenset(variables)
        self.iterated = iterated
        self.sure = self.names if sure is None else sure & self.names
        self.most_us = most_us
        self._out: dict[str, dict[str, int]] = {}
        for edge in edges:
            out = self._out.setdefault(edge.start, {})
            out[edge.end] = min(edge.most_us, out.get(edge.end, edge.most_us))
        inner = [
            Edge(start, end, most)
            for start in self.sure
            for end, most in self._out.get(start, {}).items()
            if end in self.sure and end != start
        ]
        self._potential = _bellman_ford(self.variables, inner).reached
        self._rows: dict[str, dict[str, int]] = {}
        self._starts: dict[str, int] = {}

    def get(self, x: str, y: str) -> int | None:
        """The largest `y.ts − x.ts`; None when there is none, or one of the variables is not in the network.

        A variable that is less than 0 after itself can never be bound.
        """
        if x not in self.names or y not in self.names:
            return None
        found = self._row(x).get(y)
        if self.most_us is not None:
            windowed = self._to_start(x) + self._from_start[y]
            found = windowed if found is None else min(found, windowed)
        return self._spread(x) if x == y and x in self.iterated and found == 0 else found

    def furthest(self, x: str) -> int | None:
        """The largest distance from an event of a variable to any event after it; None when there is none."""
        near = self._row(x)
        if self.most_us is None and len(near) < len(self.variables):
            return None
        rest = (y for y in self._last_first if y not in near)
        return largest(self.get(x, y) for y in (*near, *islice(rest, 1)))

    def _row(self, x: str) -> dict[str, int]:
        """The shortest paths from a variable that avoid the window, by where they end."""
        if x not in self._rows:
            row = self._shortest({x: 0} if x in self.sure else dict(self._out.get(x, {})))
            row[x] = min(0, row.get(x, 0))
            self._rows[x] = row
        return self._rows[x]

    def _shortest(self, first: dict[str, int]) -> dict[str, int]:
        """The shortest paths that go on from these nodes (Dijkstra, on weights that the potentials make positive)."""
        best, potential = first, self._potential
        waiting = [(most - potential[name], name) for name, most in first.items() if name in self.sure]
        heapq.heapify(waiting)
        done = set()
        while waiting:
            _, node = heapq.heappop(waiting)
            if node in done:
                continue
            done.add(node)
            for end, most in self._out.get(node, {}).items():
                length = best[node] + most
                if end not in best or length < best[end]:
                    best[end] = length
                    if end in self.sure:
                        heapq.heappush(waiting, (length - potential[end], end))
        return best

    def _to_start(self, x: str) -> int:
        """The largest `start − x.ts`: the start is not after x, nor after what lies before x."""
        if x not in self._starts:
            self._starts[x] = min([0, *(most for y, most in self._row(x).items() if y in self.sure)])
        return self._starts[x]

    @cached_property
    def _from_start(self) -> dict[str, int]:
        """The largest `y.ts − start` of every variable."""
        return self._shortest(dict.fromkeys(self.variables, self.most_us or 0))

    @cached_property
    def _last_first(self) -> list[str]:
        """The variables, those furthest from the start first."""
        return sorted(self.variables, key=lambda name: -self._from_start[name])

    def _spread(self, name: str) -> int | None:
        """The largest distance between two events of one iterated variable."""
        around = ((self.get(name, other), self.get(other, name)) for other in self.sure - {name})
        ways = [there + back for there, back in around if there is not None and back is not None]
        return smallest([self.most_us, *ways])


def without_implied(before: Iterable[tuple[str, str]], through: Set[str]) -> list[tuple[str, str]]:
    """Pairs of an order without those that follow from two others with a variable of `through` between them.

    A sequence of n variables orders n² pairs of them, and n − 1 suffice. The last pairs of a sequence come first:
    Bellman and Ford need one pass over edges in this order.

    >>> without_implied([("a", "b"), ("b", "c"), ("a", "c")], frozenset("abc"))
    [('b', 'c'), ('a', 'b')]
    >>> without_implied([("a", "b"), ("b", "c"), ("a", "c")], frozenset("ac"))
    [('b', 'c'), ('a', 'b'), ('a', 'c')]
    """
    after: dict[str, list[str]] = {}
    for x, y in sorted(set(before)):
        if x != y:
            after.setdefault(x, []).append(y)
            after.setdefault(y, [])
    # Sets of variables are bits of integers. What follows lies behind fewer variables, also where the order is none.
    bit = {name: 1 << number for number, name in enumerate(after)}
    behind = {x: sum(bit[y] for y in ends if len(after[y]) < len(ends)) for x, ends in after.items()}
    kept = []
    for x, ends in sorted(after.items(), key=lambda item: len(item[1])):
        implied = 0
        for y in ends:
            if y in through and behind[x] & bit[y]:
                implied |= behind[y]
        kept += [(x, y) for y in ends if not implied & bit[y]]
    return kept


@dataclass(frozen=True)
class _Reached:
    """The shortest paths from anywhere to each node, the last edge of each, and a node behind a negative cycle."""

    reached: dict[str, int]
    by: dict[str, Edge]
    last: str | None


def _bellman_ford(nodes: Sequence[str], edges: Sequence[Edge]) -> _Reached:
    reached = dict.fromkeys(nodes, 0)
    by: dict[str, Edge] = {}
    last: str | None = None
    for _ in nodes:
        last = None
        for edge in edges:
            if reached[edge.start] + edge.most_us < reached[edge.end]:
                reached[edge.end] = reached[edge.start] + edge.most_us
                by[edge.end] = edge
                last = edge.end
        if last is None:
            break
    return _Reached(reached, by, last)


START = ""  # the node of the window; no variable has this name


def negative_cycle(variables: Sequence[str], edges: Sequence[Edge], window: Edge | None = None) -> tuple[Edge, ...]:
    """Edges of one cycle whose bounds cannot all hold, or none (Bellman and Ford).

    `window` is an edge that holds between any two variables, whatever its ends are.

    >>> [edge.most_us for edge in negative_cycle("ab", [Edge("a", "b", 5), Edge("b", "a", -10)])]
    [5, -10]
    >>> [edge.most_us for edge in negative_cycle("ab", [Edge("b", "a", -10)], Edge("", "", 5))]
    [-10, 5]
    """
    nodes, bounds = list(variables), list(edges)
    if window is not None:
        nodes.append(START)
        bounds += [replace(window, start=name, end=START, most_us=0) for name in variables]
        bounds += [replace(window, start=START, end=name) for name in variables]
    found = _bellman_ford(nodes, bounds)
    if found.last is None:
        return ()
    last = found.last
    for _ in nodes:  # after as many steps back as there are nodes, one is inside the cycle
        last = found.by[last].start
    if last == START:
        last = found.by[last].start
    cycle = [found.by[last]]
    while cycle[-1].start != last:
        edge = found.by[cycle[-1].start]
        if edge.end == START:  # to the start and from it: one bound of the window
            cycle[-1] = replace(cycle[-1], start=edge.start)
        else:
            cycle.append(edge)
    return tuple(reversed(cycle))


# --- bounds of which some may be None, no bound ---------------------------------------------------


def smallest(bounds: Iterable[int | None]) -> int | None:
    """The tightest of several bounds that all hold; None is no bound.

    >>> smallest([None, 3, 5]), smallest([None]) is None
    (3, True)
    """
    return min((bound for bound in bounds if bound is not None), default=None)


def largest(bounds: Iterable[int | None]) -> int | None:
    """The bound of which it is only known that one of several holds; None is no bound.

    >>> largest([3, 5]), largest([None, 3]) is None, largest([]) is None
    (5, True, True)
    """
    known = list(bounds)
    present = [bound for bound in known if bound is not None]
    return max(present) if present and len(present) == len(known) else None


def plus(bound: int | None, offset: int) -> int | None:
    """A bound moved by an offset."""
    return None if bound is None else bound + offset


# --- bounds that contradict each other ------------------------------------------------------------


def contradiction(cycle: tuple[Edge, ...], where: Where) -> errors.ContradictoryDistancesError:
    """The error for a pattern none of whose alternatives any events can satisfy."""
    edge, sentence = _explain(cycle)
    one, two = sorted((edge.start, edge.end))
    other = next((each.where for each in cycle if each.where not in (None, edge.where)), None)
    return errors.ContradictoryDistancesError(
        f"No events can keep these distances between `{one}` and `{two}`: {sentence}.",
        where=edge.where or where,
        also=None if other is None else ("against the bound", other),
        hint="loosen one of the conditions, or check which event comes first.",
    )


def contradictory_branch(alternative: Alternative, cycle: tuple[Edge, ...]) -> errors.TocsinWarning:
    """The warning for one alternative that no events can satisfy, beside others that some can."""
    edge, sentence = _explain(cycle)
    listed = ", ".join(f"`{name}`" for name in dict.fromkeys(alternative.variables))
    return errors.TocsinWarning(
        "CONTRADICTORY_BRANCH",
        f"No match can bind {listed} together: {sentence}.",
        where=edge.where,
        hint="the other alternatives are still found; leave this one out, or loosen its conditions.",
    )


def never_bound(name: str) -> errors.TocsinWarning:
    """The warning for an optional variable of a pattern with too many alternatives to name one."""
    return errors.TocsinWarning(
        "CONTRADICTORY_BRANCH",
        f"No match can bind `{name}`: its distances to events that every match has contradict each other.",
        hint="matches without it are still found; leave it out, or loosen its conditions.",
    )


def _explain(cycle: tuple[Edge, ...]) -> tuple[Edge, str]:
    """The bound to show, a written one if there is one, and what it says against the rest of the cycle."""
    edge = min(cycle, key=lambda each: list(Reason).index(each.reason))
    rest = -(sum(each.most_us for each in cycle) - edge.most_us)
    by = {Reason.CONDITION: "by this condition", Reason.WINDOW: "within the window", Reason.ORDER: "in order"}
    if edge.most_us >= 0:
        earlier, later = edge.start, edge.end
        ours, others = _most(edge.most_us), _least(rest)
    else:  # the end is before the start: told the other way round
        earlier, later = edge.end, edge.start
        ours, others = _least(-edge.most_us), _most(-rest)
    return edge, f"{by[edge.reason]} `{later}` is {ours} `{earlier}`, by the rest of the pattern {others} it"


def _most(us: int) -> str:
    return f"at most {format_us(us)} after" if us >= 0 else f"at least {format_us(-us)} before"


def _least(us: int) -> str:
    return f"at least {format_us(us)} after" if us >= 0 else f"at most {format_us(-us)} before"
