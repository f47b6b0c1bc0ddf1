"""`strategy="aggregate"`: which of the operators of 000 runs a query, and the search that is its f_C or f_O.

Windows are an exchange around the search: on Spark they are time slices of the width WA. A search over all rows at once
finds the same matches, so that local engines and streams need no windows.

operator    runs                                             state of a window
--------    ----                                             -----------------
T-CER       patterns with an automaton, of bounded span      the runs that are under way
A           all others of bounded span                       the events that fell in it
R-CER       patterns with an automaton, of so many events    the runs under way; there is one window, all of time
"""

from __future__ import annotations

from tocsin.analysis.schema import BoundQuery
from tocsin.kernels.kernel import Kernel, kernel
from tocsin.kernels.runs.kernel import RunKernel, run_kernel
from tocsin.physical.claims import refused_by_aggregates, refused_by_automata


def aggregated(bound: BoundQuery) -> Kernel | RunKernel:
    """Compile a query to an aggregate, or raise why there is none."""
    refusal = refused_by_aggregates(bound.query)
    if refusal is not None:
        raise refusal
    return kernel(bound) if refused_by_automata(bound.query) is not None else run_kernel(bound)
