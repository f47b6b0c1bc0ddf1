"""`match_id` in the reference: it depends on a match's values and on nothing else."""

from __future__ import annotations

import datetime as dt
from typing import Any

import tocsin
from tocsin import reference

PAIRS = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS")


def ids(stream: dict[str, list[dict[str, Any]]]) -> list[str]:
    return sorted(row["match_id"] for row in reference.evaluate(PAIRS, stream))


def test_equal_rows_make_matches_of_different_ids_in_any_order() -> None:
    stream = {"A": [{"ts": 1, "x": 1}, {"ts": 1, "x": 1}], "B": [{"ts": 2, "x": None}]}
    found = ids(stream)
    assert len(set(found)) == 2
    assert ids({"B": stream["B"], "A": stream["A"][::-1]}) == found


def test_every_value_counts() -> None:
    first = dt.datetime(2026, 1, 1, microsecond=1, tzinfo=dt.UTC)
    values: list[Any] = [
        1,
        2,
        1.5,
        "1",
        None,
        True,
        [first],
        [first.replace(microsecond=2)],
        {"p": 1},
        {"p": 2},
        b"\x01",
    ]
    found = {ids({"A": [{"ts": 1, "x": value}], "B": [{"ts": 2}]})[0] for value in values}
    # TRUE is hashed as 1; every other pair of values differs.
    assert len(found) == len(values) - 1


def test_an_id_is_computed_for_return_rows_too() -> None:
    query = tocsin.pattern("PATTERN SEQ(A a, B b) WITHIN 10 SECONDS RETURN a.x")
    (row,) = reference.evaluate(query, {"A": [{"ts": 1, "x": 5}], "B": [{"ts": 2}]})
    assert row == {"x": 5}
    assert [row["match_id"]] == ids({"A": [{"ts": 1, "x": 5}], "B": [{"ts": 2}]})
    assert (row["start"], row["end"]) == (1, 2)
