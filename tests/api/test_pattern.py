"""`tocsin.pattern` and what it returns, without Spark."""

from __future__ import annotations

import dataclasses
import datetime as dt
import warnings
from typing import Any

import pytest
from pyspark.sql import types as T
from syrupy.assertion import SnapshotAssertion

import tocsin
from tocsin import errors
from tocsin.language import ast
from tocsin.language.sase.parser import parse

TEXT = "PATTERN SEQ(Login a, Transfer b)\nWHERE a.user = b.user\nWITHIN 10 MINUTES"
SCHEMA = {"ts": "timestamp", "user": "string", "amount": "double"}
BOTH = {"Login": SCHEMA, "Transfer": SCHEMA}
NOT_ON_SPARK = "AGG y[s <- sum(B.x)](A ; B+) WITHIN 6 us RETURN FIRST(y.s), COUNT(*)"


def test_text_builder_and_tree_give_the_same_pattern() -> None:
    from_text = tocsin.pattern(TEXT)
    built = (
        tocsin.seq(tocsin.event("Login", "a"), tocsin.event("Transfer", "b"))
        .where(tocsin.col("a.user") == tocsin.col("b.user"))
        .within(minutes=10)
    )
    assert tocsin.pattern(built).query == from_text.query
    assert tocsin.pattern(built).text == TEXT
    assert tocsin.pattern(parse(TEXT)).query == from_text.query
    assert isinstance(from_text.tree, ast.Query)


