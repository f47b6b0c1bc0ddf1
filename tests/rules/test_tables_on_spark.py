"""Tables and the calendar in conditions on single events: Columns and joins that answer as the reference does."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from decimal import Decimal
from functools import reduce
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.rules.support import ABC, compiled
from tests.rules.test_on_spark import counted, found, frames

import tocsin
from tocsin import errors
from tocsin.analysis.schema import bind
from tocsin.kernels.nested_loops import kernel
from tocsin.language.rule_expressions import CALENDAR
from tocsin.reference import evaluate

pytestmark = pytest.mark.spark

PAIRS = """
template A { k : String, x : Integer, v : Double, d : Amount }
template B { k : String, x : Integer, v : Double, d : Amount }
"""
SCHEMA = "ts bigint, k string, x bigint, v double, d decimal(10, 2)"
EVENTS: list[dict[str, Any]] = [
    {"ts": at * 1_000_000, "k": k, "x": x, "v": v, "d": d}
    for at, (k, x, v, d) in enumerate(
        [
            ("p", 1, 1.0, Decimal("1.50")),
            ("p", 2, -0.0, Decimal("2.00")),
            ("q", 1, float("nan"), None),
            (None, 1, 2.5, Decimal("1.50")),
            ("p", None, None, Decimal("7.00")),
            ("r", 5, 1.0, Decimal("1.50")),
            ("q", 2, 0.0, Decimal("3.00")),
            ("p", 1, 1.0, Decimal("1.50")),
        ]
    )
]
ASKED = [
    ("known(k, x)", "k string, x bigint", [("p", 1), ("q", 2), ("q", 2)]),
    ("NOT known(k, x)", "k string, x bigint", [("p", 1), ("q", 2)]),
    ("NOT known(k, x)", "k string, x bigint", [("p", 1), ("q", None), (None, 5)]),
    ("known(k, x) OR x > 1", "k string, x bigint", [("p", None), ("q", 1)]),
    ("NOT known(k)", "k string", [("p",), (None,)]),
    ("NOT known(x)", "x int", []),
    ("known(v)", "v double", [(0.0,), (float("nan"),)]),
    ("known(x)", "v double", [(1.0,), (2.5,)]),
    ("NOT known(d, v)", "d decimal(12, 3), x bigint", [(Decimal("1.500"), 1), (Decimal("2"), 0)]),
    ("known(upper(k), x + 1)", "k string, x bigint", [("P", 2)]),
]
SIMPLE = "rule R{0} where a : A {{ {1} }}"
RULES = PAIRS + "\n".join(
    SIMPLE.format(number, asked.replace("known", f"known{number}")) for number, (asked, _, _) in enumerate(ASKED)
)
AROUND = """
rule Around where a : A { known0(k, x) } all b : A { NOT known1(k, x), x > 0 } no c : B { known3(k, x) }
when all b in a [0 s, 5 s] no c in a [2 s, 2 s]
"""
STREAM = {"A": EVENTS, "B": EVENTS[2:5]}


def program_with(tables: list[Any]) -> tocsin.Rules:
    return compiled(RULES + AROUND, tables={f"known{number}": table for number, table in enumerate(tables)})


def wanted_ids(*rules: str) -> Counter[tuple[str, str]]:
    matches = evaluate(program_with([rows for _, _, rows in ASKED]), STREAM)
    assert sum(map(bool, matches.values())) > 8
    return Counter(
        (rule, row.match_id)  # type: ignore[attr-defined]
        for rule, some in matches.items()
        for row in some
        if rule in rules or not rules
    )


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_requirement_54_a_dataframe_answers_as_its_rows_do(spark: SparkSession, partitions: int) -> None:
    with light_settings(spark, partitions) as light:
        inputs = {
            name: light.createDataFrame([tuple(row.values()) for row in some], SCHEMA) for name, some in STREAM.items()
        }
        frames_of = [light.createDataFrame(rows, schema) for _, schema, rows in ASKED]
        rules = () if partitions == 2 else ("R2", "Around")
        given = [frames_of, [rows for _, _, rows in ASKED]] if partitions == 2 else [frames_of]
        for tables in given:
            program = program_with(tables)
            matches = [
                program.matches(rule.name, inputs).selectExpr(f"'{rule.name}' AS rule", "match_id")
                for rule in program.program.rules
                if rule.name in rules or not rules
            ]
            ids = Counter((row["rule"], row["match_id"]) for row in found(reduce(DataFrame.union, matches)))
            assert ids == wanted_ids(*rules)


def test_requirement_54_arrow_and_pandas_tables_locally() -> None:
    names = [re.findall(r"(\w) \w+", schema) for _, schema, _ in ASKED]
    arrow = [
        pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)})
        for columns, (_, _, rows) in zip(names, ASKED, strict=True)
    ]
    pandas = [
        pd.DataFrame(rows, columns=columns, dtype=object) for columns, (_, _, rows) in zip(names, ASKED, strict=True)
    ]
    pandas[6] = arrow[6]  # what is NaN to Arrow is nothing to pandas
    for tables in (arrow, pandas):
        program = program_with(tables)
        ids = Counter(
            (rule.name, match_id)
            for rule in program.program.rules
            for match_id in program.matches(rule.name, STREAM, engine="local")["match_id"].to_pylist()
        )
        assert ids == wanted_ids()


def test_a_table_in_one_frame_of_several_types(spark: SparkSession) -> None:
    program = ABC + "rule R where a : A { NOT far(x) } b : B { far(x), x < 3 } when b in a [-9 s, 9 s]"
    rows = [("A", 1, 1), ("A", 2, 2), ("B", 3, 1), ("B", 4, 2), ("C", 5, 1)]
    stream = {kind: [{"ts": at, "x": x} for name, at, x in rows if name == kind] for kind in "AB"}
    wanted = evaluate(compiled(program, tables={"far": [1]}), stream)["R"]
    with light_settings(spark, 2) as light:
        far = light.createDataFrame([(1,)], "x bigint")
        inputs = light.createDataFrame(rows, "type string, ts bigint, x bigint")
        matches = found(compiled(program, tables={"far": far}).matches("R", inputs))
    assert [(row["a"]["x"], row["b"]["x"]) for row in matches] == [(row["a"]["x"], row["b"]["x"]) for row in wanted]
    assert set(matches[0]["a"]) == {"type", "ts", "x"}


def test_no_job_runs_and_a_wrong_table_is_refused(spark: SparkSession) -> None:
    with light_settings(spark, 2) as light:
        fails = light.range(1).selectExpr("raise_error('it ran') AS x")
        program = compiled(
            ABC + "rule R where a : A { far(x) }", tables={"far": fails.selectExpr("CAST(x AS BIGINT) x")}
        )
        inputs = frames(light, program, {"A": []}, "ts bigint, x bigint")
        assert program.matches("R", inputs).columns == ["match_id", "start", "end", "a"]
        for table in (light.createDataFrame([("a",)], "x string"), [("a",)]):
            wrong = compiled(ABC + "rule R where a : A { far(x) }", tables={"far": table})
            with pytest.raises(errors.TypeMismatchError, match="`far` holds a string, and is asked for a integer"):
                wrong.matches("R", inputs)


ZONES = (None, "Europe/Brussels", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia")
TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1900, 1, 1),
    dt.datetime(2021, 1, 3, 12, 30),
    dt.datetime(2020, 12, 31, 23, 30, 15),
    dt.datetime(2024, 2, 29, 0, 0, 59, 1),
    dt.datetime(2026, 3, 29, 0, 59, 59, 999_999),
    dt.datetime(2026, 3, 29, 1, 0),
    dt.datetime(2026, 10, 25, 0, 30),
    dt.datetime(2026, 10, 25, 1, 30),
    dt.datetime(2018, 1, 1),
]


@pytest.mark.parametrize("kind", ["bigint", "timestamp", "timestamp_ntz"])
def test_requirement_53_the_calendar_is_that_of_the_reference(spark: SparkSession, kind: str) -> None:
    """Every field in some zones: a rule that emits them, with a condition that Spark decides."""
    shown = {
        (field, zone): f"{field}(timestamp{'' if zone is None else f', {zone!r}'})"
        for field in CALENDAR
        for zone in ZONES
    }
    attributes = ", ".join(f"f{place} : Integer" for place in range(len(shown)))
    values = ", ".join(
        f"f{place} = {text.replace('timestamp', 'a.timestamp')}" for place, text in enumerate(shown.values())
    )
    program = tocsin.rules(
        f"template A {{ x : Integer }} template F {{ {attributes} }} "
        f"rule R where a : A {{ hour(timestamp, 'Asia/Kolkata') >= 5, weekday(timestamp) < 7 }} "
        f"then emit F at a.timestamp with {{ {values} }}"
    )
    epoch = dt.datetime(1970, 1, 1)
    given = [(at - epoch) // dt.timedelta(microseconds=1) if kind == "bigint" else at for at in TIMES]
    wanted = tocsin.reference.events(program, {"A": [{"ts": at, "x": 1} for at in given]})["F"]
    assert len(wanted) > 4
    with light_settings(spark, 2) as light:
        light.conf.set("spark.sql.session.timeZone", "Australia/Lord_Howe")
        try:
            zoned = [at.replace(tzinfo=dt.UTC) if kind == "timestamp" else at for at in given]  # type: ignore[union-attr]
            frame = light.createDataFrame([(at, 1) for at in zoned], f"ts {kind}, x bigint")
            emitted = found(program.events("F", {"A": frame}).drop("ts"))
            matched = program.matches("R", {"A": frame}).count()
        finally:
            light.conf.set("spark.sql.session.timeZone", "UTC")
    fields = [{name: value for name, value in row.items() if name != "ts"} for row in wanted]
    assert matched == len(wanted)
    assert Counter(map(repr, emitted)) == Counter(map(repr, fields))


def test_fields_of_two_events_are_compared_in_the_loops(spark: SparkSession) -> None:
    program = compiled(
        ABC
        + "rule R where a : A b : B { second(timestamp) = second(a.timestamp, 'Asia/Kolkata'), odd(x) = odd(a.x) } "
        + "when b in a [0 s, 200 s] distinct(a, b)",
        tables={"odd": [1, 3, 5]},
    )
    stream = {
        name: [{"ts": at * 1_000_000, "x": at % 4 or None} for at in range(start, 200, 7)]
        for name, start in (("A", 1), ("B", 5))
    }
    wanted = evaluate(program, stream)["R"]
    assert wanted
    (timed,) = program.program.timed("ts").rules
    kinds = {"ts": "bigint", "x": "bigint"}
    found_by = kernel(bind(timed.query, {"A": kinds, "B": kinds}, time="ts")).conditions
    assert not found_by.residual
    with light_settings(spark, 2) as light:
        matches = found(program.matches("R", frames(light, program, stream, "ts bigint, x bigint")))
    assert counted(matches) == counted(wanted)
    assert counted(program.matches("R", stream, engine="local").to_pylist()) == counted(wanted)
