"""Integer times count the unit that `time_unit=` names: durations are converted, instants and results are not (R42)."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin import errors, reference

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
QUERIES = [
    "PATTERN SEQ(A a, B b) WITHIN 2 SECONDS",
    "PATTERN SEQ(A a, NOT C c, B b) WITHIN 3 SECONDS",
    "PATTERN SEQ(NOT C c, A a, B b) WITHIN 2 SECONDS",
    "PATTERN SEQ(A a, B b, NOT C c) WITHIN 2 SECONDS",
    "PATTERN AND(A a, B+ b) WITHIN 2 SECONDS SEMANTICS next",
    "PATTERN SEQ(A a, B b) WHERE b.ts - a.ts <= 1 SECOND AND b.ts < a.ts + 3 SECONDS RETURN b.ts - a.ts AS n",
    "PATTERN AND(A a, B b) WHERE b.ts - a.ts BETWEEN -1 SECONDS AND 2 * 1 SECOND",
    "PATTERN SEQ(A a, B b, C c) WITHIN 4 SECONDS WITH TIMEOUTS",
    "PATTERN SEQ(A a, B b) WITHIN 2 SECONDS RETURN COUNT(*) AS n EVERY 2 SECONDS",
    "PATTERN SEQ(A+ a, B b) WITHIN 3 SECONDS RETURN COUNT(*) AS n",
    "A ; B WITHIN 2 SECONDS",
    "(A+ ; B) FILTER A[ts > 1 SECOND] WITHIN 3 SECONDS",
]
PROGRAM = """
    template A { x : Integer }  template B { x : Integer }  template C { x : Integer }  template D { x : Integer }
    rule Near where a : A  b : B  no c : C { x = a.x }
    when b in a [-1 seconds, 2 seconds]  no c in b [0 seconds, 1 second]
    then emit D at a.timestamp + 2 seconds with { x = a.x }
    rule Later where d : D  e : A when e in d [0 seconds, 2 seconds]
