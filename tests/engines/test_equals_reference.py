"""Spark reports what the reference reports: on every case it claims, and on random queries and streams."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.fitting import queries_with_streams

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.algebra.nodes import ordered_by_ties
from tocsin.engines.spark.engine import prepare
from tocsin.language import ast
from tocsin.options import Options
from tocsin.plan.strategies import refusals
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import ATTRIBUTES, JOINS, LANGUAGE, TIMEOUTS, TYPES, Streams

ARROW_TYPES = {"boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
NAMES = {bool: "boolean", int: "bigint", float: "double", str: "string"}


def compiled(query: str | ast.Query, language: str = "sase") -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query, language=language)


def ordered(pattern: tocsin.Pattern, tie: Sequence[str]) -> alg.Query:
    """The query as it runs with tie columns, which joins do not compare."""
    return ordered_by_ties(pattern.query) if tie else pattern.query


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def with_interval(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference's rows with the columns that Spark adds to RETURN."""
    return [{**row, "start": row["start"], "end": row["end"]} for row in rows]


# --- random queries -------------------------------------------------------------------------------


ARROW = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64(), "type": pa.string()})
READERS = 2


class Feed:
    """Frames over a file that is written anew for every stream: planning a query takes longer than running it."""

    def __init__(self, spark: SparkSession, path: Path, layout: str) -> None:
        self.spark = spark
        self.path = str(path)
        self.layout = layout

    def frames(self) -> Any:
        if self.layout == "one frame":
            return self._frame(None)
        return {kind: self._frame(kind) for kind in TYPES}

    def _frame(self, kind: str | None) -> DataFrame:
        path = self.path
        columns = [*ATTRIBUTES, "type"] if kind is None else list(ATTRIBUTES)

        def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    with pa.ipc.open_file(path) as file:
                        table = file.read_all()
                    own = range(number, table.num_rows, READERS)
                    table = table.take(pa.array(own, pa.int64()))
                    if kind is not None:
                        table = table.filter(pc.equal(table.column("type"), kind))
                    yield from table.select(columns).to_batches()

        schema = ", ".join(f"{name} {ATTRIBUTES.get(name, 'string')}" for name in columns)
        return self.spark.range(0, READERS, 1, READERS).mapInArrow(read, schema)

    def write(self, rows: Streams) -> Streams:
        """The next stream; how the reference must see it."""
        typed = {kind: [{**row, "type": kind} for row in events] for kind, events in rows.items()}
        table = pa.Table.from_pylist([row for events in typed.values() for row in events], schema=ARROW)
        with pa.OSFile(self.path, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return typed if self.layout == "one frame" else rows


def built(pattern: tocsin.Pattern, feed: Feed, tie: Sequence[str]) -> dict[str, DataFrame | None]:
    """By strategy the frame of matches; None where the query is refused because no stream has a match."""
    frames: dict[str, DataFrame | None] = {}
    for strategy, refusal in refusals(ordered(pattern, tie)).items():
        if refusal is not None or strategy == "clustered":
            continue  # what time-clustered input needs is in test_clustered
        # Slices as narrow as the pattern allows, so that matches straddle them.
        options = {"slice_us": 1} if strategy in ("kernel", "trend", "automaton") else {}
        try:
            frames[strategy] = prepare(
                pattern.query, feed.frames(), Options(tie=tie, strategy=strategy, **options)
            ).matches()
        except errors.ContradictoryDistancesError:
            frames[strategy] = None
        except errors.UnsupportedError as refused:
            assert "cannot compute on numbers" in refused.message or "neither integers nor" in refused.message
    return frames


def check(
    feed: Feed, case: tuple[ast.Query, list[Streams]], tie: Sequence[str], turn: int, counted: Counter[str]
) -> None:
    """Every strategy that claims a query reports for each stream what the reference reports."""
    query, several = case
    pattern = compiled(query)
    frames = built(pattern, feed, tie)
    for number, rows in enumerate(several):
        moved = earlier(rows, EARLIER_US[(turn + number) % len(EARLIER_US)])
        expected = reference.evaluate(pattern, feed.write(moved), tie=tie)
        if pattern.query.timeouts and None in frames.values():
            continue  # distances that cannot be are refused, and let nothing but time-outs be
        feed.spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS[(turn + number) % len(PARTITIONS)])
        for strategy, frame in frames.items():
            # A new plan of the same frame: Spark would take the shuffled rows of the stream before.
            found = [] if frame is None else rows_of(frame.select("*"))
            if pattern.query.over_all_matches:
                assert_same_rows(found, expected if frame is not None else [])
            else:
                assert_same_rows(found, with_interval(expected))
                ids = [row["match_id"] for row in found]
                assert sorted(ids) == sorted(row["match_id"] for row in expected)
                assert len(set(ids)) == len(ids)
            counted[strategy] += 1
            counted["matched"] += bool(expected)
            counted["timed out"] += any(row.get("status") == "timeout" for row in expected)


def earlier(rows: Streams, by_us: int) -> Streams:
    return {
        kind: [row | {"ts": None if row["ts"] is None else row["ts"] - by_us} for row in some]
        for kind, some in rows.items()
    }


PARTITIONS = ("1", "2", "7")
EARLIER_US = (0, 1, 1_000_001)  # a slice begins at 0: before it are no events, the first ones, or many
LAYOUTS = st.sampled_from(["frame per type", "one frame"])
TIES = st.sampled_from([(), (), ("x",), ("v", "k")])
# Joins refuse the order by tie columns, so that their queries have none, and are drawn more often.
QUERIES = st.one_of(
    st.tuples(queries_with_streams(LANGUAGE, number=3, max_events=8), TIES),
    st.tuples(queries_with_streams(JOINS, number=3, max_events=8), st.just(())),
    st.tuples(queries_with_streams(JOINS, number=3, max_events=8), st.just(())),
    st.tuples(queries_with_streams(TIMEOUTS, number=3, max_events=8), TIES),
)


def run(spark: SparkSession, folder: Path, examples: int) -> Counter[str]:
    """Check random queries; how many (query, stream) pairs each strategy has run."""
    counted: Counter[str] = Counter()

    # A failure is shown as it was found: every step of shrinking would be several Spark jobs.
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
    @given(tied=QUERIES, layout=LAYOUTS, turn=st.integers(0, 2))
    def all_strategies(tied: tuple[tuple[ast.Query, list[Streams]], tuple[str, ...]], layout: str, turn: int) -> None:
        check(Feed(spark, folder / "stream", layout), *tied, turn, counted)

    with light_settings(spark):
        all_strategies()
    return counted


@pytest.mark.timeout(600)
def test_every_strategy_equals_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    counted = run(spark, tmp_path, 8)
    assert counted["kernel"] >= 20
    assert counted["join"] >= 4
    assert counted["matched"] >= 7


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_every_strategy_equals_the_reference_in_thousands_of_cases(spark: SparkSession, tmp_path: Path) -> None:
    counted = run(spark, tmp_path, 420)
    assert counted.total() - counted["matched"] - counted["timed out"] >= 2_000
    assert counted["timed out"] >= 50
