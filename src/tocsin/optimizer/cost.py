"""The cost of a strategy in CPU-seconds, from expected sizes and measured speeds.

The constants were measured with Spark 4.3 on two cores, 10 M rows of which 6 M pass the filter. Their ratios carry over
to other machines better than they do themselves, and a choice needs only ratios.

===========  ==============================================================================
join         per variable a scan; per join both sides shuffled and sorted, the left one sent to two time buckets
kernel       one scan; what passes is cut into time slices, shuffled once, handed to Python and searched
clustered    as kernel, but searched where it lies: no shuffle, and a second look at the edges of the parts
===========  ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations

from tocsin.algebra import nodes as alg
from tocsin.analysis.temporal import Closure
from tocsin.optimizer.estimate import Estimate, equated

MILLION = 1_000_000


@dataclass(frozen=True)
class Speeds:
    """CPU-seconds per million rows, and per run where it says so."""

    scan: float = 0.2
    shuffle: float = 0.2
    shuffle_column: float = 0.06
    sort: float = 0.6
    slice: float = 0.05
    hand_over: float = 0.05
    hand_over_column: float = 0.03
    search: float = 0.2  # sorting and walking a row in the kernel
    test: float = 0.05  # a partial match tried in the kernel
    probe: float = 0.1  # a pair tried in a join
    match: float = 0.4  # a match built, by whichever way
    pass_on: float = 1.7  # a match of the clustered kernel sent through the second pass
    python: float = 0.5  # per run: workers load the kernel
    stage: float = 0.2  # per run and shuffle


SPEEDS = Speeds()
PACKED = 3  # columns a kernel needs whatever the query: key and slice, time, flags


@dataclass(frozen=True)
class Cost:
    """CPU-seconds, and what they go to."""

    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """All together."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        """The sum and its largest parts.

        >>> print(Cost({"scan": 2.1, "shuffle": 2.5, "search": 0.01}))
        4.6 CPU-s (shuffle 2.5, scan 2.1)
        """
        large = sorted(self.parts.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} {seconds_text(cost)}" for name, cost in large if cost >= 0.02 * self.seconds > 0)
        return f"{seconds_text(self.seconds)} CPU-s" + (f" ({shown})" if shown else "")


def seconds_text(seconds: float) -> str:
    """Seconds for people, two digits."""
    if not math.isfinite(seconds):
        return "endless"
    return f"{seconds:.2g}" if seconds < 100 or seconds >= MILLION else f"{seconds:,.0f}".replace(",", " ")


def kernel_cost(estimate: Estimate, *, halo: float = 0.0, shuffles: bool = True) -> Cost:
    """The cost of the sliced kernel; without the shuffle, of the clustered one.

    `halo` is the share of rows that are sent twice, or looked at twice at the edges of the parts.
    """
    rows = estimate.rows / MILLION
    width = PACKED + estimate.columns
    sent = rows * (1 + halo)
    parts = {"scan": _scan(estimate, alg.event_types(estimate.query.pattern))}
    if shuffles:
        parts["slices"] = rows * SPEEDS.slice
        parts["shuffle"] = sent * (SPEEDS.shuffle + width * SPEEDS.shuffle_column) + SPEEDS.stage
    else:
        # The edges are read again and shuffled.
        parts["edges"] = rows * halo * (SPEEDS.scan + SPEEDS.shuffle + width * SPEEDS.shuffle_column) + 2 * SPEEDS.stage
    parts["hand-over"] = sent * (SPEEDS.hand_over + width * SPEEDS.hand_over_column) + SPEEDS.python
    tested = sum(_tested(estimate, closure) for closure in estimate.network.alternatives)
    parts["search"] = sent * SPEEDS.search + tested / MILLION * SPEEDS.test
    parts["matches"] = estimate.matches / MILLION * (SPEEDS.match if shuffles else SPEEDS.match + SPEEDS.pass_on)
    return Cost(parts)


def _tested(estimate: Estimate, closure: Closure) -> float:
    """The partial matches a search tries: each step tries all candidates within the span of what is bound."""
    tried, singles = 0.0, estimate.singles(closure)
    for place in range(1, len(singles)):
        tried += estimate.tuples(closure, singles[:place]) * estimate.per_window(closure, singles[place])
    if estimate.iterated(closure):
        bound = estimate.tuples(closure, singles) if singles else 1.0
        for name in estimate.iterated(closure):
            bound *= 1 + estimate.bags(closure, name)
        tried += bound
    return tried


def join_cost(estimate: Estimate, orders: Mapping[frozenset[str], Order]) -> Cost:
    """The cost of native joins; `orders` has their order by the set of variables of an alternative."""
    parts = {"scan": 0.0, "shuffle": 0.0, "sort": 0.0, "probe": 0.0}
    width = 1 + estimate.columns

    def add_join(left: float, right: float, events: int) -> None:
        """Shuffle and sort matches of so many events, and the candidates of one more."""
        parts["shuffle"] += left * (SPEEDS.shuffle + events * width * SPEEDS.shuffle_column) + SPEEDS.stage
        parts["shuffle"] += right * (SPEEDS.shuffle + width * SPEEDS.shuffle_column)
        parts["sort"] += (left + right) * SPEEDS.sort

    for closure in estimate.network.alternatives:
        order = orders.get(frozenset(closure.variables), closure.variables)
        for name in order:
            parts["scan"] += _scan(estimate, estimate.types_in(closure, name))
        for place in range(1, len(order)):
            joined = [name for name in closure.variables if name in order[:place]]
            left = 2 * estimate.tuples(closure, joined) / MILLION
            right = estimate.candidates(order[place], estimate.types_in(closure, order[place])) / MILLION
            add_join(left, right, place)
            # Buckets are as wide as the distance: about twice the pairs that are near enough meet in one.
            parts["probe"] += left * estimate.per_window(closure, order[place]) * SPEEDS.probe
        for absence in closure.alternative.absences:
            # An anti join like any other: the matches so far against the events that may block them.
            left = 2 * estimate.tuples(closure, closure.variables) / MILLION
            right = estimate.candidates(absence.variable, (absence.type,)) / MILLION
            parts["scan"] += _scan(estimate, (absence.type,))
            add_join(left, right, len(order))
    parts["matches"] = estimate.matches / MILLION * SPEEDS.match
    return Cost(parts)


def _scan(estimate: Estimate, types: Iterable[str | None]) -> float:
    """The cost of reading events of some types: Spark reads a DataFrame once for each place it is used in."""
    known = estimate.statistics
    rows = known.rows if estimate.shared_input else sum(known.count(kind or "") for kind in types)
    return rows / MILLION * SPEEDS.scan


# --- the order of joins ---------------------------------------------------------------------------

MOST_EXHAUSTIVE = 6
Order = tuple[str, ...]


def join_order(estimate: Estimate, closure: Closure) -> Order:
    """The variables in the order that builds least, without a cross product where one can be avoided.

    All orders are weighed up to six variables; beyond, the next is always the one that makes the smallest result.
    """
    names = closure.variables
    if len(names) <= 1:
        return names
    search = _Search(estimate, closure)
    if len(names) <= MOST_EXHAUSTIVE:
        return min(permutations(names), key=search.weight)
    return search.greedy()


class _Search:
    def __init__(self, estimate: Estimate, closure: Closure) -> None:
        self.estimate = estimate
        self.closure = closure
        self.names = closure.variables
        self.sizes: dict[frozenset[str], float] = {}
        self.neighbours = {name: frozenset(self._neighbours(name)) for name in self.names}

    def weight(self, order: Order) -> tuple[int, float, tuple[int, ...]]:
        """Cross products, then rows built on the way; the order of the text breaks ties."""
        crosses = sum(1 for place in range(1, len(order)) if not self.is_connected(order[place], order[:place]))
        built = sum(self.size(order[: place + 1]) for place in range(1, len(order) - 1))
        # A join sends its left side to two time buckets, so that the smaller side goes first.
        built += self.size(order[:1])
        return crosses, built, tuple(map(self.names.index, order))

    def greedy(self) -> Order:
        """From the rarest variable on, always the connected one that makes least."""
        order = [min(self.names, key=lambda name: self.size((name,)))]
        while len(order) < len(self.names):
            rest = [name for name in self.names if name not in order]
            order.append(min(rest, key=lambda name: (not self.is_connected(name, order), self.size((*order, name)))))
        return tuple(order)

    def size(self, names: tuple[str, ...]) -> float:
        key = frozenset(names)
        if key not in self.sizes:
            ordered = [name for name in self.names if name in key]
            self.sizes[key] = self.estimate.tuples(self.closure, ordered)
        return self.sizes[key]

    def is_connected(self, name: str, joined: tuple[str, ...] | list[str]) -> bool:
        return not self.neighbours[name].isdisjoint(joined)

    def _neighbours(self, name: str) -> Iterator[str]:
        keyed = bool(self.estimate.query.partition.attributes)
        equal = [ends for conjunct in self.estimate.query.conjuncts if (ends := equated(conjunct)) is not None]
        for other in self.names:
            near = None not in self.closure.distance(name, other)
            if other != name and (keyed or near or any({name, other} == {one for one, _ in ends} for ends in equal)):
                yield other


# --- time slices ----------------------------------------------------------------------------------

DEFAULT_SPANS = 16  # without statistics a slice is this many spans wide: a halo of 6 %
WIDEST_SPANS = 64  # wider slices save no more than a hundredth of the rows
NARROWEST_SPANS = 10  # a halo of 10 %
SLICES_PER_CORE = 4
RARE = 0.01
SPARSE = 0.1


def slice_width_us(span_us: int | None, estimate: Estimate | None = None, *, cores: int = 2) -> int | None:
    """The width of the time slices of a pattern whose matches need so long a view; None when it cannot be sliced.

    At least four slices per core keep all cores busy; a halo of at most a tenth keeps the copies few. When the input is
    too short for both, keys give the cores work, if there are enough of them; otherwise the cores come first.

    >>> slice_width_us(10_000_000)
    160000000
    """
    if span_us is None:
        return None
    span = max(span_us, 1)
    if estimate is None:
        return DEFAULT_SPANS * span
    widest = max(estimate.statistics.duration_us // (SLICES_PER_CORE * max(cores, 1)), 1)
    if widest >= NARROWEST_SPANS * span:
        return min(WIDEST_SPANS * span, widest)
    keys = estimate.statistics.keys if estimate.query.partition.attributes else None
    # Many keys, and none much heavier than a core's share, keep all cores busy by themselves.
    if keys and keys.distinct >= SLICES_PER_CORE * cores and keys.share_of_heaviest <= 1 / (2 * cores):
        return DEFAULT_SPANS * span
    return max(2 * span, widest)


def prefilter(estimate: Estimate, span_us: int | None) -> str | None:
    """A variable in every match, so rare that the events near its own are a small part of all others.

    Its candidates are below a hundredth of the others', and the time within one span of them below a tenth of all: then
    sending only what lies there is worth a small extra pass.
    """
    if span_us is None:
        return None
    sure = [name for name, kind in estimate.query.variables.items() if not kind.optional]
    counts = {name: estimate.candidates(name) for name in sure}
    if not counts:
        return None
    rare = min(counts, key=lambda name: counts[name])
    others = estimate.rows - counts[rare]
    covered = counts[rare] * 2 * span_us / estimate.statistics.duration_us
    return rare if counts[rare] < RARE * others and covered < SPARSE else None
