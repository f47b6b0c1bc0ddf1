"""`automaton`: a register automaton that reads events in order. It runs all of ACEL, and compact rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula
from tocsin.errors import InternalError, OptionRefusedError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
from tocsin.plan.describe import describe_automaton
from tocsin.plan.strategy import ANY_TYPE, CONTIGUOUS, HINT, ON_SPARK, Strategy, only_in_kernels, refused_as_rule

if TYPE_CHECKING:
    from tocsin.analysis.schema import BoundQuery
    from tocsin.kernels.runs.register_automaton import RunKernel
    from tocsin.plan.plan import Plan


class Automaton(Strategy):
    """A register automaton in time slices."""

    name = "automaton"

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        """Why a query does not run as an automaton, or None."""
        refusal = refused_as_rule(query, engine)
        if refusal is not None:
            return refusal
        said = only_in_kernels(query)
        if said is not None:
            message = f"{said[0]} does not run with the strategy `automaton`."
            hint = 'leave out `strategy="automaton"`: a kernel runs it.'
            return OptionRefusedError(message, where=said[1], hint=hint)
        for node in query.pattern.walk():
            if isinstance(node, alg.Event) and node.type is None:
                raise InternalError(ANY_TYPE, where=node.where)
        ordered = _first_of_made(query)
        if ordered is not None:
            return UnsupportedError(
                f"{ordered.function.upper()} over all matches, of events that PROJECT or AGG has made, "
                f"does not run {engine} yet.",
                gap=Gaps.EDGES_OF_MADE_EVENTS,
                where=ordered.where,
            )
        reason = _no_automaton(query)
        if reason is None:
            return None
        hint = HINT if is_formula(query) else 'leave out `strategy="automaton"`.'
        return OptionRefusedError(reason, where=query.pattern.where, hint=hint)

    def search(self, bound: BoundQuery) -> RunKernel:
        """The automaton."""
        from tocsin.kernels.runs.register_automaton import run_kernel

        return run_kernel(bound)

    def describe(self, plan: Plan) -> str:
        """The scans, the exchange and the states."""
        return describe_automaton(plan)


def most_events(query: alg.Query) -> int | None:
    """The most events of a match, where an automaton bounds them."""
    if AUTOMATON.refuses(query) is not None:
        return None
    return automata.most_events(automata.automaton(query.pattern, contiguous=query.selection in CONTIGUOUS))


def _first_of_made(query: alg.Query) -> ex.Aggregate | None:
    """A FIRST or LAST of all matches that goes by positions which events of a match no longer show."""
    trims = any(
        attributes is not None
        for node in query.pattern.walk()
        if isinstance(node, alg.Project)
        for _, attributes in node.kept
    )
    for output in query.outputs if query.over_all_matches else ():
        for node in output.walk():
            if isinstance(node, ex.Aggregate) and node.function in ("first", "last"):
                if trims or any(None in query.variables[name].types for name in ex.variables_in(node)):
                    return node
    return None


def _no_automaton(query: alg.Query) -> str | None:
    if query.selection is Selection.NEXT:
        return "The selection policy `next` asks which other events could have been bound; an automaton does not know."
    if query.selection is Selection.CONTIGUOUS and query.partition.attributes:
        return "`contiguous` counts the events of all partitions, and an automaton reads one."
    if query.ranks_matches or query.timeouts:
        return "An automaton finds every match, and knows no policies."
    return automata.refusal(query.pattern)


AUTOMATON = Automaton()
