"""Every case file on every engine that claims its pattern."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import tocsin
from tocsin import errors, reference
from tocsin.testing.cases import Case, load_cases

CASES = load_cases(Path(__file__).parents[1] / "cases")
VALID = [case for case in CASES if case.error is None]
REFUSED = [case for case in CASES if case.error is not None]


def compiled(case: Case) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(case.pattern, language=case.language, name=f"{case.file}:{case.line}")


@pytest.mark.parametrize("case", VALID, ids=str)
def test_the_reference_gives_the_matches_of_the_case(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        rows = reference.evaluate(compiled(case), case.inputs(), tie=case.tie)
    assert case.differences(rows) == []


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_refused_pattern_is_refused_for_its_reason(case: Case) -> None:
    with pytest.raises(errors.TocsinError) as refusal:
        pattern = compiled(case)
        schemas = {
            kind: {name: _type_name([row[name] for row in rows]) for name in rows[0]}
            for kind, rows in case.inputs().items()
        }
        pattern.check(schemas)
    found = refusal.value
    conditions = [one.condition for one in found.errors] if isinstance(found, errors.QueryErrors) else [found.condition]
    assert conditions == [case.error]


def _type_name(values: list[object]) -> str:
    present = [value for value in values if value is not None]
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string"}
    return kinds[type(present[0])] if present else "bigint"


@pytest.mark.parametrize("case", [case for case in CASES if case.warns], ids=str)
def test_a_case_gives_its_warnings(case: Case) -> None:
    assert sorted(warning.condition for warning in compiled(case).warnings) == sorted(case.warns)
