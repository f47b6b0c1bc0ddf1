"""ACEL runs: what Spark and the local engine report is what the reference reports, down to the ids of matches."""

from __future__ import annotations

import datetime as dt
import operator
import warnings
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.engines.support import light_settings
from tests.engines.test_equals_reference import LAYOUTS, PARTITIONS, Feed, rows_of
from tests.fitting import drawn_for

import tocsin
from tocsin import errors, reference
from tocsin.algebra import nodes as alg
from tocsin.engines.local import match as local
from tocsin.engines.spark.engine import prepare
from tocsin.language.acel import ast, print_query
from tocsin.options import Options
from tocsin.testing import assert_same_rows, formulas
from tocsin.testing.streams import ATTRIBUTES, TYPES, Streams, streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})
Rows = list[dict[str, Any]]


def acel(text: str, **options: Any) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(text, language="acel", **options)


def bare(value: Any) -> Any:
    """A row without what is NULL: an event has the attributes of all kinds that its variable holds, or its own only."""
    if isinstance(value, dict):
        return {name: bare(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)  # as Spark gives it
    return [bare(one) for one in value] if isinstance(value, list | tuple) else value


def assert_equal(pattern: tocsin.Pattern, found: Rows, expected: Rows) -> None:
    """The same matches, and the same ids."""
    if pattern.query.over_all_matches:
        assert_same_rows(found, expected)
        return
    wanted = [{**row, "start": row["start"], "end": row["end"]} for row in expected]
    assert_same_rows(map(bare, found), map(bare, wanted))
    ids = [row["match_id"] for row in found]
    assert sorted(ids) == sorted(row["match_id"] for row in expected)
    assert len(set(ids)) == len(ids)


# --- random formulas ------------------------------------------------------------------------------


@st.composite
def texts(draw: st.DrawFn, *, max_depth: int = 3) -> str:
    """A formula with or without clauses for its result."""
    query: ast.Query = draw(formulas.queries(max_depth=max_depth))
    text = print_query(query)
    variables = sorted(acel(text).query.variables)
    name = draw(st.sampled_from(variables))
    clause = draw(
        st.sampled_from(
            [
                *["", "", "", ""],
                "RETURN COUNT(*) AS matches",
                f"RETURN COUNT(`{name}`) AS held",
                f"RETURN `{name}`",
                f"RETURN COUNT(*) AS matches, COUNT(`{name}`) AS held",
                f"RETURN COUNT(`{name}`) AS held HAVING held > 1",
            ]
        )
    )
    return f"{text}\n{clause}"


def tables_of(rows: Streams) -> dict[str, pa.Table]:
    return {name: pa.Table.from_pylist(rows[name], schema=SCHEMA) for name in TYPES}


def check_locally(text: str, rows: Streams) -> None:
    pattern = acel(text)
    try:
        found = local.match(pattern.query, tables_of(rows), Options(strategy="automaton")).to_pylist()
    except errors.TypeMismatchError:
        assume(False)  # a variable of two kinds of events that have an attribute in common, but not its type
    assert_equal(pattern, found, reference.evaluate(pattern.query, rows))


@settings(max_examples=300, suppress_health_check=list(HealthCheck), deadline=None)
@given(**drawn_for(texts(), lambda text: acel(text).query, max_events=6, named=("text", "rows")))
def test_the_local_engine_equals_the_reference(text: str, rows: Streams) -> None:
    check_locally(text, rows)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=3000, suppress_health_check=list(HealthCheck), deadline=None)
@given(**drawn_for(texts(max_depth=4), lambda text: acel(text).query, max_events=6, named=("text", "rows")))
def test_the_local_engine_equals_the_reference_on_deep_formulas(text: str, rows: Streams) -> None:
    check_locally(text, rows)


