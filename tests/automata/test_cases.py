"""Every case file on its automaton, where it has one: what it finds is what the reference finds, before policies."""

from __future__ import annotations

import pytest
from tests.automata.formulas import by_automaton, by_reference
from tests.conformance import VALID, compiled

from tocsin import automata, errors
from tocsin.reference.stream import ingest, partitions
from tocsin.testing.cases import Case


@pytest.mark.parametrize("case", VALID, ids=str)
def test_an_automaton_finds_the_matches_of_the_case(case: Case) -> None:
    query = compiled(case).query
    if automata.refusal(query.pattern) is not None:
        with pytest.raises(errors.TocsinError):
            automata.automaton(query.pattern)
        return
    ties = [case.tie] if isinstance(case.tie, str) else list(case.tie or ())
    events = ingest(case.inputs(), time="ts", tie=ties, type_column="type")
    for group in partitions(events, query.partition):
        assert by_automaton(query.pattern, group, query.window_us) == by_reference(
            query.pattern, group, query.window_us
        )


def test_all_of_acel_and_most_of_sase_have_automata() -> None:
    refused = [case for case in VALID if automata.refusal(compiled(case).query.pattern) is not None]
    assert not any(case.language == "acel" for case in refused)
    assert any(case.language == "acel" for case in VALID)
    assert len(refused) < len(VALID) / 2
