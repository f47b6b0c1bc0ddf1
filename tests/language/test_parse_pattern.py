"""PATTERN: the text of elements and the trees they give."""

from __future__ import annotations

import pytest

from tocsin.language.ast import Composite, Event, Negation, Operator, Quantifier
from tocsin.language.sase import parse

A, B, C = Event("A", "a"), Event("B", "b"), Event("C", "c")


def pattern(text):
    return parse(f"PATTERN {text}").pattern


def seq(*parts, quantifier=None):
    return Composite(Operator.SEQ, parts, quantifier)


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("A a", A),
        ("A", Event("A")),
        ("SEQ(A a, B b)", seq(A, B)),
        ("AND(A a, B b, C c)", Composite(Operator.AND, (A, B, C))),
        ("OR(A a)", Composite(Operator.OR, (A,))),
        ("SEQ(A a, OR(B b, SEQ(A a, C c)))", seq(A, Composite(Operator.OR, (B, seq(A, C))))),
        ("SEQ(A a, NOT B b, C c)", seq(A, Negation(B), C)),
        ("SEQ(A a, NOT(B b), C c)", seq(A, Negation(B), C)),
        ("SEQ(A a, NOT ( B b ), C c)", seq(A, Negation(B), C)),
        ("SEQ(A a, ¬B b, C c)", seq(A, Negation(B), C)),
        ("SEQ(A a, ¬(B b), C c)", seq(A, Negation(B), C)),
        ("∧(A a, B b)", Composite(Operator.AND, (A, B))),
        ("∨(A a, B b)", Composite(Operator.OR, (A, B))),
        ("seq(A a, not B b, or(B b, C c))", seq(A, Negation(B), Composite(Operator.OR, (B, C)))),
    ],
)
def test_an_element_has_its_tree(text, element):
    assert pattern(text) == element


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("+", 1, None),
        ("*", 0, None),
        ("?", 0, 1),
        ("{3}", 3, 3),
        ("{2,5}", 2, 5),
        ("{2,}", 2, None),
        ("{ 2 , 5 }", 2, 5),
        ("{0}", 0, 0),
    ],
)
def test_a_quantifier_follows_a_type_or_a_group(text, least, most):
    quantifier = Quantifier(least, most)
    assert pattern(f"B{text} b") == Event("B", "b", quantifier)
    assert pattern(f"B {text}b") == Event("B", "b", quantifier)
    assert pattern(f"B{text}") == Event("B", None, quantifier)
    assert pattern(f"SEQ(A a, B b){text}") == seq(A, B, quantifier=quantifier)
    assert pattern(f"SEQ(OR(A a, B b){text}, C c)") == seq(Composite(Operator.OR, (A, B), quantifier), C)


@pytest.mark.parametrize("text", ["B+ b[]", "B+ b[ ]", "B+b[]"])
def test_brackets_after_an_iterated_variable_change_nothing(text):
    assert pattern(text) == Event("B", "b", Quantifier(1, None))


@pytest.mark.parametrize(
    ("text", "element"),
    [
        ("NOT A a", Negation(A)),
        ("SEQ(A a, NOT SEQ(B b, C c))", seq(A, Negation(seq(B, C)))),
        ("OR(A a, NOT B b)", Composite(Operator.OR, (A, Negation(B)))),
        ("NOT NOT A a", Negation(Negation(A))),
        ("SEQ(A a, NOT B+ b, C c)", seq(A, Negation(Event("B", "b", Quantifier(1, None))), C)),
        ("A{3,2} a", Event("A", "a", Quantifier(3, 2))),
        ("SEQ(A a, A a)", seq(A, A)),
    ],
)
def test_what_only_the_analyser_refuses_is_parsed(text, element):
    assert pattern(text) == element


def test_blanks_and_comments_may_stand_between_any_two_words():
    text = """
    -- a query about pairs
    PATTERN /* both
    of them */ SEQ ( A a -- the first
        , B b )
    """
    assert parse(text).pattern == seq(A, B)


def test_a_semicolon_may_close_the_query():
    assert parse("PATTERN A a;") == parse("PATTERN A a ; -- done") == parse("PATTERN A a")


def test_a_byte_order_mark_is_a_blank():
    assert parse("\ufeffPATTERN A a").pattern == A
