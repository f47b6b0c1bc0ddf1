"""The form of a query decides how its rows may be split and how it is searched; types of attributes are not needed.

Rows are split into time slices (`width_us`), or into the windows Γ(WA, WS) of one size at regular distances (000 §2.1,
§4). D, which is `longest_us`, is the time within which lies whatever decides a match: its events and all that could
change it. Of that `before_us` lies before its start, so that window n is [n·WA − before, n·WA − before + WS).

A match is reported by the last window that holds all of that. WA ≤ WS − D + δ and WS ≥ D make sure that there is one
(000, Theorem 2), and then it is the window with n·WA ≤ start < (n + 1)·WA: in time slices of the width WA, the slice
that owns the start. δ is a microsecond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import compares_ties
from tocsin.analysis.types import Kind
from tocsin.automata import most_events
from tocsin.automata.model import Automaton
from tocsin.errors import UnsupportedError, unknown_node
from tocsin.gaps import Gaps
from tocsin.kernels.trends.machine import Machine, NotAPathError, machine
from tocsin.language import expressions as ex
from tocsin.language.ast import PER_END, Output, Selection, Skip
from tocsin.optimizer.choose import MOST_MATCHES_PER_START, MOST_MEMORY

if TYPE_CHECKING:  # the reach of a query is known where there are no arrays, too
    from tocsin.kernels.model import Carried, Matches, Rows, Source, Template


REACHES_PER_SLICE = 16
# So wide that the number of a slice and those beside it are far from the ends of 64 bits.
LEAST_WIDTH_US = 2
MOST_WIDTH_US = 2**62
MOST_GROUPS = 64  # groups of searches that split rows in different ways; a row has six bits for their numbers


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The rows that a task must see."""

    query: alg.Query
    needs_order: bool  # whether positions matter: then `Rows.order` is needed
    compares_ties: bool  # whether tie columns order events of one instant (R41): then `Rows.instants` is needed
    # Whether events that are candidates of no variable count for positions (contiguity), types outside the pattern
    # included (R17).
    counts_every_event: bool
    # Whether positions count over all partitions (`contiguous`, R6): rows may then not be split by partition.
    crosses_partitions: bool
    # Whether time slices may be searched by themselves: not with an after-match policy, nor without a bounded span.
    can_slice: bool
    # The window for the events that a match binds one by one; those that it gathers may lie outside.
    span_us: int | None
    # How far before and after the times it owns a slice must see events, exclusive: ts > lo − back, ts < hi + ahead.
    back_us: int
    ahead_us: int
    owns_by_end: bool  # whether a slice owns the matches that end in it, not those that start in it


def reach_of(query: alg.Query) -> Reach:
    """The rows that a task of a query must see."""
    per_end = query.output in PER_END
    gatherings = list(alg.gatherings_in(query.pattern))
    window = None if query.window_us is None else query.window_us - alg.gathered_us(query.pattern)
    around = list(alg.around_in(query.pattern))
    looks_back = any(isinstance(bound.anchor, alg.Whole) for each in around for bound in each.lower)
    before = max(map(alg.before_us, around), default=0)
    after = max([0, *map(alg.after_us, around)])
    is_back = per_end or looks_back
    return Reach(
        query=query,
        needs_order=query.compares_matches or bool(query.unordered) or (bool(gatherings) and shows_order(query)),
        compares_ties=compares_ties(query.pattern),
        counts_every_event=query.selection in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS),
        crosses_partitions=query.selection is Selection.CONTIGUOUS and bool(query.partition.attributes),
        can_slice=window is not None and query.after_match.skip is Skip.REUSE,
        span_us=window,
        # A match of span < W that starts in the slice ends before `hi + W`; one that ends in it starts after `lo − W`.
        # An absence before a match looks W back from its end, one after it W ahead of its start: no further than that;
        # one that is seen from an event of the match looks as far as it says, before and after all of the match, and so
        # does a gathering. What a match gathers says nothing about who owns it: its other events do.
        back_us=0 if window is None else max(window if is_back else 0, before + (window if per_end else 0)),
        ahead_us=0 if window is None else window + after,
        owns_by_end=per_end,
    )


def shows_order(query: alg.Query) -> bool:
    """Whether the order of gathered events of one instant can be seen: in the bag itself, its id, or by an index."""
    conditions = [node.condition for node in query.pattern.walk() if isinstance(node, alg.Filter)]
    conditions += [each.condition for each in alg.around_in(query.pattern) if each.condition is not None]
    spoken = [*conditions, *(returned.expression for returned in query.returns)]
    return not query.returns or any(
        node.function in ("first", "last", "collect")
        if isinstance(node, ex.Aggregate)
        else isinstance(node, ex.Attribute) and node.index is not ex.Each.PLAIN
        for each in spoken
        for node in each.walk()
    )


