"""Selection, after-match and output policies over the matches that a kernel found (SEMANTICS §4).

Each takes matches after WHERE, NOT and WITHIN, and keeps some. A match's partition and position are those of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin.algebra import nodes as alg
from tocsin.kernels.matches import take
from tocsin.kernels.model import Integers, Mask, Matches, Rows, Source
from tocsin.kernels.policies.after import after_match, first_of_equals, reported
from tocsin.kernels.policies.flat import Flat, flatten
from tocsin.kernels.policies.selection import NextTest, are_consecutive
from tocsin.language.ast import AfterMatch, Output, Selection, Skip


def apply(
    query: alg.Query,
    matches: Matches,
    rows: Rows,
    *,
    selected: bool,
    distinct: bool = False,
    sources: Sequence[Source] = (),
    next_test: NextTest | None = None,
) -> Matches:
    """The matches that a query's policies keep, each set of bindings once, in the order given (R32, R44).

    All matches of some groups of rows must be here; with an after-match policy, of whole partitions. `selected` and
    `distinct`: the selection policy has been applied, and no two matches have the same bindings, whatever their floors.
    Otherwise `next` needs floors and the `sources`, or a `next_test` of these that several calls share.
    """
    selects = not selected and query.selection is not Selection.ANY
    ranks = query.ranks_matches
    if not len(matches) or (distinct and not selects and not ranks):
        return matches
    view = flatten(matches, rows, needs_order=selects or ranks)
    kept = np.arange(len(view), dtype=np.int64)
    if selects:
        kept = np.flatnonzero(_selected(query, view, rows, sources, next_test))
        view = view.take(kept)
    # One way to derive a match may pass `next` where another does not, so that equal ones go only now.
    if not distinct:
        first = first_of_equals(view)
        kept, view = kept[first], view.take(first)
    kept = kept[chosen(query.after_match, query.output, view)]
    return matches if len(kept) == len(matches) else take(matches, kept)


def chosen(policy: AfterMatch, output: Output, view: Flat) -> Integers:
    """The indices of the matches that remain; what is chosen per start is chosen before the frontier moves (R44)."""
    if policy.skip is Skip.REUSE:
        return reported(output, view)
    if output.is_per_end:
        kept = after_match(policy, view)
        return kept[reported(output, view.take(kept))]
    kept = reported(output, view)
    return kept[after_match(policy, view.take(kept))]


def _selected(query: alg.Query, view: Flat, rows: Rows, sources: Sequence[Source], next_test: NextTest | None) -> Mask:
    if query.selection is Selection.NEXT:
        return (next_test or NextTest(rows, query, sources)).passes(view)
    return are_consecutive(view)
