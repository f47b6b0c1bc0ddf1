"""Requirements 13 to 28 of the digest of PARTElang, as far as they need no stream; and the vectors of its section 9."""

from __future__ import annotations

import itertools
import random

import pytest
from tests.rules.support import ABC, PUBLISHED, S, compiled, found, rows, seconds

import tocsin
from tocsin.reference import evaluate, events

PAIR = "rule R where b : B a : A when a in b [5 s, 15 s] then"


# --- 14, 18: distances ---


def test_requirement_14_both_ends_of_a_distance_belong_to_it() -> None:
    """Vector 9.2."""
    assert found(PAIR, B="0", A="4.999 5 10 15 15.001") == [(0, 5), (0, 10), (0, 15)]


def test_requirement_14_the_same_distance_seen_from_the_other_side() -> None:
    mirrored = "rule R where b : B a : A when b in a [-15 s, -5 s] then"
    assert found(mirrored, B="0", A="4.999 5 15 15.001") == found(PAIR, B="0", A="4.999 5 15 15.001")


def test_requirement_14_both_ends_of_an_absence_belong_to_it() -> None:
    rule = "rule R where a : A no b : B when no b in a [0 s, 4 s] then"
    for at, expected in [("-0.000001", 1), ("0", 0), ("4", 0), ("4.000001", 1)]:
        assert len(found(rule, A="0", B=at)) == expected, at


def test_requirement_18_negative_distances_and_events_in_any_order() -> None:
    rule = "rule R where a : A b : B c : C when b in a [-2 s, 2 s] c in a [-3 s, 3 s] c in b [-1 s, 1 s] then"
    assert found(rule, A="10", B="8 9 12 13", C="7 8 11 13") == [
        (10, 8, 7),
        (10, 8, 8),
        (10, 9, 8),
        (10, 12, 11),
        (10, 12, 13),
    ]


# --- 15, 16: consumption and what lies between ---


def test_requirement_15_one_event_takes_part_in_any_number_of_matches_and_variables() -> None:
    rule = "rule R where a : A b : A when b in a [0 s, 5 s] then"
    assert found(rule, A="0 1 9") == [(0, 0), (0, 1), (1, 1), (9, 9)]


def test_requirement_15_an_event_takes_part_in_any_number_of_rules() -> None:
    program = compiled(ABC + "rule R where a : A when then rule S where a : A { x > 3 } when then")
    matches = evaluate(program, rows(A="1:5"))
    assert {name: len(each) for name, each in matches.items()} == {"R": 1, "S": 1}


def test_requirement_16_unrelated_events_change_nothing() -> None:
    program = compiled(ABC + PAIR)
    stream = rows(B="0 3", A="5 8 20")
    alone = seconds(evaluate(program, stream)["R"])
    assert alone == [(0, 5), (0, 8), (3, 8)]
    assert seconds(evaluate(program, stream | rows(C="1 2 3 4 5 6", D="5 8"))["R"]) == alone


# --- 17: order ---

FOUR = [
    "a : A",
    "b : B { x > 1 }",
    "c : C { x > 0 }",
    "d : A { x > 2 }",
]


def test_requirement_17_the_order_of_patterns_does_not_matter() -> None:
    stream = rows(A="0:1 1:3 4:5", B="2:1 3:2 5:7", C="1:0 4:1")
    when = "when b in a [0 s, 4 s] c in a [-2 s, 2 s] d in b [-4 s, 4 s] then"
    results = set()
    for order in itertools.permutations(FOUR):
        program = compiled(ABC + f"rule R where {' '.join(order)} {when}")
        matches = evaluate(program, stream)["R"]
        bound = [{name: event["ts"] for name, event in row.items() if isinstance(event, dict)} for row in matches]
        results.add(frozenset(tuple(sorted(row.items())) for row in bound))
    assert len(results) == 1
    assert len(next(iter(results))) == 2


def test_requirement_17_the_order_of_arrival_does_not_matter() -> None:
    stream = rows(A="0:1 1:3 4:5", B="2:1 3:2 5:7", C="1:0 4:1")
    when = "when b in a [0 s, 4 s] c in a [-2 s, 2 s] d in b [-4 s, 4 s]"
    program = compiled(ABC + f"rule R where {' '.join(FOUR)} {when}")
    expected = seconds(evaluate(program, stream)["R"])
    shuffle = random.Random(17)
    for _ in range(5):
        shuffled = {name: shuffle.sample(group, len(group)) for name, group in stream.items()}
        assert seconds(evaluate(program, shuffled)["R"]) == expected


# --- 19, 21: absence ---


