"""Twice as large a query takes about twice as many steps, not four times: lines are counted, not seconds."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.steps import lines_run

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.engines.worker import arrow_scan
from tocsin.engines.worker.event_tables import Candidates, Events, candidates
from tocsin.errors import TocsinWarning

pytestmark = pytest.mark.long
S = 1_000_000
# `make test` compares queries a third as large, which counting lines shows as well; tracing every line takes its time.
THIRD_AND_WHOLE = pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.slow)])
MOST = 2.4  # quadratic work comes near 4
MOST_OF_PAIRS = 4.2  # cubic work comes near 8


def growth(action: Callable[[Any], Any], once: Any, twice: Any) -> float:
    """How many times as many lines an action runs for an argument of twice the size."""
    return lines_run(lambda: action(twice)) / lines_run(lambda: action(once))


def listed(form: str, size: int, joint: str = ", ") -> str:
    return joint.join(form.format(number) for number in range(size))


def program(size: int) -> str:
    templates = "\n".join(f"template T{number} {{ x : Integer, k : Integer }}" for number in range(size))
    rules = "\n".join(
        f"rule R{number} where a : T{number} {{ x > {number} }} {no} b : T{(number * 7 + 1) % size} {{ k = a.k }}"
        f" when {no} b in a [0 s, 9 s] then emit E at a.timestamp with {{ x = a.x }}"
        for number, no in zip(range(size), itertools.cycle(["", "no"]), strict=False)
    )
    return f"{templates}\ntemplate E {{ x : Integer }}\n{rules}"


# By name: the query of a size, its language, and the size that is compared with twice that.
QUERIES: dict[str, tuple[Callable[[int], str], str, int]] = {
    "types": (lambda size: f"PATTERN OR({listed('T{0} a{0}', size)}) WITHIN 1 HOUR", "sase", 300),
    "types before another": (
        lambda size: f"PATTERN SEQ(OR({listed('T{0} a{0}', size)}), B b) WITHIN 1 HOUR",
        "sase",
        300,
    ),
    "filters": (
        lambda size: (
            f"PATTERN OR({listed('A a{0}', size)}) WHERE {listed('a{0}.x = {0}', size, ' AND ')} WITHIN 1 HOUR"
        ),
        "sase",
        100,
    ),
    "conjuncts": (
        lambda size: f"PATTERN SEQ(A a, B b) WHERE {listed('a.x != b.x + {0}', size, ' AND ')} WITHIN 1 HOUR",
        "sase",
        100,
    ),
    "extremes": (
        lambda size: f"PATTERN SEQ(A a, B b) WHERE GREATEST({listed('a.x + b.x + {0}', size)}) > 1 WITHIN 1 HOUR",
        "sase",
        300,
    ),
    "atoms": (lambda size: f"(A ; B) FILTER {listed('A[x != {0}]', size, ' AND ')} WITHIN 1 HOUR", "acel", 100),
    "alternative atoms": (
        lambda size: f"(A ; B) FILTER ({listed('A[x = {0}]', size, ' OR ')}) WITHIN 1 HOUR",
        "acel",
        150,
    ),
    "formulas": (lambda size: f"({listed('(T{0} AS v{0})', size, ' OR ')}) WITHIN 1 HOUR", "acel", 100),
}
ACTIONS: dict[str, Callable[[tocsin.Pattern], Any]] = {
    "check": lambda pattern: pattern.check({kind: {"ts": "bigint", "x": "bigint"} for kind in types_of(pattern)}),
    "explain": lambda pattern: str(pattern.explain()),
    "match": lambda pattern: pattern.match(rows_of(types_of(pattern)), engine="local"),
}


def types_of(pattern: tocsin.Pattern) -> tuple[str, ...]:
    return alg.event_types(pattern.query.pattern)


def rows_of(kinds: tuple[str, ...]) -> dict[str, pa.Table]:
    schema = pa.schema({"ts": pa.int64(), "x": pa.int64()})
    some = [[{"ts": at, "x": at}] if at < 3 else [] for at in range(len(kinds))]
    return {kind: pa.Table.from_pylist(own, schema) for kind, own in zip(kinds, some, strict=True)}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TocsinWarning)
        yield


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("types", "explain"),
        ("types", "match"),
        ("types before another", "explain"),
        ("types before another", "match"),
        ("filters", "explain"),
        ("filters", "match"),
        ("conjuncts", "explain"),
        ("extremes", "match"),
        ("atoms", "check"),
        ("atoms", "explain"),
        ("atoms", "match"),
        ("alternative atoms", "match"),
        ("formulas", "match"),
    ],
)
@THIRD_AND_WHOLE
def test_work_grows_with_the_size_of_a_query(name: str, action: str, part: int) -> None:
    write, language, size = QUERIES[name]
    patterns = [tocsin.pattern(write(each // part), language=language) for each in (size, 2 * size)]
    assert growth(ACTIONS[action], *patterns) < MOST


@pytest.mark.parametrize("action", ACTIONS)
@THIRD_AND_WHOLE
def test_a_sequence_costs_at_most_its_pairs(action: str, part: int) -> None:
    """A sequence of n variables has n² distances; nothing takes longer than to look at them."""
    write, _, _ = QUERIES["types"]
    patterns = [tocsin.pattern(write(each).replace("OR(", "SEQ(")) for each in (60 // part, 120 // part)]
    assert growth(ACTIONS[action], *patterns) < MOST_OF_PAIRS


@THIRD_AND_WHOLE
def test_work_grows_with_the_number_of_kinds_and_rules(part: int) -> None:
    def run(rules: tocsin.Rules) -> Any:
        kinds = [name for name in rules.program.templates if name != "E"]
        rows = {kind: [{"ts": at * S, "x": at + 2, "k": 1}] for at, kind in enumerate(kinds)}
        return rules.match(rows, engine="local", time_unit="us")

    assert growth(run, *(tocsin.rules(program(size)) for size in (201 // part, 402 // part))) < MOST


class Counted:
    """An Arrow table that counts how often its columns are listed, which takes a step for each of them."""

    def __init__(self, table: pa.Table, counts: Counter[str]) -> None:
        self.table, self.counts = table, counts

    def __getattr__(self, name: str) -> Any:
        self.counts[name] += 1
        found = getattr(self.table, name)
        return (lambda *arguments: Counted(found(*arguments), self.counts)) if name == "slice" else found


def test_an_input_of_many_columns_is_read_column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = tocsin.pattern("PATTERN SEQ(A a, B b) WHERE a.c0 = b.c0 WITHIN 1 HOUR")
    counts: Counter[str] = Counter()

    def counted(events: Sequence[Events], manifest: Any) -> list[Candidates]:
        return candidates([replace(group, table=Counted(group.table, counts)) for group in events], manifest)

    monkeypatch.setattr(arrow_scan, "candidates", counted)

    def run(size: int) -> tuple[int, dict[str, int]]:
        columns = {f"c{number}": [number] for number in range(size)}
        rows = {kind: pa.table({"ts": [at], **columns}) for at, kind in enumerate("AB")}
        counts.clear()
        lines = lines_run(lambda: pattern.match(rows, engine="local", time_unit="us"))
        return lines, dict(counts)

    (once, listed_once), (twice, listed_twice) = run(200), run(400)
    assert twice < MOST * once
    assert listed_once["column_names"] == listed_twice["column_names"]
    assert listed_twice.pop("column") <= 2 * listed_once.pop("column")  # each is read once for each digest
    assert listed_once == listed_twice
