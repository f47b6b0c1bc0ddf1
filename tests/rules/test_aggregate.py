"""Rules with `strategy="aggregate"`: each by itself, by aggregates over windows, as the reference has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.rules.support import compiled, with_streams
from tests.rules.test_cases import CASES
from tests.rules.test_cases import compiled as of_case
from tests.rules.test_engines import drawn_program, drawn_repetition, given_to, plain, tables_of
from tests.rules.test_properties import Drawn, rules

import tocsin
from tocsin import errors
from tocsin.reference import evaluate, events
from tocsin.testing.cases import Case
from tocsin.testing.streams import Streams

ASKED: dict[str, Any] = {"engine": "local", "strategy": "aggregate"}


def assert_as_the_reference(program: tocsin.Rules, stream: Streams) -> None:
    expected = evaluate(program, stream)
    tables = tables_of(stream)
    together = program.match(tables, **ASKED)
    for name, wanted in expected.items():
        found = program.matches(name, tables, **ASKED).to_pylist()
        assert Counter(map(plain, found)) == Counter(map(plain, wanted)), name
        rows = [row for row in together.to_pylist() if row["rule"] == name]
        assert sorted(row["match_id"] for row in rows) == sorted(row["match_id"] for row in found)
    for name, made in events(program, stream).items():
        found = program.events(name, tables, **ASKED).to_pylist()
        assert Counter(map(plain, found)) == Counter(map(plain, made)), name


@given(**rules(max_events=10))
def test_random_rules_have_the_matches_of_the_reference(rule: Drawn, stream: Streams) -> None:
    assert_as_the_reference(compiled(rule.text), stream)


@given(**with_streams(drawn_repetition, max_events=8))
def test_random_repetitions_and_selections_have_the_matches_of_the_reference(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)


@settings(max_examples=15)
@given(**with_streams(drawn_program, max_events=8))
def test_random_programs_have_the_matches_and_events_of_the_reference(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)


RUN = [case for case in CASES if case.error is None and case.matches is not None]


@pytest.mark.parametrize("case", RUN, ids=str)
def test_every_case_has_its_matches(case: Case) -> None:
    program = of_case(case)
    inputs = given_to(program, case.inputs())
    rule = case.rule or program.program.rules[-1].name
    assert case.differences(program.matches(rule, inputs, tie=case.tie, **ASKED).to_pylist()) == []


CHAIN = """
    template A { x : Integer }  template B { x : Integer }  template C { x : Integer }
    rule Pair where a : A  no n : B { x = a.x }  b : B { x > a.x }
    when b in a [0 seconds, 5 seconds]  no n in a [0 seconds, 2 seconds]
    then emit C at b.timestamp with { x = a.x }
    rule Twice where c : C  d : C { x > c.x } when d in c [0 seconds, 5 seconds]
"""


def chained() -> dict[str, list[dict[str, int]]]:
    return {
        kind: [{"ts": 700_000 * at + 10 * number, "x": at * (2 + number) % 5} for at in range(20)]
        for number, kind in enumerate("AB")
    }


def test_spark_finds_every_rule_by_itself(spark: SparkSession) -> None:
    program = tocsin.rules(CHAIN)
    rows = chained()
    expected = evaluate(program, rows)
    assert all(len(found) > 5 for found in expected.values())
    with light_settings(spark, partitions=3):
        frames = {
            kind: spark.createDataFrame([(row["ts"], row["x"]) for row in own], "ts long, x long")
            for kind, own in rows.items()
        }
        found = [row.asDict(recursive=True) for row in program.match(frames, strategy="aggregate").collect()]
        made = [row.asDict() for row in program.events("C", frames, strategy="aggregate").collect()]
    for name, wanted in expected.items():
        own = [
            {**{key: row[key] for key in ("match_id", "start", "end")}, **row[name]}
            for row in found
            if row["rule"] == name
        ]
        assert Counter(map(plain, own)) == Counter(map(plain, wanted)), name
    assert Counter(map(plain, made)) == Counter(map(plain, events(program, rows)["C"]))


@pytest.mark.parametrize("strategy", ["join", "aggregates"])
def test_other_strategies_are_not_for_rules(strategy: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=f"Rules do not run with the strategy `{strategy}`") as raised:
        tocsin.rules(CHAIN).match(chained(), engine="local", strategy=strategy)
    assert "aggregate" in (raised.value.hint or "")
