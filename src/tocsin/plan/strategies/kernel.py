"""`kernel`: nested loops over time slices, the default. They run all of SASE+ and of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin import options
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula, is_of_acel
from tocsin.errors import InternalError, OptionRefusedError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.plan.describe import describe_loops
from tocsin.plan.strategies.automaton import AUTOMATON
from tocsin.plan.strategy import ANY_TYPE, ON_SPARK, Strategy, foreign_expression, refused_as_rule

if TYPE_CHECKING:
    from tocsin.analysis.schema import BoundQuery
    from tocsin.kernels.nested_loops import Kernel
    from tocsin.plan.plan import Plan

# The operators that only ACEL writes, in its words.
OF_ACEL: dict[type[alg.Node], str] = {
    alg.Sequence: "ACEL's `;`",
    alg.Adjacent: "ACEL's `:`",
    alg.Repeat: "ACEL's `+`",
    alg.RepeatAdjacent: "ACEL's `@+`",
    alg.Both: "ACEL's AND",
    alg.Bind: "ACEL's AS",
    alg.Project: "PROJECT",
    alg.Derive: "AGG",
    alg.NextOf: "NEXT",
}


class NestedLoops(Strategy):
    """Nested loops in time slices."""

    name = "kernel"

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """The first construct that loops cannot run, or None."""
        refusal = refused_as_rule(query, engine)
        if refusal is not None:
            return refusal
        elsewhere = f'leave out `strategy="{self.name}"`: an automaton runs it.'
        for node in query.pattern.walk():
            if is_of_acel(node):
                message = f"{OF_ACEL[type(node)]} does not run with the strategy `{self.name}`."
                return OptionRefusedError(message, where=node.where, hint=elsewhere)
            if isinstance(node, alg.Event) and node.type is None:
                raise InternalError(ANY_TYPE, where=node.where)
        foreign = foreign_expression(query)
        if foreign is None:
            return None
        construct, where = foreign
        message = f"{construct} does not run with the strategy `{self.name}`."
        return AUTOMATON.refuses(query, engine=engine) or OptionRefusedError(message, where=where, hint=elsewhere)

    def search(self, bound: BoundQuery) -> Kernel:
        """Nested loops."""
        from tocsin.kernels.nested_loops import kernel

        return kernel(bound)

    def describe(self, plan: Plan) -> str:
        """The scans, the exchange and the loops."""
        return describe_loops(plan)


KERNEL = NestedLoops()


def unsupported(query: alg.Query, engine: str = ON_SPARK) -> UnsupportedError | None:
    """Why no strategy runs a query, or None when one does."""
    by_loops = KERNEL.refuses(query, engine=engine)
    by_automata = None if by_loops is None else AUTOMATON.refuses(query, engine=engine)
    if by_automata is None:
        return None
    return by_automata if is_formula(query) else by_loops


def searching(query: alg.Query) -> Strategy:
    """The strategy whose search finds the matches of a query, where one search is enough: locally and on streams."""
    return KERNEL if KERNEL.refuses(query) is None else AUTOMATON


def refused_on_streams(query: alg.Query, strategy: str) -> UnsupportedError | None:
    """The first thing that does not run on a stream, or None."""
    refusal = unsupported(query)
    if refusal is not None:
        return refusal
    if options.STREAM not in options.STRATEGIES[strategy]:
        return OptionRefusedError(
            f"The strategy `{strategy}` does not run on a stream.", hint="leave out `strategy=`: a kernel runs it."
        )
    if query.over_all_matches and query.every_us is None:
        where = next((returned.expression.where for returned in query.returns), None)
        return UnsupportedError(
            "An aggregate over all matches of a stream is never complete: a stream has no end.",
            gap=Gaps.STREAM_TOTALS,
            where=where,
            hint="report it per window of time: `EVERY 10 MINUTES`.",
        )
    if strategy == "aggregate" and query.every_us is not None and query.window_us is None:
        return OptionRefusedError(
            "EVERY without WITHIN is never known on a stream: a match that starts in a window may end at any time.",
            where=query.places.get("every", query.pattern.where),
            hint="write WITHIN.",
        )
    return None
