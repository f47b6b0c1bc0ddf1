"""Arguments of the wrong kind, and tables that Arrow holds but nobody can read: Tocsin's own errors, which print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tocsin
from tocsin import errors

PATTERN = tocsin.pattern("PATTERN SEQ(A a, B+ b) WHERE b.x > a.x WITHIN 10 us")
A, B = [{"ts": 1, "x": 1}], [{"ts": 2, "x": 3}]
NOT_UTF8 = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
NOWHERE = pa.table({"ts": pa.array([1], pa.timestamp("us", "Nowhere/Land")), "x": [1]})


def match(rows: Any) -> Any:
    return PATTERN.match(rows, engine="local")


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "a type that is a number": (lambda: match({1: A, "B": B}), "the key 1"),
    "a text that is not UTF-8": (
        lambda: match({"A": pa.table({"ts": [1], "x": [1], "s": NOT_UTF8}), "B": B}),
        "`s` of the input of `A` holds a text that is not UTF-8",
    ),
    "a time zone that does not exist": (lambda: match({"A": NOWHERE, "B": NOWHERE}), "`Nowhere/Land`"),
    "aggregates": (lambda: tocsin.pattern("PATTERN A a", aggregates=5), "`aggregates=` is a int"),  # type: ignore[arg-type]
    "a compact row": (lambda: list(PATTERN.enumerate(None)), "NoneType"),
    "counts": (lambda: tocsin.Statistics.of(5), "`counts=` is a int"),  # type: ignore[arg-type]
    "stored statistics": (lambda: tocsin.Statistics.from_dict(None), "no stored statistics"),  # type: ignore[arg-type]
    "rates": (lambda: tocsin.Statistics.of({"A": 5}, rates=5), "`rates=` is a int"),  # type: ignore[arg-type]
    "rows of the reference": (lambda: tocsin.reference.evaluate(PATTERN, None), "NoneType"),  # type: ignore[call-overload]
    "columns of the reference": (
        lambda: tocsin.reference.evaluate(PATTERN, {"A": [{"ts": 1, 3: 4}], "B": B}),  # type: ignore[dict-item]
        "called 3",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_by_name(name: str) -> None:
    call, words = CALLS[name]
    with pytest.raises(errors.TocsinError) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("option", ["selectivity", "distinct", "pairs"])
def test_statistics_by_name_are_mappings(option: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match=f"`{option}=` is a int"):
        tocsin.Statistics.of({"A": 5}, **{option: 5})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["keys", "heaviest", "duration", "clustered"])
def test_statistics_that_are_numbers_are_numbers(option: str) -> None:
    with pytest.raises(errors.InvalidOptionError, match="abc"):
        tocsin.Statistics.of({"A": 5}, **{option: "abc"})  # type: ignore[arg-type]


def test_run_end_encoded_columns_are_values() -> None:
    encoded = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([1]))
    assert match({"A": pa.table({"ts": [1], "x": encoded}), "B": B}).num_rows == 1


LONG = {
    "CASE": "PATTERN SEQ(A a, B b) WHERE CASE "
    + " ".join(f"WHEN a.x + b.x = {number} THEN {number}" for number in range(250))
    + " END >= 0",
    "GREATEST": f"PATTERN SEQ(A a, B b) WHERE GREATEST({', '.join(f'a.x + b.x + {n}' for n in range(250))}) > 1",
    "AND": f"PATTERN SEQ(A a, B b) WHERE {' AND '.join(f'b.x > a.x - {number}' for number in range(100))}",
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("strategy", ["auto", "automaton"])
def test_long_conditions_run(name: str, strategy: str) -> None:
    """Their code would nest brackets deeper than Python's parser goes."""
    rows = {"A": [{"ts": 1, "x": 1}, {"ts": 2, "x": 3}], "B": [{"ts": 3, "x": 2}]}
    pattern = tocsin.pattern(LONG[name])
    found = pattern.match(rows, engine="local", strategy=strategy)
    assert found.num_rows == len(tocsin.reference.evaluate(pattern, rows)) > 0


def test_long_filters_run() -> None:
    said = " AND ".join(f"(A[x > {number - 9}] OR A[same(x)])" for number in range(40))
    pattern = tocsin.pattern(f"A+ FILTER {said}", language="acel")
    rows = {"A": [{"ts": 1, "x": 1}, {"ts": 2, "x": 3}]}
    assert pattern.match(rows, engine="local").num_rows == len(tocsin.reference.evaluate(pattern, rows)) == 2
