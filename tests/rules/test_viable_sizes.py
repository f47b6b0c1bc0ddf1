"""Requirement 35: the published sizes, from the published programs; and the nodes of their networks (LRP §4.6)."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from tests.rules.support import ABC, PUBLISHED, TYPES, compiled

from tocsin.algebra.programs import Rule
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.rules.program_state import Viable, viable

TWO_WEEKS = 4_032  # of five minutes
FIGURE_5_8 = {  # transfers per five minutes: PARTE, Cartesian, triangle
    1: ("244G", "246140G", "1G"),
    2: ("1953G", "1969120G", "2G"),
    3: ("6593G", "6645780G", "4G"),
    4: ("15629G", "15752961G", "7G"),
    5: ("30525G", "30767501G", "10G"),
    6: ("52747G", "53166243G", "14G"),
    7: ("83760G", "84426025G", "17G"),
    8: ("125029G", "126023688G", "21G"),
    9: ("178019G", "179436071G", "25G"),
}
FIGURE_5_9 = {  # transfers per five minutes: PARTE, with aggregation
    1: ("122G", "3k"),
    2: ("976G", "7k"),
    3: ("3296G", "11k"),
    4: ("7814G", "15k"),
    5: ("15262G", "19k"),
    6: ("26373G", "23k"),
    7: ("41880G", "27k"),
    8: ("62514G", "31k"),
    9: ("89009G", "35k"),
}
AGGREGATED = """
rule Diffusion where
  incoming : MoneyTransferred { amount >= 100.0, uncommon_route(originator, destination) }
  all outgoing : MoneyTransferred {
    uncommon_route(originator, destination),
    originator = incoming.destination,
    count(outgoing) = 3,
    sum(outgoing.amount) >= incoming.amount * 0.9,
    sum(outgoing.amount) <= incoming.amount * 1.1,
  }
when
  all outgoing in incoming [0 days, 14 days]
