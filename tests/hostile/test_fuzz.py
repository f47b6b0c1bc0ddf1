"""Mutated texts: each is compiled, or refused by an error of Tocsin's own, within 5 s of CPU time and 1.5 GB."""

from __future__ import annotations

import pytest
from tests.hostile.child import compiled
from tests.hostile.mutations import mutated

pytestmark = pytest.mark.long
LANGUAGES = ("sase", "acel", "parte")
# 3 languages × 27 parts × 2,500 texts: 202,500.
PARTS, TEXTS = 27, 2_500


def survive(language, number, seed):
    outcomes = compiled(mutated(language, number, seed))
    assert len(outcomes) == number
    assert [(str(each.text), each.result, each.report[-1500:]) for each in outcomes if not each.survived] == []
    compiles = sum(each.result == "ok" for each in outcomes) / number
    assert compiles > 0.02, "mutations that change everything find nothing behind the parser"


@pytest.mark.parametrize("language", LANGUAGES)
def test_mutated_texts_are_survived(language):
    survive(language, 150, 0)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("language", LANGUAGES)
def test_many_mutated_texts_are_survived(language, part):
    survive(language, TEXTS, part)
