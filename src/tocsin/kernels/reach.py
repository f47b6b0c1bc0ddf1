"""How the rows of a query may be split between tasks: known from the query alone, without the types of attributes."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.algebra import nodes as alg
from tocsin.algebra.ties import compares_ties
from tocsin.language import expressions as ex
from tocsin.language.ast import Output, Selection, Skip

REACHES_PER_SLICE = 16
# So wide that the number of a slice and those beside it are far from the ends of 64 bits.
LEAST_WIDTH_US = 2
MOST_WIDTH_US = 2**62


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a task must see."""

    query: alg.Query
    needs_order: bool  # whether positions matter: then `Rows.order` is needed
    compares_ties: bool  # whether tie columns order events of one instant (R41): then `Rows.instants` is needed
    # Whether events that are candidates of no variable count for positions (contiguity), types outside the pattern
    # included (R17).
    counts_every_event: bool
    # Whether positions count over all partitions (`contiguous`, R6): rows may then not be split by partition.
    crosses_partitions: bool
    # Whether time slices may be searched by themselves: not with an after-match policy, nor without a bounded span.
    can_slice: bool
    # The window for the events that a match binds one by one; those that it gathers may lie outside.
    span_us: int | None
    # How far before and after the times it owns a slice must see events, exclusive: ts > lo − back, ts < hi + ahead.
    back_us: int
    ahead_us: int
    owns_by_end: bool  # whether a slice owns the matches that end in it, not those that start in it


def reach_of(query: alg.Query) -> Reach:
    """What a task of a query must see."""
    per_end = query.output.is_per_end
    gatherings = list(alg.gatherings_in(query.pattern))
    window = None if query.window_us is None else query.window_us - alg.gathered_us(query.pattern)
    around = list(alg.around_in(query.pattern))
    looks_back = any(isinstance(bound.anchor, alg.Whole) for each in around for bound in each.lower)
    before = max(map(alg.before_us, around), default=0)
    after = max([0, *map(alg.after_us, around)])
    is_back = per_end or looks_back
    return Reach(
        query=query,
        needs_order=query.compares_matches or bool(query.unordered) or (bool(gatherings) and shows_order(query)),
        compares_ties=compares_ties(query.pattern),
        counts_every_event=query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS),
        crosses_partitions=query.selection is Selection.CONTIGUOUS and bool(query.partition.attributes),
        can_slice=window is not None and query.after_match.skip is Skip.REUSE,
        span_us=window,
        # A match of span < W that starts in the slice ends before `hi + W`; one that ends in it starts after `lo − W`.
        # An absence before a match looks W back from its end, one after it W ahead of its start: no further than that;
        # one that is seen from an event of the match looks as far as it says, before and after all of the match, and so
        # does a gathering. What a match gathers says nothing about who owns it: its other events do.
        back_us=0 if window is None else max(window if is_back else 0, before + (window if per_end else 0)),
        ahead_us=0 if window is None else window + after,
        owns_by_end=per_end,
    )


def shows_order(query: alg.Query) -> bool:
    """Whether the order of gathered events of one instant can be seen: in the bag itself, its id, or by an index."""
    conditions = [node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)]
    conditions += [each.condition for each in alg.around_in(query.pattern) if each.condition is not None]
    spoken = [*conditions, *(returned.expression for returned in query.returns)]
    return not query.returns or any(_shows_order(node) for each in spoken for node in each.walk())


def _shows_order(node: ex.Expression) -> bool:
    if isinstance(node, ex.Aggregate):
        return node.function in ("first", "last", "collect")
    return isinstance(node, ex.Attribute) and node.index is not ex.Each.PLAIN


def iteration_of(query: alg.Query) -> alg.Repeat | None:
    """The iteration whose longest match per start is asked for; None for every other query."""
    node = query.core
    is_plain = query.selection is Selection.ANY and query.output is Output.LONGEST
    is_plain = is_plain and not query.timeouts and not query.unordered
    if not is_plain or not isinstance(node, alg.Repeat) or not isinstance(node.part, alg.Event) or node.most == 1:
        return None
    return node


def width_us(reach: Reach, slice_us: int | None = None) -> int | None:
    """The width of the slices; None when the query cannot be cut by time.

    `slice_us` is what the user wants; what copies need is the least there is.
    """
    farthest = max(reach.back_us, reach.ahead_us)
    if not reach.can_slice or farthest > MOST_WIDTH_US:
        return None
    wanted = REACHES_PER_SLICE * (reach.back_us + reach.ahead_us) if slice_us is None else slice_us
    return max(min(wanted, MOST_WIDTH_US), farthest, LEAST_WIDTH_US)