def test_a_pattern_shows_its_text_and_cannot_be_changed() -> None:
    pattern = tocsin.pattern(f"\n{TEXT}\n")
    assert repr(pattern) == TEXT
    assert pattern._repr_html_().startswith("<pre><b>PATTERN</b> <b>SEQ</b>(Login a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        pattern.text = ""  # type: ignore[misc]
    assert pattern == tocsin.pattern(f"\n{TEXT}\n")


def test_errors_quote_the_name_of_the_text() -> None:
    with pytest.raises(errors.QuerySyntaxError, match=r"at fraud\.sase:1:1"):
        tocsin.pattern("PATERN A a", name="fraud.sase")


def test_what_is_no_pattern_is_refused() -> None:
    with pytest.raises(errors.InvalidOptionError, match="not a list"):
        tocsin.pattern(["A", "B"])  # type: ignore[arg-type]


def test_options_are_named() -> None:
    with pytest.raises(TypeError):
        tocsin.pattern(TEXT, "sase")  # type: ignore[misc]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(errors.InvalidOptionError, match="did you mean `sase`"):
        tocsin.pattern(TEXT, language="sas")


def test_warnings_are_given_at_the_caller_s_line_and_kept() -> None:
    with pytest.warns(tocsin.TocsinWarning, match="SLIDE_IGNORED") as given:
        pattern = tocsin.pattern("PATTERN A a WITHIN (10 SECONDS, 1 SECOND)")
    assert [warning.condition for warning in pattern.warnings] == ["SLIDE_IGNORED"]
    assert given[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tocsin.pattern(TEXT).warnings == ()


# --- check ----------------------------------------------------------------------------------------


def test_check_tells_what_is_known_before_anything_runs() -> None:
    report = tocsin.pattern(TEXT).check(BOTH)
    assert report.is_bounded
    assert report.network.distance("a", "b") == (1, 599_999_999)
    assert report.lifetimes["a"] == 599_999_999
    assert [str(key) for key in report.keys.classes] == ["a.user = b.user"]
    assert report.sizes is None
    assert [name for name, _ in report.columns] == ["a", "b"]
    assert repr(report) == str(report)
    assert report._repr_html_().startswith("<pre>== Result ==")


def test_check_reckons_the_state_from_rates_and_lateness() -> None:
    pattern = tocsin.pattern(TEXT)
    rates = {"Login": "10/s", "Transfer": 2}
    report = pattern.check(BOTH, rates)
    assert report.sizes is not None
    assert report.sizes.events == 6_001 + 1
    for lateness in ("100 seconds", dt.timedelta(seconds=100)):
        later = pattern.check(BOTH, rates, lateness=lateness).sizes
        assert later is not None
        assert later.events == 7_001 + 201
    assert "== State ==" in str(report)


def test_check_collects_what_is_wrong() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.x > 'text' AND b.ts < a.ts AND b.y = 1 WITHIN 1 HOUR")
    with pytest.raises(errors.QueryErrors) as refusal:
        pattern.check({"A": {"ts": "timestamp", "x": "int"}, "B": {"ts": "timestamp"}}, {"A": "often"}, lateness="soon")
    assert [one.condition for one in refusal.value.errors] == [
        "TYPE_MISMATCH",
        "UNKNOWN_ATTRIBUTE",
        "CONTRADICTORY_DISTANCES",
        "INVALID_OPTION",
        "INVALID_OPTION",
    ]


def test_an_unbounded_pattern_is_told_and_on_a_stream_refused() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b)")
    schemas = {"A": {"ts": "bigint"}, "B": {"ts": "bigint"}}
    report = pattern.check(schemas)
    assert report.unbounded == ("a", "b")
    assert "`a` and `b` may lie arbitrarily far apart" in str(report)
    with pytest.raises(errors.UnboundedPatternError):
        pattern.check(schemas, streaming=True)
    assert tocsin.pattern("PATTERN A+ a").check(schemas).unbounded == ("a", "a")


def test_distances_in_conditions_count_with_the_right_clock() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE b.at - a.at <= 5 SECONDS")
    schemas = {"A": {"at": "timestamp"}, "B": {"at": "timestamp"}}
    assert pattern.check(schemas, time="at").is_bounded
    mixed = {"A": {"at": "timestamp", "ts": "timestamp"}, "B": {"at": "timestamp"}}
    assert not pattern.check(mixed, time={"A": "ts", "B": "at"}).is_bounded


def test_a_schema_of_another_kind_is_refused() -> None:
    with pytest.raises(errors.InvalidInputError, match="not a list"):
        tocsin.pattern("PATTERN A a").check({"A": ["ts"]})  # type: ignore[dict-item]


@pytest.mark.parametrize("wrong", [5, ["Login"], "Login", {5: SCHEMA}, {"Login": {"ts": 5}}, {"Login": {5: "int"}}])
def test_what_is_no_schema_is_refused_with_advice(wrong: Any) -> None:
    with pytest.raises(errors.InvalidInputError) as refusal:
        tocsin.pattern("PATTERN Login a").check(wrong)
    assert refusal.value.hint


def test_without_schemas_a_check_reports_all_but_the_columns() -> None:
    p = tocsin.pattern("PATTERN SEQ(Login a, Transfer b) WITHIN 10 SECONDS RETURN a.user")
    report = p.check(rates={"Login": "1/s", "Transfer": "1/s"})
    assert not report.columns
    assert report.lifetimes["a"] == 9_999_999
    assert report.sizes is not None
    with pytest.raises(errors.InvalidOptionError):
        p.check(rates={"Logins": "1/s", "Transfer": "1/s"})


def test_one_schema_with_a_type_column_holds_for_every_event_type() -> None:
    schema = T.StructType().add("ts", "timestamp").add("kind", "string").add("user", "string")
    report = tocsin.pattern(TEXT).check(schema, type="kind")
    assert [str(kind) for _, kind in report.columns] == ["struct<ts:timestamp,kind:string,user:string>"] * 2
    with pytest.raises(errors.MissingColumnError, match="no type column `type` in the input"):
        tocsin.pattern(TEXT).check(schema)
    with pytest.raises(errors.InvalidInputError, match="holds timestamp, not strings"):
        tocsin.pattern(TEXT).check(schema, type="ts")


@pytest.mark.parametrize(
    "options",
    [{"time": None}, {"time": 5}, {"type": 5}, {"lateness": 5}, {"rates": {"Login": "x"}}, {"rates": 5}],
    ids=str,
)
def test_an_option_of_the_wrong_type_is_refused_with_advice(options: Any) -> None:
    with pytest.raises(errors.InvalidOptionError) as refusal:
        tocsin.pattern(TEXT).check(BOTH, **options)
    assert refusal.value.hint


def test_a_rate_of_an_event_type_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(errors.InvalidOptionError, match="did you mean `Login`") as refusal:
        tocsin.pattern(TEXT).check(BOTH, {"Logn": 1})
    assert refusal.value.message == "`rates` names `Logn`, which is no event type of the pattern."


def test_a_report_is_data_for_tools() -> None:
    report = tocsin.pattern(TEXT).check(BOTH, {"Login": 1, "Transfer": 1}).to_dict()
    assert report["ok"]
    assert report["distances_us"] == [{"from": "a", "to": "b", "least": 1, "greatest": 599_999_999}]
    assert report["sizes"]["events"] == 601
    assert report["runs_on_spark"]


# --- explain --------------------------------------------------------------------------------------


def test_explain_prints_itself() -> None:
    report = tocsin.pattern(TEXT).explain()
    assert repr(report) == str(report)
    assert isinstance(report, str)
    headings = [line for line in report.splitlines() if line.startswith("==")]
    expected = ("Query", "Logical plan", "Temporal network", "Rules", "Statistics", "Strategy")
    assert headings == [f"== {heading} ==" for heading in expected]


@pytest.mark.parametrize("strategy", ["kernel", "aggregate"])
def test_explain_shows_that_a_policy_is_walked_link_by_link(strategy: str, snapshot: SnapshotAssertion) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(OR(A a, B b)+, C c) PARTITION BY k WITHIN 1 HOUR SEMANTICS next")
    assert pattern.explain(strategy=strategy).partition("== Strategy ==\n")[2] == snapshot
    loops = tocsin.pattern("PATTERN SEQ(A a, B+ b, C c) PARTITION BY k WITHIN 1 HOUR SEMANTICS next")
    assert "link by link" not in loops.explain(strategy=strategy)


def test_explain_says_why_there_is_no_plan() -> None:
    report = tocsin.pattern(NOT_ON_SPARK, language="acel").explain()
    assert "none on Spark: FIRST over all matches, of events that PROJECT or AGG has made" in report


def test_explain_and_check_tell_of_time_outs() -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS RETURN a.ts WITH TIMEOUTS")
    assert "  search, then for beginnings that nothing goes on with" in pattern.explain()
    report = pattern.check({kind: {"ts": "timestamp"} for kind in "AB"})
    assert report.columns == (("ts", "timestamp"), ("status", "string"), ("missing", "string"))
    assert report.refusal is None


def test_explain_tells_of_events_that_may_lie_arbitrarily_far_apart() -> None:
    assert "unbounded: a and b may lie arbitrarily far apart" in tocsin.pattern("PATTERN SEQ(A a, B+ b)").explain()


def test_explain_counts_with_statistics() -> None:
    known = tocsin.Statistics.of({"Login": 1_000_000, "Transfer": 50_000}, keys=1000)
    report = tocsin.pattern(TEXT).explain(statistics=known)
    assert "Login     1 000 000" in report
    assert "the cheapest by the statistics" in report


def test_explain_shows_the_joins_in_the_order_that_was_chosen() -> None:
    known = tocsin.Statistics.of({"Login": 1_000_000, "Transfer": 100}, distinct={"user": 1_000_000})
    report = tocsin.pattern(TEXT).explain(statistics=known, strategy="join")
    assert "join order: b, a" in report
    assert report.index("scan Transfer b") < report.index("join Login a")


def test_explain_shows_no_joins_of_what_cannot_be_joined() -> None:
    report = tocsin.pattern("PATTERN SEQ(A a, B+ b) WITHIN 1 HOUR").explain(strategy="join")
    assert "not possible: The iteration of `b` does not run as joins." in report
    assert "scan A a" not in report
    with pytest.raises(errors.InvalidOptionError, match="did you mean `kernel`"):
        tocsin.pattern(TEXT).explain(strategy="kernl")


def test_explain_calls_the_time_column_by_its_name() -> None:
    assert "b.at - a.at in [1 µs, 599.999999 s]" in tocsin.pattern(TEXT).explain(time="at", strategy="join")
    assert "b.ts - a.at in" in tocsin.pattern(TEXT).explain(time={"Login": "at", "Transfer": "ts"}, strategy="join")
    with pytest.raises(errors.InvalidOptionError):
        tocsin.pattern(TEXT).explain(time=5)  # type: ignore[arg-type]


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(errors.InvalidOptionError, match="did you mean `formatted`"):
        tocsin.pattern(TEXT).explain(mode="formattd")


def test_the_logical_plan_shows_every_clause() -> None:
    report = tocsin.pattern(
        """
        PATTERN SEQ(A a, NOT B n, OR(C c, AND(D d, E{2,3} e)))
        PARTITION BY k WHERE [j] AND n.x > a.x WITHIN 1 HOUR
        SEMANTICS next AFTER MATCH SKIP TO FIRST a OUTPUT longest
        RETURN a.x, COUNT(e) AS n_e HAVING n_e > 1
        """
    ).explain()
    for line in (
        "Absent B n  after last(a), before first(c, d, e)  where n.x > a.x",
        "Repeat 2 to 3",
        "partition by k",
        "same j",
        "selection next",
        "after match to first a",
        "output longest",
        "return a.x AS x, COUNT(e) AS n_e",
        "having COUNT(e) > 1",
    ):
        assert line in report
