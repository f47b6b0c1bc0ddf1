"""Selection, after-match and output policies over the matches that a kernel found (SEMANTICS §4, R31, R34, D37).

Each takes matches after WHERE, NOT and WITHIN, and keeps some. A match's partition and position are those of its rows.

An after-match policy has one frontier per partition, moved by matches in the order of R5. A kept match lets it jump,
and the next kept one is the first at or after it. The first match of a partition is always kept, so that all partitions
form one chain of jumps. A partition must be here as a whole: no time slice can decide alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.kernels.matches import take
from tocsin.kernels.model import Bag, Integers, Matches, Rows, portions
from tocsin.kernels.policies.flat import Flat, best, flatten, in_order, ranks, refined
from tocsin.kernels.policies.selection import NextTest, are_consecutive
from tocsin.language.ast import PER_END, AfterMatch, Output, Selection, Skip

AT_ONCE = 1 << 20  # events of bags that are numbered at a time


def apply(
    query: alg.Query,
    matches: Matches,
    rows: Rows,
    *,
    selected: bool,
    is_distinct: bool = False,
    next_test: NextTest | None = None,
) -> Matches:
    """The matches that a query's policies keep, each set of bindings once, in the order given (R32, R44).

    All matches of some groups of rows must be here; with an after-match policy, of whole partitions. `selected` and
    `is_distinct`: the selection policy has been applied, and no two matches have the same bindings, whatever floors.
    Otherwise `next` needs floors and a `next_test`, which several calls may share.
    """
    selects = not selected and query.selection is not Selection.ANY
    ranks = query.ranks_matches
    if not len(matches):
        return matches
    if not selects and not ranks:
        return matches if is_distinct else distinct(matches)
    view = flatten(matches, rows)
    kept = np.arange(len(view), dtype=np.int64)
    if selects:
        kept = np.flatnonzero(are_consecutive(view) if next_test is None else next_test.passes(view))
        view = view.take(kept)
    # One way to derive a match may pass `next` where another does not, so that equal ones go only now.
    if not is_distinct:
        first = first_of_equals(take(matches, kept))
        kept, view = kept[first], view.take(first)
    kept = kept[chosen(query.after_match, query.output, view)]
    return matches if len(kept) == len(matches) else take(matches, kept)


def chosen(policy: AfterMatch, output: Output, view: Flat) -> Integers:
    """The indices of the matches that remain; what is chosen per start is chosen before the frontier moves (R44)."""
    if policy.skip is Skip.REUSE:
        return reported(output, view)
    if output in PER_END:
        kept = after_match(policy, view)
        return kept[reported(output, view.take(kept))]
    kept = reported(output, view)
    return kept[after_match(policy, view.take(kept))]


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


def reported(output: Output, view: Flat) -> Integers:
    """The indices of the matches that a mode reports, in their order; no two may have the same bindings."""
    by_start, by_end = (view.groups, view.first), (view.groups, view.last)
    match output:
        case Output.FIRST_PER_START:
            return best(view, by_start, view.last)
        case Output.FIRST_PER_END:
            return best(view, by_end, view.first)
        case Output.LAST_PER_START:
            return best(view, by_start, -view.end, view.last)
        case Output.LAST_PER_END:
            return best(view, by_end, -view.start, view.first)
        case Output.LONGEST:
            return best(view, by_start, -view.sizes, view.last)
        case Output.ALL | Output.COUNT:
            return np.arange(len(view), dtype=np.int64)
        case _:
            assert_never(output)


def distinct(matches: Matches) -> Matches:
    """Matches without those whose bindings an earlier one has; floors do not tell them apart."""
    kept = first_of_equals(matches)
    return matches if len(kept) == len(matches) else take(matches, kept)


def first_of_equals(matches: Matches) -> Integers:
    """The indices of the matches whose bindings no earlier match has, in their order.

    Different numbers prove different bindings; only matches with the same number are compared, and these exactly.
    """
    known = ranks(_numbers(matches))
    _, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    doubtful = np.flatnonzero(counts[inverse.reshape(-1)] > 1)
    if not len(doubtful):
        return np.arange(len(matches), dtype=np.int64)
    nowhere = np.empty(0, dtype=np.int64)
    tied = flatten(take(matches, doubtful), Rows(nowhere, nowhere), needs_order=False)
    exact = refined(known[doubtful], tied.offsets, tied.rows * len(tied.names) + tied.variables)
    repeated = np.ones(len(doubtful), dtype=np.bool_)
    repeated[np.unique(exact, return_index=True)[1]] = False
    return np.delete(np.arange(len(matches), dtype=np.int64), doubtful[repeated])


def _numbers(matches: Matches) -> Integers:
    """A number of the bindings of each match: a sum over its events, of which some are numbered at a time."""
    width = len(matches.events)

    def codes(place: int) -> Callable[[Integers], Integers]:
        return lambda rows: _mixed(rows * width + place)

    total = np.zeros(len(matches), np.int64)
    for place, held in enumerate(matches.events.values()):
        if not isinstance(held, Bag):
            total += np.where(held >= 0, codes(place)(held), 0)
            continue
        for low, high in portions(held.offsets, AT_ONCE):
            total[low:high] += held.part(low, high).sums(codes(place))
    return total


def _mixed(codes: Integers) -> Integers:
    """Numbers whose sums rarely agree by chance: the finisher of SplitMix64."""
    bits = codes.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))).view(np.int64)


def one_of_each_set(matches: Matches, rows: Rows, names: Sequence[str]) -> Matches:
    """The first match of each set, in the order given; all matches of the rows must be here."""
    if len(matches) < 2:
        return matches
    if rows.order is None:
        raise errors.InternalError("`unordered` speaks of positions, and the rows have none.")
    single = [held for name in names if not isinstance(held := matches.events[name], Bag)]
    by = np.lexsort(rows.order[np.stack(single)][::-1])
    ordered = take(matches, by)
    alike = np.sort(np.stack([held[by] for held in single]), axis=0)
    sets = replace(ordered, events={**ordered.events, **dict(zip(names, alike, strict=True))})
    kept = by[first_of_equals(sets)]
    return matches if len(kept) == len(matches) else take(matches, np.sort(kept))
