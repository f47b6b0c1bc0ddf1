"""What the native batch engine runs, and what it leaves to others: asked before any DataFrame is touched."""

from __future__ import annotations

from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import MOST_ALTERNATIVES, TooManyAlternativesError, alternatives
from tocsin.errors import UnsupportedError
from tocsin.language.ast import Output, Selection, Skip
from tocsin.source import Where

HINT = "`tocsin.reference.evaluate(pattern, rows)` runs every pattern on plain Python rows."


def unsupported(query: alg.Query) -> UnsupportedError | None:
    """The first construct of a query that native joins cannot run yet, or None when they run it all.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Event("B", "b")
    >>> unsupported(alg.Query(alg.Within(alg.Sequence((a, b)), 10))) is None
    True
    >>> print(unsupported(alg.Query(alg.Sequence((a, alg.Repeat(b, 1, None))))).message)
    The iteration of `b` does not run on Spark yet.
    """
    return _in_pattern(query) or _in_clauses(query)


def _in_pattern(query: alg.Query) -> UnsupportedError | None:
    for node in core(query).walk():
        construct = _construct(node)
        if construct is not None:
            return _error(construct, node.where)
    try:
        alternatives(query.pattern)
    except TooManyAlternativesError:
        return _error(f"A pattern with more than {MOST_ALTERNATIVES} ways to match", query.pattern.where)
    return None


def core(query: alg.Query) -> alg.Node:
    """The pattern below the query's own WITHIN and WHERE."""
    node = query.pattern
    if isinstance(node, alg.Within):
        node = node.part
    return node.part if isinstance(node, alg.Filter) else node


def _construct(node: alg.Node) -> str | None:
    match node:
        case alg.Event(type=None):
            return "An event of any type"
        case alg.Event(condition=None) | alg.All() | alg.Any():
            return None
        case alg.Event():
            return f"A condition inside the element `{node.variable}`"
        case alg.Sequence(order=alg.Order.TIME):
            return None
        # `T?` is a choice, not an iteration: its variable holds one event or none.
        case alg.Repeat(most=1):
            return None
        case alg.Repeat():
            return f"The iteration of {_names(node)}"
        case alg.Absent():
            return f"The absence of `{node.variable}`"
        case alg.Filter():
            return "A condition on a part of the pattern"
        case alg.Within():
            return "A window on a part of the pattern"
    return f"The operator {type(node).__name__}"


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
    return UnsupportedError(f"{construct} does not run on Spark yet.", where=where, hint=HINT)
