"""Requirements 1 to 12 and 23 of the digest of PARTElang: what is read, and what is refused before anything runs."""

from __future__ import annotations

import pytest
from tests.rules.support import ABC, PUBLISHED, TYPES, compiled, refused

import tocsin
from tocsin.algebra.programs import TIMESTAMP
from tocsin.analysis.temporal import network
from tocsin.language.partelang import ast, parse, print_program

DAYS = 24 * 3600 * 1_000_000
SUSPICIOUS = """
template MoneyTransferredSuspiciously {
  id : TransactionId, originator : AccountId, destination : AccountId, amount : Amount
}
"""


# --- 1: every published program ---


@pytest.mark.parametrize("name", PUBLISHED)
def test_requirement_01_a_published_program_parses_unchanged(name: str) -> None:
    program = parse(PUBLISHED[name])
    assert program.declarations
    assert parse(print_program(program)) == program


@pytest.mark.parametrize("name", ["7_2_pass_through", "7_3_diffusion", "7_5_refund_scam"])
def test_requirement_01_a_published_rule_compiles_with_its_templates(name: str) -> None:
    assert len(compiled(TYPES + PUBLISHED[name]).program.rules) == 1


def test_requirement_01_the_layered_program_compiles_once_its_missing_id_is_added() -> None:
    layers = PUBLISHED["a_1_suspicious_transfer"] + PUBLISHED["a_2_layered"]
    assert refused(TYPES + SUSPICIOUS + layers) == ["INCOMPLETE_EMIT"]  # erratum 16
    with_id = layers.replace("originator = incoming.originator,", "id = incoming.id, originator = incoming.originator,")
    program = compiled(TYPES + SUSPICIOUS + with_id).program
    assert {rule.name: rule.stratum for rule in program.rules} == {
        "AbstractSuspiciousTransfer": 0,
        "FraudPassThrough": 1,
        "FraudDiffusion": 1,
    }


def test_requirement_01_the_rule_of_figure_8_1_compiles() -> None:
    templates = "template A { attr : String } template B { attr : String } template C { attr : String }"
    assert compiled(templates + PUBLISHED["8_1_negation"]).program.rules[0].emits[0].type == "C"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("rule R where a : A when then", id="no braces, empty when and then"),
        pytest.param("rule R where a : A { } when then", id="empty braces"),
        pytest.param("rule R where a : A, b : B, when b in a [0 s, 5 s], then", id="commas between patterns"),
        pytest.param("rule R where a : A b : B when b in a [0 s, 5 s] then", id="no commas between patterns"),
        pytest.param("rule R where a : A { x >= 1, x <= 9, x != 5, } when then", id="ASCII signs, trailing comma"),
        pytest.param("rule R where a : A { x ≥ 1, x ≤ 9, x ≠ 5 } when then", id="signs of the paper"),
        pytest.param("rule R where a : A b : B when b in a [-14 days, 0 days] then", id="negative durations"),
        pytest.param("rule R where a : A b : B when b in a [5s, 15s] then", id="unit attached to the number"),
        pytest.param("rule R where a : A b : B when b in a [500 ms, 1 second] then", id="ms, one second"),
        pytest.param("rule R where a : A b : B when b in a [1 minute, 2 hours] then", id="minutes and hours"),
        pytest.param("rule R where a : A b : B when b in a [+1 minute, +2 hours] then", id="a plus sign"),
        pytest.param("rule R where a : A { x * 0.9 < 100.0 } when then", id="products and decimals"),
        pytest.param("rule R where a : A when then do_something(a.x)", id="a call in then"),
        pytest.param("rule R where a : A { x = min(x, 5, 3) } when then", id="min of listed arguments"),
        pytest.param("rule R where a : A", id="no when, no then"),
        pytest.param("rule R where a : A -- a comment\n# another\nwhen then", id="comments"),
        pytest.param("rule R where a : A { (x > 1) = (x > 2) } when then", id="comparisons are values"),
    ],
)
def test_requirement_01_what_the_printed_programs_need_beyond_the_grammar(text: str) -> None:
    compiled(ABC + text)
    program = parse(ABC + text)
    assert parse(print_program(program)) == program