def check(feed: Feed, text: str, several: list[Streams], turn: int, counted: Counter[str]) -> None:
    pattern = acel(text)
    try:
        # Slices as narrow as the window allows, so that matches straddle them.
        frame = prepare(pattern.query, feed.frames(), Options(strategy="automaton", slice_us=1)).matches()
    except errors.TypeMismatchError:
        return
    for number, rows in enumerate(several):
        expected = reference.evaluate(pattern.query, feed.write(rows))
        feed.spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS[(turn + number) % len(PARTITIONS)])
        # A new plan of the same frame: Spark would take the shuffled rows of the stream before.
        assert_equal(pattern, rows_of(frame.select("*")), expected)
        counted["compared"] += 1
        counted["matched"] += bool(expected)


def run(spark: SparkSession, folder: Path, examples: int) -> Counter[str]:
    """Check random formulas; how many (formula, stream) pairs there were, and how many of them had matches."""
    counted: Counter[str] = Counter()

    # A failure is shown as it was found: every step of shrinking would be several Spark jobs.
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate])
    @given(
        **drawn_for(texts(), lambda text: acel(text).query, max_events=6, named=("text", "first")),
        others=st.lists(streams(max_events=6), min_size=2, max_size=2),
        layout=LAYOUTS,
        turn=st.integers(0, 2),
    )
    def formulas_on_spark(text: str, first: Streams, others: list[Streams], layout: str, turn: int) -> None:
        check(Feed(spark, folder / "stream", layout), text, [first, *others], turn, counted)

    with light_settings(spark):
        formulas_on_spark()
    return counted


@pytest.mark.timeout(600)
def test_spark_equals_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    counted = run(spark, tmp_path, 10)
    assert counted["compared"] >= 21
    assert counted["matched"] >= 6


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_spark_equals_the_reference_in_thousands_of_cases(spark: SparkSession, tmp_path: Path) -> None:
    counted = run(spark, tmp_path, 720)
    assert counted["compared"] >= 2_000
    assert counted["matched"] >= 700


# --- by hand --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def light(spark: SparkSession) -> Iterator[SparkSession]:
    with light_settings(spark, partitions=2) as session:
        yield session


def match_id(row: dict[str, Any]) -> str:
    return str(row.get("match_id"))


def here(pattern: tocsin.Pattern, tables: dict[str, pa.Table], **options: Any) -> Rows:
    """What the local engine reports, which is what the reference does."""
    rows = {name: one.to_pylist() for name, one in tables.items()}
    found: Rows = local.match(pattern.query, tables, Options(**options)).to_pylist()
    assert_equal(pattern, found, reference.evaluate(pattern.query, rows, **options))
    return found


def everywhere(spark: SparkSession, pattern: tocsin.Pattern, tables: dict[str, pa.Table], **options: Any) -> Rows:
    """What Spark reports, which is what the local engine and the reference do."""
    expected = here(pattern, tables, **options)
    frames: dict[str, DataFrame] = {name: spark.createDataFrame(one) for name, one in tables.items()}
    found = rows_of(pattern.match(frames, **options))
    assert_same_rows(map(bare, found), map(bare, expected))
    assert sorted(map(match_id, found)) == sorted(map(match_id, expected))
    return found


def table(rows: Rows, **types: pa.DataType) -> pa.Table:
    schema = pa.schema({"ts": pa.int64(), **types})
    return pa.Table.from_pylist(rows, schema=schema)


OF_EVERY_TYPE = table(
    [
        {
            "ts": number,
            "name": name,
            "price": Decimal(price),
            "at": dt.datetime(2026, 1, number, 12, tzinfo=dt.UTC),
            "wall": dt.datetime(2026, 1, number, 12),
            "day": dt.date(2026, 1, number),
            "took": dt.timedelta(seconds=number),
            "small": number,
            "single": number / 4,
            "is_new": number > 1,
            "raw": bytes([number]),
        }
        for number, (name, price) in enumerate([("b", "1.10"), ("ä", "20.05"), ("a", "3.00")], start=1)
    ],
    name=pa.string(),
    price=pa.decimal128(10, 2),
    at=pa.timestamp("us", "UTC"),
    wall=pa.timestamp("us"),
    day=pa.date32(),
    took=pa.duration("us"),
    small=pa.int32(),
    single=pa.float32(),
    is_new=pa.bool_(),
    raw=pa.binary(),
)


