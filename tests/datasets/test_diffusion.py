"""Requirement 63: the workload of §7.4, made from a seed, and every case of it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engines.support import light_settings

import tocsin
from tocsin import datasets
from tocsin.datasets import diffusion
from tocsin.datasets.diffusion import PUBLISHED_GROUPS, PUBLISHED_UNRELATED, Trace, one_after_another, trace

CASES = {10: 6, 100: 50, 1000: 500}
RULE = "FraudDiffusion"


def program() -> tocsin.Rules:
    """The shipped rules, with two weeks that last 14 milliseconds."""
    text = datasets.pattern_path("fraud").read_text(encoding="utf-8").replace("14 days", "14 milliseconds")
    # Workers have no module of the tests, and need none.
    known = tocsin.function(lambda a, b: a % 2 == 1, gives="boolean", pure=True)
    return tocsin.rules(text, functions={"known_route": known})


def published(runs: range) -> Iterator[Trace]:
    for groups in PUBLISHED_GROUPS:
        for unrelated in PUBLISHED_UNRELATED:
            for run in runs:
                yield trace(groups, unrelated, seed=run)


def local(made: Trace) -> set[tuple[int, ...]]:
    return found(program().matches(RULE, {"MoneyTransferred": made.transfers.table()}, engine="local"))


def found(matches: pa.Table) -> set[tuple[int, ...]]:
    names = ("incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    columns = [matches.column(name).combine_chunks().field("id").to_pylist() for name in names]
    ids = list(zip(*columns, strict=True))
    assert len(set(ids)) == len(ids)
    return set(ids)


def cases(made: Trace) -> set[tuple[int, ...]]:
    return {tuple(case) for case in made.cases.tolist()}


@pytest.mark.parametrize("groups", PUBLISHED_GROUPS)
@pytest.mark.parametrize("unrelated", PUBLISHED_UNRELATED)
def test_requirement_63_a_trace_is_as_the_paper_says(groups: int, unrelated: int) -> None:
    made = trace(groups, unrelated, seed=5)
    events = {row["id"]: row for row in made.transfers.rows()}
    assert len(events) == 4 * groups + unrelated
    assert list(made.transfers["ts"]) == sorted(made.transfers["ts"])
    assert max(Counter(made.transfers["ts"].tolist()).values()) <= diffusion.RATE_PER_MS
    assert len(made.cases) == CASES[groups]
    assert set(made.transfers["source"].tolist()) == {0, 1}
    for case in made.cases.tolist():
        incoming, *outgoing = (events[id] for id in case)
        assert 100 <= incoming["amount"] == sum(one["amount"] for one in outgoing)
        assert all(0 <= one["ts"] - incoming["ts"] < 14_000 for one in outgoing)
        assert all(one["originator"] == incoming["destination"] for one in outgoing)
        assert not any(
            diffusion.is_common_route(one["originator"], one["destination"]) for one in (incoming, *outgoing)
        )
    single = [event for id, event in events.items() if id >= 4 * groups]
    if unrelated == 10_000:
        common = [diffusion.is_common_route(event["originator"], event["destination"]) for event in single]
        assert np.mean(common) == pytest.approx(0.9, abs=0.01)
        assert np.mean([event["amount"] >= 100 for event in single]) == pytest.approx(0.5, abs=0.02)


def test_requirement_63_the_same_seed_gives_the_same_trace() -> None:
    one, same, other = (trace(10, 100, seed=seed).transfers.rows() for seed in (1, 1, 2))
    assert one == same != other


def test_requirement_63_transfers_are_drawn_again_where_a_millisecond_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusion, "LAST_START_MS", 52)
    made = trace(100, 100, seed=1)
    counts = Counter(made.transfers["ts"].tolist())
    assert max(counts.values()) == diffusion.RATE_PER_MS
    assert sum(counts.values()) == 500


def test_requirement_63_every_case_is_found_locally() -> None:
    made = one_after_another([trace(groups, unrelated, seed=7) for groups in (10, 100) for unrelated in (0, 100)])
    assert local(made) == cases(made)


def test_requirement_63_the_reference_finds_the_cases() -> None:
    made = trace(10, 30, seed=11)
    matches = tocsin.reference.evaluate(program(), {"MoneyTransferred": made.transfers.rows()})[RULE]
    names = ("incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    assert {tuple(match[name]["id"] for name in names) for match in matches} == cases(made)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, 4) as light:
        yield light


def on_spark(spark: SparkSession, made: Trace) -> set[tuple[int, ...]]:
    transfers = spark.createDataFrame(made.transfers.table())
    return found(program().matches(RULE, {"MoneyTransferred": transfers}).toArrow())


def test_requirement_63_every_case_is_found_on_spark(light: SparkSession) -> None:
    made = one_after_another(list(published(range(1))))
    assert len(made.cases) == 4 * (6 + 50 + 500)
    assert on_spark(light, made) == cases(made)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_requirement_63_every_case_of_1200_runs_is_found_on_spark(spark: SparkSession) -> None:
    made = one_after_another(list(published(range(100))))
    assert len(made.cases) == 100 * 4 * (6 + 50 + 500)
    assert on_spark(spark, made) == cases(made)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_requirement_63_every_case_of_every_configuration_is_found_locally() -> None:
    for made in published(range(100, 102)):
        assert local(made) == cases(made)
