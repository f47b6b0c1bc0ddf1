"""Programs on the steps of a shard: any cut and any order give the reference, each match once, and no glitches."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.rules.support import compiled
from tests.rules.test_engines import drawn_program, drawn_repetition, tables_of
from tests.rules.test_gatherings import GATHERINGS, UNORDERED
from tests.rules.test_sharing import PROGRAMS
from tests.streaming.programs import LiveProgram
from tests.streaming.support import arrivals, cut

import tocsin
from tocsin import errors, reference
from tocsin.testing.streams import SECOND, Streams, streams


def fed(live: LiveProgram, seed: int, lateness_us: int) -> LiveProgram:
    """All events in some order and some cut, and then the end of time."""
    chance = random.Random(seed)
    for batch in cut(arrivals(live.ts, lateness_us, chance), chance):
        live.take(batch)
    live.end()
    return live


def drawn(text: str) -> tocsin.Rules:
    """The program, unless its distances contradict each other."""
    try:
        return compiled(text)
    except errors.ContradictoryDistancesError:
        assume(False)
        raise


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["match_id"] for row in rows)


def assert_as_the_reference(program: tocsin.Rules, rows: Streams, seed: int) -> None:
    lateness = random.Random(seed).choice([0, 0, 1, 2, 20]) * SECOND
    live = fed(LiveProgram(program, tables_of(rows), lateness_us=lateness), seed, lateness)
    for name, expected in reference.evaluate(program, rows).items():
        assert sorted(live.found[name]) == ids(expected), name
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


events = st.fixed_dictionaries(
    {
        "ts": st.integers(0, 9).map(lambda second: second * SECOND),
        "k": st.just("p"),
        "x": st.sampled_from([0, 1, 2, None]),
        "v": st.just(0.5),
    }
)
busy_streams = st.fixed_dictionaries({kind: st.lists(events, min_size=3, max_size=7) for kind in "ABC"})


@settings(max_examples=100)
@given(text=PROGRAMS, rows=streams(max_events=9) | busy_streams, seed=st.integers(0, 2**32))
def test_any_cut_and_any_order_of_a_program_give_the_reference(text: str, rows: Streams, seed: int) -> None:
    assert_as_the_reference(compiled(text), rows, seed)


READS = """
rule Read where d : D b : B { x <= d.x } when b in d [-2 s, 3 s]
rule Miss where a : A no d : D { x = a.x } when no d in a [-1 s, 2 s]
"""


@settings(max_examples=60)
@given(text=GATHERINGS | UNORDERED, rows=streams(max_events=10) | busy_streams, seed=st.integers(0, 2**32))
def test_gatherings_wait_until_all_that_they_gather_is_there(text: str, rows: Streams, seed: int) -> None:
    """And so does what reads the events that they emit; `unordered` keeps the first of each set whatever the cut."""
    assert_as_the_reference(drawn(text + (READS if "emit D" in text else "")), rows, seed)


@settings(max_examples=60)
@given(
    text=st.integers(0, 2**32).map(drawn_repetition).filter(lambda text: "contiguous" not in text),
    rows=streams(max_events=8),
    seed=st.integers(0, 2**32),
)
def test_repetitions_and_policies_give_the_reference(text: str, rows: Streams, seed: int) -> None:
    assert_as_the_reference(drawn(text), rows, seed)


@settings(max_examples=60)
@given(
    text=st.integers(0, 2**32).map(drawn_program),
    rows=streams(types=("A", "B", "C", "X"), max_events=10),
    seed=st.integers(0, 2**32),
)
def test_events_that_come_from_outside_and_from_rules_are_one_stream(text: str, rows: Streams, seed: int) -> None:
    assert_as_the_reference(drawn(text), rows, seed)
