"""Repeated groups and alternatives under `next` and contiguity: what the reference keeps, at a cost of what is kept."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting import seeded
from tests.kernels.test_find import compiled, expected, found, kernel_of, rows_of

import tocsin
from tocsin import errors, reference
from tocsin.kernels import compile
from tocsin.kernels.links import run, tested
from tocsin.kernels.model import Bag, Matches
from tocsin.testing.strategies import Streams

SECOND = 1_000_000
SKIPS = ("", "", "PAST LAST", "TO NEXT", "TO FIRST {}", "TO LAST {}")
OUTPUTS = ("", "", "first", "last", "longest", "first PER END", "last PER END")


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, Streams]:
    """A pattern of nested groups and alternatives with policies, and a stream of the types it names."""
    choose = draw(st.randoms(use_true_random=False))
    names: list[str] = []

    def event(quantifiers: tuple[str, ...]) -> str:
        names.append(f"v{len(names)}")
        return f"{choose.choice('AAB')}{choose.choice(quantifiers)} {names[-1]}"

    def shared(depth: int) -> str:
        """Branches with names in common: an element in one, a variable by itself in the other."""
        one, other, third = element(depth - 1), event(("",)), event(("",))
        return f"OR(SEQ({one}, OR({other}, {third})), SEQ({one}, {other}), SEQ({one}, {third}))"

    def element(depth: int) -> str:
        kind = choose.random()
        if depth == 0 or len(names) > 3 or kind < 0.25:
            return event(("", "", "", "+", "?", "*", "{2}", "{1,2}"))
        quantifier = choose.choice(["", "+", "{2}", "{1,2}", "?"])
        if kind < 0.5:
            return f"OR({event(('',))}, {event(('',))}){quantifier}"
        if kind < 0.55:
            return shared(depth)
        operator = "OR" if kind < 0.65 else "SEQ"
        return f"{operator}({element(depth - 1)}, {element(depth - 1)}){quantifier}"

    pattern = element(3)
    conditions = []
    for _ in range(choose.choice([0, 0, 1, 2])):
        one, other = choose.choice(names), choose.choice(names)
        conditions.append(choose.choice([f"{one}.x > 0", f"{one}.x <= {other}.x", f"SUM({one}.x) >= {other}.x"]))
    if choose.random() < 0.15:
        pattern = f"SEQ({pattern}, NOT C n, B last)"
        conditions += ["n.x > 0"] if choose.random() < 0.5 else []
    skip = choose.choice(SKIPS).format(choose.choice(names))
    clauses = [
        f"PATTERN {pattern}",
        f"WHERE {' AND '.join(conditions)}" if conditions else "",
        choose.choice(["", "", "PARTITION BY k"]),
        f"WITHIN {choose.choice([3, 5, 8])} SECONDS",
        f"SEMANTICS {choose.choice(['next', 'next', 'contiguous', 'partition-contiguous'])}",
        f"AFTER MATCH SKIP {skip}" if skip else "",
        f"OUTPUT {output}" if (output := choose.choice(OUTPUTS)) else "",
    ]
    text = " ".join(filter(None, clauses))
    if choose.random() < 0.75:
        drawn = seeded(compiled(text).query, choose.randrange(1 << 32), max_events=8, types="ABC")
        far = {"ts": 100 * SECOND, "k": "p", "x": 0, "v": 0.5}  # plain rows show their columns
        return text, {kind: some or [far] for kind, some in drawn.items()}
    rows: Streams = {name: [] for name in "ABC"}
    for kind in [*"ABC", *(choose.choice("AAAABBBC") for _ in range(choose.randint(3, 6)))]:
        ts = choose.randrange(9) * SECOND
        rows[kind].append({"ts": ts, "k": choose.choice("ppq"), "x": choose.choice([None, 0, 1, 2]), "v": 0.5})
    return text, rows


# Their any-match results are exponential in the number of events.
GROUPS = (
    "SEQ(OR(A a, B b)+, C c)",
    "SEQ(SEQ(A? a, B? b)+, C c)",
    "SEQ(OR(A a, B b)+, C c, A d)",
    "SEQ(A a, B b){3}",
    "SEQ(OR(A a, B b), OR(A c, B d)){3}",
    "SEQ(SEQ(A+ a)+, B b)",
)
# Under a contiguous policy nothing lies between neighbours, so that these absences hold.
GAPS = (
    "SEQ(A a, NOT C n, B b){3}",
    "SEQ(OR(SEQ(A a, NOT C n, B b), A d)+, NOT B m, C c)",
    "SEQ(A a, SEQ(B b, NOT A n, A d)+, C c)",
)
AFTER = ("AFTER MATCH SKIP PAST LAST", "AFTER MATCH SKIP TO NEXT")
# From each start `next` has a match for every number of copies.
PATTERNS = [
    *(f"PATTERN {group} WITHIN 1 DAY SEMANTICS contiguous {after}" for group in GROUPS for after in ("", *AFTER)),
    *(f"PATTERN {group} WITHIN 1 DAY SEMANTICS partition-contiguous" for group in GAPS),
    *(f"PATTERN {group} WITHIN 20 SECONDS SEMANTICS next" for group in GROUPS),
    *(f"PATTERN {group} WITHIN 1 DAY SEMANTICS next {after}" for group in GROUPS for after in AFTER),
]


def alternating(number: int) -> Streams:
    """A B A B … C, a second apart."""
    rows: Streams = {name: [] for name in "ABC"}
    for place in range(number):
        kind = "C" if place == number - 1 else "AB"[place % 2]
        rows[kind].append({"ts": place * SECOND, "k": "p", "x": place, "v": 0.5})
    return rows


def bound(matches: Matches) -> int:
    return sum(len(held.rows) if isinstance(held, Bag) else int((held >= 0).sum()) for held in matches.events.values())


# --- against the reference ------------------------------------------------------------------------


@given(cases(), st.sampled_from([None, 700_001, 3 * SECOND]))
@settings(deadline=None, max_examples=max(100, settings().max_examples))
def test_walks_along_links_find_what_the_reference_keeps(case: tuple[str, Streams], slice_us: int | None) -> None:
    text, rows = case
    pattern = compiled(text)
    made = kernel_of(text)
    wanted = expected(pattern.query, reference.evaluate(pattern, rows))
    width = None if slice_us is None or not made.can_slice else max(slice_us, made.ahead_us, made.back_us)
    assert found(made, rows, width) == wanted


@given(cases())
@settings(deadline=None, max_examples=20)
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")
def test_every_strategy_that_runs_a_query_of_groups_gives_the_reference(case: tuple[str, Streams]) -> None:
    text, rows = case
    pattern = tocsin.pattern(text)
    wanted = sorted(row["match_id"] for row in reference.evaluate(pattern, rows))
    given = {kind: some for kind, some in rows.items() if some}
    for strategy in ("auto", "kernel", "automaton"):
        try:
            matches = pattern.match(given, time="ts", engine="local", strategy=strategy)
        except errors.UnsupportedError:
            assert strategy == "automaton"
            continue
        assert sorted(row["match_id"] for row in matches.to_pylist()) == wanted


@given(
    st.text(st.sampled_from("AAABBBC"), max_size=9),
    st.sampled_from(
        [
            "SEQ(SEQ(A a, NOT C n, B b)+, C c)",
            "SEQ(SEQ(A a, NOT A n, B+ b){1,2}, NOT B m, C? c)",
            "SEQ(B? b, NOT A n, A a, NOT C m, B c)",
            "OR(SEQ(A a, NOT B n, B b), SEQ(B b, NOT C m, A+ a))",
            "AND(SEQ(A a, NOT C n, B b), C c)",
            "SEQ(AND(A a, B b), NOT C n, B+ c)",
        ]
    ),
    st.sampled_from(["", "WHERE n.x > a.x", "WHERE n.x > 0 AND a.x <= b.x"]),
    st.sampled_from(["contiguous", "partition-contiguous"]),
    st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=120)
def test_absences_between_neighbours_change_nothing(
    events: str, pattern: str, where: str, policy: str, choose: random.Random
) -> None:
    rows: Streams = {name: [] for name in "ABC"}
    for kind in events:
        row = {
            "ts": choose.randrange(9) * SECOND,
            "k": choose.choice("ppq"),
            "x": choose.choice([None, 0, 1, 2]),
            "v": 0.5,
        }
        rows[kind].append(row)
    clauses = f"{where} {choose.choice(['', 'PARTITION BY k'])} WITHIN 6 SECONDS SEMANTICS {policy}"
    query = compiled(f"PATTERN {pattern} {clauses}")
    assert found(kernel_of(query.text), rows) == expected(query.query, reference.evaluate(query, rows))


@pytest.mark.slow
@given(cases(), st.sampled_from([None, 700_001, 3 * SECOND]))
@settings(deadline=None, max_examples=3000)
def test_walks_along_links_find_what_the_reference_keeps_in_many_more(
    case: tuple[str, Streams], slice_us: int | None
) -> None:
    test_walks_along_links_find_what_the_reference_keeps.hypothesis.inner_test(case, slice_us)  # type: ignore[attr-defined]


@pytest.mark.compiled
@pytest.mark.parametrize("text", [text for text in PATTERNS if GROUPS[0] in text and "TO NEXT" not in text])
def test_compiled_and_plain_walks_find_the_same(text: str) -> None:
    made = kernel_of(text)
    assert found(made, alternating(60), jit=True) == found(made, alternating(60), jit=False)


# --- the cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", PATTERNS)
def test_the_work_grows_with_events_and_matches_and_not_with_combinations(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of a walk looks at one link: there are at most 12 for each event, and for each event of a match."""
    steps: Counter[str] = Counter()
    plain = compile.plain

    def counting(function: str) -> Any:
        def call(*given: Any) -> Any:
            returned = plain(function)(*given)
            steps["all"] += returned[3]
            return returned

        return call

    monkeypatch.setattr(run.compile, "plain", counting)
    number = 300
    made = kernel_of(text)
    rows, _ = rows_of(made, alternating(number), None)
    walker, words = run.Walker.matches, []

    def spied(self: run.Walker, rows: Any) -> Iterator[Matches]:
        for matches in walker(self, rows):
            words.append(bound(matches))
            yield matches

    monkeypatch.setattr(run.Walker, "matches", spied)
    kept = sum(len(matches) for matches in made.find(rows, jit=False))
    assert steps["all"] <= 12 * (number + sum(words))
    assert kept > 0 or "A d" in text


