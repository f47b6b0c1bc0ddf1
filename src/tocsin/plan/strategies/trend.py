"""`trend`: aggregates over all matches, counted event by event without building a match (SEMANTICS §9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.kernels.trends.machine import NotAPathError
from tocsin.kernels.trends.request import as_paths
from tocsin.kernels.trends.request import refusal as not_a_trend
from tocsin.plan.describe import describe_trend
from tocsin.plan.strategies.kernel import KERNEL
from tocsin.plan.strategy import ON_SPARK, Form, Strategy

if TYPE_CHECKING:
    from tocsin.plan.plan import Plan

ADDS_OTHERS = "it adds up values that are neither integers nor doubles"


class TrendCount(Strategy):
    """A count by states of the pattern."""

    name = "trend"
    form = Form.TREND

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why the matches of a query are not counted without being built, or None."""
        try:
            said = as_paths(query)
        except NotAPathError as problem:
            return cannot_count(query, str(problem))
        refusal = KERNEL.refuses(said)
        if refusal is not None:
            return refusal
        reason = not_a_trend(said)
        return None if reason is None else cannot_count(query, reason)

    def describe(self, plan: Plan) -> str:
        """The scans, the exchange and the count."""
        return describe_trend(plan)


def cannot_count(query: alg.Query, reason: str) -> UnsupportedError:
    """The strategy `trend` was asked for, and does not run the query."""
    return OptionRefusedError(
        f"The matches of this query cannot be counted without being built: {reason}.",
        where=query.pattern.where,
        hint='leave out `strategy="trend"`.',
    )


TREND = TrendCount()
