"""Shortest paths of a temporal network, against Floyd and Warshall on the same edges, the window as n² of them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.analysis.closure import Edge, Upper, negative_cycle, without_implied

NAMES = "abcdef"
BOUNDS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(-4, 8)), max_size=9)
SOME = st.frozensets(st.sampled_from(NAMES))
Known = dict[tuple[str, str], int]


def floyd_warshall(bounds: list[tuple[str, str, int]], sure: frozenset[str], most_us: int | None) -> Known:
    found: Known = {} if most_us is None else dict.fromkeys(itertools.permutations(NAMES, 2), most_us)
    found |= {(name, name): 0 for name in NAMES}
    for x, y, most in bounds:
        found[x, y] = min(most, found.get((x, y), most))
    for middle, x, y in itertools.product(sorted(sure), NAMES, NAMES):
        if (x, middle) in found and (middle, y) in found:
            found[x, y] = min(found[x, middle] + found[middle, y], found.get((x, y), 10**9))
    return found


def spread(found: Known, name: str, sure: frozenset[str], most_us: int | None) -> int | None:
    ways = [] if most_us is None else [most_us]
    ways += [
        found[name, other] + found[other, name]
        for other in sure - {name}
        if (name, other) in found and (other, name) in found
    ]
    return min(ways, default=None)


@given(BOUNDS, SOME, SOME, st.none() | st.integers(0, 12))
def test_distances_are_those_of_floyd_and_warshall(bounds, sure, iterated, most_us):
    bounds = [bound for bound in bounds if bound[0] != bound[1]]
    edges = [Edge(*bound) for bound in bounds]
    inner = [edge for edge in edges if edge.start in sure and edge.end in sure]
    window = None if most_us is None else Edge("", "", most_us)
    cycle = negative_cycle(sorted(sure), inner, window)
    expected = floyd_warshall(bounds, sure, most_us)
    assert bool(cycle) == any(expected[name, name] < 0 for name in sure)
    if cycle:
        assert sum(edge.most_us for edge in cycle) < 0
        assert all(one.end == two.start for one, two in itertools.pairwise((*cycle, cycle[0])))
        return
    upper = Upper(NAMES, edges, sure=sure, iterated=iterated, most_us=most_us)
    for x in NAMES:
        if expected[x, x] == 0 and x in iterated:
            expected.pop((x, x))
            if (wide := spread(expected, x, sure, most_us)) is not None:
                expected[x, x] = wide
    for x in NAMES:
        row = [expected.get((x, y)) for y in NAMES]
        assert [upper.get(x, y) for y in NAMES] == row
        assert upper.furthest(x) == (None if None in row else max(row))


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12), SOME)
def test_implied_pairs_follow_from_those_that_are_kept(pairs, through):
    """Also where the pairs are not an order: paths of ordered pairs through these variables reach the same ones."""

    def reached(edges: list[tuple[str, str]]) -> set[tuple[str, str]]:
        found = {(x, y) for x, y in edges if x != y}
        for middle, x, y in itertools.product(sorted(through), NAMES, NAMES):
            if (x, middle) in found and (middle, y) in found:
                found.add((x, y))
        return found

    kept = without_implied(pairs, through)
    assert set(kept) <= set(pairs)
    assert reached(kept) == reached(pairs)


@pytest.mark.parametrize("size", [3, 40])
def test_a_sequence_needs_one_pair_per_step(size):
    names = [f"v{number:02}" for number in range(size)]
    assert sorted(without_implied(itertools.combinations(names, 2), frozenset(names))) == [*itertools.pairwise(names)]