@pytest.mark.parametrize("name", OF_EVERY_TYPE.column_names)
def test_values_of_one_type_are_aggregated(name: str) -> None:
    for functions in (("min", "max", "first", "last"), ("min", "last", "collect")):
        folds = ", ".join(f"{function} <- {function}(A.{name})" for function in functions)
        pattern = acel(f"AGG y[{folds}](A : A : A)")
        (found,) = here(pattern, {"A": OF_EVERY_TYPE})
        values = [event[name] for event in found["A"]]
        known = {"min": min(values), "max": max(values), "first": values[0], "last": values[-1], "collect": values}
        assert found["y"] == {function: known[function] for function in functions}


def test_numbers_and_times_are_aggregated(light: SparkSession) -> None:
    names = ("ts", "at", "wall", "day", "took", "small", "single", "is_new")
    folds = ", ".join(f"{function}_{name} <- {function}(A.{name})" for name in names for function in ("max", "first"))
    (found,) = everywhere(light, acel(f"AGG y[{folds}](A : A : A)"), {"A": OF_EVERY_TYPE})
    assert found["y"]["max_day"] == dt.date(2026, 1, 3)
    assert found["y"]["first_wall"] == dt.datetime(2026, 1, 1, 12)


def test_values_of_every_type_are_aggregated(light: SparkSession) -> None:
    folds = ", ".join(
        f"{function}_{name} <- {function}(A.{name})"
        for name in OF_EVERY_TYPE.column_names
        for function in ("min", "max", "first", "last")
    )
    pattern = acel(f"AGG y[{folds}, sum <- sum(A.price), n <- sum(A.small), mean <- avg(A.price)](A : A : A)")
    (found,) = everywhere(light, pattern, {"A": OF_EVERY_TYPE})
    made = found["y"]
    assert made["max_name"] == "ä"
    assert made["first_name"] == "b"
    assert made["sum"] == Decimal("24.15")
    assert made["max_day"] == dt.date(2026, 1, 3)
    assert made["n"] == 6
    frame = pattern.match({"A": light.createDataFrame(OF_EVERY_TYPE)})
    declared = dict(frame.select("y.*").dtypes)
    assert declared["sum"] == "decimal(38,2)"
    assert declared["min_price"] == "decimal(10,2)"
    assert declared["max_small"] == "int"
    assert declared["n"] == "bigint"
    assert declared["min_at"] == "timestamp"


def test_values_are_collected(light: SparkSession) -> None:
    rows = [{"ts": at, "k": key, "v": value} for at, (key, value) in enumerate([("a", 0.5), ("b", 2.0)])]
    pattern = acel("AGG y[keys <- collect(A.k), all <- collect(A.v)](A : A)")
    (found,) = everywhere(light, pattern, {"A": table(rows, k=pa.string(), v=pa.float64())})
    assert found["y"] == {"keys": ["a", "b"], "all": [0.5, 2.0]}


def test_one_null_spoils_an_aggregate_and_is_counted(light: SparkSession) -> None:
    rows = [{"ts": 1, "x": 1}, {"ts": 2, "x": None}]
    pattern = acel("AGG y[s <- sum(A.x), m <- max(A.x), n <- count(A.x), l <- last(A.x)](A : A)")
    (found,) = everywhere(light, pattern, {"A": table(rows, x=pa.int64())})
    assert found["y"] == {"s": None, "m": None, "n": 2, "l": None}


def test_tie_columns_order_events_of_one_instant(light: SparkSession) -> None:
    rows = {"A": [{"ts": 1, "seq": 2}], "B": [{"ts": 1, "seq": 1}, {"ts": 1, "seq": 3}]}
    tables = {name: table(events, seq=pa.int64()) for name, events in rows.items()}
    assert len(everywhere(light, acel("A ; B"), tables)) == 2  # by type: A stands before both
    (found,) = everywhere(light, acel("A ; B"), tables, tie="seq")
    assert found["B"]["seq"] == 3


