"""Columns of results that are read off annotations: those that `schema=` would say, and clear words where none are."""

from __future__ import annotations

import datetime as dt
import functools
import gc
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict

import pytest
from pyspark.sql import SparkSession

from tocsin import acer, errors
from tocsin.acer.arrow import annotated_schema
from tocsin.acer.events import event_class
from tocsin.acer.functions import values_of_row


class Inner(NamedTuple):
    a: int
    b: str | None


class Total(NamedTuple):
    n: int
    mean: float | None
    text: str
    ok: bool
    at: dt.datetime
    day: dt.date
    price: Decimal
    raw: bytes
    many: list[int]
    by_name: dict[str, float]
    inner: Inner
    inners: list[Inner]


@dataclass
class Pair:
    low: float
    high: float


class Named(TypedDict):
    low: float
    high: float


class Odd(NamedTuple):
    what: complex


ALL = (
    "n bigint, mean double, text string, ok boolean, at timestamp, day date, price decimal(38,18), raw binary, "
    "many array<bigint>, by_name map<string,double>, inner struct<a:bigint,b:string>, "
    "inners array<struct<a:bigint,b:string>>"
)


def one(state: Any) -> Total: ...
def some(state: Any) -> list[Total]: ...
def perhaps(state: Any) -> Pair | None: ...
def each(state: Any) -> Iterator[Named]: ...
def listed(state: Any) -> list[Pair] | None: ...
def plain(state: Any) -> tuple[int, float]: ...
def nameless(state: Any) -> list[int]: ...
def unknown(state: Any) -> Nowhere: ...  # type: ignore[name-defined] # noqa: F821
def silent(state): ...  # type: ignore[no-untyped-def]
def paired(state: int, event: Any) -> tuple[int, list[Pair]]: ...
def odd(state: Any) -> Odd: ...


class Caller:
    def __call__(self, state: Any) -> Pair: ...

    def method(self, state: Any) -> Named: ...


PAIR = "low double, high double"


@pytest.mark.parametrize(
    ("call", "columns"),
    [
        (one, ALL),
        (some, ALL),
        (perhaps, PAIR),
        (each, PAIR),
        (listed, PAIR),
        (functools.partial(perhaps), PAIR),
        (Caller(), PAIR),
        (Caller().method, PAIR),
        (plain, None),
        (nameless, None),
        (unknown, None),
        (silent, None),
        (paired, None),
        (lambda state: state, None),
        (len, None),
    ],
)
def test_columns_of_an_annotation(call: Any, columns: str | None) -> None:
    found = annotated_schema(call, "output")
    wanted = None if columns is None else f"struct<{columns.replace(', ', ',').replace(' ', ':')}>"
    assert (found and found.simpleString()) == wanted


def test_rows_beside_a_state() -> None:
    found = annotated_schema(paired, "function", in_pair=True)
    assert found is not None and found.names == ["low", "high"]
    assert annotated_schema(perhaps, "function", in_pair=True) is None


def test_a_type_that_no_column_holds_is_named() -> None:
    with pytest.raises(errors.InvalidOptionError, match="`output` is annotated to give `complex`") as raised:
        annotated_schema(odd, "output")
    assert "schema=" in (raised.value.hint or "")


def test_operators_take_them(spark: SparkSession) -> None:
    class Found(NamedTuple):
        start: int
        end: int
        low: float

    class Tick(TypedDict):
        value: float

    # The classes are local, as in a notebook: told as objects, and pickled by value.
    def find(state: Any, event: Any) -> Any:
        found = [Found(state.ts, event.ts, state.x)] if state is not None else []
        return event, found

    def tick(state: Any, event: Any) -> Any:
        return None, {"value": event.x}

    def span(state: Any) -> Any:
        return Pair(min(state), max(state))

    find.__annotations__["return"] = tuple[Any, list[Found]]
    tick.__annotations__["return"] = tuple[None, Tick]
    span.__annotations__["return"] = Pair
    df = spark.createDataFrame([(1, 0.5), (3, 2.0), (9, 1.0)], "ts long, x double")
    sequences = acer.time_cer(df, find, within=5)
    assert sequences.columns == ["ts", "start", "end", "low"]
    assert [(row.start, row.end, row.low) for row in sequences.collect()] == [(1, 3, 0.5)]
    assert [tuple(row) for row in acer.rule_cer(df, tick).collect()] == [(1, 0.5), (3, 2.0), (9, 1.0)]
    spans = acer.aggregate(
        df, advance=5, size=5, update=lambda state, event: [*(state or []), event.x], output=span
    ).collect()
    assert sorted(tuple(row) for row in spans) == [(4, 0.5, 2.0), (9, 1.0, 1.0)]


def test_a_column_may_be_called_as_what_events_have() -> None:
    made = event_class(("values", "index", "fields", "asdict", "_x", "a b"))((1, 2, 3, 4, 5, 6))
    assert (made.values, made.index, made._x) == (1, 2, 5)
    assert (made["fields"], made["asdict"], made["a b"], made[-1]) == (3, 4, 6, 6)
    assert made.asdict() == {"values": 1, "index": 2, "fields": 3, "asdict": 4, "_x": 5, "a b": 6}
    assert values_of_row(made, ("a b", "values")) == (6, 1)
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(TypeError, match="an output has no 'y'"):
        values_of_row(made, ("y",))


def test_events_can_be_made_while_the_garbage_collector_runs() -> None:
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for number in range(100):
            fields = ("ts", f"x{number}")
            assert event_class(fields)((1, 2)).ts == 1
    finally:
        gc.set_threshold(*before)