def test_requirement_01_slots_may_be_separated_by_commas_or_by_nothing() -> None:
    with_commas = parse("template A { x : Integer, y : [AccountId; 3], }")
    assert with_commas == parse("template A { x : Integer y : [AccountId ; 3] }")
    (template,) = with_commas.templates
    assert [slot.type for slot in template.slots] == [ast.TypeName("Integer"), ast.TypeName("AccountId", 3)]


def test_requirement_01_rules_and_templates_come_in_any_order() -> None:
    compiled("rule R where a : A when then template A { x : Integer }")


# --- 3 to 5: names, absences ---


@pytest.mark.parametrize(
    ("rule", "conditions"),
    [
        ("rule R where a : E when then", ["UNKNOWN_EVENT_TYPE"]),
        ("rule R where a : A { y > 5 } when then", ["UNKNOWN_ATTRIBUTE"]),
        ("rule R where a : A { x > b.x } when then", ["UNKNOWN_VARIABLE"]),
        ("rule R where a : A a : B when then", ["DUPLICATE_VARIABLE"]),
        ("rule R where a : A when then rule R where b : B when then", ["DUPLICATE_NAME"]),
        ("template A { y : Integer } rule R where a : A when then", ["DUPLICATE_NAME"]),
        ("template E { y : Integer, y : String } rule R where a : A when then", ["DUPLICATE_NAME"]),
    ],
)
def test_requirement_03_unknown_and_duplicate_names_are_refused(rule: str, conditions: list[str]) -> None:
    assert refused(ABC + rule) == conditions


def test_requirement_04_a_rule_cannot_begin_with_an_absence() -> None:
    assert refused(ABC + "rule R where no a : A b : B when no a in b [-5 s, 0 s] then") == ["NEGATION_NOT_ALLOWED"]


def test_requirement_04_an_absence_needs_a_closed_window_around_a_positive_event() -> None:
    assert refused(ABC + "rule R where a : A no b : B when then") == ["UNBOUNDED_ABSENCE"]
    two = "rule R where a : A no b : B no c : C when no b in a [0 s, 5 s] no c in b [0 s, 5 s] then"
    assert refused(ABC + two) == ["MISPLACED_PREFIX", "UNBOUNDED_ABSENCE"] or refused(ABC + two) == [
        "UNBOUNDED_ABSENCE",
        "MISPLACED_PREFIX",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "rule R where a : A no b : B c : C { x = b.x } when c in a [0 s, 5 s] no b in a [0 s, 5 s] then",
        "rule R where a : A no b : B when no b in a [0 s, 5 s] then emit C at b.timestamp with { x = a.x }",
        "rule R where a : A no b : B when no b in a [0 s, 5 s] then emit C at a.timestamp with { x = b.x }",
        "rule R where a : A no b : B no c : C { x = b.x } when no b in a [0 s, 5 s] no c in a [0 s, 5 s] then",
    ],
)
def test_requirement_05_an_absent_event_is_known_in_its_own_pattern_only(rule: str) -> None:
    assert refused(ABC + rule) == ["NEGATED_VARIABLE_USED"]


# --- 6, 10, 12: distances ---


def test_requirement_06_a_pair_without_a_finite_distance_is_refused_and_named() -> None:
    with pytest.raises(tocsin.errors.UnboundedPatternError, match="between `a` and `c`, nor between `b` and `c`"):
        compiled(ABC + "rule R where a : A b : B c : C when b in a [0 s, 5 s] then")
    with pytest.raises(tocsin.errors.UnboundedPatternError, match="between `a` and `b`"):
        compiled(ABC + "rule R where a : A b : B { timestamp > a.timestamp } when then")


def test_requirement_06_it_is_enough_that_the_closure_bounds_a_pair() -> None:
    chain = "rule R where a : A b : B c : C d : D when b in a [0 s, 5 s] c in b [0 s, 5 s] d in c [-1 s, 1 s] then"
    query = compiled(ABC + chain).program.rules[0].query
    assert network(query, TIMESTAMP).distance("a", "d") == (-1_000_000, 11_000_000)


