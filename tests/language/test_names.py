"""Names: which words are free, which stand in backquotes."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from tocsin.errors import QuerySyntaxError
from tocsin.language.ast import Event
from tocsin.language.expressions import Attribute, Literal, Name
from tocsin.language.sase import parse, parse_expression, print_query, words

FILES = ("sase/grammar.lark", "shared.lark")
GRAMMAR = "\n".join(resources.files("tocsin.language").joinpath(file).read_text("utf-8") for file in FILES)
# Every keyword, in its first spelling.
WORDS = set(re.findall(r"^_?\w+\.2: /\(?([a-z]+)\b(?!-)", GRAMMAR, re.MULTILINE))
UNITS = {"Day", "Hour", "Minutes", "S", "D", "W", "H", "Us", "Ms"}
FUNCTIONS = {"Count", "Sum", "Min", "Max", "Avg", "First", "Last", "Range"}
FREE = sorted(
    {word.title() for word in WORDS | {"order"}} - {word.title() for word in (*words.CLAUSES, *words.RESERVED_TYPES)}
    | UNITS
    | FUNCTIONS
)


@pytest.mark.parametrize("word", FREE)
def test_a_word_that_starts_no_clause_is_free_as_type_and_variable(word):
    query = parse(f"PATTERN SEQ({word} {word.lower()}, {word}+ x, NOT {word}, B b) WHERE {word.lower()}.x > b.x")
    assert query.pattern.parts[0] == Event(word, word.lower())
    assert query.where_clause.left == Attribute(word.lower(), ("x",))


@pytest.mark.parametrize("word", words.CLAUSES)
def test_a_word_that_starts_a_clause_is_free_as_type_and_before_a_dot(word):
    query = parse(f"PATTERN SEQ({word} a, {word.title()}{{2}} b) WHERE {word}.x = a.{word}")
    assert query.pattern.parts[0] == Event(word, "a")
    assert query.where_clause.left == Attribute(word, ("x",))


@pytest.mark.parametrize("word", sorted(WORDS | set(FREE)))
def test_every_word_is_free_after_a_dot(word):
    assert parse_expression(f"a.{word}.{word} = 1").left == Attribute("a", (word, word))


@pytest.mark.parametrize("word", sorted(WORDS))
def test_every_word_is_a_name_in_backquotes(word):
    query = parse(
        f"PATTERN SEQ(`{word}` `{word}`, B b) PARTITION BY `{word}` WHERE `{word}`.`{word}` = `{word}`[i].x "
        f"AND [`{word}`] AFTER MATCH SKIP TO FIRST `{word}` RETURN `{word}` AS `{word}` GROUP BY `{word}`"
    )
    assert query.pattern.parts[0] == Event(word, word)
    assert query.group_by == (Name(word),)
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    ("text", "name"), [("`PM2.5`", "PM2.5"), ("`a``b`", "a`b"), ("`x y`", "x y"), ("Größe", "Größe")]
)
def test_backquotes_hold_any_name(text, name):
    assert parse(f"PATTERN {text} p").pattern == Event(name, "p")
    assert parse(f"PATTERN A {text}").pattern == Event("A", name)
    assert parse_expression(f"{text}.{text} > 1").left == Attribute(name, (name,))


def test_names_keep_their_case_and_keywords_ignore_it():
    query = parse("pAtTeRn Seq(A a, A A) wHeRe a.X > A.x")
    assert [event.variable for event in query.pattern.parts] == ["a", "A"]
    assert query.where_clause.left == Attribute("a", ("X",))


@pytest.mark.parametrize("word", words.RESERVED_IN_CONDITIONS)
def test_a_word_reserved_in_conditions_is_never_a_bare_name_there(word):
    try:
        query = parse(f"PATTERN A a RETURN 1 GROUP BY {word} HAVING x > 1")
    except QuerySyntaxError:
        return
    assert isinstance(query.group_by[0], Literal)


@pytest.mark.parametrize("word", words.RESERVED_TYPES)
def test_an_operator_is_refused_as_a_type(word):
    with pytest.raises(QuerySyntaxError):
        parse(f"PATTERN SEQ(A a, {word}+ x)")


@pytest.mark.parametrize("word", words.CLAUSES)
def test_the_first_word_of_a_clause_is_refused_as_a_variable(word):
    with pytest.raises(QuerySyntaxError):
        parse(f"PATTERN SEQ(A {word}, B b)")


@pytest.mark.parametrize(
    "text",
    [
        "PATTERNA a",
        "PATTERN A a WHEREa.x > 1",
        "PATTERN A a AFTERMATCH REUSE",
        "PATTERN A a WITHIN 5 SECONDSWHERE a.x > 1",
    ],
)
def test_keywords_do_not_run_into_their_neighbours(text):
    with pytest.raises(QuerySyntaxError):
        parse(text)
