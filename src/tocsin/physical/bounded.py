"""Rewrite a query, infer the window it does not write, and close the distances of the result.

A window lets time slices be searched independently. The temporal network returned is that of the rewritten query:
planning looks alternatives up by value, and a rewrite may change the condition of an absence inside one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Network, network
from tocsin.analysis.translate import LONGEST_WINDOW_US
from tocsin.kernels.reach import gathered_us
from tocsin.language.ast import Selection
from tocsin.optimizer.pipeline import optimize
from tocsin.optimizer.rules import RULES, Rule, Schemas

LEAST_WINDOW_US = 1_000_000  # slices of a few microseconds would be as many as events


def within_distances(query: alg.Query, distances: Network, *, selected: bool = False) -> alg.Query:
    """The query with the window that follows from its distances.

    Nothing else changes: no two events of a match are further apart than the closure of its distances says, and what it
    gathers no further from them than its bounds say. `selected` says whether to do so also where a policy selects among
    events: it must not ask for others that are further away.

    Examples
    --------
    >>> from tocsin.analysis.temporal import network
    >>> from tocsin.language import expressions as ex
    >>> a, b = (ex.Attribute(name, ("ts",)) for name in "ab")
    >>> near = ex.Between(ex.Arithmetic("-", b, a), ex.Interval(0), ex.Interval(5_000_000))
    >>> query = alg.Query(alg.Filter(alg.All((alg.Event("A", "a"), alg.Event("B", "b"))), near))
    >>> within_distances(query, network(query)).window_us
    5000001
    """
    if query.window_us is not None or (query.selection is not Selection.ANY and not selected):
        return query
    spans = [
        closure.distance(x, y)[1]
        for closure in distances.alternatives
        for x in closure.variables
        for y in closure.variables
    ]
    known = [span for span in spans if span is not None]
    window = max([LEAST_WINDOW_US, *(span + 1 for span in known)]) + gathered_us(list(alg.gatherings_in(query.pattern)))
    if len(known) < len(spans) or window > LONGEST_WINDOW_US:
        return query
    return replace(query, pattern=alg.Within(query.pattern, window, where=query.pattern.where))


def window_from_distances(distances: Network) -> Rule:
    """The rewrite rule for queries of these distances; one event needs no window."""
    found = distances.alternatives
    is_single = all(len(closure.variables) < 2 and not closure.alternative.iterated for closure in found)
    return Rule(
        "window_from_distances",
        "distances between all events of a match make a window",
        lambda query, _: query if is_single else within_distances(query, distances),
    )


class Rewritten(NamedTuple):
    """A query that means the same, the rules that changed it, and its own temporal network."""

    query: alg.Query
    fired: tuple[Rule, ...]
    distances: Network


def rewrite(
    query: alg.Query, schemas: Schemas, time: str | Mapping[str, str], *, integer_time: bool = False
) -> Rewritten:
    """Apply all rewrite rules and close the distances of the result; the other arguments are those of `network`."""
    written = network(query, time, integer_time=integer_time)
    better, fired = optimize(query, schemas, (*RULES, window_from_distances(written)))
    return Rewritten(better, fired, written if better is query else network(better, time, integer_time=integer_time))
