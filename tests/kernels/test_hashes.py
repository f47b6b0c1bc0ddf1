"""XXH64 in NumPy: equal to Spark's and to the reference's, value by value and match by match."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from tocsin.engines.spark import match_ids as identity
from tocsin.engines.spark.sql import functions as F
from tocsin.engines.spark.sql.column import select
from tocsin.kernels import compile, hashes, xxhash
from tocsin.kernels.model import Bag, Matches
from tocsin.reference.identity import hash_fields

LONGS = st.integers(-(2**63), 2**63 - 1)
TIMES = np.array([1, 1, 1])
EDGES = [0, 1, -1, 2**63 - 1, -(2**63), 42]


def array(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def texts(ids: hashes.Ids) -> list[str]:
    return [row.tobytes().decode() for row in ids]


@given(st.lists(LONGS | st.text(), max_size=6), st.lists(LONGS, min_size=1, max_size=5))
def test_a_chain_of_constants_and_numbers_is_the_one_of_the_reference(
    prefix: list[int | str], values: list[int]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seeds = np.full(len(values), xxhash.constant(*prefix), np.uint64)
        found = xxhash.chain(xxhash.chain(seeds, array(values)), array(values[::-1])).view(np.int64)
    expected = [hash_fields([*prefix, one, other]) for one, other in zip(values, values[::-1], strict=True)]
    assert found.tolist() == expected


@pytest.mark.compiled
@given(st.lists(LONGS, max_size=9), st.integers(-(2**63), 2**63 - 1))
def test_numba_computes_what_numpy_does(values: list[int], seed: int) -> None:
    words = array(values).view(np.uint64)
    for function, others in ((xxhash.CHAIN, (words,)), (xxhash.DIGITS, ())):
        seeds = np.full(len(values), seed).view(np.uint64) ^ words if others else words & np.uint64(2**32 - 1)
        by_numpy, by_numba = seeds.copy(), seeds.copy()
        function.plain(by_numpy, *others)
        compile.fast(function.text)(by_numba, *others)
        assert by_numba.tolist() == by_numpy.tolist()


@pytest.mark.compiled
def test_numba_takes_over_where_numpy_has_computed_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def plain(numbers: NDArray[np.int64]) -> None:
        calls.append(len(numbers))
        numbers += 1

    monkeypatch.setattr(compile, "OF_NUMPY", 1e9)
    text = "@compiled\ndef search(numbers):\n    for place in range(len(numbers)):\n        numbers[place] += 1\n"
    function, numbers = compile.ArrayFunction(text, plain), np.zeros(3, np.int64)
    function(numbers)
    function(numbers)
    assert (calls, numbers.tolist()) == ([3], [2, 2, 2])
    monkeypatch.setattr(compile, "OF_NUMPY", 0)
    other = compile.ArrayFunction(f"{text}    # another\n", plain)
    other(numbers)
    other(numbers)
    assert calls == [3, 3, 3]
    monkeypatch.setattr(compile, "OF_NUMPY", 1e9)
    monkeypatch.setattr(compile, "has_numba", lambda: False)
    other(numbers)
    other(numbers)
    assert calls == [3, 3, 3, 3, 3]


@given(st.text(min_size=20, max_size=200))
def test_long_texts_are_hashed_in_their_four_lanes(text: str) -> None:
    assert xxhash.constant(text) == hash_fields([text]) & (2**64 - 1)


@st.composite
def matches(draw: st.DrawFn) -> tuple[Matches, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Matches of three variables over rows of random digests, some of them equal."""
    rows = draw(st.integers(1, 6))
    digests = [array(draw(st.lists(st.sampled_from(EDGES), min_size=rows, max_size=rows))) for _ in range(2)]
    size = draw(st.integers(0, 6))
    times = array(draw(st.lists(st.sampled_from(EDGES), min_size=size, max_size=size)))
    single = array(draw(st.lists(st.integers(-1, rows - 1), min_size=size, max_size=size)))
    bound = array(draw(st.lists(st.integers(0, rows - 1), min_size=size, max_size=size)))
    bags = draw(st.lists(st.lists(st.integers(0, rows - 1), max_size=4), min_size=size, max_size=size))
    bag = Bag(array([0, *np.cumsum([len(one) for one in bags])]), array([row for one in bags for row in one]))
    return Matches(times, times + 1, {"b": single, "a": bag, "ä": bound}), (digests[0], digests[1])


def fields_of(found: Matches, number: int, salt: int, digests: NDArray[np.int64]) -> list[int | str]:
    fields: list[int | str] = [salt, '["a","b","ä"]', int(found.start[number]), int(found.end[number])]
    for name in ("a", "b", "ä"):
        held = found.events[name]
        if isinstance(held, Bag):
            rows = held.rows[held.offsets[number] : held.offsets[number + 1]].tolist()
        else:
            rows = [int(held[number])] if held[number] >= 0 else []
        total = sum(int(digests[row]) for row in rows)
        fields += [len(rows), *([(total + 2**63) % 2**64 - 2**63] if rows else [])]
    return fields


