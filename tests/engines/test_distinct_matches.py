"""Different matches have different ids and equal ones are one match, on every engine and in every order of OR."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.fitting import cases, drawn_for
from tests.streaming.support import Live

import tocsin
from tocsin import errors, reference
from tocsin.engines.local import match as local
from tocsin.language import ast as sase
from tocsin.language.acel import ast, print_query
from tocsin.language.ast import Window
from tocsin.options import Options
from tocsin.plan.strategies import refusals
from tocsin.testing import formulas
from tocsin.testing.strategies import LANGUAGE
from tocsin.testing.streams import SECOND, SEEDS, TYPES, Streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})
NUMBERED = SCHEMA.append(pa.field("row", pa.int64()))
Row = dict[str, Any]


def compiled(query: str | sase.Query, language: str = "acel") -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query, language=language)


def plain(value: Any) -> Any:
    """A value without what is NULL: events have the attributes of all kinds that their variable holds, or their own."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in sorted(value.items()) if inner is not None}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return float(value) if isinstance(value, int) else value  # a column has one type of numbers


def told(rows: list[Any]) -> list[tuple[str, str]]:
    """The id of each match and what it shows; no id twice."""
    found = sorted(
        (row["match_id"], repr(plain({**row, "match_id": None, "start": row["start"], "end": row["end"]})))
        for row in rows
    )
    assert len({id for id, _ in found}) == len(found)
    return found


def expected_of(pattern: tocsin.Pattern, rows: Streams) -> list[tuple[str, str]]:
    return told([{**row, "match_id": row["match_id"], "start": row["start"], "end": row["end"]}
                 for row in reference.evaluate(pattern.query, rows)])  # fmt: skip


# --- queries --------------------------------------------------------------------------------------


@st.composite
def with_made_events(draw: st.DrawFn) -> ast.Formula:
    """OR of formulas that make events of few names and values, some of them equal, and what is made of these."""

    def pick(options: Any) -> Any:
        return draw(st.sampled_from(options))

    def made(part: ast.Formula) -> ast.Formula:
        held = formulas.held_by(part)
        match pick(("derive", "derive", "again", "again", "bind", "project", "trim")):
            case "again" if isinstance(part, ast.Derive):  # an equal event of another variable
                return replace(part, part=part, variable=pick("XYV"))
            case "derive" | "again":
                name = pick(sorted(held))
                known = sorted(one for one, kind in formulas.attributes(name, held).items() if kind.is_number)
                function = pick(("count", "sum", "first", "last", "max")) if known else "count"
                path = () if function == "count" else (pick(known),)
                return ast.Derive(part, pick("XYA"), (ast.Fold(pick("nx"), function, name, path, False),))
            case "bind":
                return ast.Bind(part, pick("XYA"))
            case "project":
                names = draw(st.lists(st.sampled_from(sorted(held)), min_size=1, max_size=2, unique=True))
                return ast.Project(part, tuple(ast.Kept(name, None) for name in names))
        name = pick(sorted(held))
        known = sorted(formulas.attributes(name, held))
        return ast.Project(part, (ast.Kept(name, (pick(known),)),)) if known else part

    def branch() -> ast.Formula:
        part: ast.Formula = pick((ast.Event("A"), ast.Event("A"), ast.RepeatAdjacent(ast.Event("A")), TWO, NEXT))
        for _ in range(pick((0, 1, 2, 3))):
            part = made(part)
        return part

    parts = [branch() for _ in range(pick((2, 2, 3)))]
    parts[-1] = pick((parts[-1], twin(parts[0], pick)))
    found = ast.joined(pick((ast.Any, ast.Any, ast.Any, ast.Sequence)), *parts)
    for _ in range(pick((0, 0, 1, 2))):
        found = made(found)
    if pick((True, True, False)):
        found = ast.Bind(found, "W")
        found = ast.Derive(found, "Z", (ast.Fold("c", "count", "W", (), False),)) if pick((True, False)) else found
    return found


def twin(formula: ast.Formula, pick: Any) -> ast.Formula:
    """A formula that makes the same events of one event, by other aggregates."""
    match formula:
        case ast.Derive():
            folds = tuple(
                fold if fold.function == "count" else replace(fold, function=pick(("sum", "first", "last", "max")))
                for fold in formula.folds
            )
            return replace(formula, part=twin(formula.part, pick), folds=folds)
        case ast.Bind() | ast.Project():
            return replace(formula, part=twin(formula.part, pick))
    return formula


