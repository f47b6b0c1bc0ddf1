"""What people get wrong in ACEL (mistakes.txt), and what they are told (the snapshots)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tocsin.errors import QuerySyntaxError
from tocsin.language import sase
from tocsin.language.acel import parse

BLOCKS = re.split(r"\n\n(?=# )", Path(__file__).with_name("mistakes.txt").read_text("utf-8").rstrip("\n"))
MISTAKES = {name.removeprefix("# "): text for name, _, text in (block.partition("\n") for block in BLOCKS)}
TERMINALS = re.compile(r"\$END|LPAR|RPAR|LSQB|RSQB|SEMICOLON|COLON|ADJACENT|_[A-Z]{2,}|\bWORD\b|VARIABLE|QUOTED|INT\b")


def refusal(text: str) -> QuerySyntaxError:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    return caught.value


def test_every_mistake_has_its_own_name() -> None:
    assert len(MISTAKES) == len(BLOCKS) >= 90


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str, snapshot: SnapshotAssertion) -> None:
    assert str(refusal(MISTAKES[mistake])) == snapshot


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_message_is_a_sentence_at_a_place_with_advice(mistake: str) -> None:
    error = refusal(MISTAKES[mistake])
    assert error.condition == "SYNTAX_ERROR"
    assert error.message.endswith(".")
    assert error.where is not None
    assert error.hint
    assert not TERMINALS.search(error.message + error.hint), error


@pytest.mark.parametrize(
    "text", ["SELL ; BUY", "SELL AS s FILTER s[x > 1]", "AGG y[n <- count(A)](A+)", "A+", "A OR B"]
)
def test_sase_knows_acel_when_it_sees_it(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        sase.parse(text)
    assert 'say language="acel"' in (caught.value.hint or "")


def test_a_formula_nested_too_deep_is_refused() -> None:
    for text in ("(" * 200 + "A" + ")" * 200 + "+", "A" + "+" * 200, "A" + " ; A : A" * 200):
        if text.startswith("("):
            parse(text)  # parentheses alone nest nothing
        else:
            assert "levels deep" in refusal(text).message


def test_a_long_sequence_is_not_deep() -> None:
    assert len(parse(" ; ".join(["A"] * 500)).formula.children()) == 500
