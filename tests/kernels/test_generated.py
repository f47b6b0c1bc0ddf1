"""Generated code: compiled it finds what it finds as plain Python, in full arrays too, and its text never changes."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from tests.kernels.test_find import compiled, expected, found, kernel_of, rows_of
from tests.steps import lines_run

from tocsin import errors, reference
from tocsin.kernels import matches, run
from tocsin.kernels.compile import has_numba
from tocsin.kernels.reach import without
from tocsin.kernels.search.context import Context
from tocsin.kernels.search.function import function
from tocsin.kernels.search.program import program
from tocsin.testing.streams import HALVES, KEYS, TYPES, WHOLE, Streams

# Every kind of step that code is generated for.
STEPS = {
    "sequence": "SEQ(A a, B b, C c) WHERE a.x <= b.x AND c.k = a.k WITHIN 4 SECONDS",
    "any order": "AND(A a, SEQ(B b, C c)) WHERE a.x + b.x > c.x WITHIN 2 SECONDS",
    "table of an OR": "SEQ(A a, OR(B b, SEQ(C c, B d))) WHERE b.x > a.x AND d.v >= 0.5 WITHIN 3 SECONDS",
    "iteration": "SEQ(A a, B{1,3} b, C c) WHERE b[i].x >= b[i-1].x AND b.x != a.x WITHIN 3 SECONDS",
    "fold": "SEQ(A a, B{1,3} b) WHERE SUM(b.x) > a.x AND MAX(b.v) >= MIN(b.v) AND COUNT(b) > 1 WITHIN 3 SECONDS",
    "iterated table": "SEQ(SEQ(A a, NOT C n, B b){1,2}, C c) WHERE n.x > c.x AND a[i].x < b[i].x WITHIN 5 SECONDS",
    "optional": "SEQ(A? a, B b, OR(A d, C* c)) WHERE a.x < b.x WITHIN 2 SECONDS",
    "absence between": "SEQ(A a, NOT B n, C c) WHERE n.x > a.x AND n.k = c.k WITHIN 4 SECONDS",
    "absence before": "SEQ(NOT B n, A a, C{0,2} c) WHERE n.x >= a.x WITHIN 2 SECONDS",
    "absence after": "AND(SEQ(A a, NOT B n), C c) WHERE n.x >= a.x WITHIN 2 SECONDS",
    "next": "SEQ(A a, B+ b, C c) WHERE b.x >= a.x AND b[last].x > 0 WITHIN 3 SECONDS SEMANTICS next",
    "floors": "AND(A a, SEQ(B{1,2} b, OR(C c, A d))) WHERE d.x != a.x WITHIN 1 SECOND SEMANTICS next",
    "contiguous": "SEQ(A+ a, B b) WHERE b.x >= a.x WITHIN 3 SECONDS SEMANTICS contiguous",
    "contiguous, any order": "AND(A a, B+ b) PARTITION BY k WITHIN 3 SECONDS SEMANTICS partition-contiguous",
    "owned by end": "SEQ(NOT C n, A a, B+ b) WITHIN 2 SECONDS OUTPUT last per end",
}
# What `make test` compiles, at two seconds each: together they have every kind of loop, table and guard.
COMPILED_SOON = ("sequence", "iterated table", "optional", "absence before", "floors", "contiguous")
LONG = "SEQ(" + ", ".join(f"{'ABC'[number % 3]} e{number}" for number in range(14)) + ") WITHIN 60 SECONDS"


def compiled_soon_or_later(name: str, text: str) -> Any:
    return pytest.param(text, id=name, marks=() if name in COMPILED_SOON else pytest.mark.slow)


def events(number: int, seed: int, seconds: float) -> Streams:
    """Spread evenly, some at one instant."""
    choose = random.Random(seed)
    rows: Streams = {name: [] for name in TYPES}
    for _ in range(number):
        ts = choose.randrange(int(seconds * 4)) * 250_000 + choose.choice([0, 0, 1])
        row = {"ts": ts, "k": choose.choice(KEYS), "x": choose.choice(WHOLE), "v": choose.choice(HALVES)}
        rows[choose.choice(TYPES)].append(row)
    return rows


def in_turn(number: int) -> Streams:
    """A B C A B C …, one each second."""
    rows: Streams = {name: [] for name in TYPES}
    for second in range(number):
        rows["ABC"[second % 3]].append({"ts": second * 1_000_000, "k": "p", "x": second, "v": 1.0})
    return rows


def widths(made: Any) -> list[int | None]:
    return [None, max(1, made.ahead_us, made.back_us)] if made.can_slice else [None]


def check(text: str, rows: Streams) -> Counter[Any]:
    """Plain Python finds what the reference finds, whether sliced or not."""
    pattern, made = compiled(text), kernel_of(text)
    wanted = expected(pattern.query, reference.evaluate(pattern, rows))
    for width in widths(made):
        assert found(made, rows, width) == wanted
    return wanted


@pytest.mark.parametrize("text", STEPS.values(), ids=STEPS.keys())
def test_every_step_finds_what_the_reference_finds(text: str) -> None:
    total = sum(check(f"PATTERN {text}", events(30, seed, 8)).total() for seed in range(8))
    assert total > 0


def test_a_pattern_with_more_parts_than_loops_can_nest_is_cut() -> None:
    assert check(f"PATTERN {LONG}", in_turn(16)).total() == 1
    assert check(f"PATTERN {LONG.replace('60', '13')}", in_turn(16)).total() == 0


@pytest.mark.compiled
@pytest.mark.skipif(not has_numba(), reason="needs numba")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("text", [compiled_soon_or_later(*each) for each in {**STEPS, "more parts": LONG}.items()])
def test_compiled_code_finds_what_plain_python_finds(text: str) -> None:
    made = kernel_of(f"PATTERN {text}")
    rows = events(300, 7, 120) if text is not LONG else in_turn(16)
    width = widths(made)[-1]
    by_python = found(made, rows, width, jit=False)
    assert by_python
    assert found(made, rows, width, jit=True) == by_python


# --- arrays that are full -------------------------------------------------------------------------


@pytest.mark.parametrize("text", STEPS.values(), ids=STEPS.keys())
def test_full_arrays_and_stacks_are_made_larger(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: Counter[int] = Counter()
    for name, size in {"LITTLE_ROOM": 1, "ROOM": 1, "DEPTH": 2}.items():
        monkeypatch.setattr(run, name, size)
    plain = run.compile.plain

    def watched(text: str) -> Any:
        search = plain(text)

        def call(*arguments: Any) -> Any:
            result = search(*arguments)
            statuses[int(result[0])] += 1
            return result

        return call

    monkeypatch.setattr(run.compile, "plain", watched)
    total = sum(check(f"PATTERN {text}", events(30, seed, 8)).total() for seed in range(3))
    assert statuses[run.FULL] >= min(total, 2) - 1


def test_stacks_grow_with_the_longest_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "DEPTH", 2)
    for text in ("A+ a", "SEQ(A+ a, B* b)", "SEQ(A a, B b)+", "OR(A a, B b){2,9}", "SEQ(C? c, A+ a)"):
        assert check(f"PATTERN {text}", in_turn(12)).total() > 0


# --- too many matches -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("A+ a", "A"),
        ("SEQ(A+ a, B b) WHERE b.x < a[first].x", "AB"),
        ("SEQ(C? c, A+ a)", "A"),
        ("AND(A+ a, C c)", "AC"),
        ("SEQ(A a)+", "A"),
    ],
)
def test_a_search_without_end_gives_up_soon(text: str, types: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many matches, or where there is none too many steps."""
    monkeypatch.setattr(matches, "MOST_STEPS", 10_000)
    rows = in_turn(0)
    for second in range(40):
        rows[types[second % len(types)]].append({"ts": second * 1_000_000, "k": "p", "x": 1, "v": 1.0})
    made = kernel_of(f"PATTERN {text} WITHIN 90 SECONDS")
    expected = errors.TooMuchSearchError if "B" in text else errors.TooManyMatchesError

    def search() -> None:
        with pytest.raises(expected, match=r"iteration of `a`"):
            found(made, rows, most=200)

    assert lines_run(search) < 2_000_000


