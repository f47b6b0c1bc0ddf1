"""The four operators with functions that show what they were given, and what each is then defined to give.

Functions are made inside others, so that workers get them by value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from tests.acer import definitions
from tests.acer.definitions import Row

from tocsin import acer

SCHEMA = "ts bigint, k string, x bigint"


@dataclass(frozen=True)
class Shape:
    """D, WA and WS, and the granularity."""

    within: int = 5
    advance: int = 3
    size: int = 9
    unit: int = 1


@dataclass(frozen=True)
class Operator:
    """An operator, what it is defined to give, and a row of what it gave as the definition tells it."""

    run: Callable[..., DataFrame]
    wanted: Callable[[list[Row], str | None, Shape], Counter[Any]]
    told: Callable[[Any, str | None], Any]


def aggregate(df: DataFrame, key: str | None, shape: Shape, **options: Any) -> DataFrame:
    def add(state: Any, event: Any) -> Any:
        return [*(state or []), event.x]

    def tell(state: Any, window: Any) -> Any:
        return {"n": len(state), "values": sorted(state), "begin": window.start, "end": window.end}

    return acer.aggregate(
        df,
        key=key,
        advance=shape.advance,
        size=shape.size,
        granularity=shape.unit,
        update=add,
        output=tell,
        schema="n int, values array<bigint>, begin bigint, end bigint",
        **options,
    )


def aggregate_wanted(rows: list[Row], key: str | None, shape: Shape) -> Counter[Any]:
    def held_in(held: list[Row]) -> Any:
        return tuple(sorted(row.x for row in held))

    found = definitions.aggregated(rows, key, shape.advance, shape.size, shape.unit, held_in)
    return Counter({(*one, shape.size): count for one, count in found.items()})


def aggregate_told(row: Any, key: str | None) -> Any:
    assert row["n"] == len(row["values"])
    assert row["begin"] <= row["ts"] < row["end"]
    return row["k"] if key else None, row["ts"], tuple(row["values"]), row["end"] - row["begin"]


def preprocess(df: DataFrame, key: str | None, shape: Shape, **options: Any) -> DataFrame:
    return acer.sort_and_preprocess(df, lambda events: [events[0]], key=key, granularity=shape.unit, **options)


def preprocess_wanted(rows: list[Row], key: str | None, shape: Shape) -> Counter[Any]:
    if key is None:
        return Counter((row.k, row.ts, row.x) for row in set(rows))
    return Counter({(row.k, row.ts) for row in rows})


def preprocess_told(row: Any, key: str | None) -> Any:
    return (row["k"], row["ts"], row["x"]) if key is None else (row["k"], row["ts"])


def find(df: DataFrame, key: str | None, shape: Shape, **options: Any) -> DataFrame:
    def rising(state: Any, event: Any) -> Any:
        seen = state or []
        return [*seen, event], [(one.ts, event.ts, one.x, event.x) for one in seen if one.x < event.x]

    return acer.time_cer(
        df,
        rising,
        within=shape.within,
        key=key,
        advance=shape.advance,
        size=shape.size,
        granularity=shape.unit,
        ties="x",
        schema="low bigint, high bigint",
        **options,
    )


def find_wanted(rows: list[Row], key: str | None, shape: Shape) -> Counter[Any]:
    return definitions.sequences(rows, key, shape.within, 2, shape.advance, shape.size, shape.unit)


def find_told(row: Any, key: str | None) -> Any:
    return row["k"] if key else None, row["ts"], row["start"], row["end"], (row["low"], row["high"])


def number(df: DataFrame, key: str | None, shape: Shape, **options: Any) -> DataFrame:
    def count(state: Any, event: Any) -> Any:
        seen, last = state or (0, -1)
        return (seen + 1, event.x), [{"seen": seen, "last": last, "x": event.x}] if event.x else None

    return acer.rule_cer(
        df,
        count,
        key=key,
        ties=["x"],
        schema="seen bigint, last bigint, x bigint",
        granularity=shape.unit,
        watermark_distance=shape.advance,
        **options,
    )


def number_wanted(rows: list[Row], key: str | None, shape: Shape) -> Counter[Any]:
    def count(state: Any, row: Row) -> Any:
        seen, last = state or (0, -1)
        return (seen + 1, row.x), [(seen, last, row.x)] if row.x else []

    return definitions.folded(rows, key, count)


def number_told(row: Any, key: str | None) -> Any:
    return row["k"] if key else None, row["ts"], (row["seen"], row["last"], row["x"])


OPERATORS = {
    "aggregate": Operator(aggregate, aggregate_wanted, aggregate_told),
    "sort_and_preprocess": Operator(preprocess, preprocess_wanted, preprocess_told),
    "time_cer": Operator(find, find_wanted, find_told),
    "rule_cer": Operator(number, number_wanted, number_told),
}
