"""Requirements 33, 34, 36, 38 and 39: what is kept never exceeds what was told before, and nothing is lost."""

from __future__ import annotations

import datetime as dt
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from tests.rules.simulation import Live, Stream, expected, programs, streams
from tests.rules.support import ABC, S, compiled

import tocsin
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.rules.arrivals import in_text_order, join_stores, reads_of
from tocsin.analysis.temporal import network


def understood(text: str) -> tocsin.Rules:
    """A random program; one whose distances contradict each other is no example."""
    try:
        return compiled(text)
    except tocsin.errors.TocsinError as problem:
        several = problem.errors if isinstance(problem, tocsin.errors.QueryErrors) else [problem]
        assert {each.condition for each in several} == {"CONTRADICTORY_DISTANCES"}, problem
        assume(False)
        raise AssertionError from problem


def told(program: tocsin.Rules, stream: Stream) -> tocsin.RulesReport:
    return program.check(rates=stream.rates, lateness=dt.timedelta(microseconds=stream.lateness))


@settings(max_examples=50)
@given(programs(), streams())
def test_requirement_36_no_store_exceeds_its_bound_and_no_match_is_lost(text: str, stream: Stream) -> None:
    program = understood(text)
    live = Live.of(program)
    live.run(stream.batches, stream.lateness)
    assert live.found() == expected(program, stream.batches)
    report = told(program, stream)
    for rule, known in zip(live.rules, report.rules, strict=True):
        assert known.sizes is not None
        for store in known.sizes.stores:
            assert store.events is not None
            assert rule.largest[store.variable] <= store.events, f"{rule.rule.name}: {store.variable}"
    assert report.state is not None
    for stratum, store in report.state.stores:
        assert store.events is not None
        assert live.largest[stratum, store.event_type] <= store.events, f"stratum {stratum}: {store.event_type}"


LAYERS = """
template A { id : Integer, k : Integer } template X { id : Integer, k : Integer }
template Y { id : Integer, k : Integer } template Z { id : Integer, k : Integer }
rule First where a : A b : A { k = a.k } when b in a [2 us, 3 us] then emit X at a.timestamp with { id = a.id, k = b.k }
rule Second where x : X y : X when y in x [1 us, 2 us] then emit Y at x.timestamp + 4 us with { id = x.id, k = y.id }
rule Third where y : Y no x : X { k = y.k } when no x in y [-2 us, 1 us]
then emit Z at y.timestamp with { id = y.id, k = 0 }
rule Fourth where z : Z a : A when a in z [0 us, 1 us]
"""


@given(streams(types="A", length=12, most=1))
def test_requirement_36_delays_add_up_from_stratum_to_stratum(stream: Stream) -> None:
    program = compiled(LAYERS)
    live = Live.of(program)
    live.run(stream.batches, stream.lateness)
    assert live.found() == expected(program, stream.batches)
    state = told(program, stream).state
    assert state is not None
    for stratum, store in state.stores:
        assert store.events is not None
        assert live.largest[stratum, store.event_type] <= store.events
    assert state.events == sum(store.events or 0 for _, store in state.stores)


def every(count: int) -> list[dict[str, int]]:
    """An event in each second."""
    return [{"ts": at * S, "id": at, "k": 0, "uid": at} for at in range(count)]


STALLED = """template A { id : Integer, k : Integer } template B { id : Integer, k : Integer }
rule R where a : A b : B when b in a [0 s, 4 s]"""


@pytest.mark.parametrize("most", [None, 5, 10])
def test_requirement_38_a_stalled_partner_costs_room_and_never_a_match(most: int | None) -> None:
    """Vector 9.8: ten times the viable size of A before the first B; evicting by count loses what waiting keeps."""
    program = compiled(STALLED)
    left = [{"A": every(50)[at : at + 10]} for at in range(0, 50, 10)]
    right = [{"B": every(50)[at : at + 5]} for at in range(0, 50, 5)]
    live = Live.of(program, most=most)
    live.run(left + right, 50 * S)
    lost = expected(program, left + right)["R"] - live.found()["R"]
    if most is not None:
        assert lost.total() > 150
        return
    assert not lost
    (rule,) = program.check(rates={"A": "1/s", "B": "1/s"}, lateness="50 seconds").rules
    assert rule.sizes is not None
    assert [store.events for store in rule.sizes.stores] == [55, 51]  # the viable 5, and fifty for the lag
    assert live.rules[0].largest["a"] == 50


