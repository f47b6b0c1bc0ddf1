"""A pattern as a disjunction: every choice of OR branches and optional elements, each a plain conjunction.

What a plan or the temporal network may assume holds per alternative: all its variables are bound, and nothing else
is. Enumerating is exponential in the number of choices, so it is capped; callers say what they do without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.language import expressions as ex

MOST_ALTERNATIVES = 256
# The nodes that only ACEL writes, whatever their order.
OF_ACEL = (alg.NextOf, alg.Adjacent, alg.RepeatAdjacent, alg.Both, alg.Bind, alg.Project, alg.Derive)


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy a pattern."""

    types: tuple[tuple[str, str | None], ...] = ()  # the bound variables and their event types, in order of appearance
    # Pairs `(x, y)`: every event of x is strictly before every event of y.
    before: frozenset[tuple[str, str]] = frozenset()
    iterated: frozenset[str] = frozenset()  # variables that may hold several events
    around: tuple[alg.Around, ...] = ()  # the absences that guard this alternative, and what is gathered around it

    @property
    def variables(self) -> tuple[str, ...]:
        """The bound variables in order of appearance."""
        return tuple(name for name, _ in self.types)

    @property
    def absences(self) -> tuple[alg.Absent, ...]:
        """The absences that guard it."""
        return tuple(each for each in self.around if isinstance(each, alg.Absent))

    @classmethod
    def joined(cls, parts: Sequence[Alternative], *, is_ordered: bool) -> Alternative:
        """All of them; if they are ordered, all of one before all of the next."""
        before = {pair for part in parts for pair in part.before}
        if is_ordered:
            names = [part.variables for part in parts]
            before.update(
                pair
                for number, left in enumerate(names)
                for pair in product(left, chain.from_iterable(names[number + 1 :]))
            )
        return cls(
            tuple(item for part in parts for item in part.types),
            frozenset(before),
            frozenset(name for part in parts for name in part.iterated),
            tuple(each for part in parts for each in part.around),
        )

    def repeated(self) -> Alternative:
        """Several copies in sequence: order inside a copy says nothing across copies."""
        return Alternative(self.types, frozenset(), frozenset(self.variables), self.around)


class NoAlternativesError(Exception):
    """A pattern that is not a short list of plain conjunctions."""


class TooManyAlternativesError(NoAlternativesError):
    """More than `MOST_ALTERNATIVES` ways to satisfy one pattern."""


class SharedVariablesError(NoAlternativesError):
    """An operator of ACEL, where a variable may hold events of several places and an event several variables."""


def alternatives(node: alg.Node) -> tuple[Alternative, ...]:
    """All ways to satisfy a SASE+ or rule pattern, each once.

    Raises `TooManyAlternativesError` when there are more than `MOST_ALTERNATIVES`. Raises `SharedVariablesError` when
    the pattern has operators that only ACEL writes.
    """
    if is_of_acel(node):
        raise SharedVariablesError
    match node:
        case alg.Event():
            return (Alternative(((node.variable, node.type),)),)
        case alg.Sequence():
            return _fold(node.parts, is_ordered=True)
        case alg.All():
            return _fold(node.parts, is_ordered=False)
        case alg.Any():
            return _distinct(found for part in node.parts for found in alternatives(part))
        case alg.Repeat():
            copies = alternatives(node.part)
            may_be_empty = node.least == 0 or any(not copy.types for copy in copies)
            if node.most != 1:
                # Different copies may choose differently, so several copies may bind every variable of every choice;
                # each subset of choices is an alternative of its own.
                copies = _subsets(copies)
            return _distinct(((Alternative(),) if may_be_empty else ()) + copies)
        case alg.Around():
            guard = Alternative(around=(node,))
            return _distinct(Alternative.joined((found, guard), is_ordered=False) for found in alternatives(node.part))
        case alg.Filter() | alg.Within() | alg.Emit():
            return alternatives(node.part)
        case _:
            raise errors.unknown_node(node, "The list of alternatives")


def is_of_acel(node: alg.Node) -> bool:
    """Whether a node is one that only ACEL writes."""
    by_position = isinstance(node, alg.Sequence | alg.Repeat) and node.order is alg.Order.POSITION
    return by_position or isinstance(node, OF_ACEL)


def is_formula(query: alg.Query) -> bool:
    """Whether a query is ACEL's: it has an operator or a predicate that SASE+ does not have."""
    return any(
        is_of_acel(node)
        or (
            isinstance(node, alg.Filter)
            and any(isinstance(inner, ex.Every | ex.BagPredicate) for inner in node.condition.walk())
        )
        for node in query.pattern.walk()
    )


def _fold(parts: tuple[alg.Node, ...], *, is_ordered: bool) -> tuple[Alternative, ...]:
    found: tuple[Alternative, ...] = (Alternative(),)
    # Parts without a choice are joined at once: one after the other, each would copy the order of all before it.
    for is_plain, steps in groupby(map(alternatives, parts), key=lambda step: len(step) == 1):
        if is_plain:
            run = [each for step in steps for each in step]
            found = _distinct(Alternative.joined((left, *run), is_ordered=is_ordered) for left in found)
            continue
        for step in steps:
            found = _distinct(
                Alternative.joined((left, right), is_ordered=is_ordered) for left in found for right in step
            )
    return found


def _subsets(copies: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    joined: tuple[Alternative, ...] = (Alternative(),)
    for copy in copies:
        joined = _distinct([*joined, *(_merge(known, copy) for known in joined)])
    return tuple(found.repeated() for found in joined if found.types)


def _merge(known: Alternative, copy: Alternative) -> Alternative:
    new = tuple(item for item in copy.types if item not in known.types)
    return Alternative(known.types + new, frozenset(), frozenset(), known.around + copy.around)


def _distinct(found: Iterable[Alternative]) -> tuple[Alternative, ...]:
    unique: dict[Alternative, None] = {}
    for alternative in found:
        unique[alternative] = None
        if len(unique) > MOST_ALTERNATIVES:
            raise TooManyAlternativesError
    return tuple(unique)
