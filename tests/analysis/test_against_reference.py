"""The analyser against the reference: what it accepts, and the distances of the matches there are."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.fitting import cases

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.analysis.sase import translate
from tocsin.analysis.schema import bind
from tocsin.analysis.temporal import Network, network
from tocsin.language import ast
from tocsin.testing.cases import Case, load_cases
from tocsin.testing.strategies import ATTRIBUTES, EVERYTHING, TYPES, queries

CASES = [case for case in load_cases(Path(__file__).parents[1] / "cases") if case.error is None]
NAMES = {bool: "boolean", int: "bigint", float: "double", str: "string"}


def schemas_of(inputs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """The schema a user would have declared: a number that is sometimes a fraction is a double."""
    found: dict[str, dict[str, str]] = {}
    for event_type, rows in inputs.items():
        found[event_type] = {"ts": "bigint"}
        for name in dict.fromkeys(name for row in rows for name in row if name != "ts"):
            kinds = {NAMES[type(row[name])] for row in rows if row.get(name) is not None}
            found[event_type][name] = "double" if kinds == {"bigint", "double"} else max(kinds, default="void")
    return found


def compiled(case: Case) -> alg.Query:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(case.pattern, language=case.language, name=f"{case.file}:{case.line}").query


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_valid_case_binds_to_the_schemas_of_its_stream(case: Case) -> None:
    query = compiled(case)
    schemas = schemas_of(case.inputs())
    # A type that has no event in the stream has whatever attributes the pattern asks of it.
    lacking = {name: {"ts": "bigint"} for name in alg.event_types(query.pattern) if name not in schemas}
    try:
        bind(query, schemas | lacking)
    except errors.TocsinError as problem:
        several = problem.errors if isinstance(problem, errors.QueryErrors) else (problem,)
        unknown = [one for one in several if any(f"`{name}` has no attribute" in one.message for name in lacking)]
        assert list(several) == unknown


def assert_within(known: Network, rows: list[dict[str, Any]], variables: list[str]) -> None:
    for row in rows:
        times = {name: _times(row[name]) for name in variables}
        for x in variables:
            for y in variables:
                least, most = known.distance(x, y)
                for earlier in times[x]:
                    for later in times[y]:
                        assert least is None or least <= later - earlier
                        assert most is None or later - earlier <= most


def _times(bound: Any) -> list[int]:
    events = [bound] if isinstance(bound, dict) else bound or []
    return [event["ts"] for event in events]


@given(queries(EVERYTHING))
def test_every_query_that_is_valid_by_construction_binds(tree: ast.Query) -> None:
    bind(translate(tree).query, dict.fromkeys(TYPES, ATTRIBUTES))


@given(**cases(replace(EVERYTHING, returns=False), named=("tree", "rows")))
def test_the_matches_of_the_reference_keep_the_distances_of_the_network(tree: ast.Query, rows: Any) -> None:
    query = translate(tree).query
    if query.returns:
        return  # OUTPUT count
    found = [row for row in reference.evaluate(query, rows) if row.get("status") != "timeout"]
    try:
        known = network(query, integer_time=True)
    except errors.ContradictoryDistancesError:
        assert found == []
        return
    assert_within(known, found, list(query.variables))
