"""Expressions over columns of events: what is covered equals the evaluator of single events."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import errors
from tocsin.engines.worker import vectors
from tocsin.expressions import interpret
from tocsin.language import expressions as ex

NAN = float("nan")
INSTANTS = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 0, 1)]
SOURCES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), [-(2**63), -2, -1, 0, 1, 2, 3, 2**53 + 1, 2**63 - 1]),
    "small": (pa.int16(), [-1, 0, 2]),
    "d": (pa.float64(), [NAN, float("inf"), float("-inf"), -0.0, 0.0, 1.0, 1.5, 2.0**53, -2.0]),
    "f": (pa.float32(), [0.5, -1.0, NAN]),
    "s": (pa.string(), ["", "a", "ab", "b", "é", "\U0001f600", "a\nb", "%"]),
    "l": (pa.large_string(), ["", "a", "ab"]),
    "b": (pa.bool_(), [True, False]),
    "t": (pa.timestamp("us"), INSTANTS),
    "z": (pa.timestamp("us", "America/New_York"), [each.replace(tzinfo=dt.UTC) for each in INSTANTS]),
    "day": (pa.date32(), [dt.date(2026, 1, 1), dt.date(1960, 2, 29)]),
    "none": (pa.null(), [None]),
    "e": (pa.decimal128(4, 1), [Decimal("1.5"), Decimal("-2.0")]),
}


def attribute(name: str) -> ex.Expression:
    return ex.Attribute("a", (name,), ex.Each.PLAIN)


def tables() -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({name: st.none() | st.sampled_from(values) for name, (_, values) in SOURCES.items()})
    return st.lists(row, max_size=8)


numbers = st.sampled_from(["i", "small", "d", "f", "none"]).map(attribute) | st.sampled_from(
    [ex.Literal(each) for each in (-2, 0, 1, 2**53 + 1, 2**63 - 1, 2**70, 0.0, -1.5, 1e300, None)]
)
values = st.recursive(
    numbers,
    lambda inner: st.builds(ex.Arithmetic, st.sampled_from("+-*/%"), inner, inner) | st.builds(ex.Negative, inner),
    max_leaves=4,
)
texts = st.sampled_from("sl").map(attribute) | st.sampled_from(
    [ex.Literal(each) for each in ("", "a", "é", "\U0001f600")]
)
times = st.sampled_from(["t", "z", "day"]).map(attribute) | st.sampled_from(
    [ex.Timestamp(INSTANTS[1]), ex.Date(dt.date(2026, 1, 1))]
)
flags = st.just(attribute("b")) | st.sampled_from([ex.Literal(True), ex.Literal(False)])
decimals = st.just(attribute("e")) | st.sampled_from([ex.Literal(1), ex.Literal(1.5)])
patterns = st.sampled_from(["", "%", "a%", "%b", "%a%", "a_", r"\%", "a%b", "%%"])


def compared(domain: st.SearchStrategy[Any]) -> st.SearchStrategy[ex.Expression]:
    options = st.lists(domain, min_size=1, max_size=7).map(tuple)
    return (
        st.builds(ex.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), domain, domain)
        | st.builds(ex.Between, domain, domain, domain, negated=st.booleans())
        | st.builds(ex.In, domain, options, negated=st.booleans())
        | st.builds(ex.IsNull, domain, negated=st.booleans())
    )


conditions = st.recursive(
    st.one_of(*map(compared, (values, texts, times, flags, decimals)))
    | st.builds(ex.Like, texts, patterns, negated=st.booleans())
    | flags,
    lambda inner: (
        st.builds(ex.Not, inner)
        | st.builds(ex.And, st.tuples(inner, inner))
        | st.builds(ex.Or, st.tuples(inner, inner))
    ),
    max_leaves=4,
)


def columns_of(rows: list[dict[str, Any]], cut: int) -> dict[str, pa.ChunkedArray]:
    """The rows as columns of two pieces."""
    cut = min(cut, len(rows))
    return {
        name: pa.chunked_array(
            [pa.array([row[name] for row in part], dtype) for part in (rows[:cut], rows[cut:])], dtype
        )
        for name, (dtype, _) in SOURCES.items()
    }


def column_of(expression: ex.Expression, columns: dict[str, pa.ChunkedArray], size: int) -> pa.ChunkedArray | None:
    return vectors.column_of(expression, lambda node: columns.get(node.path[0]), size)


def as_python(found: Any) -> Any:
    return "nan" if found != found else found  # noqa: PLR0124


@given(expression=conditions | values, rows=tables(), cut=st.integers(0, 8))
def test_a_column_has_the_value_of_every_event(expression: ex.Expression, rows: list[dict[str, Any]], cut: int) -> None:
    columns = columns_of(rows, cut)
    found = column_of(expression, columns, len(rows))
    if found is None:
        return
    read = pa.table(columns).to_pylist()
    try:
        expected = [interpret.value(expression)({"a": (row,)}) for row in read]
    except errors.TypeMismatchError:  # a condition beside it may spare the comparison
        raise AssertionError("a column compares what cannot be compared") from None
    assert list(map(as_python, found.to_pylist())) == list(map(as_python, expected))


@pytest.mark.parametrize("op", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(("kind", "other"), [("d", "d"), ("i", "d"), ("d", "i"), ("s", "s"), ("t", "day"), ("b", "b")])
def test_all_values_of_two_types_are_compared_as_python_compares_them(op: str, kind: str, other: str) -> None:
    pairs = [(one, two) for one in [*SOURCES[kind][1], None] for two in [*SOURCES[other][1], None]]
    columns = {
        "x": pa.chunked_array([pa.array([one for one, _ in pairs], SOURCES[kind][0])]),
        "y": pa.chunked_array([pa.array([two for _, two in pairs], SOURCES[other][0])]),
    }
    comparison = ex.Comparison(op, attribute("x"), attribute("y"))
    check = interpret.value(comparison)
    expected = [check({"a": ({"x": one, "y": two},)}) for one, two in pairs]
    found = column_of(comparison, columns, len(pairs))
    assert found is not None and found.to_pylist() == expected
    for place, (_, two) in enumerate(pairs):
        literal = ex.Comparison(op, attribute("x"), ex.Literal(two))
        if kind in "ids" and other in "ids" and str(two) != "nan":
            one = column_of(literal, {"x": columns["x"].slice(place, 1)}, 1)
            assert one is not None and one.to_pylist() == [expected[place]]


@pytest.mark.parametrize(
    "expression",
    [
        ex.Comparison(">", attribute("i"), ex.Literal(1)),
        ex.Comparison("<=", attribute("d"), ex.Arithmetic("*", attribute("f"), ex.Literal(2))),
        ex.Between(attribute("t"), ex.Date(dt.date(2026, 1, 1)), attribute("z")),
        ex.In(attribute("s"), tuple(map(ex.Literal, "abcdef")), negated=True),
        ex.Like(attribute("l"), "a%"),
        ex.Or((ex.IsNull(attribute("none")), ex.Not(attribute("b")))),
        ex.Comparison("=", attribute("missing"), ex.Literal(1)),
    ],
)
def test_what_conditions_mostly_are_is_covered(expression: ex.Expression) -> None:
    assert column_of(expression, columns_of([{name: None for name in SOURCES}], 0), 1) is not None


@pytest.mark.parametrize(
    "expression",
    [
        ex.Comparison("=", attribute("e"), ex.Literal(1)),
        ex.Comparison("=", attribute("s"), ex.Literal(1)),
        ex.Comparison("=", ex.Attribute("a", ("i",), ex.Each.NEXT), ex.Literal(1)),
        ex.Like(attribute("s"), "a_"),
        ex.Call("upper", (attribute("s"),)),
    ],
)
def test_the_rest_is_left_to_python(expression: ex.Expression) -> None:
    assert column_of(expression, columns_of([{name: None for name in SOURCES}], 0), 1) is None


def test_integers_that_overflow_are_left_to_python() -> None:
    double = ex.Arithmetic("*", attribute("i"), ex.Literal(2))
    columns = {"i": pa.chunked_array([[1, 2**62]])}
    assert column_of(double, columns, 2) is None
    assert column_of(double, {"i": columns["i"].slice(0, 1)}, 1).to_pylist() == [2]