@pytest.mark.parametrize("text", ["A ; B", "A : B", "AGG y[n <- count(A)](A+)", "PROJECT[A(x)](A ; B)", "NEXT(A)"])
def test_nothing_is_found_in_nothing(light: SparkSession, text: str) -> None:
    tables = {name: table([], x=pa.int64()) for name in "AB"}
    assert everywhere(light, acel(text), tables) == []
    assert everywhere(light, acel(f"{text} RETURN COUNT(*) AS n"), tables) == [{"n": 0}]


def test_events_of_other_types_stand_between_neighbours(light: SparkSession) -> None:
    rows = {"A": [1, 4], "X": [2], "B": [3, 5]}
    tables = {name: table([{"ts": at} for at in times]) for name, times in rows.items()}
    (found,) = everywhere(light, acel("A : B"), tables)
    assert (found["start"], found["end"]) == (4, 5)
    assert len(everywhere(light, acel("A ; B"), tables)) == 3
    # NEXT begins at any event, whatever its type (R22).
    starts = [row["start"] for row in everywhere(light, acel("NEXT(B)"), tables)]
    assert sorted(starts) == [1, 2, 3, 4, 5]
    together = pa.concat_tables(one.append_column("type", pa.array([name] * len(one))) for name, one in tables.items())
    found = rows_of(acel("A : B").match(light.createDataFrame(together)))
    assert [row["start"] for row in found] == [4]


def test_a_column_without_a_type_is_a_neighbour_too(light: SparkSession) -> None:
    frame = light.createDataFrame([(1, "A"), (2, None), (3, "B"), (4, "A"), (5, "B")], "ts long, type string")
    assert [row["start"] for row in rows_of(acel("A : B").match(frame))] == [4]


def test_projected_events_have_only_what_is_left(light: SparkSession) -> None:
    rows = [{"ts": at, "x": at, "k": "a"} for at in (1, 2)]
    pattern = acel("PROJECT[A(k), y](AGG y[n <- count(A)](A AS y ; A))")
    (found,) = everywhere(light, pattern, {"A": table(rows, x=pa.int64(), k=pa.string())})
    assert found["A"] == [{"k": "a"}, {"k": "a"}]
    assert [one["n"] for one in found["y"]] == [None, 2]


def test_matches_that_look_the_same_are_numbered_over_all_partitions(light: SparkSession) -> None:
    rows = [{"ts": 1, "k": key} for key in "abcdefgh"] * 2
    tables = {"A": table(rows, k=pa.string())}
    pattern = acel("PROJECT[y](AGG y[n <- count(A)](A)) PARTITION BY k WITHIN 1 SECOND")
    assert len(everywhere(light, pattern, tables)) == 16
    assert len(everywhere(light, acel("PROJECT[A(ts)](A) PARTITION BY k"), tables)) == 16


def test_an_id_column_makes_the_ids_of_matches(light: SparkSession) -> None:
    rows = [{"ts": 1, "id": number, "x": 1} for number in (1, 2)] + [{"ts": 2, "id": 3, "x": 1}]
    tables = {"A": table(rows, id=pa.int64(), x=pa.int64())}
    for text in ("A ; A", "PROJECT[y](AGG y[n <- count(A)](A ; A))", "PROJECT[A(x)](A ; A)"):
        pattern = acel(text)
        by_spark = rows_of(pattern.match({"A": light.createDataFrame(tables["A"])}, id="id"))
        here = local.match(pattern.query, tables, Options(id="id")).to_pylist()
        assert sorted(row["match_id"] for row in by_spark) == sorted(row["match_id"] for row in here)
        assert len({row["match_id"] for row in here}) == len(here) == 3


def test_a_variable_of_two_types_has_the_attributes_of_both(light: SparkSession) -> None:
    tables = {
        "A": table([{"ts": 1, "x": 1, "only": "a"}], x=pa.int32(), only=pa.string()),
        "B": table([{"ts": 2, "x": 2.5}], x=pa.float64()),
    }
    pattern = acel("(A ; B) AS e FILTER e[x > 0] RETURN e, AVG(e.x) AS mean")
    (found,) = everywhere(light, pattern, tables)
    assert found["e"] == [{"ts": 1, "x": 1.0, "only": "a"}, {"ts": 2, "x": 2.5, "only": None}]
    assert found["mean"] == 1.75


