"""Every documented gap is refused under its name, and nothing else is refused as not yet supported."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tocsin
from tocsin import errors
from tocsin.gaps import Gaps

SOURCES = Path(tocsin.__file__).parent
A_AND_E = "template A { x : Integer } template E { x : Integer } "
EMITTED = A_AND_E + "rule R where a : A then emit E at a.timestamp with { x = a.x } "
ENDS = {"A": [{"ts": -(2**63)}, {"ts": 2**63 - 1}], "B": [{"ts": 0}]}
FRAME = SimpleNamespace(columns=["x"], schema=None)


def locally(text: str, rows: Any, **options: Any) -> Any:
    return tocsin.pattern(text, language=options.pop("language", "sase")).match(rows, engine="local", **options)


# By gap: what is refused, of a Spark session where the gap needs one.
WITHOUT_SPARK: dict[Gaps, Callable[[], Any]] = {
    Gaps.TABLE_OF_SPARK: lambda: tocsin.rules(A_AND_E + "rule R where a : A { far(x) }", tables={"far": FRAME}).matches(
        "R", {}, engine="local"
    ),
    Gaps.TABLE_OF_SEVERAL_EVENTS: lambda: tocsin.rules(
        A_AND_E + "rule R where a : A b : A { far(a.x + x) } when b in a [0 s, 1 s]", tables={"far": FRAME}
    ).matches("R", {}),
    Gaps.EDGES_OF_MADE_EVENTS: lambda: locally(
        "AGG y[n <- count(A)](A) RETURN FIRST(y.n) AS n, COUNT(*) AS all", {"A": [{"ts": 1}]}, language="acel"
    ),
    Gaps.ALTERNATIVE_AND_ELEMENT: lambda: locally(
        "PATTERN OR(SEQ(A a, OR(B b, C c)), AND(A a, C c)) WITHIN 10 SECONDS SEMANTICS next",
        {kind: [{"ts": 1}] for kind in "ABC"},
    ),
    Gaps.COMPUTED_ABSENCE: lambda: locally(
        "PATTERN OR(SEQ(A e, NOT A n, A f), A g) WHERE CONCAT(e.k, n.k) = 'pq' WITHIN 5 SECONDS",
        {"A": [{"ts": 1, "k": "p"}]},
    ),
    Gaps.NESTED_ABSENCE: lambda: locally(
        "PATTERN SEQ(SEQ(A e, NOT A n, A f)*, A g)+ WHERE e.k <> n.k WITHIN 5 SECONDS", {"A": [{"ts": 1, "k": "p"}]}
    ),
    Gaps.TIES_OF_EMITTED_EVENTS: lambda: tocsin.rules(EMITTED + "rule S where e : E+ when e in e [0 s, 2 s]").match(
        {"A": [{"ts": 1, "x": 2}]}, engine="local", tie="x"
    ),
    Gaps.CALENDAR_OF_NANOSECONDS: lambda: tocsin.rules(A_AND_E + "rule R where a : A { hour(timestamp) > 3 }").match(
        {"A": [{"ts": 1, "x": 2}]}, engine="local", time_unit="ns"
    ),
    Gaps.ENDS_OF_TIME: lambda: locally("PATTERN SEQ(A a, B b)", ENDS),
    Gaps.CROWDED_INSTANT: lambda: locally(
        "PATTERN A{2} a", {"A": [{"ts": at, "n": n} for at in (0, 1, 2**61) for n in range(3)]}, tie="n"
    ),
}


def made_of_maps(spark: SparkSession) -> Any:
    merged = tocsin.Monoid(zero={}, combine=operator.or_)
    pattern = tocsin.pattern("PATTERN A+ a WITHIN 1 HOUR RETURN MERGED(a.m) AS m", aggregates={"merged": merged})
    return pattern.match({"A": spark.sql("SELECT 1L AS ts, map('a', 1) AS m")})


def of_emitted(spark: SparkSession) -> Any:
    table = spark.createDataFrame([(1,)], "x bigint")
    program = tocsin.rules(EMITTED + "rule S where e : E { known(x) }", tables={"known": table})
    return program.match({"A": stream(spark)}, lateness="1 second")


def totals(spark: SparkSession) -> Any:
    return tocsin.pattern("PATTERN A+ a WITHIN 1 HOUR RETURN COUNT(*) AS n").match(
        {"A": stream(spark)}, lateness="1 second"
    )


def stream(spark: SparkSession) -> Any:
    return spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS x")


ON_SPARK: dict[Gaps, Callable[[SparkSession], Any]] = {
    Gaps.MADE_VALUES: made_of_maps,
    Gaps.TABLE_OF_EMITTED_EVENTS: of_emitted,
    Gaps.STREAM_TOTALS: totals,
}


@pytest.mark.parametrize("gap", WITHOUT_SPARK, ids=str)
def test_a_gap_is_refused_under_its_name(gap: Gaps) -> None:
    with pytest.raises(errors.UnsupportedError) as refused:
        WITHOUT_SPARK[gap]()
    assert refused.value.gap is gap
    assert refused.value.condition == "NOT_YET_SUPPORTED"
    assert refused.value.hint


@pytest.mark.parametrize("gap", ON_SPARK, ids=str)
def test_a_gap_of_spark_is_refused_under_its_name(spark: SparkSession, gap: Gaps) -> None:
    with pytest.raises(errors.UnsupportedError) as refused:
        ON_SPARK[gap](spark)
    assert refused.value.gap is gap


def test_every_gap_has_an_example() -> None:
    """A gap that is closed leaves the table."""
    assert {*WITHOUT_SPARK, *ON_SPARK} == set(Gaps)


def test_every_refusal_names_its_gap() -> None:
    unnamed = [
        f"{path.name}:{node.lineno}"
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "UnsupportedError"
        and not any(keyword.arg == "gap" for keyword in node.keywords)
    ]
    assert unnamed == []
