"""Choose a strategy: by cost if there are statistics, and otherwise nearly always the kernel.

Strategies refuse what they cannot run; this module chooses among the others. A choice never changes a result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin.algebra import nodes as alg
from tocsin.algebra.units import format_us
from tocsin.analysis.temporal import Network
from tocsin.optimizer.cost import Cost, Order, join_cost, join_order, kernel_cost, prefilter, slice_width_us
from tocsin.optimizer.estimate import Estimate
from tocsin.optimizer.query_parts import is_filter, is_plain
from tocsin.optimizer.statistics import Statistics, spaced

JOIN, COUNT, TREND, KERNEL, CLUSTERED = "join", "count", "trend", "kernel", "clustered"
WEIGHED = (JOIN, COUNT, TREND, KERNEL, CLUSTERED)  # by `auto`; users ask for the others
AUTOMATON = "automaton"
MOST_EDGES = 0.2  # of the input that lies near the edges of its parts
MOST_BRANCHES = 32  # of joins that are chosen without being asked for: each has scans and columns of its own
MOST_MEMORY = 512_000_000  # bytes of matches that one task may hold
MOST_MATCHES_PER_START = 100_000
Claim = tuple[str, str | None]


@dataclass(frozen=True)
class Option:
    """A strategy that was weighed: its cost, when it could be told, or why it cannot run."""

    strategy: str
    cost: Cost | None = None
    refusal: str | None = None


@dataclass(frozen=True)
class Choice:
    """The decision of the planner, and its reason."""

    strategy: str | None  # the chosen one; None when every engine refuses
    reason: str  # one sentence
    options: tuple[Option, ...] = ()  # all that were weighed, the chosen one included
    # By the set of variables of an alternative: the order of its joins. Empty without statistics.
    join_orders: Mapping[frozenset[str], Order] = field(default_factory=dict)
    # A rare variable near whose events the others are looked for; None when it would not pay.
    prefilter: str | None = None
    slice_us: int | None = None  # the width of time slices; None when the pattern has no bounded span
    # `matches`, `matches_per_start`: expected, in all, and from one first event in the heaviest key; None without
    # statistics.
    matches: float | None = None
    matches_per_start: float | None = None
    warning: str | None = None  # what to do about too many matches, when they are expected

    def to_dict(self) -> dict[str, Any]:
        """For tools."""
        return {
            "strategy": self.strategy,
            "reason": self.reason,
            "options": [
                {
                    "strategy": option.strategy,
                    "cpu_seconds": None if option.cost is None else option.cost.seconds,
                    "refusal": option.refusal,
                }
                for option in self.options
            ],
            "join_orders": [list(order) for order in self.join_orders.values()],
            "prefilter": self.prefilter,
            "slice_us": self.slice_us,
            "matches": self.matches,
            "matches_per_start": self.matches_per_start,
            "warning": self.warning,
        }


def choose(
    query: alg.Query,
    network: Network,
    claims: Iterable[Claim],
    statistics: Statistics | None = None,
    *,
    strategy: str = "auto",
    span_us: int | None = None,
    cores: int = 2,
    columns: int = 1,
    shared_input: bool = False,
    time: str = "ts",
    most_matches_per_start: float = MOST_MATCHES_PER_START,
) -> Choice:
    """Choose a strategy for a query.

    `claims` has `(strategy, refusal)` for each strategy; the refusal is None when it can run the query. Without
    statistics the kernel is chosen, unless a filter is enough. What a strategy that the user wants refuses is for the
    caller to raise. `span_us` is how long a view a match needs, its absences included; by default the longest distance
    of the network, twice for an absence. `columns` are those of an event that are carried for conditions and results;
    `shared_input`: all types come from one DataFrame.
    """
    known = dict(claims)
    span = span_us if span_us is not None else longest_span_us(query, network)
    estimate = None
    orders: dict[frozenset[str], Order] = {}
    if statistics is not None and is_plain(query):
        estimate = Estimate(query, network, statistics, time, columns, shared_input)
        orders = {frozenset(each.variables): join_order(estimate, each) for each in network.alternatives}
    width = slice_width_us(span, estimate, cores=cores)
    halo = 0.0 if span is None or width is None else span / width
    options = []
    for name, refusal in known.items():
        why_not = refusal
        if why_not is None and name == JOIN and strategy != JOIN and known.get(KERNEL, "") is None:
            branches = len(network.alternatives)
            why_not = f"{branches} branches would take Spark long to plan" if branches > MOST_BRANCHES else None
        if why_not is None and name == CLUSTERED:
            why_not = None if strategy == CLUSTERED else _not_clustered(statistics, span)
        cost = None
        if estimate is not None and why_not is None:
            cost = _cost(name, estimate, orders, span, halo)
        options.append(Option(name, cost, why_not))
    chosen, reason = _decide(query, options, strategy)
    return Choice(
        strategy=chosen,
        reason=reason,
        options=tuple(options),
        join_orders=orders,
        prefilter=None if estimate is None else prefilter(estimate, span),
        slice_us=width,
        matches=None if estimate is None else estimate.matches,
        matches_per_start=None if estimate is None else estimate.most_per_start,
        # What is counted needs no match to be listed.
        warning=None if estimate is None or chosen in (COUNT, TREND) else explosion(estimate, most_matches_per_start),
    )


def longest_span_us(query: alg.Query, network: Network) -> int | None:
    """How far a match reaches, its absences included; None when there is no bound."""
    spans = [closure.span_us for closure in network.alternatives]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans):
        return None
    longest = max((span + 1 for span in known), default=0)
    edges = [
        bound
        for absence in alg.absences_in(query.pattern)
        for bound in absence.lower + absence.upper
        if isinstance(bound.anchor, alg.Whole) and bound.offset_us
    ]
    return longest + max((abs(bound.offset_us) for bound in edges), default=0)


def _not_clustered(statistics: Statistics | None, span_us: int | None) -> str | None:
    layout = None if statistics is None else statistics.layout
    if statistics is None or layout is None:
        return "it is not known whether the input lies in order of time; `analyze` tells"
    if not layout.is_clustered:
        return "the parts of the input overlap in time"
    if span_us is None:
        return "a match may reach over any time"
    if _edges(statistics, span_us) > MOST_EDGES:
        return f"a match may reach over {format_us(span_us)}, which is much of a part of the input"
    return None


def _edges(statistics: Statistics, span_us: int) -> float:
    """The share of the input near the edges of its parts: less than two spans from the first or the last event."""
    parts = statistics.layout.parts if statistics.layout is not None else 1
    return min(1.0, 4 * span_us * parts / statistics.duration_us)


def _cost(
    name: str, estimate: Estimate, orders: Mapping[frozenset[str], Order], span_us: int | None, halo: float
) -> Cost | None:
    match name:
        case "join":
            if any(closure.alternative.iterated for closure in estimate.network.alternatives):
                return None  # the joins of an iteration are not estimated
            return join_cost(estimate, orders)
        case "kernel":
            return kernel_cost(estimate, halo=halo)
        case "clustered":
            return kernel_cost(estimate, halo=_edges(estimate.statistics, span_us or 0), shuffles=False)
        case _:
            return None  # strategies kept for comparison are never chosen by cost


def _decide(query: alg.Query, options: list[Option], wanted: str) -> tuple[str | None, str]:
    able = {option.strategy: option for option in options if option.refusal is None}
    if wanted != "auto":
        return wanted, "asked for"
    if not able:
        return None, "no strategy runs it"
    if COUNT in able:
        return COUNT, "only the number of matches is asked, which needs no match"
    if TREND in able:
        return TREND, "aggregates over all matches of a sequence are computed event by event, and no match is built"
    priced = {name: option.cost.seconds for name, option in able.items() if option.cost is not None}
    if priced:
        best = min(priced, key=priced.__getitem__)
        return best, "the cheapest by the statistics" if len(priced) > 1 else "the only one that runs it"
    if JOIN in able and is_filter(query):
        return JOIN, "a match is one event: nothing is joined, and no event is sent anywhere"
    if KERNEL in able:
        return KERNEL, "one scan and one shuffle find any number of events, where every join reads and shuffles again"
    if AUTOMATON in able:
        return AUTOMATON, "events are read one by one, with registers for what neighbours and aggregates decide"
    fallback = JOIN if JOIN in able else next(iter(able))
    refusal = next((option.refusal for option in options if option.strategy == KERNEL), None)
    return fallback, f"{KERNEL} would be the default, but: {refusal or 'it is not there'}"


def expected_explosion(
    query: alg.Query, network: Network, statistics: Statistics, time: str, most: float
) -> str | None:
    """The warning that `explosion` gives for a query, where its matches can be estimated."""
    return explosion(Estimate(query, network, statistics, time), most) if is_plain(query) else None


def explosion(estimate: Estimate, most: float = MOST_MATCHES_PER_START) -> str | None:
    """A warning when one start is expected to have more matches than the limit; None when not."""
    if estimate.most_per_start <= most or not estimate.network.alternatives:
        return None
    worst = max(estimate.network.alternatives, key=lambda closure: estimate.per_start(closure, heaviest=True))
    loose = estimate.iterated(worst)
    if loose:
        name = max(loose, key=lambda each: estimate.bags(worst, each, heaviest=True))
        why = f"`{name}` repeats over"
    else:
        name = max(worst.variables, key=lambda each: estimate.per_window(worst, each, heaviest=True))
        why = f"`{name}` has"
    number = spaced(estimate.per_window(worst, name, heaviest=True))
    matches = "more matches than can be counted"
    if math.isfinite(estimate.most_per_start):
        matches = f"some {spaced(estimate.most_per_start)} matches"
    return (
        f"{why} about {number} events in a window, which makes {matches} from one start; the limit is {spaced(most)}. "
        "Use `SEMANTICS next`, bound the iteration (`{1,5}`), or take a smaller window."
    )
