"""Programs on the steps of a shard: any cut and any order give the reference, each match once, and no glitches."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import assume, given, settings
from tests.fitting import seeded
from tests.rules.support import compiled, with_streams
from tests.rules.test_engines import drawn_program as engine_program
from tests.rules.test_engines import drawn_repetition, drawn_tied_repetition, tables_of
from tests.rules.test_gatherings import drawn_gathering, drawn_interchangeable, drawn_unordered
from tests.rules.test_sharing import drawn_program as sharing_program
from tests.streaming.programs import LiveProgram
from tests.streaming.support import arrivals, cut

import tocsin
from tocsin import errors, reference
from tocsin.testing.streams import SECOND, SEEDS, Streams


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
    except errors.QueryErrors as several:
        assume(not all(isinstance(one, errors.ContradictoryDistancesError) for one in several.errors))
        raise


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(row["match_id"] for row in rows)


def assert_as_the_reference(
    program: tocsin.Rules, rows: Streams, seed: int, strategy: str = "auto", tie: str | None = None
) -> None:
    lateness = random.Random(seed).choice([0, 0, 1, 2, 20]) * SECOND
    live = LiveProgram(program, tables_of(rows), lateness_us=lateness, strategy=strategy, tie=tie)
    fed(live, seed, lateness)
    for name, expected in reference.evaluate(program, rows, tie=tie).items():
        assert sorted(live.found[name]) == ids(expected), name
    assert live.late == 0
    assert live.state.rows is None or live.state.rows.num_rows == 0


def assert_on_a_stream(
    text: str, chance: random.Random, seed: int, *, types: str = "ABC", strategy: str = "auto"
) -> None:
    """The program on a longer stream for it."""
    program = drawn(text)
    rows = seeded(program.program, chance.randrange(2**32), max_events=12, types=types)
    assert_as_the_reference(program, rows, seed, strategy)


@settings(max_examples=18)
@given(**with_streams(sharing_program, max_events=9), seed=SEEDS)
def test_any_cut_and_any_order_of_a_program_give_the_reference(text: str, stream: Streams, seed: int) -> None:
    assert_as_the_reference(compiled(text), stream, seed)


# One number draws all that follows: drawn one by one, few programs would meet many streams.


@settings(max_examples=30)
@given(seed=SEEDS)
def test_so_do_programs_on_longer_streams(seed: int) -> None:
    chance = random.Random(seed)
    assert_on_a_stream(sharing_program(chance.randrange(2**32)), chance, seed)


READS = """
rule Read where d : D b : B { x <= d.x } when b in d [-2 s, 3 s]
rule Miss where a : A no d : D { x = a.x } when no d in a [-1 s, 2 s]
"""


@settings(max_examples=40)
@given(seed=SEEDS)
def test_gatherings_wait_until_all_that_they_gather_is_there(seed: int) -> None:
    """And so does what reads the events that they emit."""
    chance = random.Random(seed)
    text = drawn_gathering(chance.randrange(2**32))
    assert_on_a_stream(text + READS, chance, seed)


@given(seed=SEEDS)
def test_unordered_keeps_the_first_of_each_set_whatever_the_cut(seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice([drawn_unordered, drawn_interchangeable])(chance.randrange(2**32))
    assert_on_a_stream(text, chance, seed)


@given(seed=SEEDS)
def test_repetitions_and_policies_give_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    text = drawn_repetition(chance.randrange(2**32))
    assert_on_a_stream(text, chance, seed)


@settings(max_examples=100)
@given(**with_streams(drawn_tied_repetition, max_events=8, tie="x"), seed=SEEDS)
def test_repetitions_are_ordered_by_tie_columns_under_any_cut(text: str, stream: Streams, seed: int) -> None:
    assert_as_the_reference(compiled(text), stream, seed, tie="x")


def with_neighbours(text: str, chance: random.Random) -> str:
    """Some of the rules ask for neighbours, and so does one more that reads emitted events beside others."""
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if line.startswith("rule R") and " then" in line and " all " not in line and chance.random() < 0.5:
            lines[place] = line.replace(" then", " select contiguous then", 1)
    return "\n".join([*lines, "rule N where e : E a : A { x >= e.x } when a in e [-2 s, 4 s] select contiguous"])


@settings(max_examples=40)
@given(seed=SEEDS)
def test_neighbours_are_counted_among_the_events_that_a_rule_reads(seed: int) -> None:
    """Those that no condition lets take part, and those that other rules emit; others pass unseen (D40)."""
    chance = random.Random(seed)
    text = with_neighbours(sharing_program(chance.randrange(2**32)), chance)
    assert_on_a_stream(text, chance, seed)


@given(seed=SEEDS)
def test_events_that_come_from_outside_and_from_rules_are_one_stream(seed: int) -> None:
    chance = random.Random(seed)
    text = engine_program(chance.randrange(2**32))
    assert_on_a_stream(text, chance, seed, types="ABCX")


@settings(max_examples=50)
@given(seed=SEEDS)
def test_windows_of_what_is_remembered_give_the_reference_too(seed: int) -> None:
    chance = random.Random(seed)
    draw = chance.choice([sharing_program, drawn_gathering, drawn_unordered, drawn_repetition, engine_program])
    text = draw(chance.randrange(2**32))
    assert_on_a_stream(text, chance, seed, types="ABCX", strategy="aggregate")


def test_more_kinds_of_events_than_bits_of_a_word_run() -> None:
    """A kind is a template with conditions of its own: rules that ask for the same share one."""
    rules = "".join(f"rule R{number} where a : A {{ x > {number} }}\n" for number in range(70))
    same = "".join(f"rule S{number} where a : A {{ x > 1 }}\n" for number in range(70))
    tables = tables_of({"A": [{"ts": 0, "k": "p", "x": 66, "v": 0.5}]})
    templates = "template A { k : String, x : Integer, v : Double }\n"
    for text, names, matched in ((rules, None, 66), (rules, ["R1", "R65", "R67"], 2), (same, None, 70)):
        live = LiveProgram(compiled(templates + text), tables, rules=names)
        live.take([0])
        live.end()
        assert sum(map(len, live.found.values())) == matched
