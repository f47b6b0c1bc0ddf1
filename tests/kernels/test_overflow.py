"""Integers beyond 64 bits: expressions are NULL, aggregates stop the query, times are exact or refused (D14, D24)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin import errors, reference
from tocsin.kernels import compile

LEAST, MOST = -(2**63), 2**63 - 1
INTEGERS = st.sampled_from([LEAST, LEAST + 1, -(2**62), -1, 0, 1, 2**62, MOST - 1, MOST])
Events = list[dict[str, Any]]


def outcome(text: str, rows: Events, engine: str, language: str = "sase") -> Any:
    """The matches of a query, or the condition of the error that stops it."""
    pattern = tocsin.pattern(text, language=language)
    try:
        if engine == "reference":
            found = reference.evaluate(pattern.query, rows)
        else:
            found = pattern.match(rows, engine="local").to_pylist()
    except (errors.NumberTooLargeError, errors.UnsupportedError) as problem:
        return problem.condition
    return Counter(repr(row) if pattern.query.over_all_matches else row["match_id"] for row in found)


QUERIES = {
    "PATTERN A+ a WITHIN 1 HOUR RETURN SUM(a.x) AS n": sum,
    "PATTERN A+ a WHERE SUM(a.x) > 0 WITHIN 1 HOUR": sum,
    "PATTERN SEQ(A+ a, B b) WHERE b.x < SUM(a.x) WITHIN 1 HOUR": sum,
    "PATTERN A+ a WITHIN 1 HOUR RETURN COUNT(a) AS n HAVING SUM(a.x) != 0": sum,
    "PATTERN A+ a WITHIN 1 HOUR RETURN RANGE(a.x) AS n": lambda values: max(values) - min(values),
    "PATTERN A+ a WHERE RANGE(a.x) >= 0 WITHIN 1 HOUR": lambda values: max(values) - min(values),
    "AGG Y[n <- sum(A.x)](A+) WITHIN 1 HOUR": sum,
    "AGG Y[n <- sum(A.x)](A+) FILTER Y[n > 0] WITHIN 1 HOUR": sum,
    "AGG Y[n <- range(A.x)](A+) WITHIN 1 HOUR": lambda values: max(values) - min(values),
}


COMPILED = [text for text in QUERIES if "WHERE SUM" in text or "AGG Y[n <- range" in text]
RUNS = [
    *((text, engine) for text in QUERIES for engine in ("reference", "plain")),
    *(pytest.param(text, "compiled", marks=pytest.mark.compiled) for text in COMPILED),
]


@pytest.mark.parametrize(("text", "engine"), RUNS)
def test_an_aggregate_beyond_64_bits_stops_the_query(text: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "compiled":
        monkeypatch.setattr(compile, "is_worth_compiling", lambda text, rows: True)
    language = "sase" if text.startswith("PATTERN") else "acel"
    far = [2**62, 2**62] if QUERIES[text] is sum else [-(2**62), 2**62]
    rows = [{"ts": ts, "type": "A", "x": x} for ts, x in enumerate(far)] + [{"ts": 9, "type": "B", "x": 1}]
    assert outcome(text, rows, engine, language) == "NUMBER_TOO_LARGE"
    rows[0]["x"] -= 1
    rows[1]["x"] -= 1 if QUERIES[text] is sum else 2
    assert isinstance(outcome(text, rows, engine, language), Counter)


@pytest.mark.parametrize("text", ["PATTERN SEQ(A{1,4} a, B b) WITHIN 1 HOUR RETURN {} AS n", "AGG Y[n <- {}](A@+) : B"])
@pytest.mark.parametrize("aggregate", ["sum", "range"])
@settings(max_examples=25)
@given(values=st.lists(INTEGERS, min_size=1, max_size=3))
def test_aggregates_are_exact_or_stop_the_query(text: str, aggregate: str, values: list[int]) -> None:
    """Whatever the partial sums are: 2^63 - 1 + 1 - 1 fits."""
    language, variable = ("sase", "a") if text.startswith("PATTERN") else ("acel", "A")
    text = text.replace("{}", f"{aggregate}({variable}.x)")
    rows = [{"ts": ts, "type": "A", "x": x} for ts, x in enumerate(values)] + [{"ts": 9, "type": "B", "x": 0}]
    found = outcome(text, rows, "plain", language)
    assert found == outcome(text, rows, "reference", language)
    shortest = 1 if language == "acel" else len(values)
    bags = [values[begin:] for begin in range(len(values)) if len(values) - begin >= shortest]
    exact = [sum(bag) if aggregate == "sum" else max(bag) - min(bag) for bag in bags]
    if any(not LEAST <= one <= MOST for one in exact):
        assert found == "NUMBER_TOO_LARGE"


@pytest.mark.parametrize(("condition", "numbers"), [("= 0", {0}), ("< 0", {-1}), ("IS NULL", {1, 2})])
@pytest.mark.parametrize("engine", ["reference", "plain"])
def test_each_operation_of_an_expression_is_exact_or_null(engine: str, condition: str, numbers: set[int]) -> None:
    """-1 * 2^62 * 2 fits, although 2^62 * 2 does not."""
    text = f"PATTERN A a WHERE a.x * 4611686018427387904 * 2 {condition} WITHIN 1 HOUR"
    for x in (-1, 0, 1, 2):
        assert len(outcome(text, [{"ts": 0, "type": "A", "x": x}], engine)) == (x in numbers)


TIMES = st.sampled_from([LEAST, LEAST + 1, -(2**62) - 1, -(2**62), -5, 0, 5, 2**62, 2**62 + 1, MOST - 1, MOST])
PATTERNS = [
    "PATTERN SEQ(A a, B b, NOT C c) WITHIN 1 HOUR",
    "PATTERN SEQ(NOT C c, A+ a, B b) WITHIN 1 HOUR",
    "PATTERN AND(A a, B b) WHERE b.ts - a.ts > 0 WITHIN 36500000 DAYS",
    "PATTERN SEQ(A+ a, B b) WITHIN 1 HOUR RETURN COUNT(*) AS n",
    "PATTERN SEQ(A a, B b){1,2} WITHIN 1 HOUR SEMANTICS next",
    "A ; B WITHIN 1 HOUR",
    "A+ ; B WITHIN 36500000 DAYS",
    "(A ; B)@+ WITHIN 1 HOUR",
    "AGG Y[n <- max(A.ts)](A+) WITHIN 1 HOUR",
    "A@+ ; B WITHIN 1 HOUR RETURN COUNT(*) AS n",
]


@pytest.mark.parametrize("text", PATTERNS)
@settings(max_examples=25)
@given(rows=st.lists(st.tuples(TIMES, st.sampled_from("ABC")), min_size=2, max_size=5, unique=True))
def test_times_anywhere_in_64_bits_are_compared_exactly_or_refused(text: str, rows: list[tuple[int, str]]) -> None:
    language = "sase" if text.startswith("PATTERN") else "acel"
    events = [{"ts": ts, "type": kind, "x": place} for place, (ts, kind) in enumerate(rows)]
    found = outcome(text, events, "plain", language)
    times = [ts for ts, _ in rows]
    if found == "NOT_YET_SUPPORTED":
        assert max(times) - min(times) > MOST - 8 or len({*times}) < len(times)
    else:
        assert found == outcome(text, events, "reference", language)