TWO = ast.Sequence((ast.Event("A"), ast.Event("B")))
NEXT = ast.NextOf("A")


def turned(formula: ast.Formula) -> ast.Formula:
    """The formula with the parts of every OR in the opposite order."""
    match formula:
        case ast.Any():
            return replace(formula, parts=tuple(map(turned, reversed(formula.parts))))
        case ast.Sequence():
            return replace(formula, parts=tuple(map(turned, formula.parts)))
        case ast.Bind() | ast.Derive() | ast.Project():
            return replace(formula, part=turned(formula.part))
    return formula


def tables_of(rows: Streams) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(rows.get(name, []), schema=SCHEMA) for name in TYPES}


def query_of(formula: ast.Formula, key: str | None) -> str:
    keys = () if key is None else (sase.Key(key),)
    return print_query(ast.Query(formula, partition_by=keys, within=Window(4 * SECOND)))


def ids_on(engine: str, pattern: tocsin.Pattern, rows: Streams) -> list[str]:
    if engine != "stream":
        return [id for id, _ in told(local.match(pattern.query, tables_of(rows), Options(strategy=engine)).to_pylist())]
    live = Live(pattern, tables_of(rows), lateness_us=0, eager=True)
    for row in sorted(range(len(live.ts)), key=lambda row: int(live.ts[row])):
        live.take([row])
    live.end()
    return sorted(live.ids)


def check_events_that_are_made(formula: ast.Formula, rows: Streams, key: str | None, engines: Sequence[str]) -> None:
    pattern, other = compiled(query_of(formula, key)), compiled(query_of(turned(formula), key))
    expected = expected_of(pattern, rows)
    assert expected_of(other, rows) == expected
    try:
        assert told(local.match(other.query, tables_of(rows)).to_pylist()) == expected
    except errors.TypeMismatchError:
        assume(False)  # a variable of events that have an attribute in common, but not its type
    for engine in engines:
        assert ids_on(engine, pattern, rows) == [id for id, _ in expected]
    # With an `id` column no two events are equal, and no match needs a number.
    numbered = {
        name: [{**row, "row": 10 * place + number} for place, row in enumerate(rows.get(name, []))]
        for number, name in enumerate(TYPES)
    }
    tables = {name: pa.Table.from_pylist(events, schema=NUMBERED) for name, events in numbered.items()}
    found = local.match(pattern.query, tables, Options(id="row")).to_pylist()
    assert len(told(found)) == len(reference.evaluate(pattern.query, numbered))


ENGINES = ("automaton", "aggregate", "stream")
FEW = {
    **drawn_for(
        with_made_events(),
        lambda formula: compiled(query_of(formula, None)).query,
        max_events=4,
        named=("formula", "rows"),
    ),
    "key": st.sampled_from([None, None, "k"]),
}


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(engine=st.sampled_from(ENGINES), **FEW)
def test_events_that_are_made_tell_matches_apart_by_value(
    formula: ast.Formula, rows: Streams, key: str | None, engine: str
) -> None:
    check_events_that_are_made(formula, rows, key, [engine])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=2000, suppress_health_check=list(HealthCheck), deadline=None)
@given(**FEW)
def test_events_that_are_made_tell_matches_apart_on_all_engines(
    formula: ast.Formula, rows: Streams, key: str | None
) -> None:
    check_events_that_are_made(formula, rows, key, ENGINES)


@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(**cases(LANGUAGE, max_events=7))
def test_matches_of_sase_have_ids_of_their_own_on_every_engine(query: sase.Query, rows: Streams) -> None:
    pattern = compiled(query, "sase")
    assume(not pattern.query.over_all_matches)
    expected = sorted(row["match_id"] for row in reference.evaluate(pattern.query, rows))
    assert len(set(expected)) == len(expected)
    refused = refusals(pattern.query)
    for strategy in ("kernel", "automaton", "aggregate"):
        if refused[strategy] is None:
            found = local.match(pattern.query, tables_of(rows), Options(strategy=strategy)).to_pylist()
            assert sorted(row["match_id"] for row in found) == expected


ALIKE = (
    *("A ; B", "A+ ; B", "A AS X OR A AS Y", "A AS X OR B AS X", "(A AS X ; B) OR (A ; B AS X)", "NEXT(B)"),
    *("PROJECT[B](A ; B)", "PROJECT[A](A ; B)", "PROJECT[B(x)](A ; B)", "PROJECT[X](A AS X ; A)", "PROJECT[A(v)](A)"),
    *("AGG Y[n <- count(A)](A)", "PROJECT[Y](AGG Y[n <- sum(A.x)](A ; B))", "AGG Y[n <- max(A.x)](A) ; B"),
)
# Those of SASE+ are emitted on streams with their last event, equal ones in different steps.
ALIKE_IN_SASE = ("SEQ(A a, B b)", "SEQ(A a, B+ b)", "OR(A a, B b)", "AND(A a, B b)", "OR(A a, A b)")


