"""Aggregates over windows: every legal pair of WA and WS reports each match once, and R-CER forgets."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.automata.formulas import POSITION, SECOND, cases, stream
from tests.fitting import queries_with_streams
from tests.kernels.test_runs import A, B, C, expected, kernel_of, names_every_type, rows_of, shown, without_numbers
from tests.kernels.windowed import assigned, holds

import tocsin
from tocsin import automata, errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.schema import bind
from tocsin.engines.local.match import events_of
from tocsin.engines.worker.arrow_scan import ship
from tocsin.engines.worker.arrow_types import types_in
from tocsin.engines.worker.rows import rows_of as rows_of_table
from tocsin.kernels.lists import Merged, merged
from tocsin.kernels.model import Bag, Integers, Matches, Rows
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.kernels.reach import Windows, before_us, longest_us, windows_of
from tocsin.kernels.runs import functions
from tocsin.kernels.runs import register_automaton as runs_kernel
from tocsin.kernels.runs.register_automaton import RunKernel
from tocsin.language import ast
from tocsin.plan.manifest import Reader
from tocsin.plan.strategies import AGGREGATE, KERNEL
from tocsin.reference.stream import Event
from tocsin.testing.strategies import LANGUAGE, TIMEOUTS, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})


def legal_pairs(longest: int, before: int = 0) -> st.SearchStrategy[Windows]:
    """Windows that hold everything within D, the tightest ones too; not so many that an event is in dozens of them."""
    advances = st.one_of(st.integers(max(longest // 6, 1), 3 * longest + 1), st.just(max(longest, 1)))
    extra = st.one_of(st.just(0), st.integers(0, 2 * longest))
    return st.builds(lambda advance, more: Windows(advance, longest + advance - 1 + more, before), advances, extra)


# --- T-CER ----------------------------------------------------------------------------------------


def by_windows(kernel: RunKernel, windows: Windows, events: list[Event], seed: int) -> list[tuple[Any, ...]]:
    rows, _ = assigned(rows_of(kernel, events, seed=seed), windows)
    return sorted(one for matches in kernel.find(rows, jit=False) for one in shown(kernel, matches, rows, events))


@settings(max_examples=150)
@given(**cases(windows=st.sampled_from([2 * SECOND, 3 * SECOND])), data=st.data(), seed=st.integers(0, 9))
def test_every_legal_pair_of_windows_reports_each_match_of_a_formula_once(
    node: alg.Node, events: list[Event], window_us: int, data: st.DataObject, seed: int
) -> None:
    assume(names_every_type(node) and alg.event_types(node))
    kernel = kernel_of(node, window_us)
    windows = data.draw(legal_pairs(window_us))
    assert holds(windows, window_us)
    wanted = expected(node, events, window_us)
    assert by_windows(kernel, windows, events, seed) == wanted
    assert by_windows(without_numbers(kernel), windows, events, seed) == wanted


SPREAD = stream(
    *((kind, second, {}) for kind, second in (("A", 3), ("A", 9), ("B", 12), ("B", 18), ("A", 29), ("B", 30)))
)


@pytest.mark.parametrize("advance", [1, 4, 10, 13])
def test_a_window_that_is_too_short_by_one_microsecond_loses_a_match(advance: int) -> None:
    # Two events 9.999999 s apart, the first of them at the very end of what a window owns.
    node, longest = alg.Sequence((A, B), POSITION), 10 * SECOND
    start = advance * SECOND - 1
    events = [
        Event("A", start, 0, {"ts": start}),
        Event("B", start + longest - 1, 1, {"ts": start + longest - 1}),
    ]
    kernel = kernel_of(node, longest)
    tight = Windows(advance * SECOND, longest + advance * SECOND - 1)
    assert holds(tight, longest)
    assert len(by_windows(kernel, tight, events, 0)) == 1
    short = replace(tight, size_us=tight.size_us - 1)
    assert not holds(short, longest)
    assert by_windows(kernel, short, events, 0) == []


def owning_all(rows: Rows, chosen: Integers) -> Merged:
    """Every window reports every match that it holds."""
    found = merged(rows, chosen)
    low, high = (np.full_like(found.own_low, edge) for edge in (found.times.min(), found.times.max()))
    return replace(found, own_low=low, own_high=high)


def test_without_the_rule_of_ownership_matches_would_be_reported_by_each_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = alg.Sequence((A, B), POSITION)
    kernel, windows = kernel_of(node, 10 * SECOND), Windows(5 * SECOND, 25 * SECOND)
    once = by_windows(kernel, windows, SPREAD, 0)
    assert once == expected(node, SPREAD, 10 * SECOND)
    monkeypatch.setattr(runs_kernel, "merged", owning_all)
    often = Counter(by_windows(kernel, windows, SPREAD, 0))
    assert set(often) == set(once)
    assert min(often.values()) > 1


def test_the_first_and_the_last_instants_of_all_time_are_in_windows() -> None:
    ends = np.array([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1])
    rows, was = assigned(Rows(ts=ends, flags=np.ones(4, np.int64)), Windows(10, 20, 5))
    assert rows.slice is not None
    begins = [int(number) * 10 - 5 for number in rows.slice]
    assert sorted(was.tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert all(begin <= int(ts) < begin + 20 for begin, ts in zip(begins, rows.ts, strict=True))


# --- A --------------------------------------------------------------------------------------------


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def task_of(query: alg.Query, rows: Streams) -> tuple[Kernel, Rows]:
    """A query compiled for kernels, and the rows that it searches."""
    named = alg.event_types(query.pattern)
    events = events_of(named, {kind: pa.Table.from_pylist(own, SCHEMA) for kind, own in rows.items()}, "ts", "")
    bound = bind(query, {group.type or "": types_in(group.table.schema) for group in events if group.type in named})
    made = kernel(bound)
    shipped = ship([Reader(made, {})], events, named=named)
    return made, rows_of_table(shipped.table, made, shipped.manifest.layouts[0], None)


def listed(made: Kernel, rows: Rows, windows: Windows | None = None) -> list[Any]:
    """The matches, each as what it binds; time-outs too."""
    found = []
    was: Integers = np.arange(len(rows.ts))
    if windows is not None:
        rows, was = assigned(rows, windows)
    for matches in made.find(rows, jit=False):
        for number in range(len(matches)):
            held = tuple((name, bound_in(matches, name, number, was)) for name in sorted(matches.events))
            missing = 0 if matches.missing is None else int(matches.missing[number])
            found.append((int(matches.start[number]), int(matches.end[number]), missing, held))
    return sorted(found)


def bound_in(matches: Matches, name: str, number: int, was: Integers) -> tuple[int, ...]:
    held = matches.events[name]
    rows = held.rows[held.offsets[number] : held.offsets[number + 1]] if isinstance(held, Bag) else held[[number]]
    return tuple(int(was[row]) if row >= 0 else -1 for row in rows)


@settings(max_examples=150)
@given(
    case=st.one_of(queries_with_streams(LANGUAGE, max_events=8), queries_with_streams(TIMEOUTS, max_events=8)),
    data=st.data(),
)
def test_every_legal_pair_of_windows_reports_each_match_of_a_search_once(
    case: tuple[ast.Query, list[Streams]], data: st.DataObject
) -> None:
    query, (rows,) = case
    asked = compiled(query).query
    assume(asked.window_us is not None and AGGREGATE.refuses(asked) is None and KERNEL.refuses(asked) is None)
    try:
        made, events = task_of(asked, rows)
    except errors.UnsupportedError:  # a condition of an absence that loops do not compute
        assume(False)
    # Kernels own matches as slices do, so that a window is no narrower than what a match sees to either side.
    windows = data.draw(legal_pairs(longest_us(made), before_us(made)))
    assert listed(made, events, windows) == listed(made, events)


TOO_NARROW = [
    ("PATTERN SEQ(A a, B b) SEMANTICS next WITHIN 10 SECONDS", {"A": [9_999_999], "B": [19_999_998]}, 1, 0),
    # What a match must not see makes it one.
    ("PATTERN SEQ(A a, NOT B b) WITHIN 10 SECONDS", {"A": [9_999_999], "B": [19_999_998]}, 0, 1),
    ("PATTERN SEQ(NOT B b, A a) WITHIN 10 SECONDS", {"A": [20_000_000], "B": [10_000_001]}, 0, 1),
]


@pytest.mark.parametrize(("text", "times", "right", "wrong"), TOO_NARROW)
def test_a_search_whose_windows_are_too_narrow_is_wrong(
    text: str, times: dict[str, list[int]], right: int, wrong: int
) -> None:
    rows = {kind: [{"ts": at, "k": "p", "x": 1, "v": 1.0} for at in own] for kind, own in times.items()}
    made, events = task_of(compiled(text).query, rows)
    advance = 10 * SECOND
    windows = Windows(advance, advance + longest_us(made) - 1, before_us(made))
    assert holds(windows, longest_us(made))
    assert len(listed(made, events, windows)) == right
    narrow = replace(windows, size_us=windows.size_us - 1)
    if made.back_us:  # what lies before is cut off
        narrow = replace(windows, before_us=windows.before_us - 1, size_us=windows.size_us - 1)
    assert len(listed(made, events, narrow)) == wrong


@settings(max_examples=100)
@given(query=queries_with_streams(LANGUAGE).map(lambda case: case[0]))
def test_the_windows_of_a_query_hold_its_matches(query: ast.Query) -> None:
    asked = compiled(query).query
    assume(asked.window_us is not None and AGGREGATE.refuses(asked) is None and KERNEL.refuses(asked) is None)
    made, _ = task_of(asked, {kind: [] for kind in "ABC"})
    windows = windows_of(made)
    assert windows is not None
    assert holds(windows, longest_us(made))
    assert longest_us(made) >= (asked.window_us or 0)


# --- f_C and R-CER --------------------------------------------------------------------------------


NEIGHBOURS = alg.Adjacent((A, alg.Any((B, alg.Adjacent((B, B)))), C))


def fold(
    kernel: RunKernel, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[tuple[int, int]], set[str]]:
    """The starts and ends of what f_C finds, in seconds, and which arrays of its state had to grow."""
    grown: set[str] = set()
    grow = functions._grow
    monkeypatch.setattr(functions, "_grow", lambda arrays, names: (grown.update(names), grow(arrays, names)))
    found = list(kernel.find(rows_of(kernel, events), jit=False))
    times = [(matches.start // SECOND, matches.end // SECOND) for matches in found]
    return [pair for start, end in times for pair in zip(start.tolist(), end.tolist(), strict=True)], grown


@pytest.mark.parametrize(
    ("node", "is_contiguous", "most"),
    [
        (A, False, 1),
        (alg.Any((A, alg.Adjacent((A, B)))), False, 2),
        (NEIGHBOURS, False, 4),
        (alg.Sequence((A, alg.Repeat(B, 0, 3), C)), True, 5),
        (alg.Sequence((A, alg.Repeat(B, 0, 3), C)), False, None),
        (alg.Sequence((A, alg.Repeat(B, 1, None), C)), True, None),
        (alg.Adjacent((A, alg.RepeatAdjacent(B))), False, None),
        (alg.NextOf("B", "B"), False, None),
    ],
)
def test_how_many_events_a_match_can_have(node: alg.Node, is_contiguous: bool, most: int | None) -> None:
    assert automata.most_events(automata.automaton(node, contiguous=is_contiguous)) == most


@pytest.mark.parametrize("of_numbers", [True, False])
def test_the_state_of_a_fold_does_not_grow_where_matches_have_so_many_events(
    of_numbers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(7)
    words = "".join(chance.choice(["ABC", "ABBC", "AC", "AB"]) for _ in range(2_000))
    events = stream(*((kind, second, {}) for second, kind in enumerate(words)))
    kernel = kernel_of(NEIGHBOURS)
    found, grown = fold(kernel if of_numbers else without_numbers(kernel), events, monkeypatch)
    assert len(found) == words.count("ABC") + words.count("ABBC") > 900
    assert {end - start for start, end in found} == {2, 3}
    assert len(words) > functions.NODES  # every event makes a node at least
    assert grown == set()


@pytest.mark.parametrize("of_numbers", [True, False])
def test_the_state_of_a_fold_grows_where_they_have_any_number(
    of_numbers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = stream(("A", 0, {}), *(("B", second, {}) for second in range(1, 6_000)))
    kernel = kernel_of(alg.Adjacent((A, alg.RepeatAdjacent(B), C)))
    found, grown = fold(kernel if of_numbers else without_numbers(kernel), events, monkeypatch)
    assert found == []
    assert "a_step" in grown