@given(matches())
def test_the_hashes_of_matches_are_those_of_the_reference(
    drawn: tuple[Matches, tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> None:
    found, digests = drawn
    both = hashes.match_hashes(found, digests)
    for salt in (1, 2):
        expected = [hash_fields(fields_of(found, number, salt, digests[salt - 1])) for number in range(len(found))]
        assert both[salt - 1].tolist() == expected


@given(matches(), st.integers(0, 6))
def test_equal_matches_are_numbered_whatever_the_cut(
    drawn: tuple[Matches, tuple[NDArray[np.int64], NDArray[np.int64]]], cut: int
) -> None:
    found, digests = drawn
    # A match that holds no row with a twin comes once; the drawn ones may repeat, so that every row gets a twin.
    twice = (np.concatenate([digests[0]] * 2), np.concatenate([digests[1]] * 2))
    numbering = hashes.Identity(twice, np.zeros(len(twice[0]), np.int64))
    numbers: list[int] = []
    pairs: list[tuple[int, int]] = []
    for part in (_part(found, 0, min(cut, len(found))), _part(found, min(cut, len(found)), len(found))):
        first, second = hashes.match_hashes(part, digests)
        numbers += numbering.ordinals(part, first, second).tolist()
        pairs += zip(first.tolist(), second.tolist(), strict=True)
    holds_events = [_size(found, number) > 0 for number in range(len(found))]
    for pair in set(pairs):
        own = [
            number
            for number, other, is_any in zip(numbers, pairs, holds_events, strict=True)
            if other == pair and is_any
        ]
        assert sorted(own) == list(range(len(own)))


def _part(found: Matches, begin: int, end: int) -> Matches:
    events: dict[str, NDArray[np.int64] | Bag] = {}
    for name, held in found.events.items():
        if isinstance(held, Bag):
            offsets = held.offsets[begin : end + 1]
            events[name] = Bag(offsets - offsets[0], held.rows[offsets[0] : offsets[-1]])
        else:
            events[name] = held[begin:end]
    return Matches(found.start[begin:end], found.end[begin:end], events)


def _size(found: Matches, number: int) -> int:
    return sum(
        int(held.offsets[number + 1] - held.offsets[number]) if isinstance(held, Bag) else int(held[number] >= 0)
        for held in found.events.values()
    )


def test_only_rows_that_can_meet_are_twins() -> None:
    digests = (array([5, 5, 6]), array([7, 7, 8]))
    rows = array([0, 1, 2, 0])
    found = Matches(array([1] * 4), array([1] * 4), {"a": rows})
    first, second = hashes.match_hashes(found, digests)
    assert hashes.Identity(digests, TIMES).ordinals(found, first, second).tolist() == [0, 1, 0, 2]
    assert hashes.Identity(digests, TIMES, array([1, 2, 2]), None).ordinals(found, first, second).tolist() == [
        0,
        0,
        0,
        0,
    ]


class Asked:
    """Digests that note the rows they are asked for."""

    def __init__(self, digests: NDArray[np.int64]) -> None:
        self.digests = digests
        self.rows: set[int] = set()

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        self.rows |= set(rows.tolist())
        return self.digests[rows]


FEW = st.integers(0, 3)


@given(st.lists(st.tuples(FEW, FEW, FEW, FEW), max_size=12))
def test_twins_are_equal_in_all_columns_and_few_digests_are_asked_for(rows: list[tuple[int, int, int, int]]) -> None:
    time, group, first, second = (array([row[place] for row in rows]) for place in range(4))
    asked = Asked(first), Asked(second)
    found = hashes.twins([time, group], asked)
    expected = [rows.count(row) > 1 for row in rows]
    assert (found is None and not any(expected)) or (found is not None and found.tolist() == expected)
    keys = [row[:2] for row in rows]
    assert asked[0].rows | asked[1].rows <= {place for place, key in enumerate(keys) if keys.count(key) > 1}


def test_matches_that_come_in_parts_get_the_ids_of_those_that_come_at_once() -> None:
    digests = (array([5, 5, 6]), array([7, 7, 8]))
    found = Matches(array([1] * 3), array([1] * 3), {"a": array([0, 1, 2])})
    at_once = texts(hashes.Identity(digests, TIMES)(found))
    identify = hashes.Identity(digests, TIMES)
    parts = [texts(identify(part)) for part in (_part(found, 0, 1), _part(found, 1, 3))]
    assert [*parts[0], *parts[1]] == at_once
    assert len(set(at_once)) == 3
    assert len(set(texts(hashes.Identity(digests, TIMES, has_id=True)(found)))) == 2


def test_numpy_and_spark_compute_the_same_ids(spark: SparkSession) -> None:
    random = np.random.default_rng(3)
    digests = (random.integers(-(2**63), 2**63 - 1, 50), random.integers(-(2**63), 2**63 - 1, 50))
    size = 200
    single = random.integers(-1, 50, size)
    sizes = random.integers(0, 5, size)
    bag = Bag(np.append(0, np.cumsum(sizes)), random.integers(0, 50, int(sizes.sum())))
    found = Matches(random.integers(-(2**63), 2**63 - 1, size), random.integers(0, 9, size), {"b": single, "c": bag})
    rows = [
        (
            int(found.start[number]),
            int(found.end[number]),
            *(None if single[number] < 0 else int(digest[single[number]]) for digest in digests),
            int(sizes[number]),
            *(int(digest[bag.rows[bag.offsets[number] : bag.offsets[number + 1]]].sum()) for digest in digests),
        )
        for number in range(size)
    ]
    schema = "s bigint, e bigint, b1 bigint, b2 bigint, c bigint, c1 bigint, c2 bigint"
    events = {
        "b": identity.Digests(F.when(F.col("b1").isNull(), 0).otherwise(1).cast("bigint"), F.col("b1"), F.col("b2")),
        "c": identity.Digests(F.col("c"), *(F.when(F.col("c") > 0, F.col(name)) for name in ("c1", "c2"))),
    }
    frame = spark.createDataFrame(rows, schema)
    hashed = select(frame, *identity.hashes(F.col("s"), F.col("e"), events))
    by_spark = sorted(row[0] for row in select(identity.numbered(hashed), identity.match_id()).collect())
    assert sorted(texts(hashes.Identity(digests, np.arange(50))(found))) == by_spark
