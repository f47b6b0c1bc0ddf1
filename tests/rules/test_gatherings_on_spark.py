"""`all` and `unordered` on Spark: slices see what their matches gather, whatever the number of partitions."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.rules.support import ABC, compiled
from tests.rules.test_engines import plain
from tests.rules.test_gatherings import drawn_gathering, drawn_interchangeable, drawn_unordered
from tests.rules.test_on_spark import counted, found, frames

import tocsin
from tocsin import errors
from tocsin.engines.spark.engine import prepare
from tocsin.options import Options
from tocsin.plan.prepare import bounded
from tocsin.reference import evaluate, events
from tocsin.testing.streams import Streams

pytestmark = pytest.mark.spark

COLUMNS = "ts bigint, k string, x bigint, v double"
GATHERED = [
    """rule R where a : A { x > 2 } all b : B { x != a.x, count(b) >= 2, sum(b.x) > a.x } when all b in a [-3 s, 4 s]
    then emit D at a.timestamp with { x = sum(b.x) + count(b) }""",
    """rule R where a : A c : C { x = a.x } all b : B { x >= a.x, max(b.x) > c.x } all d : B { x = count(b) }
    when c in a [-2 s, 1 s] all b in a [1 s, 7 s] all d in c [-9 s, -1 s]
    then emit D at c.timestamp with { x = last(b.x) }""",
    """rule R where a : A b : A all c : C { x = a.x + b.x } no d : B { x > sum(c.x) }
    when b in a [-2 s, 2 s] all c in a [-5 s, 5 s] no d in b [0 s, 2 s] distinct(a, b) unordered(a, b)
    then emit D at a.timestamp with { x = count(c) }""",
]


def drawn(choose: Random, size: int, instants: int) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [{"ts": choose.randrange(instants) * 500_000, "x": choose.choice([None, *range(6)])} for _ in range(size)]
        for name in "ABC"
    }


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("rule", GATHERED)
def test_requirement_50_the_matches_and_events_of_the_reference(
    spark: SparkSession, rule: str, partitions: int
) -> None:
    program = compiled(ABC + rule)
    stream = drawn(Random(partitions), 25, 60)
    with light_settings(spark, partitions) as light:
        inputs = frames(light, program, stream, "ts bigint, x bigint")
        matches, emitted = found(program.matches("R", inputs)), found(program.events("D", inputs))
    wanted = evaluate(program, stream)["R"]
    assert wanted
    assert Counter(map(plain, matches)) == Counter(map(plain, wanted))
    assert {row["match_id"] for row in matches} == {row.match_id for row in wanted}  # type: ignore[attr-defined]
    assert counted(emitted) == counted(events(program, stream)["D"])


@pytest.mark.parametrize("rule", GATHERED)
def test_a_slice_sees_what_its_matches_gather_from_far_away(spark: SparkSession, rule: str) -> None:
    program = compiled(ABC + rule)
    stream = drawn(Random(5), 150, 200)
    (one,) = program.program.rules
    (timed,) = replace(program.program, rules=(replace(one, query=bounded(one.query)),)).timed("ts").rules
    wanted = program.matches("R", stream, engine="local")
    with light_settings(spark, 2) as light:
        inputs = frames(light, program, stream, "ts bigint, x bigint")
        cut = found(prepare(timed.query, inputs, Options(strategy="kernel", slice_us=1)).matches())
    assert len(cut) > 20
    assert counted(cut, ()) == counted(wanted.to_pylist(), ())


def random_rules(number: int, seed: int, stream: Streams) -> list[tocsin.Rules]:
    """Random rules that gather, or whose variables are interchangeable, and that match something."""
    found: list[tocsin.Rules] = []
    while len(found) < number:
        seed += 1
        text = (drawn_gathering, drawn_unordered, drawn_interchangeable)[seed % 3](seed)
        with suppress(errors.ContradictoryDistancesError):
            program = compiled(text)
            found += [program] if evaluate(program, stream)["R"] else []
    return found


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_random_rules_have_the_matches_of_the_reference(spark: SparkSession, partitions: int) -> None:
    choose = Random(partitions)
    stream = {
        name: [
            {
                "ts": choose.randrange(20) * 500_000,
                "k": choose.choice(("p", "q", None)),
                "x": choose.choice((0, 1, 2, 3, None)),
                "v": choose.choice((0.0, 0.5, 1.25, None)),
            }
            for _ in range(8)
        ]
        for name in "ABC"
    }
    programs = random_rules(4, 100 * partitions, stream)
    wanted = Counter(
        (number, row.match_id)  # type: ignore[attr-defined]
        for number, program in enumerate(programs)
        for row in evaluate(program, stream)["R"]
    )
    with light_settings(spark, partitions) as light:
        inputs = {
            name: light.createDataFrame([tuple(row.values()) for row in some], COLUMNS) for name, some in stream.items()
        }
        matches = [
            program.matches("R", inputs).selectExpr(f"{number} AS program", "match_id")
            for number, program in enumerate(programs)
        ]
        rows = found(reduce(DataFrame.union, matches))
    assert Counter((row["program"], row["match_id"]) for row in rows) == wanted


def test_requirement_26_sets_of_equal_and_tied_events(spark: SparkSession) -> None:
    program = compiled(
        ABC + "rule R where a : A b : A c : A when b in a [-9 s, 9 s] c in a [-9 s, 9 s] unordered(a, b, c)"
    )
    stream = {"A": [{"ts": at * 1_000_000, "x": x} for at, x in ((1, 1), (1, 0), (1, 1), (2, 0), (30, 5))]}
    wanted = evaluate(program, stream)["R"]
    with light_settings(spark, 2) as light:
        matches = found(program.matches("R", frames(light, program, stream, "ts bigint, x bigint")))
    assert len(matches) == len(wanted) == 21
    assert counted(matches) == counted(wanted)
    assert {row["match_id"] for row in matches} == {row.match_id for row in wanted}  # type: ignore[attr-defined]


def test_an_id_names_gathered_events_too(spark: SparkSession) -> None:
    program = tocsin.rules(
        ABC + "rule R where a : A all b : B when all b in a [0 s, 5 s] then emit C at a.timestamp with { x = sum(b.x) }"
    )
    stream = {"A": [{"ts": 0, "x": 1}], "B": [{"ts": 1, "x": 7}, {"ts": 1, "x": 5}]}
    with light_settings(spark, 2) as light:
        inputs = frames(light, program, stream, "ts bigint, x bigint")
        (row,) = found(program.matches("R", inputs, id="x"))
        assert found(program.events("C", inputs, id="x")) == [{"ts": 0, "x": 12}]
    (wanted,) = program.matches("R", stream, id="x", engine="local").to_pylist()
    assert row == wanted
    assert [event["x"] for event in row["b"]] == [5, 7]
