"""Statistics as people write, store and read them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from tocsin import errors
from tocsin.optimizer.statistics import KeyStatistics, Layout, Statistics, TypeStatistics

HOUR = dt.timedelta(hours=1)


def test_rates_follow_from_counts_and_duration() -> None:
    known = Statistics.of({"A": 7200, "B": 3600}, duration=HOUR)
    assert (known.rows, known.rate("A"), known.count("C")) == (10_800, 2.0, 0.0)


def test_counts_follow_from_rates_as_for_a_day() -> None:
    known = Statistics.of(rates={"A": "2/s", "B": "1 per minute per key"}, keys=10)
    assert (known.count("A"), known.count("B"), known.source) == (172_800, 14_400, "rates")


def test_a_count_wins_over_a_rate() -> None:
    assert Statistics.of({"A": 5}, rates={"A": "2/s"}).count("A") == 5


def test_stored_statistics_come_back_by_way_of_json() -> None:
    known = Statistics(
        rows=10,
        duration_us=1000,
        types={"A": TypeStatistics(10, 0, 999)},
        selectivity={"a": 0.5},
        keys=KeyStatistics(3, 0.4),
        layout=Layout(2, True, 600),
        distinct={"k": 3},
        pairs={"a.x < b.x": 0.2},
        source="measured",
    )
    assert Statistics.from_dict(json.loads(json.dumps(known.to_dict()))) == known


@pytest.mark.parametrize("stored", [{}, {"types": 3}, {"rows": 1, "duration_us": 1, "types": {}, "colour": "red"}])
def test_what_is_no_stored_statistics_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidOptionError):
        Statistics.from_dict(stored)


@pytest.mark.parametrize(
    "wrong",
    [
        {"selectivity": {"a": 1.5}},
        {"selectivity": {"a": float("nan")}},
        {"pairs": {"a.x < b.x": -0.1}},
        {"counts": {"A": -1}},
        {"heaviest": 2.0},
        {"duration": -5},
        {"rates": {"A": "often"}},
    ],
    ids=str,
)
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidOptionError):
        Statistics.of(**wrong)


def test_equal_keys_meet_once_in_their_number_and_a_heavy_one_more_often() -> None:
    assert KeyStatistics(100).meeting == pytest.approx(0.01)
    assert KeyStatistics(100, 0.5).meeting == pytest.approx(0.25, rel=0.02)
    assert KeyStatistics(1).meeting == pytest.approx(1)


def test_the_text_tells_types_variables_keys_and_layout() -> None:
    known = Statistics(
        rows=3000,
        duration_us=60_000_000,
        types={"Login": TypeStatistics(3000, 0, 59_999_999)},
        selectivity={"a": 0.015},
        keys=KeyStatistics(12, 0.25),
        layout=Layout(3, False, 60_000_000),
        distinct={"user": 40},
        source="measured",
    )
    assert str(known) == "\n".join(
        [
            "type   events  rate  from                 to",
            "Login  3 000   50/s  1970-01-01 00:00:00  1970-01-01 00:00:59",
            "",
            "variable  selectivity",
            "a         1.5 %",
            "",
            "1 min of events, measured",
            "keys: 12, the heaviest has 25 %",
            "values: user 40",
            "layout: 3 parts whose time ranges overlap",
        ]
    )