def test_requirement_06_conditions_on_times_bound_a_pair_too() -> None:
    rule = """rule R where
        a : A
        b : B { timestamp >= a.timestamp, timestamp <= a.timestamp + 5 seconds }
    when then"""
    assert network(compiled(ABC + rule).program.rules[0].query, TIMESTAMP).distance("a", "b") == (0, 5_000_000)


def test_requirement_06_one_variable_needs_no_distance() -> None:
    compiled(ABC + "rule R where a : A when then")


@pytest.mark.parametrize(
    "when",
    [
        "b in a [0 s, 5 s] b in a [6 s, 9 s] c in a [0 s, 5 s]",
        "b in a [5 s, 9 s] c in b [5 s, 9 s] c in a [0 s, 9 s]",
        "b in a [1 s, 5 s] a in b [0 s, 5 s] c in a [0 s, 5 s]",
    ],
)
def test_requirement_10_distances_that_no_events_can_keep_are_refused(when: str) -> None:
    assert refused(ABC + f"rule R where a : A b : B c : C when {when} then") == ["CONTRADICTORY_DISTANCES"]


def test_requirement_10_a_window_with_its_ends_exchanged_is_refused() -> None:
    assert refused(ABC + "rule R where a : A b : B when b in a [5 s, 0 s] then") == ["INVALID_WINDOW"]


def test_requirement_12_the_closure_is_that_of_scenario_c() -> None:
    query = compiled(TYPES + PUBLISHED["7_5_refund_scam"]).program.rules[0].query
    distances = network(query, TIMESTAMP)
    for earlier, later, least, most in [
        ("incoming", "refund", 0, 14),
        ("incoming", "claim", 0, 14),
        ("refund", "claim", -14, 14),
        ("refund", "additional_incoming", -14, 0),
        ("incoming", "additional_incoming", -14, 14),
        ("claim", "additional_incoming", -28, 14),
    ]:
        assert distances.distance(earlier, later) == (least * DAYS, most * DAYS), (earlier, later)


def test_requirement_12_the_closure_does_not_run_through_an_absent_event() -> None:
    rule = "rule R where a : A b : B no n : C when b in a [0 s, 60 s] no n in a [0 s, 5 s] no n in b [0 s, 5 s] then"
    assert network(compiled(ABC + rule).program.rules[0].query, TIMESTAMP).distance("a", "b") == (0, 60_000_000)


# --- 7: strata ---

SELF = "rule R where a : A when then emit A at a.timestamp with { x = a.x }"
PAIR = """rule R where a : A when then emit B at a.timestamp with { x = a.x }
          rule S where b : B when then emit A at b.timestamp with { x = b.x }"""
ABSENT = """rule R where a : A no c : C when no c in a [0 s, 5 s] then emit B at a.timestamp with { x = a.x }
            rule S where b : B when then emit C at b.timestamp with { x = b.x }"""


@pytest.mark.parametrize(
    ("rules", "cycle"),
    [
        (SELF, "`A` → `A` (rule `R`)"),
        (PAIR, "`A` → `B` (rule `R`) → `A` (rule `S`)"),
        (ABSENT, "`C` → `B` (rule `R`) → `C` (rule `S`)"),
    ],
)
def test_requirement_07_an_unstratified_program_is_refused_with_its_cycle(rules: str, cycle: str) -> None:
    with pytest.raises(tocsin.errors.UnstratifiedError) as caught:
        compiled(ABC + rules)
    assert cycle in caught.value.message


def test_requirement_07_strata_follow_what_is_emitted() -> None:
    """Vector 9.10, the rules of listing 5.1: a, b, c → D; a, b, e → F; c, no d → G."""
    templates = "".join(f"template {name} {{ x : Integer }} " for name in "ABCDEFG")
    text = """
    rule One where a : A b : B c : C when b in a [0 s, 9 s] c in a [0 s, 9 s] then emit D at c.timestamp with { x = 1 }
    rule Two where a : A b : B e : E when b in a [0 s, 9 s] e in a [0 s, 9 s] then emit F at e.timestamp with { x = 2 }
    rule Three where c : C no d : D when no d in c [0 s, 9 s] then emit G at c.timestamp with { x = 3 }
    """
    program = compiled(templates + text).program
    assert {rule.name: rule.stratum for rule in program.rules} == {"One": 0, "Two": 0, "Three": 1}


