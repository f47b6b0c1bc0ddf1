"""Hostile rows and names: a result, or an error of Tocsin's own."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random

import pytest

import tocsin
from tocsin.errors import TocsinError

PATTERNS = [
    "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 1 MINUTE",
    "PATTERN SEQ(A a, B+ b) WHERE b.x > a.x WITHIN 1 MINUTE RETURN a.x AS first, SUM(b.x) AS total, COUNT(b) AS n",
    "PATTERN SEQ(A a, NOT C c, B b) WHERE c.x = a.x PARTITION BY k WITHIN 1 MINUTE",
    "PATTERN SEQ(A a, B b) WITHIN 1 MINUTE RETURN COUNT(*) AS n, MAX(b.x) AS most GROUP BY a.k",
]
EPOCH = dt.datetime(2026, 1, 1)
VALUES = [
    *(None, True, False, 0, -1, 2**31, 2**63 - 1, -(2**63), 2**63, 2**64, 10**40, 0.0, -0.0, 1e308, 5e-324, 0.1),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "",
        "a",
        "\0",
        "é",
        "\ud800",
        "\U0001f600",
        "x" * 5_000,
        "'; --",
        "`",
        b"",
        b"\xff",
    ),
    *(
        decimal.Decimal("1.5"),
        decimal.Decimal("1e400"),
        decimal.Decimal("nan"),
        dt.date(1, 1, 1),
        dt.date(9999, 12, 31),
    ),
    *(EPOCH, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, tzinfo=dt.UTC), dt.timedelta(days=1), dt.time(1)),
    *([], [1], [None], ["a", 1], {}, {"y": 1}, {"y": {"z": None}}, (1, 2), {1}, object(), 1j, range(3), ...),
]
NAMES = [
    "x",
    "a.b",
    "a`b",
    "`",
    " ",
    "x y",
    "'",
    '"',
    "é",
    "日本",
    "\U0001f600",
    "X",
    "select",
    "__x",
    "a\\b",
    "$",
    "1",
    "%s",
]


def rows(chance: random.Random, number: int) -> list[object]:
    """Rows of which most values are of one kind, and some are hostile."""
    usual = chance.choice([1, "a", 2.5, None, EPOCH])
    share = chance.choice((0, 0, 0, 0.2, 1))
    found: list[object] = []
    for at in range(number):
        row = {
            name: chance.choice(VALUES) if chance.random() < share else usual
            for name in ("x", "k")
            if not share or chance.random() < 0.95
        }
        time = chance.choice(VALUES) if chance.random() < share / 4 else at
        found.append(
            row | {"ts": time} if not share or chance.random() < 0.95 else chance.choice([row, None, 5, [], "row"])
        )
    return found


def try_rows(number: int, seed: int) -> int:
    chance, matched = random.Random(seed), 0
    patterns = [tocsin.pattern(text) for text in PATTERNS]
    raw = []
    for _ in range(number):
        given = {name: rows(chance, chance.randrange(1, 4)) for name in "ABC"}
        try:
            chance.choice(patterns).match(given, engine="local")
            matched += 1
        except TocsinError as error:
            assert error.condition
            assert str(error)
        except Exception as error:
            raw.append((given, type(error).__name__, str(error)[:300]))
    assert not raw, (len(raw), raw[:3])
    return matched


def test_hostile_rows_are_matched_or_refused():
    assert try_rows(150, 0) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_hostile_rows_are_matched_or_refused(seed):
    assert try_rows(1_000, seed) > 100


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def found_with(names: list[str], spark, strategy: str) -> None:
    """One query with these names for a type, a variable and an attribute, on Spark and without."""
    kind, variable, attribute = (quoted(name) for name in names)
    try:
        pattern = tocsin.pattern(
            f"PATTERN SEQ({kind} {variable}, B other) WHERE {variable}.{attribute} = other.{attribute} "
            f"WITHIN 1 MINUTE RETURN {variable}.{attribute} AS {attribute}, {variable}"
        )
        events = [{"ts": 1, names[2]: 7}, {"ts": 2, names[2]: 8}]
        inputs = {names[0]: events, "B": [{"ts": 5, names[2]: 7}]}
        local = pattern.match(inputs, engine="local").to_pylist()
        frames = {
            name: spark.createDataFrame([tuple(row.values()) for row in given], list(given[0]))
            for name, given in inputs.items()
        }
        on_spark = [row.asDict(recursive=True) for row in pattern.match(frames, strategy=strategy).collect()]
    except TocsinError as error:
        assert error.condition
        return
    assert len(local) == 1
    assert on_spark == local


@pytest.mark.parametrize("strategy", ["kernel", "join"])
def test_hostile_names_on_spark(spark, strategy):
    found_with(["a`b", "x.y", "it's `z`"], spark, strategy)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["kernel", "join"])
def test_many_hostile_names_on_spark(spark, strategy):
    chance = random.Random(strategy)
    for _ in range(25):
        found_with(chance.choices(NAMES, k=3), spark, strategy)
