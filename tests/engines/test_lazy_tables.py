"""Parquet files and datasets as local inputs: what a search does not need is not read, and nobody sees a difference."""

from __future__ import annotations

import datetime as dt
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin import errors
from tocsin.engines.local import arrow_inputs, normal_columns, parquet
from tocsin.engines.local.read_files import table_at
from tocsin.engines.worker import event_tables
from tocsin.engines.worker.lazy_tables import LazyTable

START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)


def in_order(table: pa.Table) -> list[str]:
    """With NaN, which is equal to nothing."""
    return sorted(map(repr, table.to_pylist()))


@contextmanager
def slices_of(rows: int) -> Iterator[None]:
    with (
        mock.patch.object(event_tables, "SLICE", rows),
        mock.patch.object(arrow_inputs, "SLICE", rows),
        mock.patch.object(normal_columns, "SLICE", rows),
    ):
        yield


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The columns and row groups that are read."""
    found: list[tuple[str, int]] = []
    read = parquet.RowGroup._read

    def noted(self: parquet.RowGroup, name: str) -> pa.ChunkedArray:
        found.append((name, self.number))
        return read(self, name)

    monkeypatch.setattr(parquet.RowGroup, "_read", noted)
    return found


def clustered(path: Path) -> pa.Table:
    """Six row groups of ten events; those of the third have the greatest values."""
    numbers = np.arange(60)
    table = pa.table(
        {
            "type": pa.array(["A", "B"] * 30),
            "ts": pa.array([START + dt.timedelta(seconds=int(at)) for at in numbers], pa.timestamp("us", "UTC")),
            "user": pa.array(numbers % 3),
            "amount": pa.array(np.where(numbers // 10 == 2, 100, 1)),
            "place": pa.array([f"place {number}" for number in numbers]),
            "note": pa.array([None if number % 2 else "x" for number in numbers]),
        }
    )
    pq.write_table(table, path, row_group_size=10)
    return table


PATTERN = tocsin.pattern(
    "PATTERN SEQ(A a, B b) WHERE a.user = b.user AND a.amount > 50 AND b.amount > 50 WITHIN 4 SECONDS "
    "RETURN a.ts AS first, b.place"
)


def test_columns_are_read_that_are_needed_and_only_where_they_are(tmp_path: Path, reads: list[tuple[str, int]]) -> None:
    table = clustered(tmp_path / "a.parquet")
    with slices_of(10):
        found = PATTERN.match(tmp_path / "a.parquet", engine="local")
    assert in_order(found) == in_order(PATTERN.match(table, engine="local"))
    assert found.num_rows > 0
    # Types are asked everywhere; the note is there for `match_id` alone.
    types = {("type", place) for place in range(6)}
    assert {*reads} == types | {(name, 2) for name in table.column_names}
    assert len(reads) == len({*reads})


def test_inputs_by_type_have_no_column_that_is_read_everywhere(tmp_path: Path, reads: list[tuple[str, int]]) -> None:
    table = clustered(tmp_path / "a.parquet")
    with slices_of(10):
        found = PATTERN.match({"A": tmp_path / "a.parquet", "B": tmp_path / "a.parquet"}, engine="local")
    assert in_order(found) == in_order(PATTERN.match({"A": table, "B": table}, engine="local"))
    assert {place for _, place in reads} == {2}


def test_without_matches_nothing_is_read_for_their_ids(tmp_path: Path, reads: list[tuple[str, int]]) -> None:
    clustered(tmp_path / "a.parquet")
    pattern = tocsin.pattern(PATTERN.text.replace("4 SECONDS", "2 SECONDS"))
    assert pattern.match(tmp_path / "a.parquet", engine="local").num_rows == 0
    assert {name for name, _ in reads} == {"type", "ts", "user", "amount", "place"}


def test_with_an_id_no_other_column_is_read(tmp_path: Path, reads: list[tuple[str, int]]) -> None:
    table = clustered(tmp_path / "a.parquet")
    found = PATTERN.match(tmp_path / "a.parquet", engine="local", id="user")
    assert in_order(found) == in_order(PATTERN.match(table, engine="local", id="user"))
    assert found.num_rows > 0
    assert "note" not in {name for name, _ in reads}


def test_where_every_event_counts_no_row_group_is_left_out(tmp_path: Path) -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "amount": [100, 1, 100, 100]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b) WHERE a.amount > 50 AND b.amount > 50 SEMANTICS contiguous")
    with slices_of(1):
        found = pattern.match({"A": tmp_path / "a.parquet"}, engine="local")
    assert found["start"].to_pylist() == [3]


# --- bounds ---------------------------------------------------------------------------------------

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "condition", "is_read"),
    [
        *(
            ([1, 3], condition, True)
            for condition in ("v.x > 2", "v.x >= 3", "v.x < 2", "v.x <= 1", "v.x = 2", "v.x = 3")
        ),
        *(([1, 3], condition, False) for condition in ("v.x > 3", "v.x >= 4", "v.x < 1", "v.x <= 0.5", "v.x = 4")),
        *(([1, 3], condition, True) for condition in ("2 < v.x", "3 <= v.x", "2 > v.x", "1 >= v.x", "2 = v.x")),
        *(([1, 3], condition, False) for condition in ("3 < v.x", "4 <= v.x", "1 > v.x", "0 >= v.x", "0 = v.x")),
        *(([1, 3], f"v.x {among}", True) for among in ("BETWEEN 3 AND 9", "IN (0, 2)", "NOT IN (5, 6)", "!= 9")),
        *(([1, 3], f"v.x {among}", False) for among in ("BETWEEN 4 AND 9", "IN (0, 4)", "> 3 AND v.x < 9")),
        ([1, 3], "(v.x > 3 OR v.x < 2)", True),
        ([1, 3], "(v.x > 3 OR v.x < 1)", False),
        ([1, 3], "NOT (v.x > 5)", True),
        ([1, 3], "v.x * 2 > 100", True),
        ([1, None], "v.x IS NULL", True),
        ([1, None], "v.x > 1", False),
        ([NAN, 1.0], "v.x > 2", True),
        ([NAN, 1.0], "v.x >= 2", True),
        ([NAN, 1.0], "v.x < 1", False),
        ([NAN, 1.0], "v.x = 0", False),
        ([-0.0, -0.0], "v.x >= 0", True),
        (["b", "d"], "v.x > 'c'", True),
        (["b", "d"], "v.x > 'd'", False),
        (["a", "ä"], "v.x = 'ö'", False),
        ([START, START], "v.x >= TIMESTAMP '2026-03-02 08:00:00'", True),
        ([START, START], "v.x > TIMESTAMP '2026-03-02 08:00:00'", False),
        ([True, False], "v.x = FALSE", True),
    ],
)
def test_a_row_group_is_read_unless_its_bounds_exclude_it(
    tmp_path: Path, reads: list[tuple[str, int]], values: list[Any], condition: str, is_read: bool
) -> None:
    table = pa.table({"ts": [1, 2], "x": values})
    pq.write_table(table, tmp_path / "a.parquet")
    pattern = tocsin.pattern(f"PATTERN A v WHERE {condition}")
    found = pattern.match({"A": tmp_path / "a.parquet"}, engine="local")
    assert bool(reads) == is_read
    assert in_order(found) == in_order(pattern.match({"A": table}, engine="local"))


VALUES = {
    "i": st.sampled_from([None, -(2**63), -1, 0, 1, 5, 2**63 - 1]),
    "x": st.sampled_from([None, float("nan"), float("-inf"), -1.5, -0.0, 0.0, 1.0, 5.0, float("inf")]),
    "s": st.sampled_from([None, "", "a", "ab", "b", "ä", "😀", "z" * 100]),
    "t": st.sampled_from([None, START, START + dt.timedelta(hours=1), dt.datetime(1, 1, 1, tzinfo=dt.UTC)]),
    "d": st.sampled_from([None, dt.date(2026, 1, 1), dt.date(2026, 3, 2)]),
    "b": st.sampled_from([None, True, False]),
}
TYPES = {"i": pa.int64(), "x": pa.float64(), "s": pa.string(), "t": pa.timestamp("us", "UTC"), "d": pa.date32()}
CONSTANTS = {
    "i": ["-1", "0", "1", "0.5", "5"],
    "x": ["-1.5", "0", "1.0", "5"],
    "s": ["''", "'a'", "'ab'", "'ä'", "'zz'"],
    "t": ["TIMESTAMP '2026-03-02 08:30:00'", "DATE '2026-03-02'"],
    "d": ["DATE '2026-03-02'", "DATE '2026-02-01'"],
}


@st.composite
def conditions(draw: Any) -> str:
    name = draw(st.sampled_from([*CONSTANTS]))
    value = st.sampled_from(CONSTANTS[name])
    one = st.builds("v.{} {} {}".format, st.just(name), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), value)
    flipped = st.builds("{} {} v.{}".format, value, st.sampled_from(["=", "<", "<=", ">", ">="]), st.just(name))
    between = st.builds("v.{} {}BETWEEN {} AND {}".format, st.just(name), st.sampled_from(["", "NOT "]), value, value)
    among = st.builds("v.{} {}IN ({}, {})".format, st.just(name), st.sampled_from(["", "NOT "]), value, value)
    null = st.builds("v.{} IS {}NULL".format, st.just(name), st.sampled_from(["", "NOT "]))
    return str(draw(st.one_of(one, flipped, between, among, null)))


CONDITION = st.one_of(
    conditions(),
    st.builds("NOT ({})".format, conditions()),
    st.builds("({} OR {})".format, conditions(), conditions()),
    st.builds("{} AND {}".format, conditions(), conditions()),
)


def written(rows: list[dict[str, Any]], path: str, group: int) -> pa.Table:
    schema = pa.schema([("ts", pa.int64()), ("type", pa.string()), *TYPES.items(), ("b", pa.bool_())])
    table = pa.Table.from_pylist([{"ts": place // 2, **row} for place, row in enumerate(rows)], schema)
    pq.write_table(table, path, row_group_size=group)
    return table


FORMS: dict[str, Any] = {"file": str, "dataset": ds.dataset}
ROWS = st.lists(st.fixed_dictionaries({"type": st.sampled_from("ABX"), **VALUES}), min_size=1, max_size=12)


@settings(max_examples=1000)
@given(rows=ROWS, group=st.integers(1, 2), condition=CONDITION, form=st.sampled_from([*FORMS]))
def test_no_event_is_lost_with_a_row_group(rows: list[dict[str, Any]], group: int, condition: str, form: str) -> None:
    pattern = tocsin.pattern(f"PATTERN A v WHERE {condition}")
    with tempfile.TemporaryDirectory() as folder, slices_of(3):
        path = os.path.join(folder, "events.parquet")
        table = written(rows, path, group)
        found = pattern.match({"A": FORMS[form](path)}, engine="local", time_unit="us")
    assert in_order(found) == in_order(pattern.match({"A": table}, engine="local", time_unit="us"))


@settings(max_examples=300)
@given(
    rows=ROWS,
    group=st.integers(1, 4),
    conditions=st.tuples(CONDITION, CONDITION),
    rest=st.sampled_from(["WITHIN 4 US", "SEMANTICS contiguous", "RETURN a.i, b.s", "RETURN COUNT(*) AS n"]),
    form=st.sampled_from([*FORMS]),
)
def test_a_file_has_the_matches_of_its_table(
    rows: list[dict[str, Any]], group: int, conditions: tuple[str, str], rest: str, form: str
) -> None:
    where = " AND ".join(condition.replace("v.", f"{name}.") for name, condition in zip("ab", conditions, strict=True))
    pattern = tocsin.pattern(f"PATTERN SEQ(A a, B b) WHERE {where} {rest}")
    with tempfile.TemporaryDirectory() as folder, slices_of(3):
        path = os.path.join(folder, "events.parquet")
        table = written(rows, path, group)
        found = pattern.match(FORMS[form](path), engine="local", time_unit="us")
    assert in_order(found) == in_order(pattern.match(table, engine="local", time_unit="us"))


# --- tables ---------------------------------------------------------------------------------------


def test_rows_are_taken_in_any_order_and_slices_may_be_empty(tmp_path: Path) -> None:
    table = clustered(tmp_path / "a.parquet")
    lazy = table_at(tmp_path / "a.parquet")
    assert isinstance(lazy, LazyTable)
    for rows in ([59, 0, 0, 31, 30], [5]):
        assert lazy.taken("user", np.array(rows, np.int64)).to_pylist() == table["user"].take(rows).to_pylist()
    for begin, length in ((0, 60), (5, 10), (10, 10), (55, 100), (60, 5), (3, 0)):
        part = lazy.slice(begin, length)
        assert part.num_rows == table.slice(begin, length).num_rows
        assert part.column("user").to_pylist() == table["user"].slice(begin, length).to_pylist()
    assert lazy.whole().equals(table)


def test_a_file_without_rows_has_columns(tmp_path: Path) -> None:
    clustered(tmp_path / "a.parquet")
    pq.write_table(pq.read_table(tmp_path / "a.parquet").slice(0, 0), tmp_path / "none.parquet")
    assert PATTERN.match({"A": tmp_path / "none.parquet", "B": tmp_path / "a.parquet"}, engine="local").num_rows == 0


def test_columns_that_some_files_lack_are_null_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([1], pa.int32()), "x": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"ts": [2], "y": ["a"]}), tmp_path / "2.parquet")
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b) WHERE a.x > 0 AND b.y = 'a'")
    found = pattern.match({"A": tmp_path}, engine="local")
    assert found["a"].to_pylist() == [{"ts": 1, "x": 1, "y": None}]
    assert found["b"].to_pylist() == [{"ts": 2, "x": None, "y": "a"}]


def test_a_file_that_becomes_unreadable_is_named(tmp_path: Path) -> None:
    clustered(tmp_path / "a.parquet")
    lazy = table_at(tmp_path / "a.parquet")
    os.truncate(tmp_path / "a.parquet", 100)
    with pytest.raises(errors.InputNotReadableError, match=r"`.*a.parquet` cannot be read"):
        PATTERN.match({"A": lazy, "B": lazy}, engine="local")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = pa.table([pa.array([1]), pa.array([1])], names=["ts", "ts"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(errors.InputNotReadableError, match=r"`.*a.parquet` has two columns called `ts`"):
        tocsin.pattern("PATTERN A a").match({"A": tmp_path / "a.parquet"}, engine="local")


def test_a_value_that_no_column_holds_is_refused_with_its_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1], "x": pa.array([2**63], pa.uint64())}), tmp_path / "a.parquet")
    with pytest.raises(errors.InvalidInputError, match=r"The column `x` of `.*a.parquet` is uint64"):
        tocsin.pattern("PATTERN A a").match({"A": tmp_path / "a.parquet"}, engine="local")


def test_a_filter_of_a_dataset_holds(tmp_path: Path) -> None:
    table = clustered(tmp_path / "a.parquet")
    dataset = ds.dataset(tmp_path / "a.parquet").filter(ds.field("user") < 2)
    expected = PATTERN.match(table.filter(pa.compute.field("user") < 2), engine="local")
    assert in_order(PATTERN.match(dataset, engine="local")) == in_order(expected)
    assert 0 < expected.num_rows < PATTERN.match(table, engine="local").num_rows


def test_folders_of_a_dataset_are_columns(tmp_path: Path) -> None:
    table = clustered(tmp_path / "a.parquet")
    for day in (1, 2):
        (tmp_path / "events" / f"day={day}").mkdir(parents=True)
        pq.write_table(table.slice(20 * day, 20), tmp_path / "events" / f"day={day}" / "a.parquet")
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b) WHERE a.day = b.day AND a.user = b.user RETURN a.day, b.place")
    dataset = ds.dataset(tmp_path / "events", partitioning="hive")
    expected = in_order(pattern.match({"A": dataset.to_table()}, engine="local"))
    assert in_order(pattern.match({"A": dataset}, engine="local")) == expected
    assert in_order(pattern.match({"A": tmp_path / "events"}, engine="local")) == expected
    assert len(expected) > 0


def test_datasets_of_other_files_are_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n1,1\n2,2\n")
    pattern = tocsin.pattern("PATTERN SEQ(A a, A b) RETURN a.x, b.x AS y")
    dataset = ds.dataset(tmp_path / "a.csv", format="csv")
    assert pattern.match({"A": dataset}, engine="local").select(["x", "y"]).to_pylist() == [{"x": 1, "y": 2}]