def iteration_of(query: alg.Query) -> alg.Repeat | None:
    """The iteration whose longest match per start is asked for; None for every other query."""
    node = query.core
    is_plain = query.selection is Selection.ANY and query.output is Output.LONGEST
    is_plain = is_plain and not query.timeouts and not query.unordered
    if not is_plain or not isinstance(node, alg.Repeat) or not isinstance(node.part, alg.Event) or node.most == 1:
        return None
    return node


def width_us(reach: Reach, slice_us: int | None = None) -> int | None:
    """The width of the slices; None when the query cannot be cut by time.

    `slice_us` is what the user wants; what copies need is the least there is.
    """
    farthest = max(reach.back_us, reach.ahead_us)
    if not reach.can_slice or farthest > MOST_WIDTH_US:
        return None
    wanted = REACHES_PER_SLICE * (reach.back_us + reach.ahead_us) if slice_us is None else slice_us
    return max(min(wanted, MOST_WIDTH_US), farthest, LEAST_WIDTH_US)


# Python nests at most 20 loops; a longer sequence is cut into a table and the rest.
MOST_LOOPS = 12


def walks_links(query: alg.Query) -> bool:
    """Whether the form of a pattern makes its search walk along links, whatever its conditions are.

    Examples
    --------
    >>> import tocsin
    >>> def walks(pattern):
    ...     return walks_links(tocsin.pattern(f"PATTERN {pattern} WITHIN 1 HOUR SEMANTICS next").query)
    >>> walks("SEQ(A a, B+ b)"), walks("SEQ(OR(A a, B b)+, C c)")
    (False, True)
    """
    if query.selection is Selection.ANY or query.unordered or is_plain_sequence(query.core):
        return False
    return words_of(query) is not None


def is_plain_sequence(core: alg.Node) -> bool:
    """Whether loops can apply a selection policy: in a plain sequence events are bound in the order they happen."""
    node = core
    while isinstance(node, alg.Around):
        node = node.part
    parts = node.parts if isinstance(node, alg.Sequence) else (node,)
    events = [part.part if isinstance(part, alg.Repeat) else part for part in parts]
    is_flat = all(isinstance(event, alg.Event) for event in events)
    return is_flat and not may_be_empty(parts[0]) and len(parts) <= MOST_LOOPS


def words_of(query: alg.Query) -> Machine | None:
    """The words of a pattern whose matches a walk along links finds; None for others."""
    if any(alg.gatherings_in(query.core)) or any(isinstance(e, alg.Event) and e.condition for e in query.core.walk()):
        return None
    try:
        core = without(query.core, tuple(alg.absences_in(query.core)))
        return machine(core, by_element=query.selection is Selection.NEXT)
    except (UnsupportedError, NotAPathError):
        return None


def without(node: alg.Node, around: Sequence[alg.Around]) -> alg.Node:
    """The pattern without absences and gatherings that are decided afterwards."""
    match node:
        case alg.Around():
            inner = node.map_children(lambda part: without(part, around))
            return inner.part if node in around else inner
        case alg.Sequence() | alg.All():
            return node.map_children(lambda part: without(part, around))
        case alg.Event() | alg.Any() | alg.Repeat():
            for absence in around:
                if absence in alg.around_in(node):
                    raise UnsupportedError(
                        f"The absence of `{absence.variable}` in an OR branch or an iteration has a condition that "
                        "kernels cannot compute on numbers.",
                        gap=Gaps.COMPUTED_ABSENCE,
                        where=absence.where,
                    )
            return node
        case _:
            raise unknown_node(node, "The search by loops")


def without_closed_gaps(query: alg.Query) -> alg.Query:
    """The query without absences between neighbours: under a contiguous policy nothing lies there.

    Only in an AND may other events of the match lie in a gap. A gap that the window may close instead of an event
    reaches beyond the match.
    """
    if query.selection not in (Selection.CONTIGUOUS, Selection.PARTITION_CONTIGUOUS):
        return query
    return replace(query, pattern=_without_closed_gaps(query.pattern))


def _without_closed_gaps(node: alg.Node) -> alg.Node:
    if isinstance(node, alg.Absent) and _is_closed(node):
        return _without_closed_gaps(node.part)
    return node.map_children(_without_closed_gaps) if node.children() and not isinstance(node, alg.All) else node


