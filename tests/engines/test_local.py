"""The local engine: the same kernels on Arrow tables, without Spark, give what the reference gives."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting import cases, queries_with_streams

import tocsin
from tocsin import errors, reference
from tocsin.engines.local import arrow_inputs, normal_columns, shards
from tocsin.engines.local import match as local
from tocsin.engines.worker import event_tables
from tocsin.language import ast
from tocsin.options import Options
from tocsin.testing import assert_same_rows
from tocsin.testing.strategies import EVERYTHING, TIMEOUTS, Streams, streams

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64(), "v": pa.float64()})


def compiled(query: str | ast.Query) -> tocsin.Pattern:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.TocsinWarning)
        return tocsin.pattern(query)


def run(text: str, inputs: Any, **options: Any) -> list[dict[str, Any]]:
    return local.match(compiled(text).query, inputs, Options(**options)).to_pylist()


def with_interval(rows: list[Any], query: Any) -> list[dict[str, Any]]:
    return rows if query.over_all_matches else [{**row, "start": row["start"], "end": row["end"]} for row in rows]


@contextmanager
def cut_small() -> Iterator[None]:
    """Small tables are scanned in slices of two rows, and searched in shards."""
    with (
        mock.patch.object(shards, "LEAST_ROWS", 1),
        mock.patch.object(shards, "REACHES", 0),
        mock.patch.object(event_tables, "SLICE", 2),
        mock.patch.object(arrow_inputs, "SLICE", 2),
        mock.patch.object(normal_columns, "SLICE", 2),
    ):
        yield


LAYOUTS = ["table per type", "one table", "one table, in any order"]
CUTS = {"at once": nullcontext, "in shards": cut_small}


@settings(max_examples=300)
@given(
    **cases(EVERYTHING, max_events=7),
    layout=st.sampled_from(LAYOUTS),
    cut=st.sampled_from([*CUTS]),
    chance=st.randoms(),
)
def test_the_local_engine_equals_the_reference(
    query: ast.Query, rows: Streams, layout: str, cut: str, chance: random.Random
) -> None:
    pattern = compiled(query)
    inputs: Any = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    given_rows = rows
    if layout != "table per type":
        given_rows = {kind: [{**row, "type": kind} for row in events] for kind, events in rows.items()}
        typed = [row for events in given_rows.values() for row in events]
        typed.sort(key=lambda row: row["ts"] or 0)
        if layout == LAYOUTS[2]:
            chance.shuffle(typed)
        inputs = pa.Table.from_pylist(typed, SCHEMA.append(pa.field("type", pa.string())))
    expected = reference.evaluate(pattern, given_rows)
    try:
        with CUTS[cut]():
            found = local.match(pattern.query, inputs).to_pylist()
    except errors.ContradictoryDistancesError:
        assert pattern.query.over_all_matches or expected == []
        return
    assert_same_rows(found, with_interval(expected, pattern.query))
    if not pattern.query.over_all_matches:
        assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)


SHORT = [
    "SEQ(A a, B b) WITHIN 1 SECONDS",
    "SEQ(A a, B+ b) WHERE [k] WITHIN 1 SECONDS",
    "SEQ(A a, NOT C c, B b) PARTITION BY k WITHIN 1 SECONDS",
    "SEQ(A a, B b) PARTITION BY x WITHIN 1 SECONDS",
    "SEQ(NOT C c, A a, B b) WITHIN 1 SECONDS",
    "SEQ(A a, B b, NOT C c) WITHIN 1 SECONDS",
    "SEQ(A a, OR(B b, C b)) WITHIN 1 SECONDS SEMANTICS next",
    "SEQ(A a, B+ b) WITHIN 1 SECONDS SEMANTICS partition-contiguous",
    "SEQ(A a, B* b, C c) WITHIN 1 SECONDS OUTPUT last per end",
    "SEQ(A a, B b) WITHIN 1 SECONDS RETURN COUNT(*) AS n, MAX(b.x) AS m",
    "SEQ(A+ a, B b) WITHIN 1 SECONDS RETURN a[last].k AS k, COUNT(*) AS n, LAST(b.x) AS m GROUP BY a[last].k",
    "SEQ(A a, B b) PARTITION BY k AFTER MATCH SKIP PAST LAST",
]


@settings(max_examples=300)
@given(text=st.sampled_from(SHORT), rows=streams(max_events=14), in_order=st.booleans())
def test_shards_find_what_one_search_finds(text: str, rows: Streams, in_order: bool) -> None:
    pattern = compiled(f"PATTERN {text}")
    typed = [{**row, "type": kind} for kind, events in rows.items() for row in events]
    if in_order:
        typed.sort(key=lambda row: row["ts"] or 0)
    table = pa.Table.from_pylist(typed, SCHEMA.append(pa.field("type", pa.string())))
    with cut_small():
        found = local.match(pattern.query, table).to_pylist()
    expected = reference.evaluate(pattern, rows)
    if pattern.query.over_all_matches:
        assert_same_rows(found, expected)
    else:
        assert sorted(row["match_id"] for row in found) == sorted(
            local.match(pattern.query, table)["match_id"].to_pylist()
        )
        assert len(found) == len(expected)


OVER_ALL = [
    "PATTERN SEQ(A a, B b) PARTITION BY k WITHIN 3 SECONDS",
    "PATTERN SEQ(A a, OR(B b, C b)) WITHIN 3 SECONDS",
    "PATTERN SEQ(A a, B+ b) WHERE [k] WITHIN 3 SECONDS",
    "PATTERN OR(A a, B b) WITHIN 1 SECONDS",
]
FIRSTS = "FIRST(a.x) AS f, LAST(a.v) AS g, FIRST(b.x + b.v) AS h, LAST(b.ts) AS i, COUNT(*) AS n"
ENDS = [
    f"RETURN {FIRSTS}",
    f"RETURN {FIRSTS}, a.x AS x GROUP BY a.x HAVING LAST(b.x) >= 0",
    f"RETURN {FIRSTS} EVERY 2 SECONDS",
]


@settings(max_examples=150)
@given(
    text=st.builds("{} {}".format, st.sampled_from(OVER_ALL), st.sampled_from(ENDS)),
    rows=streams(max_events=12),
    tie=st.sampled_from([(), ("v",), ("x", "k")]),
    strategy=st.sampled_from(["auto", "automaton", "aggregate"]),
)
def test_first_and_last_of_all_matches_go_by_position(
    text: str, rows: Streams, tie: tuple[str, ...], strategy: str
) -> None:
    pattern = compiled(text)
    inputs = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    found = local.match(pattern.query, inputs, Options(tie=tie, strategy=strategy)).to_pylist()
    assert_same_rows(found, reference.evaluate(pattern, rows, tie=tie))


FIRST = "PATTERN OR(A e, B e) WITHIN 10 SECONDS RETURN COUNT(*) AS n, FIRST(e.x) AS f"


def test_tie_columns_may_have_other_types_in_other_inputs_as_long_as_nobody_compares_them() -> None:
    rows = {"A": [{"ts": 1, "x": 1, "r": "s"}], "B": [{"ts": 2, "x": 2, "r": 1}]}
    assert run(FIRST, rows, tie="r") == [{"n": 2, "f": 1}]
    rows["B"][0]["ts"] = 1
    with pytest.raises(errors.TypeMismatchError, match="The tie columns of events at one time cannot be compared"):
        run(FIRST, rows, tie="r")


def test_tie_columns_that_order_nothing_are_refused() -> None:
    rows = {"A": [{"ts": 1, "x": 1, "r": [1]}], "B": [{"ts": 2, "x": 2, "r": [2]}]}
    with pytest.raises(errors.InvalidOptionError, match="`tie` names `r`, whose values have no order: list"):
        run(FIRST, rows, tie="r")
    with pytest.raises(errors.MissingColumnError, match="There is no column `q` in the input of `A`"):
        run(FIRST, rows, tie="q")


@pytest.mark.parametrize("strategy", ["kernels", "", None, 5])
def test_a_strategy_that_does_not_exist_is_refused(strategy: Any) -> None:
    with pytest.raises(errors.InvalidOptionError, match=f"There is no strategy `{strategy}`"):
        run(TEXT, ROWS, strategy=strategy)


ROWS = {"A": [{"ts": 1, "x": 1}, {"ts": 4, "x": 2}], "B": [{"ts": 3, "x": 5, "n": "b"}]}
TEXT = "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 10 SECONDS"


@pytest.mark.parametrize("form", [pa.Table.from_pylist, pd.DataFrame, list], ids=["arrow", "pandas", "rows"])
def test_inputs_may_be_tables_frames_or_rows(form: Any) -> None:
    (row,) = run(TEXT, {kind: form(rows) for kind, rows in ROWS.items()})
    assert (row["start"], row["end"]) == (1, 3)
    assert row["a"] == {"ts": 1, "x": 1}
    assert row["b"] == {"ts": 3, "x": 5, "n": "b"}


def test_rows_of_one_list_may_have_different_columns() -> None:
    rows = [{"type": "A", "ts": 1, "x": 5}, {"type": "B", "ts": 2, "y": 7}]
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE b.y > a.x RETURN a.x, b.y")
    (found,) = pattern.match(rows, engine="local").drop_columns("match_id").to_pylist()
    assert found == {"start": 1, "end": 2, "x": 5, "y": 7}


def test_the_columns_are_those_of_spark_also_without_a_match() -> None:
    found = local.match(
        compiled("PATTERN SEQ(A a, B+ b) WITHIN 1 SECOND").query,
        {kind: pa.table({"ts": pa.array([], pa.timestamp("us", "UTC"))}) for kind in "AB"},
    )
    event = pa.struct({"ts": pa.timestamp("us", "UTC")})
    assert found.num_rows == 0
    assert found.schema.names == ["match_id", "start", "end", "a", "b"]
    assert found.schema.types == [pa.string(), *[pa.timestamp("us", "UTC")] * 2, event, pa.list_(event)]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_time_stamps_of_every_unit_come_out_as_microseconds(zone: str | None, unit: Any) -> None:
    times = [dt.datetime(2026, 1, 1, 0, 0, second) for second in (0, 5)]
    inputs = {
        kind: pa.table(
            {"ts": pa.array([at], pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))}
        )
        for kind, at in zip("AB", times, strict=True)
    }
    found = local.match(compiled("PATTERN SEQ(A a, B b) WITHIN 6 SECONDS RETURN b.ts - a.ts AS gap").query, inputs)
    assert found.schema.field("start").type == pa.timestamp("us", zone)
    assert found.column("gap").to_pylist() == [dt.timedelta(seconds=5)]


def test_an_id_column_makes_the_match_id() -> None:
    rows = {"A": [{"ts": 1, "key": "p", "x": 1}], "B": [{"ts": 2, "key": "q", "x": 1}]}
    other = {"A": [{"ts": 1, "key": "p", "x": 7}], "B": [{"ts": 2, "key": "q", "x": 8}]}
    text = "PATTERN SEQ(A a, B b) WITHIN 1 SECOND RETURN a.x"
    assert run(text, rows, id="key")[0]["match_id"] == run(text, other, id="key")[0]["match_id"]
    assert run(text, rows)[0]["match_id"] != run(text, other)[0]["match_id"]


@pytest.mark.parametrize(
    ("inputs", "options", "error"),
    [
        ({"A": [{"ts": 1}]}, {}, errors.UnknownEventTypeError),
        ({"A": 5, "B": []}, {}, errors.InvalidInputError),
        ({"A": [{"at": 1}], "B": [{"ts": 1}]}, {}, errors.MissingColumnError),
        ({"A": [{"ts": "x", "x": 1}], "B": [{"ts": 1, "x": 1}]}, {}, errors.TimeTypeError),
        ([{"ts": 1, "x": 1}], {}, errors.MissingColumnError),
        ([{"ts": 1, "kind": "A", "x": 1}], {"type": "sort"}, errors.MissingColumnError),
    ],
)
def test_unfit_inputs_are_refused(inputs: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        run(TEXT, inputs, **options)


@settings(max_examples=400)
@given(case=queries_with_streams(TIMEOUTS), cut=st.sampled_from([*CUTS]))
def test_time_outs_equal_the_reference(case: tuple[ast.Query, list[Streams]], cut: str) -> None:
    query, (rows,) = case
    pattern = compiled(query)
    expected = reference.evaluate(pattern, rows)
    inputs = {kind: pa.Table.from_pylist(events, SCHEMA) for kind, events in rows.items()}
    try:
        with CUTS[cut]():
            found = local.match(pattern.query, inputs).to_pylist()
    except errors.ContradictoryDistancesError:
        assert all(row["status"] == "timeout" for row in expected)
        return
    except errors.UnsupportedError as refused:
        assert "cannot compute on numbers" in refused.message
        return
    assert_same_rows(found, with_interval(expected, pattern.query))
    assert sorted(row["match_id"] for row in found) == sorted(row["match_id"] for row in expected)


def test_distances_that_nobody_can_keep_are_refused_as_on_spark() -> None:
    with pytest.raises(errors.ContradictoryDistancesError, match="No events can keep these distances"):
        run("PATTERN SEQ(A a, B b) WHERE a.ts > b.ts WITHIN 10 SECONDS", ROWS)


def test_what_a_time_out_lacks_is_null_and_counts_nothing() -> None:
    text = "PATTERN SEQ(A a, B+ b) WITHIN 2 us RETURN a.x, b.x AS bs, COUNT(b) AS n, a.x + b[last].x AS s WITH TIMEOUTS"
    found = [{**row, "match_id": None} for row in run(text, ROWS)]
    nothing = {"match_id": None, "bs": None, "n": 0, "s": None, "status": "timeout", "missing": "b"}
    assert found == [{"start": 1, "end": 1, "x": 1} | nothing, {"start": 4, "end": 4, "x": 2} | nothing]


def test_having_asks_time_outs_too() -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 3 us RETURN a.x HAVING a.x > 1 WITH TIMEOUTS"
    assert [(row["x"], row["status"]) for row in run(text, ROWS)] == [(2, "timeout")]
    text = "PATTERN SEQ(A a, B b) WITHIN 3 us RETURN a.x HAVING b.x > 1 WITH TIMEOUTS"
    assert [(row["x"], row["status"]) for row in run(text, ROWS)] == [(1, "match")]


@pytest.mark.parametrize("form", ["matches", "compact"])
def test_a_column_of_nulls_stays_as_long_as_the_others(form: str) -> None:
    table = pa.table({"ts": [1, 2, 3], "n": pa.nulls(3)})
    pattern = compiled("PATTERN SEQ(A a, A+ b) WITHIN 1 HOUR")
    found = local.match(pattern.query, {"A": table}, Options(form=form))
    found.validate(full=True)
    rows = found.to_pylist()
    matches = rows if form == "matches" else [one for row in rows for one in pattern.enumerate(row)]
    assert sorted(len(one["b"]) for one in matches) == [1, 1, 1, 2]
    assert all(event == {"ts": event["ts"], "n": None} for one in matches for event in (one["a"], *one["b"]))


def test_having_leaves_out_rows_whose_variables_are_returned_whole() -> None:
    text = "PATTERN SEQ(A a, B b) WITHIN 1 HOUR HAVING a.x > 1 RETURN a, b.x AS y"
    found = run(text, {"A": [{"ts": 1, "x": 1}, {"ts": 3, "x": 5}], "B": [{"ts": 5, "x": 2}]})
    assert [(row["a"], row["y"]) for row in found] == [({"ts": 3, "x": 5}, 2)]


def test_an_and_that_begins_with_nothing_is_searched_once_when_a_call_is_full() -> None:
    text = "PATTERN AND(B* a, B b) WITHIN 1 SECOND"
    rows = {"B": [{"ts": ts} for ts in range(6)]}
    found = run(text, rows)
    assert len(found) == 6 * 2**6  # more than one call of the search may give at first
    assert_same_rows(found, reference.evaluate(compiled(text), rows))


def test_no_spark_is_needed() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import tocsin; from tocsin.engines.local import match as local\n"
        "q = tocsin.pattern('PATTERN SEQ(A a, B b) WITHIN 1 SECOND').query\n"
        "print(local.match(q, {'A': [{'ts': 1}], 'B': [{'ts': 2}]}).num_rows)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


NESTED = {
    "SEQ(SEQ(A+ e, NOT A n, A f), A g)+ WHERE e.k <> n.k": True,
    "SEQ(SEQ(A+ e, NOT A n, A f)*, A g) WHERE e.k <> n.k": True,
    "SEQ(OR(SEQ(A e, NOT A n, A f)+, A h), A g) WHERE e.k <> n.k": True,
    "SEQ(SEQ(A e, NOT A n, A f)*, A g)+ WHERE e.k <> n.k": False,
    "SEQ(OR(SEQ(A e, NOT A n, A f)+, A h), A g) WHERE g.k <> n.k": False,
}


@pytest.mark.parametrize(("text", "runs"), NESTED.items())
def test_an_absence_of_every_copy_runs_or_is_refused(text: str, runs: bool) -> None:
    pattern = compiled(f"PATTERN {text} WITHIN 5 SECONDS")
    times = [(1, "p"), (2, "p"), (500_002, "p"), (1_500_002, "p"), (500_002, "q")]
    rows = {"A": [{"ts": at, "k": key} for at, key in times]}
    expected = reference.evaluate(pattern, rows)
    if runs:
        assert_same_rows(local.match(pattern.query, rows).to_pylist(), with_interval(expected, pattern.query))
        return
    with pytest.raises(
        errors.UnsupportedError, match="The absence of `n`, in an iteration inside another part"
    ) as raised:
        local.match(pattern.query, rows)
    assert "at <pattern>:1:" in str(raised.value)


def test_functions_of_users_are_called_by_one_thread() -> None:
    threads: set[int] = set()

    def is_near(one: float, other: float) -> bool:
        threads.add(threading.get_ident())
        return abs(one - other) < 1

    program = tocsin.rules(
        "template A { x : Double } template B { x : Double } "
        "rule R where a : A b : B { is_near(x, a.x) } when b in a [0 s, 1 s]",
        functions={"is_near": tocsin.function(is_near, gives="boolean", pure=True)},
    )
    rows = {kind: [{"ts": at * 1_000_000, "x": float(at % 3)} for at in range(20)] for kind in "AB"}
    with cut_small():
        found = program.matches("R", rows, engine="local", time_unit="us")
    assert found.num_rows == 20 and threads == {threading.get_ident()}
