"""The Python builder: the same trees as text, immutable, with errors that point at the caller's line."""

from __future__ import annotations

import datetime as dt
import inspect
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import QuerySyntaxError
from tocsin.language import ast
from tocsin.language import expressions as ex
from tocsin.language.builder import (
    Draft,
    Element,
    Value,
    absent,
    all_of,
    any_of,
    avg,
    call,
    col,
    collect,
    count,
    count_distinct,
    event,
    expr,
    first,
    last,
    lit,
    max_,
    min_,
    range_,
    same,
    seq,
    stddev,
    sum_,
    when,
)
from tocsin.language.sase import parse, parse_expression
from tocsin.source import CallSite

A, B, C = event("A", "a"), event("B", "b"), event("C", "c")
AX, BX = col("a.x"), col("b.x")
PAIR = seq(A, B)

QUERIES = [
    (A, "PATTERN A a"),
    (event("A"), "PATTERN A"),
    (seq(A, B, C), "PATTERN SEQ(A a, B b, C c)"),
    (all_of(A, any_of(B, C)), "PATTERN AND(A a, OR(B b, C c))"),
    (seq(A, absent(B), C), "PATTERN SEQ(A a, NOT B b, C c)"),
    (seq(A, ~B, C), "PATTERN SEQ(A a, NOT(B b), C c)"),
    (B.plus(), "PATTERN B+ b"),
    (B.star(), "PATTERN B* b"),
    (B.optional(), "PATTERN B? b"),
    (B.times(3), "PATTERN B{3} b"),
    (B.times(2, 5), "PATTERN B{2,5} b"),
    (B.at_least(2), "PATTERN B{2,} b"),
    (seq(A, B).times(0, 4), "PATTERN SEQ(A a, B b){0,4}"),
    (PAIR.where(AX == BX), "PATTERN SEQ(A a, B b) WHERE a.x = b.x"),
    (PAIR.where(AX == BX, BX > 5), "PATTERN SEQ(A a, B b) WHERE a.x = b.x AND b.x > 5"),
    (PAIR.where(AX == BX).where(BX > 5), "PATTERN SEQ(A a, B b) WHERE a.x = b.x AND b.x > 5"),
    (PAIR.where("a.x = b.x", BX > 5), "PATTERN SEQ(A a, B b) WHERE a.x = b.x AND b.x > 5"),
    (PAIR.where(same("user", "device")), "PATTERN SEQ(A a, B b) WHERE [user, device]"),
    (PAIR.within(minutes=15), "PATTERN SEQ(A a, B b) WITHIN 15 MINUTES"),
    (PAIR.within(hours=1, minutes=30), "PATTERN SEQ(A a, B b) WITHIN 90 MINUTES"),
    (PAIR.within(seconds=0.1), "PATTERN SEQ(A a, B b) WITHIN 100 MS"),
    (PAIR.within(dt.timedelta(days=1)), "PATTERN SEQ(A a, B b) WITHIN 1 DAY"),
    (PAIR.within("15 minutes"), "PATTERN SEQ(A a, B b) WITHIN 15 MINUTES"),
    (PAIR.within("15 min", slide="1 min"), "PATTERN SEQ(A a, B b) WITHIN (15 MINUTES, 1 MINUTE)"),
    (PAIR.partition_by("user", "end"), "PATTERN SEQ(A a, B b) PARTITION BY user, `end`"),
    (PAIR.semantics("next"), "PATTERN SEQ(A a, B b) SEMANTICS next"),
    (PAIR.next(), "PATTERN SEQ(A a, B b) SEMANTICS next"),
    (PAIR.contiguous(), "PATTERN SEQ(A a, B b) SEMANTICS contiguous"),
    (PAIR.partition_contiguous(), "PATTERN SEQ(A a, B b) SEMANTICS partition-contiguous"),
    (PAIR.semantics("Skip-till-any-match"), "PATTERN SEQ(A a, B b) SEMANTICS any"),
    (PAIR.semantics(ast.Selection.NEXT), "PATTERN SEQ(A a, B b) SEMANTICS next"),
    (PAIR.after_match("reuse"), "PATTERN SEQ(A a, B b) AFTER MATCH REUSE"),
    (PAIR.after_match("skip past last"), "PATTERN SEQ(A a, B b) AFTER MATCH SKIP PAST LAST EVENT"),
    (PAIR.after_match("SKIP TO NEXT ROW"), "PATTERN SEQ(A a, B b) AFTER MATCH SKIP TO NEXT"),
    (PAIR.after_match("skip to first", "b"), "PATTERN SEQ(A a, B b) AFTER MATCH SKIP TO FIRST b"),
    (PAIR.after_match("skip to last", "b"), "PATTERN SEQ(A a, B b) AFTER MATCH SKIP TO LAST b"),
    (PAIR.output("longest"), "PATTERN SEQ(A a, B b) OUTPUT longest"),
    (PAIR.output("first"), "PATTERN SEQ(A a, B b) OUTPUT first"),
    (PAIR.output("last per end"), "PATTERN SEQ(A a, B b) OUTPUT last PER END"),
    (PAIR.output(ast.Output.COUNT), "PATTERN SEQ(A a, B b) OUTPUT count"),
    (PAIR.returns("a", "b.x"), "PATTERN SEQ(A a, B b) RETURN a, b.x"),
    (PAIR.returns(col("a"), BX), "PATTERN SEQ(A a, B b) RETURN a, b.x"),
    (
        PAIR.returns(AX, n=count("b"), s=AX + 1),
        "PATTERN SEQ(A a, B b) RETURN a.x, COUNT(b) AS n, a.x + 1 AS s",
    ),
    (PAIR.returns((AX + 1).alias("y z")), "PATTERN SEQ(A a, B b) RETURN a.x + 1 AS `y z`"),
    (PAIR.returns("a.x").returns("b.x"), "PATTERN SEQ(A a, B b) RETURN a.x, b.x"),
    (
        PAIR.returns("a.k", n=count()).group_by("a.k", AX + 1).having(col("n") > 3, "n < 9"),
        "PATTERN SEQ(A a, B b) RETURN a.k, COUNT(*) AS n GROUP BY a.k, a.x + 1 HAVING n > 3 AND n < 9",
    ),
    (PAIR.with_timeouts(), "PATTERN SEQ(A a, B b) WITH TIMEOUTS"),
]


