"""Programs on Spark: some cases, the scenarios, strata as nested DataFrames."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.rules.support import ABC, PUBLISHED, TYPES, compiled, rows, trace
from tests.rules.test_cases import CASES
from tests.rules.test_cases import compiled as of_case
from tests.rules.test_scenarios import CORRECTED, A, ids

import tocsin
from tocsin import errors
from tocsin.engines.spark.engine import prepare
from tocsin.options import Options
from tocsin.plan.prepare import bounded
from tocsin.reference import evaluate, events

pytestmark = pytest.mark.spark

SOME = [
    "an absence before an event, of a value that the event tells",
    "another event may be meant",
    "a repetition is every choice of events in order",
    "a rule never sees half of what one event causes",
    "the time of an emitted event",
]
TRACE = {
    "MoneyTransferred": "ts timestamp_ntz, id bigint, originator string, destination string, amount bigint",
    "FraudulentTransactionClaimed": "ts timestamp_ntz, transaction_id bigint, reason string",
}


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, 2) as light:
        yield light


def frames(spark: SparkSession, program: tocsin.Rules, given: dict[str, Any], schema: str) -> dict[str, DataFrame]:
    sources = [name for name in program.program.read if name not in program.program.emitted]
    inputs = {**{name: [] for name in sources}, **given}
    return {
        name: spark.createDataFrame([tuple(row.values()) for row in found], schema) for name, found in inputs.items()
    }


def found(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def counted(some: list[Any], without: tuple[str, ...] = ("match_id",)) -> Counter[str]:
    return Counter(repr({name: value for name, value in row.items() if name not in without}) for row in some)


@pytest.mark.parametrize("name", SOME)
def test_spark_gives_the_matches_and_events_of_the_case(light: SparkSession, name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    program = of_case(case)
    given = case.inputs()
    kinds = {int: "bigint", str: "string", float: "double", type(None): "bigint"}
    columns = {
        kind: ", ".join(f"{column} {kinds[type(value)]}" for column, value in some[0].items())
        for kind, some in given.items()
    }
    inputs = {
        kind: light.createDataFrame([tuple(row.values()) for row in some], columns[kind])
        for kind, some in given.items()
    }
    for kind in program.program.read:
        if kind not in program.program.emitted and kind not in inputs:
            inputs[kind] = light.createDataFrame([], "ts bigint, x bigint, id string")
    if case.matches is not None:
        rule = case.rule or program.program.rules[-1].name
        assert case.differences(found(program.matches(rule, inputs))) == []
    emitted = {kind: found(program.events(kind, inputs)) for kind in program.program.emitted}
    assert case.emit_differences(emitted) == []


def test_scenarios_a_and_c_on_the_trace(light: SparkSession) -> None:
    inputs = {
        name: light.createDataFrame([tuple(row.values()) for row in some], TRACE[name])
        for name, some in trace().items()
    }
    routes = Counter(frozenset((row["originator"], row["destination"])) for row in trace()["MoneyTransferred"])
    # The function travels to the workers with what it closes over; this module is not there.
    pairs = [tuple(pair) for pair, number in routes.items() if number == 1]
    program = compiled(TYPES + A, routes=lambda a, b: (a, b) in pairs or (b, a) in pairs)
    assert ids(found(program.matches("FraudPassThrough", inputs)), "incoming", "outgoing") == [(2, 10)]
    emitted = found(program.events("SuspiciousSequenceDetected", inputs))
    assert emitted == events(program, trace())["SuspiciousSequenceDetected"]
    corrected = compiled(TYPES + CORRECTED)
    assert ids(found(corrected.matches("FraudRefundScam", inputs)), "incoming", "refund") == [(13, 201), (13, 5003)]
    again = compiled(
        TYPES + PUBLISHED["7_5_refund_scam"].replace("then", "  distinct(additional_incoming, incoming)\nthen")
    )
    assert counted(found(again.events("RefundScamSuspected", inputs))) == counted(
        events(again, trace())["RefundScamSuspected"]
    )


LAYERS = (
    ABC
    + """
    rule R where a : A b : B { x = a.x } when b in a [-2 s, 2 s]
    then emit C at max(a.timestamp, b.timestamp) with { x = a.x } emit C at a.timestamp with { x = 0 }
    rule S where c : C no d : C { x > c.x } when no d in c [-1 s, 3 s] then emit D at c.timestamp with { x = c.x + 1 }
    rule T where d : D a : A e : D when a in d [0 s, 5 s] e in a [-5 s, 5 s] distinct(d, e)
    """
)


@pytest.mark.parametrize("shared", [False, True])
def test_strata_are_nested(light: SparkSession, shared: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tocsin.TocsinWarning)
        program = tocsin.rules(LAYERS)
    stream = rows(A="0:1 1:2 2:1 9:3 12:1", B="1:1 1:1 3:2 9:3 10:3 13:1", C="2:1")
    if shared:
        every = [(name, row["ts"], row["x"]) for name, some in stream.items() for row in some]
        inputs: Any = light.createDataFrame(every, "type string, ts bigint, x bigint")
    else:
        inputs = frames(light, program, stream, "ts bigint, x bigint")
    wanted = evaluate(program, stream)
    matches = [
        {
            name: {field: one[field] for field in ("ts", "x")} if isinstance(one, dict) else one
            for name, one in row.items()
        }
        for row in found(program.matches("T", inputs))
    ]
    assert len(matches) > 1
    assert counted(matches) == counted(wanted["T"])
    assert shared or counted(found(program.events("D", inputs))) == counted(events(program, stream)["D"])


VALUES = """
template A { x : Integer, k : String }
template E { y : Integer, ok : Boolean, known : Boolean, at : Integer, all : [Integer; 3], d : Decimal }
rule R where
  a : A { twice(x) > 2 }
  all b : A { x != a.x }
