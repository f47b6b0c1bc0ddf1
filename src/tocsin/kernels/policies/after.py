"""After-match policies: one frontier per partition, moved by matches in the order of R5 (SEMANTICS §4).

A kept match lets the frontier jump, and the next kept one is the first at or after it. The first match of a partition
is always kept, so that all partitions form one chain of jumps. A partition must be here as a whole: no time slice can
decide alone.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from tocsin.kernels.model import Integers
from tocsin.kernels.policies.flat import Flat
from tocsin.kernels.policies.ranking import best, in_order, ranks
from tocsin.language.ast import AfterMatch, Skip


def after_match(policy: AfterMatch, view: Flat) -> Integers:
    """The indices of the matches that a policy keeps, in their order; no two matches may have the same bindings."""
    match policy.skip:
        case Skip.REUSE:
            return np.arange(len(view), dtype=np.int64)
        case Skip.TO_NEXT:
            return _earliest(view)
        case Skip.PAST_LAST:
            # The frontier passes the first event of a kept match, so that only the earliest of each start can be kept.
            chosen = _earliest(view)
            chosen = chosen[np.lexsort((view.first[chosen], view.groups[chosen]))]
        case Skip.TO_FIRST | Skip.TO_LAST:
            chosen = in_order(view)
        case _:
            assert_never(policy.skip)
    frontier = frontiers(policy, view)[chosen]
    return np.sort(chosen[chained(view.groups[chosen], view.first[chosen], frontier)])


def frontiers(policy: AfterMatch, view: Flat) -> Integers:
    """Where the frontier lies after each match, if it is kept."""
    match policy.skip:
        case Skip.TO_NEXT:
            return view.first + 1
        case Skip.PAST_LAST:
            return view.last + 1
        case Skip.TO_FIRST | Skip.TO_LAST:
            return _targets(policy, view)
        case Skip.REUSE:
            return view.first
        case _:
            assert_never(policy.skip)


def _earliest(view: Flat) -> Integers:
    """The earliest match of each first event."""
    return best(view, (view.groups, view.first), view.last)


def _targets(policy: AfterMatch, view: Flat) -> Integers:
    """The frontier after each match: the position of v's first or last event, or as skip to next when v has none."""
    targets = view.first + 1
    if policy.variable not in view.names:
        return targets
    slots = np.flatnonzero(view.variables == view.names.index(policy.variable))
    match = np.searchsorted(view.offsets, slots, side="right") - 1
    if policy.skip is Skip.TO_LAST:  # slots are in order of position, and below the first of each match is taken
        slots, match = slots[::-1], match[::-1]
    bound, at = np.unique(match, return_index=True)
    targets[bound] = view.positions[slots[at]]
    return targets


def chained(groups: Integers, firsts: Integers, frontiers: Integers) -> Integers:
    """The indices that a walk from the first meets; all are sorted by group, first."""
    if not len(groups):
        return np.empty(0, dtype=np.int64)
    starts, start_of = np.unique(firsts, return_inverse=True)
    group = ranks(groups)
    width = len(starts) + 1
    keys = group * width + start_of.reshape(-1)
    jumps = np.searchsorted(keys, group * width + np.searchsorted(starts, frontiers), side="left")
    # A frontier that does not move still leaves the match itself behind.
    following = np.maximum(jumps, np.arange(1, len(keys) + 1)).tolist()
    kept: list[int] = []
    here = 0
    while here < len(following):
        kept.append(here)
        here = following[here]
    return np.array(kept, dtype=np.int64)
