"""Rates and the size report, against numbers computed by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.patterns import SECOND, event, query, sequence, trailing

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.attributes import Schema
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.rates import parse_rate, parse_rates
from tocsin.analysis.sizes import SizeReport, event_bytes, size_report
from tocsin.analysis.temporal import network
from tocsin.language.ast import Selection

SCHEMAS = {
    "A": Schema.of("A", {"ts": "timestamp", "user": "string", "amount": "double"}),
    "B": Schema.of("B", {"ts": "timestamp", "user": "string", "ok": "boolean"}),
}


def report(pattern: alg.Query, rates: dict[str, object] | None = None, **options: object) -> SizeReport:
    known = parse_rates(rates)  # type: ignore[arg-type]
    return size_report(pattern, lifetimes(pattern, network(pattern)), known, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rate", "per_second"),
    [
        (100, Fraction(100)),
        (0.1, Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        ("100/s", Fraction(100)),
        ("100 / second", Fraction(100)),
        ("100 per minute", Fraction(5, 3)),
        ("5/h", Fraction(1, 720)),
        ("1 per 10 seconds", Fraction(1, 10)),
        ("1.5 PER 2 ms", Fraction(750)),
        ("1_000/s", Fraction(1000)),
        (0, Fraction(0)),
    ],
)
def test_a_rate_is_read_exactly(rate, per_second):
    assert parse_rate(rate).per_second == per_second


@pytest.mark.parametrize(
    "rate",
    ["", "fast", "100", "100/fortnight", "-5/s", "1 per 0 seconds", -1, float("nan"), float("inf"), True],
)
def test_what_is_not_a_rate_is_refused(rate):
    with pytest.raises(errors.InvalidOptionError, match="The rate of `A`"):
        parse_rates({"A": rate})


def test_all_wrong_rates_are_reported_together():
    with pytest.raises(errors.QueryErrors) as caught:
        parse_rates({"A": "fast", "B": "faster", "C": 1})
    assert len(caught.value.errors) == 2


def test_a_store_holds_what_may_come_within_a_lifetime():
    found = report(query(sequence("a", "b"), within=10 * SECOND), {"A": "100/s", "B": 7}, schemas=SCHEMAS)
    a, b = found.stores
    assert (a.events, b.events) == (1_000, 7)  # 100 × (⌊9.999999⌋ + 1); seven at one instant
    assert (a.event_bytes, b.event_bytes) == (16 + 8 + 32 + 8, 16 + 8 + 32 + 1)
    assert found.events == 1_007
    assert found.bytes == 1_000 * 64 + 7 * 57


def test_events_that_keep_their_distance_are_fewer():
    found = report(query(sequence("a", "b"), within=10 * SECOND), {"A": "100/s spaced", "B": "7/s spaced"})
    assert [store.events for store in found.stores] == [1_000, 1]  # ⌊100 × 9.999999⌋ + 1, ⌊7 × 0⌋ + 1


@pytest.mark.parametrize(
    ("rate", "us", "events"),
    [
        ("10/ms", 14_000, 150),  # fifteen ticks in a closed window (ERR-8)
        ("10/ms", 13_999, 140),
        ("10/ms spaced", 14_000, 141),
        ("1 per 5 minutes", 14 * 24 * 3600 * SECOND, 4_033),
        ("0.1/s", 10 * SECOND, 2),
        (0.1, 10 * SECOND - 1, 1),
        ("2.5/s", 0, 3),
        ("2.5/s spaced", 2 * SECOND, 6),
        (0, 10 * SECOND, 0),
        (1 / 3, 3 * SECOND, 2),  # the float is a little less than a third
    ],
)
def test_a_rate_tells_how_many_events_come_within_a_time(rate, us, events):
    assert parse_rate(rate).within(us) == events


@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.booleans(),
    st.lists(st.integers(0, 30), max_size=40),
    st.integers(0, 20),
)
def test_no_stream_that_keeps_a_rate_has_more_events_in_a_closed_interval(events, stretch, spaced, times, length):
    rate = parse_rate(f"{events} per {stretch} us" + " spaced" * spaced)
    kept: list[int] = []
    for time in sorted(times):
        ready = (
            not kept or (time - kept[-1]) * events >= stretch
            if spaced
            else (len(kept) < events or kept[-events] + stretch <= time)
        )
        kept += [time] * ready
    most = max((sum(start <= time <= start + length for time in kept) for start in kept), default=0)
    assert most <= rate.within(length)


def test_the_rate_of_a_key_beside_that_of_all():
    rate = parse_rate("100/s, 5/h per key")
    assert (rate.within(0), rate.of_key.within(0)) == (100, 5)
    keyed = query(sequence("a", "b"), within=10 * SECOND, partition=alg.Partition(("user",)))
    found = report(keyed, {"A": rate, "B": rate})
    assert (found.events, found.events_per_key) == (1_100, 10)
    assert report(keyed, {"A": rate, "B": rate}, live_keys=3).events == 30
    assert str(rate) == "100/s, 5/h per key"


def test_an_event_that_two_variables_read_is_counted_once():
    same = query(sequence(event("a", "A"), event("b", "A")), within=10 * SECOND)
    found = report(same, {"A": 1}, schemas=SCHEMAS)
    assert [store.events for store in found.stores] == [10, 1]
    assert (found.events, found.bytes) == (10, 640)
    assert "The total counts an event that several stores hold once." in str(found)


def test_lateness_is_kept_on_top_of_every_lifetime():
    found = report(query(sequence("a", "b"), within=10 * SECOND), {"A": 1, "B": 1}, lateness_us=5 * SECOND)
    assert [store.events for store in found.stores] == [15, 6]


def test_the_published_size_of_the_dissertation_comes_out():
    # 14 ms window, 10 events per ms that keep their distance: 14 × 10 + 1 = 141 (LRP §7.4).
    condition = trailing(event("a"), "n", ("a",), 14_000)
    found = report(query(condition, within=14_000), {"A": "10 per ms spaced", "N": "10/ms spaced"})
    assert [store.events for store in found.stores] == [141, 140]  # the window of a NOT is open: a tick less


def test_negated_variables_have_stores():
    found = report(query(trailing(event("a"), "n", ("a",), 10 * SECOND), within=10 * SECOND), {"A": 1, "N": 2})
    assert [(store.variable, store.is_negated, store.events) for store in found.stores] == [
        ("a", False, 11),
        ("n", True, 20),
    ]


def test_a_rate_that_is_not_declared_leaves_the_total_open():
    found = report(query(sequence("a", "b"), within=10 * SECOND), {"A": 1})
    assert found.events is None
    assert found.stores[1].events is None
    assert "not declared" in str(found)


def test_an_unbounded_lifetime_is_said():
    found = report(query(sequence("a", "b")), {"A": 1, "B": 1})
    assert found.stores[0].events is None
    assert "unbounded" in str(found)


def test_per_key_the_bound_is_that_of_the_hottest_key():
    keyed = query(sequence("a", "b"), within=10 * SECOND, partition=alg.Partition(("user",)))
    found = report(keyed, {"A": "1/s", "B": "1/s"})
    assert found.events_per_key == found.events == 11
    per_key = report(keyed, {"A": "1/s per key", "B": "1/s per key"}, live_keys=100)
    assert per_key.events_per_key == 11
    assert per_key.events == 1_100
    assert report(keyed, {"A": "1/s per key", "B": 1}).events is None


def test_a_variable_of_two_types_has_two_stores():
    core = alg.Any((event("x", "A"), event("x", "B")))
    assert [(store.variable, store.event_type) for store in report(query(core)).stores] == [
        ("x", "A"),
        ("x", "B"),
    ]


def test_the_report_is_a_table():
    keyed = query(sequence("a", "b"), within=10 * SECOND, partition=alg.Partition(("user",)))
    text = str(report(keyed, {"A": "100/s", "B": "1 per 3 s"}, schemas=SCHEMAS, lateness_us=SECOND))
    assert text == (
        "store  type  rate       lifetime    events  bytes    per key\n"
        "a      A     100/s      9.999999 s  1 100   70.4 kB  1 100\n"
        "b      B     1 per 3 s  0 s         1       57 B     1\n"
        "total                               1 101   70.5 kB  1 101\n"
        "Events are kept 1 s longer than their lifetime, for late ones.\n"
        "Key: user."
    )


def test_the_report_is_data_for_tools():
    found = report(query(sequence("a", "b"), within=10 * SECOND), {"A": 2, "B": 1}, schemas=SCHEMAS).to_dict()
    assert found["events"] == 21
    assert found["stores"][0] == {
        "variable": "a",
        "event_type": "A",
        "negated": False,
        "lifetime_us": 9_999_999,
        "kept_us": 9_999_999,
        "rate_per_second": 2.0,
        "event_bytes": 64,
        "events": 20,
        "bytes": 20 * 64,
        "events_per_key": None,
    }


@pytest.mark.parametrize(
    "core",
    [
        query(sequence("a", "b"), within=10 * SECOND, selection=Selection.CONTIGUOUS),
        query(alg.Adjacent((event("a"), event("b"))), within=10 * SECOND),
    ],
)
def test_where_neighbours_are_adjacent_every_event_between_counts(core):
    found = report(core, {"A": 1, "B": 2, "C": 3})
    held = {store.event_type: store.events for store in found.shared}
    assert held == {"A": 10, "B": 20, "C": 30}
    assert ("(between)", "C") in [(store.variable, store.event_type) for store in found.stores]
    plain = report(query(sequence("a", "b"), within=10 * SECOND), {"A": 1, "B": 2, "C": 3})
    assert {store.event_type: store.events for store in plain.shared} == {"A": 10, "B": 2}


def test_nested_attributes_add_up():
    schema = Schema.of("A", {"place": "struct<lat:double,lon:float>", "tags": "array<int>"})
    assert event_bytes(schema) == 16 + 12 + (8 + 4 * 4)
