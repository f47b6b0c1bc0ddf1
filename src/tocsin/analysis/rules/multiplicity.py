"""How many matches of a rule one event can be in, and how many partial matches a store of them would hold.

code            theory
----            ------
Reads           r_j, as curves: how many events of a variable may come within a time, of all keys and of one
choices         Π_j α_j(len_j), len_j = the shortest window of j around those chosen before it
kept_matches    S_left of the digest (§3.7): a left match is dropped when no right event can join it any more

Each combination is counted once, whatever the order in which its events come. All events of a match share the rule's
key when it has one: then at most as many can join an event as its key has. Variables of which it does not matter which
holds which event (`unordered`) are chosen as a bag: C(n + k − 1, k) in place of nᵏ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.analysis.absences import largest
from tocsin.analysis.arrivals import Arrivals
from tocsin.analysis.temporal import Closure
from tocsin.source import Place


@dataclass(frozen=True)
class Reads:
    """What is known of the arrivals of a rule's variables: all events, and those that one match can choose from."""

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
        lengths = [
            most - least
            for before in order[:place]
            for least, most in [closure.distance(before, name)]
            if least is not None and most is not None
        ]
        if not lengths or name not in reads.of_key:
            return None
        total *= reads.of_key[name].within(min(lengths))
    return total


def _as_bag(closure: Closure, reference: str, group: tuple[str, ...], reads: Reads) -> int | None:
    types = dict(closure.alternative.types)
    ends = [closure.distance(reference, name) for name in group]
    first = [least for least, _ in ends if least is not None]
    last = [most for _, most in ends if most is not None]
    if len({types[name] for name in group}) > 1 or len(first) < len(group) or len(last) < len(group):
        return None
    if group[0] not in reads.of_key:
        return None
    candidates = reads.of_key[group[0]].within(max(last) - min(first))
    return math.comb(candidates + len(group) - 1, len(group))


@dataclass(frozen=True)
class JoinStores:
    """What one join of a chain, in the order of the text, would keep: matches so far, and events to join them with."""

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
    found: list[JoinStores] = []
    for place, name in enumerate(order[1:], 1):
        left = [before for before in order[:place] if before in closure.variables]
        sizes = [_kept_matches(closure, reference, left, name, reads, lateness_us, groups) for reference in left]
        present = [size for size in sizes if size is not None]
        back = largest(closure.upper(name, before) for before in left)
        if not present or back is None or name not in reads.of_all:
            return None
        found.append(JoinStores(name, min(present), reads.of_all[name].within(max(0, back) + lateness_us)))
    return tuple(found)


def _kept_matches(
    closure: Closure,
    reference: str,
    left: Sequence[str],
    right: str,
    reads: Reads,
    lateness_us: int,
    groups: tuple[tuple[str, ...], ...],
) -> int | None:
    until = closure.upper(reference, right)
    times = choices(closure, reference, left, reads, groups)
    if until is None or times is None or reference not in reads.of_all:
        return None
    return reads.of_all[reference].within(max(0, until) + lateness_us) * times


def in_text_order(query: alg.Query) -> tuple[str, ...]:
    """All variables of a rule in the order in which its text has them, absent and gathered ones too."""
    places = {
        node.variable: node.where.start if isinstance(node.where, Place) else 0
        for node in query.pattern.walk()
        if isinstance(node, alg.Event | alg.Around)
    }
    return tuple(sorted(places, key=lambda name: places[name]))