def test_the_bound_is_reached() -> None:
    """An offset window needs the offset too: 15 seconds of a, not the 10 that the window is wide."""
    program = compiled(STALLED.replace("[0 s, 4 s]", "[5 s, 15 s]"))
    live = Live.of(program)
    live.run([{"A": [row]} for row in every(40)], 0)
    (rule,) = program.check(rates={"A": "1/s", "B": "1/s"}).rules
    assert rule.sizes is not None
    assert live.rules[0].largest["a"] == rule.sizes.stores[0].events == 16
    assert rule.sizes.stores[1].events == 1


# --- partial matches, if an engine kept them ---


@given(programs(layered=False), streams(length=8))
def test_requirement_39_the_stores_of_joins_that_nothing_holds_back(text: str, stream: Stream) -> None:
    rule = understood(text).program.rules[0]
    closure = network(rule.query, "timestamp").alternatives[0]
    kinds = {name: kind.types[0] for name, kind in rule.query.variables.items()}
    order = [name for name in in_text_order(rule.query) if name in closure.variables]
    found = join_stores(closure, order, reads_of(rule, parse_rates(stream.rates)), stream.lateness)
    assert found is not None
    assert len(found) == len(order) - 1
    arrived: dict[str, list[int]] = {}
    for batch in stream.batches:
        for kind, rows in batch.items():
            arrived.setdefault(kind, []).extend(row["ts"] for row in rows)
        watermark = max(max(times) for times in arrived.values()) - stream.lateness
        for place, store in enumerate(found, 1):
            left, right = order[:place], order[place]
            combinations = product(*(arrived.get(kinds[name] or "", []) for name in left))
            kept = [times for times in combinations if _joins(closure, left, times, right, watermark)]
            assert len(kept) <= store.left
            back = max(closure.upper(right, name) or 0 for name in left)
            late = [time for time in arrived.get(kinds[right] or "", []) if time + max(0, back) >= watermark]
            assert len(late) <= store.right


def _joins(closure: Any, left: list[str], times: tuple[int, ...], right: str, watermark: int) -> bool:
    """Whether events can be together, and one of the right may still join them."""
    at = dict(zip(left, times, strict=True))
    near = all(
        low <= at[y] - at[x] <= high for x in left for y in left if x < y for low, high in [closure.distance(x, y)]
    )
    return near and min(at[name] + closure.upper(name, right) for name in left) >= watermark


DIFFUSION = """rule R where incoming : A b1 : B b2 : B b3 : B
when b1 in incoming [0 s, 9 s] b2 in incoming [0 s, 9 s] b3 in incoming [0 s, 9 s] {} then
emit C at incoming.timestamp with {{ x = 1 }}"""


def test_requirement_39_interchangeable_variables_are_chosen_as_a_bag() -> None:
    rates = {"A": "1/s", "B": "1/s"}
    ordered = compiled(ABC + DIFFUSION.format("")).check(rates=rates).rates["C"]
    unordered = compiled(ABC + DIFFUSION.format("unordered(b1, b2, b3)")).check(rates=rates).rates["C"]
    assert ordered.within(0) == 10**3
    assert unordered.within(0) == 10 * 11 * 12 // 6
    stream = {"A": [{"ts": 0, "x": 0}], "B": [{"ts": at * S, "x": at} for at in range(10)]}
    for clause, most in (("", 1_000), ("unordered(b1, b2, b3)", 220)):
        program = compiled(ABC + DIFFUSION.format(clause))
        assert len(tocsin.reference.events(program, stream)["C"]) == most  # the bound is reached


def test_requirement_39_with_a_key_only_its_events_can_join() -> None:
    same = DIFFUSION.format("").replace(" : B", " : B { x = incoming.x }")
    whole, each = "10/s", "10/s, 1 per 5 s per key"
    for rate, times in ((whole, 100**3), (each, 2**3)):
        program = compiled(ABC + same)
        assert program.check(rates={"A": "1/s", "B": rate}).rates["C"].within(0) == times
    keyless = compiled(ABC + DIFFUSION.format(""))
    assert keyless.check(rates={"A": "1/s", "B": each}).rates["C"].within(0) == 100**3


def test_requirement_39_rates_per_key_bound_the_whole_by_the_live_keys() -> None:
    rule = "rule R where a : A no b : B { x = a.x } when no b in a [0 s, 4 s]"
    rates = {"A": "1/s per key", "B": "2/s per key"}
    (known,) = compiled(ABC + rule).check(rates=rates).rules
    assert known.sizes is not None
    assert (known.sizes.events, known.sizes.events_per_key) == (None, 15)
    (known,) = compiled(ABC + rule).check(rates=rates, live_keys=1_000).rules
    assert known.sizes is not None
    assert (known.sizes.events, known.sizes.events_per_key) == (15_000, 15)


