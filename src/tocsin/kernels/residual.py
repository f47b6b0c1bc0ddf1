"""Conditions that numbers cannot decide, tried on Python values for the matches that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.conditions import alone
from tocsin.kernels.expressions.interpret import holds
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Integers, Matches, Rows, Source
from tocsin.kernels.policies.flat import groups_of
from tocsin.language import expressions as ex

Event = Mapping[str, Any]
Bound = dict[str, list[int]]  # variable → the rows it holds


class Residual:
    """The conditions and absences that are left, over the rows of one task."""

    def __init__(
        self,
        conjuncts: Sequence[ex.Expression],
        absences: Sequence[alg.Absent],
        rows: Rows,
        sources: Sequence[Source],
    ) -> None:
        self.tests = [holds(conjunct) for conjunct in conjuncts]
        self.rows = rows
        self.events: dict[int, Event] = {}
        self.absences = [_Absence(absence, rows, sources, self) for absence in absences]

    def kept(self, matches: Matches) -> Matches:
        """The matches that every condition lets live."""
        if not self.tests and not self.absences:
            return matches
        passed = np.fromiter(map(self._lives, _bound(matches)), dtype=np.bool_, count=len(matches))
        return matches if passed.all() else take(matches, passed)

    def _lives(self, bound: Bound) -> bool:
        bags = {variable: [self.event(row) for row in rows] for variable, rows in bound.items()}
        return all(test(bags) for test in self.tests) and not any(one.blocks(bound, bags) for one in self.absences)

    def event(self, row: int) -> Event:
        """The attributes of a row."""
        if row not in self.events:
            assert self.rows.event is not None  # asked for when the kernel wants attributes
            self.events[row] = self.rows.event(row)
        return self.events[row]


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


class _Absence:
    """An absence of the whole pattern: it stands in no OR branch and in no iteration."""

    def __init__(self, absent: alg.Absent, rows: Rows, sources: Sequence[Source], residual: Residual) -> None:
        self.absent, self.rows, self.residual = absent, rows, residual
        bit = next(source.bit for source in sources if source.variable == absent.variable)
        candidates = np.flatnonzero((rows.flags >> bit) & 1)
        self.groups = groups_of(rows)
        self.candidates: dict[int, Integers] = {}
        order = np.lexsort((rows.ts[candidates], self.groups[candidates]))
        candidates = candidates[order]
        for group in np.unique(self.groups[candidates]).tolist():
            self.candidates[group] = candidates[self.groups[candidates] == group]
        # What the flags have decided need not be asked again.
        self.tests = [holds(part) for part in ex.conjuncts(absent.condition) if alone(part) != absent.variable]

    def blocks(self, bound: Bound, bags: Mapping[str, Sequence[Event]]) -> bool:
        """Whether an event lies inside all bounds and makes every conjunct TRUE."""
        group = int(self.groups[next(iter(bound.values()))[0]])
        candidates = self.candidates.get(group)
        if candidates is None:
            return False
        times = self.rows.ts[candidates]
        low = self._limit(bound, self.absent.lower, max, 1)
        high = self._limit(bound, self.absent.upper, min, -1)
        first = 0 if low is None else int(np.searchsorted(times, low, side="left"))
        last = len(times) if high is None else int(np.searchsorted(times, high, side="right"))
        return any(
            all(test({**bags, self.absent.variable: [self.residual.event(row)]}) for test in self.tests)
            for row in candidates[first:last].tolist()
        )

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
            if rows:
                times = self.rows.ts[rows].tolist()
                limits.append((min(times) if is_first else max(times)) + one.offset_us + (inside if one.strict else 0))
        return choose(limits) if limits else None
