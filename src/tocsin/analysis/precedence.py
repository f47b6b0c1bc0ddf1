"""Which variables of a pattern always come before which others, whatever alternative matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tocsin import errors
from tocsin.algebra import nodes as alg


def always_before(node: alg.Node) -> frozenset[tuple[str, str]]:
    """Pairs (x, y) such that, whenever a match binds both, all events of x are before all of y.

    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> always_before(alg.Sequence((a, b)))
    frozenset({('a', 'b')})
    >>> always_before(alg.Any((alg.Sequence((a, b)), alg.Sequence((b, a)))))
    frozenset()
    """
    match node:
        case alg.Sequence() | alg.Adjacent():
            names = [alg.variables_of(part) for part in node.parts]
            within = [always_before(part) for part in node.parts]
            places = _places(names)
            across = {(x, y) for i, left in enumerate(names) for right in names[i + 1 :] for x in left for y in right}
            # A variable of several parts (ACEL) is before another only if all its events are.
            return frozenset(
                (x, y)
                for x, y in across.union(*within)
                if places[x][-1] <= places[y][0] and _is_everywhere((x, y), places, within)
            )
        case alg.All():
            return frozenset[tuple[str, str]]().union(*map(always_before, node.parts))
        case alg.Any():
            within = [always_before(part) for part in node.parts]
            places = _places([alg.variables_of(part) for part in node.parts])
            return frozenset(pair for order in within for pair in order if _is_everywhere(pair, places, within))
        case alg.Repeat() if node.most != 1:
            return frozenset()  # order inside a copy says nothing across copies
        case alg.Bind() | alg.Derive():
            return frozenset(pair for pair in always_before(node.part) if node.variable not in pair)
        case alg.Repeat() | alg.Around() | alg.Filter() | alg.Within() | alg.Emit() | alg.Project():
            return always_before(node.part)
        case alg.Event() | alg.NextOf() | alg.Both() | alg.RepeatAdjacent():
            return frozenset()
        case _:
            raise errors.unknown_node(node, "The order of variables")


def _places(names: Sequence[Iterable[str]]) -> dict[str, list[int]]:
    """The numbers of the parts that hold each variable."""
    places: dict[str, list[int]] = {}
    for number, held in enumerate(names):
        for name in held:
            places.setdefault(name, []).append(number)
    return places


def _is_everywhere(
    pair: tuple[str, str], places: Mapping[str, list[int]], within: Sequence[frozenset[tuple[str, str]]]
) -> bool:
    """Whether every part that holds both variables orders them so."""
    x, y = (places[name] for name in pair)
    if len(x) == len(y) == 1:
        return x != y or pair in within[x[0]]
    return all(pair in within[number] for number in set(x).intersection(y))
