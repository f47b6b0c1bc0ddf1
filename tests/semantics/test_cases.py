"""Every case file on every engine that claims its pattern."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conformance import CASES, VALID, Rows, compiled, pairs, runner, ways_of
from tests.engines.support import light_settings
from tests.streaming.queries import settings

from tocsin import errors
from tocsin.algebra.nodes import Query, event_types
from tocsin.analysis.front_ends import LANGUAGES
from tocsin.explain.pattern_report import problems_with_schemas
from tocsin.testing.cases import Case

REFUSED = [case for case in CASES if case.error is not None]


def assert_matches_of_the_case(run: Callable[[Case], Rows], case: Case) -> None:
    assert case.differences(run(case)) == []


@pytest.mark.parametrize(("engine", "case"), list(pairs()))
def test_every_engine_gives_the_matches_of_the_case(
    engine: str, case: Case, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with ExitStack() as stack:

        @cache
        def session() -> SparkSession:
            made = stack.enter_context(light_settings(request.getfixturevalue("spark")))
            return stack.enter_context(settings(made))

        run, ways = runner(engine, session, tmp_path), ways_of(engine, case)
        for way in ways:
            assert_matches_of_the_case(partial(run, strategy=way), case)
        if not ways:
            with pytest.raises(errors.TocsinError):
                run(case, "auto")


def test_most_cases_run_on_every_engine() -> None:
    """A case that an engine begins to refuse would otherwise go unnoticed."""
    counted = {engine: sum(len(ways_of(engine, case)) for case in VALID) for engine in ("local", "stream")}
    assert counted["local"] >= 900  # two thirds also as automata or aggregates
    assert counted["stream"] >= 150


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


@pytest.mark.parametrize("case", [case for case in REFUSED if case.language in LANGUAGES], ids=str)
def test_a_refused_pattern_is_still_compared_with_schemas(case: Case) -> None:
    def schemas(query: Query) -> dict[str, dict[str, str]]:
        return {name: {"ts": "bigint"} for name in event_types(query.pattern)}

    found = problems_with_schemas(case.pattern, case.language, "p", schemas, time="ts", type="type")
    try:
        compiled(case)
    except errors.TocsinError as refusal:
        names = refusal.errors if isinstance(refusal, errors.QueryErrors) else (refusal,)
        assert {one.condition for one in names} <= {one.condition for one in found}


def _type_name(values: list[object]) -> str:
    present = [value for value in values if value is not None]
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string"}
    return kinds[type(present[0])] if present else "bigint"


@pytest.mark.parametrize("case", [case for case in CASES if case.warns], ids=str)
def test_a_case_gives_its_warnings(case: Case) -> None:
    assert sorted(warning.condition for warning in compiled(case).warnings) == sorted(case.warns)
