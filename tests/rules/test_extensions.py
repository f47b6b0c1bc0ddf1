"""Requirements 50 to 57: what rules can say beyond the dissertation."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from tests.rules.support import ABC, TYPES, S, compiled, found, refused, rows, seconds, trace

import tocsin
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.temporal import network
from tocsin.plan.strategies import refusals, unsupported
from tocsin.reference import evaluate, events

# --- 50: aggregates over a window ---

BURST = "rule R where a : A all b : B {{ {} }} when all b in a [0 s, 5 s] then"


def test_requirement_50_all_events_of_a_window_are_one_bag() -> None:
    assert found(BURST.format(""), A="0 10", B="0 1 5 6 15.5") == [(0, (0, 1, 5)), (10, None)]


@pytest.mark.parametrize(
    ("condition", "starts"),
    [
        ("count(b) >= 3", [0]),
        ("count(b) = 0", [20]),
        ("sum(b.x) > 6", [0, 10]),
        ("sum(x) > 6", [0, 10]),
        ("avg(b.x) = 3", [0]),
        ("min(b.x) > 6", [10]),
        ("max(b.x) < 6", [0]),
        ("first(b.x) = 1, last(b.x) = 5", [0]),
        ("x > 2, count(b) = 2", [0]),
        ("count(DISTINCT b.x) = 3", [0]),
        ("x < avg(b.x) + 10, count(b) > 0", [0, 10]),
    ],
)
def test_requirement_50_a_condition_with_an_aggregate_is_about_the_bag(condition: str, starts: list[float]) -> None:
    matches = found(BURST.format(condition), A="0 10 20", B="1:1 2:3 5:5 11:7")
    assert [match[0] for match in matches] == starts


def test_requirement_50_a_bag_is_known_to_later_patterns_and_to_emitted_events() -> None:
    program = compiled(
        ABC
        + """rule R where
          a : A
          all b : B { x > 0 }
          c : C { x >= sum(b.x) * 0.9, x <= sum(b.x) * 1.1 }
        when
          all b in a [0 s, 5 s]
          c in a [5 s, 9 s]
        then
          emit D at c.timestamp with { x = sum(b.x) }"""
    )
    stream = rows(A="0", B="1:4 2:6 3:-5", C="6:10 7:12")
    assert seconds(evaluate(program, stream)["R"]) == [(0, 6, (1, 2))]
    assert events(program, stream)["D"] == [{"ts": 6 * S, "x": 10}]


def test_requirement_50_scenario_b_as_a_sum() -> None:
    """Any number of outgoing transfers, in all within a tenth of the incoming one: state O(rate × window)."""
    rule = """
    rule Diffusion where
      incoming : MoneyTransferred { amount >= 100.0 }
      all outgoing : MoneyTransferred {
        originator = incoming.destination,
        count(outgoing) >= 3,
        sum(outgoing.amount) >= incoming.amount * 0.9,
        sum(outgoing.amount) <= incoming.amount * 1.1,
      }
    when
      all outgoing in incoming [0 days, 14 days]
    then
    """
    program = compiled(TYPES + rule)
    (match,) = evaluate(program, trace())["Diffusion"]
    assert match["incoming"]["id"] == 4
    assert [row["id"] for row in match["outgoing"]] == [6, 9, 200]
    report = program.check(rates={"MoneyTransferred": "1 per 5 minutes"})
    assert [store.events for store in report.rules[0].sizes.stores] == [4033, 4033]  # figure 5.9: 3k in place of 122G


def test_requirement_50_a_gathering_is_decided_at_the_end_of_its_window() -> None:
    query = compiled(ABC + BURST.format("count(b) = 0")).program.rules[0].query
    assert dict(lifetimes(query, network(query, "timestamp")).us) == {"a": 5 * S, "b": 5 * S}


def test_requirement_50_an_absence_may_ask_for_more_than_a_gathering_holds() -> None:
    rule = """rule R where a : A all b : B no c : C { x > sum(b.x) }
    when all b in a [-5 s, 0 s] no c in a [0 s, 5 s] then"""
    assert found(rule, A="0", B="-1:4 -2:5", C="1:9") == [(0, (-2, -1))]
    assert found(rule, A="0", B="-1:4 -2:5", C="1:10") == []


# --- 51: repetitions ---


def test_requirement_51_a_repetition_takes_every_increasing_choice_in_its_window() -> None:
    rule = "rule R where a : A b : B+ when b in a [0 s, 5 s] then"
    assert found(rule, A="0", B="1 2 9") == [(0, (1,)), (0, (1, 2)), (0, (2,))]


def test_requirement_51_a_number_of_repetitions() -> None:
    assert found("rule R where a : A b : B[2] when b in a [0 s, 5 s]", A="0", B="1 2 3") == [
        (0, (1, 2)),
        (0, (1, 3)),
        (0, (2, 3)),
    ]
    assert len(found("rule R where a : A b : B[2..3] when b in a [0 s, 5 s]", A="0", B="1 2 3")) == 4
    assert len(found("rule R where a : A b : B[2..] when b in a [0 s, 5 s]", A="0", B="1 2 3 4")) == 11


def test_requirement_51_vector_9_4_thirteen_matches() -> None:
    """a1 c1 b1 b2 c2 b3 c3 and a b* c: one match without any b, the others with some."""
    stream = {"A": "1", "C": "2 5 7", "B": "3 4 6"}
    some = "rule R where a : A b : B+ c : C when c in a [0 s, 60 s] b in a [0 s, 60 s] c in b [1 ms, 60 s] then"
    none = "rule R where a : A c : C when c in a [0 s, 60 s] then"
    assert len(found(some, **stream)) + len(found(none, **stream)) == 13


def test_requirement_51_the_selection_is_declared() -> None:
    rule = "rule R where a : A b : B+ when b in a [1 s, 5 s] select {} then"
    assert found(rule.format("any"), A="0", B="1 2 3") == found(rule.replace("select {}", ""), A="0", B="1 2 3")
    assert found(rule.format("next"), A="0", B="1 2 3") == [(0, (1,)), (0, (1, 2)), (0, (1, 2, 3))]
    assert found(rule.format("contiguous"), A="0", B="1 2", C="1.5") == [(0, (1,)), (0, (1, 2))]


def test_requirement_51_conditions_speak_of_each_event_of_neighbours_or_of_the_bag() -> None:
    each = "rule R where a : A b : B[2] { x > 1 } when b in a [0 s, 9 s] then"
    assert found(each, A="0", B="1:1 2:2 3:3") == [(0, (2, 3))]
    rising = "rule R where a : A b : B[3] { b[i].x > b[i-1].x } when b in a [0 s, 9 s] then"
    assert found(rising, A="0", B="1:1 2:2 3:1 4:3") == [(0, (1, 2, 4))]
    total = "rule R where a : A b : B+ { sum(b.x) = 4 } when b in a [0 s, 9 s] then"
    assert found(total, A="0", B="1:1 2:2 3:1 4:3") == [(0, (1, 2, 3)), (0, (1, 4)), (0, (3, 4))]


def test_requirement_51_a_repetition_alone_is_bounded_by_itself() -> None:
    rule = "rule R where b : B[2..] when b in b [0 s, 5 s] then"
    assert found(rule, B="0 2 5 6") == [
        ((0, 2),),
        ((0, 2, 5),),
        ((0, 5),),
        ((2, 5),),
        ((2, 5, 6),),
        ((2, 6),),
        ((5, 6),),
    ]
    assert refused(ABC + "rule R where b : B+") == ["UNBOUNDED_PATTERN"]


def test_requirement_51_emitted_events_choose_or_collect() -> None:
    program = compiled(
        ABC
        + """template E { xs : [Integer; 3], last : Integer }
        rule R where b : B[1..3] when b in b [0 s, 5 s] select next
        then emit E at max(b.timestamp) with { xs = collect(b.x), last = last(b.x) }"""
    )
    assert events(program, rows(B="0:7 1:8"))["E"] == [
        {"ts": 0, "xs": [7], "last": 7},
        {"ts": S, "xs": [7, 8], "last": 8},
        {"ts": S, "xs": [8], "last": 8},
    ]


# --- 53: the calendar ---


@pytest.mark.parametrize(
    ("condition", "hours"),
    [
        ("hour(timestamp) < 6", [3]),
        ("hour(timestamp, 'Europe/Brussels') = 5", [3]),
        ("weekday(timestamp) = 3", [3, 12, 23]),  # Wednesday
        ("weekday(timestamp) IN (6, 7)", []),
        ("day(timestamp) = 28, month(timestamp) = 3, year(timestamp) = 2018", [3, 12, 23]),
        ("day(timestamp, 'Europe/Brussels') = 29", [23]),  # summer time: 01:00
        ("hour(timestamp) BETWEEN 9 AND 17", [12]),
        ("yearday(timestamp) = 87, week(timestamp) = 13", [3, 12, 23]),
        ("minute(timestamp) = 30, second(timestamp) = 15", [12]),
    ],
)
@pytest.mark.parametrize("integers", [False, True])
def test_requirement_53_conditions_on_the_calendar(condition: str, hours: list[int], integers: bool) -> None:
    times = [dt.datetime(2018, 3, 28, 3), dt.datetime(2018, 3, 28, 12, 30, 15), dt.datetime(2018, 3, 28, 23)]
    given: list[Any] = list(times)
    if integers:
        given = [(at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for at in times]
    program = compiled(ABC + f"rule R where a : A {{ {condition} }} when then")
    matches = evaluate(program, {"A": [{"ts": at, "x": 0} for at in given]})["R"]
    assert [times[given.index(row["a"]["ts"])].hour for row in matches] == hours


def test_requirement_53_absolute_times() -> None:
    rule = "rule R where a : A { timestamp >= TIMESTAMP '2018-03-28 00:00:00' } when then"
    program = compiled(ABC + rule)
    times = [dt.datetime(2018, 3, 27, 23, 59), dt.datetime(2018, 3, 28)]
    assert len(evaluate(program, {"A": [{"ts": at, "x": 0} for at in times]})["R"]) == 1


# --- 54: reference tables ---

KNOWN = "rule R where a : Transfer { NOT registered(originator, destination) } when then"
TRANSFER = "template Transfer { originator : String, destination : String }\n"
ROWS = [{"ts": 1, "originator": "A", "destination": "B"}, {"ts": 2, "originator": "A", "destination": "C"}]


@pytest.mark.parametrize(
    "table",
    [
        [("A", "B")],
        {("A", "B"), ("X", "Y")},
        [{"owner": "A", "recipient": "B"}],
    ],
)
def test_requirement_54_a_reference_table_is_asked_like_a_predicate(table: Any) -> None:
    program = compiled(TRANSFER + KNOWN, tables={"registered": table})
    assert [row["start"] for row in evaluate(program, {"Transfer": ROWS})["R"]] == [2]


def test_requirement_54_single_values_empty_tables_and_nulls() -> None:
    rules = """
    rule R where a : Transfer { blocked(originator) }
    rule N where a : Transfer { NOT blocked(originator) }
    """
    unknown = [{"ts": 3, "originator": None, "destination": "B"}]
    for table, expected in [(["A"], {"R": 2, "N": 0}), ([], {"R": 0, "N": 2})]:
        matches = evaluate(compiled(TRANSFER + rules, tables={"blocked": table}), {"Transfer": ROWS + unknown})
        assert {name: len(each) for name, each in matches.items()} == expected


def test_requirement_54_a_table_of_spark_waits_for_spark() -> None:
    class Frame:
        columns = ("owner", "recipient")
        schema = None

    program = compiled(TRANSFER + KNOWN, tables={"registered": Frame()})
    with pytest.raises(tocsin.errors.InvalidInputError, match="plain rows"):
        evaluate(program, {"Transfer": ROWS})
    assert refused(TRANSFER + KNOWN.replace(", destination", ""), tables={"registered": Frame()}) == ["WRONG_ARGUMENTS"]


# --- 55: types ---


def test_requirement_55_strings_booleans_decimals_and_arrays() -> None:
    program = compiled(
        """
        template Order { name : String, paid : Boolean, price : Decimal, tags : [String; 3] }
        template Label { text : String, paid : Boolean, price : Decimal, tags : [String; 4] }
        rule R where
          o : Order { paid, name LIKE 'A%', price * 2 > 5, upper(name) != 'AX' }
        then
          emit Label at o.timestamp with { text = o.name || '!', paid = NOT o.paid, price = o.price, tags = o.tags }
        """
    )
    stream = [
        {"ts": 1, "name": "Ab", "paid": True, "price": Decimal("2.51"), "tags": ["x", "y"]},
        {"ts": 2, "name": "Ab", "paid": False, "price": Decimal("2.51"), "tags": []},
        {"ts": 3, "name": "ax", "paid": True, "price": Decimal("2.51"), "tags": []},
        {"ts": 4, "name": "Ab", "paid": True, "price": Decimal("2.50"), "tags": []},
    ]
    assert events(program, {"Order": stream})["Label"] == [
        {"ts": 1, "text": "Ab!", "paid": False, "price": Decimal("2.51"), "tags": ["x", "y"]}
    ]


@pytest.mark.parametrize(
    "condition", ["name > 5", "paid = 'yes'", "price LIKE 'x'", "tags = 'x'", "name + 1 > 2", "name"]
)
def test_requirement_55_values_of_different_kinds_do_not_meet(condition: str) -> None:
    template = "template Order { name : String, paid : Boolean, price : Decimal, tags : [String; 3] }"
    assert refused(f"{template} rule R where o : Order {{ {condition} }}") == ["TYPE_MISMATCH"]


def test_requirement_55_a_domain_takes_the_type_it_is_given() -> None:
    text = "template T { account : AccountId } rule R where t : T { account > 5 }"
    assert refused(text) == []
    assert refused(text, types={"AccountId": "string"}) == ["TYPE_MISMATCH"]
    assert refused(text, types={"AccountId": "bigint"}) == []


def test_requirement_55_a_type_nearly_spelt_right_is_warned_of() -> None:
    warned = compiled("template T { x : Integr, y : Account } rule R where t : T").warnings
    assert [(warning.condition, warning.hint[:23]) for warning in warned] == [
        ("UNKNOWN_TYPE", "did you mean `Integer`?")
    ]


def test_requirement_55_inputs_must_fit_the_templates() -> None:
    program = compiled("template T { account : AccountId, amount : Amount, n : Integer } rule R where t : T")
    good = {"ts": "timestamp", "account": "string", "amount": "double", "n": "int"}
    program.check({"T": good})
    for change, condition in [
        ({"amount": "string"}, "TYPE_MISMATCH"),
        ({"n": "double"}, "TYPE_MISMATCH"),
        ({"ts": "string"}, "TIME_TYPE"),
    ]:
        with pytest.raises(tocsin.TocsinError) as caught:
            program.check({"T": good | change})
        assert caught.value.condition == condition
    with pytest.raises(tocsin.errors.MissingColumnError):
        program.check({"T": {"ts": "timestamp", "account": "string", "amount": "double"}})
    with pytest.raises(tocsin.errors.UnknownEventTypeError) as missing:
        program.check({"U": good})
    assert missing.value.restriction is not None and missing.value.restriction.startswith("S17")


# --- 57: modules and named patterns ---

NAMED = """
pattern Large(limit) : A { x >= limit }
pattern Huge : Large(100) { x < 1000 }
rule R where a : Huge b : Large(a.x) { x < 500 } when b in a [0 s, 9 s] then
"""


def test_requirement_57_a_named_pattern_stands_for_its_conditions() -> None:
    written = "rule R where a : A { x >= 100, x < 1000 } b : A { x >= a.x, x < 500 } when b in a [0 s, 9 s] then"
    stream = {"A": "0:50 1:100 2:400 3:600 4:1000"}
    assert found(NAMED, **stream) == found(written, **stream) == [(1, 1), (1, 2), (2, 2)]
    assert compiled(ABC + NAMED).program.rules[0].query == compiled(ABC + written).program.rules[0].query


def test_requirement_57_a_named_pattern_can_be_absent_gathered_and_repeated() -> None:
    text = """
    pattern Good : B { x > 5 }
    rule N where a : A no b : Good when no b in a [0 s, 5 s]
    rule G where a : A all b : Good { count(b) = 2 } when all b in a [0 s, 5 s]
    rule K where a : A b : Good[2] when b in a [0 s, 5 s]
    """
    matches = evaluate(compiled(ABC + text), rows(A="0 20", B="1:3 2:6 3:7"))
    assert {name: len(each) for name, each in matches.items()} == {"N": 1, "G": 1, "K": 1}


def test_requirement_57_modules() -> None:
    modules = {
        "types": "template A { x : Integer } template B { x : Integer }",
        "bank": "use types\npattern Large : A { x >= 100 }",
    }
    program = compiled("use bank use types rule R where a : Large b : B when b in a [0 s, 5 s]", modules=modules)
    assert seconds(evaluate(program, rows(A="0:50 1:100", B="2"))["R"]) == [(1, 2)]
    assert refused("use bank rule R where a : A", modules={"bank": "use types", "types": ""}) != []
    assert refused("use nothing rule R where a : A") == ["UNKNOWN_MODULE", "UNKNOWN_EVENT_TYPE"]


def test_requirement_57_a_mistake_in_a_module_is_shown_there() -> None:
    with pytest.raises(tocsin.TocsinError) as caught:
        compiled("use bank rule R where a : A", modules={"bank": "template A { x : Integer }\npattern P : A { x > }"})
    assert "at bank.parte:2:19" in str(caught.value)


# --- what engines say ---


@pytest.mark.parametrize(
    ("rule", "refused_for"),
    [
        (
            "rule R where a : A b : B { far(x + a.x) } when b in a [0 s, 5 s]",
            "The table `far`, a DataFrame for several events,",
        ),
        (
            "rule R where a : A all b : B b2 : C { far(b.x) } when all b in a [0 s, 5 s] b2 in a [0 s, 1 s]",
            "The table `far`, a DataFrame for several events,",
        ),
    ],
)
def test_no_strategy_claims_what_none_runs(rule: str, refused_for: str) -> None:
    frame = SimpleNamespace(columns=["x"], schema=None)
    query = compiled(ABC + rule, tables={"far": frame}).program.timed("ts").rules[0].query
    refusal = unsupported(query)
    assert refusal is not None
    assert refusal.message == f"{refused_for} does not run on Spark yet."
    assert all(refused is not None for name, refused in refusals(query).items() if name != "count")


@pytest.mark.parametrize(
    ("rule", "construct"),
    [
        ("rule R where a : A b : A when b in a [0 s, 5 s] distinct(a, b)", "`same_event(a, b)` of a rule"),
        ("rule R where a : A all b : B when all b in a [0 s, 5 s]", "`all` of a rule"),
        ("rule R where a : A b : A when b in a [0 s, 5 s] unordered(a, b)", "`unordered`"),
        ("rule R where a : A { hour(timestamp) = 3 }", "`hour(a.ts)` of a rule"),
        ("rule R where a : A { lucky(x) }", "`lucky(a.x)` of a rule"),
        ("rule R where a : A no b : B { known(x) } when no b in a [0 s, 5 s]", "`known(b.x)` of a rule"),
    ],
)
def test_what_only_rules_say_runs_in_kernels_only(rule: str, construct: str) -> None:
    functions = {"lucky": tocsin.function(bool, gives="boolean", pure=True)}
    program = compiled(ABC + rule, functions=functions, tables={"known": [1, 2]})
    found = refusals(program.program.timed("ts").rules[0].query)
    assert found["kernel"] is None
    for name in ("join", "automaton"):
        refusal = found[name]
        assert refusal is not None
        assert refusal.message.startswith(construct)
