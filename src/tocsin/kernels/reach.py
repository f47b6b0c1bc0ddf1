"""How the rows of a query may be split between tasks: known from the query alone, without the types of attributes."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.language.ast import Output, Selection, Skip


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a task must see.

    Attributes
    ----------
    query
        The query.
    needs_order
        Whether positions matter: then `Rows.order` is needed.
    counts_every_event
        Whether events that are candidates of no variable count for positions (contiguity), types outside the pattern
        included (R17).
    crosses_partitions
        Whether positions count over all partitions (`contiguous`, R6): rows may then not be split by partition.
    can_slice
        Whether time slices may be searched by themselves: not with an after-match policy, nor without a bounded span.
    back_us, ahead_us
        How far before and after the times it owns a slice must see events, exclusive: ts > lo − back, ts < hi + ahead.
    owns_by_end
        Whether a slice owns the matches that end in it, not those that start in it.
    """

    query: alg.Query
    needs_order: bool
    counts_every_event: bool
    crosses_partitions: bool
    can_slice: bool
    back_us: int
    ahead_us: int
    owns_by_end: bool


def reach_of(query: alg.Query) -> Reach:
    """What a task of a query must see."""
    is_ranked = query.after_match.skip is not Skip.REUSE
    per_end = query.output in (Output.FIRST_PER_END, Output.LAST_PER_END)
    window = query.window_us
    absences = list(alg.absences_in(query.pattern))
    looks_back = any(isinstance(bound.anchor, alg.Whole) for absence in absences for bound in absence.lower)
    before = max(map(before_us, absences), default=0)
    after = max([0, *map(after_us, absences)])
    is_back = per_end or looks_back
    return Reach(
        query=query,
        needs_order=query.selection is not Selection.ANY or is_ranked or query.output not in (Output.ALL, Output.COUNT),
        counts_every_event=query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS),
        crosses_partitions=query.selection is Selection.CONTIGUOUS and bool(query.partition.attributes),
        can_slice=window is not None and not is_ranked,
        # A match of span < W that starts in the slice ends before `hi + W`; one that ends in it starts after `lo − W`.
        # An absence before a match looks W back from its end, one after it W ahead of its start: no further than that;
        # one that is seen from an event of the match looks as far as it says, before and after all of the match.
        back_us=0 if window is None else max(window if is_back else 0, before + (window if per_end else 0)),
        ahead_us=0 if window is None else window + after,
        owns_by_end=per_end,
    )


def before_us(absence: alg.Absent) -> int:
    """How far before the first event of a match, exclusive, a lower bound on named events lets one block it."""
    named = [bound for bound in absence.lower if not isinstance(bound.anchor, alg.Whole) and bound.offset_us < 0]
    return max((-bound.offset_us + (not bound.strict) for bound in named), default=0)


def after_us(absence: alg.Absent) -> int:
    """How far after the last event of a match an upper bound on named events lets one block it."""
    return max((bound.offset_us for bound in absence.upper if not isinstance(bound.anchor, alg.Whole)), default=0)
