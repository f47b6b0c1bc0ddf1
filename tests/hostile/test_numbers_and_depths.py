"""Numbers, nesting and repeated parts beyond what an engine can hold are refused by name."""

from __future__ import annotations

import pytest
from tests.hostile.child import Text, compiled

import tocsin

pytestmark = pytest.mark.long
HUGE = "99999999999999999999"
TEMPLATE = "template A { x : Integer }\n"


def cases(subject: str, levels: int) -> str:
    for _ in range(levels):
        subject = f"CASE {subject} WHEN 1 THEN 1 WHEN 2 THEN 2 END"
    return subject


def definitions(argument: str, levels: int) -> str:
    named = " ".join(f"pattern P{i + 1}(k) : P{i}({argument})" for i in range(levels))
    return f"{TEMPLATE} pattern P0(k) : A {{ x > k }} {named} rule R where a : P{levels}(1)"


REFUSED = {
    f"PATTERN A{{{HUGE}}} a": "INVALID_QUANTIFIER",
    f"PATTERN A{{{HUGE},}} a": "INVALID_QUANTIFIER",
    f"PATTERN A{{1,{HUGE}}} a": "INVALID_QUANTIFIER",
    f"PATTERN SEQ(A a, B b){{{HUGE}}}": "INVALID_QUANTIFIER",
    f"PATTERN A+ a WHERE a[{HUGE}].x = 1": "INVALID_INDEX",
    f"PATTERN A+ a WHERE a[i-{HUGE}].x = a[i].x": "INVALID_INDEX",
    f"PATTERN A+ a WHERE a[i+{HUGE}].x = a[i].x": "INVALID_INDEX",
    f"PATTERN SEQ(A a, {', '.join(f'NOT C c{i}' for i in range(500))}, B b)": "NEGATION_NOT_ALLOWED",
    f"PATTERN A a WHERE {cases('a.x', 28)} = 1": "TEXT_TOO_LONG",
    "PATTERN A a AFTER MATCH SKIP PAST LAST EVENT; WITHIN 1 MINUTE": "SYNTAX_ERROR",
    f"{TEMPLATE} rule R where a : A[{HUGE}] when a in a [0 s, 1 s]": "INVALID_QUANTIFIER",
    f"{TEMPLATE} rule R where a : A[1..{HUGE}] when a in a [0 s, 1 s]": "INVALID_QUANTIFIER",
    f"{TEMPLATE} rule R where a : A+ b : A {{ x = a[{HUGE}].x }} when a in b [0 s, 1 s]": "INVALID_INDEX",
    f"template A {{ x : [Integer; {HUGE}] }} rule R where a : A": "INVALID_QUANTIFIER",
    f"{TEMPLATE} rule R where a : A {' '.join(f'no b{i} : A' for i in range(800))}": "NEGATION_NOT_ALLOWED",
    definitions("k + k", 40): "TEXT_TOO_LONG",
    definitions("k + 1", 1_500): "SYNTAX_ERROR",
}
ACCEPTED = [
    "PATTERN A{1000000} a",
    "PATTERN A{1500} a WITHIN 1 SECOND",
    "PATTERN A+ a WHERE a[i-1000000].x = a[i].x",
    f"PATTERN SEQ(A a, {', '.join(f'NOT C c{i}' for i in range(40))}, B b)",
    f"PATTERN A a WHERE {cases('a.x', 8)} = 1",
    definitions("k + 1", 80),
]


def language_of(text: str) -> str:
    return "sase" if text.startswith("PATTERN") else "parte"


def test_what_no_engine_could_hold_is_refused_by_name():
    outcomes = compiled([Text(language_of(text), text) for text in REFUSED], seconds=10)
    wrong = [
        (str(outcome.text), outcome.result, outcome.report[-500:])
        for outcome, condition in zip(outcomes, REFUSED.values(), strict=True)
        if outcome.result != condition and condition not in outcome.report
    ]
    assert not wrong


def test_what_is_just_small_enough_is_accepted():
    outcomes = compiled([Text(language_of(text), text) for text in ACCEPTED], seconds=10)
    assert [outcome for outcome in outcomes if outcome.result != "ok"] == []


@pytest.mark.parametrize("number", [8, 9, 100])
@pytest.mark.parametrize("form", ["SEQ(A a, {}, B b)", "SEQ({}, A a, B b)", "SEQ(A a, B b, {})"])
def test_as_many_absences_as_may_be_run(form, number):
    """Each was a condition inside the one before, and Python parses 100 levels."""
    absences = ", ".join(f"NOT C c{i}" for i in range(number))
    conditions = " AND ".join(f"c{i}.x = a.x + {i}" for i in range(number))
    pattern = tocsin.pattern(f"PATTERN {form.format(absences)} WHERE {conditions} WITHIN 30 us")
    rows = {
        "A": [{"ts": 11, "x": 1}, {"ts": 13, "x": 2}],
        "B": [{"ts": 19, "x": 1}, {"ts": 30, "x": 2}],
        "C": [{"ts": 1, "x": number + 1}, {"ts": 15, "x": number}, {"ts": 25, "x": number + 50}],
    }
    found = pattern.match(rows, engine="local", time_unit="us").select(["start", "end"]).to_pylist()
    expected = [{"start": one["start"], "end": one["end"]} for one in tocsin.reference.evaluate(pattern, rows)]
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize("policy", ["SKIP PAST LAST", "SKIP TO NEXT ROW", "SKIP TO FIRST a", "REUSE"])
def test_a_clause_behind_the_end_of_the_query_is_explained(policy):
    (outcome,) = compiled([Text("sase", f"PATTERN A a AFTER MATCH {policy}; WITHIN 1 MINUTE")])
    assert "The query ends at `;`, but `WITHIN` follows." in outcome.report