when
  all b in a [-2 s, 2 s]
then
  emit E at a.timestamp + 1 second with {
    y = twice(sum(b.x)) + a.x, ok = starts(a.k, 'p') OR many(a.x), known = NOT many(twice(a.x)),
    at = twice(second(a.timestamp)), all = list(twice(a.x), a.x, count(b)), d = exact(a.x)
  }
"""


def test_what_only_python_computes_is_computed_after_the_search(light: SparkSession) -> None:
    functions = {
        "twice": tocsin.function(lambda x: 2 * x, gives="bigint", pure=True),
        "starts": tocsin.function(lambda text, start: text.startswith(start), gives="boolean", pure=True),
        "exact": tocsin.function(lambda x: Decimal(f"{x}.25"), gives="decimal(10, 2)", pure=True),
    }
    program = tocsin.rules(VALUES, functions=functions, tables={"many": list(range(0, 999, 2))})
    some = [(1, "p"), (2, "q"), (3, None), (None, "p"), (4, "pq"), (2, "r")]
    stream = {"A": [{"ts": at * 1_000_000, "x": x, "k": k} for at, (x, k) in enumerate(some)]}
    inputs = frames(light, program, stream, "ts bigint, x bigint, k string")
    wanted = events(program, stream)["E"]
    assert len(wanted) == 4
    assert counted(found(program.events("E", inputs))) == counted(wanted)
    local = program.events("E", stream, engine="local").to_pylist()
    assert counted(local) == counted(wanted)
    wrong = {**functions, "twice": tocsin.function(lambda x: 2.5, gives="bigint", pure=True)}
    failing = tocsin.rules(VALUES, functions=wrong, tables={"many": [1]}).events("E", inputs)
    with pytest.raises(Exception, match=r"`twice` gave 2\.5 for \d+, which is not of the type bigint"):
        failing.collect()


SLICED = (
    ABC
    + """
    rule R where a : A b : B no c : C { x = a.x } no d : D { x = b.x } when
      b in a [-1 s, 2 s] no c in a [-7 s, -3 s] no d in b [4 s, 9 s]
    """
)


def test_a_slice_sees_what_blocks_its_matches_from_far_away(light: SparkSession) -> None:
    program = compiled(SLICED)
    choose = Random(7)
    stream = {
        name: [{"ts": choose.randrange(200) * 500_000, "x": choose.randrange(12)} for _ in range(150)]
        for name in "ABCD"
    }
    inputs = frames(light, program, stream, "ts bigint, x bigint")
    rule = bounded(program.program.rules[0].query)
    (timed,) = replace(program.program, rules=(replace(program.program.rules[0], query=rule),)).timed("ts").rules
    wanted = program.matches("R", stream, engine="local")
    cut = found(prepare(timed.query, inputs, Options(strategy="kernel", slice_us=1)).matches())
    assert len(cut) > 100
    assert counted(cut, ()) == counted(wanted.to_pylist(), ())


def test_nothing_runs_and_what_is_wrong_is_told(light: SparkSession) -> None:
    fails = light.range(1).selectExpr("id AS ts", "raise_error('it ran') AS x")
    ok = tocsin.rules(ABC + "rule R where a : A then emit B at a.timestamp with { x = 1 } rule S where b : B")
    assert ok.matches("S", {"A": fails}).columns == ["match_id", "start", "end", "b"]
    far = {"far": light.range(1)}
    program = tocsin.rules(
        "template A { x : Integer } template B { y : Boolean } "
        "rule R where a : A then emit B at a.timestamp with { y = far(a.x) }",
        tables=far,
    )
    with pytest.raises(errors.UnsupportedError, match="The table `far`, a DataFrame for several events, does not run"):
        program.events("B", {"A": fails})
    with pytest.raises(errors.TypeMismatchError, match="`x` of `B` is bigint in one place and string in another"):
        ok.matches("S", {"A": fails, "B": light.createDataFrame([], "ts bigint, x string")})
    with pytest.raises(errors.MissingColumnError, match="no column `x` in the input of `B`"):
        ok.matches("S", {"A": fails, "B": light.createDataFrame([], "ts bigint")})
    with pytest.raises(errors.InvalidInputError, match='engine="local"'):
        ok.matches("S", {"A": [{"ts": 1}]})
    with pytest.raises(errors.InvalidInputError, match="neither a DataFrame nor a mapping"):
        ok.matches("S", 5)  # type: ignore[arg-type]
