"""By which key a live program is split, or why by none."""

from __future__ import annotations

import pytest
from tests.rules.support import compiled

from tocsin.analysis.keys import Sharding, sharding
from tocsin.analysis.rules.declarations import schema_of

TEMPLATES = "".join(f"template {name} {{ k : String, x : Integer, v : Double }}\n" for name in "ABCE")


def found(rules: str, templates: str = TEMPLATES) -> Sharding:
    program = compiled(templates + rules).program
    return sharding(program, program.rules, {name: schema_of(each) for name, each in program.templates.items()})


PAIR = "rule R where a : A b : B { k = a.k } when b in a [0 s, 4 s]"
EMIT = "then emit E at a.timestamp with { k = b.k, x = a.x, v = a.v }"


@pytest.mark.parametrize(
    ("rules", "key"),
    [
        (PAIR, ("k",)),
        ("rule R where a : A", ("k", "x")),  # a rule of one event meets nobody; doubles are no keys
        ("rule R where a : A no b : B { k = a.k } when no b in a [0 s, 4 s]", ("k",)),
        ("rule R where a : A all b : B { x = a.x } when all b in a [0 s, 4 s]", ("x",)),
        ("rule R where a : A b : B { k = a.k } c : C { k = b.k } when b in a [0 s, 4 s] c in a [0 s, 4 s]", ("k",)),
        (f"{PAIR} {EMIT} rule S where e : E no c : C {{ k = e.k }} when no c in e [0 s, 4 s]", ("k",)),
        (f"{PAIR} rule S where c : C", ("k",)),
        (f"{PAIR} then emit E at a.timestamp with {{ k = 'one', x = a.x, v = a.v }}", ("k",)),  # which nobody reads
    ],
)
def test_every_rule_keeps_to_the_key(rules: str, key: tuple[str, ...]) -> None:
    assert found(rules).key == key


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ("rule R where a : A b : B { x > a.x } when b in a [0 s, 4 s]", "all events of rule R"),
        ("rule R where a : A b : B { k = a.k } no c : C when b in a [0 s, 4 s] no c in a [0 s, 1 s]", "rule R"),
        ("rule R where a : A all b : B { x > a.x } when all b in a [0 s, 4 s]", "all events of rule R"),
        ("rule R where a : A+ when a in a [0 s, 4 s]", "all events of rule R"),
        ("rule R where a : A b : B { v = a.v } when b in a [0 s, 4 s]", "all events of rule R"),
        (f"{PAIR} rule S where a : A b : B {{ x = a.x }} when b in a [0 s, 4 s]", "rule S keeps to `x`"),
        (f"{PAIR} select next", "`select next` of rule R"),
        (
            f"{PAIR} then emit E at a.timestamp with {{ k = 'one', x = a.x, v = a.v }} rule S where e : E",
            "rule R emits E without `k`",
        ),
    ],
)
def test_one_shard_says_why(rules: str, reason: str) -> None:
    sharded = found(rules)
    assert sharded.key == ()
    assert reason in str(sharded)


def test_a_key_of_two_types_is_none() -> None:
    templates = "template A { k : String } template B { k : Integer }\n"
    assert "type" in str(found("rule R where a : A rule S where b : B", templates))
