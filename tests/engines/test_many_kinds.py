"""Patterns and programs of more kinds of events than one word has flags for, on every engine."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.streaming.programs import LiveProgram
from tests.streaming.queries import Folder
from tests.streaming.queries import settings as streaming
from tests.streaming.support import Live

import tocsin
from tocsin import reference
from tocsin.plan.manifest import MOST_FLAGS, Packing

MANY = 70
TYPES = [f"T{number}" for number in range(MANY)]
BRANCHES = ", ".join(f"{name} v{number}" for number, name in enumerate(TYPES))
FILTERS = " AND ".join(f"v{number}.x = {number}" for number in range(MANY))
TEXTS = {
    "types": f"PATTERN SEQ(T0 a, OR({BRANCHES})) WITHIN 3 us",
    "filters": f"PATTERN OR({', '.join(f'A v{number}' for number in range(MANY))}) WHERE {FILTERS} WITHIN 3 us",
    "next": f"PATTERN SEQ(T0 a, OR({BRANCHES})) WITHIN 3 us SEMANTICS next",
    "counted": f"PATTERN OR({BRANCHES}) WITHIN 3 us RETURN COUNT(*) AS n",
}
FORMULAS = {
    "types": " OR ".join(f"({name} AS v{number})" for number, name in enumerate(TYPES)),
    "filters": " OR ".join(f"(A AS v{number} FILTER v{number}[x = {number}])" for number in range(MANY)),
}
PATTERNS = {name: tocsin.pattern(text) for name, text in TEXTS.items()} | {
    f"acel {name}": tocsin.pattern(f"({text}) WITHIN 5 us", language="acel") for name, text in FORMULAS.items()
}
TEMPLATES = "template A { x : Integer } template E { x : Integer } template F { x : Integer }\n"
RULES = TEMPLATES + "\n".join(
    f"rule R{number} where a : A {{ x = {number} }} then emit E at a.timestamp with {{ x = a.x + 1 }}"
    for number in range(MANY - 2)
)
RULES += "\nrule High where e : E { x >= 60 } a : A { x >= 1 } when a in e [0 seconds, 2 seconds]"
PROGRAM = tocsin.rules(RULES)
S = 1_000_000


def rows_of(name: str) -> dict[str, list[dict[str, Any]]]:
    if "filters" in name:
        return {"A": [{"ts": at, "x": at} for at in range(MANY)]}
    return {kind: [{"ts": at, "x": at}] for at, kind in enumerate(TYPES)}


def ids(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(row) if [*row] == ["n"] else row["match_id"] for row in rows)


def test_flags_have_words_of_their_own_only_where_there_are_many() -> None:
    assert Packing(MOST_FLAGS, 3).words == ()
    assert len(Packing(MOST_FLAGS + 1, 3).words) == 1
    assert len(Packing(1000, 10).words) == 17


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name == "filters" else []) for name in PATTERNS]
)
def test_many_kinds_run_locally(name: str) -> None:
    pattern, rows = PATTERNS[name], rows_of(name)
    found = pattern.match(rows, engine="local").to_pylist()
    assert ids(found) == ids(reference.evaluate(pattern, rows))
    assert found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::tocsin.errors.TocsinWarning")  # of ties, which are drawn too
@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, MANY)), max_size=8), st.sampled_from(["types", "filters"]))
def test_many_kinds_are_told_apart(events: list[tuple[int, int]], name: str) -> None:
    rows: dict[str, list[dict[str, Any]]] = {"A": []} if name == "filters" else {kind: [] for kind in TYPES}
    for at, number in events:
        rows["A" if name == "filters" else TYPES[number % MANY]].append({"ts": at, "x": number})
    schema = pa.schema({"ts": pa.int64(), "x": pa.int64()})
    tables = {kind: pa.Table.from_pylist(own, schema) for kind, own in rows.items()}
    for pattern in (PATTERNS[name], PATTERNS[f"acel {name}"]):
        assert ids(pattern.match(tables, engine="local").to_pylist()) == ids(reference.evaluate(pattern, rows))


@pytest.mark.slow
def test_a_thousand_kinds_and_rules_run() -> None:
    kinds = range(1_000)
    templates = "".join(f"template K{kind} {{ x : Integer }} " for kind in kinds)
    rules = "".join(
        f"rule R{kind} where a : K{kind} b : K{(kind + 1) % 1_000} {{ x = a.x }} when b in a [0 s, 5 s] "
        for kind in kinds
    )
    program = tocsin.rules(templates + rules)
    rows = [{"type": f"K{kind}", "ts": kind % 7 * S, "x": 1} for kind in (0, 1, 2, 60, 63, 64, 65, 998, 999)]
    expected = {name: ids(own) for name, own in reference.evaluate(program, rows).items() if own}
    assert expected.keys() == {"R0", "R1", "R63", "R64", "R998"}
    found = program.match(rows, engine="local", time_unit="us").to_pylist()
    assert {name: Counter(row["match_id"] for row in found if row["rule"] == name) for name in expected} == expected
    assert len(found) == sum(map(Counter.total, expected.values()))


def chained() -> list[dict[str, Any]]:
    return [{"type": "A", "ts": at * S, "x": (at * 7) % MANY} for at in range(MANY)]


def test_a_program_of_many_kinds_runs_locally_and_in_steps() -> None:
    rows = {"A": [{"ts": row["ts"], "x": row["x"]} for row in chained()]}
    expected = reference.evaluate(PROGRAM, rows)
    found = PROGRAM.match(rows, engine="local").to_pylist()
    by_rule = {name: Counter(row["match_id"] for row in found if row["rule"] == name) for name in expected}
    assert by_rule == {name: ids(rows) for name, rows in expected.items()}
    assert len(expected["High"]) > 5
    schema = pa.schema({"ts": pa.int64(), "x": pa.int64()})
    live = LiveProgram(PROGRAM, {"A": pa.Table.from_pylist(rows["A"], schema)})
    order = list(range(MANY))
    for begin in range(0, MANY, 9):
        live.take(order[begin : begin + 9])
    live.end()
    assert {name: Counter(own) for name, own in live.found.items()} == by_rule
    assert live.most_remembered < 20


@pytest.mark.parametrize("name", ["types", pytest.param("filters", marks=pytest.mark.long)])
def test_many_kinds_run_in_steps(name: str) -> None:
    pattern, rows = PATTERNS[name], rows_of(name)
    live = Live(pattern, {kind: pa.Table.from_pylist(own) for kind, own in rows.items()}, lateness_us=2, eager=True)
    order = list(range(len(live.ts)))
    random.Random(3).shuffle(order)
    order.sort(key=lambda row: live.ts[row] // 2)
    for begin in range(0, len(order), 11):
        live.take(order[begin : begin + 11])
    live.end()
    assert Counter(live.ids) == ids(reference.evaluate(pattern, rows))


def test_many_kinds_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """A batch with two groups of keys and a stratum above, and a stream of the same program."""
    rows = chained()
    frame = spark.createDataFrame(rows, "type string, ts bigint, x bigint")
    expected = reference.evaluate(PROGRAM, rows)
    batch = [row.asDict() for row in PROGRAM.match(frame).collect()]
    assert {name: Counter(row["match_id"] for row in batch if row["rule"] == name) for name in expected} == {
        name: ids(own) for name, own in expected.items()
    }
    pattern = PATTERNS["filters"]
    events = frame.selectExpr("type", f"ts div {S} AS ts", "x")
    plain = [{"type": "A", "ts": row["ts"] // S, "x": row["x"]} for row in rows]
    found = [row.asDict(recursive=True) for row in pattern.match(events).collect()]
    assert ids(found) == ids(reference.evaluate(pattern, plain))
    with streaming(spark):
        folder = Folder(spark, tmp_path, "type string, ts bigint, x bigint")
        folder.add(rows[:40])
        folder.add([*rows[40:], {"type": "clock", "ts": 10_000 * S, "x": None}])
        folder.run(PROGRAM.match(folder.read(), lateness="0 seconds"))
        assert Counter(row["match_id"] for row in folder.written()) == Counter(row["match_id"] for row in batch)
