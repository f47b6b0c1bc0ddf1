"""`aggregate`: the operators of paper 000, which need nothing but aggregates over overlapping windows.

Windows are an exchange around a search: on Spark they are time slices of the width WA. A search over all rows at once
finds the same matches, so that the local engine and streams need no windows.

operator    runs                                             state of a window
--------    ----                                             -----------------
T-CER       patterns with an automaton, of bounded span      the runs that are under way
A           all others of bounded span                       the events that fell in it
R-CER       patterns with an automaton, of so many events    the runs under way; there is one window, all of time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.kernels.reach import MOST_WIDTH_US, reach_of, windows_of
from tocsin.language.ast import Skip
from tocsin.plan.describe import describe_aggregate
from tocsin.plan.strategies.automaton import AUTOMATON, most_events
from tocsin.plan.strategies.kernel import KERNEL, unsupported
from tocsin.plan.strategy import ON_SPARK, Strategy
from tocsin.source import Where

if TYPE_CHECKING:
    from tocsin.analysis.schema import BoundQuery
    from tocsin.kernels.reach import Search
    from tocsin.plan.plan import Plan


class Aggregate(Strategy):
    """A search in overlapping windows."""

    name = "aggregate"

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why windows that know nothing of each other do not find the matches of a query, or None."""
        refusal = unsupported(query, engine)
        if refusal is not None:
            return refusal
        skip = query.after_match
        if skip.skip is not Skip.REUSE:
            return _refusal(
                f"AFTER MATCH SKIP {skip.skip.value.upper()} depends on all matches before, and a window knows none of "
                "those that others report",
                skip.where,
                "`OUTPUT first` chooses among the matches of one start, which one window has; or leave out",
            )
        windows = windows_of(reach_of(query))
        if windows is None:
            return None if most_events(query) is not None else _not_constant(query)
        if windows.advance_us > MOST_WIDTH_US:
            return _refusal("A window as long as all of time is held by no other", query.pattern.where, "leave out")
        return None

    def search(self, bound: BoundQuery) -> Search:
        """An automaton where there is one, otherwise nested loops."""
        self.requires(bound.query)
        by_loops = AUTOMATON.refuses(bound.query) is not None
        return (KERNEL if by_loops else AUTOMATON).search(bound)

    def slice_us(self, plan: Plan) -> int | None:
        """WA, how far windows advance; None where one window is all of time."""
        windows = windows_of(reach_of(plan.query))
        return None if windows is None else windows.advance_us

    def describe(self, plan: Plan) -> str:
        """The scans, the windows and what happens in one."""
        return describe_aggregate(plan, by_automaton=AUTOMATON.refuses(plan.query) is None)


def _not_constant(query: alg.Query) -> UnsupportedError:
    reason = "what a fold over all events would have to remember grows with them"
    if AUTOMATON.refuses(query) is not None:
        reason = "no automaton says what a fold over all events would have to remember"
    return _refusal(
        f"Without WITHIN no window holds a match, and {reason}", query.pattern.where, "write WITHIN, or leave out"
    )


def _refusal(reason: str, where: Where, instead: str) -> UnsupportedError:
    return OptionRefusedError(
        f"{reason}: this does not run with the strategy `aggregate`.",
        where=where,
        hint=f'{instead} `strategy="aggregate"`.',
    )


AGGREGATE = Aggregate()
