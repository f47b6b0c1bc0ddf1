"""`join`, `sliding-window` and `count`: Spark's own operators, the mapping of paper 002 with O1 to O3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.options import BATCH, STREAM
from tocsin.plan.joins.describe import describe
from tocsin.plan.joins.refusals import can_count, describe_counts, unsupported
from tocsin.plan.strategy import ON_SPARK, Form, Strategy

if TYPE_CHECKING:
    from tocsin.plan.plan import Plan


class Join(Strategy):
    """Joins with time buckets (O1) and keys (O3)."""

    name = "join"
    form = Form.JOINS
    places = frozenset({BATCH, STREAM})
    is_sliding = False

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """The first construct that joins cannot run, or None."""
        return unsupported(query, sliding=self.is_sliding)

    def describe(self, plan: Plan) -> str:
        """The scans and joins of every branch."""
        return describe(plan.joins, plan.query.partition, plan.times)


class SlidingWindow(Join):
    """Joins in the sliding windows of the paper, without O1: to compare with."""

    name = "sliding-window"
    places = frozenset({BATCH})
    is_sliding = True


class Count(Strategy):
    """Window aggregates for the number of matches of one iteration (O2)."""

    name = "count"
    form = Form.COUNTS
    places = frozenset({BATCH})

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why window aggregates do not answer a query, or None."""
        if can_count(query):
            return None
        return OptionRefusedError(
            "More than the number of matches of one bounded iteration with conditions on single events is asked.",
            where=query.pattern.where,
            hint='leave out `strategy="count"`.',
        )

    def describe(self, plan: Plan) -> str:
        """The scan and the aggregates."""
        return describe_counts(plan.query)


JOIN, SLIDING_WINDOW, COUNT = Join(), SlidingWindow(), Count()
