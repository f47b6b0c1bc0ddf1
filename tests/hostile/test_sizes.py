"""Long and unclosed texts: time and memory stay within limits, measured in a child process."""

from __future__ import annotations

import itertools

import pytest
from tests.hostile.child import Text, compiled

import tocsin
from tocsin.errors import InvalidOptionError, QueryErrors, TextTooLongError
from tocsin.language.grammars import LONGEST_TEXT

pytestmark = pytest.mark.long
BEGINNINGS = {"sase": "PATTERN A a WHERE a.x = ", "acel": "A FILTER A[x = ", "parte": "rule R where a : A { x = "}
OPENINGS = ["", "/*", "'", '"', "`", "--", "#", "/* '", "'' '", "`` `"]
REPEATED = ["\n", "x", "''", '""', "``", "*", "/*", "*/", "\n--", "'\n", " \n", "'\"", "- "]
UNCLOSED = {
    language: beginning.split("{")[0].split("WHERE")[0].split("FILTER")[0] for language, beginning in BEGINNINGS.items()
}


@pytest.mark.parametrize("language", BEGINNINGS)
def test_an_unclosed_comment_is_refused_at_once(language):
    (outcome,) = compiled([Text(language, UNCLOSED[language] + "/*" + "\n" * 100_000)], seconds=3)
    assert outcome.result == "SYNTAX_ERROR", outcome
    assert "The comment is not closed." in outcome.report


@pytest.mark.parametrize("language", BEGINNINGS)
def test_a_string_costs_a_few_bytes_per_character(language):
    closed = {"sase": "'", "acel": "']", "parte": "' }"}[language]
    text = BEGINNINGS[language] + "'" + "x" * 900_000 + closed
    (outcome,) = compiled([Text(language, text)], seconds=3, memory_mb=500)
    assert outcome.survived, outcome
    assert outcome.grown_mb < 100


def test_no_opening_and_repetition_takes_more_than_linear_time():
    texts = [
        Text(language, beginning + opening + unit * 3_000 + end)
        for language, beginning in BEGINNINGS.items()
        for opening, unit in itertools.product(OPENINGS, REPEATED)
        for end in ("", opening[:1])
    ]
    slow = [outcome for outcome in compiled(texts, seconds=3) if not outcome.survived]
    assert not slow


@pytest.mark.parametrize("language", ["sase", "acel"])
def test_a_text_over_the_limit_is_refused_before_it_is_read(language):
    with pytest.raises(TextTooLongError) as caught:
        tocsin.pattern(" " * LONGEST_TEXT + "A", language=language, name="long.txt")
    assert str(caught.value) == (
        "[TEXT_TOO_LONG] The text long.txt has 1,000,001 characters; at most 1,000,000 are allowed.\n"
        "Hint: split it into several queries, keep large lists in a table or column, or raise `max_text=`."
    )


def test_the_limit_holds_for_programs_and_for_their_modules():
    with pytest.raises(TextTooLongError):
        tocsin.rules("rule R where a : A", max_text=10)
    with pytest.raises(QueryErrors, match=r"The text m\.parte has 64 characters; at most 40 are allowed"):
        tocsin.rules("use m rule R where a : A", modules={"m": "template A { x : Integer }".ljust(64)}, max_text=40)
    tocsin.rules("use m rule R where a : A", modules={"m": "template A { x : Integer }"}, max_text=40)


def test_the_limit_can_be_raised_and_is_a_number():
    text = "PATTERN A a -- " + "x" * LONGEST_TEXT
    assert tocsin.pattern(text, max_text=2 * LONGEST_TEXT).query.variables.keys() == {"a"}
    program = "template A { x : Integer } rule R where a : A when then -- " + "x" * LONGEST_TEXT
    assert tocsin.rules(program, max_text=2 * LONGEST_TEXT)
    for wrong in (0, -5, True, "1 MB", None):
        with pytest.raises(InvalidOptionError):
            tocsin.pattern("PATTERN A a", max_text=wrong)
        with pytest.raises(InvalidOptionError):
            tocsin.rules("rule R where a : A", max_text=wrong)