"""


def pattern(text: str) -> tocsin.Pattern:
    return tocsin.pattern(text, language="sase" if text.startswith("PATTERN") else "acel")


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """Events at whole seconds and a tick beside them, so that every bound is met and just missed."""
    unit = draw(st.sampled_from(sorted(PER_SECOND)))
    seconds = st.integers(-2, 4)
    ticks = (
        seconds.map(lambda number: number * PER_SECOND[unit])
        if unit == "s"
        else st.tuples(seconds, st.integers(-1, 1)).map(lambda pair: pair[0] * PER_SECOND[unit] + pair[1])
    )
    found = draw(st.lists(st.tuples(ticks, st.sampled_from("AABBC")), min_size=2, max_size=5, unique=True))
    return unit, [{"ts": ts, "type": kind, "x": place % 2} for place, (ts, kind) in enumerate(found)]


def seen(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted((name, value) for name, value in row.items() if name != "match_id")) for row in rows)


@pytest.mark.parametrize("text", QUERIES)
@settings(max_examples=15)
@given(streams())
def test_the_search_and_the_reference_agree_in_every_unit(text: str, drawn: tuple[str, list[dict[str, Any]]]) -> None:
    unit, rows = drawn
    query = pattern(text)
    found = query.match(rows, engine="local", time_unit=unit).to_pylist()
    expected = reference.evaluate(query.query, rows, time_unit=unit)
    if "match_id" in (found or [{}])[0]:
        assert Counter(row["match_id"] for row in found) == Counter(row["match_id"] for row in expected)
    else:
        assert seen(found) == seen(expected)


@pytest.mark.parametrize("text", QUERIES)
@settings(max_examples=10)
@given(streams())
def test_a_unit_is_nothing_but_another_way_to_write_the_same_instants(
    text: str, drawn: tuple[str, list[dict[str, Any]]]
) -> None:
    """The reference itself, in nanoseconds and in the unit; columns that hold times differ by the factor."""
    unit, rows = drawn
    factor = PER_SECOND["ns"] // PER_SECOND[unit]
    query = pattern(text).query
    found = reference.evaluate(query, rows, time_unit=unit)
    fine = reference.evaluate(query, [row | {"ts": row["ts"] * factor} for row in rows], time_unit="ns")
    assert len(found) == len(fine)
    if not query.over_all_matches:
        assert [(row["start"] * factor, row["end"] * factor) for row in found] == [(r["start"], r["end"]) for r in fine]


@settings(max_examples=15)
@given(streams())
def test_distances_absences_and_emitted_times_of_rules_are_in_the_unit(drawn: tuple[str, list[dict[str, Any]]]) -> None:
    unit, rows = drawn
    program = tocsin.rules(PROGRAM)
    by_type = {kind: [row for row in rows if row["type"] == kind] for kind in "ABC"}
    inputs = {kind: [{"ts": row["ts"], "x": row["x"]} for row in own] for kind, own in by_type.items()}
    expected = reference.evaluate(program, inputs, time_unit=unit)
    for rule in ("Near", "Later"):
        found = program.matches(rule, inputs, engine="local", time_unit=unit).to_pylist()
        assert Counter(row["match_id"] for row in found) == Counter(row["match_id"] for row in expected[rule])
    events = program.events("D", inputs, engine="local", time_unit=unit).to_pylist()
    assert seen(events) == seen(reference.events(program, inputs, time_unit=unit)["D"])


def test_instants_that_differ_by_a_nanosecond_stay_different() -> None:
    rows = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}, {"ts": 1_001, "type": "B"}]
    found = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 1 US").match(rows, engine="local", time_unit="ns")
    assert [(row["start"], row["end"]) for row in found.to_pylist()] == [(1, 2)]


WITHIN = "PATTERN SEQ(A a, B b) WITHIN 2 SECONDS"
INTEGERS = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]


def test_integers_without_a_unit_are_microseconds_and_warned_about_where_a_duration_is_written() -> None:
    query = tocsin.pattern(WITHIN)
    with pytest.warns(errors.TocsinWarning, match=r"TIME_UNIT_ASSUMED.*`ts`") as given_warnings:
        assumed = query.match(INTEGERS, engine="local")
    assert given_warnings[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.match(INTEGERS, engine="local", time_unit="us") == assumed
        tocsin.pattern("PATTERN SEQ(A a, B b)").match(INTEGERS, engine="local")
        times = [{"ts": dt.datetime(2026, 1, 1, second=row["ts"]), "type": row["type"]} for row in INTEGERS]
        query.match(times, engine="local")
    with pytest.warns(errors.TocsinWarning, match="TIME_UNIT_ASSUMED"):
        tocsin.rules(PROGRAM).matches("Near", {kind: [{"ts": 1, "x": 1}] for kind in "ABC"}, engine="local")


def test_a_unit_that_cannot_be_is_refused_by_name() -> None:
    query = tocsin.pattern(WITHIN)
    times = [{"ts": dt.datetime(2026, 1, 1), "type": kind} for kind in "AB"]
    with pytest.raises(errors.InvalidOptionError, match=r'`time_unit="ms"`.*`ts` is a timestamp'):
        query.match(times, engine="local", time_unit="ms")
    with pytest.raises(errors.InvalidOptionError, match="time_unit='minutes'"):
        query.match(INTEGERS, engine="local", time_unit="minutes")
    with pytest.raises(errors.InvalidOptionError, match="1500 MILLISECONDS is not a whole number of seconds"):
        tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 1.5 SECONDS").match(INTEGERS, engine="local", time_unit="s")
    with pytest.raises(errors.InvalidOptionError, match="longer than 64-bit times can tell"):
        tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 60000 DAYS").match(INTEGERS, engine="local", time_unit="ns")
    schema = {"ts": "timestamp"}
    with pytest.raises(errors.InvalidOptionError, match="is a timestamp"):
        query.check({"A": schema, "B": schema}, time_unit="s")
    with pytest.raises(errors.InvalidOptionError, match="is a timestamp"):
        program = tocsin.rules(PROGRAM)
        program.check({kind: {"ts": "timestamp", "x": "bigint"} for kind in "ABC"}, time_unit="s")
    report = query.check({kind: {"ts": "bigint"} for kind in "AB"}, time_unit="ms")
    assert "1.999999 s" in str(report.lifetimes)


def test_an_interval_beside_a_timestamp_stays_what_it_is() -> None:
    later = {"at": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "until": dt.datetime(2026, 1, 1, second=5, tzinfo=dt.UTC)}
    rows = [row | later for row in INTEGERS]
    text = "PATTERN SEQ(A a, B b) WHERE {} WITHIN 2 SECONDS"
    for condition, number in (
        ("b.until - a.at = 5 SECONDS", 1),
        ("a.at + 5 SECONDS = b.until", 1),
        ("b.until - a.at < 1 SECOND", 0),
    ):
        found = tocsin.pattern(text.replace("{}", condition)).match(rows, engine="local", time_unit="s")
        assert len(found) == number
