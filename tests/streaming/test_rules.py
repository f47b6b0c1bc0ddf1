"""Rules on the steps of a shard: when what must not be there has not come, and not before."""

from __future__ import annotations

import pyarrow as pa
from tests.streaming.support import Live

import tocsin
from tocsin.algebra import nodes as alg
from tocsin.plan.prepare import bounded

S = 1_000_000
SCHEMA = pa.schema({"ts": pa.int64(), "attr": pa.string()})
NEGATION = """
    template A { attr : String }  template B { attr : String }
    rule R where a : A { }  no b : B { attr = a.attr }  when no b in a [0 seconds, 4 seconds]
"""


def query_of(text: str) -> alg.Query:
    (rule,) = tocsin.rules(text).program.timed("ts").rules
    return bounded(rule.query)


def live(a: list[tuple[int, str]], b: list[tuple[int, str]]) -> Live:
    """The events of A, then those of B, are the rows of the shard."""
    rows = {"A": a, "B": b}
    tables = {
        kind: pa.Table.from_pylist([{"ts": at * S, "attr": attr} for at, attr in events], SCHEMA)
        for kind, events in rows.items()
    }
    return Live(query_of(NEGATION), tables, lateness_us=0, eager=True)


def test_requirement_19_an_absence_is_told_when_the_bound_is_strictly_beyond_its_window() -> None:
    """Vector 9.3: after the bound 7 those of 1 and 2 are released, that of 3 needs more than 7."""
    shard = live(list(enumerate("stuvwxyz")), [(0, "s"), (7, "z")])
    told = []
    for bound in (4 * S, 5 * S, 5 * S + 1, 7 * S, 7 * S + 1, 10 * S, 10 * S + 1, 99 * S):
        before = len(shard.ids)
        shard.take(range(10) if not told else [], bound)
        told.append(len(shard.ids) - before)
    # All events are in from the start, so that only time decides: s and z are blocked, and nobody is told twice.
    assert told == [2, 0, 0, 0, 1, 2, 1, 0]
    assert len(set(shard.ids)) == 6


def test_requirement_20_an_absence_is_told_without_another_event() -> None:
    """Vector 9.9: one request, then nothing but the time."""
    shard = live([(0, "s")], [])
    shard.take([0])
    for at in (1, 4 * S - 1, 4 * S):
        shard.take([], at)
        assert not shard.ids
    shard.take([], 4 * S + 1)
    assert len(shard.ids) == 1
    shard.take([], 86_400 * S)
    assert len(shard.ids) == 1
    assert shard.state.rows is None
