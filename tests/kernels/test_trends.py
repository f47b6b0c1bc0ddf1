"""Aggregation over all matches without building them, against the reference, which builds them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.test_find import compiled, kernel_of, rows_of

import tocsin
from tocsin import reference
from tocsin.kernels.lists import merged
from tocsin.kernels.model import Carried, Held
from tocsin.kernels.trends import semirings, task
from tocsin.kernels.trends.machine import machine
from tocsin.kernels.trends.request import refusal
from tocsin.kernels.trends.task import log_matches
from tocsin.kernels.trends.totals import Totals, together
from tocsin.kernels.trends.trend_count import Measure, Trend
from tocsin.language import expressions as ex
from tocsin.testing.strategies import Streams

PATTERNS = [
    "A+ a",
    "SEQ(A a, B+ b)",
    "SEQ(A a, B+ b, C c)",
    "SEQ(A+ a, B* b, C c)",
    "SEQ(A? a, B{2,3} b, C? c)",
    "OR(SEQ(A a, B b), SEQ(A a, C+ c))",
    "SEQ(OR(A a, B b), C+ c)",
    "SEQ(A a, B? b)+",
    "OR(A a, B b)+",
    "SEQ(OR(SEQ(A a, B b)+, C c), A d)",
    "SEQ(A a, OR(B x, C x)+, A d)",
]
SELECTED = [(text, "any") for text in PATTERNS] + [(text, "contiguous") for text in PATTERNS]
# Under `next` a variable has one type, and an OR of single events, which is one element, is not counted.
ELEMENT = "OR(A a, B b)+"
SELECTED += [(text, "next") for text in PATTERNS if " x" not in text and text != ELEMENT]


@pytest.mark.parametrize(("text", "selection"), SELECTED)
def test_paths_are_counted_as_the_reference_counts_matches(text: str, selection: str) -> None:
    outputs, measures = asked("b" if " b" in text else "a")
    windows = ("", "WITHIN 2 SECONDS", "WITHIN 3 SECONDS", "WITHIN 5 SECONDS", "WITHIN 40 SECONDS")
    made = [trend_of(f"PATTERN {text} {within} SEMANTICS {selection} {outputs}", *measures) for within in windows]
    seen = 0
    for seed in range(40):
        pattern, trend = made[seed % len(made)]
        streams = busy(11, seed, 40) if selection == "contiguous" else busy(9, seed, 9)
        (wanted,) = reference.evaluate(pattern, streams)
        rows, _ = rows_of(trend.kernel, streams, None)
        found = trend.totals(rows, jit=False)
        check(found, wanted)
        # Every start is counted by the part of time it lies in.
        middle = int(np.median(rows.ts))
        owned = [replace(rows, owned=own) for own in ((-(2**62), middle), (middle + 1, 2**62))]
        parts = [each for own in owned for each in trend.totals(own, jit=False).values()]
        seen += bool(found)
        if parts:
            assert reduce(lambda one, other: together(one, other, trend.kinds), parts) == found[0]
    assert seen > 0


def check(found: dict[int, Totals], wanted: dict[str, Any]) -> None:
    """Compare totals with the only row of the reference."""
    if not found:
        assert wanted["all_of_them"] == 0
        return
    (total,) = found.values()
    n, k, s, f, low, high = total.found
    assert (total.count, n, k, s.number) == tuple(wanted[name] for name in ("all_of_them", *"nks"))
    assert f.over(1) == pytest.approx(wanted["f"], rel=1e-12)
    assert (low, high) == (wanted["low"], wanted["high"])


@pytest.mark.parametrize("order", [1, -1])
def test_nan_is_above_every_number_whichever_task_has_it(order: int) -> None:
    low, high = (
        reduce(lambda a, b: together(a, b, (kind,)), [Totals(1, (v,)) for v in (math.nan, 1.0, None)[::order]])
        for kind in ("min", "max")
    )
    assert low.found == (1.0,)
    assert math.isnan(high.found[0])


# --- compiled -------------------------------------------------------------------------------------


def trend_of(text: str, *measures: Measure) -> tuple[tocsin.Pattern, Trend]:
    made = kernel_of(text)
    # What is asked for is carried, as the columns of conditions are.
    carried = tuple(
        Carried(held, None, {kind: ex.Attribute("e", (name,)) for kind in "ABC"})
        for name, held in (("x", Held.INTEGER), ("v", Held.FLOAT))
    )
    made = replace(made, carried=carried)
    return compiled(text), Trend(made, machine(made.query.core), measures)


def asked(variable: str) -> tuple[str, tuple[Measure, ...]]:
    names = {"n": f"COUNT({variable})", "k": f"COUNT({variable}.x)", "s": f"SUM({variable}.x)"}
    names |= {"f": f"SUM({variable}.v)", "low": f"MIN({variable}.x)", "high": f"MAX({variable}.v)"}
    text = "RETURN COUNT(*) AS all_of_them, " + ", ".join(f"{value} AS {name}" for name, value in names.items())
    measures = (
        Measure("tally", variable),
        Measure("tally", variable, 0),
        Measure("sum", variable, 0),
        Measure("sum", variable, 1),
        Measure("min", variable, 0),
        Measure("max", variable, 1),
    )
    return text, measures


def busy(number: int, seed: int, seconds: int) -> Streams:
    choose = random.Random(seed)
    rows: Streams = {name: [] for name in "ABC"}
    for _ in range(number):
        ts = choose.randrange(seconds * 2) * 500_000
        x, v = choose.choice([None, -7, 0, 3, 2**40]), choose.choice([None, 0.1, -2.5, 0.0, 1e-9, 1e12])
        rows[choose.choice("AABBC")].append({"ts": ts, "k": choose.choice("pq"), "x": x, "v": v})
    return rows


PLAIN = [
    (text, selection, windows)
    for text in ("SEQ(A a, B+ b)", "SEQ(A+ b, B* d, C c)", "SEQ(A? a, B{2,3} b)", "SEQ(A a, B? b){1,2}", ELEMENT)
    for selection in ("any", "next", "partition-contiguous")
    for windows in ((None,), (1, 3, 7))
    if (text, selection) != (ELEMENT, "next")
]
# numba needs up to ten seconds for each of these; `make test` compiles the last.
COMPILED = [
    ("SEQ(A+ b, B* d, C c)", "any", (1, 3)),
    ("SEQ(A? a, B{2,3} b)", "any", (None,)),
    ("SEQ(A a, B? b)+", "next", (3,)),
    ("SEQ(A a, B+ b)", "partition-contiguous", (7,)),
]


@pytest.mark.parametrize(
    ("text", "selection", "windows", "jit"),
    [
        *((*case, False) for case in PLAIN),
        *(pytest.param(*case, True, marks=pytest.mark.slow) for case in COMPILED[:-1]),
        pytest.param(*COMPILED[-1], True, marks=pytest.mark.compiled),
    ],
)
def test_totals_are_those_of_the_reference(
    text: str, selection: str, windows: tuple[int | None, ...], jit: bool
) -> None:
    outputs, measures = asked("b")
    seen = 0
    for seed in range(12):
        window = windows[seed % len(windows)]
        within = "" if window is None else f"WITHIN {window} SECONDS"
        query = f"PATTERN {text} PARTITION BY k {within} SEMANTICS {selection} {outputs}"
        pattern, trend = trend_of(query, *measures)
        streams = busy(13, seed, 8)
        (wanted,) = reference.evaluate(pattern, streams)
        for width in (None, 3_000_000) if window in (1, 3) else (None,):
            rows, _ = rows_of(trend.kernel, streams, width)
            found = trend.totals(rows, jit=jit)
            check(found, wanted)
            seen += bool(found)
    assert seen > 0


# --- numbers --------------------------------------------------------------------------------------

LOOPED = ["A+ a", "SEQ(A a, B+ b, C c)", "SEQ(A+ b, B* d, C c)", "SEQ(A? a, B{2,3} b, C? c)", "SEQ(A+ a, A+ b)"]
LOOPED += ["OR(SEQ(A a, B b), SEQ(A a, C+ c))", "SEQ(OR(A a, B b), C+ c)", "SEQ(A a, B? b)+", "OR(A a, B b)+"]


@pytest.mark.compiled
@pytest.mark.parametrize("text", LOOPED)
def test_residues_and_64_bits_count_what_integers_of_python_count(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, measures = asked("b" if " b" in text else "a")
    for seed in range(16):
        choose = random.Random(seed)
        monkeypatch.setattr(task, "INTEGER_BITS", choose.choice([0, 62]))
        monkeypatch.setattr(task, "MOST_NUMBERS", choose.choice([2**10, 2**26]))
        monkeypatch.setattr(task, "MOST_STARTS", choose.choice([1, 4096]))
        window = choose.choice([None, 1, 3, 7, 300])
        within = "" if window is None else f"WITHIN {window} SECONDS"
        _, trend = trend_of(
            f"PATTERN {text} PARTITION BY k {within} {outputs}", *measures[: choose.choice([0, 1, 2, 4, 6])]
        )
        # Up to some hundred bits, with many events of an instant and with few.
        streams = busy(choose.choice([13, 60, 200]), seed, choose.choice([4, 60, 1000]))
        for width in (None, 3_000_000) if window in (1, 3) else (None,):
            rows, _ = rows_of(trend.kernel, streams, width)
            labels = np.arange(len(rows.ts)) % 3
            assert trend.totals(rows, labels, jit=True) == trend.totals(rows, labels, jit=False)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 200)), min_size=1), st.integers(9, 40))
def test_integers_come_back_from_their_residues(numbers: list[tuple[int, int]], width: int) -> None:
    mantissas, shifts = (np.array(each, np.int64) for each in zip(*numbers, strict=True))
    found = semirings.residues(mantissas, shifts, semirings.primes(width))
    assert semirings.integers(found) == [mantissa << shift for mantissa, shift in numbers]


def test_primes_are_enough_for_the_numbers_they_stand_for() -> None:
    for bits in range(1, 4000):
        assert math.prod(semirings.primes(semirings.width_for(bits))) > 2 ** (bits + 1)
    known = semirings.primes(2000)
    assert len(set(known)) == 2000
    assert all(pow(base, prime - 1, prime) == 1 for prime in known for base in (2, 3, 5, 7))


def test_an_element_of_alternatives_is_not_counted_under_next() -> None:
    text = f"PATTERN SEQ(C c, {ELEMENT}) WITHIN 5 SECONDS SEMANTICS %s RETURN COUNT(*) AS n"
    assert refusal(tocsin.pattern(text % "contiguous").query) is None
    assert refusal(tocsin.pattern(text % "next").query) == "an OR of single events is one element under `next`"


@pytest.mark.compiled
@pytest.mark.parametrize(("number", "seconds"), [(3000, 2000), (3000, 500)])
def test_long_numbers_are_compiled(number: int, seconds: int) -> None:
    outputs, measures = asked("b")
    query = f"PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 400 SECONDS {outputs}"
    _, trend = trend_of(query, *measures)
    rows, _ = rows_of(trend.kernel, busy(number, 1, seconds), None)
    found = trend.totals(rows, jit=True)
    assert found == trend.totals(rows, jit=False)
    assert found[0].count > 2**100


def test_no_count_exceeds_its_bound() -> None:
    for seed in range(200):
        choose = random.Random(seed)
        within = choose.choice(["", "WITHIN 2 SECONDS", "WITHIN 9 SECONDS"])
        _, trend = trend_of(f"PATTERN {choose.choice(PATTERNS)} PARTITION BY k {within} RETURN COUNT(*) AS n")
        rows, _ = rows_of(trend.kernel, busy(choose.choice([9, 30, 200]), seed, 20), None)
        symbols = trend._symbols(rows)
        events = merged(rows, np.flatnonzero(symbols))
        ends = events.window_ends(trend.kernel.query.window_us)
        most, _ = log_matches(trend.machine, events, symbols[events.rows], ends)
        found = trend.totals(rows, jit=False)
        assert (found[0].count if found else 0) <= sum(2**bits for bits in most.tolist()) * (1 + 1e-9)
