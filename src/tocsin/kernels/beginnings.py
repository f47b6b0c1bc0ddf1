"""Time-outs: beginnings of a pattern that nothing goes on with (SEMANTICS §6, D9, D65).

A time-out of k parts is a match of the first k parts whose events no match of the first k + 1 has. Beginnings are
searched for in the lists of the whole pattern, so that rows are sorted once, and from the longest to the shortest: what
is remembered of the longer ones is two numbers for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.errors import unknown_node
from tocsin.kernels.conditions import Conditions
from tocsin.kernels.hashes import Hashes, match_hashes, row_digests
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Integers, Mask, Matches, differs
from tocsin.kernels.search.guards import Closed, spoken_of
from tocsin.language import expressions as ex

Find = Callable[[alg.Query], Iterable[Matches]]


def parts_of(query: alg.Query) -> tuple[alg.Node, ...]:
    """The parts of the SEQ at the top, one of which a time-out lacks."""
    node = query.core
    while isinstance(node, alg.Absent):
        node = node.part
    assert isinstance(node, alg.Sequence)  # others have no time-outs
    return node.parts


def missing_variables(query: alg.Query) -> tuple[str, ...]:
    """For a time-out of 1, 2, … parts the variable that is missing: the first of the next part.

    Examples
    --------
    >>> a, b, c = (alg.Event(name.upper(), name) for name in "abc")
    >>> missing_variables(alg.Query(alg.Within(alg.Sequence((a, alg.All((b, c)))), 10), timeouts=True))
    ('b',)
    """
    return tuple(next(iter(alg.variables_of(part))) for part in parts_of(query)[1:])


def beginning(query: alg.Query, number: int) -> alg.Query:
    """The query of the first parts, without conditions: the absences that these parts decide."""
    parts = parts_of(query)
    names = alg.variables_of(alg.Sequence(parts[:number])).keys()
    core: alg.Node = alg.Sequence(tuple(_decided(part, names, may_grow=number < len(parts)) for part in parts[:number]))
    outer = query.core
    absences = []
    while isinstance(outer, alg.Absent):
        absences.append(outer)
        outer = outer.part
    for absent in reversed(absences):
        if spoken_of(absent) <= names and (upper := _of_events(absent.upper, names)):
            core = Closed(core, absent.type, absent.variable, absent.condition, absent.lower, upper, where=absent.where)
    assert query.window_us is not None
    return alg.Query(alg.Within(core, query.window_us), query.partition)


def _decided(node: alg.Node, names: Iterable[str], *, may_grow: bool) -> alg.Node:
    """A part with the absences inside it that count already."""
    match node:
        case alg.Sequence() | alg.All() | alg.Any() | alg.Repeat():
            return node.map_children(lambda part: _decided(part, names, may_grow=may_grow))
        case alg.Absent():
            inner = _decided(node.part, names, may_grow=may_grow)
            upper = _of_events(node.upper, names)
            lower = _of_events(node.lower, names) if may_grow else node.lower
            if not upper or not lower or not spoken_of(node) <= set(names):
                return inner
            return Closed(inner, node.type, node.variable, node.condition, lower, upper, may_grow, where=node.where)
        case alg.Event():
            return node
        case _:
            raise unknown_node(node, "The search of time-outs")


def _of_events(bounds: Sequence[alg.Bound], names: Iterable[str]) -> tuple[alg.Bound, ...]:
    """The bounds by events of some variables; with one of them, that of the window says nothing new."""
    known = set(names)
    found = []
    for bound in bounds:
        if not isinstance(bound.anchor, alg.Whole):
            variables = tuple(name for name in bound.anchor.variables if name in known)
            if variables:
                found.append(replace(bound, anchor=replace(bound.anchor, variables=variables)))
    return tuple(found)


def conditions_of(query: alg.Query, known: Conditions) -> Conditions:
    """The conditions of a whole pattern that speak of nothing but its beginning."""
    names = query.variables.keys()
    late = {each.variable for each in known.residual_around}
    return replace(
        known,
        tests=tuple(test for test in known.tests if ex.variables_in(test.conjunct) <= names),
        residual=tuple(part for part in known.residual if ex.variables_in(part) <= names),
        residual_around=tuple(each for each in alg.absences_in(query.core) if each.variable in late),
    )


def with_timeouts(query: alg.Query, whole: Iterable[Matches], find: Find, rows: int) -> Iterator[Matches]:
    """The matches, and behind them the time-outs; `find` finds those of a beginning among so many rows."""
    parts = parts_of(query)
    names = [alg.variables_of(part) for part in parts]
    digests = row_digests(rows)

    def bindings(matches: Matches, size: int) -> Hashes:
        """Two numbers that tell which rows the variables of the first parts hold."""
        events = {name: matches.events[name] for part in names[:size] for name in part}
        # The interval follows from these, and is another for the longer match.
        nothing = np.zeros(len(matches), np.int64)
        return match_hashes(Matches(nothing, nothing, events), digests)

    # What an absence behind its last event has blocked has come all the same: only a search without it tells.
    waits = any(isinstance(bound.anchor, alg.Whole) for each in alg.absences_in(query.core) for bound in each.upper)
    longer = []
    for matches in whole:
        longer += [] if waits else [bindings(matches, len(parts) - 1)]
        yield replace(matches, missing=np.zeros(len(matches), np.int64))
    if waits:
        longer = [bindings(matches, len(parts) - 1) for matches in find(beginning(query, len(parts)))]
    for number in range(len(parts) - 1, 0, -1):
        extended, longer = _Seen(longer), []
        for matches in find(beginning(query, number)):
            longer.append(bindings(matches, number - 1))
            left = take(matches, ~extended.has(*bindings(matches, number)))
            if len(left):
                yield _completed(left, query, number)


def _completed(matches: Matches, query: alg.Query, number: int) -> Matches:
    """Time-outs of so many parts with all variables of the query."""
    nothing = Bag(np.zeros(len(matches) + 1, np.int64), np.empty(0, np.int64))
    unbound = np.full(len(matches), -1, np.int64)
    events = {
        name: matches.events.get(name, nothing if kind.iterated else unbound) for name, kind in query.variables.items()
    }
    return replace(matches, events=events, missing=np.full(len(matches), number, np.int64))


class _Seen:
    """Pairs of numbers that were seen, to be asked for others."""

    def __init__(self, parts: Sequence[Hashes]) -> None:
        nothing = np.empty(0, np.int64)
        first = np.concatenate([nothing, *(one for one, _ in parts)])
        second = np.concatenate([nothing, *(other for _, other in parts)])
        order = np.lexsort((second, first))
        kept = order[differs(first[order], second[order])]
        self.first, self.second = first[kept], second[kept]

    def has(self, first: Integers, second: Integers) -> Mask:
        """Which of other pairs were seen."""
        found = np.zeros(len(first), np.bool_)
        asked, place = np.arange(len(first)), np.searchsorted(self.first, first)
        # Different pairs hardly ever have the same first number, so that this goes round once.
        while len(asked):
            inside = np.flatnonzero(place < len(self.first))
            near = inside[self.first[place[inside]] == first[asked[inside]]]
            asked, place = asked[near], place[near]
            found[asked] |= self.second[place] == second[asked]
            place = place + 1
        return found
