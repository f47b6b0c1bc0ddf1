"""Theorems 1 to 4 of paper 000: the constructions, literal and fast, give what the operators are defined to give.

Every stream comes in random order within the lateness and in random pieces, with keys, ties and duplicates, and its
memories are stored and loaded between pieces; the one piece that holds all is a batch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.acer.definitions import Row, aggregated, folded, ordered, preprocessed, sequences
from tests.acer.support import KEYS, ROWS, SEEDS, Life, arrival, collecting, named, rising, values

from tocsin import errors
from tocsin.acer.events import event_class
from tocsin.acer.fast import Fold, Instants, Slices, Sliding
from tocsin.acer.listings import Collected, Shared, UserAggregate
from tocsin.acer.literal import Literal, Unwrapped
from tocsin.acer.model import Arrival
from tocsin.acer.windows import FOREVER, NEVER, Windows, checked, legal_for_spans, slices

UNITS = st.sampled_from([1, 1, 3])
Rows = list[Row]


def scaled(rows: Rows, unit: int) -> Rows:
    return [row._replace(ts=row.ts * unit) for row in rows]


@st.composite
def legal(draw: st.DrawFn) -> tuple[int, int, int]:
    """D, WA and WS, in ticks: all that the inequalities of T-CER allow."""
    within = draw(st.integers(1, 6))
    size = within + draw(st.integers(0, 12))
    return within, draw(st.integers(1, size - within + 1)), size


# --- the Aggregate ----------------------------------------------------------------------------------


@given(ROWS, KEYS, st.integers(1, 6), st.integers(1, 9), UNITS, SEEDS)
def test_the_aggregate(rows: Rows, key: str | None, advance: int, size: int, unit: int, seed: int) -> None:
    rows = scaled(rows, unit)
    wanted = aggregated(rows, key, advance * unit, size * unit, unit, values)
    windows = Windows(advance * unit, size * unit, unit)
    for machine in (Literal(windows, collecting()), Sliding(windows, collecting())):
        found, results, kept = Life(rows, seed, unit).through(machine, key)
        assert found == wanted
        assert kept == 0
        if key is None:
            assert [one.time for one in results] == sorted(one.time for one in results)


@given(ROWS, st.integers(1, 6), st.integers(1, 9), st.sampled_from([0, 2, 7, 100]), SEEDS)
def test_late_arrivals_do_the_same_in_both(rows: Rows, advance: int, size: int, lateness: int, seed: int) -> None:
    """Events that break what the watermark has promised: literal and fast give the same, in the same order."""
    windows = Windows(advance, size)
    batches = Life(rows, seed).batches
    given_by = []
    for kind in (Literal, Sliding):
        machine = kind(windows, collecting(), lateness, takes_late=True)
        memory, before, latest, results, late = machine.begin(), NEVER, NEVER, [], 0
        for batch in batches:
            latest = max([latest, *(row.ts for row in batch)])
            given_now = machine.run((), memory, [arrival(row) for row in batch], before, latest)
            results += given_now.results
            late += given_now.late
            before = latest
        results += machine.run((), memory, [], before, FOREVER).results
        given_by.append((results, late))
        assert machine.kept(memory) == 0
    assert given_by[0] == given_by[1]
    results, late = given_by[0]
    last = {one.time: one.payload for one in results}
    if lateness == 100:  # nobody is too late: what is told last is what a batch tells
        wanted = aggregated(rows, None, advance, size, 1, lambda held: tuple(sorted(values(held))))
        assert late == 0 or advance > size
        assert Counter((None, time, tuple(sorted(held))) for time, held in last.items()) == wanted
    assert [one.revision for one in results] == _counted([one.time for one in results])


def _counted(times: list[int]) -> list[int]:
    """How often each has been there before."""
    seen: Counter[int] = Counter()
    found = []
    for time in times:
        found.append(seen[time])
        seen[time] += 1
    return found


# --- theorem 1 --------------------------------------------------------------------------------------


@given(ROWS, st.sampled_from([None, "k", "*"]), UNITS, SEEDS)
def test_theorem_1_sort_and_preprocess(rows: Rows, key: str | None, unit: int, seed: int) -> None:
    rows = scaled(rows, unit)

    def process(events: Any) -> list[Any]:
        return [("first", events[0].x), ("all", tuple(event.x for event in events))]

    wanted = preprocessed(rows, key, process)
    one = named(process, "events")
    for machine in (Literal(Windows(unit, unit, unit), Collected(one)), Instants(one)):
        found, _, kept = Life(rows, seed, unit).through(machine, key)
        assert found == wanted
        assert kept == 0


# --- theorem 2 --------------------------------------------------------------------------------------


@given(ROWS, KEYS, legal(), st.integers(1, 3), UNITS, SEEDS)
def test_theorem_2_time_cer(
    rows: Rows, key: str | None, lengths: tuple[int, int, int], length: int, unit: int, seed: int
) -> None:
    rows = scaled(rows, unit)
    within, advance, size = (one * unit for one in lengths)
    wanted = sequences(rows, key, within, length, advance, size, unit)
    windows = legal_for_spans(checked(advance, size, unit), within)
    cut = slices(windows, within)
    assert legal_for_spans(cut, within) == cut
    for machine in (
        Literal(windows, rising(length, windows, within)),
        Slices(cut, rising(length, cut, within), asked=windows),
    ):
        found, _, kept = Life(rows, seed, unit).through(machine, key)
        assert found == wanted
        assert kept == 0


@given(legal())
def test_windows_that_are_not_legal_lose_a_sequence_and_are_refused(lengths: tuple[int, int, int]) -> None:
    """One tick more of advance, and there is a sequence that no window holds: the inequality is sharp."""
    within, _, size = lengths
    advance = size - within + 2
    windows = Windows(advance, size)
    start = advance - 1  # the last tick before a window
    rows = [Row(start, None, 0), Row(start + within - 1, None, 1)]
    lost = Literal(windows, rising(2, windows, within))
    found, _, _ = Life(rows, 0).through(lost, None)
    assert not found
    with pytest.raises(errors.InvalidOptionError, match="WA ≤ WS − D \\+ δ is broken"):
        legal_for_spans(windows, within)
    with pytest.raises(errors.InvalidOptionError, match="WS ≥ D is broken"):
        legal_for_spans(Windows(1, size), size + 1)


@given(ROWS, legal())
def test_without_the_rule_of_ownership_a_sequence_is_told_several_times(
    rows: Rows, lengths: tuple[int, int, int]
) -> None:
    within, advance, size = lengths
    windows = Windows(advance, size)

    class Everything(type(rising(1, windows, within))):  # type: ignore[misc]
        def _falls_in_next(self, window: Any, one: Any) -> bool:
            return False

    listing = Everything(**vars(rising(1, windows, within)))
    found, _, _ = Life(rows, 0).through(Literal(windows, listing), None)
    times = Counter(row.ts for row in rows)
    assert sum(found.values()) == sum(count * len(windows.holding(time)) for time, count in times.items())


# --- theorems 3 and 4 -------------------------------------------------------------------------------


def counting(state: Any, event: Any) -> tuple[Any, list[Any]]:
    """How many, and the one before: an order that is not kept shows."""
    count, last = state or (0, None)
    found = [(count, last, event.x)] if event.x else []
    return (count + 1, event.x), found * (2 if event.x == 2 else 1)


@given(ROWS, KEYS, st.integers(1, 8), UNITS, SEEDS)
def test_theorem_3_rule_cer(rows: Rows, key: str | None, distance: int, unit: int, seed: int) -> None:
    rows = scaled(rows, unit)
    wanted = folded(rows, key, counting)
    mapping = named(counting, "state", "event")
    distance *= unit
    literal = Literal(Windows(unit, distance + unit, unit), Shared(mapping, distance, unit), distance=distance)
    for machine in (Unwrapped(**vars(literal)), Fold(mapping)):
        found, _, _ = Life(rows, seed, unit).through(machine, key)
        assert found == wanted


@given(ROWS.filter(bool), st.integers(1, 8), SEEDS)
def test_theorem_4_windows_give_one_after_the_other(rows: Rows, distance: int, seed: int) -> None:
    """The first output comes from the window of the earliest event, the next from the next window, none twice."""
    mapping = named(counting, "state", "event")
    machine = Literal(Windows(1, distance + 1), Shared(mapping, distance, 1), distance=distance)
    _, results, _ = Life(rows, seed).through(machine, None)
    first, last = min(row.ts for row in rows), max(row.ts for row in rows)
    assert [one.time for one in results] == list(range(first, last + 1))


def test_a_window_without_the_state_before_it_waits() -> None:
    """Between two events that are farther apart than windows are long, the state goes from window to window."""
    mapping = named(counting, "state", "event")
    machine = Unwrapped(Windows(1, 3), Shared(mapping, 2, 1), distance=2)
    rows = [Row(0, None, 1), Row(50, None, 2), Row(51, None, 3)]
    found, _, _ = Life(rows, 1).through(machine, None)
    assert found == folded(rows, None, counting)
    assert found[None, 51, (2, 2, 3)] == 1


# --- functions that change what they were given, and what they have given --------------------------------


def running(state: Any, event: Any) -> tuple[Any, list[Any]]:
    state = state or {"n": 0, "seen": []}
    state["n"] += 1
    state["seen"].append(event.x)
    return state, [state]


@given(ROWS, SEEDS, st.integers(1, 8))
def test_a_row_is_what_it_was_when_it_was_given(rows: Rows, seed: int, distance: int) -> None:
    mapping = named(running, "state", "event")
    literal = Literal(Windows(1, distance + 1), Shared(mapping, distance, 1), distance=distance)
    wanted = [{"n": place + 1, "seen": [row.x for row in ordered(rows)[: place + 1]]} for place in range(len(rows))]
    for machine in (Fold(mapping), Unwrapped(**vars(literal))):
        _, results, _ = Life(rows, seed).through(machine, None)
        assert [one.payload for one in results] == wanted


def test_windows_do_not_see_what_others_do_to_their_events() -> None:
    Tagged = event_class(("ts", "tags"), True)

    def add(state: Any, event: Any) -> Any:
        if state is None:
            return event.tags
        state += event.tags
        return state

    listing = UserAggregate(named(add, "state", "event"), named(lambda state: [(state,)], "state"), 1)
    for kind in (Literal, Sliding):
        machine = kind(Windows(1, 3), listing)
        arrivals = [Arrival(time, (), Tagged((time, [time]))) for time in range(4)]
        results = machine.run((), machine.begin(), arrivals, NEVER, FOREVER).results
        assert [one.payload for one in results] == [([0],), ([0, 1],), ([0, 1, 2],), ([1, 2, 3],), ([2, 3],), ([3],)]


# --- what is remembered -----------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 12))
def test_no_more_is_kept_than_windows_need(seed: int, advance: int, size: int) -> None:
    """The fast Aggregate keeps an event once, as long as a window that holds it has not ended."""
    machine = Sliding(Windows(advance, size), collecting())
    memory, before = machine.begin(), NEVER
    for time in range(200):
        machine.run((), memory, [arrival(Row(time, None, 0))], before, time)
        before = time
        assert machine.kept(memory) <= size + advance


class Own:
    """A class that only this process knows: `pickle` does not find it."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def __reduce__(self) -> Any:
        return type(self).made, (self.items,)


