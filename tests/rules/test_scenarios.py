"""Requirements 61 and 62: the driver scenarios on the trace of figure 7.3, and rule C, which blocks itself."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from tests.rules.support import PUBLISHED, TYPES, compiled, trace, transfers

import tocsin
from tocsin.reference import evaluate, events

A, B, C = (PUBLISHED[name] for name in ("7_2_pass_through", "7_3_diffusion", "7_5_refund_scam"))
CORRECTED = C.replace(
    "no additional_incoming : MoneyTransferred {", "no additional_incoming : MoneyTransferred { id != incoming.id,"
)
BETWEEN = Counter(frozenset((row["originator"], row["destination"])) for row in transfers())


def never_otherwise(a: str, b: str) -> bool:
    """The symmetric reading: no other transfer between the two accounts, in either direction."""
    return BETWEEN[frozenset((a, b))] == 1


def ids(matches: list[dict[str, Any]], *names: str) -> list[tuple[int, ...]]:
    return sorted(tuple(row[name]["id"] for name in names) for row in matches)


def test_requirement_61_scenario_a_with_every_route_uncommon() -> None:
    matches = evaluate(compiled(TYPES + A), trace())["FraudPassThrough"]
    assert ids(matches, "incoming", "outgoing") == [(2, 10), (7, 5004), (13, 201), (13, 5003)]


def test_requirement_61_scenario_a_finds_the_one_case_of_the_author() -> None:
    program = compiled(TYPES + A, routes=never_otherwise)
    assert ids(evaluate(program, trace())["FraudPassThrough"], "incoming", "outgoing") == [(2, 10)]
    assert events(program, trace())["SuspiciousSequenceDetected"] == [
        {
            "ts": dt.datetime(2018, 1, 1, 8),
            "mule_account": "D",
            "amount": 120,
            "incoming_transactions": [2],
            "outgoing_transactions": [10],
        }
    ]


def test_requirement_61_scenario_b_finds_six_permutations_and_unordered_one() -> None:
    names = ("incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    for routes in (never_otherwise, lambda a, b: True):
        program = compiled(TYPES + B, routes=routes)
        matches = evaluate(program, trace())["FraudDiffusion"]
        assert len(matches) == 6
        assert {tuple(sorted(found)) for found in ids(matches, *names)} == {(4, 6, 9, 200)}
        once = compiled(
            TYPES + B.replace("then", "  unordered(outgoing_1, outgoing_2, outgoing_3)\nthen"), routes=routes
        )
        assert ids(evaluate(once, trace())["FraudDiffusion"], *names) == [(4, 6, 9, 200)]
    (event,) = events(once, trace())["SuspiciousSequenceDetected"]
    assert event == {
        "ts": dt.datetime(2018, 1, 1, 8, 0, 10),
        "mule_account": "H",
        "amount": 320,
        "incoming_transactions": [4],
        "outgoing_transactions": [6, 9, 200],
    }


def test_requirement_61_scenario_b_gives_one_match_when_ids_are_ordered() -> None:
    ordered = B.replace("id != outgoing_1.id,", "id > outgoing_1.id,").replace(
        "id != outgoing_2.id", "id > outgoing_2.id"
    )
    names = ("incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    assert ids(evaluate(compiled(TYPES + ordered), trace())["FraudDiffusion"], *names) == [(4, 6, 9, 200)]


@pytest.mark.parametrize(("late", "cases"), [(dt.timedelta(0), 2), (dt.timedelta(milliseconds=1), 1)])
def test_requirement_61_a_transfer_exactly_fourteen_days_later_still_belongs(late: dt.timedelta, cases: int) -> None:
    """Vector 9.1: 37001 moved to 14 days after 5, and a millisecond more."""
    stream = trace()
    for row in stream["MoneyTransferred"]:
        if row["id"] == 37001:
            row["ts"] = dt.datetime(2018, 1, 15, 8, 0, 53) + late
    once = compiled(TYPES + B.replace("then", "  unordered(outgoing_1, outgoing_2, outgoing_3)\nthen"))
    found = ids(evaluate(once, stream)["FraudDiffusion"], "incoming", "outgoing_1", "outgoing_2", "outgoing_3")
    assert found == [(4, 6, 9, 200), (5, 8, 12, 37001)][:cases]


def test_requirement_61_an_uncommon_route_can_be_a_rule_too() -> None:
    """No transfer between the two accounts in the four weeks before: a rule in place of a predicate."""
    layer = """
    template UncommonTransfer {
      id : TransactionId, originator : AccountId, destination : AccountId, amount : Amount
    }
    rule Uncommon where
      t : MoneyTransferred
      no there : MoneyTransferred { originator = t.originator, destination = t.destination, timestamp < t.timestamp }
      no back : MoneyTransferred { originator = t.destination, destination = t.originator, timestamp < t.timestamp }
    when
      no there in t [-28 days, 0 days]
      no back in t [-28 days, 0 days]
    then
      emit UncommonTransfer at t.timestamp with {
        id = t.id, originator = t.originator, destination = t.destination, amount = t.amount
      }
    """
    text = A.replace("MoneyTransferred", "UncommonTransfer").replace("uncommon_route(originator, destination)", "TRUE")
    matches = evaluate(compiled(TYPES + layer + text), trace())["FraudPassThrough"]
    assert ids(matches, "incoming", "outgoing") == [(2, 10)]


def test_requirement_61_the_layered_program_finds_a_and_misses_b_whose_transfers_are_small() -> None:
    """Erratum 17: every outgoing transfer has to be 100 € now; those of B are 105, 105 and 100."""
    suspicious = """template MoneyTransferredSuspiciously {
      id : TransactionId, originator : AccountId, destination : AccountId, amount : Amount }\n"""
    layers = (PUBLISHED["a_1_suspicious_transfer"] + PUBLISHED["a_2_layered"]).replace(
        "originator = incoming.originator,", "id = incoming.id, originator = incoming.originator,"
    )
    program = compiled(TYPES + suspicious + layers, routes=never_otherwise)
    matches = evaluate(program, trace())
    assert ids(matches["FraudPassThrough"], "incoming", "outgoing") == [(2, 10)]
    assert len(matches["FraudDiffusion"]) == 6
    assert len(matches["AbstractSuspiciousTransfer"]) == len(events(program, trace())["MoneyTransferredSuspiciously"])


def test_requirement_62_rule_c_as_printed_finds_nothing_and_warns() -> None:
    with pytest.warns(tocsin.TocsinWarning, match="`incoming` itself can be the `additional_incoming`") as given:
        program = tocsin.rules(TYPES + C)
    assert [warning.message.condition for warning in given] == ["SELF_BLOCKING"]  # type: ignore[union-attr]
    assert "distinct(additional_incoming, incoming)" in str(given[0].message)
    assert evaluate(program, trace()) == {"FraudRefundScam": []}


def conditions(text: str) -> list[str]:
    return [warning.condition for warning in compiled(text).warnings]


@pytest.mark.parametrize(
    "text", [CORRECTED, C.replace("then", "  distinct(additional_incoming, incoming)\nthen")], ids=["id", "distinct"]
)
def test_requirement_62_rule_c_corrected_finds_both_refunds(text: str) -> None:
    program = compiled(TYPES + text)
    assert program.warnings == ()
    assert ids(evaluate(program, trace())["FraudRefundScam"], "incoming", "refund") == [(13, 201), (13, 5003)]
    claimed = dt.datetime(2018, 1, 1, 14)
    assert events(program, trace())["RefundScamSuspected"] == [
        {"ts": claimed, "incoming_transaction": 13, "refund_transaction": 201},
        {"ts": claimed, "incoming_transaction": 13, "refund_transaction": 5003},
    ]


ONE = "template A { k : Integer, x : Integer }\n"


@pytest.mark.parametrize(
    ("rule", "warns"),
    [
        ("rule R where a : A no b : A { k = a.k } when no b in a [0 s, 5 s] then", True),
        ("rule R where a : A no b : A { k = a.k } when no b in a [1 s, 5 s] then", False),
        ("rule R where a : A no b : A { k = a.k, x != a.x } when no b in a [0 s, 5 s] then", False),
        ("rule R where a : A no b : A { k = a.k, x > a.x } when no b in a [0 s, 5 s] then", False),
        ("rule R where a : A no b : A { k = a.k, x >= a.x } when no b in a [0 s, 5 s] then", True),
        ("rule R where a : A no b : A { k = 5 } when no b in a [0 s, 5 s] then", False),
        ("rule R where a : A { k = 5 } no b : A { k = 5 } when no b in a [0 s, 5 s] then", True),
        ("rule R where a : A c : A { k = a.k } no b : A { k = c.k } when c in a [0 s, 5 s] no b in a [0 s, 5 s]", True),
        (
            "rule R where a : A c : A { k = a.k } no b : A { x = c.k } when c in a [0 s, 5 s] no b in a [0 s, 5 s]",
            False,
        ),
    ],
)
def test_requirement_62_the_warning_is_given_where_the_event_itself_may_block(rule: str, warns: bool) -> None:
    assert ("SELF_BLOCKING" in conditions(ONE + rule)) == warns


def test_erratum_13_is_found() -> None:
    """The arrays of listing 7.1 hold transactions, and are declared to hold accounts."""
    assert conditions(TYPES + A) == ["MIXED_DOMAINS"] * 2
