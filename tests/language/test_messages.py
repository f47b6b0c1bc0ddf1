"""What people get wrong (mistakes.txt), and what they are told (the snapshots)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tocsin.errors import QuerySyntaxError
from tocsin.language.sase import parse, parse_expression

BLOCKS = re.split(r"\n\n(?=# )", Path(__file__).with_name("mistakes.txt").read_text("utf-8").rstrip("\n"))
MISTAKES = {name.removeprefix("# "): text for name, _, text in (block.partition("\n") for block in BLOCKS)}
TERMINALS = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|LBRACE|RBRACE|QMARK|[A-Z]+_MATCH|_[A-Z]{2,}|\bWORD\b|QUOTED|INT\b")


def refusal(read, text):
    with pytest.raises(QuerySyntaxError) as caught:
        read(text)
    return caught.value


def test_every_mistake_has_its_own_name():
    assert len(MISTAKES) == len(BLOCKS)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake, snapshot):
    assert str(refusal(parse, MISTAKES[mistake])) == snapshot


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_message_is_a_sentence_at_a_place_without_names_of_the_grammar(mistake):
    error = refusal(parse, MISTAKES[mistake])
    assert error.condition == "SYNTAX_ERROR"
    assert error.message.endswith(".")
    assert error.where is not None
    assert not TERMINALS.search(error.message + (error.hint or "")), error


@pytest.mark.parametrize(
    "text",
    ["", "a.x >", "a.x > 5 WITHIN 5 MINUTES", "a.x, b.x", "(a.x", "a.x)", "WHERE a.x > 5", "a.x > 5 minuts"],
)
def test_a_mistake_in_a_lone_expression_is_explained(text, snapshot):
    assert str(refusal(parse_expression, text)) == snapshot


def test_tools_get_the_place_in_numbers():
    error = refusal(lambda text: parse(text, name="fraud.sase"), "PATTERN SEQ(A a, B b)\nWHER a.x = b.x")
    assert error.to_dict() == {
        "condition": "SYNTAX_ERROR",
        "message": "There is no clause `WHER`.",
        "hint": "did you mean WHERE?",
        "at": "fraud.sase:2:1",
        "line": 2,
        "column": 1,
        "start": 22,
        "end": 26,
    }
