"""Months of transfers: as they are described, and of planned accounts exactly the planned cases found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import tocsin
from tocsin import datasets
from tocsin.datasets.months import DAY_US, FIRST_DAY_US, Months, months

RULES = {"A": "FraudPassThrough", "B": "FraudDiffusion", "C": "FraudRefundScam"}
TRANSFERS = 1_200


@pytest.fixture(scope="module")
def made() -> Months:
    return months(TRANSFERS, days=60, seed=4, cases=12)


def program(made: Months) -> tocsin.Rules:
    routes = list(zip(*(made.routes[name].tolist() for name in ("originator", "destination")), strict=True))
    text = datasets.pattern_path("fraud").read_text(encoding="utf-8")
    return tocsin.rules(text, tables={"known_route": routes})


def found(matches: list[dict[str, Any]], mules: set[int]) -> set[tuple[int, ...]]:
    return {
        tuple(value["id"] for value in match.values() if isinstance(value, dict) and "id" in value)
        for match in matches
        if match["incoming"]["destination"] in mules
    }


@pytest.mark.parametrize("scenario", RULES)
def test_of_planned_accounts_exactly_the_planned_cases_are_found(made: Months, scenario: str) -> None:
    inputs = {
        "MoneyTransferred": made.transfers.table(),
        "FraudulentTransactionClaimed": made.claims.table(),
    }
    matches = program(made).matches(RULES[scenario], inputs, engine="local").to_pylist()
    cases = {tuple(case) for case in made.cases[scenario].tolist()}
    assert len(cases) == 12
    assert found(matches, set(made.mules[scenario].tolist())) == cases


def test_near_misses_are_there(made: Months) -> None:
    assert {name: len(mules) for name, mules in made.mules.items()} == {"A": 15, "B": 15, "C": 15}


def test_the_stream_is_in_order_and_has_as_many_transfers_as_asked(made: Months) -> None:
    times, ids = made.transfers["ts"], made.transfers["id"]
    planned = 15 * (2 + 4 + 2) + 1  # and the other transfer of one near miss
    assert len(times) == TRANSFERS + planned
    assert (np.diff(times) >= 0).all()
    assert ids.tolist() == list(range(1, len(ids) + 1))
    assert times[0] >= FIRST_DAY_US
    assert times[-1] < FIRST_DAY_US + 60 * DAY_US
    assert (made.transfers["originator"] != made.transfers["destination"]).mean() > 0.99


def test_most_transfers_take_known_routes_and_hubs_take_no_others() -> None:
    large = months(100_000, seed=2)
    transfers, routes = large.transfers, large.routes
    width = 10**7
    known = np.isin(
        transfers["originator"] * width + transfers["destination"], routes["originator"] * width + routes["destination"]
    )
    assert 0.01 < (~known).mean() < 0.03
    assert len(set(zip(routes["originator"].tolist(), routes["destination"].tolist(), strict=True))) == len(
        routes["originator"]
    )
    received = np.bincount(transfers["destination"])
    busiest = np.argsort(received)[-3:]
    assert received[busiest].min() > 50 * np.median(received)
    assert known[np.isin(transfers["destination"], busiest)].all()
    hours = transfers["ts"] // (DAY_US // 24) % 24
    assert (hours == 10).sum() > 5 * (hours == 3).sum()


def test_the_same_seed_gives_the_same_stream() -> None:
    one, same, other = (months(1000, seed=seed).transfers.rows() for seed in (1, 1, 2))
    assert one == same != other


def test_a_stream_is_written_in_files_that_follow_each_other(made: Months, tmp_path: Path) -> None:
    made.write(tmp_path, files=3)
    parts = sorted((tmp_path / "transfers").glob("*.parquet"))
    assert len(parts) == 3
    read = np.concatenate([pq.read_table(part)["id"].to_numpy() for part in parts])
    assert read.tolist() == made.transfers["id"].tolist()
    assert pq.read_table(tmp_path / "routes").num_rows == len(made.routes["originator"])
    assert pq.read_table(tmp_path / "claims").column_names == ["ts", "transaction_id"]
