"""Aggregation over all matches without building them, against the reference, which builds them."""

from __future__ import annotations

import math
import random
import warnings
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.kernels.test_find import compiled, kernel_of, rows_of

import tocsin
from tocsin import reference
from tocsin.algebra import nodes as alg
from tocsin.kernels import compile
from tocsin.kernels.model import Carried, Held
from tocsin.kernels.trends import arrays, loose
from tocsin.kernels.trends.answers import Totals, together
from tocsin.kernels.trends.asked import refusal
from tocsin.kernels.trends.exact import totals
from tocsin.kernels.trends.machine import Letter, machine
from tocsin.kernels.trends.sums import NO_KEY, Sum, one, plus
from tocsin.kernels.trends.trend import Measure, Trend
from tocsin.kernels.trends.walks import Group, Walk
from tocsin.language import expressions as ex
from tocsin.language.ast import Selection
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
ASKED = "RETURN COUNT(*) AS n, COUNT({0}) AS m, SUM({0}.x) AS total, MIN({0}.x) AS low"


def events(number: int, seed: int, seconds: int) -> list[dict[str, Any]]:
    choose = random.Random(seed)
    rows = [
        {
            "type": choose.choice("AABBC"),
            "ts": choose.randrange(seconds) * 1_000_000,
            "x": choose.choice([None, 0, 3, 5]),
        }
        for _ in range(number)
    ]
    return sorted(rows, key=lambda row: (row["ts"], row["type"], str(row["x"])))


def group_of(rows: list[dict[str, Any]], letters: tuple[Letter, ...], variable: str, *, every: bool) -> Group:
    """Totals: the number of events of a variable, the values; the extreme: their least value."""
    kept = [
        (place, row, tuple(n for n, letter in enumerate(letters) if letter[1] == row["type"]))
        for place, row in enumerate(rows)
    ]
    kept = [each for each in kept if each[2] or every]

    def weight(row: dict[str, Any], letter: int) -> tuple[int, ...]:
        return (1, row["x"] or 0) if letters[letter][0] == variable else (0, 0)

    def key(row: dict[str, Any], letter: int) -> tuple[int, ...]:
        return (NO_KEY if letters[letter][0] != variable or row["x"] is None else row["x"],)

    follows = [
        number > 0 and kept[number - 1][0] + 1 == place and kept[number - 1][1]["ts"] < row["ts"]
        for number, (place, row, _) in enumerate(kept)
    ]
    return Group(
        [row["ts"] for _, row, _ in kept],
        [letters for _, _, letters in kept],
        [[weight(row, letter) for letter in found] for _, row, found in kept],
        [[key(row, letter) for letter in found] for _, row, found in kept],
        follows if every else (),
    )


def counted(query: alg.Query, rows: list[dict[str, Any]], variable: str, own: tuple[int, int]) -> Sum | None:
    found = machine(query.core)
    is_contiguous = query.selection is Selection.CONTIGUOUS
    group = group_of(rows, found.letters, variable, every=is_contiguous)
    whole: Sum | None = None
    for _, more in totals(group, Walk(found, query.selection), one(2, 1), query.window_us, own):
        whole = plus(whole, more)
    return whole


SELECTED = [(text, "any") for text in PATTERNS] + [(text, "contiguous") for text in PATTERNS]
# Under `next` a variable has one type, and an OR of single events, which is one element, is not counted.
ELEMENT = "OR(A a, B b)+"
SELECTED += [(text, "next") for text in PATTERNS if " x" not in text and text != ELEMENT]


