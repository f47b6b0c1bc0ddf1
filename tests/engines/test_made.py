"""Events that a kernel makes: how they are joined, gathered and hashed."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.engines.worker.digests import MadeDigests, digests
from tocsin.engines.worker.gather import Gatherer, as_array, portions
from tocsin.errors import TypeMismatchError
from tocsin.kernels.hashes import Identity, match_hashes
from tocsin.kernels.matches import concatenate, take
from tocsin.kernels.model import Bag, Made, Matches, Template
from tocsin.kernels.xxhash import chain
from tocsin.plan.manifest import Gathered, Layout, Packing
from tocsin.reference.identity import _digest as reference_digest

TEMPLATES = (Template(("n", "x"), is_derived=True), Template(("x",), is_derived=False))
# Of three rows: event 3 is derived at row 0, event 4 what is left of row 1.
TABLE = pa.table(
    {"x": [10, 20, 30], "k": ["a", "b", "c"], "d1": [1, 2, 3], "d2": [4, 5, 6], "t1": [7, 8, 9], "t2": [0, 0, 1]}
)
LAYOUT = Layout(
    Packing(1),
    gathered=(
        Gathered("one", ("x", "k", None), False, ("x", "k", "n"), (None, None, pa.float64())),
        Gathered("all", ("x",), True, ("x",), (None,)),
    ),
    templates=TEMPLATES,
    trimmed={1: ("t1", "t2")},
)


def array(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


def made(n: Any, x: Any) -> Made:
    return Made(3, array(0, 1), array(0, 1), array(0, 0), (([n], [x]), ()))


def matches(held: Made) -> Matches:
    """One match with a derived event, one with what is left of a row, one with a row."""
    events = {"one": array(3, 4, 2), "all": Bag(array(0, 2, 2, 3), array(0, 3, 4))}
    return Matches(array(0, 1, 2), array(5, 6, 7), events, made=held)


def rows(found: Matches) -> list[dict[str, Any]]:
    return [row for part in portions(found, 2) for row in Gatherer(TABLE, LAYOUT).batch(part, {}).to_pylist()]


EXPECTED = [
    ({"f0": 99, "f1": None, "f2": 1.5}, [{"f0": 10}, {"f0": 99}]),
    ({"f0": 20, "f1": None, "f2": None}, None),
    ({"f0": 30, "f1": "c", "f2": None}, [{"f0": 20}]),
]


def test_events_that_were_made_are_gathered_beside_rows() -> None:
    found = rows(matches(made(1.5, 99)))
    assert [(row["__tocsin_v0"], row["__tocsin_v1"]) for row in found] == EXPECTED


def test_picking_and_joining_keeps_what_was_made() -> None:
    one, other = matches(made(1.5, 99)), matches(made(Decimal(2), None))
    both = concatenate([take(one, array(2, 0)), other, one])
    assert both.made is not None
    assert len(both.made.rows) == 4
    found = [row["__tocsin_v0"] for row in rows(both)]
    assert [event["f2"] for event in found] == [None, 1.5, 2.0, None, None, 1.5, None, None]
    assert [event["f0"] for event in found] == [30, 99, None, 20, 30, 99, 20, 30]
    same = concatenate([one, take(one, array(0))])
    assert same.made is one.made


def test_arrays_with_masked_values_are_joined() -> None:
    first = made(1, 2)
    masked = Made(3, array(0), array(0), array(0), ((np.ma.MaskedArray([5], [True]), np.array([6])), ()))
    events = {"one": array(3)}
    both = concatenate([Matches(array(0), array(0), events, made=held) for held in (first, masked, masked)])
    assert both.made is not None
    assert list(both.made.columns[0][0]) == [1, None]
    assert both.events["one"].tolist() == [3, 5, 5]  # type: ignore[union-attr]
    whole = concatenate([Matches(array(0), array(0), events, made=held) for held in (masked, made_again(masked))])
    assert whole.made is not None
    assert np.ma.getmaskarray(whole.made.columns[0][0]).tolist() == [True, True]


def made_again(held: Made) -> Made:
    return Made(held.base, held.rows, held.templates, held.places, held.columns)


def test_hashes_are_those_of_the_events_that_were_made() -> None:
    found = matches(made(4, 2))
    assert found.made is not None
    of_made = MadeDigests(lambda name: TABLE.column(name).to_numpy(), LAYOUT).of(found.made)
    assert of_made[0].tolist() == [reference_digest(1, [""], {"n": 4, "x": 2}), 8]
    assert of_made[1].tolist() == [reference_digest(2, [""], {"n": 4, "x": 2}), 0]
    own = (array(1, 2, 3), array(4, 5, 6))
    first, _ = match_hashes(found, own, of_made)
    # The same as if the events that were made were rows behind the others, at the events that were read.
    at = [chain(one.view(np.uint64), row[found.made.rows]) for one, row in zip(of_made, own, strict=True)]
    longer = (np.append(own[0], at[0].view(np.int64)), np.append(own[1], at[1].view(np.int64)))
    assert first.tolist() == match_hashes(found, longer)[0].tolist()


def test_matches_that_were_made_of_equal_rows_or_begin_with_them_are_numbered() -> None:
    first, second = array(7, 7), array(8, 8)
    equal = (array(1, 1, 3), array(4, 4, 6))
    of_made = Matches(array(0, 0), array(5, 5), {"one": array(3, 4)}, made=replace(made(1, 1), rows=array(0, 1)))
    assert Identity(equal, array(1, 1, 1)).ordinals(of_made, first, second).tolist() == [0, 1]
    hiding = Matches(array(0, 0), array(5, 5), {"one": array(2, 2)}, edges=(array(0, 1), array(2, 2)))
    assert Identity(equal, array(1, 1, 1)).ordinals(hiding, first, second).tolist() == [0, 1]
    assert match_hashes(hiding, (array(1, 2, 3), array(4, 5, 6)))[0].tolist() != first.tolist()


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(max_size=40),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.dates(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.timedeltas(min_value=dt.timedelta(0), max_value=dt.timedelta(days=9)),
    st.binary(max_size=5),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=2),
)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5), st.sampled_from([1, 2]))
def test_digests_of_derived_events_are_those_of_the_reference(pairs: list[tuple[Any, Any]], salt: int) -> None:
    columns = {"s": [one for one, _ in pairs], "a": [other for _, other in pairs]}
    expected = [reference_digest(salt, [""], {"s": one, "a": other}) for one, other in pairs]
    assert digests(salt, [""], columns, len(pairs)).tolist() == expected


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5), st.lists(st.booleans(), min_size=5, max_size=5))
def test_digests_of_arrays_are_those_of_their_values(values: list[float], nulls: list[bool]) -> None:
    given_nulls = nulls[: len(values)]
    masked = np.ma.MaskedArray(values, given_nulls)
    plain = [None if is_null else value for value, is_null in zip(values, given_nulls, strict=True)]
    assert digests(1, [""], {"x": masked}, len(values)).tolist() == digests(1, [""], {"x": plain}, len(values)).tolist()


DTYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(max_size=70)),
    (pa.large_string(), st.text(max_size=9)),
    (pa.decimal128(9, 2), st.decimals(-9999, 9999, places=2)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "Asia/Tokyo"), st.datetimes(dt.datetime(2, 1, 1), timezones=st.just(dt.UTC))),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-9), dt.timedelta(9))),
    (pa.binary(), st.binary(max_size=5)),
    (pa.list_(pa.int64()), st.lists(st.integers(0, 9), max_size=3)),
    (pa.struct({"a": pa.string(), "b": pa.int64()}), st.fixed_dictionaries({"a": st.text(max_size=3), "b": st.none()})),
    (pa.null(), st.none()),
]


@given(st.data(), st.sampled_from([1, 2]), st.integers(0, 2))
def test_digests_of_arrow_columns_are_those_of_the_reference(data: st.DataObject, salt: int, cut: int) -> None:
    chosen = data.draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4))
    size = data.draw(st.integers(cut, 5))
    values = [data.draw(st.lists(st.none() | one, min_size=size, max_size=size)) for _, one in chosen]
    arrays = [pa.array(column, dtype).slice(cut) for column, (dtype, _) in zip(values, chosen, strict=True)]
    columns = {f"c{number}": array for number, array in enumerate(arrays)}
    expected = [reference_digest(salt, ["A"], row) for row in pa.table(columns).to_pylist()]
    assert digests(salt, ["A"], columns, size - cut).tolist() == expected


def test_a_wide_event_has_several_words_of_nulls() -> None:
    columns = {f"c{number:03}": [None if number % 2 else number] for number in range(130)}
    row = {name: values[0] for name, values in columns.items()}
    assert digests(2, [""], columns, 1).tolist() == [reference_digest(2, [""], row)]


@pytest.mark.parametrize(
    ("values", "dtype", "wrong"),
    [
        ([1, 2.5], pa.int64(), "2.5"),
        ([1, "a"], pa.float64(), "'a'"),
        ([2**70], pa.int64(), str(2**70)),
        ([Decimal("1.234")], pa.decimal128(10, 2), "1.234"),
    ],
)
def test_what_an_aggregate_gives_must_be_what_it_said(values: list[Any], dtype: pa.DataType, wrong: str) -> None:
    with pytest.raises(TypeMismatchError, match="gives=") as error:
        as_array(values, dtype, "p")
    assert wrong in error.value.message


def test_portions_end_where_bags_are_full() -> None:
    sizes = np.array([0, 3, 1, 0, 9, 2, 2, 1])
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    numbers = np.arange(len(sizes))
    found = Matches(numbers, numbers, {"b": Bag(offsets, np.arange(offsets[-1]))}, values=((numbers * 2, numbers > 5),))
    parts = list(portions(found, 3, 4))
    assert [part.start.tolist() for part in parts] == [[0, 1, 2], [3], [4], [5, 6], [7]]
    bags = [part.events["b"] for part in parts]
    assert [bag.rows.tolist() for bag in bags if isinstance(bag, Bag)] == [
        [0, 1, 2, 3],
        [],
        list(range(4, 13)),
        [13, 14, 15, 16],
        [17],
    ]
    assert [part.values[0][0].tolist() for part in parts] == [[0, 2, 4], [6], [8], [10, 12], [14]]
    assert list(portions(Matches(numbers[:0], numbers[:0]))) == []