@pytest.mark.parametrize("policy", [*AFTER, "OUTPUT first"])
@pytest.mark.parametrize(
    "pattern",
    [
        "SEQ(SEQ(A a, B b)+, C c) WHERE a[i].x <= b[i].x",
        "SEQ(OR(A a, B b)+, C c) WHERE a.x <= c.x AND b.x <= c.x",
        "SEQ(SEQ(A a, OR(B b, C c))+, C d) WHERE COUNT(a) <= d.x",
    ],
)
def test_conditions_are_tried_up_to_the_first_match_where_no_other_can_be_kept(
    pattern: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are quadratically many matches, and each of them is as long as the stream."""
    tried: Counter[str] = Counter()
    taken = tested.TestedWalk._taken

    def counting(self: tested.TestedWalk, moves: Any, place: int) -> list[tuple[int, int]]:
        tried["all"] += 1
        return taken(self, moves, place)

    monkeypatch.setattr(tested.TestedWalk, "_taken", counting)
    number = 150
    rows: Streams = {name: [] for name in "ABC"}
    for place in range(number):
        rows["ABC"[place % 3]].append({"ts": place * SECOND, "k": "p", "x": place, "v": 0.5})
    assert len(found(kernel_of(f"PATTERN {pattern} WITHIN 1 DAY SEMANTICS next {policy}"), rows)) >= number // 3
    assert tried["all"] <= 12 * number


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")
@pytest.mark.parametrize("text", [text for text in PATTERNS if "PAST" in text and "A d" not in text])
def test_a_thousand_events_are_searched(text: str) -> None:
    rows = {kind: some for kind, some in alternating(1000).items() if some}
    assert len(tocsin.pattern(text).match(rows, time="ts", engine="local")) > 0


def test_a_start_with_too_many_matches_is_not_told_to_use_the_policy_it_has() -> None:
    text = "PATTERN SEQ(OR(A a, A b)+, C c) WITHIN 1 DAY SEMANTICS next"
    rows: Streams = {"A": [{"ts": place * SECOND, "k": "p", "x": 1, "v": 0.5} for place in range(12)], "B": []}
    rows["C"] = [{"ts": 100 * SECOND, "k": "p", "x": 1, "v": 0.5}]
    with pytest.raises(errors.TooManyMatchesError) as caught:
        found(kernel_of(text), rows, most=1000)
    assert "next" not in caught.value.hint


# --- corners --------------------------------------------------------------------------------------


def test_a_variable_of_several_elements_beside_a_conjunction_is_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        text = "PATTERN OR(SEQ(A a, OR(B b, C c)), AND(A a, C c)) WITHIN 10 SECONDS SEMANTICS next"
        with pytest.raises(errors.UnsupportedError, match="`c` is an alternative"):
            kernel_of(text)
