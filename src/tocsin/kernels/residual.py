"""Conditions that numbers cannot decide, tried on Python values for the matches that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.expressions.interpret import Event, holds
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Matches, Rows, Source, is_flagged, reader, sums_before
from tocsin.kernels.policies.flat import groups_of
from tocsin.kernels.search.guards import Closed
from tocsin.language import expressions as ex
from tocsin.optimizer.query_parts import alone

Bound = dict[str, list[int]]  # variable → the rows it holds


class Residual:
    """The conditions, absences and gatherings that are left, over the rows of one task."""

    def __init__(
        self,
        conjuncts: Sequence[ex.Expression],
        around: Sequence[alg.Around],
        rows: Rows,
        sources: Sequence[Source],
    ) -> None:
        self.rows = rows
        self.event = reader(rows)
        looks = [_Look(each, rows, sources, self) for each in around]
        self.gatherings = [look for look in looks if isinstance(look.around, alg.Gather)]
        self.absences = [look for look in looks if isinstance(look.around, alg.Absent)]
        late = {look.around.variable for look in self.gatherings}
        # What does not speak of gathered events is asked first: it is cheaper.
        self.early = [holds(conjunct) for conjunct in conjuncts if not ex.variables_in(conjunct) & late]
        self.tests = [holds(conjunct) for conjunct in conjuncts if ex.variables_in(conjunct) & late]

    def kept(self, matches: Matches) -> Matches:
        """The matches that every condition lets live, with what is gathered for them."""
        if not self.early and not self.absences and not self.gatherings:
            return matches
        found = list(map(self._completed, _bound(matches)))
        passed = np.fromiter((bound is not None for bound in found), dtype=np.bool_, count=len(matches))
        left = matches if passed.all() else take(matches, passed)
        return self._with_gathered(left, [bound for bound in found if bound is not None]) if self.gatherings else left

    def _completed(self, bound: Bound) -> Bound | None:
        """The rows of a match with all that it gathers; None when a condition or an absence refutes it."""
        bags = {variable: [self.event(row) for row in rows] for variable, rows in bound.items()}
        if not all(test(bags) for test in self.early):
            return None
        for look in self.gatherings:
            rows = list(look.rows_of(bound, bags))
            if rows:
                name = look.around.variable
                bound, bags = {**bound, name: rows}, {**bags, name: [self.event(row) for row in rows]}
        if not all(test(bags) for test in self.tests):
            return None
        is_blocked = any(True for look in self.absences for _ in look.rows_of(bound, bags))
        return None if is_blocked else bound

    def _with_gathered(self, matches: Matches, bound: Sequence[Bound]) -> Matches:
        start, end, events = matches.start, matches.end, dict(matches.events)
        for look in self.gatherings:
            held = [one.get(look.around.variable, []) for one in bound]
            offsets = sums_before(np.array([len(rows) for rows in held], np.int64))
            rows = np.array([row for some in held for row in some], np.int64)
            events[look.around.variable] = Bag(offsets, rows)
            some = np.flatnonzero(np.diff(offsets))
            start, end = start.copy(), end.copy()
            start[some] = np.minimum(start[some], self.rows.ts[rows[offsets[some]]])
            end[some] = np.maximum(end[some], self.rows.ts[rows[offsets[some + 1] - 1]])
        return replace(matches, start=start, end=end, events=events)


def _bound(matches: Matches) -> Iterator[Bound]:
    for number in range(len(matches)):
        bound: Bound = {}
        for variable, held in matches.events.items():
            if isinstance(held, Bag):
                rows = held.rows[held.offsets[number] : held.offsets[number + 1]].tolist()
            else:
                rows = [int(held[number])] if held[number] >= 0 else []
            if rows:
                bound[variable] = rows
        yield bound


class _Look:
    """An absence or a gathering of the whole pattern: it stands in no OR branch and in no iteration."""

    def __init__(self, around: alg.Around, rows: Rows, sources: Sequence[Source], residual: Residual) -> None:
        self.around, self.rows, self.residual = around, rows, residual
        bit = next(source.bit for source in sources if source.variable == around.variable)
        candidates = np.flatnonzero(is_flagged(rows.flags, bit))
        self.groups = groups_of(rows)
        order = np.lexsort(((rows.ts if rows.order is None else rows.order)[candidates], self.groups[candidates]))
        candidates = candidates[order]
        groups, begins = np.unique(self.groups[candidates], return_index=True)
        self.candidates = dict(zip(groups.tolist(), np.split(candidates, begins[1:]), strict=False))
        # What the flags have decided need not be asked again.
        self.tests = [holds(part) for part in ex.conjuncts(around.condition) if alone(part) != around.variable]

    def rows_of(self, bound: Bound, bags: Mapping[str, Sequence[Event]]) -> Iterator[int]:
        """The rows of the events inside all bounds that make every conjunct TRUE, in their order."""
        group = int(self.groups[next(iter(bound.values()))[0]])
        candidates = self.candidates.get(group)
        if candidates is None:
            return
        times = self.rows.ts[candidates]
        low = self._limit(bound, self.around.lower, max, 1)
        high = self._limit(bound, self.around.upper, min, -1)
        if isinstance(self.around, Closed) and (high is None or (low is None and self.around.on_both_sides)):
            return
        first = 0 if low is None else int(np.searchsorted(times, low, side="left"))
        last = len(times) if high is None else int(np.searchsorted(times, high, side="right"))
        for row in candidates[first:last].tolist():
            event = self.residual.event(row)
            if all(test({**bags, self.around.variable: [event]}) for test in self.tests):
                yield row

    def _limit(
        self, bound: Bound, bounds: Sequence[alg.Bound], choose: Callable[[list[int]], int], inside: int
    ) -> int | None:
        """The first (last) time inside all bounds of one side; a bound without an event is none (R13)."""
        limits = []
        for one in bounds:
            match one.anchor:
                case alg.Whole():
                    rows, is_first = [row for some in bound.values() for row in some], one.anchor is alg.Whole.START
                case alg.LastOf() | alg.FirstOf():
                    rows = [row for name in one.anchor.variables for row in bound.get(name, ())]
                    is_first = isinstance(one.anchor, alg.FirstOf)
                case _:
                    assert_never(one.anchor)
            if rows:
                times = self.rows.ts[rows].tolist()
                limits.append((min(times) if is_first else max(times)) + one.offset_us + (inside if one.strict else 0))
        return choose(limits) if limits else None
