"""Programs on the local engine: every case that it claims, random programs against the reference, the scenarios."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.rules.support import ABC, PUBLISHED, TYPES, compiled, rows, seconds, trace, with_streams
from tests.rules.test_cases import CASES
from tests.rules.test_cases import compiled as of_case
from tests.rules.test_properties import Drawn, drawn_rule, program_of
from tests.rules.test_properties import rules as with_rules
from tests.rules.test_scenarios import CORRECTED, A, B, ids, never_otherwise

import tocsin
from tocsin import errors
from tocsin.analysis.attributes import Schema
from tocsin.engines.local import match as local
from tocsin.engines.worker.arrow_types import types_in
from tocsin.optimizer.rules import Facts, optimize
from tocsin.plan.prepare import bounded
from tocsin.plan.program_plan import refusals
from tocsin.reference import evaluate, events
from tocsin.testing.cases import Case
from tocsin.testing.streams import Streams

RUN = [case for case in CASES if case.error is None]


def given_to(program: tocsin.Rules, rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The inputs with those that the program reads and the stream lacks."""
    sources = [name for name in program.program.read if name not in program.program.emitted]
    return {**{name: [] for name in sources}, **rows}


@pytest.mark.parametrize("case", RUN, ids=str)
def test_the_local_engine_gives_the_matches_and_events_of_the_case(case: Case) -> None:
    program = of_case(case)
    inputs = given_to(program, case.inputs())
    if case.matches is not None:
        rule = case.rule or program.program.rules[-1].name
        assert case.differences(program.matches(rule, inputs, tie=case.tie, engine="local").to_pylist()) == []
    emitted = {name: program.events(name, inputs, engine="local").to_pylist() for name in program.program.emitted}
    assert case.emit_differences(emitted) == []


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_every_case_is_claimed(engine: str) -> None:
    assert [case.name for case in RUN if refusals(of_case(case).program, engine)] == []


# --- random programs ------------------------------------------------------------------------------


def plain(row: dict[str, Any]) -> str:
    """A row without its id, whatever the order of its columns."""

    def ordered(value: Any) -> Any:
        if isinstance(value, list):
            return [ordered(each) for each in value]
        return sorted(value.items()) if isinstance(value, dict) else value

    return repr([(name, ordered(value)) for name, value in sorted(row.items()) if name != "match_id"])


def assert_as_the_reference(program: tocsin.Rules, stream: Streams) -> None:
    """Every rule has the matches of the reference, under the same ids, and every template its events."""
    expected = evaluate(program, stream)
    for name, wanted in expected.items():
        found = program.matches(name, tables_of(stream), engine="local").to_pylist()
        assert Counter(map(plain, found)) == Counter(map(plain, wanted)), name
        if all(read not in program.program.emitted for read in program.program.rule(name).reads):  # type: ignore[union-attr]
            assert {row["match_id"] for row in found} == {row.match_id for row in wanted}  # type: ignore[attr-defined]
    for name, made in events(program, stream).items():
        found = program.events(name, tables_of(stream), engine="local").to_pylist()
        assert Counter(map(plain, found)) == Counter(map(plain, made)), name


