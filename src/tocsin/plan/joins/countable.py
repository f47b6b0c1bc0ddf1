"""Which queries ask only for the number of matches of one iteration, so that window aggregates answer them."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.analysis.formatting import format_us
from tocsin.language import expressions as ex
from tocsin.language.ast import Output, Selection, Skip
from tocsin.plan.joins.build import conjuncts_of

# Power sums of the fifth degree and more leave 38 digits too soon to be of use.
MOST_COPIES = 5


def can_count(query: alg.Query) -> bool:
    """Whether a query asks for nothing but the number of matches of one iterated event with conditions on each event.

    Examples
    --------
    >>> count = alg.Returned("n", ex.Aggregate("count", None))
    >>> twice = alg.Repeat(alg.Event("B", "b"), 2, 2)
    >>> can_count(alg.Query(twice, returns=(count,), over_all_matches=True))
    True
    >>> can_count(alg.Query(twice))
    False
    """
    node = query.core
    if not isinstance(node, alg.Repeat) or not isinstance(node.part, alg.Event) or node.order is not alg.Order.TIME:
        return False
    is_small = node.most is not None and 1 < node.most <= MOST_COPIES
    is_plain = node.part.type is not None and node.part.condition is None
    counts = all(returned.expression == ex.Aggregate("count", None) for returned in query.returns)
    without = not query.group_by and query.having is None and query.every_us is None and not query.timeouts
    policies = query.selection is Selection.ANY and query.after_match.skip is Skip.REUSE and query.output is Output.ALL
    asks = query.over_all_matches and bool(query.returns) and counts
    return is_small and is_plain and asks and without and policies and all(map(_is_single, conjuncts_of(query)))


def _is_single(conjunct: ex.Expression) -> bool:
    """Whether a conjunct speaks of one event at a time: all its references share the running index (R3)."""
    offsets = (
        (isinstance(one.index, ex.Running) and one.index.offset == 0) or one.index is ex.Each.PLAIN
        for one in ex.references_in(conjunct)
    )
    return all(offsets) and not ex.has_aggregate(conjunct)


def describe_counts(query: alg.Query) -> str:
    """The aggregates that answer a query which `can_count`."""
    node = repeat_of(query)
    inside = "" if query.window_us is None else f" less than {format_us(query.window_us)} later"
    return (
        f"window aggregates: events per instant, power sums over the instants{inside}, "
        f"and from them the number of matches of {max(1, node.least)} to {node.most} events"
    )


def repeat_of(query: alg.Query) -> alg.Repeat:
    """The iteration of a query which `can_count`."""
    node = query.core
    assert isinstance(node, alg.Repeat)
    return node
