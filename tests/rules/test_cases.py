"""The case files of rules on the reference; every engine that runs rules will run them too."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import tocsin
from tocsin.errors import TocsinError, TocsinWarning
from tocsin.reference import evaluate, events
from tocsin.testing.cases import Case, load_cases

CASES = load_cases(Path(__file__).with_name("cases"))


def compiled(case: Case) -> tocsin.Rules:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        return tocsin.rules(case.program, name=f"{case.file}:{case.line}")


@pytest.mark.parametrize("case", [case for case in CASES if case.error is None], ids=str)
def test_the_reference_gives_the_matches_and_events_of_the_case(case: Case) -> None:
    program = compiled(case)
    if case.matches is not None:
        found = evaluate(program, case.inputs(), tie=case.tie)
        assert case.differences(found[case.rule or list(found)[-1]]) == []
    assert case.emit_differences(events(program, case.inputs(), tie=case.tie)) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.error is not None], ids=str)
def test_a_refused_program_is_refused_for_its_reason(case: Case) -> None:
    with pytest.raises(TocsinError) as refusal:
        compiled(case)
    assert refusal.value.condition == case.error


@pytest.mark.parametrize("case", [case for case in CASES if case.error is None], ids=str)
def test_a_case_gives_its_warnings(case: Case) -> None:
    assert [warning.condition for warning in compiled(case).warnings] == list(case.warns)
