"""`tocsin.rules`: what users touch."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
from syrupy.assertion import SnapshotAssertion

import tocsin
from tocsin import errors

PROGRAM = """\
template Request { id : Integer }
template Reply   { id : Integer }
template Timeout { id : Integer }
template Outage  { n : Integer }

rule NoReply where
  request : Request
  no reply : Reply { id = request.id }
when
  no reply in request [0 seconds, 5 seconds]
then
  emit Timeout at request.timestamp + 5 seconds with { id = request.id }

rule Down where
  first : Timeout
  all timeouts : Timeout { count(timeouts) >= 3 }
when
  all timeouts in first [0 seconds, 60 seconds]
then
  emit Outage at first.timestamp with { n = count(timeouts) }
"""


@pytest.fixture
def program() -> tocsin.Rules:
    return tocsin.rules(PROGRAM)


def test_a_program_is_compiled_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [rule.name for rule in tocsin.rules(PROGRAM).program.rules] == ["NoReply", "Down"]


def test_the_reference_runs_it(program: tocsin.Rules) -> None:
    rows = {"Request": [{"ts": at * 1_000_000, "id": at} for at in (0, 1, 2, 100)], "Reply": []}
    assert tocsin.reference.events(program, rows)["Outage"] == [{"ts": 5_000_000, "n": 3}]
    found = tocsin.reference.evaluate(program, rows)
    assert {name: len(matches) for name, matches in found.items()} == {"NoReply": 4, "Down": 1}
    assert [row["id"] for row in found["Down"][0]["timeouts"]] == [0, 1, 2]


def test_one_list_of_rows_with_a_type_column(program: tocsin.Rules) -> None:
    rows = [{"kind": "Request", "at": 0, "id": 1}, {"kind": "Reply", "at": 4_000_000, "id": 1}]
    assert tocsin.reference.evaluate(program, rows, time="at", type="kind") == {"NoReply": [], "Down": []}


def test_engines_say_what_they_do_not_run_yet() -> None:
    far = SimpleNamespace(columns=["x"], schema=None)
    text = """
        template A { x : Integer } template B { x : Integer }
        rule Far where a : A { far(x) } then emit B at a.timestamp with { x = a.x }
        rule Near where a : A { near(x) }
        rule Both where a : A b : A { far(a.x + x) } when b in a [0 s, 1 s]
    """
    program = tocsin.rules(text, tables={"far": far, "near": [1]})
    with pytest.raises(errors.UnsupportedError, match=r"`far`, which is a DataFrame, .*\n(.*\n)*.*as rows") as refused:
        program.matches("Far", {}, engine="local")
    assert refused.value.condition == "NOT_YET_SUPPORTED"
    with pytest.raises(errors.UnsupportedError):
        program.events("B", {}, engine="local")
    with pytest.raises(errors.UnsupportedError, match="a DataFrame for several events, does not run on Spark yet"):
        program.matches("Both", {})
    assert str(program.check()).endswith(
        "rule Far, on Spark only: The table `far`, which is a DataFrame, does not run locally yet.\n"
        "rule Both, reference only: The table `far`, a DataFrame for several events, does not run on Spark yet."
    )


def test_the_local_engine_runs_it(program: tocsin.Rules) -> None:
    rows = {"Request": [{"ts": at * 1_000_000, "id": at} for at in (0, 1, 2, 100)], "Reply": []}
    assert (
        program.events("Timeout", rows, engine="local").to_pylist()
        == (tocsin.reference.events(program, rows)["Timeout"])
    )
    assert program.events("Outage", rows, engine="local").to_pylist() == [{"ts": 5_000_000, "n": 3}]
    found = program.matches("NoReply", rows, engine="local")
    assert found.column_names == ["match_id", "start", "end", "request"]


def test_wrong_options_are_told(program: tocsin.Rules) -> None:
    with pytest.raises(errors.InvalidOptionError, match="`engine='sparc'` is none of"):
        program.matches("NoReply", {}, engine="sparc")
    with pytest.raises(errors.InvalidOptionError, match="time="):
        program.matches("NoReply", {}, time=5)  # type: ignore[arg-type]


def test_an_unknown_rule_or_template_is_told(program: tocsin.Rules) -> None:
    with pytest.raises(errors.UnknownRuleError, match="did you mean `NoReply`"):
        program.matches("NoRepley", {})
    with pytest.raises(errors.UnknownRuleError, match="No rule emits `Request`"):
        program.events("Request", {})


def test_the_program_is_printed_in_its_canonical_form(program: tocsin.Rules) -> None:
    again = tocsin.rules(program.to_text())
    assert again.tree == program.tree
    assert again.to_text() == program.to_text()
    assert repr(program) == PROGRAM.strip()
    assert "<b>rule</b> NoReply <b>where</b>" in program._repr_html_()


def test_explain(program: tocsin.Rules, snapshot: SnapshotAssertion) -> None:
    assert str(program.explain()) == snapshot


def test_check_with_rates(program: tocsin.Rules, snapshot: SnapshotAssertion) -> None:
    report = program.check(
        {"Request": {"ts": "timestamp", "id": "bigint"}, "Reply": {"ts": "timestamp", "id": "bigint"}},
        {"Request": "10/s", "Reply": "10/s"},
        lateness="1 second",
        streaming=True,
    )
    assert str(report) == snapshot
    assert report.to_dict()["ok"] is True
    # A time-out has at most the rate of requests: 10/s; Down keeps 60 s of them, NoReply 5 s of both, each 1 s longer.
    # The two variables of Down share their events.
    assert {name: float(rate.per_second) for name, rate in report.rates.items()} == {
        "Request": 10.0,
        "Reply": 10.0,
        "Timeout": 10.0,
        "Outage": 10.0,
    }
    assert report.events == 2 * 70 + 620
    assert [store["events"] for store in report.to_dict()["rules"][1]["sizes"]["stores"]] == [620, 620]


def test_figure_8_1_needs_five_places() -> None:
    program = tocsin.rules(
        """template A { attr : String } template B { attr : String }
        rule R where a : A no b : B { attr = a.attr } when no b in a [0 seconds, 4 seconds]"""
    )
    sizes = program.check(rates={"A": 1, "B": 1}).rules[0].sizes
    assert sizes is not None
    assert [store.events for store in sizes.stores] == [5, 5]


def test_a_mean_of_times_lies_near_each_of_them() -> None:
    """Up to 2.5 seconds after a and before b: in 5 seconds of means there are those of 10 seconds of a, 6 of each."""
    program = tocsin.rules(
        """template A { x : Integer } template B { x : Integer } template C { x : Integer }
        rule R where a : A b : B when b in a [0 s, 5 s] then emit C at avg(a.timestamp, b.timestamp) with { x = 1 }
        rule S where c : C d : C when d in c [0 s, 5 s]"""
    )
    report = program.check(rates={"A": 1, "B": 1})
    assert report.rates["C"].within(5_000_000) == 6 * 11
    assert report.rules[1].sizes.events == report.rates["C"].within(10_000_000)  # as late as a mean comes


def test_a_repetition_has_no_rate_and_is_told_so() -> None:
    program = tocsin.rules(
        """template A { x : Integer } template C { x : Integer }
        rule R where a : A b : A+ when b in a [0 s, 5 s] then emit C at a.timestamp with { x = 1 }
        rule S where c : C d : C when d in c [0 s, 5 s]"""
    )
    report = program.check(rates={"A": 1})
    assert "C" not in report.rates
    assert report.events is None
    assert "unknown" in str(report)


@pytest.mark.parametrize(
    ("rates", "condition"),
    [
        ({"Request": "fast", "Reply": 1}, "INVALID_OPTION"),
        ({"Requestt": 1, "Request": 1, "Reply": 1}, "INVALID_OPTION"),
        ({"Request": 1}, "MISSING_RATE"),
    ],
)
def test_wrong_rates(program: tocsin.Rules, rates: dict[str, object], condition: str) -> None:
    with pytest.raises(tocsin.TocsinError) as caught:
        program.check(rates=rates)
    assert caught.value.condition == condition


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(errors.InvalidOptionError, match="A program is a text"):
        tocsin.rules(5)  # type: ignore[arg-type]


def test_warnings_are_given_at_the_caller_s_line_and_kept() -> None:
    text = "template A { x : Integer } rule R where a : A then alarm(a.x)"
    with pytest.warns(tocsin.TocsinWarning, match="REACTION_IGNORED") as given:
        program = tocsin.rules(text)
    assert given[0].filename == __file__
    assert [warning.condition for warning in program.warnings] == ["REACTION_IGNORED"]


def test_a_rule_that_reads_derived_events_waits_for_them() -> None:
    """Scenario A emits at the time of the incoming transfer, up to fourteen days after it."""
    program = tocsin.rules(
        """template A { x : Integer } template B { x : Integer } template C { x : Integer }
        rule R where a : A b : A when b in a [0 days, 14 days] then emit B at a.timestamp with { x = 1 }
        rule S where b : B c : C when c in b [0 days, 1 day]"""
    )
    report = program.check(rates={"A": "1 per day", "C": "1 per day"})
    sizes = report.rules[1].sizes
    assert sizes is not None
    assert sizes.lateness_us == 14 * 24 * 3600 * 1_000_000
    assert [store.events for store in sizes.stores] == [15 * 16, 15]  # 16 days of A, each in 15 matches
