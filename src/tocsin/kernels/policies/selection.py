"""Selection policies as filters over the any-match result (SEMANTICS §4, R2, R6, R17, R45)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.expressions.interpret import Event, holds
from tocsin.gaps import Gaps
from tocsin.kernels.model import Integers, Mask, Rows, Source, is_flagged, reader
from tocsin.kernels.policies.flat import Flat, groups_of
from tocsin.language import expressions as ex

Bound = tuple[tuple[str, int], ...]


def are_consecutive(view: Flat) -> Mask:
    """Which matches have events at consecutive positions; what a position counts is in `rows.order` (R6)."""
    kept: Mask = view.last - view.first + 1 == view.sizes
    return kept


def conditions_of_next(query: alg.Query, sources: Sequence[Source]) -> dict[str, tuple[ex.Expression, ...]]:
    """For each variable, the conjuncts that the test of `next` evaluates on Python values when it binds an event to it.

    Left out are conjuncts that are final for the variable; those the flags decide; and those that speak of other
    variables only and that no part of a match can break, because each choice of events in the part is one in the whole.
    """
    by_flags = [condition for source in sources for condition in source.conditions]
    written = [
        conjunct
        for node in query.pattern.walk()
        if isinstance(node, alg.Filter)
        for conjunct in ex.conjuncts(node.condition)
    ]
    return {
        variable: tuple(
            conjunct
            for conjunct in written
            if conjunct not in by_flags
            and not is_final(conjunct, variable)
            and (variable in ex.variables_in(conjunct) or needs_whole_bags(conjunct))
        )
        for variable in query.variables
    }


def alternatives(node: alg.Node) -> dict[str, tuple[str, ...]]:
    """For each variable, those of the element that it belongs to: all of an OR of single events, or itself (R45).

    Refuses a variable that belongs to several elements, where only the derivation of a match decides.
    """
    found: dict[str, tuple[str, ...]] = {}

    def visit(inner: alg.Node) -> None:
        if isinstance(inner, alg.Event) or (isinstance(inner, alg.Any) and inner.is_one_element):
            names = tuple(sorted(alg.variables_of(inner)))
            for name in names:
                if found.setdefault(name, names) != names:
                    raise errors.UnsupportedError(
                        f"Under `SEMANTICS next` the variable `{name}` is an alternative in one OR branch and stands "
                        "elsewhere in another, beside AND or NOT.",
                        gap=Gaps.ALTERNATIVE_AND_ELEMENT,
                        where=inner.where,
                    )
            return
        for child in inner.children():
            visit(child)

    visit(node)
    return found


class NextTest:
    """The test of `next` over the rows of one task; its index and its answers serve many calls."""

    def __init__(self, rows: Rows, query: alg.Query, sources: Sequence[Source]) -> None:
        if rows.order is None:
            raise errors.InternalError("`next` speaks of positions, and the rows have none.")
        self._rows = rows
        by = np.lexsort((rows.order, groups_of(rows)))
        # place: the rank of a row by (group, position), so that what lies between two rows of a group is of the group
        self._places = np.empty(len(by), dtype=np.int64)
        self._places[by] = np.arange(len(by), dtype=np.int64)
        self._groups = np.unique(groups_of(rows), return_inverse=True)[1].reshape(-1)
        self._times = np.unique(rows.ts)
        candidates = {source.variable: by[is_flagged(rows.flags[by], source.bit)] for source in sources}
        self._candidates = {name: candidates[name] for name in query.variables}
        self._conditions = {
            name: [(holds(conjunct), ex.variables_in(conjunct)) for conjunct in conjuncts]
            for name, conjuncts in conditions_of_next(query, sources).items()
        }
        self._mentioned = {
            name: frozenset[str]().union(*(variables for _, variables in tests))
            for name, tests in self._conditions.items()
        }
        self._alternatives = alternatives(query.core)
        self._event = reader(rows)
        self._answers: dict[tuple[str, int, int, Bound], bool] = {}

    def passes(self, view: Flat) -> Mask:
        """Which matches bind no event while one before it could have been bound."""
        kept: Mask = np.ones(len(view), dtype=np.bool_)
        match = np.repeat(np.arange(len(view), dtype=np.int64), np.diff(view.offsets))
        is_first = np.zeros(len(match), dtype=np.bool_)
        is_first[view.offsets[:-1]] = True
        doubtful: list[tuple[str, Integers, Integers, Integers]] = []
        for number, bound in enumerate(view.names):
            every = np.flatnonzero((view.variables == number) & ~is_first)
            for name in self._alternatives[bound]:
                low, high = self._between(name, view.rows[every - 1], view.rows[every], view.floors[every])
                slots, low, high = (each[high > low] for each in (every, low, high))
                if self._conditions[name]:
                    doubtful.append((name, slots, low, high))
                else:
                    kept[match[slots]] = False
        for name, slots, low, high in doubtful:
            for slot, left, right in zip(slots.tolist(), low.tolist(), high.tolist(), strict=True):
                start = int(view.offsets[match[slot]])
                if kept[match[slot]] and self._is_passed_over(view, start, slot, name, left, right):
                    kept[match[slot]] = False
        return kept

    def _between(self, name: str, before: Integers, at: Integers, floors: Integers) -> tuple[Integers, Integers]:
        """Where the candidates of a variable begin and end that lie strictly between two rows and after a floor."""
        candidates = self._candidates[name]
        places = self._places[candidates]
        low = np.searchsorted(places, self._places[before], side="right")
        high = np.searchsorted(places, self._places[at], side="left")
        # Position refines time, so that (group, time) increases along the places too.
        width = len(self._times) + 1
        instants = self._groups[candidates] * width + np.searchsorted(self._times, self._rows.ts[candidates])
        allowed = self._groups[at] * width + np.searchsorted(self._times, floors, side="right")
        return np.maximum(low, np.searchsorted(instants, allowed, side="left")), high

    def _is_passed_over(self, view: Flat, start: int, slot: int, name: str, low: int, high: int) -> bool:
        """Whether one of the candidates `low:high` of a variable could have been bound in a slot's place."""
        mentioned = self._mentioned[name]
        numbers, rows = view.variables[start:slot].tolist(), view.rows[start:slot].tolist()
        bound = tuple(
            (view.names[number], row)
            for number, row in zip(numbers, rows, strict=True)
            if view.names[number] in mentioned
        )
        key = (name, low, high, bound)
        if key not in self._answers:
            self._answers[key] = self._could_bind(*key)
        return self._answers[key]

    def _could_bind(self, name: str, low: int, high: int, bound: Bound) -> bool:
        bags: dict[str, list[Event]] = {}
        for variable, row in bound:
            bags.setdefault(variable, []).append(self._event(row))
        earlier = bags.get(name, [])
        known = bags.keys() | {name}
        counting = [test for test, variables in self._conditions[name] if variables <= known]
        return not counting or any(
            all(test(now) for test in counting)
            for row in self._candidates[name][low:high].tolist()
            for now in [{**bags, name: [*earlier, self._event(row)]}]
        )


def is_final(conjunct: ex.Expression, variable: str) -> bool:
    """Whether only the whole bag of a variable decides: an aggregate, `v[last]`, NEXT(v) or `v[i+1]` over it (R2)."""
    return any(
        variable in ex.variables_in(node)
        if isinstance(node, ex.Aggregate)
        else isinstance(node, ex.Attribute)
        and node.variable == variable
        and (node.index is ex.Edge.LAST or (ex.offset_of(node.index) or 0) > 0)
        for node in conjunct.walk()
    )


def needs_whole_bags(conjunct: ex.Expression) -> bool:
    """Whether a conjunct that holds for a match may fail for its first events alone."""
    return any(
        isinstance(node, ex.Aggregate | ex.Every | ex.BagPredicate)
        or (isinstance(node, ex.Attribute) and node.index is ex.Edge.LAST)
        for node in conjunct.walk()
    )
