"""Thousands of branches, declarations and strata: the time to compile them grows with their number, not its square."""

from __future__ import annotations

import itertools

import pytest
from tests.hostile.child import Text, compiled

import tocsin
from tocsin.errors import LONGEST_MESSAGE, QueryErrors, TocsinError
from tocsin.source import LONGEST_LINE


def chain(strata: int, rest: str = "") -> str:
    rules = "\n".join(
        f"template T{i + 1} {{ x : Integer }}\n"
        f"rule R{i} where a : T{i} then emit T{i + 1} at a.timestamp with {{ x = a.x }}"
        for i in range(strata)
    )
    return f"template T0 {{ x : Integer }}\n{rules}\n{rest}"


CLOSING = "rule Z where a : T2000 then emit T0 at a.timestamp with { x = a.x }"
# At 1 µs a comparison, work that grows with the square of these sizes takes longer than the limit.
LARGE = {
    "an OR of 10,000 types": (Text("sase", f"PATTERN OR({', '.join(f'A{i} a{i}' for i in range(10_000))})"), "ok"),
    "5,000 wrong declarations": (
        Text("parte", "\n".join(f"rule R{i} where a : A {{ x > }}" for i in range(5_000))),
        "SEVERAL_ERRORS",
    ),
    "2,000 strata": (Text("parte", chain(2_000)), "ok"),
    "a cycle of 2,001 rules": (Text("parte", chain(2_000, CLOSING)), "UNSTRATIFIED"),
    "5,000 unknown variables": (
        Text("sase", "PATTERN A a WHERE " + " AND ".join(f"b{i}.x = {i}" for i in range(5_000))),
        "SEVERAL_ERRORS",
    ),
    "3,000 unknown templates among 3,000": (
        Text(
            "parte",
            "\n".join(f"template T{i} {{ x : Integer }} rule R{i} where a : S{i}" for i in range(3_000)),
        ),
        "SEVERAL_ERRORS",
    ),
    "an AND of 3,000 formulas": (Text("acel", " AND ".join(["A"] * 3_000)), "ok"),
    "up to 1,500 copies": (Text("sase", "PATTERN B{2,1500} b WITHIN 20 SECONDS SEMANTICS contiguous"), "ok"),
    "an IN list of 20,000": (Text("sase", f"PATTERN A a WHERE a.x IN ({', '.join(map(str, range(20_000)))})"), "ok"),
}


QUICK = ("an OR of 10,000 types", "2,000 strata", "up to 1,500 copies")


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LARGE]
)
def test_a_large_text_is_compiled_in_seconds(name):
    text, result = LARGE[name]
    (outcome,) = compiled([text], seconds=20)
    assert outcome.result == result, (outcome.result, outcome.seconds, outcome.report[:500])
    assert len(outcome.report) < 8_000


def test_errors_of_the_parts_of_a_program_keep_their_places():
    text = "-- first\n\nrule A where a : A { x > }\nrule B where b : B\n\trule C where c  C\nrule D where d : D {"
    with pytest.raises(QueryErrors) as caught:
        tocsin.rules(text)
    assert [(each.where.line, each.where.column) for each in caught.value.errors] == [(3, 24), (5, 18), (6, 21)]
    assert caught.value.errors[2].also[1].line == 6


def test_messages_hints_and_quoted_lines_are_cut_to_a_readable_length():
    long = "x" * 50_000
    for text in (
        f"PATTERN A a WHERE a.x = '{long}' '{long}'",
        f"PATTERN A `{long}` WHERE b.x = 1",
        f"PATTERN A a WHERE {long}.x = 1 AND {long}",
        f"PATTERN SEQ({', '.join(f'A variable_number_{i}' for i in range(2_000))}) WHERE b.x = 1",
    ):
        with pytest.raises(TocsinError) as caught:
            tocsin.pattern(text)
        for error in getattr(caught.value, "errors", [caught.value]):
            lines = str(error).splitlines()
            assert max(map(len, lines)) < LONGEST_MESSAGE + 100
            assert sum(map(len, lines)) < 2 * LONGEST_MESSAGE + 4 * LONGEST_LINE


def test_the_carets_stand_under_the_place_in_a_long_line():
    left, right = " OR ".join(["a.x = 1"] * 100), " OR ".join(["a.x = 2"] * 100)
    for before, behind in itertools.product(["", f"{left} OR "], ["", f" OR {right}"]):
        with pytest.raises(TocsinError) as caught:
            tocsin.pattern(f"PATTERN A a WHERE {before}nobody.y = 7{behind}")
        _, _, quoted, carets, *_ = str(caught.value).splitlines()
        start = carets.index("^")
        assert quoted[start : start + carets.count("^")] == "nobody.y"
        assert len(quoted) <= LONGEST_LINE + 6