# --- the report ---


def test_requirement_34_events_that_several_rules_read_are_kept_once() -> None:
    program = compiled(
        ABC
        + """rule Short where a : A b : B when b in a [0 s, 2 s]
        rule Long where a : A b : B when b in a [0 s, 9 s]
        rule Back where a : A b : B when b in a [-5 s, 0 s] then emit C at a.timestamp with { x = 1 }
        rule Above where c : C a : A when a in c [0 s, 1 s]"""
    )
    state = program.check(rates={"A": "1/s", "B": "1/s"}).state
    assert state is not None
    kept = [(stratum, store.event_type, store.variable, store.events) for stratum, store in state.stores]
    assert kept == [(0, "A", "a", 10), (0, "B", "b", 6), (1, "C", "c", 12), (1, "A", "a", 1)]
    assert state.events == 29
    assert [each.here for each in state.compared] == [4, 11, 7, 13]
    told = state.to_dict()
    assert told["events"] == 29
    assert told["compared"][1]["minimum_viable_size"] == 10
    assert told["compared"][1]["cartesian"] == 81


def test_requirement_34_the_report_fits_a_terminal() -> None:
    program = compiled(ABC + DIFFUSION.format("unordered(b1, b2, b3)"))
    report = str(program.check(rates={"A": "10/ms", "B": "1 per 5 minutes"}, lateness="1 hour"))
    assert max(map(len, report.splitlines())) <= 100


LIMITED = "rule R where a : A b : B { x = a.x } when b in a [0 s, 9 s]"


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"rates": {"A": "10/s", "B": "1/s"}, "max_state": "4GB"}, None),
        ({"rates": {"A": "10/s", "B": "1/s"}, "max_state": "3.2 kB"}, "STATE_TOO_LARGE"),
        ({"rates": {"A": "10/s", "B": "1/s"}, "max_state": "4 kB per key"}, None),
        ({"rates": {"A": "10/s per key", "B": "1/s"}, "max_state": "4 GB"}, "STATE_UNKNOWN"),
        ({"rates": {"A": "10/s per key", "B": "1/s"}, "max_state": "4 GB", "live_keys": 1_000}, None),
        ({"rates": {"A": "10/s per key", "B": "1/s"}, "max_state": "3 MB", "live_keys": 1_000}, "STATE_TOO_LARGE"),
        ({"max_state": "4GB"}, "MISSING_RATE"),
        ({"max_state": "4GB", "guarantees": False}, "STATE_UNKNOWN"),
        ({"max_state": "much"}, "INVALID_OPTION"),
        ({"max_state": True}, "INVALID_OPTION"),
        ({"rates": {"A": 1, "B": 1}, "live_keys": 0}, "INVALID_OPTION"),
    ],
)
def test_a_limit_refuses_what_may_keep_more_or_is_not_known(options: dict[str, Any], condition: str | None) -> None:
    program = compiled(ABC + LIMITED)
    if condition is None:
        program.check(**options)
        return
    with pytest.raises(tocsin.TocsinError) as caught:
        program.check(**options)
    several = caught.value.errors if isinstance(caught.value, tocsin.errors.QueryErrors) else [caught.value]
    assert condition in [each.condition for each in several]


def test_a_limit_names_the_largest_stores() -> None:
    with pytest.raises(tocsin.errors.StateTooLargeError) as caught:
        compiled(ABC + LIMITED).check(rates={"A": "10/s", "B": "1/s"}, max_state="1kB")
    assert "The largest stores: 3.2 kB of `A` for `a` (10/s, kept 9 s); 32 B of `B` for `b`" in caught.value.message
    assert "`live_keys=`" in (caught.value.hint or "")


def test_a_limit_says_what_is_missing_of_emitted_events() -> None:
    program = compiled(
        ABC
        + """rule R where a : A b : B+ when b in a [0 s, 9 s] then emit C at a.timestamp with { x = 1 }
        rule S where c : C d : C when d in c [0 s, 9 s]"""
    )
    with pytest.raises(tocsin.errors.StateUnknownError, match="the rate of `C` does not follow") as caught:
        program.check(rates={"A": 1, "B": 1}, max_state="4GB")
    assert "gather events with `all`" in (caught.value.hint or "")


def test_a_limit_per_key_needs_a_key() -> None:
    keyless = LIMITED.replace("{ x = a.x }", "")
    with pytest.raises(tocsin.errors.StateUnknownError, match="the query has no key"):
        compiled(ABC + keyless).check(rates={"A": 1, "B": 1}, max_state="1kB per key")
