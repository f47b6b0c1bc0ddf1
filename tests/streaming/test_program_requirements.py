"""The requirements of live rules (PARTElang) on the steps of a shard, by number: time, strata, state."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fitting import seeded
from tests.rules.support import ABC, S, compiled, rows
from tests.rules.test_engines import tables_of
from tests.rules.test_sharing import drawn_program
from tests.streaming.programs import LiveProgram
from tests.streaming.support import arrivals, cut
from tests.streaming.test_bounds import largest_rates
from tests.streaming.test_programs import fed, ids

import tocsin
from tocsin import reference
from tocsin.analysis.rates import parse_rates
from tocsin.analysis.rules.program_state import most_events
from tocsin.testing.streams import SECOND, SEEDS, Streams

E = "template E { x : Integer } template F { x : Integer }\n"


def tables(**streams: str) -> dict[str, pa.Table]:
    schema = pa.schema({"ts": pa.int64(), "x": pa.int64()})
    given = {name: "" for name in "ABCD"} | streams
    return {name: pa.Table.from_pylist(found, schema) for name, found in rows(**given).items()}


def drawn_case(seed: int) -> tuple[tocsin.Rules, Streams]:
    """A program of several strata, and events for it."""
    chance = random.Random(seed)
    program = compiled(drawn_program(chance.randrange(2**32)))
    return program, seeded(program.program, seed, max_events=12)


def told(live: LiveProgram, *bounds: float) -> list[list[str]]:
    """The rules whose matches each of these bounds decides, with all events known from the start."""
    found = []
    for place, bound in enumerate(bounds):
        given = live.take(range(len(live.ts)) if place == 0 else [], round(bound * S))
        found.append(sorted(rule for rule, _ in given))
    return found


def test_requirement_19_an_absence_of_what_rules_emit_is_told_when_their_last_word_is_known() -> None:
    """No alarm within 2 s; an alarm is told up to 3 s after the event that it has the time of."""
    text = f"""{ABC}{E}
        rule Alarm where b : B no c : C {{ x = b.x }} when no c in b [0 s, 3 s]
          then emit E at b.timestamp with {{ x = b.x }}
        rule Quiet where a : A no e : E {{ x = a.x }} when no e in a [0 s, 2 s]
    """
    live = LiveProgram(compiled(text), tables(A="0:1 0:2", B="1:1"))
    assert told(live, 2, 4, 4.000001, 5, 5.000001, 99) == [[], [], ["Alarm"], [], ["Quiet"], []]
    assert [row["a"]["x"] for row in reference.evaluate(compiled(text), rows(A="0:1 0:2", B="1:1"))["Quiet"]] == [2]


def test_requirement_19_and_50_what_is_gathered_is_told_when_its_window_has_passed() -> None:
    """Also when nothing is there to be gathered, and when what is there comes in two steps."""
    text = f"{ABC} rule R where a : A all b : B {{ x = a.x }} when all b in a [-1 s, 3 s]"
    live = LiveProgram(compiled(text), tables(A="0:1 0:2", B="1:1 3:1"))
    assert told(live, 1, 3, 3.000001, 99) == [[], [], ["R", "R"], []]
    assert sorted(live.found["R"]) == ids(reference.evaluate(compiled(text), rows(A="0:1 0:2", B="1:1 3:1"))["R"])
    steps = LiveProgram(compiled(text), tables(A="0:1 0:2", B="1:1 3:1"))
    for row in range(len(steps.ts)):
        steps.take([row])
    steps.end()
    assert sorted(steps.found["R"]) == sorted(live.found["R"])


def test_requirement_20_what_is_emitted_when_time_goes_on_is_seen_above_without_another_event() -> None:
    """Vector 9.9, two strata high: the request that nobody answers makes a time-out, and three of them an alarm."""
    text = f"""{ABC}{E}
        rule Timeout where a : A no b : B {{ x = a.x }} when no b in a [0 s, 5 s]
          then emit E at a.timestamp + 5 s with {{ x = a.x }}
        rule Alarm where e : E f : E {{ x > e.x }} g : E {{ x > f.x }} when f in e [0 s, 9 s] g in e [0 s, 9 s]
    """
    live = LiveProgram(compiled(text), tables(A="0:1 1:2 2:3"))
    assert told(live, 5, 5.000001, 7, 7.000001, 86_400) == [[], ["Timeout"], ["Timeout"], ["Alarm", "Timeout"], []]
    assert live.state.rows is not None and live.state.rows.num_rows == 0


def test_requirement_21_an_absence_before_joins_on_a_later_event() -> None:
    text = f"{ABC} rule R where b : B no a : A {{ x = b.x }} when no a in b [-3 s, 0 s]"
    live = LiveProgram(compiled(text), tables(A="0:1 0:2", B="2:1 3:2 4:2"))
    live.take(range(len(live.ts)), 99 * S)
    assert live.found["R"] == ids(reference.evaluate(compiled(text), rows(A="0:1 0:2", B="2:1 3:2 4:2"))["R"])
    assert len(live.found["R"]) == 1


GLITCH = f"""{ABC}{E}
    rule Both where p : A then emit E at p.timestamp with {{ x = p.x }} emit F at p.timestamp with {{ x = p.x }}
    rule Half where e : E no f : F {{ x = e.x }} when no f in e [-1 s, 1 s]
"""
SLOW_GLITCH = f"""{ABC}{E}
    rule One where p : A then emit E at p.timestamp with {{ x = p.x }}
    rule Other where p : A no b : B when no b in p [0 s, 7 s] then emit F at p.timestamp with {{ x = p.x }}
    rule Half where e : E no f : F {{ x = e.x }} when no f in e [-1 s, 1 s]
