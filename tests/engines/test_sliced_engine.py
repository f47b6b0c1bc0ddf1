"""The engine around the strategies: what it chooses, what it refuses, what it says. No job runs here."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin import errors
from tocsin.analysis.schema import bind
from tocsin.engines.spark.engine import prepare
from tocsin.kernels.nested_loops import kernel
from tocsin.kernels.reach import MOST_WIDTH_US, walks_links, width_us
from tocsin.options import Options
from tocsin.plan.plan import Plan
from tocsin.plan.prepare import prepare as prepare_rule

SECOND = 1_000_000
SEQ = "PATTERN SEQ(A a, B b) WITHIN 10 SECONDS"


@pytest.fixture(scope="module")
def inputs(spark: SparkSession) -> dict[str, DataFrame]:
    return {name: spark.createDataFrame([], "ts bigint, k int, x int") for name in "ABC"}


SCHEMAS = {name: {"ts": "bigint", "k": "int", "x": "int"} for name in "ABC"}


def compiled(text: str) -> Any:
    return kernel(bind(tocsin.pattern(text).query, SCHEMAS))


def described(text: str) -> str:
    rule = prepare_rule(tocsin.pattern(text).query, SCHEMAS)
    return Plan(rule, Options(strategy="kernel"), dict.fromkeys("ABC", "ts")).describe()


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("PATTERN A a", "join"),
        (SEQ, "kernel"),
        ("PATTERN SEQ(A a, B+ b) WITHIN 10 SECONDS", "kernel"),
        ("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS SEMANTICS next", "kernel"),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 10 SECONDS", "kernel"),
    ],
)
def test_auto_chooses(inputs: dict[str, DataFrame], text: str, strategy: str) -> None:
    assert prepare(tocsin.pattern(text).query, inputs).plan.strategy.name == strategy


def test_the_strategy_that_is_asked_for_runs(inputs: dict[str, DataFrame]) -> None:
    prepared = prepare(tocsin.pattern(SEQ).query, inputs, Options(strategy="kernel"))
    assert prepared.plan.strategy.name == "kernel"
    assert prepared.plan.describe().startswith("sliced kernel")


def test_an_explosion_that_statistics_foretell_is_a_warning(inputs: dict[str, DataFrame]) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B+ b) WITHIN 10 SECONDS")
    few, many = (tocsin.Statistics.of(rates={"A": rate, "B": rate}) for rate in (0.1, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pattern.match(inputs, statistics=few, time_unit="us")
    with pytest.warns(errors.TocsinWarning, match=r"\[EXPLOSION_EXPECTED\] `b` repeats over about 1 000 events"):
        pattern.match(inputs, statistics=many, time_unit="us")


@pytest.mark.parametrize(
    ("pattern", "is_linked"),
    [
        ("SEQ(OR(A a, B b)+, B c) WITHIN 10 SECONDS SEMANTICS next", True),
        ("SEQ(A a, B* b, C c) WHERE SUM(b.x) < c.x WITHIN 10 SECONDS SEMANTICS next", True),  # by its condition
        ("SEQ(A a, B+ b) WHERE b.x > a.x WITHIN 10 SECONDS SEMANTICS next", False),
        ("SEQ(OR(A a, B b)+, B c) WITHIN 10 SECONDS", False),
    ],
)
def test_explain_shows_which_search_walks_link_by_link(
    inputs: dict[str, DataFrame], pattern: str, is_linked: bool
) -> None:
    query = tocsin.pattern(f"PATTERN {pattern}")
    assert prepare(query.query, inputs).plan.loops.walks == is_linked
    assert ("link by link" in query.explain(inputs)) == is_linked
    assert is_linked or not walks_links(query.query)


def test_an_equality_of_all_variables_splits_the_events_like_a_key(inputs: dict[str, DataFrame]) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.k = b.k WITHIN 10 SECONDS")
    shown = str(pattern.explain(inputs))
    assert "partition_by_keys: an attribute that all events of a match share splits the stream" in shown
    assert "shuffle by key k and time slices of 160 s" in shown


@pytest.mark.parametrize(
    "options", [{"strategy": "magic"}, {"slice_us": 0}, {"slice_us": 1.5}, {"max_matches_per_start": True}]
)
def test_options_that_cannot_be_are_refused(inputs: dict[str, DataFrame], options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidOptionError):
        prepare(tocsin.pattern(SEQ).query, inputs, Options(**options))


def test_what_kernels_do_not_run_yet_is_refused(inputs: dict[str, DataFrame]) -> None:
    query = tocsin.pattern("(A ; B) WITHIN 1 SECOND", language="acel").query
    with pytest.raises(errors.UnsupportedError):
        prepare(query, inputs, Options(strategy="kernel")).matches()


def test_inputs_that_the_pattern_does_not_name_are_read_for_contiguity_only(inputs: dict[str, DataFrame]) -> None:
    assert not prepare(tocsin.pattern(SEQ).query, inputs).inputs.others
    contiguous = tocsin.pattern(f"{SEQ} SEMANTICS contiguous").query
    assert list(prepare(contiguous, inputs).inputs.others) == ["C"]


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        (SEQ, None, 160 * SECOND),
        (SEQ, 1, 10 * SECOND),
        (SEQ, 2**63 - 1, MOST_WIDTH_US),
        ("PATTERN SEQ(A a, B b)", None, None),
        ("PATTERN SEQ(A a, B b) WITHIN 1 SECOND AFTER MATCH SKIP PAST LAST EVENT", None, None),
        ("PATTERN SEQ(A a, B b) WITHIN 1 MICROSECOND", 1, 2),
    ],
)
def test_slices_are_as_wide_as_asked_and_never_narrower_than_the_reach(
    text: str, asked: int | None, expected: int | None
) -> None:
    assert width_us(compiled(text), asked) == expected


def test_a_plan_reads_as_what_happens() -> None:
    text = "PATTERN SEQ(A a, NOT C c, B b) WHERE a.x > 5 PARTITION BY k WITHIN 10 SECONDS SEMANTICS next"
    assert described(text).splitlines() == [
        "sliced kernel: one shuffle, then a compiled search",
        "  scan A a  where a.x > 5",
        "  scan B b",
        "  scan NOT C c",
        "  shuffle by key k and time slices of 160 s",
        "       with copies of events up to 10 s after a slice",
        "  search, select next",
    ]
    assert "one task" in described("PATTERN SEQ(A a, B b)")
