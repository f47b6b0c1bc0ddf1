"""ACEL through the front door: compiled, checked, explained, and run."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import tocsin
from tocsin import errors
from tocsin.plan.strategies import refusals, unsupported

ROWS: dict[str, list[dict[str, Any]]] = {
    "SELL": [{"ts": 1, "price": 4}, {"ts": 2, "price": 5}, {"ts": 4, "price": 7}],
    "BUY": [{"ts": 3, "price": 5}],
}
SCHEMA = {"ts": "bigint", "price": "bigint"}
SCHEMAS = {"SELL": SCHEMA, "BUY": SCHEMA}
PRODUCT = tocsin.Monoid(zero=1, combine=operator.mul)


def acel(text: str, **options: Any) -> tocsin.Pattern:
    return tocsin.pattern(text, language="acel", **options)


def test_a_pattern_keeps_its_text_and_names_its_file_in_errors() -> None:
    assert repr(acel("SELL ; BUY")) == "SELL ; BUY"
    with pytest.raises(errors.QuerySyntaxError, match=r"at stocks\.acel:1:6"):
        acel("SELL ;", name="stocks.acel")


def test_the_reference_runs_it() -> None:
    pattern = acel("(SELL AS s ; BUY AS b) FILTER s[price > 4]")
    assert tocsin.reference.evaluate(pattern, ROWS) == [
        {
            "start": 2,
            "end": 3,
            "SELL": {"ts": 2, "price": 5},
            "s": {"ts": 2, "price": 5},
            "BUY": {"ts": 3, "price": 5},
            "b": {"ts": 3, "price": 5},
        }
    ]


def test_check_knows_the_types_of_the_result() -> None:
    report = acel(
        "PROJECT[s(price), y](AGG y[n <- count(SELL), mean <- avg(s.price), all <- collect(s.price)](SELL AS s ; SELL))"
    ).check(SCHEMAS)
    assert dict(report.columns) == {
        "s": "struct<price:bigint>",
        "y": "struct<n:bigint,mean:double,all:array<bigint>>",
    }
    assert report.refusal is None


def test_a_window_makes_a_formula_bounded() -> None:
    assert acel("SELL ; BUY WITHIN 5 MINUTES").check(SCHEMAS, streaming=True).is_bounded
    with pytest.raises(errors.UnboundedPatternError):
        acel("SELL ; BUY").check(SCHEMAS, streaming=True)


def test_sizes_are_told_with_rates() -> None:
    report = acel("SELL AS s ; BUY+ WITHIN 5 SECONDS").check(SCHEMAS, {"SELL": "10/s", "BUY": "10/s"})
    assert report.sizes is not None


def test_explain_shows_the_plan_and_the_automaton() -> None:
    shown = acel("(SELL AS s ; BUY) FILTER s[price > 4]").explain()
    assert "Filter s[price > 4]" in shown
    assert "Sequence by position" in shown
    assert "automaton: events are read one by one, with registers for what neighbours and aggregates decide" in shown
    assert "one task: no key and no window splits the events" in shown
    assert "→ 1  t0 and t1 / SELL: event, s: event" in shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELL ; BUY", "ACEL's `;`"),
        ("SELL : BUY", "ACEL's `:`"),
        ("SELL+", "ACEL's `+`"),
        ("SELL@+", "ACEL's `@+`"),
        ("SELL AS s", "ACEL's AS"),
        ("SELL AND SELL", "ACEL's AND"),
        ("PROJECT[SELL](SELL)", "PROJECT"),
        ("AGG y[n <- count(SELL)](SELL)", "AGG"),
        ("NEXT(SELL)", "NEXT"),
        ("SELL FILTER SELL[price > 4]", "The predicate `SELL[price > 4]` of a FILTER"),
        ("SELL FILTER SELL[same(price)]", "The predicate `SELL[same(price)]` of a FILTER"),
    ],
)
def test_only_automata_run_what_acel_says(text: str, words: str) -> None:
    pattern = acel(text)
    refused = refusals(pattern.query)
    runs = [name for name, refusal in refused.items() if refusal is None]
    assert runs in (["automaton"], ["automaton", "aggregate"])  # the second folds automata too
    refusal = refused["kernel"]
    assert refusal is not None
    assert refusal.message == f"{words} does not run with the strategy `kernel`."
    assert refusal.where is not None
    assert unsupported(pattern.query) is None
    expected = tocsin.reference.evaluate(pattern, ROWS)
    for strategy in ("auto", *runs):
        found = pattern.match(ROWS, engine="local", strategy=strategy).to_pylist()
        assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)


def test_what_means_the_same_in_sase_runs_everywhere() -> None:
    assert unsupported(acel("SELL OR BUY").query) is None
    found = acel("SELL OR BUY").match(ROWS, engine="local")
    assert found.num_rows == 4


# --- aggregates of one's own ----------------------------------------------------------------------


def test_a_monoid_aggregates_in_agg() -> None:
    pattern = acel(
        "AGG y[p <- product(SELL.price)](SELL+) FILTER y[p > 30] RETURN y.p", aggregates={"product": PRODUCT}
    )
    found = sorted(row["p"] for row in tocsin.reference.evaluate(pattern, ROWS))
    assert found == [35, 140]


def test_a_monoid_aggregates_in_where_return_and_having() -> None:
    returns = "RETURN PRODUCT(s.price) AS p, COUNT(s) AS n HAVING product(s.price) < 30"
    text = f"PATTERN SELL+ s WHERE Product(s.price) > 6 {returns}"
    pattern = tocsin.pattern(text, aggregates={"Product": PRODUCT})
    found = sorted((row["p"], row["n"]) for row in tocsin.reference.evaluate(pattern, ROWS))
    assert found == [(7, 1), (20, 2), (28, 2)]
    assert dict(pattern.check(SCHEMAS).columns) == {"p": "bigint", "n": "bigint"}


def test_a_monoid_aggregates_over_all_matches() -> None:
    pattern = tocsin.pattern(
        "PATTERN SELL s RETURN COUNT(*) AS n, product(s.price) AS p", aggregates={"product": PRODUCT}
    )
    assert tocsin.reference.evaluate(pattern, ROWS) == [{"n": 3, "p": 140}]
    assert tocsin.reference.evaluate(pattern, {"SELL": []}) == [{"n": 0, "p": 1}]


def test_r18_a_null_spoils_a_monoid_in_agg_and_is_passed_over_in_return() -> None:
    rows = {"SELL": [{"ts": 1, "price": 4}, {"ts": 2, "price": None}]}
    pattern = acel(
        "AGG y[p <- product(SELL.price)](SELL : SELL) RETURN y.p, product(SELL.price) AS known",
        aggregates={"product": PRODUCT},
    )
    assert tocsin.reference.evaluate(pattern, rows) == [{"p": None, "known": 4}]


def test_a_monoid_lifts_and_finishes_and_says_its_type() -> None:
    mean = tocsin.Monoid(
        zero=(0, 0),
        lift=lambda value: (value, 1),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        finish=lambda pair: pair[0] / pair[1] if pair[1] else None,
        gives="double",
    )
    pattern = acel(
        "AGG y[m <- mean(SELL.price), none <- mean(BUY.price)](SELL : SELL OR BUY : BUY)", aggregates={"mean": mean}
    )
    assert [row["y"] for row in tocsin.reference.evaluate(pattern, ROWS)] == [{"m": 4.5, "none": None}]
    assert dict(pattern.check(SCHEMAS).columns)["y"] == "struct<m:double,none:double>"


def test_kernels_and_automata_run_a_monoid_in_where() -> None:
    text = "PATTERN SELL+ s WHERE product(s.price) > 6 RETURN COUNT(s) AS n"
    pattern = tocsin.pattern(text, aggregates={"product": PRODUCT})
    able = [name for name, refusal in refusals(pattern.query).items() if refusal is None]
    assert able == ["kernel", "automaton"]
    for strategy in ("auto", *able):
        found = pattern.match(ROWS, engine="local", strategy=strategy)
        assert sorted(found["n"].to_pylist()) == [1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("aggregates", "words"),
    [
        ({"sum": PRODUCT}, "There is a function `sum` already"),
        ({"Sqrt": PRODUCT}, "There is a function `sqrt` already"),
        ({"p": PRODUCT, "P": PRODUCT}, "There is a function `p` already"),
        ({"two words": PRODUCT}, "cannot be called 'two words'"),
        ({"product": operator.mul}, "is a builtin_function_or_method, not a Monoid"),
    ],
)
def test_aggregates_that_cannot_be_are_refused(aggregates: Any, words: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=words):
        acel("SELL", aggregates=aggregates)


def test_a_monoid_needs_functions() -> None:
    with pytest.raises(errors.InvalidOptionError, match="`combine` of a Monoid is not a function"):
        tocsin.Monoid(zero=0, combine=3)  # type: ignore[arg-type]


def test_aggregates_belong_to_a_text() -> None:
    with pytest.raises(errors.InvalidOptionError, match="belong to a text"):
        tocsin.pattern(tocsin.event("SELL", "s"), aggregates={"product": PRODUCT})  # type: ignore[arg-type]
