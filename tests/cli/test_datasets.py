"""Bundled streams: small, the same on every machine, with the story they tell."""

from __future__ import annotations

import io

import pytest
from tools import bank

import tocsin
from tocsin import datasets, errors


def test_the_bundled_file_is_what_the_generator_writes() -> None:
    written = io.StringIO()
    bank.write(written)
    assert written.getvalue() == datasets.path("bank").read_text(encoding="utf-8")


def test_loading_gives_the_generated_events_back() -> None:
    assert datasets.load("bank") == bank.events()


def test_exactly_three_accounts_are_taken_over() -> None:
    pattern = tocsin.pattern(datasets.pattern_path("bank").read_text(encoding="utf-8"))
    rows = tocsin.reference.evaluate(pattern, datasets.load("bank"))
    assert sorted(row["user"] for row in rows) == ["chloe", "iris", "jonas"]


def test_another_seed_tells_the_same_story_of_other_events() -> None:
    pattern = tocsin.pattern(datasets.pattern_path("bank").read_text(encoding="utf-8"))
    events = bank.events(seed=8)
    assert events != bank.events()
    assert len(tocsin.reference.evaluate(pattern, events)) == 3


def test_an_unknown_stream_is_named_with_the_nearest() -> None:
    with pytest.raises(errors.InvalidOptionError, match="did you mean `bank`"):
        datasets.path("bnk")
