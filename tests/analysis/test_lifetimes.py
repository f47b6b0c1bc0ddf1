"""Lifetimes against values derived by hand, and against every match and blocker of small streams."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from tests.analysis.patterns import (
    SECOND,
    all_times,
    at_most,
    between,
    blocks,
    both,
    constrained_queries,
    deadline,
    either,
    event,
    leading,
    matches,
    query,
    repeat,
    satisfies,
    sequence,
    trailing,
)
from tests.analysis.test_temporal import many_choices

from tocsin import errors
from tocsin.algebra import nodes as alg
from tocsin.analysis.lifetimes import Lifetimes, lifetimes
from tocsin.analysis.temporal import network
from tocsin.language.ast import AfterMatch, Output, Selection, Skip

TEN = 10 * SECOND
HORIZON = 6


def lives(pattern: alg.Query) -> dict[str, int | None]:
    return lifetimes(pattern, network(pattern)).to_dict()


def test_in_a_sequence_each_event_waits_for_the_last():
    assert lives(query(sequence("a", "b", "c"), within=TEN)) == {"a": 9_999_999, "b": 9_999_998, "c": 0}


def test_in_a_conjunction_each_event_waits_for_the_others():
    assert lives(query(both("a", "b"), within=TEN)) == {"a": 9_999_999, "b": 9_999_999}


def test_an_absence_between_two_events_is_decided_with_the_second():
    core = between(sequence("a", "c"), "b", ("a",), ("c",))
    assert lives(query(core, within=TEN)) == {"a": 9_999_999, "c": 0, "b": 9_999_998}


def test_a_trailing_absence_is_decided_a_window_after_the_start():
    assert lives(query(trailing(event("a"), "b", ("a",), TEN), within=TEN)) == {"a": TEN, "b": 9_999_999}


def test_a_leading_absence_is_decided_with_the_event_it_leads_to():
    assert lives(query(leading(event("a"), "b", ("a",), TEN), within=TEN)) == {"a": 0, "b": 9_999_999}


def test_a_later_event_waits_less_for_the_end_of_the_window():
    core = trailing(sequence("a", "b"), "n", ("b",), TEN)
    assert lives(query(core, within=TEN)) == {"a": TEN, "b": TEN - 1, "n": TEN - 2}


def test_with_absences_at_both_edges_the_leading_one_is_remembered_for_two_windows():
    core = trailing(leading(event("a"), "x", ("a",), TEN), "y", ("a",), TEN)
    assert lives(query(core, within=TEN)) == {"a": TEN, "x": 2 * TEN - 1, "y": TEN - 1}


def test_distances_bound_a_chain_without_a_window():
    chain = (at_most("b", "a", 5 * SECOND), at_most("c", "b", 10 * SECOND))
    assert lives(query(sequence("a", "b", "c"), *chain)) == {"a": 15 * SECOND, "b": 10 * SECOND, "c": 0}


def test_without_any_bound_the_earlier_event_lives_for_ever():
    pattern = query(sequence("a", "b"))
    found = lifetimes(pattern, network(pattern))
    assert found.to_dict() == {"a": None, "b": 0}
    assert not found.is_bounded
    assert network(pattern).unbounded_pair() == ("a", "b")
    with pytest.raises(errors.UnboundedPatternError):
        network(pattern).require_bounded()


def test_an_iterated_event_waits_for_the_others_of_its_bag():
    assert lives(query(sequence("a", repeat("b")), within=TEN)) == {"a": 9_999_999, "b": 9_999_998}


def test_an_optional_event_counts_only_where_it_is_bound():
    chain = (at_most("b", "a", 5), at_most("c", "a", 3))
    found = lives(query(sequence("a", repeat("b", 0, 1)), *chain))
    assert found == {"a": 5, "b": 0}
    branches = either(sequence("a", "b"), "c")
    assert lives(query(branches, at_most("b", "a", 7))) == {"a": 7, "b": 0, "c": 0}


def test_a_trailing_absence_behind_an_optional_event_waits_only_when_it_is_missing():
    core = sequence("a", repeat("c", 0, 1))
    lower, upper = (
        alg.Bound(alg.LastOf(("a",))),
        (alg.Bound(alg.FirstOf(("c",))), alg.Bound(alg.Whole.START, 10)),
    )
    guarded = alg.Absent(core, "B", "b", None, (lower,), upper)
    assert lives(query(guarded, within=10)) == {"a": 10, "c": 0, "b": 9}


def test_the_condition_of_an_absence_shortens_what_is_kept_of_its_events():
    core = between(sequence("a", "c"), "n", ("a",), ("c",), at_most("c", "n", 3))
    assert lives(query(core, within=10)) == {"a": 9, "c": 0, "n": 3}


def test_an_absence_that_can_never_block_needs_no_memory():
    core = between(sequence("a", "c"), "n", ("a",), ("c",), at_most("n", "a", -1))
    assert lives(query(core, within=10))["n"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"selection": Selection.NEXT},
        {"selection": Selection.CONTIGUOUS},
        {"after_match": AfterMatch(Skip.PAST_LAST)},
        {"output": Output.LONGEST},
        {"output": Output.LAST_PER_END},
    ],
)
def test_a_policy_that_compares_matches_keeps_every_event_for_the_longest_match(options):
    pattern = query(leading(sequence("a", "b"), "n", ("a",), 10), at_most("b", "a", 4), within=10, **options)
    expected = {"a": 4, "b": 4, "n": 12}
    if options.get("output") is Output.LAST_PER_END:
        expected = {"a": 8, "b": 8, "n": 16}
    assert lives(pattern) == expected


def test_the_last_match_of_an_end_is_known_at_that_end_when_nothing_is_decided_later():
    assert lives(query(sequence("a", "b"), within=10, output=Output.LAST_PER_END)) == {"a": 9, "b": 9}


def test_time_outs_keep_every_event_until_the_window_is_over():
    core = leading(sequence("a", "b"), "n", ("a",), 10)
    assert lives(query(core, at_most("b", "a", 4), within=10, timeouts=True)) == {"a": 10, "b": 10, "n": 19}


def test_the_table_names_negated_variables():
    pattern = query(trailing(event("a"), "b", ("a",), TEN), within=TEN)
    text = str(lifetimes(pattern, network(pattern)))
    assert text == "variable  lifetime\na         10 s\nNOT b     9.999999 s"


def test_the_lifetimes_of_a_coarser_network_are_bounded_by_the_window():
    pattern = query(trailing(many_choices(either("a", "b")), "n", ("a", "b"), 100), within=100)
    found = lives(pattern)
    assert not network(pattern).is_exact
    assert None not in found.values()
    assert found["o0"] == 100


def assert_nothing_needed_is_dropped(pattern: alg.Query, found: Lifetimes, distances, *, tight: bool) -> None:
    """Compare with every match of every stream with times below the horizon."""
    needed: dict[str, int] = dict.fromkeys(found.us, 0)
    for times, guards in matches(pattern.pattern, HORIZON):
        if not times or not satisfies(times, distances):
            continue
        decided = max([*all_times(times), *(deadline(absence, own, times) for absence, own in guards)])
        for name, bag in times.items():
            needed[name] = max([needed[name], *(decided - time for time in bag)])
        for absence, own in guards:
            for time in range(-HORIZON, 2 * HORIZON):
                if blocks(time, absence, own, times, distances):
                    needed[absence.variable] = max(needed[absence.variable], decided - time)
    for name, needs in needed.items():
        kept = found[name]
        assert kept is None or needs <= kept, f"`{name}` is needed for {needs} and kept for {kept}"
        if tight and needs:
            assert kept == needs, f"`{name}` is needed for {needs} and kept for {kept}"


@given(constrained_queries(horizon=HORIZON))
def test_no_event_is_dropped_while_a_match_or_its_absence_may_still_need_it(drawn):
    pattern, distances = drawn
    try:
        known = network(pattern)
    except errors.ContradictoryDistancesError:
        return
    single = not any(kind.iterated for kind in pattern.variables.values())
    absent = bool(alg.negated_variables(pattern.pattern))
    found = lifetimes(pattern, known)
    assert found.is_bounded
    assert_nothing_needed_is_dropped(pattern, found, distances, tight=single and not absent)


@given(constrained_queries(horizon=HORIZON))
def test_the_coarser_lifetimes_are_never_shorter(drawn):
    pattern, distances = drawn
    core = pattern.pattern.part if isinstance(pattern.pattern, alg.Within) else pattern.pattern
    inner = core.part if isinstance(core, alg.Filter) else core
    conditions = [core.condition] if isinstance(core, alg.Filter) else []
    large = query(many_choices(inner), *conditions, within=pattern.window_us)
    try:
        exact, coarse = network(pattern), network(large)
    except errors.ContradictoryDistancesError:
        return
    del distances
    shorter, longer = lifetimes(pattern, exact), lifetimes(large, coarse)
    for name, needed in shorter.us.items():
        kept = longer[name]
        assert needed is not None
        assert kept is None or kept >= needed


@given(constrained_queries(horizon=HORIZON))
def test_policies_never_shorten_a_lifetime(drawn):
    pattern, _ = drawn
    try:
        known = network(pattern)
    except errors.ContradictoryDistancesError:
        return
    plain = lifetimes(pattern, known)
    strict = lifetimes(replace(pattern, selection=Selection.NEXT, timeouts=True), known)
    for name, needed in plain.us.items():
        kept = strict[name]
        assert needed is not None
        assert kept is not None
        assert kept >= needed


A, B, C = (alg.Event(name, name) for name in "ABC")
LEFT_OUT = [
    alg.Project(sequence(A, B), (("A", None),)),
    alg.Project(sequence(A, B), (("B", None),)),
    sequence(alg.Project(sequence(A, B), (("B", None),)), C),
    alg.Both((alg.Project(sequence(A, B), (("A", None),)), alg.Project(sequence(A, C), (("A", None),)))),
    alg.Project(alg.Repeat(A, 1, None, alg.Order.POSITION), ()),
    alg.NextOf("A", "A"),
    alg.Any((B, alg.NextOf("A", "A"))),
]


@pytest.mark.parametrize("pattern", LEFT_OUT)
def test_events_that_a_projection_leaves_out_or_next_skips_matter_as_long_as_any(pattern):
    assert not lifetimes(alg.Query(pattern), network(alg.Query(pattern))).is_bounded
    with pytest.raises(errors.UnboundedPatternError):
        network(alg.Query(pattern)).require_bounded()
    within = query(pattern, within=10)
    found = lifetimes(within, network(within))
    assert {name for name in found.us if name.isidentifier()} == set(alg.event_types(pattern))
    assert max(us for us in found.us.values() if us is not None) == 9


@pytest.mark.parametrize("pattern", [alg.Bind(A, "x"), alg.Bind(alg.Any((A, B)), "x"), alg.Any((alg.Bind(A, "x"), B))])
def test_one_event_needs_no_window_whatever_its_names_are(pattern):
    assert set(lifetimes(alg.Query(pattern), network(alg.Query(pattern))).us.values()) == {0}