def alike(seed: int) -> tuple[tocsin.Pattern, Streams, str]:
    """A pattern that shows, makes or hides events, a stream of few events most of which are equal, and an engine."""
    choose = Random(seed)
    rows: Streams = {name: [] for name in TYPES}
    for _ in range(choose.randint(2, 5)):
        rows[choose.choice("AAB")].append(
            {"ts": choose.choice((1, 2)) * SECOND, "k": "p", "x": choose.choice((1, 1, 2)), "v": 0.5}
        )
    if choose.random() < 0.3:
        pattern = compiled(f"PATTERN {choose.choice(ALIKE_IN_SASE)} WITHIN 4 SECONDS", "sase")
        return pattern, rows, choose.choice(("auto", "stream", "stream"))
    return compiled(f"{choose.choice(ALIKE)} WITHIN 4 SECONDS"), rows, choose.choice(("auto", *ENGINES))


@settings(max_examples=400, deadline=None)
@given(case=SEEDS.map(alike))
def test_equal_events_make_matches_with_ids_of_their_own(case: tuple[tocsin.Pattern, Streams, str]) -> None:
    pattern, rows, engine = case
    assert ids_on(engine, pattern, rows) == [id for id, _ in expected_of(pattern, rows)]


# --- by hand --------------------------------------------------------------------------------------

SWAPPED = "(AGG Y[n <- count(A)](A) ; B) OR (A ; AGG Y[n <- count(B)](B))"
COPIES = "(AGG Y[n <- count(A)](A) ; A+)@+"


@pytest.mark.parametrize(
    ("text", "rows", "number"),
    [
        (SWAPPED, {"A": [{"ts": 1, "row": 1}], "B": [{"ts": 2, "row": 2}]}, 2),
        (SWAPPED, {"A": [{"ts": 1, "row": 1}], "B": [{"ts": 1, "row": 2}]}, 2),
        (COPIES, {"A": [{"ts": at, "row": at} for at in range(7)]}, 200),
        (COPIES, {"A": [{"ts": 1, "row": at} for at in range(5)]}, 32),
        ("PROJECT[B](A ; B)", {"A": [{"ts": 1, "row": at} for at in (1, 2)], "B": [{"ts": 2, "row": 3}]}, 2),
        ("NEXT(B)", {"A": [{"ts": 1, "row": at} for at in (1, 2)], "B": [{"ts": 2, "row": 3}]}, 3),
    ],
)
def test_ids_differ_with_the_events_that_a_match_was_made_at(text: str, rows: Streams, number: int) -> None:
    pattern = compiled(text)
    expected = expected_of(pattern, rows)
    assert len(expected) == number
    assert told(pattern.match(rows, engine="local").to_pylist()) == expected
    assert len(told(pattern.match(rows, engine="local", id="row").to_pylist())) == number


ONE, BOTH = "AGG Y[n <- count(A)](A) AS X", "AGG X[n <- count(A)](AGG Y[n <- count(A)](A AS X))"


@pytest.mark.parametrize(
    ("text", "held"),
    [
        # X holds A and the event that Y holds, or an equal one of its own: one match.
        (f"(({ONE}) OR ({BOTH})) AS W", [2]),
        (f"(({BOTH}) OR ({ONE})) AS W", [2]),
        # Two equal events in one variable are two.
        ("AGG Y[n <- count(A)](AGG Y[n <- count(A)](A)) AS W", [3]),
        # What two projections leave of one event is one, and no derived event of the same values.
        ("PROJECT[A(x), Y(x)](A AS Y) AS W", [1]),
        ("PROJECT[A(x), Y(x)](AGG Y[x <- max(A.x)](A)) AS W", [2]),
        ("(PROJECT[Y(x), A(x)](A AS Y) OR PROJECT[Y, A(x)](AGG Y[x <- max(A.x)](A))) AS W", [1, 2]),
    ],
)
def test_equal_events_that_were_made_are_one_event_of_a_name(text: str, held: list[int]) -> None:
    pattern = compiled(f"{text} RETURN COUNT(W) AS held")
    rows = {"A": [{"ts": 1, "x": 5}]}
    found = pattern.match(rows, engine="local").to_pylist()
    expected = reference.evaluate(pattern.query, rows)
    assert sorted(row["held"] for row in found) == sorted(row["held"] for row in expected) == held


