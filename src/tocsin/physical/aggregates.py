"""`strategy="aggregate"`: which of the operators of 000 runs a query, and the kernel that is this operator.

operator    runs                                             state of a window
--------    ----                                             -----------------
T-CER       patterns with an automaton, of bounded span      the runs that are under way
A           all others of bounded span                       the events that fell in it
R-CER       patterns with an automaton, of so many events    the runs under way; there is one window, all of time
"""

from __future__ import annotations

from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.aggregates.folded import FoldedRuns, folded
from tocsin.kernels.aggregates.searched import WindowSearch, searched
from tocsin.physical.claims import refused_by_aggregates, refused_by_automata


def aggregated(bound: BoundQuery) -> FoldedRuns | WindowSearch:
    """Compile a query to an aggregate, or raise why there is none."""
    refusal = refused_by_aggregates(bound.query)
    if refusal is not None:
        raise refusal
    return searched(bound) if refused_by_automata(bound.query) is not None else folded(bound)
