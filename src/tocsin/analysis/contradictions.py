"""Distances that no events can keep: what to say of a negative cycle of bounds."""

from __future__ import annotations

from tocsin import errors
from tocsin.algebra.alternatives import Alternative
from tocsin.analysis.closure import Edge, Reason
from tocsin.analysis.durations import format_us
from tocsin.source import Where


def contradiction(cycle: tuple[Edge, ...], where: Where) -> errors.ContradictoryDistancesError:
    """The error for a pattern none of whose alternatives any events can satisfy."""
    edge, sentence = _explain(cycle)
    one, two = sorted((edge.start, edge.end))
    other = next((each.where for each in cycle if each.where not in (None, edge.where)), None)
    return errors.ContradictoryDistancesError(
        f"No events can keep these distances between `{one}` and `{two}`: {sentence}.",
        where=edge.where or where,
        also=None if other is None else ("against the bound", other),
        hint="loosen one of the conditions, or check which event comes first.",
    )


def contradictory_branch(alternative: Alternative, cycle: tuple[Edge, ...]) -> errors.TocsinWarning:
    """The warning for one alternative that no events can satisfy, beside others that some can."""
    edge, sentence = _explain(cycle)
    listed = ", ".join(f"`{name}`" for name in dict.fromkeys(alternative.variables))
    return errors.TocsinWarning(
        "CONTRADICTORY_BRANCH",
        f"No match can bind {listed} together: {sentence}.",
        where=edge.where,
        hint="the other alternatives are still found; leave this one out, or loosen its conditions.",
    )


def never_bound(name: str) -> errors.TocsinWarning:
    """The warning for an optional variable of a pattern with too many alternatives to name one."""
    return errors.TocsinWarning(
        "CONTRADICTORY_BRANCH",
        f"No match can bind `{name}`: its distances to events that every match has contradict each other.",
        hint="matches without it are still found; leave it out, or loosen its conditions.",
    )


def _explain(cycle: tuple[Edge, ...]) -> tuple[Edge, str]:
    """The bound to show, a written one if there is one, and what it says against the rest of the cycle."""
    edge = min(cycle, key=lambda each: list(Reason).index(each.reason))
    rest = -(sum(each.most_us for each in cycle) - edge.most_us)
    by = {Reason.CONDITION: "by this condition", Reason.WINDOW: "within the window", Reason.ORDER: "in order"}
    if edge.most_us >= 0:
        earlier, later = edge.start, edge.end
        ours, others = _most(edge.most_us), _least(rest)
    else:  # the end is before the start: told the other way round
        earlier, later = edge.end, edge.start
        ours, others = _least(-edge.most_us), _most(-rest)
    return edge, f"{by[edge.reason]} `{later}` is {ours} `{earlier}`, by the rest of the pattern {others} it"


def _most(us: int) -> str:
    return f"at most {format_us(us)} after" if us >= 0 else f"at least {format_us(-us)} before"


def _least(us: int) -> str:
    return f"at least {format_us(us)} after" if us >= 0 else f"at most {format_us(-us)} before"
