"""After-match policies on a stream: the frontier lies in the events.

A policy is one walk over the matches of a partition in the order of R5, and what it remembers is the frontier: no match
may start before it. A step walks on where the last one stopped, since matches are decided in the order of their starts
(L after each). All events up to the frontier are known by then, so that it is enough to mark those before it as spent:
none that comes later can lie there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.kernel import Kernel
from tocsin.kernels.matches import take
from tocsin.kernels.model import Mask, Matches, Rows
from tocsin.kernels.policies.after import after_match, frontiers
from tocsin.kernels.policies.flat import flatten, groups_of
from tocsin.kernels.policies.output import reported
from tocsin.language.ast import AfterMatch, Output


@dataclass(frozen=True)
class Skipping:
    """The policies of a query that skips."""

    policy: AfterMatch
    output: Output

    def chosen(self, matches: Matches, rows: Rows, spent: Mask) -> tuple[Matches, Mask]:
        """What is kept of the matches that are due, and which events are spent afterwards."""
        if not len(matches):
            return matches, spent
        view = flatten(matches, rows)
        allowed = np.flatnonzero(~spent[view.rows[view.offsets[:-1]]])
        view = view.take(allowed)
        kept = after_match(self.policy, view)
        view = view.take(kept)
        assert rows.order is not None
        groups = groups_of(rows)
        order = np.lexsort((frontiers(self.policy, view), view.groups))
        last = np.append(view.groups[order][1:] != view.groups[order][:-1], True) if len(order) else order
        known, ends = view.groups[order][last], frontiers(self.policy, view)[order][last]
        place = np.minimum(np.searchsorted(known, groups), max(len(known) - 1, 0))
        if len(known):
            spent = spent | ((known[place] == groups) & (rows.order < ends[place]))
        return take(matches, allowed[kept][reported(self.output, view)]), spent


def without_policies(kernel: Kernel) -> Kernel:
    """The search for all matches that a policy may choose from."""
    query = replace(kernel.query, after_match=alg.Query(kernel.query.pattern).after_match, output=Output.ALL)
    return replace(kernel, query=query)