@pytest.mark.parametrize(("built", "text"), QUERIES, ids=[text for _, text in QUERIES])
def test_a_built_query_is_the_parsed_one(built, text):
    assert built.query == parse(text)


VALUES = [
    (AX == 1, "a.x = 1"),
    (AX != 1.5, "a.x != 1.5"),
    (AX < "k", "a.x < 'k'"),
    (AX <= None, "a.x <= NULL"),
    (AX > True, "a.x > TRUE"),
    (AX >= BX, "a.x >= b.x"),
    (operator.lt(1, AX), "a.x > 1"),
    (AX + 1 - BX * 2, "a.x + 1 - b.x * 2"),
    (1 + AX, "1 + a.x"),
    (1 - AX, "1 - a.x"),
    (2 * AX, "2 * a.x"),
    (2 / AX, "2 / a.x"),
    (2 % AX, "2 % a.x"),
    (AX / 2 % 3, "a.x / 2 % 3"),
    ((AX + 1) * 2, "(a.x + 1) * 2"),
    (-AX, "-a.x"),
    (-(AX + 1), "-(a.x + 1)"),
    (AX.concat("z").concat(BX), "a.x || 'z' || b.x"),
    ((AX > 1) & (BX > 1) & (AX > BX), "a.x > 1 AND b.x > 1 AND a.x > b.x"),
    ((AX > 1) | (BX > 1) & (AX > BX), "a.x > 1 OR b.x > 1 AND a.x > b.x"),
    (~(AX > 1), "NOT a.x > 1"),
    (AX.isin(1, 2), "a.x IN (1, 2)"),
    (AX.isin([1, "k"]), "a.x IN (1, 'k')"),
    (AX.not_in(BX), "a.x NOT IN (b.x)"),
    (AX.between(1, BX), "a.x BETWEEN 1 AND b.x"),
    (AX.not_between(1, 2), "a.x NOT BETWEEN 1 AND 2"),
    (AX.like("k%"), "a.x LIKE 'k%'"),
    (AX.not_like("it's"), "a.x NOT LIKE 'it''s'"),
    (AX.is_null(), "a.x IS NULL"),
    (AX.is_not_null(), "a.x IS NOT NULL"),
    (col("b[i].x") > col("b[i-1].x"), "b[i].x > b[i-1].x"),
    (col("NEXT(b).x") > col("b[last].place.lat"), "NEXT(b).x > b[last].place.lat"),
    (col("`PM2.5`.x") == col("total"), "`PM2.5`.x = total"),
    (lit(5), "5"),
    (lit(-5), "-5"),
    (lit(dt.datetime(2026, 1, 31, 8, 30)), "TIMESTAMP '2026-01-31 08:30:00'"),
    (lit(dt.date(2026, 1, 31)), "DATE '2026-01-31'"),
    (dt.timedelta(minutes=5) > BX - AX, "b.x - a.x < 5 MINUTES"),
    (count(), "COUNT(*)"),
    (count("b"), "COUNT(b)"),
    (count(BX), "COUNT(b.x)"),
    (count_distinct("b.x"), "COUNT(DISTINCT b.x)"),
    (sum_("b.x"), "SUM(b.x)"),
    (sum_(BX * 2), "SUM(b.x * 2)"),
    (min_("b.x") + max_("b.x"), "MIN(b.x) + MAX(b.x)"),
    (avg("b.x") / stddev("b.x"), "AVG(b.x) / STDDEV(b.x)"),
    (range_("b.x") > 1, "RANGE(b.x) > 1"),
    (first("b.x") == last("b.x"), "FIRST(b.x) = LAST(b.x)"),
    (collect("b"), "COLLECT(b)"),
    (call("ROUND", AX / BX, 2), "ROUND(a.x / b.x, 2)"),
    (call("concat", AX, "z"), "CONCAT(a.x, 'z')"),
    (when(AX > 1, "high").otherwise("low"), "CASE WHEN a.x > 1 THEN 'high' ELSE 'low' END"),
    (when("a.x > 1", 1).when(BX > 1, 2), "CASE WHEN a.x > 1 THEN 1 WHEN b.x > 1 THEN 2 END"),
    (expr("a.x > 1 OR b.x > 1") & (AX == 1), "(a.x > 1 OR b.x > 1) AND a.x = 1"),
]