def test_requirement_19_an_absence_blocks_what_it_matches_and_nothing_else() -> None:
    """Vector 9.3, figure 8.1: in the end t, u, v, w, x, y are left."""
    templates = "template A { attr : String } template B { attr : String } template C { attr : String }"
    program = compiled(templates + PUBLISHED["8_1_negation"])
    stream = {
        "A": [{"ts": at * S, "attr": letter} for at, letter in enumerate("stuvwxyz")],
        "B": [{"ts": 0, "attr": "s"}, {"ts": 7 * S, "attr": "z"}],
    }
    assert [row["a"]["attr"] for row in evaluate(program, stream)["a_rule_with_negation"]] == list("tuvwxy")
    assert [row["attr"] for row in events(program, stream)["C"]] == list("tuvwxy")


def test_requirement_20_an_absence_is_reported_when_nothing_follows() -> None:
    """Vector 9.9 on data that ends: a request that nobody answers."""
    rule = "rule R where a : A no b : B { x = a.x } when no b in a [0 s, 5 s] then"
    assert found(rule, A="0:1") == [(0,)]


@pytest.mark.parametrize(
    ("window", "blockers"),
    [("[-5 s, -1 s]", "5 9"), ("[-1 s, 1 s]", "9 11"), ("[1 s, 5 s]", "11 15")],
)
def test_requirement_21_an_absence_lies_before_around_or_after(window: str, blockers: str) -> None:
    rule = f"rule R where b : B no a : A {{ x = b.x }} when no a in b {window} then"
    assert found(rule, B="10:7") == [(10,)]
    for at in blockers.split():
        assert found(rule, B="10:7", A=f"{at}:7") == []
        assert found(rule, B="10:7", A=f"{at}:8") == [(10,)]


def test_requirement_21_an_absence_may_join_on_a_later_event() -> None:
    rule = """rule R where b : B  c : C  no a : A { x = c.x }
    when c in b [0 s, 5 s]  no a in b [-5 s, -1 s] then"""
    assert found(rule, A="0:2", B="3", C="4:1 5:2") == [(3, 4)]


def test_requirement_28_a_blocker_lies_in_all_its_windows() -> None:
    rule = "rule R where a : A b : B no n : C when b in a [0 s, 9 s] no n in a [0 s, 4 s] no n in b [-2 s, 0 s] then"
    assert found(rule, A="0", B="5", C="1") == [(0, 5)]  # in the window of a only
    assert found(rule, A="0", B="5", C="5") == [(0, 5)]  # in the window of b only
    assert found(rule, A="0", B="5", C="3.5") == []


def test_requirement_28_two_absences_block_alone() -> None:
    rule = "rule R where a : A no b : B no c : C when no b in a [0 s, 5 s] no c in a [0 s, 5 s] then"
    assert found(rule, A="0 20 40", B="1", C="22") == [(40,)]


# --- 22, 23: programs ---


def test_requirement_22_a_rule_never_sees_half_of_what_an_event_causes() -> None:
    """Vector 9.7."""
    program = compiled(
        ABC
        + """
        rule Both where p : A when then
          emit B at p.timestamp with { x = p.x }
          emit C at p.timestamp with { x = p.x }
        rule Glitch where b : B no c : C when no c in b [-1 s, 1 s] then
        """
    )
    matches = evaluate(program, rows(A="0 1 5"))
    assert len(matches["Both"]) == 3
    assert matches["Glitch"] == []


def test_requirement_23_emitted_events_have_the_time_the_rule_says_and_feed_other_rules() -> None:
    program = compiled(
        ABC
        + """
        rule Late where a : A b : B when b in a [0 s, 9 s] then emit C at max(a.timestamp, b.timestamp) + 1 second with
          { x = a.x + b.x }
        rule Pair where c : C d : D { x = c.x } when d in c [0 s, 1 s] then emit B2 at c.timestamp with { x = d.x }
        """.replace("B2", "E")
        + "template E { x : Integer }"
    )
    stream = rows(A="0:1", B="2:4 3:5", D="3:5 5:6")
    assert events(program, stream) == {
        "C": [{"ts": 3 * S, "x": 5}, {"ts": 4 * S, "x": 6}],
        "E": [{"ts": 3 * S, "x": 5}, {"ts": 4 * S, "x": 6}],
    }


def test_requirement_23_a_derived_type_may_come_from_outside_too() -> None:
    program = compiled(ABC + "rule R where a : A when then emit B at a.timestamp with { x = 1 } rule S where b : B")
    assert seconds(evaluate(program, rows(A="1", B="2"))["S"]) == [(1,), (2,)]


# --- 24, 25: the algebra ---

THREE = "rule R where e1 : A e2 : B e3 : C when e2 in e1 [0 s, 20 s] e3 in e2 [0 s, 30 s] e3 in e1 [0 s, 40 s] then"


@pytest.mark.parametrize(
    ("e2", "e3", "matches"), [("20", "40", 1), ("20", "41", 0), ("21", "40", 0), ("5", "36", 0), ("5", "35", 1)]
)
def test_requirement_24_pairwise_windows(e2: str, e3: str, matches: int) -> None:
    """Vector 9.6."""
    assert len(found(THREE, A="0", B=e2, C=e3)) == matches


