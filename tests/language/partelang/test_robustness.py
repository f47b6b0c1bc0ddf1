"""Whatever text comes in, out comes a tree or a syntax error with a message."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.language.partelang import programs

from tocsin.errors import QueryErrors, QuerySyntaxError
from tocsin.language.messages import pieces_of
from tocsin.language.partelang import ast, parse, print_program

TERMINAL_NAMES = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|LBRACE|RBRACE|IDENT|_[A-Z]{2,}")
INTRUDERS = [
    *"()[]{},.;:+*?=<>-/%!&|@#'`¬∧\"\u2018\0\ud800",
    *["==", "&&", "..", "->", "--", "/*", "≠"],
    *["template", "rule", "pattern", "use", "where", "when", "select", "then", "emit", "at", "with", "no", "all", "in"],
    *["RULE", "not", "distinct", "unordered", "a", "a : A", "a.x", "5", "5 minutes", "[0 s, 5 s]", "'text'", "f(x)"],
]


def tree_or_message(text: str) -> None:
    try:
        assert isinstance(parse(text), ast.Program)
    except QueryErrors as several:
        found = several.errors
    except QuerySyntaxError as error:
        found = (error,)
    else:
        return
    for error in found:
        assert str(error).startswith("[SYNTAX_ERROR] ")
        named = TERMINAL_NAMES.search(error.message)
        assert named is None or named[0] in text  # a message may quote what was written
        assert error.message.endswith(".")
        assert 0 <= error.where.start <= error.where.end <= len(text)  # type: ignore[union-attr]


@given(st.text())
def test_any_text_parses_or_is_explained(text: str) -> None:
    for around in (
        "{}",
        "rule {}",
        "rule R where {}",
        "rule R where a : A {{ {} }}",
        "rule R where a : A when {}",
        "rule R where a : A when then {}",
        "template T {{ {} }}",
    ):
        tree_or_message(around.format(text))


@given(programs.any_programs(), st.data())
def test_a_program_with_a_piece_lost_doubled_or_slipped_in_parses_or_is_explained(
    program: ast.Program, data: st.DataObject
) -> None:
    pieces = [piece.text for piece in pieces_of(print_program(program))]
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
