"""After-match policies on a stream: the frontier lies in the events.

A policy is one walk over the matches of a partition in the order of R5, and what it remembers is the frontier: no match
may start before it. A step walks on where the last one stopped, since matches are decided in the order of their starts
(L after each). All events up to the frontier are known by then, so that it is enough to mark those before it as spent:
none that comes later can lie there.

The outputs per end compare what is kept of several starts, up to L apart: they are decided L after the end, and until
then the marks stay where they were. So a step walks again over the matches of the last 2 L, and keeps the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.matches import take
from tocsin.kernels.model import Mask, Matches, Rows
from tocsin.kernels.policies.after import after_match, frontiers
from tocsin.kernels.policies.flat import Flat, flatten, groups_of
from tocsin.kernels.policies.output import reported
from tocsin.language.ast import AfterMatch, Output
from tocsin.physical.streaming.decisions import BEFORE_ALL, later


@dataclass(frozen=True)
class Skipping:
    """The policies of a query that skips.

    Attributes
    ----------
    policy, output
        What is kept, and what of that is reported.
    after_end_us
        How long after its end what is reported per end is decided; None: with the start.
    """

    policy: AfterMatch
    output: Output
    after_end_us: int | None = None

    def since(self, before: int) -> int:
        """From when on decided matches take part in a step: all those that the marks of the last one do not cover."""
        return before if self.after_end_us is None else max(before - self.after_end_us, BEFORE_ALL)

    def chosen(self, matches: Matches, rows: Rows, spent: Mask, before: int, now: int) -> tuple[Matches, Mask]:
        """What is given of the matches that take part, and which events are spent afterwards."""
        if not len(matches):
            return matches, spent
        view = flatten(matches, rows)
        allowed = np.flatnonzero(~spent[view.rows[view.offsets[:-1]]])
        view = view.take(allowed)
        kept = after_match(self.policy, view)
        view = view.take(kept)
        given = reported(self.output, view)
        if self.after_end_us is None:
            return take(matches, allowed[kept][given]), spent | self._passed(view, rows)
        decided = later(view.end[given], self.after_end_us)
        given = given[(decided >= before) & (decided < now)]
        covered = np.flatnonzero(later(view.start, 2 * self.after_end_us) < now)
        return take(matches, allowed[kept][given]), spent | self._passed(view.take(covered), rows)

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


def without_policies(kernel: Kernel) -> Kernel:
    """The search for all matches that a policy may choose from."""
    query = replace(kernel.query, after_match=alg.Query(kernel.query.pattern).after_match, output=Output.ALL)
    return replace(kernel, query=query)
