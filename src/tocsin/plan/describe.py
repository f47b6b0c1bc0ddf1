"""Describe plans of searches in words, for the `== Strategy ==` section of `explain()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tocsin.algebra import nodes as alg
from tocsin.algebra.units import format_bound, format_us
from tocsin.automata import Automaton, automaton, most_events
from tocsin.automata.format import to_text
from tocsin.kernels.reach import Reach, iteration_of, longest_us, reach_of, walks_links, width_us, windows_of
from tocsin.language import expressions as ex
from tocsin.language.ast import PER_START, Output, Selection, Skip
from tocsin.language.sase.printer import print_expression
from tocsin.optimizer.query_parts import own_conditions
from tocsin.plan.strategy import CONTIGUOUS, counts_other_types

if TYPE_CHECKING:  # a query is described where there are no arrays, too
    from tocsin.kernels.model import Source
    from tocsin.kernels.reach import Search
    from tocsin.plan.due import Due
    from tocsin.plan.plan import Plan

MOST_LINES = 40
SEARCH = "search"
LINKS = "link by link: the policy leaves at most one event to each element that may follow"


class _Scan(NamedTuple):
    """The parts of a source that are shown."""

    variable: str
    types: tuple[str, ...]
    is_negated: bool
    conditions: tuple[ex.Expression, ...]


class _Parts(NamedTuple):
    """The parts of a search that are shown: of the search itself, or as far as a query alone determines it."""

    reach: Reach
    scans: Iterable[_Scan | Source]
    machine: Automaton | None = None  # the automaton, where one searches
    walks: bool = False  # whether the search walks along links

    @property
    def links(self) -> list[str]:
        """The line on links; none where the search does not walk along them."""
        return [LINKS] if self.walks and _search(self.reach.query) == SEARCH else []


def _parts(plan: Plan, *, by_automaton: bool = False) -> _Parts:
    query = plan.query
    if plan.rule.types is not None:
        search = plan.search
        if search.automaton is None:
            return _Parts(search, search.sources, walks=search.walks)
        bare = (_Scan("", one.types, False, tuple(map(_without_variable, one.conditions))) for one in search.sources)
        return _Parts(search, dict.fromkeys(bare), search.automaton)
    if by_automaton:
        reach = replace(reach_of(query), counts_every_event=counts_other_types(query))
        by_type = [_Scan("", (name,), False, ()) for name in alg.event_types(query.pattern)]
        return _Parts(reach, by_type, automaton(query.pattern, contiguous=query.selection in CONTIGUOUS))
    types = {name: tuple(filter(None, kind.types)) for name, kind in query.variables.items()}
    negated = {name: (kind,) for name, kind in alg.negated_variables(query.pattern).items()}
    own = own_conditions(query)
    scans = [_Scan(name, kinds, name in negated, own.get(name, ())) for name, kinds in (types | negated).items()]
    return _Parts(reach_of(query), scans, walks=walks_links(query))


def describe_loops(plan: Plan) -> str:
    """The filters before the shuffle, how rows are split, and the search.

    >>> import tocsin
    >>> from tocsin.options import Options
    >>> from tocsin.plan.plan import unbound_plan
    >>> query = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE b.x > 5 PARTITION BY k WITHIN 10 SECONDS").query
    >>> print(describe_loops(unbound_plan(query, Options())))
    sliced kernel: one shuffle, then a compiled search
      scan A a
      scan B b  where b.x > 5
      shuffle by key k and time slices of 160 s
           with copies of events up to 10 s after a slice
      search
    """
    parts = _parts(plan)
    lines = _lines(parts.reach, parts.scans, plan.slice_us)
    links = (f"       {line}" for line in parts.links)
    return "\n".join(["sliced kernel: one shuffle, then a compiled search", *lines, *links])


def describe_trend(plan: Plan) -> str:
    """The plan where matches are counted and not built."""
    search = plan.counted.kernel
    lines = list(_lines(search, search.sources, plan.slice_us))
    lines[-1] = lines[-1].replace("  search", "  count by states of the pattern, in exact numbers of any length")
    return "\n".join(
        ["trend: one shuffle, then a count that builds no match", *lines, "  add up the totals of all tasks"]
    )


def describe_automaton(plan: Plan) -> str:
    """The part of each condition that is decided before the shuffle, and the states that follow.

    >>> import tocsin
    >>> from tocsin.options import Options
    >>> from tocsin.plan.plan import unbound_plan
    >>> query = tocsin.pattern("A : (B FILTER B[x > 5]) WITHIN 10 SECONDS", language="acel").query
    >>> print(describe_automaton(unbound_plan(query, Options())))
    automaton: one shuffle, then events are read in order
      scan A
      scan B
      every other event is read too: contiguity counts it
      shuffle by time slices of 160 s
           with copies of events up to 10 s after a slice
      follow 2 transitions between 3 states, no registers
        tests
          t0  type = 'A'
          t1  x > 5
          t2  type = 'B'
        state 0 (start)
          → 1  t0 / A: event
        state 1
          → 2  t1 and t2 / B: event
        state 2 (end)
    """
    parts = _parts(plan, by_automaton=True)
    assert parts.machine is not None
    *lines, _ = _lines(parts.reach, parts.scans, plan.slice_us)
    first, *others = to_text(parts.machine).split("\n")
    if len(others) > MOST_LINES:
        others = [*others[:MOST_LINES], f"… and {len(others) - MOST_LINES} lines more"]
    states = (f"    {line}" for line in others)
    return "\n".join(["automaton: one shuffle, then events are read in order", *lines, f"  follow {first}", *states])


def _without_variable(condition: ex.Expression) -> ex.Expression:
    """A condition on one event, in which its attributes stand bare."""

    def bare(node: ex.Expression) -> ex.Expression:
        if not isinstance(node, ex.Attribute):
            return node
        return ex.Name(node.path[0]) if len(node.path) == 1 else ex.Attribute(node.path[0], node.path[1:])

    return condition.transform(bare)


def describe_clustered(plan: Plan) -> str:
    """The plan where the input lies in order of time."""
    search = plan.search
    window, width = search.query.window_us or 0, width_us(search, plan.slice_us) or 0
    return "\n".join(
        [
            "clustered kernel: a compiled search where the input lies",
            *_scans(search.sources),
            "  search every partition of the input",
            f"  shuffle the matches, and the events less than {format_us(2 * window)} from an edge of a partition,",
            f"       by time slices of {format_us(width)}",
            f"  search across partitions; fail when two overlap by more than {format_us(window)}",
        ]
    )


def describe_aggregate(plan: Plan, *, by_automaton: bool) -> str:
    """The windows, each searched independently of the others.

    >>> import tocsin
    >>> from tocsin.options import Options
    >>> from tocsin.plan.plan import unbound_plan
    >>> query = tocsin.pattern("PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 10 SECONDS").query
    >>> print(describe_aggregate(unbound_plan(query, Options()), by_automaton=True))
    aggregate, T-CER: one shuffle to overlapping windows, in each of which events are folded one by one
      scan A
      scan B
      shuffle by key k and windows of WS = 20 s every WA = 10 s, since a match lies within D = 10 s
      f_C follows 6 transitions between 4 states, no registers
      report what the next window does not hold too
    """
    parts = _parts(plan, by_automaton=by_automaton)
    reach, machine = parts.reach, parts.machine
    windows = windows_of(reach)
    what = "one shuffle to overlapping windows, each of which is searched by itself"
    fold = [
        "f_U collects the events of a window, f_O searches them" + "".join(f", {one}" for one in _steps(reach.query)),
        *(f"     {line}" for line in parts.links),
    ]
    if machine is not None:
        what = "one shuffle to overlapping windows, in each of which events are folded one by one"
        fold = [f"f_C follows {to_text(machine).partition(chr(10))[0]}"]
    name = "A" if machine is None else "T-CER"
    if windows is not None:
        within = f"windows of WS = {format_us(windows.size_us)} every WA = {format_us(windows.advance_us)}"
        within += f", since a match lies within D = {format_us(longest_us(reach))}"
        fold.append("report what the next window does not hold too")
    elif machine is not None:
        name, what, within = "R-CER", "one shuffle, then events are folded one by one", ""
        fold.append(f"a match has at most {most_events(machine)} events: of all others nothing is remembered")
    return "\n".join(
        [
            f"aggregate, {name}: {what}",
            *_read(reach, parts.scans),
            _shuffle(reach, within),
            *(f"  {one}" for one in fold),
        ]
    )


def _scans(scans: Iterable[_Scan | Source]) -> Iterator[str]:
    positive_first = sorted(scans, key=lambda source: source.is_negated)
    yield from (f"  scan {_source(source)}" for source in positive_first)


def _lines(reach: Reach, scans: Iterable[_Scan | Source], slice_us: int | None) -> Iterator[str]:
    yield from _read(reach, scans)
    width = width_us(reach, slice_us)
    yield _shuffle(reach, f"time slices of {format_us(width)}" if width is not None else "")
    if width is not None and (reach.ahead_us or reach.back_us):
        ahead = f"{format_us(reach.ahead_us)} after" if reach.ahead_us else ""
        back = f"{format_us(reach.back_us)} before" if reach.back_us else ""
        yield f"       with copies of events up to {' and '.join(filter(None, (back, ahead)))} a slice"
    yield f"  {_search(reach.query)}" + "".join(f", {step}" for step in _steps(reach.query))


def _search(query: alg.Query) -> str:
    """How matches are found: one by one, or where the longest of a start are ranges all at once."""
    repeat = iteration_of(query)
    if repeat is None or not isinstance(repeat.part, alg.Event):
        return SEARCH
    is_ranged = len(own_conditions(query).get(repeat.part.variable, ())) == len(list(query.conjuncts))
    return "O2: read the longest match of each start off its window" if is_ranged else SEARCH


def _read(reach: Reach, scans: Iterable[_Scan | Source]) -> Iterator[str]:
    yield from _scans(scans)
    if reach.counts_every_event:
        yield "  every other event is read too: contiguity counts it"


def _shuffle(reach: Reach, within: str) -> str:
    """The key that rows are sent by, and parts of time where there are such."""
    keys = ", ".join(reach.query.partition.attributes)
    by = [f"key {keys}"] if keys and not reach.crosses_partitions else []
    by += [within] if within else []
    return f"  shuffle by {' and '.join(by)}" if by else "  one task: no key and no window splits the events"


def _source(source: _Scan | Source) -> str:
    conditions = " AND ".join(map(print_expression, source.conditions))
    negated = "NOT " if source.is_negated else ""
    named = f"{negated}{' | '.join(source.types)} {source.variable}".rstrip()
    return named + (f"  where {conditions}" if conditions else "")


def _steps(query: alg.Query) -> Iterator[str]:
    if query.selection is not Selection.ANY:
        yield f"select {query.selection.value}"
    skip = [] if query.after_match.skip is Skip.REUSE else [f"after a match skip {query.after_match.skip.value}"]
    report = [] if query.output is Output.ALL else [f"report {query.output.value}"]
    yield from (*report, *skip) if query.output in PER_START else (*skip, *report)
    if query.timeouts:
        yield "then for beginnings that nothing goes on with"


# --- streams --------------------------------------------------------------------------------------


def describe_stream(kernel: Search, due: Due, keys: Sequence[str], *, counts: bool) -> str:
    """Describe the one operator with state of a stream; `keys` split it, and `counts` builds no match."""
    what = "counts matches without building them" if counts else "searches what still matters and what is new"
    lines = [f"one operator with state, which {what}"]
    if kernel.walks and not counts:
        lines.append(f"  {LINKS}")
    lines += [f"  {_shards(kernel, keys)}", f"  {_given(due)}"]
    if due.last_events is not None:
        kept = f"the last {due.last_events} events of a partition, and what may change"
        return "\n".join([*lines, f"  remembers {kept}"])
    lives = {source.variable: life for source, life in zip(kernel.sources, due.retention_us, strict=True)}
    known = kernel.query.variables
    kept = ", ".join(f"{'NOT ' * (name not in known)}{name} {format_bound(life)}" for name, life in lives.items())
    return "\n".join([*lines, f"  remembers events for: {kept}; and as long as others may be late"])


def _shards(kernel: Search, keys: Sequence[str]) -> str:
    if not keys:
        return "one shard, since nothing splits the stream: PARTITION BY would"
    if kernel.crosses_partitions:
        return "one shard, since the events of all keys count"
    return f"shards by {', '.join(keys)}"


def _given(due: Due) -> str:
    if due.every_us is not None:
        return "tells a window when every match that starts in it is decided"
    if due.is_eager:
        return "gives a match with its last event"
    if due.after_start_us is not None or due.after_end_us is not None:
        return "gives a match when the watermark has passed all that it is compared with"
    if due.absences:
        return "gives a match when the watermark has passed its end and all that could still block it"
    return "gives a match when the watermark has passed its end"