def test_a_start_may_have_as_many_matches_as_the_limit_says_and_no_more() -> None:
    rows = {"A": in_turn(24)["A"][:5], "B": [], "C": []}
    made = kernel_of("PATTERN A+ a")
    assert found(made, rows, most=16).total() == 31
    with pytest.raises(errors.TooManyMatchesError):
        found(made, rows, most=15)


# --- the text -------------------------------------------------------------------------------------


def texts() -> str:
    """A digest of all generated text; what is compiled is kept on disk by it."""
    digest = hashlib.sha256()
    for text in [*STEPS.values(), LONG]:
        made = kernel_of(f"PATTERN {text}")
        rows, _ = rows_of(made, events(30, 1, 8), None)
        cut = program(without(made.query.core, made.conditions.residual_around), made.conditions.tests)
        setting = made.setting(rows)
        for table in cut.tables:
            for branch in table.branches:
                digest.update(
                    function(Context(branch, setting, cut.tables, table.absences, is_main=False)).text.encode()
                )
        for main in cut.mains:
            digest.update(function(Context(main, setting, cut.tables)).text.encode())
    return digest.hexdigest()


@pytest.mark.long
def test_the_text_is_the_same_in_every_process() -> None:
    script = "from tests.kernels.test_generated import texts; print(texts())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.stdout.strip() == texts()