@pytest.mark.parametrize(("text", "selection"), SELECTED)
def test_words_are_counted_as_the_reference_counts_matches(text: str, selection: str) -> None:
    variable = "b" if " b" in text else "a"
    seen = 0
    for seed in range(40):
        window = random.Random(seed).choice([None, 2, 3, 5, 40])
        within = "" if window is None else f"WITHIN {window} SECONDS"
        asked = f"PATTERN {text} {within} SEMANTICS {selection} {ASKED.format(variable)}"
        pattern = tocsin.pattern(asked)
        rows = events(11, seed, 40) if selection == "contiguous" else events(9, seed, 9)
        by_type = {name: [row for row in rows if row["type"] == name] for name in "ABC"}
        (wanted,) = reference.evaluate(pattern, by_type)
        found = counted(pattern.query, rows, variable, (-(2**62), 2**62))
        if found is None:
            assert wanted["n"] == 0
            continue
        seen += 1
        assert (found[0], *found[1]) == (wanted["n"], wanted["m"], wanted["total"]), (asked, rows)
        assert (None if found[2][0] == NO_KEY else found[2][0]) == wanted["low"]
        # Every start is counted by the part of time it lies in.
        middle = rows[len(rows) // 2]["ts"]
        parts = [counted(pattern.query, rows, variable, own) for own in ((-(2**62), middle), (middle + 1, 2**62))]
        assert plus(*parts) == found
    assert seen > 0


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
            if not found:
                assert wanted["all_of_them"] == 0
                continue
            seen += 1
            (total,) = found.values()
            n, k, s, f, low, high = total.found
            assert (total.count, n, k, s.number) == tuple(wanted[name] for name in ("all_of_them", *"nks"))
            assert f.over(1) == pytest.approx(wanted["f"], rel=1e-12)
            assert (low, high) == (wanted["low"], wanted["high"])
    assert seen > 0


# --- a window that slides -------------------------------------------------------------------------

SLID = ["A+ a", "SEQ(A a, B+ b, C c)", "SEQ(A+ b, B* d, C c)", "SEQ(A? a, B{2,3} b, C? c)", "SEQ(A+ a, A+ b)"]
SLID += ["OR(SEQ(A a, B b), SEQ(A a, C+ c))", "SEQ(OR(A a, B b), C+ c)"]


@pytest.mark.parametrize("room", [1, 8])
@pytest.mark.parametrize("text", SLID)
def test_a_window_that_slides_counts_what_blocks_count(text: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain Python, where a number that does not fit into 64 bits would be noticed."""
    monkeypatch.setattr(compile, "fast", lambda text, library="": compile.plain(library + text))
    monkeypatch.setattr(arrays, "FIRST_ROOM", room)
    outputs, measures = asked("b" if " b" in text else "a")
    for seed in range(16):
        choose = random.Random(seed)
        window = choose.choice([None, 1, 3, 7, 300])
        within = "" if window is None else f"WITHIN {window} SECONDS"
        _, trend = trend_of(
            f"PATTERN {text} PARTITION BY k {within} {outputs}", *measures[: choose.choice([0, 1, 2, 4])]
        )
        assert trend.steps is not None
        # Up to some hundred bits, with many events of an instant and with few.
        streams = busy(choose.choice([13, 60, 300]), seed, choose.choice([4, 60, 1000]))
        for width in (None, 3_000_000) if window in (1, 3) else (None,):
            rows, _ = rows_of(trend.kernel, streams, width)
            labels = np.arange(len(rows.ts)) % 3
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = trend.totals(rows, labels, jit=True)
            assert found == {label: each for label, each in trend.totals(rows, labels, jit=False).items() if each.count}


def test_an_element_of_alternatives_is_not_counted_under_next() -> None:
    text = f"PATTERN SEQ(C c, {ELEMENT}) WITHIN 5 SECONDS SEMANTICS %s RETURN COUNT(*) AS n"
    assert refusal(tocsin.pattern(text % "contiguous").query) is None
    assert refusal(tocsin.pattern(text % "next").query) == "an OR of single events is one element under `next`"


@pytest.mark.compiled
def test_a_window_that_slides_is_compiled() -> None:
    outputs, measures = asked("b")
    query = f"PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 400 SECONDS {outputs}"
    _, trend = trend_of(query, *measures[:4])
    for number, seconds in ((3000, 2000), (3000, 500)):
        rows, _ = rows_of(trend.kernel, busy(number, 1, seconds), None)
        assert trend.totals(rows, jit=True) == trend.totals(rows, jit=False)


def test_what_cannot_be_undone_is_counted_in_blocks() -> None:
    for text in ("SEQ(A a, B? b)+", "OR(A a, B b)+", "SEQ(A a, B+ b) SEMANTICS next"):
        assert trend_of(f"PATTERN {text} RETURN COUNT(*) AS n")[1].steps is None


numbers = st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=6)


@given(numbers, numbers, st.integers(-(2**32) + 1, 2**32 - 1), st.integers(2, 2**20))
def test_loose_numbers_are_right_whatever_their_digits(
    one: list[int], other: list[int], factor: int, divisor: int
) -> None:
    room = 12
    n = np.zeros(2 * (loose.HEAD + 2 * room), np.int64)
    to, of = 0, loose.HEAD + 2 * room

    def value(at: int, number: int) -> int:
        first = at + loose.HEAD + number * room
        return loose.to_int(n[first : first + room])

    for at, count, total in ((to, one, other), (of, other, one)):
        n[at : at + 2] = 2**50, 6
        n[at + loose.HEAD : at + loose.HEAD + len(count)] = count
        n[at + loose.HEAD + room : at + loose.HEAD + room + len(total)] = total
    assume(min(value(to, 0), value(of, 0), value(to, 1) + factor * value(of, 0) * 2**32) >= 0)
    wanted = value(to, 1) + factor * value(of, 0) * 2**32
    if value(to, 1) >= 0:  # what is settled is a natural number
        assert factor == 0 or loose.add_product(n, to, 1, of, factor, 1, 2, room)
        assert value(to, 1) == (wanted if factor else value(to, 1))
        n[of : of + loose.HEAD + 2 * room] = 0
        n[of + 1] = 1
        assert loose.add_weight(n, of, 0, int(divisor), 0, 2, room)
        whole = value(to, 1)
        assert loose.settle(n, to, 2, room)
        assert value(to, 1) == whole
        assert all(0 <= digit < 2**40 for digit in n[loose.HEAD : loose.HEAD + 2 * room].tolist())
        whole = value(to, 0)
        for place in range(room):
            n[to + loose.HEAD + place] *= divisor
        n[to] *= divisor
        assert loose.settle(n, to, 2, room)
        loose.divide(n, to, 0, 1, divisor, room)
        assert value(to, 0) == whole
