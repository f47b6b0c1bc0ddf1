"""Every case file on its automaton, where it has one: what it finds is what the reference finds, before policies."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from tests.automata.formulas import by_automaton, by_reference

import tocsin
from tocsin import automata, errors
from tocsin.algebra import nodes as alg
from tocsin.reference.stream import ingest, partitions
from tocsin.testing.cases import Case, load_cases

CASES = [case for case in load_cases(Path(__file__).parents[1] / "cases") if case.error is None]


def query_of(case: Case) -> alg.Query:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(case.pattern, language=case.language).query


WITH_AUTOMATA = [(case, query) for case in CASES if automata.refusal((query := query_of(case)).pattern) is None]


@pytest.mark.parametrize(("case", "query"), WITH_AUTOMATA, ids=[str(case) for case, _ in WITH_AUTOMATA])
def test_an_automaton_finds_the_matches_of_the_case(case: Case, query: alg.Query) -> None:
    ties = [case.tie] if isinstance(case.tie, str) else list(case.tie or ())
    events = ingest(case.inputs(), time="ts", tie=ties, type_column="type")
    for group in partitions(events, query.partition):
        assert by_automaton(query.pattern, group, query.window_us) == by_reference(
            query.pattern, group, query.window_us
        )


def test_all_of_acel_and_most_of_sase_have_automata() -> None:
    acel = {str(case) for case in CASES if case.language == "acel"}
    assert acel and acel <= {str(case) for case, _ in WITH_AUTOMATA}
    assert len(WITH_AUTOMATA) > len(CASES) / 2
