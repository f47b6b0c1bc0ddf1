"""Comparisons with a written NULL are warned of alike, wherever they stand and in all three languages (R39)."""

from __future__ import annotations

import warnings

import pytest

import tocsin
from tocsin.analysis.acel import translate as translate_acel
from tocsin.analysis.sase import translate
from tocsin.errors import TocsinWarning
from tocsin.language.acel import parse as parse_acel
from tocsin.language.sase import parse

RULES = "template A { x : Integer } template E { is : Boolean } "


def reported(warned: tuple[TocsinWarning, ...]) -> list[tuple[str, str | None]]:
    assert {warning.condition for warning in warned} <= {"NULL_COMPARISON"}
    return [(warning.message.partition(":")[0], warning.hint) for warning in warned]


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        ("a.x = NULL", "`a.x = NULL` is never TRUE", "write `a.x IS NULL`."),
        ("NULL != a.x", "`NULL != a.x` is never TRUE", "write `a.x IS NOT NULL`."),
        ("a.x < NULL", "`a.x < NULL` is never TRUE", "leave it out."),
        ("a.x IN (NULL)", "`a.x IN (NULL)` is never TRUE", "write `a.x IS NULL`."),
        ("a.x NOT IN (NULL, NULL)", "`a.x NOT IN (NULL, NULL)` is never TRUE", "write `a.x IS NOT NULL`."),
        ("a.x NOT IN (1, NULL)", "`a.x NOT IN (1, NULL)` is never TRUE", "write `a.x NOT IN (1)`."),
        (
            "NOT a.x IN (1, NULL)",
            "The NULL in `a.x IN (1, NULL)` equals nothing",
            "leave it out, or write `(a.x IN (1) OR a.x IS NULL)`.",
        ),
        ("NULL IN (a.x, 1)", "`NULL IN (a.x, 1)` is never TRUE", "leave it out."),
        ("a.x BETWEEN 1 AND NULL", "`a.x BETWEEN 1 AND NULL` is never TRUE", "leave it out."),
    ],
)
def test_a_comparison_with_null_is_warned_of(condition: str, message: str, hint: str) -> None:
    expected = [(message, hint)]
    assert reported(translate(parse(f"PATTERN SEQ(A a, B b) WHERE b.x > 1 AND {condition}")).warnings) == expected
    assert reported(translate(parse(f"PATTERN A a RETURN a.y, {condition} AS n HAVING n")).warnings) == expected
    assert reported(translate(parse(f"PATTERN A a RETURN a.y HAVING {condition}")).warnings) == expected
    negated = f"PATTERN SEQ(B b, NOT A a, B c) WHERE {condition} WITHIN 1 HOUR"
    assert reported(translate(parse(negated)).warnings) == expected
    assert (
        reported(translate_acel(parse_acel(f"(B AS a) FILTER a[{condition.replace('a.', '')}]")).warnings) == expected
    )
    assert reported(translate_acel(parse_acel(f"(B AS a) RETURN {condition} AS n")).warnings) == expected


def test_groups_are_compared_with_null() -> None:
    (warned,) = translate(parse("PATTERN A a RETURN COUNT(*) AS n GROUP BY a.x = NULL")).warnings
    assert warned.condition == "NULL_COMPARISON"


@pytest.mark.parametrize(
    "condition", ["a.x IS NULL", "a.x IN (1, 2)", "a.x NOT BETWEEN 1 AND NULL", "a.x = COALESCE(a.y, NULL)"]
)
def test_others_are_not(condition: str) -> None:
    assert reported(translate(parse(f"PATTERN A a WHERE {condition} RETURN {condition} AS n")).warnings) == []


@pytest.mark.parametrize(
    "text",
    [
        "rule R where a : A { x = null }",
        "rule R where a : A { x not in (1, null) }",
        "rule R where a : A no b : A { x = null } when no b in a [1 s, 5 s]",
        "rule R where a : A then emit E at a.timestamp with { is = a.x = null }",
        "pattern Is(value) : A { x = value } rule R where a : Is(null)",
    ],
)
def test_rules_warn_of_them(text: str) -> None:
    with pytest.warns(TocsinWarning, match="is never TRUE"):
        program = tocsin.rules(RULES + text)
    assert [warning.condition for warning in program.warnings] == ["NULL_COMPARISON"]


def test_the_parameter_of_a_named_pattern_is_no_null() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tocsin.rules(RULES + "pattern Is(value) : A { x = value } rule R where a : A")
