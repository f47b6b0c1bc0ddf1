"""Formulas that are well formed and still wrong (mistakes.txt), and what people are told (the snapshots)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import tocsin
from tocsin import errors

STOCK = {"ts": "timestamp", "name": "string", "price": "double", "place": "struct<lat:double,lon:double>"}
SCHEMAS = {
    "SELL": STOCK,
    "BUY": STOCK,
    "QUOTE": {"ts": "timestamp", "name": "string", "price": "string"},
    "NOTE": {"ts": "timestamp", "text": "string"},
}
BLOCKS = re.split(r"\n\n(?=# )", Path(__file__).with_name("mistakes.txt").read_text("utf-8").rstrip("\n"))
MISTAKES = {name.removeprefix("# "): text for name, _, text in (block.partition("\n") for block in BLOCKS)}


def refusal(text: str) -> errors.TocsinError:
    with pytest.raises(errors.TocsinError) as caught:
        tocsin.pattern(text, language="acel", name="stocks.acel").check(SCHEMAS)
    return caught.value


def test_every_mistake_has_its_own_name() -> None:
    assert len(MISTAKES) == len(BLOCKS) >= 45


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str, snapshot: SnapshotAssertion) -> None:
    assert str(refusal(MISTAKES[mistake])) == snapshot


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_message_has_a_condition_a_sentence_a_place_and_advice(mistake: str) -> None:
    found = refusal(MISTAKES[mistake])
    for one in found.errors if isinstance(found, errors.QueryErrors) else (found,):
        assert one.condition
        assert one.message.endswith(".")
        assert one.where is not None, one
        assert one.hint, one
