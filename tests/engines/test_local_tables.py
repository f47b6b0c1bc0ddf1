"""Rows, tables and frames that the local engine is given: every value is held as it is, or refused with its column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tocsin
from tocsin import errors, reference

PATTERN = tocsin.pattern("PATTERN A a WITHIN 1 SECONDS")
RULES = tocsin.rules("template A { x : Integer } rule R where a : A")
NAIVE, AWARE = dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def column(dtype: pa.DataType, *values: Any) -> pa.Table:
    return pa.table({"ts": list(range(len(values))), "x": pa.array(values, dtype)})


def mixed(*values: Any) -> list[dict[str, Any]]:
    return [{"ts": at, "x": value} for at, value in enumerate(values)]


def nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels - 1):
        found = [found]
    return found


def nested_type(levels: int) -> pa.DataType:
    found = pa.int64()
    for _ in range(levels):
        found = pa.list_(found)
    return found


# Deeper than Python recurses; an array of nulls, since Arrow would need gigabytes to build one of values.
DEEP = pa.table({"ts": [0], "x": pa.nulls(1, nested_type(1_200))})
SELF: list[Any] = []
SELF += [SELF, SELF]
EARLY = dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14)))
LATE = dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=12)))
NO_YEAR = "holds a time outside of the years 1 to 9999"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (mixed(1, "a"), "`x` of the input of `A` holds values of different types: int in row 0, str in row 1"),
        (mixed(True, None, 1), "bool in row 0, int in row 2"),
        (mixed(1, None, NAIVE), "int in row 0, datetime in row 2"),
        (mixed(dt.date(2020, 1, 1), NAIVE), "date in row 0, datetime in row 1"),
        (mixed(NAIVE, AWARE), "datetime in row 0, datetime with a time zone in row 1"),
        (mixed({"y": 1}, [1]), "dict in row 0, list in row 1"),
        (mixed([1, "a"]), "`x` of the input of `A` has no type that Arrow knows"),
        (mixed(1j), "`x` of the input of `A` has no type that Arrow knows"),
        (
            mixed(1, 2**63),
            "`x` of the input of `A` holds 9223372036854775808 in row 1, an integer of more than 64 bits",
        ),
        (mixed(-(2**63) - 1), "holds -9223372036854775809 in row 0"),
        (mixed(1.5, 2**70), "an integer of more than 64 bits"),
        (mixed("a", "\ud800"), r"holds the text '\\ud800' in row 1, which is not valid Unicode"),
        ([{"ts": 1, "\ud800": 1}], "A column of the input of `A` is called"),
        ([{"ts": 1, 3: 1}], "A column of the input of `A` is called 3"),
        ([{"ts": 1}, 5], "Row 1 of the input of `A` is a int, not a mapping"),
        ([("ts", 1)], "Row 0 of the input of `A` is a tuple"),
        ([None], "Row 0 of the input of `A` is a NoneType"),
        (b"rows", "An input is a bytes"),
        (mixed(SELF), "`x` of the input of `A` holds a value in row 0 that is nested more than 100 levels deep"),
        (mixed(None, {"y": SELF}), "holds a value in row 1 that is nested more than 100 levels deep"),
        (mixed([], nested(101)), "holds a value in row 1 that is nested more than 100 levels deep"),
        (pd.DataFrame({"ts": [1], "x": [SELF]}), "holds a value in row 0 that is nested more than 100 levels deep"),
        (DEEP, "`x` of the input of `A` has a type that is nested more than 100 levels"),
        ([{"ts": EARLY}], f"`ts` of the input of `A` {NO_YEAR}"),
        (mixed(EARLY), f"`x` of the input of `A` {NO_YEAR}"),
        (mixed(LATE, EARLY, AWARE), f"`x` of the input of `A` {NO_YEAR}"),
        (mixed([LATE]), NO_YEAR),
        (column(pa.timestamp("us"), 2**60), NO_YEAR),
        (column(pa.date32(), 2**30), NO_YEAR),
        (column(pa.struct({"y": pa.timestamp("us", "UTC")}), {"y": -(2**60)}), NO_YEAR),
        (column(pa.uint64(), 2**63), "`x` of the input of `A` is uint64 and holds an integer over"),
        (pa.table({"ts": pa.array([2**63], pa.uint64())}), "`ts` of the input of `A` is uint64"),
        (pa.table({"ts": pa.array([1_001], pa.timestamp("ns"))}), r"`ts` of the input of `A` is timestamp\[ns\]"),
        (column(pa.timestamp("ns"), 1_001), r"`x` of the input of `A` is timestamp\[ns\]"),
        (pa.table({"ts": pa.array([2**60], pa.timestamp("s"))}), r"`ts` of the input of `A` is timestamp\[s\]"),
        (pd.DataFrame({"ts": pd.to_datetime([1_001], unit="ns")}), r"timestamp\[ns\]"),
        ([{"ts": pd.Timestamp(1_001)}], "a time that is no whole number of microseconds"),
        (pd.DataFrame({"ts": [1, 2], "x": [1, "a"]}), "int in row 0, str in row 1"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_no_column_can_hold_is_refused_with_its_place(rows: Any, message: str) -> None:
    for asked in (PATTERN.match, RULES.match):
        with pytest.raises(errors.InvalidInputError, match=message):
            asked({"A": rows}, engine="local")


def test_two_columns_of_one_name_are_refused() -> None:
    twice = pa.table([pa.array([1]), pa.array([1]), pa.array([2])], names=["ts", "x", "x"])
    for table in (twice, pd.DataFrame([[1, 1, 2]], columns=["ts", "x", "x"])):
        with pytest.raises(errors.DuplicateInputColumnError, match="Two columns are called `x` in the input of `A`"):
            PATTERN.match({"A": table}, engine="local")


def test_names_and_types_of_inputs_are_checked_as_on_spark() -> None:
    with pytest.raises(errors.ReservedNameError, match="`__tocsin_x` of the input of `A`"):
        PATTERN.match({"A": [{"ts": 1, "__tocsin_x": 1}]}, engine="local")
    with pytest.raises(errors.InvalidInputError, match="The type column `type` holds int64, not strings"):
        PATTERN.match([{"ts": 1, "type": 5}], engine="local")
    with pytest.raises(errors.InvalidInputError, match="`inputs` has the key 5"):
        PATTERN.match({"A": [{"ts": 1}], 5: []}, engine="local")


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (column(pa.uint64(), 5), 5),
        (column(pa.uint8(), 200), 200),
        (column(pa.string_view(), "a"), "a"),
        (mixed(1, 2.5), 1.0),
        (mixed(Decimal("1.5"), 1), Decimal("1.5")),
        (mixed(Decimal(2**70)), Decimal(2**70)),
        (mixed(np.int32(7), 8), 7),
        (mixed(None, None), None),
        (mixed(pd.Timestamp(1_000), pd.NaT), dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
    ],
)
def test_what_a_column_can_hold_is_held(rows: Any, found: Any) -> None:
    assert PATTERN.match({"A": rows}, engine="local")["a"].to_pylist()[0]["x"] == found


def test_the_reference_refuses_rows_that_are_no_mappings() -> None:
    for rows in ({"A": [5]}, [("ts", 1)]):
        with pytest.raises(errors.InvalidInputError, match="A row is a"):
            reference.evaluate(PATTERN, rows)


@pytest.mark.parametrize("language", [None, 5, ["sase"], "sql"])
def test_a_language_that_does_not_exist_is_refused(language: Any) -> None:
    with pytest.raises(errors.InvalidOptionError, match="There is no language"):
        tocsin.pattern("PATTERN A a", language=language)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), 2**64]),
    st.floats(),
    st.text(st.characters(exclude_categories=()), max_size=3),
    st.binary(max_size=2),
    st.decimals(),
    st.datetimes(timezones=st.sampled_from([None, dt.UTC])),
    st.dates(),
    st.timedeltas(),
    st.complex_numbers(),
)
CELLS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=2)
)
NAMES = st.sampled_from(["x", "y", "ts", "type", "", "a b", "\ud800", "__tocsin_c0", 5, None])
ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"ts": st.integers(0, 9), "type": st.just("A")}, optional={"x": CELLS}),
        st.dictionaries(NAMES, CELLS, max_size=3),
        CELLS,
    ),
    max_size=3,
)


@settings(max_examples=300)
@given(rows=ROWS, by_type=st.booleans())
def test_no_row_makes_a_raw_error(rows: list[Any], by_type: bool) -> None:
    try:
        PATTERN.match({"A": rows} if by_type else rows, engine="local")
    except errors.TocsinError as problem:
        assert problem.hint


def test_values_of_a_hundred_levels_and_times_of_all_years_are_held() -> None:
    first, last = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)
    for value in (nested(100), {"y": nested(99)}, first, last, [first, last]):
        assert PATTERN.match({"A": mixed(value)}, engine="local", time_unit="us").num_rows == 1


@pytest.mark.parametrize("value", [SELF, {"y": SELF}, nested(101)], ids=["itself", "inside", "deep"])
def test_the_reference_refuses_values_that_are_nested_too_deeply(value: Any) -> None:
    with pytest.raises(errors.InvalidInputError, match="The column `x` holds a value that is nested more than 100"):
        reference.evaluate(PATTERN, {"A": mixed(value)})
    assert reference.evaluate(PATTERN, {"A": mixed(nested(100))})


@pytest.mark.parametrize("asked", ["PATTERN SEQ(A a, B b) WITHIN 1 SECOND", "rule R where a : A b : B"])
def test_an_event_type_without_a_time_column_is_refused(asked: str) -> None:
    templates = "template A { x : Integer } template B { x : Integer }"
    query: Any = (
        tocsin.rules(f"{templates} {asked} when b in a [0 s, 1 s]") if "rule" in asked else tocsin.pattern(asked)
    )
    with pytest.raises(errors.InvalidOptionError, match="`time=` names no time column for the event type `B`"):
        query.match({"A": mixed(1), "B": mixed(1)}, engine="local", time={"A": "ts"})


def test_the_reference_refuses_types_that_are_no_names() -> None:
    with pytest.raises(errors.InvalidInputError, match="`rows` has the key 5, which is not the name of an event type"):
        reference.evaluate(PATTERN, {5: [{"ts": 1}], "A": [{"ts": 1}]})  # type: ignore[dict-item]
