"""`clustered`: nested loops where the input lies in order of time, and a small second search across its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.errors import OptionRefusedError, UnsupportedError
from tocsin.kernels.reach import MOST_WIDTH_US
from tocsin.language.ast import Output, Selection, Skip
from tocsin.options import BATCH
from tocsin.plan.describe import describe_clustered
from tocsin.plan.strategies.kernel import NestedLoops
from tocsin.plan.strategy import ON_SPARK, Form
from tocsin.source import Where

if TYPE_CHECKING:
    from tocsin.plan.plan import Plan


class Clustered(NestedLoops):
    """Nested loops in the parts of the input."""

    name = "clustered"
    form = Form.CLUSTERED
    places = frozenset({BATCH})

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why a query cannot be searched in the parts that its events lie in, or None."""
        refusal = super().refuses(query, engine=engine)
        if refusal is not None:
            return refusal
        around = next(iter(alg.around_in(query.pattern)), None)
        if around is not None:
            return _refusal("An absence" if isinstance(around, alg.Absent) else "`all` of a rule", around.where)
        if query.unordered:
            return _refusal("`unordered`", query.pattern.where)
        if query.selection is not Selection.ANY:
            return _refusal(f"SEMANTICS {query.selection.value}", query.places.get("selection"))
        if query.after_match.skip is not Skip.REUSE:
            return _refusal(f"AFTER MATCH SKIP {query.after_match.skip.value.upper()}", query.after_match.where)
        if query.output is not Output.ALL:
            return _refusal(f"OUTPUT {query.output.value}", query.places.get("output"))
        if query.timeouts:
            return _refusal("WITH TIMEOUTS", query.places.get("timeouts"))
        if query.over_all_matches:
            where = next((returned.expression.where for returned in query.returns), None)
            return _refusal("Aggregation over all matches (COUNT(*), GROUP BY)", where)
        if query.window_us is None:
            return _refusal("A pattern without WITHIN", query.pattern.where)
        if query.window_us > MOST_WIDTH_US:
            return _refusal("A window as long as all of time", query.pattern.where)
        return None if one_input else _refusal("Input in several DataFrames", None)

    def describe(self, plan: Plan) -> str:
        """The scans and both searches."""
        return describe_clustered(plan)


def _refusal(construct: str, where: Where) -> UnsupportedError:
    return OptionRefusedError(
        f"{construct} does not run with the strategy `clustered`.",
        where=where,
        hint='leave out `strategy="clustered"`: the other strategies shuffle the events.',
    )


CLUSTERED = Clustered()
