"""Whatever text comes in, out comes a tree or a syntax error with a message."""

from __future__ import annotations

import functools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from tests import trees

from tocsin.errors import QuerySyntaxError
from tocsin.language import ast
from tocsin.language.grammars import parser_of, text_of
from tocsin.language.messages import pieces_of
from tocsin.language.sase import parse, print_query

TERMINAL_NAMES = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|LBRACE|RBRACE|[A-Z]+_MATCH")
INTRUDERS = [
    *"()[]{},.;+*?=<>-/%!&|@#:'`¬∧\"\u2018\0\ud800",
    *["==", "&&", "=>", "->", "..", "//", "/*", "--"],
    *[
        "SEQ",
        "AND",
        "OR",
        "NOT",
        "WHERE",
        "WITHIN",
        "RETURN",
        "AS",
        "BY",
        "PER",
        "CASE",
        "END",
        "WHEN",
        "NEXT",
    ],
    *["INTERVAL", "SEMANTICS", "TIMESTAMP", "a", "a.x", "b[i]", "5", "5.5", "5 MINUTES", "'text'"],
]

SASE = parser_of(text_of("sase"))


def tree_or_message(text):
    try:
        assert isinstance(parse(text), ast.Query)
    except QuerySyntaxError as error:
        assert str(error).startswith("[SYNTAX_ERROR] ")
        named = TERMINAL_NAMES.search(error.message)
        assert named is None or named[0] in text  # a message may quote what was written
        assert 0 <= error.where.start <= error.where.end <= len(text)


@functools.cache
def sentences():
    """Sentences of the grammar, their words set apart by blanks as a person would."""
    apart = {
        terminal.name: st.from_regex(
            re.compile(terminal.pattern.to_regexp()), fullmatch=True, alphabet=st.characters(codec="latin-1")
        ).map(" {} ".format)
        for terminal in SASE.terminals
        if terminal.name not in {"BLANK", "COMMENT", "LINE_COMMENT"}
    }
    return from_lark(SASE, start="query", explicit=apart)


@pytest.mark.long
@given(st.data())
def test_sentences_of_the_grammar_parse_or_are_explained(data):
    tree_or_message(data.draw(sentences()))


@pytest.mark.long
@given(st.data())
def test_sentences_run_together_parse_or_are_explained(data):
    tree_or_message(data.draw(from_lark(SASE, start="query")))


@given(st.text())
def test_any_text_parses_or_is_explained(text):
    tree_or_message(text)
    tree_or_message(f"PATTERN {text}")
    tree_or_message(f"PATTERN A a WHERE {text}")


@given(trees.queries(), st.data())
def test_a_query_with_a_piece_lost_doubled_or_slipped_in_parses_or_is_explained(query, data):
    pieces = [piece.text for piece in pieces_of(print_query(query))]
    at = data.draw(st.integers(0, len(pieces) - 1))
    intruder = data.draw(st.sampled_from(INTRUDERS))
    for damaged in (
        pieces[:at],
        pieces[:at] + pieces[at + 1 :],
        [*pieces[:at], pieces[at], *pieces[at:]],
        [*pieces[:at], intruder, *pieces[at:]],
        [*pieces[:at], intruder, *pieces[at + 1 :]],
    ):
        tree_or_message(" ".join(damaged))


@given(trees.queries())
def test_the_pieces_of_a_text_are_all_of_it_but_blanks(query):
    text = print_query(query)
    position = 0
    for piece in pieces_of(text):
        assert not text[position : piece.start].strip()
        assert text[piece.start : piece.end] == piece.text
        position = piece.end
    assert not text[position:].strip()
