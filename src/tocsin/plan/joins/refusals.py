"""Which queries run as joins, and which window aggregates count without them; no DataFrame is touched."""

from __future__ import annotations

from collections import defaultdict

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import MOST_ALTERNATIVES, TooManyAlternativesError
from tocsin.algebra.nodes import compares_ties
from tocsin.algebra.units import format_us
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.language import expressions as ex
from tocsin.language.ast import Output, Selection, Skip
from tocsin.plan.joins.copies import copy_name, unrolled
from tocsin.plan.strategy import ON_SPARK, foreign_expression, of_python, of_rules, only_in_kernels
from tocsin.source import Where

ANOTHER_STRATEGY = "leave out `strategy=`: a kernel runs it."
# ITER^m is m − 1 self joins; the paper goes to 9. A range makes one branch for each number of copies.
MOST_COPIES = 9
MOST_COPIES_OF_A_RANGE = 4
# Each absence that only some derivations of the same bindings demand doubles the joins of its branch.
MOST_DIFFERING_ABSENCES = 3
# Power sums of the fifth degree and more leave 38 digits too soon to be of use.
MOST_COUNTED = 5


def unsupported(query: alg.Query, *, sliding: bool = False) -> UnsupportedError | None:
    """The first construct of a query that joins cannot run, or None when they run it all.

    `sliding` asks for the sliding-window join, which needs WITHIN.

    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> unsupported(alg.Query(alg.Within(alg.Sequence((a, b)), 10))) is None
    True
    >>> print(unsupported(alg.Query(alg.Sequence((a, alg.Repeat(b, 1, None))))).message)
    The iteration of `b` does not run as joins.
    """
    if sliding and query.window_us is None:
        return _error("A sliding window without WITHIN", query.pattern.where)
    by_rules = of_rules(query, ON_SPARK)
    if by_rules is not None:
        return _error(*by_rules[1:])
    foreign = foreign_expression(query) or only_in_kernels(query) or of_python(query)
    if foreign is not None:
        return _error(*foreign)
    return _in_pattern(query) or _in_clauses(query)


def _in_pattern(query: alg.Query) -> UnsupportedError | None:
    for node in query.core.walk():
        construct = _construct(node)
        if construct is not None:
            return _error(construct, node.where)
    for name in (name for name, kind in query.variables.items() if kind.iterated):
        if any(copy_name(name, place) in query.variables for place in range(1, MOST_COPIES + 1)):
            return _error(f"The iteration of `{name}` beside a variable that is called like one of its copies", None)
    try:
        ways = unrolled(query)
    except TooManyAlternativesError:
        return _error(f"A pattern with more than {MOST_ALTERNATIVES} ways to match", query.pattern.where)
    absences: dict[object, list[set[alg.Absent]]] = defaultdict(list)
    for each in ways:
        absences[frozenset(each.alternative.types)].append(set(each.alternative.absences))
    if any(len(own[0].union(*own) - own[0].intersection(*own)) > MOST_DIFFERING_ABSENCES for own in absences.values()):
        return _error("An OR whose branches bind the same variables under many different NOTs", query.pattern.where)
    return None


def _construct(node: alg.Node) -> str | None:
    if compares_ties(node):
        return "The order of events of one instant by `tie=`"
    match node:
        case alg.Event(type=None):
            return "An event of any type"
        case alg.Event(condition=None) | alg.All() | alg.Any() | alg.Absent():
            return None
        case alg.Event():
            return f"A condition inside the element `{node.variable}`"
        case alg.Sequence(order=alg.Order.TIME):
            return None
        # `T?` is a choice, not an iteration: its variable holds one event or none.
        case alg.Repeat(most=1):
            return None
        case alg.Repeat(part=alg.Event(), order=alg.Order.TIME) if _is_short(node):
            return None
        case alg.Repeat():
            return f"The iteration of {_names(node)}"
        case alg.Filter():
            return "A condition on a part of the pattern"
        case alg.Within():
            return "A window on a part of the pattern"
        case _:
            return f"The operator {type(node).__name__}"


def _is_short(node: alg.Repeat) -> bool:
    if node.most is None:
        return False
    return node.most <= (MOST_COPIES if node.least == node.most else MOST_COPIES_OF_A_RANGE)


def _names(node: alg.Node) -> str:
    return ", ".join(f"`{name}`" for name in alg.variables_of(node))


def _in_clauses(query: alg.Query) -> UnsupportedError | None:
    if query.selection is not Selection.ANY:
        return _error(f"SEMANTICS {query.selection.value}", query.places.get("selection"))
    if query.after_match.skip is not Skip.REUSE:
        return _error(f"AFTER MATCH SKIP {query.after_match.skip.value.upper()}", query.after_match.where)
    if query.output is not Output.ALL:
        return _error(f"OUTPUT {query.output.value}", query.places.get("output"))
    if query.timeouts:
        return _error("WITH TIMEOUTS", query.places.get("timeouts"))
    if query.over_all_matches or query.group_by:
        where = next((returned.expression.where for returned in query.returns), None)
        return _error("Aggregation over all matches (COUNT(*), GROUP BY)", where)
    return None


def _error(construct: str, where: Where) -> UnsupportedError:
    return OptionRefusedError(f"{construct} does not run as joins.", where=where, hint=ANOTHER_STRATEGY)


def can_count(query: alg.Query) -> bool:
    """Whether a query asks for nothing but the number of matches of one iterated event with conditions on each event.

    >>> count = alg.Returned("n", ex.Aggregate("count", None))
    >>> twice = alg.Repeat(alg.Event("B", "b"), 2, 2)
    >>> can_count(alg.Query(twice, returns=(count,), over_all_matches=True)), can_count(alg.Query(twice))
    (True, False)
    """
    node = query.core
    if not isinstance(node, alg.Repeat) or not isinstance(node.part, alg.Event) or node.order is not alg.Order.TIME:
        return False
    is_small = node.most is not None and 1 < node.most <= MOST_COUNTED
    is_plain = node.part.type is not None and node.part.condition is None
    counts = all(returned.expression == ex.Aggregate("count", None) for returned in query.returns)
    without = not query.group_by and query.having is None and query.every_us is None and not query.timeouts
    policies = query.selection is Selection.ANY and query.after_match.skip is Skip.REUSE and query.output is Output.ALL
    asks = query.over_all_matches and bool(query.returns) and counts
    return is_small and is_plain and asks and without and policies and all(map(_is_single, query.conjuncts))


def _is_single(conjunct: ex.Expression) -> bool:
    """Whether a conjunct concerns one event at a time: all its references share the running index (R3)."""
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