@pytest.mark.parametrize(("built", "text"), VALUES, ids=[text for _, text in VALUES])
def test_a_built_value_is_the_parsed_one(built, text):
    assert built.expression == parse_expression(text)


OPERATIONS = st.sampled_from(
    [
        lambda x, y: x + y,
        lambda x, y: x * y,
        lambda x, y: x - y,
        lambda x, y: x > y,
        lambda x, y: x == y,
        lambda x, y: x & y,
        lambda x, y: x | y,
        lambda x, _: ~x,
        lambda x, _: -x,
        lambda x, y: x.isin(y, 1),
        lambda x, y: x.between(y, 2),
        lambda x, y: when(x, y).otherwise("z"),
        lambda x, y: call("coalesce", x, y),
        lambda x, y: x.concat(y),
    ]
)


@given(st.lists(st.tuples(OPERATIONS, st.sampled_from([AX, BX, lit(7), lit("it's"), count("b")]))))
def test_whatever_is_built_reads_the_same_as_its_text(steps):
    value = AX
    for operation, other in steps:
        value = operation(value, other)
    draft = PAIR.where(value)
    assert parse(str(draft)) == draft.query


def test_every_step_leaves_the_one_before_as_it_was():
    base = seq(A, B).within(minutes=5)
    before = base.query
    changed = base.where(AX > 1).partition_by("k").next().output("longest").returns("a").with_timeouts()
    assert base.query == before
    assert changed.query != before
    once = event("B", "b")
    once.plus()
    assert once.query == parse("PATTERN B b")


def test_an_element_is_a_query_of_its_own_and_a_part_of_others():
    assert isinstance(A, Element)
    assert isinstance(A, Draft)
    assert isinstance(AX, Value)
    assert repr(PAIR.where(AX > 1)) == "Draft('PATTERN SEQ(A a, B b)\\nWHERE a.x > 1')"
    assert repr((AX + 1).alias("y")) == "Value(a.x + 1 AS y)"


def here():
    return inspect.currentframe().f_back.f_lineno