def test_types_that_disagree_matter_only_where_they_are_asked_for(light: SparkSession) -> None:
    tables = {
        "A": table([{"ts": 1, "x": 1}], x=pa.int64()),
        "B": table([{"ts": 2, "x": "b"}], x=pa.string()),
    }
    frames = {name: light.createDataFrame(one) for name, one in tables.items()}
    (found,) = everywhere(light, acel("(A ; B) AS e RETURN e.ts"), tables)
    assert found["ts"] == [1, 2]
    with pytest.raises(errors.TypeMismatchError, match="whose attribute `x` is bigint in one and string in the other"):
        acel("(A ; B) AS e").match(frames)
    with pytest.raises(errors.TypeMismatchError, match="int64 in one and string in the other"):
        acel("(A ; B) AS e").match(tables, engine="local")


def test_an_attribute_that_nobody_has_is_an_error(light: SparkSession) -> None:
    frames = {name: light.createDataFrame(table([{"ts": 1}])) for name in "AB"}
    with pytest.raises(errors.UnknownAttributeError, match="has no attribute `m`"):
        acel("AGG y[n <- count(A)](A ; B) FILTER y[m > 1]").match(frames)


def test_the_result_is_returned_filtered_and_grouped(light: SparkSession) -> None:
    rows = [{"ts": at, "k": key, "x": at} for at, key in enumerate("aabab")]
    tables = {"A": table(rows, k=pa.string(), x=pa.int64())}
    clause = "RETURN y.s, COUNT(A) AS n, A[first].x AS begin HAVING n > 1 AND y.s < 6"
    text = "AGG y[s <- sum(A.x)]((A : A@+) FILTER A[same(k)])"
    found = everywhere(light, acel(f"{text} PARTITION BY k {clause}"), tables)
    assert {row["n"] for row in found} == {2, 3}
    grouped = acel(f"{text} PARTITION BY k RETURN A[first].k AS k, COUNT(*) AS n, SUM(y.s) AS s GROUP BY A[first].k")
    assert {row["k"]: row["n"] for row in everywhere(light, grouped, tables)} == {"a": 3, "b": 1}


def test_sase_runs_as_an_automaton_when_asked(light: SparkSession) -> None:
    rows = [{"ts": at, "x": x} for at, x in enumerate([1, 3, 2, 5])]
    tables = {"A": table(rows, x=pa.int64())}
    frames = {"A": light.createDataFrame(tables["A"])}
    text = "PATTERN A+ a WHERE a[i].x > a[i-1].x WITHIN 1 MINUTE RETURN COUNT(a) AS n, MAX(a.x) AS top"
    pattern = tocsin.pattern(text)
    expected = reference.evaluate(pattern.query, {"A": rows})
    for strategy in ("kernel", "automaton"):
        assert_equal(pattern, rows_of(pattern.match(frames, strategy=strategy)), expected)
        assert_equal(pattern, pattern.match(tables, strategy=strategy, engine="local").to_pylist(), expected)


# --- aggregates of one's own ----------------------------------------------------------------------


def test_an_aggregate_of_the_user_runs(light: SparkSession) -> None:
    product = tocsin.Monoid(zero=1, combine=lambda x, y: x * y)
    longest = tocsin.Monoid(
        zero="", lift=lambda text: text.upper(), combine=lambda x, y: max(x, y, key=len), finish=lambda text: text + "!"
    )
    rows = [{"ts": at, "x": x, "k": k} for at, (x, k) in enumerate([(2, "a"), (3, "bcd"), (7, "e")])]
    pattern = acel(
        "AGG y[p <- product(A.x), l <- longest(A.k)](A+) FILTER y[p > 20] RETURN y.p, y.l",
        aggregates={"product": product, "longest": longest},
    )
    found = everywhere(light, pattern, {"A": table(rows, x=pa.int32(), k=pa.string())})
    assert sorted((row["p"], row["l"]) for row in found) == [(21, "BCD!"), (42, "BCD!")]


