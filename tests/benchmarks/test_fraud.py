"""The judges of the fraud benchmark: SQL by hand, and the count of what a live program would hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import fraud_oracle
from benchmarks.fraud import QUESTIONS, program
from benchmarks.fraud_state import counted, peak, uncommon

from tocsin.datasets.generated import Columns
from tocsin.datasets.months import Months, months


@pytest.fixture(scope="module")
def made() -> Months:
    return months(600, days=45, seed=9, cases=5)


def found(rule: str, made: Months) -> list[tuple[Any, ...]]:
    """The matches of the local engine as the oracle gives them."""
    known = set(zip(made.routes["originator"].tolist(), made.routes["destination"].tolist(), strict=True))
    transfers = [row | {"is_known": (row["originator"], row["destination"]) in known} for row in made.transfers.rows()]
    claims = [row | {"reason": ""} for row in made.claims.rows()]
    inputs = {"MoneyTransferred": transfers, "FraudulentTransactionClaimed": claims}
    rows = []
    for match in program().matches(rule, inputs, engine="local").to_pylist():
        row = [match["incoming"]["destination"], match["incoming"]["id"]]
        for name, held in match.items():
            if isinstance(held, list):
                row += [len(held), sum(event["amount"] for event in held)]
            elif name not in ("match_id", "start", "end", "claim", "incoming"):
                row.append(held["id"])
        rows.append(tuple(row))
    return sorted(rows)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.rule)
def test_sql_by_hand_finds_what_the_rules_say(made: Months, tmp_path: Path, question: Any) -> None:
    made.write(tmp_path, files=2)
    accounts = np.unique(made.transfers["destination"]).tolist()
    wanted = fraud_oracle.matches(question.rule, tmp_path, accounts)
    assert len(wanted) >= 5
    assert found(question.rule, made) == wanted
    some = sorted({row[0] for row in wanted})[:2]
    assert fraud_oracle.matches(question.rule, tmp_path, some) == [row for row in wanted if row[0] in some]


def test_the_peak_is_the_most_that_is_alive_at_once() -> None:
    births = np.array([0, 1, 2, 10, 10])
    assert peak(births, births + 2) == 3
    assert peak(births, births + 1) == 2
    assert peak(births[:0], births[:0]) == 0


def test_a_store_grows_with_its_window_and_pairs_are_counted() -> None:
    # Two incoming transfers of account 5, and three that it sends on within a day.
    day = 86_400_000_000
    transfers = Columns(
        ts=np.array([0, 1, 2, 3, 4]) * (day // 10),
        id=np.arange(5),
        originator=np.array([1, 2, 5, 5, 5]),
        destination=np.array([5, 5, 6, 7, 8]),
        amount=np.array([200, 300, 50, 50, 50]),
    )
    held = counted(transfers, 1)
    assert (held["events"], held["pairs"], held["triples"]) == (5, 6, 6)


def test_transfers_on_known_routes_are_not_held(made: Months) -> None:
    assert len(uncommon(made)["id"]) < len(made.transfers["id"]) / 2