"""


@pytest.mark.parametrize("text", [GLITCH, SLOW_GLITCH])
@given(times=st.lists(st.integers(0, 12), min_size=1, max_size=6), seed=SEEDS)
def test_requirement_22_nobody_sees_half_of_what_an_event_causes(text: str, times: list[int], seed: int) -> None:
    """Vector 9.7, at any cut; also when one half is told seven seconds after the other."""
    live = LiveProgram(compiled(text), tables(A=" ".join(f"{at}:{at}" for at in times)), lateness_us=2 * S)
    fed(live, seed, 2 * S)
    assert live.found["Half"] == []
    assert len([found for name, found in live.found.items() if name != "Half" for _ in found]) >= len(times)


@given(seed=SEEDS)
def test_requirement_23_and_27_emitted_events_are_those_of_the_reference(seed: int) -> None:
    """Each with the time that its rule says, once for each match, equal or not."""
    program, stream = drawn_case(seed)
    live = fed(LiveProgram(program, tables_of(stream), lateness_us=SECOND, template="F"), seed, SECOND)
    expected = reference.events(program, stream)["F"]
    assert Counter(map(_values, live.events)) == Counter(map(_values, expected))


def _values(event: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(event.items()))


def test_requirement_23_a_higher_rule_waits_for_matches_under_way_below() -> None:
    """An event of E at 0 can be told until 10: what is compared with it at 1 is kept, and not decided before."""
    text = f"""{ABC}{E}
        rule Low where a : A b : B {{ x = a.x }} when b in a [0 s, 10 s] then emit E at a.timestamp with {{ x = a.x }}
        rule High where e : E c : C {{ x = e.x }} when c in e [0 s, 1 s]
    """
    live = LiveProgram(compiled(text), tables(A="0", B="10", C="1"))
    assert told(live, 9, 10, 10.000001, 11.000002) == [[], [], ["Low"], ["High"]]


def test_requirement_28_equal_events_are_two_and_so_are_those_they_cause() -> None:
    text = f"""{ABC}{E} rule R where a : A then emit E at a.timestamp with {{ x = a.x }}
        rule S where e : E f : E when f in e [0 s, 0 s] distinct(e, f)"""
    live = LiveProgram(compiled(text), tables(A="0:1 0:1"))
    live.take([0])
    live.take([1])
    live.end()
    expected = reference.evaluate(compiled(text), rows(A="0:1 0:1"))
    for name in ("R", "S"):
        assert sorted(live.found[name]) == ids(expected[name])
        assert len(set(live.found[name])) == 2


@given(seed=SEEDS)
def test_requirement_36_a_program_remembers_no_more_than_its_bound(seed: int) -> None:
    program, stream = drawn_case(seed)
    chance = random.Random(seed)
    lateness = chance.choice([0, 1, 3]) * SECOND
    told = program.check(
        rates=largest_rates(stream, SECOND), lateness=dt.timedelta(microseconds=lateness), streaming=True
    )
    assert told.events is not None
    live = LiveProgram(program, tables_of(stream), lateness_us=lateness)
    for batch in cut(arrivals(live.ts, lateness, chance), chance):
        live.take(batch)
    # One operator keeps an event once, the table of `check` once for each stratum.
    names = [rule.name for rule in program.program.rules]
    bound = most_events(program.program, names, parse_rates(largest_rates(stream, SECOND)), lateness)
    assert bound is not None
    assert live.most_remembered <= bound <= told.events, f"{told.state}"


def test_requirement_38_a_partner_that_stalls_loses_nothing() -> None:
    """Vector 9.8: ten times as many events as a store ever needs, before the first on the other side."""
    text = f"""{ABC}{E}
        rule Low where a : A b : B {{ x = a.x }} when b in a [0 s, 4 s] then emit E at a.timestamp with {{ x = a.x }}
        rule High where e : E no c : C {{ x = e.x }} when no c in e [0 s, 4 s]
    """
    left = " ".join(f"{at / 10}:{at}" for at in range(200))
    right = " ".join(f"{at / 10 + 3}:{at}" for at in range(0, 200, 7))
    live = LiveProgram(compiled(text), tables(A=left, B=right, C="1:0"))
    for at in range(200):
        live.take([at], stalls=True)
    assert live.most_remembered == 200
    live.take(range(200, len(live.ts)))
    live.end()
    expected = reference.evaluate(compiled(text), rows(A=left, B=right, C="1:0"))
    for name in ("Low", "High"):
        assert sorted(live.found[name]) == ids(expected[name])
    assert len(live.found["High"]) == len(live.found["Low"]) - 1
    assert live.state.rows is not None and live.state.rows.num_rows == 0


def test_requirement_40_what_is_remembered_does_not_grow_with_the_stream() -> None:
    text = f"""{ABC}{E}
        rule Low where a : A b : B {{ x = a.x }} when b in a [0 s, 4 s] then emit E at b.timestamp with {{ x = a.x }}
        rule High where e : E no c : C {{ x = e.x }} when no c in e [0 s, 4 s]
    """
    live = LiveProgram(
        compiled(text),
        tables(A=" ".join(f"{at}:{at}" for at in range(60)), B=" ".join(f"{at}:{at - 1}" for at in range(1, 60))),
    )
    order = sorted(range(len(live.ts)), key=lambda row: int(live.ts[row]))
    kept = []
    for row in order:
        live.take([row])
        kept.append(0 if live.state.rows is None else live.state.rows.num_rows)
    assert max(kept[-40:-4]) == max(kept[30:70]) <= 20