def test_an_aggregate_says_what_it_gives(light: SparkSession) -> None:
    parts = {"zero": (0, 0), "lift": lambda x: (x, 1), "combine": lambda a, b: (a[0] + b[0], a[1] + b[1])}
    rows = [{"ts": at, "x": x} for at, x in enumerate([1, 2])]
    tables = {"A": table(rows, x=pa.int64())}
    text = "AGG y[m <- mean(A.x)](A : A)"
    mean = tocsin.Monoid(**parts, finish=lambda pair: pair[0] / pair[1], gives="double")
    (found,) = everywhere(light, acel(text, aggregates={"mean": mean}), tables)
    assert found["y"] == {"m": 1.5}
    exact = tocsin.Monoid(**parts, finish=lambda pair: Decimal(pair[0]) / pair[1], gives="decimal(12,4)")
    frame = acel(text, aggregates={"mean": exact}).match({"A": light.createDataFrame(tables["A"])})
    assert dict(frame.select("y.*").dtypes) == {"m": "decimal(12,4)"}
    silent = tocsin.Monoid(**parts, finish=lambda pair: pair[0] / pair[1])
    with pytest.raises(errors.TypeMismatchError, match=r"The value of `m` is 1.5, which is not of the type int64"):
        acel(text, aggregates={"mean": silent}).match(tables, engine="local")


def test_an_aggregate_of_the_user_in_return_runs() -> None:
    product = tocsin.Monoid(zero=1, combine=operator.mul)
    pattern = acel("A+ RETURN product(A.x) AS p", aggregates={"product": product})
    found = pattern.match({"A": table([{"ts": 1, "x": 2}, {"ts": 2, "x": 3}], x=pa.int64())}, engine="local")
    assert sorted(found["p"].to_pylist()) == [2, 3, 6]


# --- plans ----------------------------------------------------------------------------------------


def test_explain_shows_the_automaton_and_what_is_shipped(light: SparkSession) -> None:
    frame = light.createDataFrame(table([], x=pa.int64()).append_column("type", pa.array([], pa.string())))
    shown = str(acel("A : (B FILTER B[x > 5]) WITHIN 10 SECONDS").explain(frame))
    assert "automaton: events are read one by one" in shown
    assert "scan B  where x > 5" in shown
    assert "every other event is read too" in shown
    assert "shuffle by time slices of 160 s" in shown
    assert "follow 2 transitions between 3 states, no registers" in shown
    assert "MapInArrow" in shown


def test_other_strategies_refuse_acel(light: SparkSession) -> None:
    frames = {name: light.createDataFrame(table([{"ts": 1}])) for name in "AB"}
    with pytest.raises(errors.UnsupportedError) as refusal:
        acel("A ; B").match(frames, strategy="kernel")
    assert refusal.value.message == "ACEL's `;` does not run with the strategy `kernel`."
    with pytest.raises(errors.UnsupportedError):
        acel("A ; B").match(frames, strategy="join")
    sase = tocsin.pattern("PATTERN AND(A a, B b)")
    with pytest.raises(errors.UnsupportedError, match="cannot recognise AND of parts in any order"):
        sase.match(frames, strategy="automaton")


def test_first_of_all_matches_needs_events_as_they_were() -> None:
    pattern = acel("AGG y[n <- count(A)](A) RETURN FIRST(y.n) AS n, COUNT(*) AS all")
    with pytest.raises(errors.UnsupportedError, match="FIRST over all matches, of events that PROJECT or AGG has made"):
        pattern.match({"A": table([])}, engine="local")


def test_too_many_matches_of_one_start_are_an_error(light: SparkSession) -> None:
    rows = [{"ts": at} for at in range(12)]
    pattern = acel("A+")
    with pytest.raises(errors.TooManyMatchesError, match="more than 100 matches"):
        pattern.match({"A": table(rows)}, engine="local", max_matches_per_start=100)
    frame = pattern.match({"A": light.createDataFrame(table(rows))}, max_matches_per_start=100)
    with pytest.raises(Exception, match="TOO_MANY_MATCHES"):
        frame.collect()


def test_every_type_of_the_random_streams_is_known() -> None:
    assert [*SCHEMA.names] == [*ATTRIBUTES]
    assert set(alg.event_types(acel("A ; B ; C").query.pattern)) == set(TYPES)
