"""`max_matches_per_start` counts matches, not ways to reach them or partial matches; effort has its own error (R43)."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.candidates import TooManyCandidatesError, few_candidates
from tests.engines.test_acel import acel, tables_of
from tests.engines.test_equals_reference import compiled
from tests.fitting import drawn_for, meaning, queries_with_streams
from tests.kernels.test_links import cases as groups

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.engines.local import match as local
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.acel import ast as acel_ast
from tocsin.language.acel import print_query
from tocsin.options import Options
from tocsin.plan.strategies import AGGREGATE, AUTOMATON
from tocsin.reference.stream import ingest, partitions
from tocsin.testing import formulas
from tocsin.testing.strategies import EVERYTHING, TIMEOUTS, Streams
from tocsin.testing.streams import SEEDS, TYPES

QUERIES = st.one_of(queries_with_streams(features, max_events=8) for features in (EVERYTHING, TIMEOUTS))


def seconds(number: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"ts": (first + second) * 1_000_000} for second in range(number)]


def sequence(size: int) -> str:
    return f"PATTERN SEQ({', '.join(f'A v{number}' for number in range(size))})"


# --- random queries with random limits ------------------------------------------------------------


def most_of_a_start(query: alg.Query, rows: Streams) -> int:
    """How many matches the reference finds from one event on, at most."""
    counts: Counter[tuple[int, int]] = Counter()
    for number, events in enumerate(partitions(ingest(rows, time="ts", tie=[], type_column="type"), query.partition)):
        for match in reference._matches(query, events):
            assert match.first is not None
            counts[number, match.first.local] += 1
    return max(counts.values(), default=0)


def untied(rows: Streams) -> Streams:
    """The same events at times of their own: which of tied events comes first in an AND nothing decides."""
    number = iter(range(1000))
    return {
        name: [row | {"ts": None if row["ts"] is None else row["ts"] + 7 * next(number)} for row in some]
        for name, some in rows.items()
    }


def strategies_for(query: alg.Query) -> Iterator[str]:
    yield "auto"
    yield from ["automaton"] * (AUTOMATON.refuses(query) is None)
    yield from ["aggregate"] * (AGGREGATE.refuses(query) is None)


def check(pattern: tocsin.Pattern, rows: Streams, limit: int, counted: Counter[str]) -> None:
    """Every engine refuses exactly the limits that the reference exceeds."""
    query = pattern.query
    if any(isinstance(node, alg.All) for node in query.pattern.walk()):
        rows = untied(rows)
    try:
        with few_candidates():
            most = most_of_a_start(query, rows)
    except TooManyCandidatesError:
        assume(False)
    assume(most > 0)
    limit = max(most + limit, 1)
    for strategy in strategies_for(query):
        try:
            local.match(query, tables_of(rows), Options(strategy=strategy, max_matches_per_start=limit))
            is_refused = False
        except errors.TooManyMatchesError:
            is_refused = True
        except (errors.ContradictoryDistancesError, errors.TypeMismatchError, errors.UnsupportedError):
            assume(False)
        assert is_refused == (most > limit), f"{strategy}: {most} matches from one start, {limit} are allowed"
        counted[f"{strategy} {'refused' if is_refused else 'answered'}"] += 1


@st.composite
def ambiguous(draw: st.DrawFn) -> acel_ast.Query:
    """Formulas with more ways than matches: copies of words that begin alike, with events that two branches make.

    Or with events that are compared and not kept, by a text, so that nothing is compiled.
    """
    kinds = st.sampled_from((acel_ast.Sequence, acel_ast.Adjacent))
    compares_texts = draw(st.booleans())

    def word(size: int, name: str | None) -> acel_ast.Formula:
        events = [acel_ast.Event("A")] * size
        found = acel_ast.joined(draw(kinds), *events) if len(events) > 1 else events[0]
        if compares_texts and draw(st.booleans()):
            made = acel_ast.Derive(found, "Y", (acel_ast.Fold("m", "max", "A", ("k",), False),))
            is_least = ex.Comparison(">=", ex.Attribute("Y", ("m",)), ex.Literal("p"))
            return acel_ast.Project(acel_ast.Filter(made, ex.Every("Y", is_least)), (acel_ast.Kept("A"),))
        return found if name is None else acel_ast.Derive(found, name, (acel_ast.Fold("n", "count", "A", (), False),))

    sizes = st.integers(1, 3)
    names = st.none() if compares_texts else st.sampled_from((None, None, "Y", "Y", "Z"))
    words = [word(draw(sizes), draw(names)) for _ in range(draw(st.integers(1, 2)))]
    same = draw(st.integers(2, 3)), draw(names)
    words += [word(*same), word(*same)]  # neighbours follow each other too: two ways to one match
    copied = draw(st.sampled_from((acel_ast.Repeat, acel_ast.RepeatAdjacent)))(acel_ast.joined(acel_ast.Any, *words))
    return acel_ast.Query(draw(st.sampled_from((copied, acel_ast.joined(draw(kinds), copied, acel_ast.Event("B"))))))


def branches(seed: int) -> tuple[str, Streams]:
    """A choice between parts, of which one may be empty but for an absence, and a stream in which several go on.

    Or events in any order, of which the earlier begins a match and not the first that is written.
    """
    choose = Random(seed)
    rows = {"A": seconds(choose.choice((1, 2, 3))), "B": seconds(choose.randint(2, 4), 3), "C": seconds(1, 9)}
    several = choose.choice(("OR(B b, SEQ(NOT C n, B* d))", "OR(A b, SEQ(NOT C n, A* d), SEQ(NOT C m, B? e))", None))
    if several is None:
        return f"PATTERN {choose.choice(('AND(A a, B b)', 'AND(B b, A a)'))} WITHIN 8 SECONDS", rows
    return f"PATTERN SEQ(A a, {several}, B c) WITHIN 8 SECONDS", rows


def run(examples: int, max_depth: int) -> Counter[str]:
    counted: Counter[str] = Counter()
    limits = st.integers(-3, 2)  # from what the reference finds on

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(case=QUERIES, limit=limits)
    def patterns(case: tuple[ast.Query, list[Streams]], limit: int) -> None:
        query, (rows,) = case
        check(compiled(query), rows, limit, counted)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(**drawn_for(formulas.queries(max_depth=max_depth), meaning, max_events=6), limit=limits)
    def of_acel(query: Any, rows: Streams, limit: int) -> None:
        check(acel(print_query(query)), rows, limit, counted)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(**drawn_for(ambiguous(), meaning, max_events=6), limit=st.sampled_from((0, 0, 0, -1, 1)))
    def of_ambiguous(query: Any, rows: Streams, limit: int) -> None:
        check(acel(print_query(query)), rows, limit, counted)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(case=st.one_of(SEEDS.map(branches), groups()), limit=st.sampled_from((0, 0, -1, -1, 1)))
    def of_groups(case: tuple[str, Streams], limit: int) -> None:
        text, rows = case
        check(compiled(text), {kind: rows.get(kind, []) for kind in TYPES}, limit, counted)

    patterns()
    of_acel()
    of_ambiguous()
    of_groups()
    return counted


@pytest.mark.long
def test_engines_refuse_exactly_when_one_start_has_more_matches_than_allowed() -> None:
    counted = run(50, max_depth=3)
    assert all(counted[f"{name} {what}"] for name in ("auto", "automaton") for what in ("refused", "answered")), counted


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_they_do_so_in_thousands_of_cases() -> None:
    run(3_000, max_depth=4)


# --- few matches, many ways -----------------------------------------------------------------------


def test_a_formula_with_few_matches_and_many_ways_is_searched() -> None:
    pattern = acel("((A : A : A) OR A)@+ : B")
    rows = {"A": seconds(34), "B": seconds(1, 34)}
    assert pattern.match(rows, engine="local").num_rows == 34
    with pytest.raises(errors.TooManyMatchesError):
        acel("A@+ ; B").match({"A": seconds(3), "B": seconds(2, 3)}, engine="local", max_matches_per_start=5)


@pytest.mark.parametrize("strategy", ["auto", "automaton"])
@pytest.mark.parametrize(("events", "matches"), [(23, 0), (24, 1), (25, 25)])
def test_a_long_sequence_with_few_matches_is_searched(strategy: str, events: int, matches: int) -> None:
    found = tocsin.pattern(sequence(24)).match({"A": seconds(events)}, engine="local", strategy=strategy)
    assert found.num_rows == matches
    assert len(set(found["match_id"].to_pylist())) == matches


def test_a_long_sequence_has_at_most_as_many_matches_as_the_limit_says() -> None:
    pattern, rows = tocsin.pattern(sequence(24)), {"A": seconds(26)}
    assert pattern.match(rows, engine="local", max_matches_per_start=300).num_rows == 325
    with pytest.raises(errors.TooManyMatchesError):
        pattern.match(rows, engine="local", max_matches_per_start=299)


def test_a_long_sequence_has_conditions_absences_and_other_parts() -> None:
    """In a sequence with more events than loops can nest, runs of events are one loop, beside other parts."""
    parts = [f"A v{number}" for number in range(14)]
    listed = ", ".join([*parts[:7], "B+ b", "NOT C c", *parts[7:]])
    text = f"PATTERN SEQ({listed}) WHERE v1.x = v0.x + 1 AND v13.x > v8.x WITHIN 20 SECONDS"
    rows: Streams = {name: [] for name in "ABC"}
    for second in range(17):
        kind = "B" if second in (7, 8) else "A"
        rows[kind].append({"ts": second * 1_000_000, "k": "p", "x": second, "v": 1.0})
    rows["C"] = [{"ts": 7_500_000, "k": "p", "x": 1, "v": 1.0}]
    pattern = compiled(text)
    expected = reference.evaluate(pattern.query, rows)
    assert len(expected) == 16
    found = local.match(pattern.query, tables_of(rows)).to_pylist()
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)


def test_partial_matches_that_lead_nowhere_have_an_error_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.kernels.matches.MOST_STEPS", 10_000)
    pattern = tocsin.pattern("PATTERN SEQ(A+ a, A+ b) WHERE SUM(a.ts) < 0")
    with pytest.raises(errors.TooMuchSearchError, match=r"`a`, `b` was not searched to its end in 10,000 steps"):
        pattern.match({"A": seconds(40)}, engine="local", max_matches_per_start=100)


# --- memory ---------------------------------------------------------------------------------------

PROBE = """
import resource, sys
import tocsin
number, policy, memory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
rows = [{"ts": second * 1_000_000, "k": 1} for second in range(number)]
inputs = {"A": [row for row in rows if row["ts"] % 10_000_000], "B": rows[::10]}
pattern = tocsin.pattern(f"PATTERN SEQ(A+ a, B b) PARTITION BY k WITHIN 1 HOUR {policy} RETURN COUNT(a)")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(pattern.match(inputs, engine="local", max_task_memory=memory).num_rows)
except tocsin.errors.TocsinError as problem:
    print(problem.condition)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def probed(number: int, policy: str, memory: str) -> tuple[str, int]:
    """What a search says, and how many MB more it takes than its process did before."""
    command = [sys.executable, "-c", PROBE, str(number), policy, memory]
    said, megabytes = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    return said, int(megabytes)


