"""The types that `bind` infers are those of the DataFrame that Spark builds, which nobody has to ask for them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin.engines.spark.engine import prepare
from tocsin.engines.spark.spark_types import to_spark
from tocsin.options import Options

pytestmark = pytest.mark.spark

SCHEMA = (
    "ts timestamp, n timestamp_ntz, i int, l bigint, s smallint, f float, d double, m decimal(10,2), w decimal(20,5), "
    "t string, b boolean, day date, iv interval day to second, z binary, p struct<x: int, y: decimal(5,1)>, "
    "q array<float>, k map<string,int>"
)
PER_MATCH = """
    a.ts, a.n, a.i, a.l, a.s, a.f, a.d, a.m, a.w, a.t, a.b, a.day, a.iv, a.z, a.p, a.p.y, a.q, a.k, b.f, b.p.y, b.q,
    a.i + 1, a.s * a.s, a.f + a.f, a.m + a.m, a.m + a.w, a.m - a.i, a.m * a.w, a.w * a.w, a.m % a.w, a.m + 1, a.m * 2,
    a.m / a.m, a.i / 2, a.m + a.d, -a.i, -a.m, -a.f, a.i % 7, a.t || 'x',
    a.ts + 5 SECONDS, a.n + 5 SECONDS, a.n - 5 SECONDS, a.ts - a.n, a.ts - a.day, a.iv * 2, a.iv / 2, a.iv + a.iv,
    ABS(a.i), ABS(a.m), CEIL(a.m), CEIL(a.d), FLOOR(a.i), ROUND(a.m), ROUND(a.m, 1), ROUND(a.w, 9), ROUND(a.m, -1),
    ROUND(a.d, 2), ROUND(a.i), SQRT(a.i), MOD(a.m, a.i), SIGN(a.m), LENGTH(a.t), UPPER(a.t),
    COALESCE(a.i, a.s), COALESCE(a.i, a.i), COALESCE(a.m, a.w), COALESCE(a.m, a.i), COALESCE(a.f, a.f),
    COALESCE(a.i, a.d), COALESCE(a.ts, a.day), COALESCE(a.n, a.n), NULLIF(a.i, 3), GREATEST(a.m, a.w),
    CASE WHEN a.i > 1 THEN a.i ELSE a.l END, CASE WHEN a.b THEN a.m ELSE 0 END, a.i > 1 OR a.b, a.iv > 5 SECONDS,
    COUNT(b), COUNT(b.i), SUM(b.i), SUM(b.f), SUM(b.m), AVG(b.m), STDDEV(b.i), RANGE(b.s), RANGE(b.m),
    MIN(b.i), MIN(b.f), MAX(b.m), FIRST(b.s), LAST(b.n), MAX(b.ts), COLLECT(b.i), COLLECT(b.f), COLLECT(b.m),
    SUM(b.m) + 1, b[1].m, b[last].f, SUM(a.m), MIN(a.f)
"""
OVER_ALL = """
    COUNT(*), SUM(b.i), SUM(b.f), SUM(b.m), AVG(b.m), STDDEV(b.i), RANGE(b.s), RANGE(b.m), MIN(b.i), MIN(b.f),
    MAX(b.m), FIRST(b.s), LAST(b.n), MAX(b.ts), COLLECT(b.i), COLLECT(b.m), SUM(b.m) + 1, COUNT(b.t),
    SUM(DISTINCT b.m), SUM(b.m * 2)
"""
COUNTED = ["COUNT(*)", "SUM(b.i)", "SUM(b.d)", "AVG(b.i)", "COUNT(b)", "SUM(b.i) + 1"]


def listed(expressions: str) -> list[str]:
    """The expressions of a list, whose commas may stand in parentheses."""
    found, depth, text = [], 0, ""
    for character in expressions + ",":
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            found.append(text.strip())
            text = ""
        else:
            text += character
    return found


@pytest.mark.parametrize(
    ("expressions", "strategy"),
    [(PER_MATCH, "kernel"), (PER_MATCH, "join"), (OVER_ALL, "kernel"), (OVER_ALL, "trend")],
    ids=["kernel", "join", "over all matches", "trend"],
)
def test_inferred_types_are_those_of_spark(spark: SparkSession, expressions: str, strategy: str) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    values = COUNTED if strategy == "trend" else listed(expressions)
    returned = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
    p = tocsin.pattern(f"PATTERN SEQ(A a, B{{2}} b) WITHIN 1 HOUR RETURN {returned}")
    made = prepare(p.query, {"A": frame, "B": frame}, Options(strategy=strategy))
    seen = {field.name: field.dataType for field in made.matches().schema.fields}
    inferred = {name: to_spark(dtype) for name, dtype in made.plan.rule.bound.columns}
    wrong = [
        f"{value}: inferred {inferred[f'c{place}'].simpleString()}, Spark has {seen[f'c{place}'].simpleString()}"
        for place, value in enumerate(values)
        if inferred[f"c{place}"].simpleString() != seen[f"c{place}"].simpleString()
    ]
    assert not wrong, "\n".join(wrong)
