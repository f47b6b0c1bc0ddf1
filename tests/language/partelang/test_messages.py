"""What people get wrong in rules (mistakes.txt), and what they are told (the snapshots)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tocsin.errors import QueryErrors, QuerySyntaxError
from tocsin.language.partelang import parse

BLOCKS = re.split(r"\n\n(?=# )", Path(__file__).with_name("mistakes.txt").read_text("utf-8").rstrip("\n"))
MISTAKES = {name.removeprefix("# "): text for name, _, text in (block.partition("\n") for block in BLOCKS)}
TERMINALS = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|LBRACE|RBRACE|IDENT|_[A-Z]{2,}|\bWORD\b|QUOTED|\bINT\b|\bNO\b")


def refusal(text):
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    return caught.value


def test_every_mistake_has_its_own_name():
    assert len(MISTAKES) == len(BLOCKS) >= 50


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake, snapshot):
    assert str(refusal(MISTAKES[mistake])) == snapshot


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_message_is_a_sentence_at_a_place_without_names_of_the_grammar(mistake):
    error = refusal(MISTAKES[mistake])
    assert error.condition == "SYNTAX_ERROR"
    assert error.message.endswith(".")
    assert error.where is not None
    assert not TERMINALS.search(error.message + (error.hint or "")), error


SEVERAL = """\
template A { x Integer }
rule R where a : A { x > } when then
template B { y : Integer }
rule S where a : A b : B when b in a [0, 5] then
"""


def test_several_declarations_are_wrong_at_once(snapshot):
    with pytest.raises(QueryErrors) as caught:
        parse(SEVERAL, "bank.parte")
    assert [error.where.describe() for error in caught.value.errors] == [
        "bank.parte:1:16",
        "bank.parte:2:24",
        "bank.parte:4:40",
    ]
    assert str(caught.value) == snapshot


def test_a_mistake_does_not_hide_in_a_comment_or_a_string():
    parse("rule R where a : A { x = 'rule S' } # rule T where\nwhen -- template\nthen")
