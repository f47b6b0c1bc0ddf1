"""After-match policies on a stream: the frontier lies in the events.

A policy is one walk over the matches of a partition in the order of R5, and what it remembers is the frontier: no match
may start before it. A step walks on where the last one stopped, since matches are decided in the order of their starts
(L after each). Where one match of each start is chosen, that happens before (R44). All events up to the frontier are
known by then, so that it is enough to mark those before it as spent: none that comes later can lie there.

The outputs per end compare what is kept of several starts, up to L apart: they are decided L after the end, and until
then the marks stay where they were. So a step walks again over the matches of the last 2 L, and keeps the same ones.
With windows (EVERY) they are decided with that of their start, 2 L after its end, and those they were compared with up
to L and a window after that.

code            theory
----            ------
length_us       L
lag_us          how long after a policy has kept a match it may still be compared
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.matches import take
from tocsin.kernels.model import Integers, Mask, Matches, Rows
from tocsin.kernels.policies import after_match, chosen, frontiers, reported
from tocsin.kernels.policies.flat import Flat, flatten, groups_of
from tocsin.kernels.searches import Search
from tocsin.language.ast import AfterMatch, Output, Skip
from tocsin.plan.due import BEFORE_ALL, Due, later


@dataclass(frozen=True)
class Skipping:
    """The policies of a query that skips: which matches are kept, and which of these reported."""

    policy: AfterMatch
    output: Output
    due: Due

    @property
    def length_us(self) -> int | None:
        """How long after its end what is reported per end is decided; None: with the start."""
        return self.due.after_end_us

    @property
    def lag_us(self) -> int:
        """How long after its start is decided a match may be compared with others that are not reported yet."""
        assert self.length_us is not None
        every_us = self.due.every_us
        return self.length_us if every_us is None else 2 * self.length_us + every_us

    def is_due(self, matches: Matches, rows: Rows, before: int, now: int) -> Mask:
        """Which matches take part in a step: decided ones that the marks of the last step do not cover."""
        if self.length_us is None:
            return self.due.is_due(matches, rows, before, now)
        decided = later(matches.start, self.length_us)
        return (decided >= max(before - self.lag_us, BEFORE_ALL)) & (decided < now)

    def chosen(self, matches: Matches, rows: Rows, spent: Mask, before: int, now: int) -> tuple[Matches, Mask]:
        """The matches that are emitted of those that take part, and which events are spent afterwards."""
        if not len(matches):
            return matches, spent
        view = flatten(matches, rows)
        allowed = np.flatnonzero(~spent[view.rows[view.offsets[:-1]]])
        view = view.take(allowed)
        if self.length_us is None:
            kept = chosen(self.policy, self.output, view)
            return take(matches, allowed[kept]), spent | self._passed(view.take(kept), rows)
        kept = after_match(self.policy, view)
        view = view.take(kept)
        given = reported(self.output, view)
        decided = self._reported_at(view.take(given), self.length_us)
        given = given[(decided >= before) & (decided < now)]
        covered = np.flatnonzero(later(view.start, self.length_us + self.lag_us) < now)
        return take(matches, allowed[kept][given]), spent | self._passed(view.take(covered), rows)

    def _reported_at(self, view: Flat, length_us: int) -> Integers:
        if self.due.every_us is None:
            return later(view.end, length_us)
        return later(self.due.last_of_window(view.start), 2 * length_us)

    def _passed(self, kept: Flat, rows: Rows) -> Mask:
        """The events before the frontier that kept matches have moved."""
        assert rows.order is not None
        groups, ends = groups_of(rows), frontiers(self.policy, kept)
        if not len(kept):
            return np.zeros(len(groups), np.bool_)
        order = np.lexsort((ends, kept.groups))
        last = np.append(kept.groups[order][1:] != kept.groups[order][:-1], True)
        known, ends = kept.groups[order][last], ends[order][last]
        place = np.minimum(np.searchsorted(known, groups), len(known) - 1)
        passed: Mask = (known[place] == groups) & (rows.order < ends[place])
        return passed


def without_policies(search: Search) -> Search:
    """The search for the matches that a policy may choose from: of each start, those that may move the frontier."""
    query = search.query
    of_start = query.output if query.output.is_chosen_per_start else Output.ALL
    if of_start is Output.ALL and query.after_match.skip in (Skip.PAST_LAST, Skip.TO_NEXT):
        of_start = Output.FIRST_PER_START  # the frontier passes the first event of a kept match
    return replace(search, query=replace(query, after_match=alg.REUSE, output=of_start))
