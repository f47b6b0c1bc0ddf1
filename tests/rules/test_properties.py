"""Requirement 13: on every finite trace, the matches of a rule are those of the event algebra, computed by hand.

The rules are drawn together with a second meaning, in plain Python over plain rows, which shares nothing with Tocsin:
all combinations of rows, without those that break a condition or a distance, or that an absence refutes.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.rules.support import compiled, understood, with_streams

from tocsin.algebra.programs import TIMESTAMP, Program
from tocsin.analysis.lifetimes import lifetimes
from tocsin.analysis.temporal import network
from tocsin.reference import evaluate
from tocsin.reference.matches import Evaluation
from tocsin.reference.programs import matches_of
from tocsin.reference.stream import ingest
from tocsin.testing.streams import SECOND, Streams

TEMPLATES = "".join(f"template {name} {{ k : String, x : Integer, v : Double }}\n" for name in "ABC")
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Row = dict[str, Any]
Test = Callable[[dict[str, Row]], bool]


@dataclass
class Drawn:
    """A rule as text, and what it means."""

    patterns: list[str] = field(default_factory=list)
    when: list[str] = field(default_factory=list)
    positive: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    tests: list[Test] = field(default_factory=list)
    absent_tests: dict[str, list[Test]] = field(default_factory=dict)
    windows: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # of absences: anchor and last instant

    @property
    def text(self) -> str:
        return f"{TEMPLATES}rule R where {', '.join(self.patterns)} when {' '.join(self.when)} then"

    def matches(self, stream: Streams) -> Counter[frozenset[tuple[str, int]]]:
        """The matches as sets of (variable, identity of a row)."""
        known = {name: [row for row in rows if row["ts"] is not None] for name, rows in stream.items()}
        found: Counter[frozenset[tuple[str, int]]] = Counter()
        for choice in itertools.product(*(known[kind] for kind in self.positive.values())):
            bound = dict(zip(self.positive, choice, strict=True))
            if all(test(bound) for test in self.tests) and not any(
                all(test(bound | {name: row}) for test in self.absent_tests[name])
                for name, kind in self.absent.items()
                for row in known[kind]
            ):
                found[frozenset((name, id(row)) for name, row in bound.items())] += 1
        return found


def compared(op: str, left: tuple[str, str], right: tuple[str, str] | int) -> Test:
    def test(bound: dict[str, Row]) -> bool:
        one = bound[left[0]][left[1]]
        other = bound[right[0]][right[1]] if isinstance(right, tuple) else right
        return one is not None and other is not None and OPERATORS[op](one, other)

    return test


def apart(name: str, anchor: str, least: int, most: int) -> Test:
    return lambda bound: least <= bound[name]["ts"] - bound[anchor]["ts"] <= most


def other_events(name: str, other: str) -> Test:
    return lambda bound: bound[name] is not bound[other]


def drawn_rule(seed: int) -> Drawn:
    choose = Random(seed)
    rule = Drawn()
    for number in range(choose.randint(1, 4)):
        name, kind = f"p{number}", choose.choice("ABC")
        conditions = _conditions(choose, name, list(rule.positive), rule.tests)
        rule.positive[name] = kind
        rule.patterns.append(f"{name} : {kind} {{ {', '.join(conditions)} }}")
        if number:
            for anchor in choose.sample(list(rule.positive)[:-1], choose.choice((1, 1, min(2, number)))):
                least = choose.choice((-4, -2, -1, 0, 0, 0, 1))
                most = least + choose.choice((0, 1, 2, 4, 8))
                if choose.random() < 0.3:
                    rule.when.append(f"{anchor} in {name} [{-most} s, {-least} s]")
                else:
                    rule.when.append(f"{name} in {anchor} [{least} s, {most} s]")
                rule.tests.append(apart(name, anchor, least * SECOND, most * SECOND))
    for number in range(choose.choice((0, 0, 1, 1, 2))):
        name, kind = f"n{number}", choose.choice("ABC")
        tests: list[Test] = []
        conditions = _conditions(choose, name, list(rule.positive), tests)
        rule.absent[name], rule.absent_tests[name] = kind, tests
        rule.patterns.append(f"no {name} : {kind} {{ {', '.join(conditions)} }}")
        for anchor in choose.sample(list(rule.positive), choose.randint(1, min(2, len(rule.positive)))):
            least = choose.choice((-4, -2, -1, 0, 1))
            most = least + choose.choice((0, 1, 3))
            rule.when.append(f"no {name} in {anchor} [{least} s, {most} s]")
            tests.append(apart(name, anchor, least * SECOND, most * SECOND))
            rule.windows.setdefault(name, []).append((anchor, most * SECOND))
        if choose.random() < 0.4:
            other = choose.choice(list(rule.positive))
            rule.when.append(f"distinct({name}, {other})")
            tests.append(other_events(name, other))
    if len(rule.positive) > 1 and choose.random() < 0.3:
        one, other = choose.sample(list(rule.positive), 2)
        rule.when.append(f"distinct({one}, {other})")
        rule.tests.append(other_events(one, other))
    return rule


def _conditions(choose: Random, own: str, others: list[str], tests: list[Test]) -> list[str]:
    written = []
    for _ in range(choose.choice((0, 0, 1, 1, 2))):
        op, attribute = choose.choice(list(OPERATORS)), choose.choice("kxv")
        if others and choose.random() < 0.6:
            other = choose.choice(others)
            written.append(f"{attribute} {op} {other}.{attribute}")
            tests.append(compared(op, (own, attribute), (other, attribute)))
        else:
            value = choose.randint(0, 2)
            written.append(f"x {op} {value}")
            tests.append(compared(op, (own, "x"), value))
    return written


def program_of(rule: Drawn) -> Program:
    program = understood(rule.text)
    assert program is not None
    return program


def rules(max_events: int) -> dict[str, st.SearchStrategy[Any]]:
    """Two arguments of a property: a `rule`, and a `stream` for it."""
    return with_streams(drawn_rule, lambda rule: understood(rule.text), max_events=max_events, named=("rule", "stream"))


def but_for_distances(rule: Drawn) -> Program:
    """The program of a rule; with other distances, and no absences, when its own contradict each other."""
    first, *others = rule.positive
    patterns = ", ".join(text for text in rule.patterns if not text.startswith("no "))
    when = " ".join(f"{name} in {first} [-4 s, 4 s]" for name in others)
    return understood(rule.text) or compiled(f"{TEMPLATES}rule R where {patterns} when {when} then").program


@given(**with_streams(drawn_rule, but_for_distances, max_events=10, named=("rule", "stream")))
def test_requirement_13_the_matches_are_those_of_the_event_algebra(rule: Drawn, stream: Streams) -> None:
    program = understood(rule.text)
    expected = rule.matches(stream)
    if program is None:
        assert not expected
        return
    found: Counter[frozenset[tuple[str, int]]] = Counter()
    for row in evaluate(program, stream)["R"]:
        found[frozenset((name, id(row[name])) for name in rule.positive)] += 1
    assert found == expected, rule.text


@given(**rules(max_events=7))
def test_trying_conditions_early_changes_nothing(rule: Drawn, stream: Streams) -> None:
    program = program_of(rule)
    (timed,) = program.timed("ts").rules
    events = ingest({name: stream[name] for name in timed.reads}, time="ts", tie=(), type_column="type")
    evaluation = Evaluation(events)
    literal = evaluation.settle(evaluation.matches(timed.query.pattern))
    assert {match.key for match in matches_of(timed.query, events)} == {match.key for match in literal}


@given(**rules(max_events=8), random=st.randoms(use_true_random=False))
def test_requirement_17_any_order_of_arrival_gives_the_same(rule: Drawn, stream: Streams, random: Random) -> None:
    program = program_of(rule)
    shuffled = {name: random.sample(rows, len(rows)) for name, rows in stream.items()}
    one, other = evaluate(program, stream)["R"], evaluate(program, shuffled)["R"]
    assert sorted(row.match_id for row in one) == sorted(row.match_id for row in other)  # type: ignore[attr-defined]


@given(**rules(max_events=9))
def test_the_closure_keeps_every_match(rule: Drawn, stream: Streams) -> None:
    """No two events of a match are further apart than the temporal network says."""
    program = program_of(rule)
    distances = network(program.rules[0].query, TIMESTAMP)
    for row in evaluate(program, stream)["R"]:
        for one, other in itertools.permutations(rule.positive, 2):
            least, most = distances.distance(one, other)
            assert least is not None and most is not None
            assert least <= row[other]["ts"] - row[one]["ts"] <= most


@given(**rules(max_events=9))
def test_a_lifetime_lasts_until_every_match_is_decided(rule: Drawn, stream: Streams) -> None:
    """A match is decided when its last event is there and the windows of its absences have passed."""
    program = program_of(rule)
    query = program.rules[0].query
    lives = lifetimes(query, network(query, TIMESTAMP))
    known = {name: [row for row in rows if row["ts"] is not None] for name, rows in stream.items()}
    for choice in itertools.product(*(known[kind] for kind in rule.positive.values())):
        bound = dict(zip(rule.positive, choice, strict=True))
        if not all(test(bound) for test in rule.tests):
            continue
        deadlines = [min(bound[anchor]["ts"] + most for anchor, most in ends) for ends in rule.windows.values()]
        decided = max([row["ts"] for row in choice] + deadlines)
        for name, row in bound.items():
            assert decided - row["ts"] <= (lives[name] or 0)
        for name, kind in rule.absent.items():
            for row in known[kind]:
                if all(test(bound | {name: row}) for test in rule.absent_tests[name]):
                    assert decided - row["ts"] <= (lives[name] or 0)


def test_a_conjunct_on_an_identity_is_decided_on_events() -> None:
    """Two rows that are equal in all values are two events; the one row in two variables is one."""
    program = compiled(TEMPLATES + "rule R where a : A b : A when b in a [0 s, 0 s] distinct(a, b)").program
    row = {"ts": 0, "k": "p", "x": 1, "v": 0.0}
    assert len(evaluate(program, {"A": [row]})["R"]) == 0
    assert len(evaluate(program, {"A": [dict(row), dict(row)]})["R"]) == 2