def test_requirement_24_sequences_are_associative() -> None:
    """Vector 9.5: Ea@2, Eb@1, Ec@3 is no Ea before Eb before Ec, however the rule is layered."""
    direct = "rule R where a : A b : B c : C when b in a [1 ms, 9 s] c in b [1 ms, 9 s] then"
    assert found(direct, A="2", B="1", C="3") == []
    layered = """
    rule Right where b : B c : C when c in b [1 ms, 9 s] then emit D at b.timestamp with { x = 1 }
    rule Whole where a : A d : D when d in a [1 ms, 9 s] then
    """
    assert evaluate(compiled(ABC + layered), rows(A="2", B="1", C="3"))["Whole"] == []
    assert len(evaluate(compiled(ABC + layered), rows(A="0", B="1", C="3"))["Whole"]) == 1


def test_requirement_25_the_very_next_event() -> None:
    rule = """rule Next where
      first : A
      second : A { timestamp > first.timestamp }
      no between : A { timestamp > first.timestamp, timestamp < second.timestamp }
    when
      second in first [0 s, 60 s]
      no between in first [0 s, 60 s]
    then"""
    assert found(rule, A="0 1 5 7 100") == [(0, 1), (1, 5), (5, 7)]


# --- 26, 27, 28: identity ---

TWINS = "rule R where a : A b : A when b in a [0 s, 5 s]"


def test_requirement_26_the_same_event_twice_unless_the_rule_says_distinct() -> None:
    assert found(f"{TWINS} then", A="0 1") == [(0, 0), (0, 1), (1, 1)]
    assert found(f"{TWINS} distinct(a, b) then", A="0 1") == [(0, 1)]


def test_requirement_26_distinct_is_about_events_and_not_their_values() -> None:
    assert found(f"{TWINS} distinct(a, b) then", A="0 0") == [(0, 0), (0, 0)]


def test_requirement_26_an_absent_event_other_than_one_of_the_match() -> None:
    rule = "rule R where a : A no b : A {{ x = a.x }} when no b in a [-5 s, 5 s] {} then"
    assert found(rule.format(""), A="0 1 20") == []
    assert found(rule.format("distinct(b, a)"), A="0 1 20") == [(20,)]


def test_requirement_26_one_match_per_set_of_events() -> None:
    rule = "rule R where a : A b : A c : A when b in a [-5 s, 5 s] c in a [-5 s, 5 s] {} then"
    assert len(found(rule.format("distinct(a, b, c)"), A="0 1 2")) == 6
    assert found(rule.format("distinct(a, b, c) unordered(a, b, c)"), A="0 1 2") == [(0, 1, 2)]
    assert len(found(rule.format("unordered(a, b)"), A="0 1")) == 6  # {0}, {1} and {0, 1}, with either c


def test_requirement_26_unordered_loses_no_set_when_only_one_order_satisfies_the_rule() -> None:
    rule = "rule R where a : A { x = 2 } b : A { x = 1 } when b in a [-5 s, 5 s] unordered(a, b) then"
    assert found(rule, A="0:1 1:2") == [(1, 0)]


def test_requirement_27_a_match_shows_all_its_bindings() -> None:
    program = compiled(ABC + "rule R where a : A b : B when b in a [0 s, 5 s] then")
    (row,) = evaluate(program, rows(A="1:7", B="2:8"))["R"]
    assert row == {"start": S, "end": 2 * S, "a": {"ts": S, "x": 7}, "b": {"ts": 2 * S, "x": 8}}
    assert isinstance(row, tocsin.reference.MatchRow)
    assert len(row.match_id) == 32


def test_requirement_28_equal_events_stay_two_events() -> None:
    assert found("rule R where a : A b : B when b in a [0 s, 5 s] then", A="0 0", B="1") == [(0, 1), (0, 1)]


def test_requirement_28_equal_emitted_events_stay_two_events() -> None:
    program = compiled(
        ABC
        + """rule R where a : A when then emit B at a.timestamp with { x = 1 }
             rule S where b : B when then emit C at b.timestamp with { x = 2 }"""
    )
    assert events(program, rows(A="0:1 0:2 0:2")) == {"B": [{"ts": 0, "x": 1}] * 3, "C": [{"ts": 0, "x": 2}] * 3}


# --- NULL ---


def test_unknown_conditions_keep_no_match_and_block_none() -> None:
    program = compiled(
        ABC
        + """rule R where a : A b : B { x = a.x } when b in a [0 s, 5 s] then
             rule N where a : A no b : B { x = a.x } when no b in a [0 s, 5 s] then"""
    )
    stream = {"A": [{"ts": 0, "x": None}], "B": [{"ts": 1, "x": None}, {"ts": 2, "x": 1}]}
    matches = evaluate(program, stream)
    assert matches["R"] == []
    assert len(matches["N"]) == 1


def test_events_without_a_time_take_part_in_nothing() -> None:
    program = compiled(ABC + "rule R where a : A")
    assert len(evaluate(program, {"A": [{"ts": None, "x": 1}, {"ts": 5, "x": 1}]})["R"]) == 1
