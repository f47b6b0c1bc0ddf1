"""The closed temporal network of one alternative: exact distances between its events, in whole microseconds.

Every bound has the form `y.ts − x.ts ≤ w`, an edge from x to y of weight w; all of them together are a simple
temporal network, and all-pairs shortest paths give the tightest bound of every pair.

code               theory
----               ------
Edge               a constraint y − x ≤ w
upper[x][y]        the length of the shortest path from x to y: the largest y − x
upper[x][x]        0; for an iterated variable the largest distance between two of its events
sure               nodes a path may run through: variables that are bound whenever the alternative matches
contradiction      a cycle of negative length: no events can keep these bounds

An iterated variable is one node: each bound holds for all its events, so that events of one bag are twins
with the same edges. A shortest path from one twin to another runs through some other variable (a third twin
would only add a cycle of length ≥ 0), which gives `upper[x][x]`; and a negative cycle through twins is a
negative closed walk through the one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

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


Upper = Mapping[tuple[str, str], int]  # (x, y) → the largest y − x; unbounded pairs are missing


def close(
    variables: Sequence[str],
    edges: Iterable[Edge],
    *,
    iterated: frozenset[str] = frozenset(),
    sure: frozenset[str] | None = None,
    window_us: int | None = None,
) -> Upper:
    """The tightest bounds that follow from the edges, by Floyd and Warshall.

    A variable that is less than 0 after itself can never be bound.

    Parameters
    ----------
    variables
        The nodes.
    edges
        The constraints between them.
    iterated
        Variables that hold several events.
    sure
        The nodes paths may run through; all of them by default.
    window_us
        W of WITHIN, for two events of one variable; between two variables it is an edge.

    Examples
    --------
    >>> upper = close("abc", [Edge("a", "b", 5), Edge("b", "c", 10), Edge("c", "a", -2)])
    >>> upper["a", "c"], upper["c", "b"], ("b", "a") in upper
    (15, 3, True)
    """
    upper: dict[tuple[str, str], int] = {(name, name): 0 for name in variables}
    for edge in edges:
        pair = (edge.start, edge.end)
        upper[pair] = min(edge.most_us, upper.get(pair, edge.most_us))
    for middle in variables if sure is None else [name for name in variables if name in sure]:
        into = [(start, upper[start, middle]) for start in variables if (start, middle) in upper]
        out = [(end, upper[middle, end]) for end in variables if (middle, end) in upper]
        for start, first in into:
            for end, second in out:
                known = upper.get((start, end))
                if known is None or first + second < known:
                    upper[start, end] = first + second
    for name in iterated.intersection(variables):
        if upper[name, name] >= 0:
            _spread(upper, name, variables if sure is None else sure, window_us)
    return upper


def _spread(upper: dict[tuple[str, str], int], name: str, sure: Iterable[str], window_us: int | None) -> None:
    """The largest distance between two events of one iterated variable."""
    ways = [
        upper[name, other] + upper[other, name]
        for other in sure
        if other != name and (name, other) in upper and (other, name) in upper
    ]
    if window_us is not None:
        ways.append(window_us - 1)
    if ways:
        upper[name, name] = min(ways)
    else:
        del upper[name, name]


def negative_cycle(variables: Sequence[str], edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """Edges of one cycle whose bounds cannot all hold, or none (Bellman and Ford).

    Examples
    --------
    >>> [edge.most_us for edge in negative_cycle("ab", [Edge("a", "b", 5), Edge("b", "a", -10)])]
    [5, -10]
    """
    reached = dict.fromkeys(variables, 0)
    by: dict[str, Edge] = {}
    last: str | None = None
    for _ in variables:
        last = None
        for edge in edges:
            if reached[edge.start] + edge.most_us < reached[edge.end]:
                reached[edge.end] = reached[edge.start] + edge.most_us
                by[edge.end] = edge
                last = edge.end
    if last is None:
        return ()
    for _ in variables:  # after as many steps back as there are nodes, one is inside the cycle
        last = by[last].start
    cycle = [by[last]]
    while cycle[-1].start != last:
        cycle.append(by[cycle[-1].start])
    return tuple(reversed(cycle))
