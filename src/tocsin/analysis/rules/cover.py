"""How many matches a rule can have by its equalities alone: the bound of Atserias, Grohe and Marx.

Every class of equal attributes is a vertex, every variable an edge that joins the classes it has attributes in. For
weights x_v ≥ 0 of the edges that cover each vertex with at least 1, there are at most Π N_v^x_v combinations of
*values* of the joined attributes, where N_v is the number of events of v in the window. For a triangle, `b.from =
a.to`, `c.from = b.to`, `a.from = c.to`, all weights are 1/2: n^1.5 in place of n³. Variables that join nothing count in
full.

It is about values, not events: two transfers between the same accounts are two events with one value. With at most m
events of each variable that agree on all joined attributes, the number of matches is mᵏ times as large. Only where m is
known is it a bound on matches; our own bound does not use it, because our engine keeps events, not matches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from tocsin.algebra import nodes as alg
from tocsin.analysis.keys import keys

MOST_CORNERS = 20_000


def cover_bound(query: alg.Query, sizes: Mapping[str, int], *, alike: int = 1) -> int:
    """The most combinations of positive variables, for numbers of events of each and of those that are alike.

    Examples
    --------
    >>> import tocsin
    >>> p = tocsin.rules('''template T { from : Integer, to : Integer }
    ...     rule Triangle where a : T  b : T { from = a.to }  c : T { from = b.to, to = a.from }
    ...     when b in a [0 s, 9 s] c in a [0 s, 9 s]''')
    >>> cover_bound(p.program.rules[0].query, {"a": 100, "b": 100, "c": 100})
    1000
    """
    names = [name for name in sizes if sizes[name] > 0]
    if len(names) < len(sizes):
        return 0
    classes = [{variable for variable, _ in each.members} & set(names) for each in keys(query).classes]
    joined = [name for name in names if any(name in each for each in classes)]
    alone = math.prod(sizes[name] for name in names if name not in joined)
    weights = fractional_cover(joined, classes, {name: math.log(sizes[name]) for name in joined})
    common = math.lcm(*(weight.denominator for weight in weights.values())) if weights else 1
    product = math.prod(sizes[name] ** int(weight * common) for name, weight in weights.items())
    return alone * _root(product, common) * math.prod([alike] * len(names))


def fractional_cover(
    edges: Sequence[str], vertices: Sequence[set[str]], costs: Mapping[str, float]
) -> dict[str, Fraction]:
    """The cheapest weights of edges that cover every vertex, exactly: the best corner of the polytope of covers.

    Examples
    --------
    >>> cover = fractional_cover("abc", [{"a", "b"}, {"b", "c"}, {"a", "c"}], dict.fromkeys("abc", 1.0))
    >>> {name: str(weight) for name, weight in cover.items()}
    {'a': '1/2', 'b': '1/2', 'c': '1/2'}
    """
    # Each row says Σ row[e] x_e ≥ bound; a corner is where as many rows as there are edges hold with equality.
    covered = [([Fraction(name in vertex) for name in edges], Fraction(1)) for vertex in vertices if vertex]
    positive = [([Fraction(one == other) for other in edges], Fraction(0)) for one in edges]
    rows = covered + positive
    if math.comb(len(rows), len(edges)) > MOST_CORNERS:
        return dict.fromkeys(edges, Fraction(1))  # a cover as well, if not the best
    best: tuple[float, dict[str, Fraction]] | None = None
    for chosen in combinations(rows, len(edges)):
        corner = _solve([row for row, _ in chosen], [bound for _, bound in chosen])
        if corner is None or any(_dot(row, corner) < bound for row, bound in rows):
            continue
        cost = sum(costs[name] * float(weight) for name, weight in zip(edges, corner, strict=True))
        if best is None or cost < best[0] - 1e-12:
            best = (cost, dict(zip(edges, corner, strict=True)))
    return {} if best is None else best[1]


def _dot(row: Sequence[Fraction], point: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(row, point, strict=True)), Fraction(0))


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """The solution of as many equations as unknowns; None when there is not exactly one."""
    rows = [[*row, bound] for row, bound in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = next((at for at in range(column, size) if rows[at][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        rows[column] = [value / head for value in rows[column]]
        for at in range(size):
            if at != column and rows[at][column]:
                factor = rows[at][column]
                rows[at] = [value - factor * own for value, own in zip(rows[at], rows[column], strict=True)]
    return [row[-1] for row in rows]


def _root(number: int, degree: int) -> int:
    """The largest integer whose power of the degree is not above the number."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low