def test_events_of_one_position_are_in_the_order_of_their_values() -> None:
    """Whatever made them first: else the two branches would differ in what is first."""
    small, large = "AGG Y[n <- count(A)]", "AGG Y[n <- sum(A.x)]"
    rows = {"A": [{"ts": 1, "x": 5}]}
    for branches in (f"{small}({large}(A)) OR {large}({small}(A))", f"{large}({small}(A)) OR {small}({large}(A))"):
        pattern = compiled(f"AGG Z[f <- first(Y.n), all <- collect(Y.n)]({branches}) RETURN Z.f, Z.all, Y[last].n AS l")
        (found,) = pattern.match(rows, engine="local").to_pylist()
        assert [found] == told_values(reference.evaluate(pattern.query, rows), found)
        assert (found["f"], found["all"], found["l"]) == (1, [1, 5], 5)


def told_values(rows: list[Any], like: Row) -> list[Row]:
    return [{name: row[name] for name in like} for row in rows]


DOUBLES = st.floats(-1e100, 1e100, allow_subnormal=False) | st.sampled_from([0.1, 0.2, 0.3, 1e16, -1e16, 1.0])


@settings(max_examples=60, deadline=None)
@given(values=st.lists(DOUBLES, min_size=3, max_size=5))
def test_a_standard_deviation_has_the_same_digits_everywhere(values: list[float]) -> None:
    rows = {"A": [{"ts": at, "x": at, "v": value} for at, value in enumerate(values)], "B": [{"ts": 9}]}
    made = compiled("AGG Y[s <- stddev(A.v), n <- stddev(A.x)](A : A : A@+)")
    assert told(local.match(made.query, rows).to_pylist()) == expected_of(made, rows)
    text = "PATTERN SEQ(A{3,} a, B b) SEMANTICS contiguous RETURN STDDEV(a.v) AS s, STDDEV(a.x) AS n"
    shown = compiled(text, "sase")
    assert told(local.match(shown.query, rows).to_pylist()) == expected_of(shown, rows)


def test_a_standard_deviation_has_the_same_digits_on_spark(spark: SparkSession) -> None:
    values = [0.1, 0.7, 1e-3, 12.34, 0.30000000000000004, 1e6 / 7]
    rows = {"A": [{"ts": at, "v": value} for at, value in enumerate(values)]}
    with light_settings(spark, partitions=2) as session:
        frames = {"A": session.createDataFrame(list(enumerate(values)), "ts bigint, v double")}
        for text, language in (
            ("AGG Y[s <- stddev(A.v)](A : A : A) WITHIN 9 US RETURN Y.s", "acel"),
            ("PATTERN A{3,} a WITHIN 9 US RETURN STDDEV(a.v) AS s", "sase"),
        ):
            pattern = compiled(text, language)
            found = sorted((row.match_id, row.s) for row in pattern.match(frames).collect())
            assert found == sorted((row["match_id"], row["s"]) for row in reference.evaluate(pattern.query, rows))


def test_spark_tells_matches_apart_too(spark: SparkSession) -> None:
    rows = {
        name: [{"ts": at // 2, "x": at % 3, "k": at % 2, "row": 10 * at + number} for at in range(6)]
        for number, name in enumerate("ABC")
    }
    texts = (
        f"{SWAPPED} WITHIN 3 US",
        "PROJECT[Y](AGG Y[n <- count(A)](A ; B)) PARTITION BY k WITHIN 3 US",
        "PROJECT[B(x)](NEXT(B)) WITHIN 2 US",
        f"(({ONE}) OR ({BOTH})) AS W",
    )
    with light_settings(spark, partitions=2) as session:
        columns = "ts bigint, x bigint, k bigint, row bigint"
        frames = {name: session.createDataFrame([tuple(row.values()) for row in group], columns)
                  for name, group in rows.items()}  # fmt: skip
        for text in texts:
            pattern = compiled(text)
            for id in (None, "row"):
                found = [row.match_id for row in pattern.match(frames, id=id).select("match_id").collect()]
                here = local.match(pattern.query, rows, Options(id=id)).to_pylist()
                assert sorted(found) == sorted(row["match_id"] for row in here)
                assert len(set(found)) == len(found)
                if id is None:
                    assert sorted(found) == [id for id, _ in expected_of(pattern, rows)]
