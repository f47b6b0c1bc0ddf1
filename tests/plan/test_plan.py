"""A plan is data: it compares equal, converts to JSON, and is what engines run; strategies come from one file each."""

from __future__ import annotations

import datetime as dt
import json
import operator
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from pyspark.sql import SparkSession
from syrupy.assertion import SnapshotAssertion

import tocsin
from tocsin import options, reference
from tocsin.algebra import nodes as alg
from tocsin.errors import InvalidOptionError, OptionRefusedError, TocsinWarning, UnsupportedError
from tocsin.language import ast
from tocsin.options import Options
from tocsin.plan import strategies
from tocsin.plan.codec import decode, encode
from tocsin.plan.plan import Plan, unbound_plan
from tocsin.plan.prepare import prepare
from tocsin.plan.program_plan import ProgramPlan, program_plan, times_of
from tocsin.plan.strategies.kernel import NestedLoops
from tocsin.plan.strategy import ON_SPARK
from tocsin.testing.cases import assert_same_rows
from tocsin.testing.strategies import queries

SCHEMA = {"ts": "timestamp", "k": "bigint", "x": "decimal(10,2)"}
TEXTS = {
    "sequence": "PATTERN SEQ(A a, B b) WHERE a.k = b.k AND b.x > 5 WITHIN 10 SECONDS RETURN a.k, b.x + a.x AS sum",
    "iteration": "PATTERN SEQ(A a, B+ b, NOT C c, D d) WHERE b.x > a.x PARTITION BY k WITHIN 1 MINUTE",
    "count": "PATTERN SEQ(A a, B+ b) WITHIN 1 MINUTE RETURN COUNT(*) AS n",
    "contiguous": "PATTERN SEQ(A a, B b) SEMANTICS contiguous WITHIN 1 MINUTE",
    "filter": "PATTERN A a WHERE a.x > 1",
}


def planned(text: str, **given: Any) -> Plan:
    query = tocsin.pattern(text).query
    types = alg.event_types(query.pattern)
    rule = prepare(query, dict.fromkeys(types, SCHEMA))
    return Plan(rule, Options(**given), dict.fromkeys(types, "ts"))


@pytest.mark.parametrize("name", TEXTS)
def test_a_plan_is_what_its_snapshot_shows(name: str, snapshot: SnapshotAssertion) -> None:
    found = planned(TEXTS[name]).to_dict()
    assert json.loads(json.dumps(found)) == found
    made_of = found.pop("made_of")
    assert found == snapshot
    assert made_of["query"]["is"] == "Query"


def test_plans_are_equal_when_they_run_the_same() -> None:
    text = TEXTS["iteration"]
    assert planned(text) == planned(text)
    assert planned(text) != planned(text, strategy="aggregate")
    assert planned(text) != planned(text.replace("1 MINUTE", "2 MINUTES"))
    assert len({planned(text), planned(text)}) == 1


@pytest.mark.parametrize(
    ("name", "strategy"), [*((name, "auto") for name in TEXTS), ("sequence", "join"), ("contiguous", "automaton")]
)
def test_a_plan_comes_back_from_json(name: str, strategy: str) -> None:
    given = {"tie": ("k",), "lateness": dt.timedelta(seconds=3), "rates": {"A": "3/s"}, "strategy": strategy}
    plan = planned(TEXTS[name], **given)
    found = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert found == plan
    assert found.describe() == plan.describe()
    assert found.rule.bound.columns == plan.rule.bound.columns


@given(queries())
def test_every_plan_comes_back_from_json(query: ast.Query) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        plan = unbound_plan(tocsin.pattern(query).query, Options())
    stored = json.loads(json.dumps(encode(plan.rule.written)))
    assert decode(stored) == plan.rule.written


