"""Whatever text comes in, out comes a tree or a syntax error with a message."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests import trees

from tocsin.errors import QuerySyntaxError
from tocsin.language.acel import ast, parse, print_query
from tocsin.language.messages import pieces_of

TERMINAL_NAMES = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|SEMICOLON|ADJACENT|_[A-Z]{2,}")
INTRUDERS = [
    *"()[]{},.;:+*?=<>-/%!&|@#'`¬∧⊕\"\u2018\0\ud800",
    *["==", "&&", "<-", "->", "@+", "--", "/*", "←"],
    *["SEQ", "AND", "OR", "NOT", "WHERE", "WITHIN", "RETURN", "AS", "BY", "FILTER", "PROJECT", "AGG", "NEXT", "GROUP"],
    *["a", "a.x", "b[i]", "X[a > 1]", "5", "5 MINUTES", "'text'", '"text"', "same(a)", "sum(X.a)"],
]


def tree_or_message(text: str) -> None:
    try:
        assert isinstance(parse(text), ast.Query)
    except QuerySyntaxError as error:
        assert str(error).startswith("[SYNTAX_ERROR] ")
        named = TERMINAL_NAMES.search(error.message)
        assert named is None or named[0] in text  # a message may quote what was written
        assert error.message.endswith(".")
        assert 0 <= error.where.start <= error.where.end <= len(text)  # type: ignore[union-attr]


@given(st.text())
def test_any_text_parses_or_is_explained(text: str) -> None:
    tree_or_message(text)
    tree_or_message(f"A FILTER {text}")
    tree_or_message(f"AGG {text}")


@given(trees.any_queries(), st.data())
def test_a_query_with_a_piece_lost_doubled_or_slipped_in_parses_or_is_explained(
    query: ast.Query, data: st.DataObject
) -> None:
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