def tables_of(stream: Streams) -> dict[str, pa.Table]:
    fields = {"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()}
    return {
        name: pa.table({column: pa.array([row[column] for row in found], kind) for column, kind in fields.items()})
        for name, found in stream.items()
    }


@given(**with_rules(max_events=10))
def test_random_rules_have_the_matches_of_the_reference(rule: Drawn, stream: Streams) -> None:
    assert_as_the_reference(compiled(rule.text), stream)


def drawn_repetition(seed: int) -> str:
    """A random rule of which one variable repeats."""
    choose = Random(seed)
    rule = drawn_rule(choose.randrange(2**32))
    name = choose.choice(list(rule.positive))
    kind = rule.positive[name]
    text = rule.text.replace(f"{name} : {kind} {{", f"{name} : {kind}{choose.choice(('+', '[2]', '[1..2]'))} {{")
    policy = choose.choice(("", "", "", " select next", " select contiguous"))
    return text.replace(" then", f" {name} in {name} [0 s, 5 s]{policy} then")


def drawn_tied_repetition(seed: int) -> str:
    """A random rule of which one variable repeats, sometimes within one instant, where only ties order its events."""
    text = drawn_repetition(seed)
    return text.replace("[0 s, 5 s]", "[0 s, 0 s]") if seed % 3 == 0 else text


@given(**with_streams(drawn_repetition, max_events=8))
def test_random_repetitions_have_the_matches_of_the_reference(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)


@pytest.mark.long
def test_repetitions_are_ordered_by_tie_columns() -> None:
    counted: Counter[bool] = Counter()  # by whether ties decide on some match

    @settings(max_examples=40)
    @given(**with_streams(drawn_tied_repetition, max_events=8, tie="x"))
    def example(text: str, stream: Streams) -> None:
        program = compiled(text)
        (rule,) = program.program.rules
        untied, wanted = (
            sorted(row["match_id"] for row in evaluate(program, stream, tie=tie)[rule.name]) for tie in (None, "x")
        )
        counted[wanted != untied] += 1
        tables = tables_of(stream)
        for found in (program.match, lambda given, **options: program.matches(rule.name, given, **options)):
            assert sorted(found(tables, engine="local", tie="x")["match_id"].to_pylist()) == wanted

    example()
    assert counted[True] >= counted.total() / 4, counted


def test_a_repetition_of_emitted_events_with_ties_is_refused() -> None:
    program = compiled(
        """template A { x : Integer }  template E { x : Integer }
        rule R where a : A then emit E at a.timestamp with { x = a.x }
        rule S where e : E+ when e in e [0 s, 2 s]"""
    )
    stream = {"A": [{"ts": 1, "x": 2}, {"ts": 1, "x": 1}]}
    assert program.matches("R", stream, engine="local", tie="x").num_rows == 2
    for found in (program.match, lambda given, **options: program.matches("S", given, **options)):
        with pytest.raises(errors.UnsupportedError, match="A repetition on emitted events does not run with `tie=`"):
            found(stream, engine="local", tie="x")


def drawn_program(seed: int) -> str:
    """Two random rules, of which the first emits a C for the second to read, and one over what both emit."""
    choose = Random(seed)
    first, second = drawn_rule(choose.randrange(2**32)), drawn_rule(choose.randrange(2**32))
    texts = [
        text.split("\n")[-1].replace(" C ", f" {other} ") for text, other in ((first.text, "B"), (second.text, "X"))
    ]
    names = list(first.positive)
    one, other = choose.choice(names), choose.choice(names)
    times = [
        f"{one}.timestamp",
        f"{one}.timestamp + {choose.randint(0, 3)} s",
        f"max({one}.timestamp, {other}.timestamp) - 1 s",
        f"avg({one}.timestamp, {other}.timestamp)",
    ]
    emits = " ".join(
        f"emit X at {choose.choice(times)} with {{ k = {one}.k, x = {other}.x + {number}, v = {one}.v }}"
        for number in range(choose.choice((1, 1, 2)))
    )
    return "\n".join(
        [
            *(f"template {name} {{ k : String, x : Integer, v : Double }}" for name in "ABCX"),
            "template Y { xs : [Integer; 2] }",
            texts[0].replace("rule R", "rule R1") + " " + emits,
            texts[1].replace("rule R", "rule R2") + f" emit Y at {next(iter(second.positive))}.timestamp "
            f"with {{ xs = list({next(iter(second.positive))}.x, 7) }}",
            "rule R3 where y : Y x : X no z : Y when x in y [-2 s, 2 s] no z in y [1 s, 4 s]",
        ]
    )


@settings(max_examples=15)
@given(**with_streams(drawn_program, max_events=8))
def test_random_programs_have_the_matches_and_events_of_the_reference(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)


@given(**with_rules(max_events=10))
def test_the_window_that_follows_from_the_distances_loses_no_match(rule: Drawn, stream: Streams) -> None:
    found = program_of(rule)
    query = found.rules[0].query
    window = bounded(query).window_us
    assert window is not None
    for row in evaluate(found, stream)["R"]:
        assert row["end"] - row["start"] < window


@given(**with_rules(max_events=10))
def test_what_the_optimizer_makes_of_a_rule_has_the_same_matches(rule: Drawn, stream: Streams) -> None:
    found = program_of(rule)
    (first,) = found.rules
    (timed,) = replace(found, rules=(replace(first, query=bounded(first.query)),)).timed("ts").rules
    tables = {name: table for name, table in tables_of(stream).items() if name in first.reads}
    schemas = {name: Schema.of(name, types_in(table.schema)) for name, table in tables.items()}
    optimized = optimize(timed.query, Facts(schemas)).query
    wanted, made = (local.match(query, tables).to_pylist() for query in (timed.query, optimized))
    assert Counter(map(repr, made)) == Counter(map(repr, wanted))


# --- scenarios ------------------------------------------------------------------------------------


def test_scenario_a_with_a_function() -> None:
    program = compiled(TYPES + A, routes=never_otherwise)
    assert ids(program.matches("FraudPassThrough", trace(), engine="local").to_pylist(), "incoming", "outgoing") == [
        (2, 10)
    ]
    assert (
        program.events("SuspiciousSequenceDetected", trace(), engine="local").to_pylist()
        == (events(program, trace())["SuspiciousSequenceDetected"])
    )


def test_scenario_b() -> None:
    program = compiled(TYPES + B, routes=never_otherwise)
    found = program.matches("FraudDiffusion", trace(), engine="local").to_pylist()
    names = ("incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    assert len(found) == 6
    assert {tuple(sorted(one)) for one in ids(found, *names)} == {(4, 6, 9, 200)}


@pytest.mark.parametrize(
    "text",
    [CORRECTED, PUBLISHED["7_5_refund_scam"].replace("then", "  distinct(additional_incoming, incoming)\nthen")],
    ids=["id", "distinct"],
)
def test_scenario_c_corrected(text: str) -> None:
    program = compiled(TYPES + text)
    found = program.matches("FraudRefundScam", trace(), engine="local").to_pylist()
    assert ids(found, "incoming", "refund") == [(13, 201), (13, 5003)]
    emitted = program.events("RefundScamSuspected", trace(), engine="local").to_pylist()
    claimed = dt.datetime(2018, 1, 1, 14)
    assert sorted(emitted, key=repr) == [
        {"ts": claimed, "incoming_transaction": 13, "refund_transaction": 201},
        {"ts": claimed, "incoming_transaction": 13, "refund_transaction": 5003},
    ]


# --- functions, tables, calendar ------------------------------------------------------------------

ODD = tocsin.function(lambda x: x % 2 == 1, gives="boolean", pure=True)
OF_PYTHON = [
    "rule R where a : A { odd(x) } b : B { NOT odd(x) } when b in a [0 s, 5 s]",
    "rule R where a : A no b : A { odd(x) } when no b in a [1 s, 3 s]",
    "rule R where a : A no b : A { odd(x + a.x), x > 0 } when no b in a [-3 s, 3 s]",
    "rule R where a : A { known(x) } b : B { NOT known(a.x, x) } when b in a [0 s, 5 s]".replace("known(x)", "one(x)"),
    "rule R where a : A { second(timestamp) < 3 } b : B { avg(x, a.x) > 2 } when b in a [0 s, 9 s]",
    "rule R where a : A b : B+ { odd(sum(b.x)) } when b in a [0 s, 5 s] b in b [0 s, 5 s]",
    "rule R where a : A b : A c : A when b in a [0 s, 3 s] c in b [0 s, 3 s] distinct(a, b, c)",
    "rule R where a : A b : A when b in a [0 s, 3 s] distinct(a, b) select next",
]


@pytest.mark.parametrize("rule", OF_PYTHON)
def test_what_only_python_computes(rule: str) -> None:
    tables = {"one": [1, 3, None], "known": [(1, 2), (3, 4)]}
    program = compiled(ABC + rule, functions={"odd": ODD}, tables=tables)
    stream = rows(A="0:1 1:2 2:3 2:3 4:0 6:5 9:1", B="0:1 1:2 2:4 5:4 6:7")
    stream["A"].append({"ts": 3_000_000, "x": None})
    wanted = seconds(evaluate(program, stream)["R"])
    found = program.matches("R", stream, engine="local").drop_columns(["match_id"]).to_pylist()
    assert wanted
    assert seconds(found) == wanted


# --- inputs ---------------------------------------------------------------------------------------

DERIVED = ABC + "rule R where a : A then emit B at a.timestamp with { x = a.x } rule S where b : B { x > 1 }"


def test_events_of_a_derived_type_may_come_from_outside_too() -> None:
    program = compiled(DERIVED)
    stream = rows(A="1:1 2:2", B="3:3")
    assert seconds(program.matches("S", stream, engine="local").drop_columns(["match_id"]).to_pylist()) == [
        (2.0,),
        (3.0,),
    ]
    assert program.events("B", stream, engine="local").num_rows == 2
    with pytest.raises(errors.MissingColumnError, match="no column `x` in the input of `B`, which rules emit too"):
        program.matches("S", {**stream, "B": [{"ts": 3}]}, engine="local")
    with pytest.raises(errors.TypeMismatchError, match="`x` of `B` is int64 in one place and string in another"):
        program.matches("S", {**stream, "B": [{"ts": 3, "x": "three"}]}, engine="local")


def test_one_list_with_a_type_column() -> None:
    program = compiled(DERIVED)
    stream = [{"kind": "A", "at": 1, "x": 2}, {"kind": "B", "at": 2, "x": 3}, {"kind": "C", "at": 2, "x": 3}]
    found = program.matches("S", stream, time="at", type="kind", engine="local")
    assert sorted(row["at"] for row in found["b"].to_pylist()) == [1, 2]


def test_every_type_may_have_its_own_time_column() -> None:
    program = compiled(DERIVED)
    inputs = {"A": [{"at": 1, "x": 2}]}
    assert program.events("B", inputs, time={"A": "at"}, engine="local").to_pylist() == [{"timestamp": 1, "x": 2}]
    assert program.matches("S", inputs, time={"A": "at", "B": "when"}, engine="local")["b"].to_pylist() == [
        {"when": 1, "x": 2}
    ]


def test_a_list_without_rows_has_the_columns_of_its_template() -> None:
    program = compiled(ABC + "rule R where a : A no b : B { x = a.x } when no b in a [0 s, 1 s]")
    assert program.matches("R", {"A": [{"ts": 1, "x": 1}], "B": []}, engine="local").num_rows == 1
    assert program.matches("R", {"A": [], "B": []}, engine="local").num_rows == 0


def test_an_id_names_events_that_come_from_outside() -> None:
    program = compiled(DERIVED + " rule T where a : A")
    stream = {"A": [{"ts": 1, "x": 5}]}
    one = program.matches("T", stream, id="x", engine="local")["match_id"].to_pylist()
    assert one != program.matches("T", stream, engine="local")["match_id"].to_pylist()
    assert program.matches("S", stream, id="x", engine="local").num_rows == 1


def test_what_is_missing_is_told() -> None:
    program = compiled(DERIVED)
    with pytest.raises(errors.UnknownEventTypeError, match="reads events of `A`, and no input has them"):
        program.matches("S", {"AA": []}, engine="local")
    with pytest.raises(errors.InvalidOptionError, match="`x` is the time column of `B`"):
        program.events("B", {"A": [{"x": 1}]}, time="x", engine="local")


def test_a_rule_above_a_refused_one_is_refused_too() -> None:
    text = ABC + "rule R where a : A { far(x) } then emit B at a.timestamp with { x = 1 }"
    far = SimpleNamespace(columns=["x"], schema=None)
    program = compiled(text + " rule S where b : B rule T where a : A", tables={"far": far})
    inputs = rows(A="1")
    with pytest.raises(errors.UnsupportedError, match="The table `far`, which is a DataFrame, does not run"):
        program.matches("S", inputs, engine="local")
    assert program.matches("T", inputs, engine="local").num_rows == 1
