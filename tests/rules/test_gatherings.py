"""`all` and its aggregates on the local engine: random rules that gather, against the reference (requirement 50)."""

from __future__ import annotations

from random import Random

from hypothesis import given
from tests.rules.support import compiled, with_streams
from tests.rules.test_engines import assert_as_the_reference
from tests.rules.test_properties import TEMPLATES, Drawn, drawn_rule

from tocsin.testing.streams import Streams

AGGREGATES = [
    "count({g}) {op} {n}",
    "sum({g}.x) {op} {n}",
    "sum({g}.x) {op} {p}.x",
    "avg({g}.v) {op} {p}.v",
    "min({g}.x) {op} {p}.x",
    "max({g}.v) {op} {n}",
    "first({g}.x) {op} {n}",
    "last({g}.k) {op} {p}.k",
    "range({g}.x) {op} {n}",
    "stddev({g}.x) {op} {n}",
    "count(DISTINCT {g}.k) {op} {n}",
    "sum({g}.x) + count({g}.v) {op} {p}.x",
]
EMITTED = ["sum({g}.x)", "count({g})", "max({g}.x)", "last({g}.x)", "count({g}.x) + 1", "range({g}.x)"]


def with_gatherings(choose: Random, rule: Drawn) -> str:
    """The text of a rule that gathers as well, and emits what it has counted."""
    gathered: list[str] = []
    for number in range(choose.choice((1, 1, 1, 2))):
        name, kind = f"g{number}", choose.choice("ABC")
        positive = list(rule.positive)
        conditions = [
            choose.choice(
                (
                    f"x {choose.choice(('>', '<=', '!='))} {choose.randint(0, 2)}",
                    f"k = {choose.choice(positive)}.k",
                    f"x = {choose.choice(positive)}.x",
                    f"v {choose.choice(('<', '>=', '='))} {choose.choice(positive)}.v",
                    f"k = {choose.choice(positive)}.k, x = {choose.choice(positive)}.x",
                    f"x <= {choose.choice(positive)}.x + {choose.choice(positive)}.x",
                )
            )
            for _ in range(choose.choice((0, 1, 1, 2)))
        ]
        conditions += [
            choose.choice(AGGREGATES).format(
                g=name, p=choose.choice(positive), op=choose.choice((">", ">=", "<", "!=")), n=choose.randint(0, 3)
            )
            for _ in range(choose.choice((0, 0, 1, 1, 2)))
        ]
        if gathered and choose.random() < 0.4:
            conditions.append(f"x >= count({gathered[-1]})")
        rule.patterns.append(f"all {name} : {kind} {{ {', '.join(conditions)} }}")
        for anchor in choose.sample(positive, choose.randint(1, min(2, len(positive)))):
            least = choose.choice((-4, -2, -1, 0, 1))
            rule.when.append(f"all {name} in {anchor} [{least} s, {least + choose.choice((0, 1, 3, 5))} s]")
        if choose.random() < 0.3:
            rule.when.append(f"distinct({name}, {choose.choice(positive)})")
        gathered.append(name)
    if choose.random() < 0.3:
        own = choose.choice(gathered)
        rule.patterns.append(f"no m : {choose.choice('ABC')} {{ x > sum({own}.x) }}")
        rule.when.append(f"no m in {choose.choice(list(rule.positive))} [-2 s, 3 s]")
    value = choose.choice(EMITTED).format(g=choose.choice(gathered))
    return f"{rule.text} emit D at {next(iter(rule.positive))}.timestamp with {{ x = {value} }}".replace(
        TEMPLATES, TEMPLATES + "template D { x : Integer }\n"
    )


def small_rule(choose: Random) -> Drawn:
    """A rule of few events: those of many have few matches on short streams."""
    most = choose.choice((1, 1, 2, 2, 3))
    rule = drawn_rule(choose.randrange(2**32))
    while len(rule.positive) > most:
        rule = drawn_rule(choose.randrange(2**32))
    return rule


def drawn_gathering(seed: int) -> str:
    """A random rule that gathers."""
    choose = Random(seed)
    return with_gatherings(choose, small_rule(choose))


@given(**with_streams(drawn_gathering, max_events=10))
def test_random_gatherings_have_the_matches_and_events_of_the_reference(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)


def drawn_unordered(seed: int) -> str:
    """A random rule in which it does not matter who holds which event, for some of its variables."""
    choose = Random(seed)
    rule, names = drawn_rule(choose.randrange(2**32)), list[str]()
    while len(names) < 2:
        rule = drawn_rule(choose.randrange(2**32))
        wanted = choose.choice("ABC")
        names = [name for name, kind in rule.positive.items() if kind == wanted]
    choose.shuffle(names)
    rule.when.append(f"unordered({', '.join(names)})")
    return rule.text if choose.random() < 0.6 else with_gatherings(choose, rule)


def drawn_interchangeable(seed: int) -> str:
    """A random rule of which nearly always all variables are interchangeable."""
    choose = Random(seed)
    rule = Drawn()
    own = choose.choice(("", "x > 0", "x > 0, k = 'p'"))
    between = choose.choice(("", "k = {0}.k", "x != {0}.x", "x + {0}.x > 2", "x <= {0}.x"))
    for number in range(choose.choice((2, 2, 3))):
        conditions = [own, *(between.format(other) for other in rule.positive)]
        rule.patterns.append(f"p{number} : A {{ {', '.join(filter(None, conditions))} }}")
        rule.when += [f"p{number} in {other} [-3 s, 3 s]" for other in rule.positive]
        rule.positive[f"p{number}"] = "A"
    names = list(rule.positive)
    choose.shuffle(names)
    rule.when.append(f"unordered({', '.join(names)})")
    if choose.random() < 0.5:
        rule.when.append(f"distinct({', '.join(rule.positive)})")
    if choose.random() < 0.3:
        rule.patterns.append("no n : B { x > 1 }")
        rule.when += [f"no n in {name} [0 s, 2 s]" for name in rule.positive]
    return rule.text if choose.random() < 0.6 else with_gatherings(choose, rule)


def drawn_set(seed: int) -> str:
    """A random rule with `unordered`."""
    return (drawn_unordered, drawn_interchangeable)[seed % 2](seed)


@given(**with_streams(drawn_set, max_events=9))
def test_requirement_26_unordered_keeps_the_first_of_each_set(text: str, stream: Streams) -> None:
    assert_as_the_reference(compiled(text), stream)
