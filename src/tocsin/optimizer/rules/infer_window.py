"""Infer the window that a query does not write from the distances between its events.

A window lets time slices be searched independently.
"""

from __future__ import annotations

from dataclasses import replace

from tocsin.algebra import nodes as alg
from tocsin.analysis.sase import LONGEST_WINDOW_US
from tocsin.analysis.temporal import Facts, Network
from tocsin.language.ast import Selection
from tocsin.optimizer.rules.rule import NO_FACTS

LEAST_WINDOW_US = 1_000_000  # slices of a few microseconds would be as many as events


def infer_window(query: alg.Query, facts: Facts = NO_FACTS) -> alg.Query:
    """Add WITHIN where distances bound every match of several events.

    Not where a policy selects among events: it must see events that are further away.
    """
    if facts.time is None or query.window_us is not None or query.selection is not Selection.ANY:
        return query
    distances = facts.distances(query)
    return query if _is_single(distances) else with_window(query, distances)


def with_window(query: alg.Query, distances: Network) -> alg.Query:
    """The query with the window that its distances imply, unless it has one; unchanged where they imply none.

    No two events of a match are further apart than the closure of the distances allows, and gathered events are no
    further from them than their bounds allow.
    """
    spans = [closure.span_us for closure in distances.alternatives]
    known = [span for span in spans if span is not None]
    window = max([LEAST_WINDOW_US, *(span + 1 for span in known)]) + alg.gathered_us(query.pattern)
    if query.window_us is not None or len(known) < len(spans) or window > LONGEST_WINDOW_US:
        return query
    return replace(query, pattern=alg.Within(query.pattern, window, where=query.pattern.where))


def _is_single(distances: Network) -> bool:
    return all(len(each.variables) < 2 and not each.alternative.iterated for each in distances.alternatives)