def _is_closed(absence: alg.Absent) -> bool:
    """Whether events of the match begin and end a gap, both outside it."""
    kinds = alg.variables_of(absence.part)

    def is_bound(bounds: Sequence[alg.Bound], anchor: type[alg.LastOf | alg.FirstOf]) -> bool:
        exact = [bound.anchor for bound in bounds if bound.strict and not bound.offset_us]
        return any(isinstance(one, anchor) and any(not kinds[name].optional for name in one.variables) for one in exact)

    return is_bound(absence.lower, alg.LastOf) and is_bound(absence.upper, alg.FirstOf)


def may_be_empty(node: alg.Node) -> bool:
    """Whether a pattern can match without binding an event (R13)."""
    match node:
        case alg.Sequence() | alg.All():
            return all(map(may_be_empty, node.parts))
        case alg.Any():
            return any(map(may_be_empty, node.parts))
        case alg.Repeat():
            return node.least == 0 or may_be_empty(node.part)
        case alg.Around():
            return may_be_empty(node.part)
        case _ if not node.children():
            return False  # an event, or a row of a table
        case _:
            raise unknown_node(node, "The search by loops")


LEAST_ADVANCE_US = 2  # as narrow as time slices get


@dataclass(frozen=True)
class Windows:
    """Windows of one size at regular distances; see the module."""

    advance_us: int
    size_us: int
    before_us: int = 0


def longest_us(reach: Reach) -> int:
    """D of a query of bounded span: everything that decides a match lies within it."""
    return before_us(reach) + reach.ahead_us


def before_us(reach: Reach) -> int:
    """How far before the start of a match that reaches: `reach` leaves out the end of what it says."""
    return max(reach.back_us - 1, 0)


def windows_of(reach: Reach) -> Windows | None:
    """Windows of 2·D every D, so that an event is in two of them; None for a query without a bounded span."""
    if not reach.can_slice:
        return None
    longest = longest_us(reach)
    advance = max(longest, LEAST_ADVANCE_US)
    return Windows(advance, advance + longest, before_us(reach))


# --- searches -------------------------------------------------------------------------------------

# A search is a query compiled to something that finds its matches among rows, whatever the algorithm. Engines read its
# attributes to decide what of an event is shipped, call `find`, and ask nothing else.
#
# class       algorithm
# -----       ---------
# Kernel      nested loops over lists of candidates
# RunKernel   a register automaton that reads events in order


@dataclass(frozen=True, kw_only=True)
class Search(Reach, ABC):
    """A compiled query. It can be pickled; generated code is compiled where it runs."""

    sources: tuple[Source, ...]  # the candidates that flags of rows stand for: a bit each
    carried: tuple[Carried, ...]  # the columns its rows bring, beside time, flags and partition
    types: tuple[str, ...]  # the event types of the pattern, sorted; `Rows.kinds` counts in it
    wants: Mapping[str, tuple[str, ...]]  # by event type, the attributes that `Rows.event` must return
    # Whether matches are found link by link, because a policy leaves at most one event to each next element.
    walks: bool = False
    automaton: Automaton | None = None  # the automaton that reads the events; None: the search is not one
    templates: tuple[Template, ...] = ()  # the kinds of events that matches make
    # The aggregates that matches bring in place of bags with their types, and the variables whose events they lack.
    aggregates: Mapping[ex.Expression, Kind] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    # Whether no variable need hold the first and the last event of a match (R8, R22).
    hides_events: bool = False

    @abstractmethod
    def find(
        self, rows: Rows, *, most: int = MOST_MATCHES_PER_START, memory: int = MOST_MEMORY, jit: bool | None = None
    ) -> Iterator[Matches]:
        """Find the matches of a task's rows, some at a time; none twice.

        Raises an error when one start has more than `most` matches, or when those that must be held at once take more
        than `memory` bytes. `jit` is whether to compile; None: when there are many rows.
        """

    @property
    def numbers(self) -> dict[str, str]:
        """The short names of its sources in generated code."""
        return {source.variable: f"v{number}" for number, source in enumerate(self.sources)}

    @property
    def needs_kinds(self) -> bool:
        """Whether `Rows.kinds` is needed."""
        return any(len(source.types) > 1 for source in self.sources)

    @property
    def has_variables(self) -> bool:
        """Whether sources are variables of the pattern: each has its types, and a lifetime on streams."""
        return self.automaton is None

    @property
    def most_events(self) -> int | None:
        """The most events of a match, where an automaton bounds them."""
        return None if self.automaton is None else most_events(self.automaton)
