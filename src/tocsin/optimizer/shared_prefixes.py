"""Common beginnings of the patterns of several queries: found once, every one of them goes on from there.

code        theory
----        ------
Prefix      a node of the network of rules that several rules reach (node reuse)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection

LEAST_SIZE = 2  # the candidates of one event are one list in any case


@dataclass(frozen=True)
class Prefix:
    """The first events of several patterns: of the same types, under the same conditions and distances."""

    size: int  # how many events
    members: tuple[int, ...]  # the numbers of the queries
    # The place of the next shorter prefix that it goes on from, in the list that it stands in; None: there is none.
    before: int | None = None


def prefixes(queries: Sequence[alg.Query]) -> list[Prefix]:
    """The common beginnings of queries, the shorter before the longer; a query goes on from its longest."""
    groups: dict[Hashable, list[int]] = {}
    sizes: dict[Hashable, int] = {}
    for number, query in enumerate(queries):
        for size, key in _beginnings(query):
            groups.setdefault(key, []).append(number)
            sizes[key] = size
    shared = sorted(((sizes[key], members) for key, members in groups.items() if len(members) > 1))
    # Where a longer one serves the same queries, the shorter is of no use.
    useful = [
        (size, members)
        for size, members in shared
        if not any(other == members and longer > size for longer, other in shared)
    ]
    found: list[Prefix] = []
    for size, members in useful:
        before = [place for place, one in enumerate(found) if one.size < size and set(members) <= set(one.members)]
        found.append(Prefix(size, tuple(members), before[-1] if before else None))
    return found


def longest(found: Sequence[Prefix], member: int) -> int | None:
    """The place of the longest prefix of a query."""
    places = [place for place, one in enumerate(found) if member in one.members]
    return places[-1] if places else None


def parts_of(core: alg.Node) -> tuple[alg.Node, ...]:
    """The parts of a conjunction, below the absences around it; none of any other pattern."""
    while isinstance(core, alg.Around):
        core = core.part
    return core.parts if isinstance(core, alg.All) else ()


def first_variables(query: alg.Query, size: int) -> tuple[str, ...]:
    """The variables of the first events of a conjunction."""
    return tuple(part.variable for part in parts_of(query.core)[:size] if isinstance(part, alg.Event))


def _beginnings(query: alg.Query) -> Iterator[tuple[int, Hashable]]:
    """Every number of first events, and what is asked of them, whatever they are called."""
    if query.selection is not Selection.ANY:
        return
    types: list[str | None] = []
    places: dict[str, str] = {}
    conjuncts = list(query.conjuncts)
    for part in parts_of(query.core):
        if not isinstance(part, alg.Event):
            return
        places[part.variable] = str(len(places))
        types.append(part.type)
        if len(types) < LEAST_SIZE:
            continue
        own = [conjunct for conjunct in conjuncts if ex.variables_in(conjunct) <= places.keys()]
        asked = frozenset(ex.renamed(conjunct, places.__getitem__) for conjunct in own)
        yield len(types), (query.partition, tuple(types), asked)