def test_what_is_no_plan_is_refused() -> None:
    stored = planned(TEXTS["sequence"]).to_dict()
    for damaged in ({}, {"made_of": {}}, {"made_of": stored["made_of"] | {"query": None}}):
        with pytest.raises(InvalidOptionError, match="no stored plan"):
            Plan.from_dict(damaged)
    with pytest.raises(InvalidOptionError, match="has no `Popen`"):
        Plan.from_dict({"made_of": stored["made_of"] | {"query": {"is": "Popen"}}})


def test_a_plan_with_a_function_of_the_user_does_not_come_back() -> None:
    product = tocsin.Monoid(zero=1, combine=operator.mul, gives="bigint")
    query = tocsin.pattern("PATTERN A+ a WITHIN 1 DAY RETURN product(a.k) AS p", aggregates={"product": product}).query
    plan = Plan(prepare(query, {"A": SCHEMA}), Options(), {"A": "ts"})
    with pytest.raises(InvalidOptionError, match="has no `function`"):
        Plan.from_dict(json.loads(json.dumps(plan.to_dict())))


@given(queries())
def test_the_strategy_is_the_one_that_is_chosen(query: ast.Query) -> None:
    """Also where nothing is weighed before somebody asks for the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        plan = unbound_plan(tocsin.pattern(query).query, Options())
    assume(strategies.unsupported(plan.query) is None)
    assert plan.strategy is strategies.STRATEGIES[plan.choice.strategy or "kernel"]


@pytest.mark.parametrize("strategy", ["join", "sliding-window", "kernel", "automaton", "aggregate", "clustered"])
def test_every_strategy_plans_a_sequence(strategy: str) -> None:
    plan = planned(TEXTS["sequence"], strategy=strategy)
    assert plan.to_dict()["strategy"] == strategy
    assert plan.describe()


# --- programs -------------------------------------------------------------------------------------

RULES = """
template A { k : Integer, x : Integer }
template B { k : Integer, x : Integer }
template C { k : Integer }
rule Pair where a : A  b : B { k = a.k } when b in a [0 seconds, 10 seconds]
    then emit C at b.timestamp with { k = a.k }
