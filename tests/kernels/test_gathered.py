"""Gatherings by keys and prefix sums: exact sums of doubles, and the same bags whether compiled or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rules.support import compiled

from tocsin.analysis.schema import bind
from tocsin.kernels.expressions.prefixes import rounded_limbs, to_limbs
from tocsin.kernels.model import Bag, Rows
from tocsin.kernels.nested_loops import Kernel, kernel
from tocsin.language import expressions as ex
from tocsin.plan.prepare import bounded

LIMB = st.one_of(st.integers(-8, 8), st.integers(-(2**30), 2**30), st.integers(-(2**53), 2**53))


@given(LIMB, LIMB, LIMB, LIMB)
def test_limbs_are_rounded_once(a: int, b: int, c: int, d: int) -> None:
    total, is_sure = rounded_limbs(a, b, c, d)
    exact = Fraction(a) + Fraction(b, 2**30) + Fraction(c, 2**60) + Fraction(d, 2**90)
    assert not is_sure or total == float(exact)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_doubles_are_the_limbs_that_stand_for_them(values: list[float]) -> None:
    found = to_limbs(np.array(values))
    if found is None:
        return
    limbs, scale = found
    for place, value in enumerate(values):
        parts = [Fraction(int(limb[place]), 2 ** (30 * number)) for number, limb in enumerate(limbs)]
        assert sum(parts, Fraction(0)) * Fraction(scale) == Fraction(value)


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1, max_size=20))
def test_amounts_of_cents_have_limbs(cents: list[int]) -> None:
    assert to_limbs(np.array([amount / 100 for amount in cents])) is not None


TEXT = """
template T {{ k : Integer, to : Integer, v : Double, n : Integer }}
rule R where
  a : T {{ v > 2.0 }}
  all b : T {{ k = a.to, {} }}
when all b in a [-3 s, 6 s]
"""
# Conditions on a bag, and what they mean: of the event, the size of the bag, and its known values of v and n.
JUDGED: dict[str, Callable[[dict[str, Any], int, list[float], list[int]], bool]] = {
    "count(b) > 1, sum(b.v) > a.v": lambda a, size, v, n: size > 1 and math.fsum(v) > a["v"],
    "avg(b.v) <= 1.0": lambda a, size, v, n: bool(v) and math.fsum(v) / len(v) <= 1.0,
    "sum(b.n) > a.n, avg(b.n) < 4.0, count(b.n) >= 2": lambda a, size, v, n: (
        a["n"] is not None and len(n) >= 2 and sum(n) > a["n"] and sum(n) / len(n) < 4
    ),
    "n != a.n, sum(b.n) > 3, max(b.v) > a.v": lambda a, size, v, n: sum(n) > 3 and bool(v) and max(v) > a["v"],
}


def searched(text: str) -> Kernel:
    (rule,) = compiled(text).program.rules
    program = replace(compiled(text).program, rules=(replace(rule, query=bounded(rule.query)),))
    (timed,) = program.timed("ts").rules
    kinds = {"ts": "bigint", "k": "bigint", "to": "bigint", "v": "double", "n": "bigint"}
    return kernel(bind(timed.query, {"T": kinds}, time="ts"))


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("judged", JUDGED)
def test_bags_are_those_of_a_look_at_every_event(judged: str, jit: bool) -> None:
    made = searched(TEXT.format(judged))
    choose = Random(3)
    size = 300
    events = [
        {
            "ts": choose.randrange(60) * 500_000,
            "k": choose.choice((1, 2, 3, None)),
            "to": choose.choice((1, 2, 9, None)),
            "v": choose.choice((0.1, 0.2, 1e-9, 2.5, 1e15, -1e15, 3.25, None)),
            "n": choose.choice((0, 1, 5, None)),
        }
        for _ in range(size)
    ]
    if "avg(b.v)" in judged:
        events[7]["v"], events[9]["v"] = math.inf, math.nan
    (bits_a, bits_b) = (next(one.bit for one in made.sources if one.variable == name) for name in "ab")
    flags = [(1 << bits_b) | (1 << bits_a if (event["v"] or 0) > 2 else 0) for event in events]
    columns = []
    for carried in made.carried:
        expression = carried.expressions["T"]
        assert isinstance(expression, ex.Attribute)
        values = [event[expression.path[0]] for event in events]
        dtype = np.float64 if carried.held.value == "float64" else np.int64
        nulls = np.array([value is None for value in values])
        columns.append((np.array([value or 0 for value in values], dtype), nulls))
    rows = Rows(
        np.array([event["ts"] for event in events]),
        np.array(flags),
        columns=tuple(columns),
        order=np.argsort(np.argsort([event["ts"] for event in events], kind="stable"), kind="stable"),
    )
    found = {}
    for matches in made.find(rows, jit=jit):
        bag = matches.events["b"]
        assert isinstance(bag, Bag)
        for number, row in enumerate(matches.events["a"]):
            found[int(row)] = bag.rows[bag.offsets[number] : bag.offsets[number + 1]].tolist()
    wanted = {}
    for row, a in enumerate(events):
        if not (flags[row] >> bits_a) & 1:
            continue
        near = sorted(
            (
                other
                for other, b in enumerate(events)
                if b["k"] is not None
                and b["k"] == a["to"]
                and -3_000_000 <= b["ts"] - a["ts"] <= 6_000_000
                and (not judged.startswith("n !=") or (None not in (a["n"], b["n"]) and a["n"] != b["n"]))
            ),
            key=lambda other: (events[other]["ts"], other),
        )
        v = [events[other]["v"] for other in near if events[other]["v"] is not None]
        n = [events[other]["n"] for other in near if events[other]["n"] is not None]
        lives = JUDGED[judged](a, len(near), v, n)
        if lives:
            wanted[row] = near
    assert wanted
    assert found == wanted