def test_nodes_point_at_the_line_of_the_call():
    line = here() + 1
    draft = seq(event("A", "a"), event("B", "b")).where(col("a.x") == 5)
    assert draft.query.pattern.where == CallSite(__file__, line)
    assert draft.query.pattern.parts[0].where == CallSite(__file__, line)
    assert draft.query.where_clause.where == CallSite(__file__, line)
    assert draft.query.where_clause.right.where == CallSite(__file__, line)
    assert draft.query.place("where_clause") == CallSite(__file__, line)


def test_text_inside_a_builder_call_is_shown_with_its_line():
    line = here() + 2
    with pytest.raises(QuerySyntaxError) as caught:
        PAIR.where("a.x > AND b.x")
    assert f"test_builder.py:{line}:1:5" in str(caught.value)
    assert "1 | a.x > AND b.x\n        ^" in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda: AX > 1 and BX > 1,
        lambda: AX > 1 or BX > 1,
        lambda: not AX > 1,
        lambda: 1 < AX < 5,
        lambda: AX in [1, 2],
        lambda: 1 in AX,
        lambda: "yes" if AX > 1 else "no",
    ],
    ids=["and", "or", "not", "a chain", "in a list", "in a value", "if"],
)
def test_a_condition_has_no_truth_value(use):
    with pytest.raises(QuerySyntaxError, match="no truth value") as caught:
        use()
    assert caught.value.where.file == __file__
    assert "&" in caught.value.hint


MISUSES = [
    ("no parts", seq, "no elements"),
    ("a string for a part", lambda: seq("A a"), "takes patterns"),
    ("a query with clauses for a part", lambda: seq(A.where("a.x > 1"), B), "query with clauses"),
    ("two quantifiers", lambda: B.plus().times(3), "quantifier already"),
    ("a repeated absence", lambda: absent(B).plus(), "not repeated"),
    ("no condition", A.where, "no condition"),
    ("a Python truth for a condition", lambda: A.where(True), "takes conditions"),
    ("an expression for a reference", lambda: col("a.x + 1"), "not a reference"),
    ("NaN", lambda: lit(float("nan")), "NaN"),
    ("a value no pattern can hold", lambda: AX + object(), "not a value"),
    ("no options", AX.isin, "at least one"),
    ("an empty list of options", lambda: AX.isin([]), "at least one"),
    ("no window", A.within, "one duration"),
    ("two windows", lambda: A.within("5 minutes", hours=1), "one duration"),
    ("an unknown unit", lambda: A.within(minuets=5), "not a unit"),
    ("less than a microsecond", lambda: A.within(microseconds=0.5), "whole number"),
    ("a number for a duration", lambda: A.within("5"), "not a duration"),
    ("an unknown selection", lambda: A.semantics("strict"), "no selection policy"),
    ("an unknown output", lambda: A.output("frist"), "no kind of output"),
    ("an unknown skip", lambda: A.after_match("skip"), "no after-match policy"),
    ("a skip without its variable", lambda: A.after_match("skip to first"), "needs a variable"),
    ("a skip with a variable too many", lambda: A.after_match("reuse", "b"), "takes no variable"),
    ("no attribute", same, "names of attributes"),
]


@pytest.mark.parametrize(("use", "words"), [row[1:] for row in MISUSES], ids=[row[0] for row in MISUSES])
def test_a_misuse_is_explained_at_its_line(use, words):
    with pytest.raises(QuerySyntaxError, match=words) as caught:
        use()
    assert caught.value.hint
    where = caught.value.where
    assert (where.file if isinstance(where, CallSite) else where.source.name).startswith(__file__)


def test_a_float_duration_means_the_decimal_that_was_written():
    assert A.within(seconds=1.1).query.within == ast.Window(1_100_000)


def test_a_naive_datetime_is_utc_and_an_aware_one_is_an_instant():
    two_hours_east = dt.timezone(dt.timedelta(hours=2))
    assert (
        lit(dt.datetime(2026, 1, 31, 8)).expression
        == lit(dt.datetime(2026, 1, 31, 10, tzinfo=two_hours_east)).expression
    )
    assert isinstance(lit(dt.datetime(2026, 1, 31)).expression, ex.Timestamp)


@pytest.mark.parametrize("names", [(5, "a"), ("A", 5), ("", "a")])
def test_an_event_needs_names(names):
    with pytest.raises(QuerySyntaxError, match="takes names"):
        event(*names)
