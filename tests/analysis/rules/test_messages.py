"""Programs that are well formed and still wrong (mistakes.txt), and what people are told (the snapshots).

A mistake whose name begins with a number breaks that restriction of `docs/reference/rules.md`, and the error says so.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import tocsin
from tocsin import errors
from tocsin.errors import RESTRICTIONS

TEMPLATES = """\
template Transfer { id : Integer, originator : String, destination : String, amount : Amount }
template Claim { id : Integer, reason : String }
template Alert { account : String, amount : Amount }
template Note { account : String }
template Listed { ids : [Integer; 2] }
"""
FUNCTIONS = {
    "uncommon_route": tocsin.function(lambda a, b: a != b, gives="boolean", pure=True),
    "random_check": tocsin.function(lambda amount: amount > 5, gives="boolean"),
}
BLOCKS = re.split(r"\n\n(?=# )", Path(__file__).with_name("mistakes.txt").read_text("utf-8").rstrip("\n"))
MISTAKES = {name.removeprefix("# "): text for name, _, text in (block.partition("\n") for block in BLOCKS)}


def refusal(text: str) -> errors.TocsinError:
    with pytest.raises(errors.TocsinError) as caught:
        templates = "" if text.startswith("template A { x : Integer }") else TEMPLATES
        tocsin.rules(templates + text, name="bank.parte", functions=FUNCTIONS, tables={"registered": [("A", "B")]})
    return caught.value


def single(found: errors.TocsinError) -> tuple[errors.TocsinError, ...]:
    return found.errors if isinstance(found, errors.QueryErrors) else (found,)


def test_every_mistake_has_its_own_name() -> None:
    assert len(MISTAKES) == len(BLOCKS) >= 70


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str, snapshot: SnapshotAssertion) -> None:
    assert str(refusal(MISTAKES[mistake])) == snapshot


@pytest.mark.parametrize("mistake", MISTAKES)
def test_requirement_02_an_error_has_a_place_and_the_restriction_it_breaks(mistake: str) -> None:
    found = single(refusal(MISTAKES[mistake]))
    for one in found:
        assert one.condition
        assert one.message.endswith(".")
        assert one.where is not None, one
        assert "bank.parte:" in str(one)
    number = re.match(r"S\d+\b", mistake)
    if number is not None:
        assert len(found) == 1, [str(one) for one in found]
        assert (found[0].restriction or "").startswith(f"{number[0]}: "), found[0]
        assert found[0].to_dict()["restriction"] == number[0]
        assert f"Rule {number[0]}: {RESTRICTIONS[number[0]]}" in str(found[0])


def test_several_errors_are_shown_at_once() -> None:
    found = single(refusal(MISTAKES["many at once"]))
    assert [one.condition for one in found] == [
        "UNKNOWN_EVENT_TYPE",
        "INVALID_WINDOW",
        "UNBOUNDED_PATTERN",
        "INCOMPLETE_EMIT",
        "NON_MONOTONE_TIME",
        "UNKNOWN_ATTRIBUTE",
    ]
