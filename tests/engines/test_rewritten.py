"""Plans use the temporal network of the rewritten query, so that no rewrite of an absence loses a branch."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.engines.support import light_settings
from tests.fitting import drawn_for
from tests.optimizer.queries import ATTRIBUTES, constant_queries, keyed_queries
from tests.streaming.test_stepping import SCHEMA

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.alternatives import alternatives
from tocsin.analysis.temporal import network
from tocsin.engines.spark.engine import prepare
from tocsin.optimizer.statistics import Statistics
from tocsin.options import Options
from tocsin.plan.joins.refusals import unsupported
from tocsin.plan.prepare import prepare as bound_rule
from tocsin.testing.strategies import Features, Streams

ABSENCES = Features(absence=True, most_events=3)


@settings(max_examples=200)
@given(query=st.one_of(constant_queries(ABSENCES), keyed_queries(ABSENCES)))
def test_the_network_knows_every_alternative_of_the_rewritten_query(query: alg.Query) -> None:
    try:
        rule = bound_rule(query, dict.fromkeys(alg.event_types(query.pattern), ATTRIBUTES))
        distances = rule.network
    except errors.ContradictoryDistancesError:
        return
    for each in alternatives(rule.query.pattern):
        closure = distances.closure(each)
        assert closure is None or closure.variables == each.variables


def test_an_alternative_of_another_query_is_an_error() -> None:
    one, other = (tocsin.pattern(f"PATTERN SEQ(A a, NOT C n, B b) WHERE n.x > {x}").query for x in (1, 2))
    (alternative,) = alternatives(other.pattern)
    with pytest.raises(errors.InternalError):
        network(one).closure(alternative)


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark) as session:
        yield session


def random_statistics(seed: int) -> Statistics:
    chance = random.Random(seed)
    counts = {name: chance.choice([1, 100, 10_000, 100_000_000]) for name in "ABC"}
    return Statistics.of(counts, duration=chance.choice([1, 3600]) * 1_000_000, keys=chance.choice([1, 1000]))


def assert_as_the_reference(session: SparkSession, query: alg.Query, rows: Streams, seed: int, strategy: str) -> None:
    frames = {kind: session.createDataFrame(pa.Table.from_pylist(events, SCHEMA)) for kind, events in rows.items()}
    try:
        found = (
            prepare(query, frames, Options(statistics=random_statistics(seed), strategy=strategy)).matches().collect()
        )
    except errors.ContradictoryDistancesError:
        found = []
    assert sorted(row["match_id"] for row in found) == sorted(row.match_id for row in reference.evaluate(query, rows))


@settings(max_examples=12, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
@given(
    **drawn_for(st.one_of(constant_queries(ABSENCES), keyed_queries(ABSENCES)), max_events=7),
    seed=st.integers(0, 2**32),
    strategy=st.sampled_from(["join", "auto", "join"]),
)
def test_joins_of_rewritten_absences_equal_the_reference(
    light: SparkSession, query: alg.Query, rows: Streams, seed: int, strategy: str
) -> None:
    assume(strategy == "auto" or unsupported(query) is None)
    assert_as_the_reference(light, query, rows, seed, strategy)


# What is only folded, or only split by key, changes the condition of the absence and with it its alternative.
REWRITTEN = [
    "OR(SEQ(A a, NOT C n, B b), SEQ(B c, A d)) WHERE n.x > 1 * 2 WITHIN 5 SECONDS",
    "SEQ(A a, NOT C n, B b) WHERE a.k = b.k AND n.k = a.k WITHIN 5 SECONDS",
]


@pytest.mark.parametrize("strategy", ["join", "sliding-window", "auto"])
@pytest.mark.parametrize("text", REWRITTEN)
def test_a_rewritten_absence_loses_no_branch(light: SparkSession, text: str, strategy: str) -> None:
    events = [{"ts": second * 1_000_000, "k": "pq"[second // 6], "x": second % 5, "v": 0.0} for second in range(12)]
    rows = {kind: events[start::3] for start, kind in enumerate("ABC")}
    query = tocsin.pattern(f"PATTERN {text}").query
    assert len(reference.evaluate(query, rows)) >= 4
    assert_as_the_reference(light, query, rows, seed=1, strategy=strategy)
