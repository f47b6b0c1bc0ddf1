"""Keys under different names: an event travels by each of its keys, and the matches are those of the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings, plain
from tests.rules.support import compiled

import tocsin
from tocsin.analysis.attributes import Schema
from tocsin.engines.spark.engine import prepare
from tocsin.optimizer.routes import crossed_keys, is_connected
from tocsin.options import Options
from tocsin.plan.prepare import bounded
from tocsin.reference import evaluate

TEMPLATES = (
    "template T { p : Integer, q : Integer, x : Integer } template U { p : Integer, q : Integer, x : Integer }\n"
)
SCHEMA = "ts bigint, p bigint, q bigint, x bigint"
SCHEMAS = {name: Schema.of(name, dict.fromkeys(("ts", "p", "q", "x"), "bigint")) for name in "TU"}
S = 1_000_000


def query(rule: str) -> Any:
    return compiled(TEMPLATES + rule).program.rules[0].query


def keys(rule: str) -> Any:
    return crossed_keys(bounded(query(rule)), SCHEMAS)


# --- which keys -----------------------------------------------------------------------------------

NEAR = "when b in a [0 s, 9 s]"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (f"rule R where a : T b : T {{ p = a.q }} {NEAR}", {"a": ("q",), "b": ("p",)}),
        (
            f"rule R where a : T b : U {{ p = a.q, q = a.p }} {NEAR}",
            {"a": ("p", "q"), "b": ("q", "p")},
        ),
        (
            f"rule R where a : T b : T {{ p = a.q }} c : T {{ p = a.q }} {NEAR} c in a [0 s, 9 s]",
            {"a": ("q",), "b": ("p",), "c": ("p",)},
        ),
        (
            f"rule R where a : T b : T {{ p = a.q }} no n : U {{ q = a.q }} {NEAR} no n in a [0 s, 9 s]",
            {"a": ("q",), "b": ("p",), "n": ("q",)},
        ),
        (
            "rule R where a : T all b : T { p = a.q, count(b) > 1 } when all b in a [0 s, 9 s]",
            {"a": ("q",), "b": ("p",)},
        ),
        # Nothing in common, or not of all.
        (f"rule R where a : T b : T {{ x > a.x }} {NEAR}", None),
        (f"rule R where a : T b : T {{ p = a.q }} c : T {{ x = b.x }} {NEAR} c in a [0 s, 9 s]", None),
        (f"rule R where a : T b : T {{ p = a.q }} no n : U {{ x = a.x }} {NEAR} no n in a [0 s, 9 s]", None),
        (f"rule R where a : T b : T {{ p = a.q + 1 }} {NEAR}", None),
        ("rule R where a : T all b : T { x = a.x, count(b) > 1 } all c : U { p = a.q } "
         "when all b in a [0 s, 9 s] all c in a [0 s, 9 s]", None),
    ],
)  # fmt: skip
def test_the_keys_are_what_all_events_of_a_match_agree_on(rule: str, found: Any) -> None:
    assert keys(rule) == found


def test_attributes_of_different_types_are_no_key() -> None:
    mixed = SCHEMAS | {"T": Schema.of("T", {"ts": "bigint", "p": "double", "q": "bigint", "x": "bigint"})}
    assert crossed_keys(bounded(query(f"rule R where a : T b : T {{ p = a.q }} {NEAR}")), mixed) is None


def test_rule_c_has_no_key_for_all_and_is_connected() -> None:
    claimed = "c : U { x = a.x }"
    rule = f"rule R where a : T b : T {{ p = a.q, q = a.p }} {claimed} {NEAR} c in a [0 s, 9 s]"
    assert keys(rule) is None
    assert is_connected(query(rule), SCHEMAS)
    assert not is_connected(query(rule.replace("x = a.x", "x > a.x")), SCHEMAS)


# --- on Spark -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, 3) as light:
        yield light


def frames(spark: SparkSession, stream: dict[str, list[dict[str, Any]]], partitions: int) -> dict[str, DataFrame]:
    return {
        name: spark.createDataFrame([tuple(row.values()) for row in rows], SCHEMA).repartition(partitions)
        for name, rows in stream.items()
    }


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    def flat(value: Any) -> Any:
        return sorted(map(repr, value)) if isinstance(value, list) else value

    return Counter(
        repr({name: flat(value) for name, value in row.items() if name != "match_id" and value not in (None, [])})
        for row in rows
    )


def drawn(choose: Random) -> str:
    """A rule whose variables agree on p or q, with other conditions, absences, gatherings and `distinct`."""
    attribute = choose.choice("pq")
    names, patterns, when = ["a"], [f"a : {choose.choice('TU')}"], []
    for name in "bc"[: choose.randint(0, 2)]:
        own = choose.choice("pq")
        more = choose.choice(["", "", f", x != {choose.choice(names)}.x", ", x > 1", f", {choose.choice('pq')} = a.x"])
        patterns.append(f"{name} : {choose.choice('TTU')} {{ {own} = a.{attribute}{more} }}")
        low = choose.choice((-3, 0, 0, 1))
        when.append(f"{name} in {choose.choice(names)} [{low} s, {low + choose.choice((0, 2, 5))} s]")
        names.append(name)
    if len(names) > 1 and choose.random() < 0.4:
        when.append(f"distinct({', '.join(names)})")
    if len(names) == 1 or choose.random() < 0.5:
        sort = choose.choice(["no", "all"])
        condition = f"{choose.choice('pq')} = a.{attribute}" + (", count(n) >= 2" if sort == "all" else ", x > 0")
        patterns.append(f"{sort} n : {choose.choice('TU')} {{ {condition} }}")
        when.append(f"{sort} n in a [{choose.choice((-2, 0))} s, 3 s]")
    return f"rule R where {' '.join(patterns)} when {' '.join(when)}"


def drawn_stream(choose: Random) -> dict[str, list[dict[str, Any]]]:
    def value() -> int | None:
        return choose.choice([0, 1, 1, 2, 3, None])

    return {
        name: [
            {"ts": choose.randrange(12) * S, "p": value(), "q": value(), "x": value()}
            for _ in range(choose.randint(0, 9))
        ]
        for name in "TU"
    }


def agrees(spark: SparkSession, seed: int) -> None:
    choose = Random(seed)
    rule, stream = drawn(choose), drawn_stream(choose)
    program = compiled(TEMPLATES + rule)
    assert keys(rule) is not None
    wanted = evaluate(program, stream)["R"]
    inputs = frames(spark, stream, choose.choice((1, 2, 7)))
    got = [plain(row) for row in program.matches("R", inputs).collect()]
    assert counted(got) == counted(wanted), rule
    local = program.matches("R", stream_tables(stream), engine="local").to_pylist()
    assert sorted(row["match_id"] for row in got) == sorted(row["match_id"] for row in local)


def stream_tables(stream: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    import pyarrow as pa

    schema = pa.schema([(name, pa.int64()) for name in ("ts", "p", "q", "x")])
    return {name: pa.Table.from_pylist(rows, schema) for name, rows in stream.items()}


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000))
def test_events_sent_by_several_keys_give_the_matches_of_the_reference(light: SparkSession, seed: int) -> None:
    agrees(light, seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=150)
@given(seed=st.integers(0, 1_000_000))
def test_many_more_rules_with_keys_of_different_names(light: SparkSession, seed: int) -> None:
    agrees(light, seed)


def test_one_frame_with_a_type_column_is_split_by_its_keys_too(light: SparkSession) -> None:
    program = compiled(TEMPLATES + f"rule R where a : T b : U {{ p = a.q }} {NEAR}")
    rows = [("T", 0, 1, 2, 0), ("U", S, 2, 5, 0), ("U", S, 3, 2, 0), ("T", 2 * S, 2, 2, 0)]
    frame = light.createDataFrame(rows, f"type string, {SCHEMA}")
    (match,) = (plain(row) for row in program.matches("R", frame).collect())
    assert (match["a"]["q"], match["b"]["p"]) == (2, 2)
    assert list(match["a"]) == ["type", "ts", "p", "q", "x"]


def test_an_event_whose_keys_are_equal_does_not_meet_itself_as_another(light: SparkSession) -> None:
    program = compiled(TEMPLATES + f"rule R where a : T b : T {{ p = a.q }} {NEAR} distinct(a, b)")
    inputs = frames(light, {"T": [{"ts": 0, "p": 1, "q": 1, "x": 0}]}, 1)
    assert program.matches("R", inputs).collect() == []
    twice = frames(light, {"T": [{"ts": 0, "p": 1, "q": 1, "x": 0}] * 2}, 1)
    assert program.matches("R", twice).count() == 2


def test_a_pattern_of_sase_is_split_too(light: SparkSession) -> None:
    pattern = tocsin.pattern(
        "PATTERN SEQ(T a, U b) WHERE b.p = a.q WITHIN 10 SECONDS RETURN a.x, COUNT(*) AS n GROUP BY a.x"
    )
    inputs = frames(light, drawn_stream(Random(5)), 1)
    made = prepare(pattern.query, inputs, Options(strategy="kernel"))
    assert made.plan.routed.query.partition.keys == ("__tocsin_key0",)
    assert "key a.q = b.p" in made.plan.describe()
    joined = pattern.match(inputs, strategy="kernel").collect()
    stream = drawn_stream(Random(5))
    wanted = tocsin.reference.evaluate(pattern, stream)
    assert Counter(map(repr, (row.asDict() for row in joined))) == Counter(map(repr, wanted))


def test_a_rule_whose_variables_share_no_key_is_joined(light: SparkSession) -> None:
    rule = f"rule R where a : T b : T {{ p = a.q }} c : U {{ x = b.x }} {NEAR} c in a [0 s, 9 s]"
    program = compiled(TEMPLATES + rule)
    stream = drawn_stream(Random(11))
    inputs = frames(light, stream, 2)
    got = [plain(row) for row in program.matches("R", inputs).collect()]
    assert counted(got) == counted(evaluate(program, stream)["R"])
    assert "MapInArrow" not in program.matches("R", inputs)._jdf.queryExecution().toString()


def test_rules_with_keys_of_their_own_are_found_beside_those_that_share_a_plan(light: SparkSession) -> None:
    crossed = f"rule R where a : T b : T {{ p = a.q }} {NEAR}"
    joined = f"rule J where a : T b : T {{ p = a.q }} c : U {{ x = b.x }} {NEAR} c in a [0 s, 9 s]"
    shared = f"rule S where a : T b : U {{ p = a.p }} {NEAR} rule V where a : U {{ x > 0 }}"
    program = compiled(f"{TEMPLATES}{crossed} {joined} {shared}")
    stream = drawn_stream(Random(24))
    inputs = frames(light, stream, 2)
    together = Counter((row["rule"], row["match_id"]) for row in program.match(inputs).collect())
    alone = Counter(
        (rule, row["match_id"])
        for rule in "RJSV"
        for row in program.matches(rule, stream_tables(stream), engine="local").to_pylist()
    )
    assert together == alone
    assert {rule for rule, _ in alone} == set("RJSV")