Own.made = lambda items: None  # type: ignore[attr-defined]


@pytest.mark.parametrize("construction", ["fast", "literal"])
@pytest.mark.parametrize("start", [list, Own])
def test_a_state_that_grows_is_stopped_whatever_it_is_made_of(construction: str, start: Any) -> None:
    def grow(state: Any, event: Any) -> Any:
        state = start() if state is None else state
        (state if isinstance(state, list) else state.items).append(event.ts)
        return state, []

    mapping = named(grow, "state", "event")
    machine: Any = Fold(mapping, 5000)
    if construction == "literal":
        machine = Unwrapped(Windows(1, 3), Shared(mapping, 2, 1, 5000), distance=2)
    with pytest.raises(errors.StateGrowsError, match="grows with the number of events"):
        machine.run((), machine.begin(), [arrival(Row(time, None, 0)) for time in range(5000)], NEVER, FOREVER)


def test_the_last_time_of_all_takes_part() -> None:
    machine = Fold(named(counting, "state", "event"))
    results = machine.run((), machine.begin(), [arrival(Row(2**63 - 1, None, 1))], NEVER, FOREVER).results
    assert len(results) == 1


def test_a_batch_cut_into_blocks_gives_each_window_once() -> None:
    rows = [Row(time * 7 % 100, None, time % 4) for time in range(60)]
    windows = Windows(3, 10)
    wanted = aggregated(rows, None, 3, 10, 1, values)
    for kind in (Literal, Sliding):
        machine = kind(windows, collecting())
        found: Counter[Any] = Counter()
        for block in range(-2, 8):
            numbers = range(block * 6, block * 6 + 6)
            held = [row for row in rows if set(windows.holding(row.ts)) & set(numbers)]
            results = machine.run((), machine.begin(numbers), [arrival(row) for row in held], NEVER, FOREVER).results
            found.update((None, one.time, one.payload) for one in results)
        assert found == wanted
