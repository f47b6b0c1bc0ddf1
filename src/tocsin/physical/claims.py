"""What each strategy runs and what it refuses: asked before any DataFrame is touched, and without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import automata
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import is_formula, is_of_acel
from tocsin.errors import InternalError, OptionRefusedError, UnsupportedError
from tocsin.gaps import Gaps
from tocsin.kernels.aggregates.windows import windows_of
from tocsin.kernels.reach import reach_of
from tocsin.kernels.trends.formula import as_paths
from tocsin.kernels.trends.machine import NotAPathError
from tocsin.kernels.trends.request import refusal as not_a_trend
from tocsin.language import expressions as ex
from tocsin.language.ast import Output, Selection, Skip
from tocsin.physical.foreign import foreign_expression, of_rules, only_in_kernels
from tocsin.physical.joins.claims import HINT
from tocsin.physical.joins.claims import unsupported as refused_by_joins
from tocsin.physical.joins.countable import can_count
from tocsin.physical.sliced.width import MOST_WIDTH_US
from tocsin.source import Where

# The operators that only ACEL writes, in its words.
OTHER_LANGUAGES: dict[type[alg.Node], str] = {
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
ANY_TYPE = "No language writes an event of any type, and no engine runs one."
# Where one of these is possible it is best, and otherwise not worth a word.
COUNTING = ("count", "trend")
ADDS_OTHERS = "it adds up values that are neither integers nor doubles"
CONTIGUOUS = (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS)


def refusals(query: alg.Query, *, one_input: bool = True) -> Mapping[str, UnsupportedError | None]:
    """For each strategy the first construct that it cannot run, or None.

    `one_input` says whether all events come from one DataFrame.

    Examples
    --------
    >>> a, b = alg.Event("A", "a"), alg.Repeat(alg.Event("B", "b"), 1, None)
    >>> [name for name, refusal in refusals(alg.Query(alg.Within(alg.Sequence((a, b)), 10))).items() if refusal is None]
    ['kernel', 'clustered', 'automaton', 'aggregate']
    """
    return {
        "join": refused_by_joins(query),
        "sliding-window": refused_by_joins(query, sliding=True),
        "count": refused_by_counts(query),
        "trend": refused_by_trends(query),
        "kernel": refused_by_kernels(query),
        "clustered": refused_by_clustered(query, one_input=one_input),
        "automaton": refused_by_automata(query),
        "aggregate": refused_by_aggregates(query),
    }


def claims(query: alg.Query, wanted: str = "auto", *, one_input: bool = True) -> list[tuple[str, str | None]]:
    """What the planner weighs: strategies, and why each cannot run.

    The windows of the papers are there to compare with; nobody is served by choosing them, and counting is worth a word
    only where it is possible. An automaton is for what nothing else runs, and then there is nothing to weigh.
    """
    if wanted != "automaton" and refused_by_kernels(query) is not None and refused_by_automata(query) is None:
        refusal = None if wanted == "auto" else refusals(query, one_input=one_input).get(wanted)
        counted = refused_by_trends(query) is None
        asked = [(wanted, refusal.message)] if refusal is not None else []
        able = [*(["trend"] if counted else []), *(["aggregate"] if wanted == "aggregate" and not asked else [])]
        return [*asked, *((name, None) for name in (*able, "automaton"))]
    left_out = {"sliding-window", "automaton", "aggregate"}
    return [
        (name, None if refusal is None else refusal.message)
        for name, refusal in refusals(query, one_input=one_input).items()
        if name == wanted or (name not in left_out and (name not in COUNTING or refusal is None))
    ]


def unsupported(query: alg.Query, engine: str = "on Spark") -> UnsupportedError | None:
    """Why no strategy runs a query, or None when one does."""
    by_kernels = refused_by_kernels(query, engine)
    by_automata = None if by_kernels is None else refused_by_automata(query, engine)
    if by_automata is None:
        return None
    return by_automata if is_formula(query) else by_kernels


def counts_other_types(query: alg.Query) -> bool:
    """Whether events of types that the pattern does not name change what is found: by who stands beside whom (R17)."""
    by_neighbours = (alg.Adjacent, alg.RepeatAdjacent, alg.NextOf)
    return query.selection in CONTIGUOUS or any(isinstance(node, by_neighbours) for node in query.pattern.walk())


def refused_by_counts(query: alg.Query) -> UnsupportedError | None:
    """Why window aggregates do not answer a query, or None."""
    if can_count(query):
        return None
    return OptionRefusedError(
        "More than the number of matches of one bounded iteration with conditions on single events is asked.",
        where=query.pattern.where,
        hint='leave out `strategy="count"`.',
    )


def refused_by_trends(query: alg.Query) -> UnsupportedError | None:
    """Why the matches of a query are not counted without being built, or None."""
    try:
        said = as_paths(query)
    except NotAPathError as problem:
        return cannot_count(query, str(problem))
    refusal = refused_by_kernels(said)
    if refusal is not None:
        return refusal
    reason = not_a_trend(said)
    return None if reason is None else cannot_count(query, reason)


def cannot_count(query: alg.Query, reason: str) -> UnsupportedError:
    """The strategy `trend` was asked for, and does not run the query."""
    return OptionRefusedError(
        f"The matches of this query cannot be counted without being built: {reason}.",
        where=query.pattern.where,
        hint='leave out `strategy="trend"`.',
    )


def refused_as_rule(query: alg.Query, engine: str) -> UnsupportedError | None:
    """The first thing that only rules say, which no strategy runs yet, or None."""
    found = of_rules(query, engine)
    if found is None:
        return None
    gap, construct, where = found
    return UnsupportedError(f"{construct} does not run {engine} yet.", gap=gap, where=where)


def refused_by_automata(query: alg.Query, engine: str = "on Spark") -> UnsupportedError | None:
    """Why a query does not run as an automaton, or None."""
    refusal = refused_as_rule(query, engine)
    if refusal is not None:
        return refusal
    said = only_in_kernels(query)
    if said is not None:
        message = f"{said[0]} does not run with the strategy `automaton`."
        return OptionRefusedError(message, where=said[1], hint='leave out `strategy="automaton"`: a kernel runs it.')
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


def _first_of_made(query: alg.Query) -> ex.Aggregate | None:
    """A FIRST or LAST of all matches that goes by positions which events of a match no longer show."""
    trims = any(
        attributes is not None
        for node in query.pattern.walk()
        if isinstance(node, alg.Project)
        for _, attributes in node.kept
    )
    outputs = [one.expression for one in query.returns] + ([query.having] if query.having is not None else [])
    for output in outputs if query.over_all_matches else []:
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


def refused_by_aggregates(query: alg.Query, engine: str = "on Spark") -> UnsupportedError | None:
    """Why windows that know nothing of each other do not find the matches of a query, or None."""
    refusal = unsupported(query, engine)
    if refusal is not None:
        return refusal
    skip = query.after_match
    if skip.skip is not Skip.REUSE:
        return _no_aggregate(
            f"AFTER MATCH SKIP {skip.skip.value.upper()} depends on all matches before, and a window knows none of "
            "those that others report",
            skip.where,
            "`OUTPUT first` chooses among the matches of one start, which one window has; or leave out",
        )
    windows = windows_of(reach_of(query))
    if windows is None:
        return None if most_events(query) is not None else _not_constant(query)
    if windows.advance_us > MOST_WIDTH_US:
        return _no_aggregate("A window as long as all of time is held by no other", query.pattern.where, "leave out")
    return None


def most_events(query: alg.Query) -> int | None:
    """How many events a match of a query can have, where an automaton tells that there is such a number."""
    if refused_by_automata(query) is not None:
        return None
    return automata.most_events(automata.automaton(query.pattern, contiguous=query.selection in CONTIGUOUS))


def _not_constant(query: alg.Query) -> UnsupportedError:
    reason = "what a fold over all events would have to remember grows with them"
    if refused_by_automata(query) is not None:
        reason = "no automaton says what a fold over all events would have to remember"
    return _no_aggregate(
        f"Without WITHIN no window holds a match, and {reason}", query.pattern.where, "write WITHIN, or leave out"
    )


def _no_aggregate(reason: str, where: Where, instead: str) -> UnsupportedError:
    return OptionRefusedError(
        f"{reason}: this does not run with the strategy `aggregate`.",
        where=where,
        hint=f'{instead} `strategy="aggregate"`.',
    )


def refused_by_kernels(
    query: alg.Query, engine: str = "on Spark", *, strategy: str = "kernel"
) -> UnsupportedError | None:
    """The first construct that kernels cannot run, or None."""
    refusal = refused_as_rule(query, engine)
    if refusal is not None:
        return refusal
    elsewhere = f'leave out `strategy="{strategy}"`: an automaton runs it.'
    for node in query.pattern.walk():
        if is_of_acel(node):
            construct = OTHER_LANGUAGES[type(node)]
            message = f"{construct} does not run with the strategy `{strategy}`."
            return OptionRefusedError(message, where=node.where, hint=elsewhere)
        if isinstance(node, alg.Event) and node.type is None:
            raise InternalError(ANY_TYPE, where=node.where)
    foreign = foreign_expression(query)
    if foreign is not None:
        construct, where = foreign
        message = f"{construct} does not run with the strategy `{strategy}`."
        by_automata = refused_by_automata(query, engine)
        return by_automata or OptionRefusedError(message, where=where, hint=elsewhere)
    return None


def refused_by_clustered(query: alg.Query, *, one_input: bool = True) -> UnsupportedError | None:
    """Why a query cannot be searched in the partitions that its events lie in, or None."""
    refusal = refused_by_kernels(query, strategy="clustered")
    if refusal is not None:
        return refusal
    around = next(iter(alg.around_in(query.pattern)), None)
    if around is not None:
        return _not_clustered("An absence" if isinstance(around, alg.Absent) else "`all` of a rule", around.where)
    if query.unordered:
        return _not_clustered("`unordered`", query.pattern.where)
    if query.selection is not Selection.ANY:
        return _not_clustered(f"SEMANTICS {query.selection.value}", query.places.get("selection"))
    if query.after_match.skip is not Skip.REUSE:
        return _not_clustered(f"AFTER MATCH SKIP {query.after_match.skip.value.upper()}", query.after_match.where)
    if query.output is not Output.ALL:
        return _not_clustered(f"OUTPUT {query.output.value}", query.places.get("output"))
    if query.timeouts:
        return _not_clustered("WITH TIMEOUTS", query.places.get("timeouts"))
    if query.over_all_matches:
        where = next((returned.expression.where for returned in query.returns), None)
        return _not_clustered("Aggregation over all matches (COUNT(*), GROUP BY)", where)
    if query.window_us is None:
        return _not_clustered("A pattern without WITHIN", query.pattern.where)
    if query.window_us > MOST_WIDTH_US:
        return _not_clustered("A window as long as all of time", query.pattern.where)
    return None if one_input else _not_clustered("Input in several DataFrames", None)


def _not_clustered(construct: str, where: Where) -> UnsupportedError:
    return OptionRefusedError(
        f"{construct} does not run with the strategy `clustered`.",
        where=where,
        hint='leave out `strategy="clustered"`: the other strategies shuffle the events.',
    )