"""


def shortened(size: int, unit: int = 2**30, letter: str = "G") -> str:
    """A size as the published tables have it: in units of 2³⁰ (G) or 2¹⁰ (k), cut off; what is there is at least 1."""
    return f"{max(size // unit, min(size, 1))}{letter}"


def scenario(text: str) -> Rule:
    """The last rule of a text, read and analysed as any other."""
    return compiled(TYPES + text).program.rules[-1]


def network(rule: Rule, transfers: str, claims: str = "0/s", *, pairs_once: bool = False) -> Viable:
    rates = parse_rates({"MoneyTransferred": transfers, "FraudulentTransactionClaimed": claims})
    found = viable(rule, rates, pairs_once=pairs_once)
    assert found is not None
    return found


PASS_THROUGH = scenario(PUBLISHED["7_2_pass_through"])
DIFFUSION = scenario(PUBLISHED["7_3_diffusion"])
REFUND_SCAM = scenario(PUBLISHED["7_5_refund_scam"])


def test_requirement_35_figure_8_1_needs_5_and_5_and_3() -> None:
    types = "template A { attr : String } template B { attr : String } template C { attr : String }\n"
    rule = compiled(types + PUBLISHED["8_1_negation"]).program.rules[0]
    found = viable(rule, parse_rates({"A": "1/s", "B": "1/s"}))
    assert found is not None
    (absence,) = found.joined
    assert (absence.kind, absence.left, absence.right) == ("not", 5, 5)
    assert (absence.inbox, absence.outbox) == (3, 5)
    assert {node.inbox for node in found.nodes} == {3}
    assert {node.outbox for node in found.nodes if not node.histories} == {1}


def test_requirement_35_the_stores_of_the_experiment() -> None:
    """Scenario B with a window of 14 ms, ten transfers per millisecond (§7.4)."""
    text = PUBLISHED["7_3_diffusion"].replace("14 days", "14 ms").replace("0 days", "0 ms")
    found = network(scenario(text), "10/ms")
    assert [(node.left, node.right) for node in found.joined] == [(141, 141), (39_481, 141), (11_094_021, 141)]
    assert [node.outbox for node in found.joined] == [141, 39_481, 11_094_021]
    per_ms = [node.rate * 1_000 for node in found.joined]
    assert per_ms[:2] == [2_820, 792_430]


def test_requirement_35_two_weeks_in_steps_of_five_minutes() -> None:
    found = network(REFUND_SCAM, "1 per 5 minutes", "1 per 5 minutes")
    assert [node.kind for node in found.joined] == ["join", "join", "not"]
    assert [node.left for node in found.joined] == [4_033, 32_522_113, 262_290_837_313]
    assert {node.right for node in found.joined} == {4_033}
    assert [node.rate * 300_000_000 for node in found.joined][:2] == [8_066, 65_052_291]


@pytest.mark.parametrize("rate", FIGURE_5_8)
def test_requirement_35_figure_5_8(rate: int) -> None:
    """As many claims as transfers in the second column; one in five minutes in the others, as its text says."""
    parte, cartesian, triangle = FIGURE_5_8[rate]
    transfers = f"{rate} per 5 minutes"
    assert shortened(network(REFUND_SCAM, transfers, transfers).largest) == parte
    assert shortened(network(REFUND_SCAM, transfers, "1 per 5 minutes").cartesian) == cartesian
    assert shortened(math.isqrt((rate * TWO_WEEKS) ** 3) * TWO_WEEKS) == triangle  # n^1.5: Atserias, Grohe and Marx


@pytest.mark.parametrize("rate", FIGURE_5_9)
def test_requirement_35_figure_5_9(rate: int) -> None:
    """The second column counts each pair of the first join once (ERR-7); the third is the rule with a gathering."""
    parte, aggregated = FIGURE_5_9[rate]
    transfers = f"{rate} per 5 minutes"
    assert shortened(network(DIFFUSION, transfers, pairs_once=True).largest) == parte
    assert shortened(network(scenario(AGGREGATED), transfers).largest, 2**10, "k") == aggregated


@pytest.mark.parametrize(
    ("rule", "nodes"),
    [
        (PASS_THROUGH, {"entry": 2, "alpha": 2, "join": 1, "production": 1}),
        (DIFFUSION, {"entry": 4, "alpha": 4, "join": 3, "production": 1}),
        (REFUND_SCAM, {"entry": 4, "alpha": 4, "join": 2, "not": 1, "production": 1}),
    ],
    ids=lambda each: each.name if isinstance(each, Rule) else "",
)
def test_requirement_35_the_nodes_of_figure_7_2(rule: Rule, nodes: dict[str, int]) -> None:
    found = network(rule, "1/s", "1/s")
    assert Counter(node.kind for node in found.nodes) == nodes
    assert len(found.nodes) == (6 if rule is PASS_THROUGH else 12)


def test_the_window_of_a_node_is_the_shortest_to_any_event_before() -> None:
    rule = compiled(ABC + "rule R where a : A b : B c : C when b in a [0 s, 9 s] c in a [0 s, 8 s] c in b [0 s, 3 s]")
    found = viable(rule.program.rules[0], parse_rates({"A": 1, "B": 1, "C": 1}))
    assert found is not None
    assert [node.window_us for node in found.joined] == [8_000_000, 3_000_000]


def test_an_absence_stands_in_the_chain_where_the_text_has_it() -> None:
    rule = compiled(ABC + "rule R where a : A no b : B c : C when no b in a [0 s, 2 s] c in a [0 s, 4 s]")
    found = viable(rule.program.rules[0], parse_rates({"A": 1, "B": 1, "C": 1}))
    assert found is not None
    assert [(node.kind, node.left, node.right) for node in found.joined] == [("not", 3, 3), ("join", 13, 5)]
    assert [(node.kind, node.outbox) for node in found.nodes][-1] == ("terminal", 0)


def test_what_repeats_or_has_no_rate_has_no_viable_size() -> None:
    repeats = compiled(ABC + "rule R where a : A b : B+ when b in a [0 s, 2 s]").program.rules[0]
    assert viable(repeats, parse_rates({"A": 1, "B": 1})) is None
    assert viable(DIFFUSION, {}) is None