rule Same where a : A { x > 1 }  b : B { k = a.k } when b in a [0 seconds, 20 seconds]
rule Next where a : A  b : B when b in a [0 seconds, 5 seconds] select next
rule After where c : C  a : A { k = c.k } when a in c [0 seconds, 1 minute]
"""


def planned_program(**given: Any) -> ProgramPlan:
    program = tocsin.rules(RULES).program
    options = Options(**given)
    columns = {"ts": "timestamp", "k": "bigint", "x": "int"}
    return program_plan(program, replace(options, time=times_of(program, options.time)), {"A": columns, "B": columns})


def test_a_plan_of_a_program_is_what_its_snapshot_shows(snapshot: SnapshotAssertion) -> None:
    found = planned_program().to_dict()
    assert json.loads(json.dumps(found)) == found
    found.pop("made_of")
    assert found == snapshot


def test_a_plan_of_a_program_shares_what_can_be_shared() -> None:
    plan = planned_program()
    first, second = plan.strata(plan.program.rules[3:])
    assert [one.rule.name for one in first.shared] == ["Pair"]
    assert [one.rule.name for one in second.shared] == ["After"]
    assert second.shared[0].reads_derived
    assert plan.to_dict()["strata"][0]["alone"] == ["Next"]
    assert planned_program(strategy="aggregate").to_dict()["strata"][0]["shared"] == []


@pytest.mark.parametrize("given", [{}, {"strategy": "aggregate"}, {"tie": ("k",), "rates": {"A": "3/s"}}])
def test_a_plan_of_a_program_comes_back_from_json(given: dict[str, Any]) -> None:
    plan = planned_program(**given)
    found = ProgramPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert found == plan
    assert planned_program(strategy="aggregate" if not given else "auto") != plan
    unbound = program_plan(tocsin.rules(RULES).program, Options())
    assert ProgramPlan.from_dict(json.loads(json.dumps(unbound.to_dict()))) == unbound


def test_a_damaged_plan_of_a_program_is_refused() -> None:
    stored = planned_program().to_dict()
    for damaged in ({}, {"made_of": {}}, {"made_of": stored["made_of"] | {"unknown": 1}}):
        with pytest.raises(InvalidOptionError, match="no stored plan"):
            ProgramPlan.from_dict(damaged)


# --- a strategy from one file ---------------------------------------------------------------------


class Toy(NestedLoops):
    """Nested loops in slices of a minute; no absences."""

    name = "toy"

    def refuses(self, query: alg.Query, *, engine: str = ON_SPARK, one_input: bool = True) -> UnsupportedError | None:
        refusal = super().refuses(query, engine=engine, one_input=one_input)
        if refusal is not None:
            return refusal
        absence = next(iter(alg.absences_in(query.pattern)), None)
        if absence is None:
            return None
        return OptionRefusedError(
            "An absence does not run with the strategy `toy`.", where=absence.where, hint='leave out `strategy="toy"`.'
        )

    def slice_us(self, plan: Plan) -> int:
        return 60_000_000

    def describe(self, plan: Plan) -> str:
        return "toy: loops in slices of a minute"


@pytest.fixture
def toy() -> Iterator[None]:
    strategies.register(Toy())
    yield
    del strategies.STRATEGIES["toy"], options.STRATEGIES["toy"]


ROWS = {
    "A": [{"ts": 1, "k": 1}, {"ts": 70_000_000, "k": 1}],
    "B": [{"ts": 5, "k": 1}, {"ts": 6, "k": 2}, {"ts": 75_000_000, "k": 1}],
}
PATTERN = "PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 SECONDS"


def without_id(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "match_id"}


def test_a_strategy_from_one_file_runs_locally(toy: None) -> None:
    p = tocsin.pattern(PATTERN)
    found = p.match(ROWS, engine="local", strategy="toy").to_pylist()
    assert len(found) == 2
    assert_same_rows([without_id(row) for row in found], reference.evaluate(p, ROWS))
    with pytest.raises(OptionRefusedError, match="absence"):
        tocsin.pattern("PATTERN SEQ(A a, NOT B b, A c) WITHIN 1 HOUR").match(ROWS, engine="local", strategy="toy")


def test_a_strategy_from_one_file_is_weighed_only_when_it_is_asked_for(toy: None) -> None:
    p = tocsin.pattern(PATTERN)
    assert "toy chosen" in " ".join(str(p.explain(strategy="toy")).split())
    assert "toy" not in str(p.explain())
    assert planned(TEXTS["sequence"], strategy="toy").to_dict()["exchange"]["slice_us"] == 60_000_000


def test_a_strategy_that_runs_a_formula_is_weighed_when_it_is_asked_for(
    toy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    formula = tocsin.pattern("A ; B WITHIN 10 SECONDS", language="acel").query
    assert strategies.weighed(formula, "toy") == [
        ("toy", "ACEL's `;` does not run with the strategy `toy`."),
        ("automaton", None),
    ]
    monkeypatch.setattr(Toy, "refuses", lambda *_, **__: None)
    assert strategies.weighed(formula, "toy") == [("toy", None), ("automaton", None)]


@pytest.mark.spark
def test_a_strategy_from_one_file_runs_on_spark(toy: None, spark: SparkSession) -> None:
    p = tocsin.pattern(PATTERN)
    frames = {name: spark.createDataFrame(rows, "ts bigint, k bigint") for name, rows in ROWS.items()}
    found = [row.asDict(recursive=True) for row in p.match(frames, strategy="toy").collect()]
    assert_same_rows([without_id(row) for row in found], reference.evaluate(p, ROWS))
    assert "toy: loops in slices of a minute" in p.explain(frames, strategy="toy")
    with pytest.raises(tocsin.errors.InvalidOptionError, match="no strategy `toys`"):
        p.match(frames, strategy="toys")
