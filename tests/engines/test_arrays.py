"""NumPy arrays and Python values as Arrow arrays: as pyarrow converts them, without pandas."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.engines.worker.arrays import constant, nulls_of, numbers_of, of_numbers, of_values

KINDS: list[st.SearchStrategy[Any]] = [
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=5),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.datetimes(timezones=st.just(dt.timezone(dt.timedelta(hours=2)))),
    st.dates(),
    st.decimals(-99, 99, places=2),
    st.lists(st.integers(0, 9), max_size=2),
    st.fixed_dictionaries({"a": st.integers(0, 9)}),
]


@given(st.data())
def test_values_become_what_pyarrow_makes_of_them(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | data.draw(st.sampled_from(KINDS)), max_size=20))
    found, expected = of_values(values), pa.array(values)
    assert found.type == expected.type and str(found.to_pylist()) == str(expected.to_pylist())
    assert found.null_count == expected.null_count
    found.validate(full=True)


@given(st.lists(st.none() | st.integers(-5, 5), max_size=20), st.sampled_from([pa.int64(), pa.int8(), pa.float64()]))
def test_a_type_that_is_asked_for_is_the_type(values: list[int | None], dtype: pa.DataType) -> None:
    assert of_values(values, dtype) == pa.array(values, dtype)


@pytest.mark.parametrize("values", [[1, "a"], ["\ud800"], [2**63], [object()]])
def test_what_pyarrow_refuses_is_refused(values: list[Any]) -> None:
    with pytest.raises((pa.ArrowException, OverflowError, UnicodeError)):
        of_values(values)


ARRAYS = [np.bool_, np.int8, np.int32, np.int64, np.float32, np.float64]


@given(st.data(), st.sampled_from(ARRAYS), st.integers(0, 70), st.integers(0, 20), st.integers(0, 20))
def test_numbers_go_to_arrow_and_back(data: st.DataObject, kind: Any, size: int, begin: int, cut: int) -> None:
    values = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)), kind)
    is_null = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    array = of_numbers(values, is_null)
    array.validate(full=True)
    assert array == pa.array(values, mask=is_null)
    part = array[begin : size - cut]
    assert nulls_of(part).tolist() == is_null[begin : size - cut].tolist()
    assert (
        numbers_of(part)[~nulls_of(part)].tolist() == values[begin : size - cut][~is_null[begin : size - cut]].tolist()
    )
    several = pa.chunked_array([part, array], array.type)
    assert numbers_of(several)[~nulls_of(several)].tolist() == [x for x in several.to_pylist() if x is not None]


@pytest.mark.parametrize("value", [None, 1, 1.5, "a", True, Decimal("1.5")])
def test_one_value_is_a_scalar(value: Any) -> None:
    assert constant(value, pa.scalar(value).type) == pa.scalar(value)


FIRST = """
import sys
import tocsin
assert not {"numpy", "pyarrow"} & set(sys.modules)
rows = {"A": [{"ts": 0, "k": "x", "v": 1.5}], "B": [{"ts": 1, "k": "x", "v": 2}, {"ts": 2, "k": None, "v": 3}]}
where = "a.k = b.k AND a.v < b.v AND b.v IN (1, 2)"
p = tocsin.pattern(f"PATTERN SEQ(A a, B b) WHERE {where} WITHIN 1 HOUR RETURN b.v AS v")
found = p.match(rows, engine="local", time_unit="us")
assert found.column("v").to_pylist() == [2], found
print(sorted({"numba", "pandas", "pyspark", "rich"} & set(sys.modules)))
"""


def test_a_first_result_waits_for_neither_pandas_nor_numba() -> None:
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