@pytest.mark.timeout(300)
def test_too_many_matches_are_counted_before_they_take_memory() -> None:
    said, megabytes = probed(3_000, "", "512MB")
    assert said == "TOO_MANY_MATCHES"
    assert megabytes < 300  # most of it is the compiler


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_task_stops_at_the_memory_that_it_may_use() -> None:
    said, megabytes = probed(2_500, "SEMANTICS next", "32MB")
    assert said == "TOO_MUCH_MEMORY"
    assert megabytes < 400


PROBE_OF_RULES = """
import resource
import tocsin
program = tocsin.rules('''
    template A { x : Integer }  template B { x : Integer }
    rule R where a : A+ b : B when a in b [-1 hour, 0 s]
''')
inputs = {"A": [{"ts": at, "x": 1} for at in range(100)], "B": [{"ts": 100 + at, "x": 1} for at in range(3)]}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    program.match(inputs, engine="local", time_unit="s")
except tocsin.errors.TocsinError as problem:
    print(problem.condition)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_matches_of_an_unfinished_start_are_compared_some_at_a_time() -> None:
    """Numbering all of their events at once took 1.5 GB, three times what the task may use."""
    command = [sys.executable, "-c", PROBE_OF_RULES]
    said, megabytes = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert said == "TOO_MANY_MATCHES"
    assert int(megabytes) < 600


@pytest.mark.parametrize("strategy", ["auto", pytest.param("automaton", marks=pytest.mark.long), "aggregate"])
def test_the_limit_on_memory_can_be_moved(strategy: str) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A+ a, A b) WITHIN 1 HOUR")
    options: dict[str, Any] = {"engine": "local", "strategy": strategy}
    with pytest.raises(errors.TooMuchMemoryError, match=r"more than the 100 kB that it may hold"):
        pattern.match({"A": seconds(13)}, **options, max_task_memory="100 kB")
    assert pattern.match({"A": seconds(13)}, **options, max_task_memory="10MB").num_rows == 2**13 - 14


def test_what_policies_compare_has_the_same_limit() -> None:
    pattern = tocsin.pattern("PATTERN A+ a WHERE SUM(a.ts) >= 0 WITHIN 1 HOUR OUTPUT longest")
    with pytest.raises(errors.TooMuchMemoryError):
        pattern.match({"A": seconds(30)}, engine="local", max_task_memory="5MB")
    found = pattern.match({"A": seconds(12)}, engine="local", max_task_memory="5MB", max_matches_per_start=1)
    assert found.num_rows == 12
