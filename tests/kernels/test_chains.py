"""The look ahead of iterations: it changes no match, and spares walks that have no end."""

from __future__ import annotations

import random

import pytest
from tests.kernels.test_find import compiled, expected, found, kernel_of
from tests.steps import lines_run

from tocsin import reference
from tocsin.kernels.search import iterations
from tocsin.testing.strategies import Streams

RISING = {
    "each above the one before": "A{3} a WHERE a[i].x > a[i-1].x",
    "the next one, at least as large": "A{4,} a WHERE a[i+1].x >= a[i].x",
    "several, in a sequence": "SEQ(B b, A{3,5} a, C c) WHERE a[i].x > a[i-1].x AND a[i].v != a[i-1].v AND c.x >= b.x",
    "also of another event": "SEQ(B b, A{3} a) WHERE a[i].x > a[i-1].x AND a.v >= b.v",
    "two steps back is no neighbour": "A{4} a WHERE a[i].x > a[i-1].x AND a[i].x != a[i-2].x",
    "in any order": "AND(A{3} a, B b) WHERE a[i].x >= a[i-1].x",
    "one of two": "OR(A{3} a, SEQ(C c, A{4} d)) WHERE a[i].x >= a[i-1].x AND d[i].x >= d[i-1].x",
    "one name for two types": "SEQ(B b, OR(A{3} a, C{3} a)) WHERE a[i].x >= a[i-1].x",
    "a copy of copies": "SEQ(B b, A{3} a){1,2} WHERE a.x >= 0 AND b.x >= 0",
}


def events(number: int, seed: int, seconds: int) -> Streams:
    choose = random.Random(seed)
    rows: Streams = {"A": [], "B": [], "C": []}
    for _ in range(number):
        ts = choose.randrange(seconds * 4) * 250_000
        x = None if choose.random() < 0.05 else choose.randrange(6)
        row = {"ts": ts, "k": "p", "x": x, "v": choose.choice([0.5, 1.0, 1.5])}
        rows[choose.choice("AAAABC")].append(row)
    return rows


@pytest.mark.long
@pytest.mark.parametrize("text", RISING.values(), ids=RISING.keys())
def test_a_look_ahead_changes_no_match(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "EASY", 0)
    text = f"PATTERN {text} WITHIN 4 SECONDS"
    pattern, made = compiled(text), kernel_of(text)
    total = 0
    for seed in range(8):
        rows = events(24, seed, 8)
        wanted = expected(pattern.query, reference.evaluate(pattern, rows))
        total += wanted.total()
        for ahead in (2, 16):
            monkeypatch.setattr(iterations, "MOST_AHEAD", ahead)
            for width in (None, 4_000_000):
                assert found(made, rows, width) == wanted
    assert total > 0


@pytest.mark.parametrize("selection", ["next", "contiguous"])
def test_policies_keep_the_first_that_fits(selection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `next` an event that fits is taken even where nothing can follow it: there is no match then."""
    monkeypatch.setattr(iterations, "EASY", 0)
    text = f"PATTERN A{{3}} a WHERE a[i].x > a[i-1].x WITHIN 9 SECONDS SEMANTICS {selection}"
    pattern, made = compiled(text), kernel_of(text)
    for seed in range(12):
        rows = events(20, seed, 9)
        assert found(made, rows, None) == expected(pattern.query, reference.evaluate(pattern, rows))


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_many_beginnings_without_an_end_are_no_explosion(jit: bool) -> None:
    """Eight plateaus of ten equal values: 10^8 ways to choose eight rising values, and none to choose nine."""
    rows: Streams = {"A": [], "B": [], "C": []}
    rows["A"] = [{"ts": place * 1_000_000, "k": "p", "x": place // 10, "v": 1.0} for place in range(80)]
    more = {**rows, "A": [*rows["A"], {"ts": 80_000_000, "k": "p", "x": 99, "v": 1.0}]}
    made, shorter = (kernel_of(f"PATTERN A{{9}} a WHERE a[i].x > a[i-1].x WITHIN {n} SECONDS") for n in (90, 12))

    def search() -> None:
        assert found(made, rows, None, jit=jit).total() == 0
        assert found(shorter, more, None, jit=jit).total() == 0

    if jit:  # what is compiled has no lines to count; it is the same text
        search()
    else:
        assert lines_run(search) < 500_000
