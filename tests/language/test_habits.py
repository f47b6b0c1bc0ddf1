"""Every row of the tables of habits answers its own examples, and asks for what the grammar has."""

from __future__ import annotations

import re

import pytest

from tocsin.language.acel import habits as acel
from tocsin.language.grammars import grammar
from tocsin.language.messages import FACTS, Habit
from tocsin.language.partelang import habits as partelang
from tocsin.language.sase import habits as sase
from tocsin.source import Source

TABLES = {"sase": (sase, "query"), "acel": (acel, "query"), "partelang": (partelang, "program")}
# Rows that several languages share have examples in SASE+.
ROWS = [
    (language, habit)
    for language, (table, _) in TABLES.items()
    for habit in table.HABITS
    if language == "sase" or habit not in sase.HABITS
]
EXAMPLES = [(language, habit, example) for language, habit in ROWS for example in habit.examples]
# Parts that a situation decides by more than one terminal.
PARTS = {"acel": {"atom", "joint"}, "partelang": {"pattern"}}


def test_every_row_has_an_example():
    assert [habit.message for _, habit in ROWS if not habit.examples] == []


@pytest.mark.parametrize(("language", "habit", "example"), EXAMPLES, ids=[f"{row[0]}: {row[2]}" for row in EXAMPLES])
def test_an_example_is_answered_by_its_own_row(language: str, habit: Habit, example: str):
    table, start = TABLES[language]
    situation = table.Situation.of(Source(example), grammar(language, start), start)
    answering = next(row for row in table.HABITS if row.answer(situation) is not None)
    assert answering is habit, f"answered by the row of {answering.examples}: {answering.message}"


@pytest.mark.parametrize("language", TABLES)
def test_a_row_asks_for_terminals_and_parts_that_its_language_has(language: str):
    table, start = TABLES[language]
    names = {terminal.name for terminal in grammar(language, start).terminals}
    names |= {*table.Situation.expectations, *PARTS.get(language, ()), "<start>"}
    asked = {
        name
        for of, habit in ROWS
        if of == language
        for fact in ("after", "expects", "lacks", "only")
        for word in habit.facts.get(fact, [])
        for name in re.split("[,|]", word)
    }
    assert asked - names == set()


def test_a_row_has_only_facts_that_situations_have():
    assert {fact for _, habit in ROWS for fact in habit.facts} == FACTS.keys()