# --- 8: the time of emitted events ---


def emitting(at: str) -> str:
    return ABC + f"rule R where a : A b : B when b in a [0 s, 5 s] then emit C at {at} with {{ x = a.x }}"


@pytest.mark.parametrize(
    "at",
    [
        "a.timestamp",
        "b.timestamp",
        "min(a.timestamp, b.timestamp)",
        "max(a.timestamp, b.timestamp)",
        "avg(a.timestamp, b.timestamp)",
        "a.timestamp + 5 seconds",
        "b.timestamp - 5 seconds",
        "5 seconds + max(a.timestamp, b.timestamp - 1 minute)",
    ],
)
def test_requirement_08_a_monotone_time_is_accepted(at: str) -> None:
    compiled(emitting(at))


@pytest.mark.parametrize(
    "at",
    [
        "a.timestamp - b.timestamp",
        "a.timestamp - (b.timestamp - a.timestamp)",
        "a.x",
        "TIMESTAMP '2018-01-01 00:00:00'",
        "CASE WHEN a.x > 5 THEN a.timestamp ELSE b.timestamp END",
        "5 seconds - a.timestamp",
    ],
)
def test_requirement_08_a_time_that_may_go_back_is_refused(at: str) -> None:
    assert "NON_MONOTONE_TIME" in refused(emitting(at))


# --- 9: rates ---

REQUEST = "rule R where a : A no b : B when no b in a [0 s, 5 s] then emit C at a.timestamp with { x = a.x }"


def test_requirement_09_every_type_from_outside_needs_a_rate() -> None:
    program = compiled(ABC + REQUEST)
    program.check()
    for rates in (None, {"A": "1/s"}):
        with pytest.raises(tocsin.TocsinError) as caught:
            program.check(rates=rates, streaming=True)
        found = getattr(caught.value, "errors", (caught.value,))
        assert {one.condition for one in found} == {"MISSING_RATE"}
    program.check(rates={"A": "1/s", "B": "1/s"}, streaming=True)
    program.check(rates={"A": "1/s"}, streaming=True, guarantees=False)


# --- 11: functions ---


def test_requirement_11_a_function_must_promise_to_be_pure() -> None:
    rule = ABC + "rule R where a : A { lucky(x) } when then"
    assert refused(rule, functions={}) == ["UNKNOWN_FUNCTION"]
    assert refused(rule, functions={"lucky": tocsin.function(bool, gives="boolean")}) == ["IMPURE_FUNCTION"]
    assert refused(rule, functions={"lucky": tocsin.function(bool, gives="boolean", pure=True)}) == []


def test_requirement_11_a_predicate_gives_a_boolean() -> None:
    double = tocsin.function(lambda x: 2 * x, gives="bigint", pure=True)
    assert refused(ABC + "rule R where a : A { double(x) } when then", functions={"double": double}) == [
        "TYPE_MISMATCH"
    ]
    assert refused(ABC + "rule R where a : A { double(x) > 5 } when then", functions={"double": double}) == []


def test_requirement_11_a_function_has_a_fixed_number_of_arguments() -> None:
    near = tocsin.function(lambda a, b: abs(a - b) < 5, gives="boolean", pure=True)
    assert refused(ABC + "rule R where a : A { near(x) } when then", functions={"near": near}) == ["WRONG_ARGUMENTS"]


@pytest.mark.parametrize(
    "options",
    [
        {"functions": {"lucky": bool}},
        {"functions": {"sum": tocsin.function(bool, gives="boolean", pure=True)}},
        {"functions": {"not a name": tocsin.function(bool, gives="boolean", pure=True)}},
        {"tables": {"known": "ABC"}},
        {"tables": {"known": [(1, 2), (3,)]}},
    ],
)
def test_requirement_11_what_is_registered_is_checked(options: dict[str, object]) -> None:
    with pytest.raises(tocsin.errors.InvalidOptionError):
        tocsin.rules(ABC + "rule R where a : A", **options)  # type: ignore[arg-type]
